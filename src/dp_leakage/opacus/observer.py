"""Listeners of a watch. They draw nothing from the training's generators and write none of its tensors."""

import sys
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from opacus import PrivacyEngine
from opacus.accountants import accountant as accountants
from opacus.optimizers import DPOptimizer
from opacus.utils import fast_gradient_clipping_utils
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils.data import dataloader

from dp_leakage.opacus.clipping import LONGER, clipped_sum, differs, explained
from dp_leakage.opacus.findings import Findings, Level
from dp_leakage.opacus.mixing import TOLERANCE, mixing, records_of
from dp_leakage.opacus.noise import NoiseSums
from dp_leakage.opacus.preflight import (
    check_count,
    check_loader,
    check_model,
    check_optimizer,
    check_resumed,
    sampling_of,
)
from dp_leakage.opacus.record import MOST_BATCHES, UNMATCHED, Batch, Claim, Step, Training, steps_counted
from dp_leakage.opacus.seams import Seams

FIRST = 3  # steps that are all checked
NORM_ERROR = 0.02  # relative error of a record's norm that is refuted


class Observer:
    """Observations of all trainings, for the judgment at the end.

    Attributes:
        trainings: in order of creation of their optimizers.
        asked: (accountant, δ, ε) requested by the script, in order.
    """

    def __init__(self, findings: Findings, every: int, canaries: int, seed: int) -> None:
        self.findings, self.every, self.canaries = findings, every, canaries
        self.rng = np.random.default_rng([seed, 0])
        self.canary_rng = np.random.default_rng([seed, 1])
        self.trainings: list[Training] = []
        self.asked: list[tuple[Any, float, float, int]] = []
        self.seeded = False
        self._current: dict[int, Training] = {}
        self._modules: dict[int, Training] = {}
        self._hooks: dict[int, tuple[Any, Any]] = {}
        self._others: dict[int, tuple[Optimizer, set[int], list[Any]]] = {}
        self._delivered: deque[Batch] = deque(maxlen=MOST_BATCHES)
        self._queues: WeakKeyDictionary[Any, tuple[Any, deque[Any]]] = WeakKeyDictionary()
        self._target: dict[str, Any] = {}
        self._asked_loader: Any = None
        self._is_listening = self._is_inside = self._is_recording = False
        self._seams = Seams(self.guard)
        self._wrapped: set[type] = set()
        self._handles: list[Any] = []

    def install(self) -> None:
        """Start listening."""
        around = self._seams.around
        for owner in (torch, torch.random):
            around(owner, "manual_seed", before=self._seeds)
        around(PrivacyEngine, "make_private_with_epsilon", before=self._targets)
        around(PrivacyEngine, "make_private", before=self._asks, after=self._made_private)
        around(accountants.IAccountant, "get_optimizer_hook_fn", after=self._made_hook)
        for accountant in _subclasses(accountants.IAccountant):
            around(accountant, "get_epsilon", after=self._asked_epsilon)
        iterators = dataloader._BaseDataLoaderIter
        around(iterators, "__init__", after=self._iterates)
        around(iterators, "_reset", before=self._resets)
        around(iterators, "_next_index", after=self._draws)
        around(iterators, "__next__", after=self._delivers)
        around(nn.Module, "__call__", before=self._forwards, concerns=self._concerns)
        for loss in _subclasses(fast_gradient_clipping_utils.DPTensorFastGradientClipping, itself=True):
            self._seams.nested(loss, "backward", first=self._ghost)
        for optimizer in _subclasses(DPOptimizer, itself=True):
            self._wrap(optimizer)
        around(DPOptimizer, "__init__", after=self._made_optimizer)
        self._handles = [
            register_optimizer_step_pre_hook(lambda inner, *_: self.guard(self._applies, inner)),
            register_optimizer_step_post_hook(lambda inner, *_: self.guard(self._applied, inner)),
        ]
        self._is_listening = True

    def remove(self) -> None:
        """Restore everything that was wrapped."""
        self._is_listening = False
        for handle in self._handles:
            handle.remove()
        self._seams.restore()

    def guard(self, listener: Callable[..., None], *args: Any, **kwargs: Any) -> None:
        """Call a listener. A listener's own error becomes a finding, never an error of the training."""
        if not self._is_listening or self._is_inside:
            return
        self._is_inside, self._is_recording = True, torch.is_grad_enabled()
        try:
            with torch.no_grad():
                listener(*args, **kwargs)
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{place.name}, line {place.lineno}"
            sentence = f"A check failed ({listener.__name__.strip('_')}): {type(error).__name__}: {error} ({where})."
            self.findings.add(Level.UNKNOWN, "watch", sentence, listener.__name__)
        finally:
            self._is_inside = False

    def _wrap(self, optimizer: type) -> None:
        """Listen to a class of optimizers and its components. A user's own class is wrapped when first used."""
        for base in optimizer.__mro__:
            if issubclass(base, DPOptimizer) and base not in self._wrapped:
                self._wrapped.add(base)
                self._seams.nested(base, "pre_step", first=self._enters)
                self._seams.nested(base, "add_noise", first=self._adds_noise)
                self._seams.nested(base, "reduce_gradients", first=self._reduces)

    def _seeds(self, *_: Any) -> None:
        self.seeded = True

    def _targets(self, engine: Any, *, target_epsilon: float, target_delta: float, epochs: int, **_: Any) -> None:
        self._target = {"epsilon": float(target_epsilon), "delta": float(target_delta), "epochs": epochs}

    def _asks(self, engine: Any, *, data_loader: Any, **_: Any) -> None:
        self._asked_loader = data_loader

    def _made_hook(self, accountant: Any, hook: Any, *_: Any, **__: Any) -> None:
        self._hooks[id(hook)] = (hook, accountant)

    def _asked_epsilon(self, accountant: Any, epsilon: float, delta: float | None = None, *_: Any, **__: Any) -> None:
        if delta is not None:
            self.asked.append((accountant, float(delta), float(epsilon), steps_counted(accountant)))

    def _made_optimizer(self, instance: Any, *_: Any, **__: Any) -> None:
        self._wrap(type(instance))
        training = Training(instance, len(self.trainings) + 1)
        training.names = [f"tensor {i + 1}" for i in range(len(instance.params))]
        self.trainings.append(training)
        self._current[id(instance.original_optimizer)] = training

    def _made_private(
        self,
        engine: Any,
        result: tuple[Any, ...],
        *,
        module: nn.Module,
        data_loader: Any,
        noise_multiplier: float,
        batch_first: bool = True,
        **_: Any,
    ) -> None:
        wrapped, optimizer, loader = result[0], result[1], result[-1]
        training = self._current[id(optimizer.original_optimizer)]
        training.engine, training.accountant, training.hook = engine, engine.accountant, optimizer.step_hook
        training.wrapped, training.loader = wrapped, loader
        training.module = getattr(wrapped, "_module", module)
        rate, records = 1 / len(loader), len(loader.dataset)
        dim = 0 if batch_first else 1
        training.claim = Claim(float(noise_multiplier), rate, records, **self._target, batch_dim=dim)
        self._target = {}
        names = {id(p): name for name, p in training.module.named_parameters()}
        training.names = [names.get(id(p), f"tensor {i + 1}") for i, p in enumerate(optimizer.params)]
        self._modules[id(training.module)] = training
        check_loader(self.findings, training, data_loader)
        check_count(self.findings, training)
        self._check_others(training)
        if self.canaries and not training.is_sharded:
            from dp_leakage.opacus.canaries import Canaries

            training.canaries = Canaries(self.canaries, optimizer, records, rate, self.canary_rng)
        if not engine.secure_mode and (self.seeded or optimizer.generator is not None):
            how = "the generator of the noise" if optimizer.generator is not None else "torch.manual_seed"
            sentence = f"Who knows the seed of {how} can draw the noise again; secure_mode is off."
            self.findings.add(Level.NOTE, "seed", sentence)
        if "Adaptive" in type(engine).__name__:
            sentence = (
                "Adaptive ghost clipping makes the noise of its count from the size of the batch, which is private "
                "(Opacus says so itself): its ε does not cover that."
            )
            self.findings.add(Level.UNKNOWN, "adaptive", sentence, training.about)
        if training.is_sharded:
            sentence = "Tensors are sharded (FSDP): batches and steps are watched, clipping and noise are not."
            self.findings.add(Level.UNKNOWN, "fsdp", sentence, training.about)

    def _iterates(self, iterator: Any, _: None, loader: Any) -> None:
        self._queues.setdefault(iterator, (loader, deque()))

    def _resets(self, iterator: Any, loader: Any, *_: Any, **__: Any) -> None:
        self._queues[iterator] = (loader, deque())

    def _draws(self, iterator: Any, index: Any) -> None:
        if iterator in self._queues:
            self._queues[iterator][1].append(index)

    def _delivers(self, iterator: Any, _: Any) -> None:
        loader, queue = self._queues.get(iterator, (None, deque()))
        if not queue:
            return
        index = queue.popleft()
        rows = index.tolist() if isinstance(index, Tensor) else [index] if isinstance(index, int) else list(index)
        self._delivered.append(Batch(*sampling_of(loader), rows, loader.dataset))

    def _take(self, batches: deque[Batch], size: int | None, training: Training) -> Batch | None:
        """Remove and return the newest batch of this size, preferably of the training's own data set."""
        fits = [batch for batch in reversed(batches) if size is None or len(batch.rows) == size]
        fits.sort(key=lambda batch: batch.dataset is not training.dataset)
        if not fits and batches and not batches[-1].rows:  # an empty batch that was filled at random
            fits = [batches[-1]]
        if fits:
            place = next(i for i in reversed(range(len(batches))) if batches[i] is fits[0])
            del batches[place]
        return fits[0] if fits else None

    def _concerns(self, module: Any) -> bool:
        return id(module) in self._modules and not self._is_inside

    def _forwards(self, module: nn.Module, *args: Any, **kwargs: Any) -> None:
        training = self._modules[id(module)]
        size = records_of(args, kwargs, training.claim.batch_dim)
        batch = self._take(self._delivered, size, training)
        if not (module.training and self._is_recording):
            return
        if batch is not None:
            training.forwarded.append(batch)
        if not training.is_met and not training.is_sharded:
            training.is_met = True
            self._meets(training, module, args, kwargs)

    def _meets(self, training: Training, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Check the model before its first forward pass in training mode."""
        inner = training.inner or module
        training.buffers = {name: buffer.detach().clone() for name, buffer in inner.named_buffers()}
        check_model(self.findings, training, inner)
        change = training.mixing = mixing(inner, args, kwargs, training.claim.batch_dim)
        if change is not None and change > TOLERANCE and "batch_norm" not in self.findings:
            sentence = (
                f"The output for a record changes by {change:.1g} (relative) when another record of its batch changes: "
                "clipping does not bound the effect of a record."
            )
            self.findings.add(Level.REFUTED, "mixing", sentence, training.about)

    def _ghost(self, loss: Any) -> None:
        """Recompute the norm of one record's gradient, to check Opacus' shortcut."""
        training = next((t for t in self._current.values() if t.optimizer is loss.optimizer), None)
        if training is None or training.is_sharded or not training.is_checked or not len(loss.loss_per_sample):
            return
        row, hooks = int(self.rng.integers(len(loss.loss_per_sample))), loss.module
        weights = [p for p in training.module.parameters() if p.requires_grad] if training.module is not None else []
        enabled, hooks.hooks_enabled = hooks.hooks_enabled, False
        try:
            with torch.enable_grad():
                parts = torch.autograd.grad(
                    loss.loss_per_sample[row].sum(), weights, retain_graph=True, allow_unused=True
                )
        finally:
            hooks.hooks_enabled = enabled
        training.norm = row, float(torch.stack([part.norm() for part in parts if part is not None]).norm())

    def _enters(self, optimizer: Any) -> None:
        """Note the number of records and their recomputed clipped sum, before a step or a part of one."""
        training = self._current[id(optimizer.original_optimizer)]
        if training.accountant is None and id(optimizer.step_hook) in self._hooks:
            training.accountant = self._hooks[id(optimizer.step_hook)][1]
        if not training.entries:
            self._begins(training)
        training.entries += 1
        training.bound = float(optimizer.max_grad_norm)  # adaptive clipping changes it within the step
        sizes, part = self._ghost_part(training) if training.is_ghost else self._sample_part(training)
        for size in sizes:
            batch = self._take(training.forwarded, size, training) or self._take(self._delivered, size, training)
            training.drawn.append(batch or Batch(UNMATCHED, None, [-1] * size, None))
        if part is not None:
            before = training.reference
            training.reference = [a + b for a, b in zip(before, part, strict=True)] if before else part

    def _begins(self, training: Training) -> None:
        """Check for changes since the last step, before a step."""
        optimizer, accountant = training.optimizer, training.accountant
        if not training.steps:
            training.prior = [tuple(entry) for entry in accountant.history] if accountant is not None else []
            if any(t is not training and t.accountant is accountant and t.steps for t in self.trainings):
                training.prior = []  # they are the steps of another training here
            if not training.is_sharded:
                training.initial = [p.detach().clone() for p in optimizer.params]
                training.noise = NoiseSums([p.numel() for p in optimizer.params])
            check_optimizer(self.findings, training)
            check_resumed(self.findings, training)
        elif training.snapshot is not None:
            changed = sum(not torch.equal(a, p) for a, p in zip(training.snapshot, optimizer.params, strict=True))
            if changed:
                sentence = (
                    f"{changed} of {len(optimizer.params)} tensors were changed between two steps by other code than "
                    "the private optimizer: whether private data reached them is unknown."
                )
                self.findings.add(Level.UNKNOWN, "written", sentence, training.about)
        replaced = training.hook is not None and optimizer.step_hook is not training.hook
        if len(training.steps) == 1 and replaced and steps_counted(accountant) == training.counted:
            sentence = "The accountant is detached: attach_step_hook replaced the hook by which it counts steps."
            self.findings.add(Level.REFUTED, "uncounted", sentence, training.about)
        training.counted = steps_counted(accountant)
        training.snapshot = None

    def _sample_part(self, training: Training) -> tuple[list[int], list[Tensor] | None]:
        """Note the records of each batch and, in checked steps, their clipped sum from their own gradients."""
        optimizer = training.optimizer
        parts = [_pieces(p) for p in optimizer.params]
        if not all(parts):  # the optimizer raises its own error
            return [], None
        sizes = [len(piece) for piece in parts[0]]
        if not training.is_checked:
            return sizes, None
        training.samples = [
            (pieces[0] if len(pieces) == 1 else torch.cat(pieces)).to(p.dtype)  # a copy would cost as much as the sum
            for pieces, p in zip(parts, optimizer.params, strict=True)
        ]
        bounds = getattr(optimizer, "max_grad_norms", None)
        training.sums_seen += sum(sizes)
        return sizes, clipped_sum(training.samples, bounds or [training.bound] * len(parts), bounds is None)

    def _ghost_part(self, training: Training) -> tuple[list[int], None]:
        """Note the size of a batch that the backward pass has clipped; check bound and norms."""
        hooks, bound = training.wrapped, training.bound
        norms = getattr(hooks, "_per_sample_gradient_norms", None)
        used = float(getattr(hooks, "max_grad_norm", bound))
        if used > bound * LONGER:
            sentence = (
                f"Ghost clipping clips records to {used:g}, but the noise is made for {bound:g}: the optimizer's "
                "max_grad_norm was changed (a clip scheduler does this) and the module's was not."
            )
            self.findings.add(Level.REFUTED, "clip_bound", sentence, training.about)
        if training.norm is not None and norms is not None and training.norm[0] < len(norms):
            row, norm = training.norm
            error = abs(float(norms[row]) - norm) / (norm + 1e-3 * bound)
            training.norm_error = max(training.norm_error, error)
            training.norms_seen += 1
            if error > NORM_ERROR:
                sentence = f"The gradient norm that ghost clipping uses is off by {100 * error:.0f} % for a record."
                self.findings.add(Level.REFUTED, "norm", sentence, training.about)
        training.norm = None
        return [0 if norms is None else len(norms)], None

    def _adds_noise(self, optimizer: Any) -> None:
        training = self._current[id(optimizer.original_optimizer)]
        if training.canaries is not None and training.entries:
            rows = [row for batch in training.drawn for row in batch.rows]
            training.canaries.plant(optimizer, training.bound, rows)

    def _reduces(self, optimizer: Any) -> None:
        """Measure before the sum over several processes, since only the first process adds noise."""
        training = self._current[id(optimizer.original_optimizer)]
        self._applies(optimizer.original_optimizer)
        training.is_reduced = True

    def _applies(self, inner: Optimizer) -> None:
        """Measure before any optimizer changes parameters."""
        training = self._current.get(id(inner))
        if training is None:
            self._other(inner)
        elif training.is_reduced:
            training.is_reduced = False
        else:
            self._measures(training)

    def _measures(self, training: Training) -> None:
        optimizer = training.optimizer
        if not training.entries:
            if any(getattr(p, "summed_grad", None) is None for p in optimizer.params):
                sentence = (
                    "A step was taken without clipping and noise: the wrapped optimizer was called directly "
                    "(original_optimizer.step)."
                )
                self.findings.add(Level.REFUTED, "bypass", sentence, training.about)
                return
            self._enters(optimizer)
        if not training.is_sharded:
            self._measures_tensors(training)
        drawn = training.drawn
        rows = [row for batch in drawn for row in batch.rows]
        known = bool(drawn) and all(batch.source != UNMATCHED for batch in drawn)
        source, rate = (drawn[-1].source, drawn[-1].rate) if known else (UNMATCHED, None)
        size = sum(len(batch.rows) for batch in drawn)
        order = sum(len(t.steps) for t in self.trainings)
        training.steps.append(Step(order, float(optimizer.noise_multiplier), training.bound, size, source, rate))
        if known and rows:
            training.uses.update(rows)
            training.batches[hash(tuple(sorted(rows)))] += 1
        if len(training.steps) == 2:
            check_buffers(self.findings, training)
        training.reference, training.drawn, training.samples, training.entries = None, [], [], 0
        training.is_checked = len(training.steps) < FIRST or self.rng.random() < 1 / self.every

    def _measures_tensors(self, training: Training) -> None:
        """Add the clipped sum of each parameter, and its noise, to the sums."""
        optimizer = training.optimizer
        totals = [p.summed_grad for p in optimizer.params]
        divisor = 1.0
        if optimizer.loss_reduction == "mean":
            divisor = float(optimizer.expected_batch_size * optimizer.accumulated_iterations)
        if training.is_checked and training.reference is not None:
            # Without noise, the divisor applies to the sum itself.
            self._compares(training, totals if training.is_first_rank else [total * divisor for total in totals])
        std = float(optimizer.noise_multiplier) * training.bound
        if training.is_first_rank:
            applied = [p.grad for p in optimizer.params]
            noise = training.noise.add(totals, applied, divisor, std, training.is_checked)
            if training.canaries is not None:
                training.canaries.observe(noise, std, training.bound)

    def _compares(self, training: Training, totals: list[Tensor]) -> None:
        """Compare Opacus' clipped sum with the recomputed one."""
        assert training.reference is not None
        records = totals if training.canaries is None else training.canaries.removed(totals)
        gap = max(differs(a, b, training.bound) for a, b in zip(records, training.reference, strict=True))
        if gap and training.entries == 1:
            self.findings.add(*explained(training.samples, records, training.bound, gap), about=training.about)
        elif gap:
            sentence = f"The sum before the noise differs by {gap:.2g} from the sum of clipped gradients."
            self.findings.add(Level.UNKNOWN, "clipping", sentence, training.about)

    def _applied(self, inner: Optimizer) -> None:
        """Keep the parameters after a step, if the next step looks for changes by other code."""
        training = self._current.get(id(inner))
        if training is not None and training.is_checked and not training.is_sharded:
            training.snapshot = [p.detach().clone() for p in training.optimizer.params]

    def _other(self, inner: Optimizer) -> None:
        """Note a step of a non-private optimizer."""
        moved = {id(p) for group in inner.param_groups for p in group["params"] if p.grad is not None}
        _, before, datasets = self._others.setdefault(id(inner), (inner, set(), []))
        before |= moved
        latest = self._delivered[-1].dataset if self._delivered else None
        if latest is not None and not any(latest is dataset for dataset in datasets):
            datasets.append(latest)
        for training in self._modules.values():
            names = self._shared(training, moved)
            if names:
                sentence = (
                    f"{type(inner).__name__} trains {len(names)} tensors of the private model without noise "
                    f"({', '.join(names[:3])})."
                )
                self.findings.add(Level.REFUTED, "optimizer", sentence, training.about)

    def _check_others(self, training: Training) -> None:
        """Check for training of this model before it was made private."""
        for inner, moved, datasets in self._others.values():
            if names := self._shared(training, moved):
                same = any(dataset is training.dataset for dataset in datasets)
                data = "on the same data" if same else "on other data, which must be public"
                sentence = (
                    f"{type(inner).__name__} trained {len(names)} tensors of this model without noise before "
                    f"make_private, {data}."
                )
                level = Level.REFUTED if same else Level.NOTE
                self.findings.add(level, "optimizer" if same else "pretrained", sentence, training.about)

    @staticmethod
    def _shared(training: Training, moved: set[int]) -> list[str]:
        named = training.module.named_parameters() if training.module is not None else ()
        return [name for name, p in named if id(p) in moved]

    def outside(self) -> list[tuple[str, int]]:
        """Return the other optimizers that trained none of the private models: class and number of tensors."""
        return [
            (type(inner).__name__, len(moved))
            for inner, moved, _ in self._others.values()
            if not any(self._shared(training, moved) for training in self.trainings)
        ]


def check_buffers(findings: Findings, training: Training) -> None:
    """Check for buffers of a training's model that depend on the data."""
    inner = training.inner
    if inner is None or not training.buffers:
        return
    after = dict(inner.named_buffers())
    saved = set(inner.state_dict())
    moved = [
        name
        for name, before in training.buffers.items()
        if name in after and not torch.equal(after[name], before.to(after[name]))
    ]
    released = [name for name in moved if name in saved and after[name].is_floating_point()]
    if released and "batch_norm" not in findings:
        sentence = (
            f"Buffers change with the data and are saved with the model without noise: {', '.join(released[:4])}."
        )
        findings.add(Level.REFUTED, "buffer", sentence, training.about)
    elif moved and not released:
        findings.add(Level.NOTE, "counter", f"Buffers change: {', '.join(moved[:4])}.", training.about)


def _pieces(p: Tensor) -> list[Tensor]:
    """Return the records' gradients of each batch not yet applied; empty if there are none."""
    samples = getattr(p, "grad_sample", None)
    return samples if isinstance(samples, list) else [] if samples is None else [samples]


def _subclasses(root: type, itself: bool = False) -> Iterator[type]:
    if itself:
        yield root
    below: type
    for below in root.__subclasses__():
        yield from _subclasses(below, itself=True)


def tell(level: Level, sentence: str) -> None:
    """Print a finding at once, among the script's own output."""
    print(f"watch: {level}: {sentence}", file=sys.stderr, flush=True)
