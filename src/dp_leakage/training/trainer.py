"""Training of K models of one architecture at once, private or not, through one code path."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Generator, Tensor

from dp_leakage.common.errors import UserError
from dp_leakage.common.kernels import exact, flushed
from dp_leakage.models.ensemble import Ensemble, trained_rows
from dp_leakage.models.layers import Layers, Parameters, fixed, initial_parameters
from dp_leakage.privacy.mechanism import BATCH, PERSON, Mechanism, holds_groups
from dp_leakage.training import flat
from dp_leakage.training.ahead import Ahead
from dp_leakage.training.averages import AVERAGE, move_average, start_average
from dp_leakage.training.backward import check_gradients, record_lengths
from dp_leakage.training.checkpoint import Checkpoint
from dp_leakage.training.gradients import Program, bounds_examples, sums_examples
from dp_leakage.training.graphs import gradient_step, take_steps
from dp_leakage.training.loop import History, run
from dp_leakage.training.model_batches import Passes, cut, make_model_batches, pass_width
from dp_leakage.training.module_probe import check_foreign
from dp_leakage.training.noise import start_noise
from dp_leakage.training.optimizers import Optimizer, Slots, slots
from dp_leakage.training.requests import check_request
from dp_leakage.training.samplers import EVEN, HEADS, Batch, Roster, draw_epoch, draw_persons, parts_of, roster
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.streams import stream
from dp_leakage.training.tiles import SMALL, tile_sizes
from dp_leakage.training.views import Viewing, Views, check_views, read_views
from dp_leakage.training.watch import WhiteBoxObserver


def train(
    layers: Layers,
    x: Tensor,
    y: Tensor,
    subsets: Tensor,
    seeds: Sequence[int],
    settings: TrainingSettings,
    mechanism: Mechanism | None = None,
    *,
    held: Tensor | None = None,
    evaluate_on: Tensor | None = None,
    trace: Tensor | None = None,
    groups: Tensor | None = None,
    group_count: int | None = None,
    device: str = "cpu",
    checkpoint: Checkpoint | None = None,
    on_epoch: Callable[[int], None] | None = None,
    initial: Parameters | None = None,
    watch: WhiteBoxObserver | None = None,
) -> tuple[Ensemble, History]:
    """Train K models.

    Args:
        layers: the architecture, from `architectures.build`.
        x: float32 (n, …) records (float64 works too, and trains in float64).
        y: int64 (n,) classes from 0.
        subsets: int64 (K, m): the rows of x that each model trains on, or that random inclusion decides about.
        seeds: K integers ≥ 0; a model's initial parameters, batches, noise and dropout depend only on its own seed.
        settings: optimizer, epochs, batch size (in units: records, or people).
        mechanism: protection of each step; None: plain training.
        held: bool (K, m), by fair coins: which rows of its subset each model trains on; None: all. Rates, steps and
            divisors depend on m, never on how many rows are held.
        evaluate_on: int64 rows of x for ``test_accuracy``: (r,) for all models or (K, r).
        trace: int64 (t,) rows of x whose losses the history keeps for each model and evaluated epoch.
        groups: int64 (n,): the (sub)class of each row of x, from 0, for the units ``class`` and ``subclass``, or the
            person for the unit ``person``; if it is missing, the classes y.
        group_count: number of (sub)classes, including those without a record; None: the highest number and one.
        device: ``cpu`` or ``cuda``.
        checkpoint: file to save to and to continue from.
        on_epoch: called after each epoch with the number of finished epochs.
        initial: name → (…) parameters from which every model starts, instead of random ones.
        watch: scores canaries among the rows of x, step by step.

    Returns:
        The ensemble, on the CPU, and the history: one dict (model, epoch, loss, train_accuracy, test_accuracy) per
        model at every ``evaluate_every``-th epoch and the last, over all of the model's records and all of
        ``evaluate_on`` (NaN without it), dropout off. With ``trace`` also ``losses``, float32 (t,) in nats, on the CPU.

    Raises:
        UserError: the training diverged, an impossible request, or a checkpoint of something else.
    """
    check_request(layers, x, y, subsets, seeds, settings, mechanism, held)
    with exact(), torch.inference_mode():
        training = start(
            layers, x, y, subsets, seeds, settings, mechanism, groups, device, held, initial, watch, group_count
        )
        run(
            training,
            training.program.x,
            training.program.y,
            settings,
            mechanism,
            evaluate_on,
            trace,
            checkpoint,
            on_epoch,
        )
    parameters = {name: view.cpu().clone() for name, view in training.models().parameters.items()}
    return Ensemble(layers, parameters, training.trained_on.cpu(), mechanism), training.history


@dataclass
class EnsembleTraining:
    """K models of layers in one flat buffer; see `loop.Training`."""

    program: Program
    fill_gradient: Callable[..., None]
    parameters: Tensor
    trained_on: Tensor
    memory: Slots
    optimizer: Optimizer
    rate: Callable[[int], float]
    penalty: Tensor | None
    generators: dict[str, list[Generator]]
    draw: Callable[[int], list[list[Batch]]]
    watch: WhiteBoxObserver | None = None
    move_average: Callable[[int, int], None] | None = None
    prepare: Callable[[int], None] | None = None
    epoch: int = 0
    history: History = field(default_factory=list)

    def run_epoch(self) -> None:
        """Run every step of one epoch, of all models.

        Raises:
            UserError: a private training changed what is released besides the trained parameters.
        """
        program = self.program
        before = {} if program.mechanism is None else {name: own.clone() for name, own in program.fixed.items()}
        with flushed():
            for _ in steps(self):
                pass
        for name, own in before.items():
            if not torch.allclose(own, program.fixed[name], rtol=0, atol=0, equal_nan=True):
                raise UserError(f"training changed '{name}', which no noise protects; remove what writes it")

    def finish_step(self) -> None:
        """Update the parameters from the gradient of a step."""
        self.program.noise.finish()
        if self.penalty is not None:
            self.program.gradient.addcmul_(self.parameters, self.penalty)
        self.optimizer.step()

    def models(self) -> Ensemble:
        """Return the current models, or their averages, as views of the buffer."""
        kept = flat.views(self.program.layers, self.memory.get(AVERAGE, self.parameters))
        return Ensemble(self.program.layers, kept | self.program.fixed, self.trained_on)

    def tensors(self) -> dict[str, Tensor]:
        """Return all state except ``epoch`` and ``history``."""
        states = {
            f"generator.{role}": torch.stack([generator.get_state() for generator in own])
            for role, own in self.generators.items()
        }
        noise = {f"noise.{name}": tensor for name, tensor in self.program.noise.tensors().items()}
        return {**self._moved(), **states, **noise}

    def _moved(self) -> dict[str, Tensor]:
        """Return all tensors that a step changes in place."""
        watched = {} if self.watch is None else self.watch.tensors()
        fixed = {f"fixed.{name}": own for name, own in self.program.fixed.items()}
        return {"parameters": self.parameters, **fixed, **self.memory, **watched}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Restore the state from the tensors of `tensors`."""
        for name, into in self._moved().items():
            into.copy_(tensors[name])
        for role, own in self.generators.items():
            for generator, state in zip(own, tensors[f"generator.{role}"], strict=True):
                generator.set_state(state.clone())  # aligned, since set_state crashes on unaligned memory from a file
        noise = {name.removeprefix("noise."): value for name, value in tensors.items() if name.startswith("noise.")}
        self.program.noise.restore(noise)


def steps(training: EnsembleTraining) -> Iterator[None]:
    """Take every step of an epoch for all models, and yields after each step."""
    training.optimizer.set_rate(training.rate(training.epoch))
    drawn = list(zip(*training.draw(training.epoch), strict=True))
    first = training.epoch * len(drawn)
    if training.watch is None:
        taken = take_steps(training.fill_gradient, drawn, first, training.finish_step)
    else:
        taken = _watched_steps(training, training.watch, drawn, first)
    for step, _ in enumerate(taken, first):
        if training.move_average is not None:
            training.move_average(step, len(drawn))
        yield
    if training.prepare is not None:
        training.prepare(training.epoch + 1)


def _watched_steps(
    training: EnsembleTraining, watch: WhiteBoxObserver, drawn: list[tuple[Batch, ...]], first: int
) -> Iterator[None]:
    for step, batches in enumerate(drawn, first):
        watch.step(training.program, training.fill_gradient, list(batches), step)
        training.finish_step()
        yield


def start(
    layers: Layers,
    x: Tensor,
    y: Tensor,
    subsets: Tensor,
    seeds: Sequence[int],
    settings: TrainingSettings,
    mechanism: Mechanism | None,
    groups: Tensor | None = None,
    device: str = "cpu",
    held: Tensor | None = None,
    initial: Parameters | None = None,
    watch: WhiteBoxObserver | None = None,
    group_count: int | None = None,
) -> EnsembleTraining:
    """Create a training at epoch 0; the arguments are those of `train`."""
    check_gradients(layers, x)
    records = _units(mechanism, subsets, groups)
    if mechanism is not None:
        check_foreign(layers, math.ceil(min(settings.batch_size, records)), x.dtype)
    parameters = torch.zeros(len(seeds), flat.size(layers), dtype=x.dtype, device=device)
    rest = _fill_start(layers, parameters, seeds, settings.initialization, initial)
    gradient = torch.zeros_like(parameters)
    memory = slots(settings, parameters) | start_average(settings, parameters)
    generators = {
        "batches": [stream(seed, "batches") for seed in seeds],
        "dropout": [stream(seed, "dropout", device) for seed in seeds],
    }
    batch_size = min(settings.batch_size, records)
    share = 1.0 if held is None else HEADS
    groups = y if groups is None else groups
    count = _count_of(mechanism, groups) if group_count is None else group_count
    divisor = _divisor(mechanism, batch_size, records, count, share)
    own = [stream(seed, "noise", device) for seed in seeds]
    noise = start_noise(mechanism, gradient, divisor, own, math.ceil(records / batch_size))
    persons = mechanism is not None and mechanism.unit == PERSON
    ragged = held is not None or (mechanism is not None and mechanism.sampler not in EVEN)
    if device != "cpu" or persons:  # a canary's rows leave the batch; of records, model batches on a CPU keep its width
        ragged = ragged or watch is not None
    expected, deviation = batch_size * share, math.sqrt(batch_size * share) if ragged else 0.0
    tiles: tuple[int, int] | None = None
    if mechanism is not None and holds_groups(mechanism.unit):
        # Records that come together. A batch has few large (sub)classes, which gain nothing from company (measured).
        size = records * share / count if mechanism.sampler == "class_poisson" else 1.0
        tiles = (SMALL, SMALL) if size <= SMALL else None
        deviation = math.sqrt(expected * max(1.0, size))
    if persons:
        sizes = _sizes(mechanism, groups)
        tiles = tile_sizes(int(sizes.max()))
        expected, deviation = _spread(sizes.double(), batch_size * share, ragged)
    passes = cut(layers, parameters, mechanism, expected, x.shape[1:], deviation)
    in_turns = noise.directs or (tiles is None and mechanism is not None and mechanism.unit != BATCH)
    if in_turns and not bounds_examples(mechanism) and not sums_examples(mechanism):
        passes = Passes(1, pass_width(layers, x.shape[1:], parameters.device), 1)  # such units go one after the other
    viewing = None
    if settings.views is not None:
        viewing = _viewing(read_views(settings.views), x, mechanism, seeds, device, watch)
        generators["views"] = viewing.generators
        width = max(1, passes.width // viewing.views.count)
        multiple = min(passes.multiple, width)
        passes = Passes(1, width - width % multiple, multiple)
    on_device = x.to(device)
    program = Program(
        layers,
        on_device,
        y.to(device),
        mechanism,
        divisor,
        gradient,
        noise,
        make_model_batches(layers, parameters, gradient, generators["dropout"], passes.models, rest),
        passes.width,
        passes.multiple,
        record_lengths(layers, on_device),
        tiles,
        rest,
        viewing,
    )
    if watch is not None:
        watch.begin(program, parameters, _parts(mechanism, subsets, len(x), generators["batches"]))
    draw = _drawing(mechanism, subsets, groups, held, batch_size, generators["batches"])
    ahead = None if device == "cpu" else Ahead(draw, generators["batches"], settings.epochs)
    return EnsembleTraining(
        program,
        gradient_step(program),
        parameters,
        trained_rows(subsets, held).to(device),
        memory,
        Optimizer(settings, parameters, gradient, memory),
        settings.rate,
        flat.penalty(layers, settings.l2, settings.l2_on, parameters) if settings.l2 else None,
        generators,
        ahead or draw,
        watch,
        move_average=partial(move_average, settings, memory[AVERAGE], parameters) if AVERAGE in memory else None,
        prepare=None if ahead is None else ahead.prepare,
    )


def _viewing(
    views: Views,
    x: Tensor,
    mechanism: Mechanism | None,
    seeds: Sequence[int],
    device: str,
    watch: WhiteBoxObserver | None,
) -> Viewing:
    check_views(views, tuple(x.shape[1:]), mechanism)
    if watch is not None:
        raise UserError("an audit that watches every step cannot follow random views; remove views or the audit")
    return Viewing(views, [stream(seed, "views", device) for seed in seeds])


def _parts(mechanism: Mechanism | None, subsets: Tensor, count: int, generators: Sequence[Generator]) -> Tensor | None:
    """Return each model's cyclic Poisson subset of each row, int64 (K, count), otherwise 0; None without subsets."""
    if mechanism is None or mechanism.turns == 1:
        return None
    parts = torch.zeros(len(subsets), count, dtype=torch.int64)
    for own, rows, generator in zip(parts, subsets, generators, strict=True):
        own[rows.cpu()] = parts_of(len(rows), mechanism.turns, generator)
    return parts


def _fill_start(
    layers: Layers, parameters: Tensor, seeds: Sequence[int], scheme: str, initial: Parameters | None
) -> Parameters:
    """Fill the flat buffer (K, P) and return the models' fixed tensors, name → (K, …)."""
    views = flat.views(layers, parameters)
    if initial is None:
        starts = [initial_parameters(layers, stream(seed, "init"), scheme) for seed in seeds]
        initial = {name: torch.stack([start[name] for start in starts]) for name in starts[0]}
    for name, view in views.items():
        view.copy_(initial[name])
    rest = {}
    for name, one in fixed(layers).items():
        dtype = parameters.dtype if one.is_floating_point() else one.dtype
        empty = torch.empty(len(parameters), *one.shape, dtype=dtype, device=parameters.device)
        rest[name] = empty.copy_(initial[name])
    return rest


def _drawing(
    mechanism: Mechanism | None,
    subsets: Tensor,
    groups: Tensor,
    held: Tensor | None,
    batch_size: float,
    generators: Sequence[Generator],
) -> Callable[[int], list[list[Batch]]]:
    """Draw the batches of every model for an epoch, counted from 0."""
    sampler, unit = (mechanism.sampler, mechanism.unit) if mechanism else ("shuffle", "example")
    if mechanism is not None and unit == PERSON:
        persons = rosters(mechanism, subsets, groups, held)
        return lambda epoch: draw_persons(sampler, persons, batch_size, generators)
    drawn_from = [(rows.cpu(), groups[rows].cpu()) for rows in subsets]
    coins = [None] * len(subsets) if held is None else held.cpu()
    turns = 1 if mechanism is None else mechanism.turns
    return lambda epoch: [
        draw_epoch(sampler, unit, rows, batch_size, own, generator, heads, turns=turns, epoch=epoch)
        for (rows, own), heads, generator in zip(drawn_from, coins, generators, strict=True)
    ]


def rosters(mechanism: Mechanism, subsets: Tensor, groups: Tensor, held: Tensor | None) -> list[Roster]:
    """Return the people of each model; the arguments are those of `train`.

    If each person contributes only the ``first`` records of those in a subset, the others are never drawn.
    """
    most, first = _most(mechanism), mechanism.settings.get("chosen") == "first"
    found = []
    for model, of_model in enumerate(subsets):
        rows, own = of_model.cpu(), groups[of_model].cpu()
        kept = _first(own, most) if most is not None and first else torch.arange(len(rows))
        heads = None if held is None else held[model].cpu()[kept]
        found.append(roster(rows[kept], own[kept], heads, None if first else most))
    return found


def _first(groups: Tensor, most: int) -> Tensor:
    """Return the indices of each person's first ``most`` records, int64, ascending."""
    order = groups.argsort(stable=True)
    sizes = groups[order].unique_consecutive(return_counts=True)[1]
    place = torch.arange(len(groups)) - (sizes.cumsum(0) - sizes).repeat_interleave(sizes)
    return order[place < most].sort().values


def _most(mechanism: Mechanism | None) -> int | None:
    """Return the maximum number of a person's records in a batch; None: no limit."""
    most = None if mechanism is None or mechanism.unit != PERSON else mechanism.settings.get("most", "all")
    return None if most in (None, "all") else int(most)


def _sizes(mechanism: Mechanism | None, groups: Tensor) -> Tensor:
    """Return each person's number of records in a batch, int64, over all people, so that it is equal for
    every model.
    """
    sizes, most = groups.unique(return_counts=True)[1].cpu(), _most(mechanism)
    return sizes if most is None else sizes.clamp(max=most)


def _spread(sizes: Tensor, persons: float, ragged: bool) -> tuple[float, float]:
    """Return the mean and standard deviation of the records in a batch of this many people; if ``ragged``, on average.

    The deviation is at least 1, since no two batches need be equally long.
    """
    variance = sizes.square().mean() if ragged else sizes.var(correction=0)
    return persons * float(sizes.mean()), max(1.0, math.sqrt(persons * float(variance)))


def _units(mechanism: Mechanism | None, subsets: Tensor, groups: Tensor | None) -> int:
    """Return the number of units from which each model draws batches: records, or people. Raises UserError if models
    differ.
    """
    if mechanism is None or mechanism.unit != PERSON:
        return subsets.shape[1]
    if groups is None:
        raise UserError("groups: missing; unit 'person' needs the owner of each record")
    counts = {len(groups[rows].unique()) for rows in subsets}
    if len(counts) > 1:
        raise UserError(f"subsets: models train on {min(counts)} to {max(counts)} people; expected one number")
    return counts.pop()


def _count_of(mechanism: Mechanism | None, groups: Tensor) -> int:
    """Return the number of groups if groups are the units; otherwise 1. It does not wait for the groups' device."""
    grouped = mechanism is not None and holds_groups(mechanism.unit)
    return int(groups.max()) + 1 if grouped else 1


def _divisor(mechanism: Mechanism | None, batch_size: float, records: int, groups: int, share: float) -> float:
    """Return the divisor of a bounded sum: the mean number of units in a batch, over inclusion and draws."""
    if bounds_examples(mechanism) or (mechanism is not None and mechanism.unit == PERSON):
        return float(batch_size) * share  # plain training divides by the actual batch size
    assert mechanism is not None  # since plain training bounds nothing
    if not holds_groups(mechanism.unit):
        return 1.0
    # In this order of operations, one record per group gives exactly batch_size.
    return groups * batch_size / records if mechanism.sampler == "class_poisson" else float(groups)
