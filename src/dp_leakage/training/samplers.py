"""Records of each batch. Each model draws its own batches from its own generator, an epoch at a time.

A batch is a list of units, int64 tensors of row numbers. If every example is a unit, or the whole batch is one, the
list holds one tensor. If the units are people or (sub)classes, it holds one tensor for each of them (see `Persons`).

With random inclusion, batches are drawn over the whole pool, and excluded units are then removed from them. So sampling
probabilities, number of steps and the other units' batches do not depend on the inclusion of a unit. For every sampler,
the two trainings differ only by that one unit's contributions, as `add_remove` (and `zero_out`) accounting assumes.
"""

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from dp_leakage.common.errors import UserError
from dp_leakage.common.identity import derived_seed
from dp_leakage.common.user_code import FILES, call
from dp_leakage.privacy.mechanism import Sampler, holds_groups


class Persons(Collection[Tensor]):
    """People in a batch, with the rows of each one's records side by side.

    Attributes:
        rows: int64 (r,), person by person.
        sizes: int64 (G,), number of rows per person, > 0.
    """

    def __init__(self, rows: Tensor, sizes: Tensor) -> None:
        self.rows, self.sizes = rows, sizes

    @classmethod
    def of(cls, units: Collection[Tensor]) -> "Persons":
        """Construct from the rows of each person's records. People without records are left out."""
        if isinstance(units, Persons):
            return units
        rows = torch.cat(list(units)) if units else torch.empty(0, dtype=torch.int64)
        sizes = torch.tensor([unit.shape[0] for unit in units], dtype=torch.int64)
        return cls(rows, sizes[sizes > 0])

    def __len__(self) -> int:
        return self.sizes.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.rows.split(self.sizes.tolist()))

    def __contains__(self, unit: object) -> bool:
        return any(own is unit for own in self)

    def where(self, chosen: Tensor) -> "Persons":
        """Return the chosen people, bool (G,)."""
        return Persons(self.rows[chosen.repeat_interleave(self.sizes)], self.sizes[chosen])


Batch = Collection[Tensor]
EVEN = ("shuffle", "cyclic", "wor")  # samplers whose batches have one length; a plugin's may have any
HEADS = 0.5  # the share of a pool that fair coins put into training


def draw_epoch(
    sampler: Sampler | str,
    unit: str,
    rows: Tensor,
    batch_size: float,
    groups: Tensor,
    generator: Generator,
    held: Tensor | None = None,
    turns: int = 1,
    epoch: int = 0,
) -> list[Batch]:
    """Draw the ⌈m / batch_size⌉ batches of one epoch; for people see `draw_persons`.

    Args:
        sampler: see `Mechanism`.
        unit: see `Mechanism`; not ``person``.
        rows: int64 (m,), the row numbers of this model's records.
        batch_size: the size of a batch; for the Poisson kinds, rate = batch_size/m.
        groups: int64 (m,), the (sub)class of each of the model's records, from 0.
        generator: the model's stream for batches. This call advances it by an amount that does not depend on ``held``.
        held: bool (m,), which of the rows the model trains on; None: all of them. A batch may then be empty.
        turns: number of cyclic Poisson subsets, see `Mechanism.turns`; the steps go through them from epoch to
            epoch.
        epoch: number of previous epochs.
    """
    count = len(rows)
    if sampler == "class_poisson":
        rate, steps = min(1.0, batch_size / count), math.ceil(count / batch_size)
        drawn = poisson_batches(int(groups.max()) + 1, rate, steps, generator)
        return [_whole_groups(rows, groups, chosen, held) for chosen in drawn]
    if sampler == "shuffle" and unit in ("example", "batch") and held is None:
        return [[batch] for batch in rows[torch.randperm(count, generator=generator)].split(_whole(batch_size))]
    positions = _drawn(sampler, count, batch_size, generator, turns, epoch)
    if holds_groups(unit):
        positions = positions if held is None else [chosen[held[chosen]] for chosen in positions]
        return [[rows[own] for own in split_by_group(chosen, groups)] for chosen in positions]
    # All batches in one go, since an epoch of a small model has more batches than arithmetic.
    sizes, chosen = torch.tensor([len(batch) for batch in positions]), torch.cat(list(positions))
    if held is not None:
        kept = held[chosen]
        step = torch.arange(len(sizes)).repeat_interleave(sizes)
        sizes, chosen = torch.bincount(step[kept], minlength=len(sizes)), chosen[kept]
    return [[batch] for batch in rows[chosen].split(sizes.tolist())]


def _whole(batch_size: float) -> int:
    return max(1, round(batch_size))


def _drawn(
    sampler: Sampler | str, count: int, batch_size: float, generator: Generator, turns: int = 1, epoch: int = 0
) -> Sequence[Tensor]:
    """Draw the positions, below ``count``, of the units in each of an epoch's batches, int64."""
    steps = math.ceil(count / batch_size)
    rate = min(1.0, batch_size / count)
    size = _whole(batch_size)
    positions: Sequence[Tensor]
    if sampler == "shuffle":
        positions = torch.randperm(count, generator=generator).split(size)
    elif sampler == "cyclic":  # a shuffled order that is the same in every epoch
        positions = torch.randperm(count, generator=_as_it_began(generator)).split(size)
    elif sampler in FILES:
        positions = _own_batches(sampler, count, batch_size, steps, generator)
    elif sampler == "balls_in_bins":
        bins = torch.randint(steps, (count,), generator=generator)
        positions = [(bins == step).nonzero()[:, 0] for step in range(steps)]
    elif sampler == "wor":
        positions = [torch.randperm(count, generator=generator)[:size] for _ in range(steps)]
    elif turns > 1:
        first, own = epoch * steps, parts_of(count, turns, generator)
        positions = _by_turns(own, turns, min(1.0, turns * rate), range(first, first + steps), generator)
    else:
        positions = poisson_batches(count, rate, steps, generator)
    return positions


def parts_of(count: int, turns: int, generator: Generator) -> Tensor:
    """Assign each position to one of ``turns`` cyclic Poisson subsets for all epochs, int64 (count,).

    Drawn independently, so that one more unit changes no other's part, and from a stream of its own, so that no batch
    depends on it.
    """
    stream = Generator().manual_seed(derived_seed(generator.initial_seed(), "parts"))
    return torch.randint(turns, (count,), generator=stream)


def _by_turns(parts: Tensor, turns: int, rate: float, steps: range, generator: Generator) -> list[Tensor]:
    """Draw for each step a Poisson batch from the subset of this step (Choquette-Choo et al. 2023, algorithm 2)."""
    members = [(parts == own).nonzero()[:, 0] for own in range(turns)]
    found = []
    for step in steps:
        own = members[step % turns]
        found.append(own[poisson_batches(len(own), rate, 1, generator)[0]] if len(own) else own)
    return found


def _own_batches(plugin: str, count: int, batch_size: float, steps: int, generator: Generator) -> list[Tensor]:
    """Return the batches of a plugin's ``sample``. Raises UserError if positions are not valid, or their
    number is wrong.
    """
    drawn = call(plugin, "sample", count, batch_size, steps, generator)
    words = f"plugin {plugin}: sample returns {type(drawn).__name__}; expected a list of {steps} tensors, int64"
    if not isinstance(drawn, list | tuple) or len(drawn) != steps:
        raise UserError(words)
    for batch in drawn:
        if not isinstance(batch, Tensor) or batch.dtype != torch.int64 or batch.ndim != 1:
            raise UserError(words)
        if len(batch) and not 0 <= int(batch.min()) <= int(batch.max()) < count:
            raise UserError(f"plugin {plugin}: sample returns positions beyond 0 to {count - 1}")
        if len(batch.unique()) < len(batch):
            raise UserError(f"plugin {plugin}: sample returns a position twice in one batch")
    return list(drawn)


def _as_it_began(generator: Generator) -> Generator:
    """Return a new generator at the start of the given generator's stream."""
    return Generator().manual_seed(generator.initial_seed())


def poisson_batches(n: int, rate: float, steps: int, generator: Generator) -> list[Tensor]:
    """Draw ``steps`` independent batches that include each of n records with probability ``rate``, in increasing order.

    All steps·n Bernoulli trials form one sequence, of which only the successes are drawn, by the geometric gaps between
    them.
    """
    if rate >= 1:
        return [torch.arange(n)] * steps
    trials, last, hits = steps * n, -1, []
    while last < trials:
        expected = (trials - last) * rate
        count = int(expected + 4 * math.sqrt(expected)) + 16
        uniform = torch.rand(count, generator=generator, dtype=torch.float64)
        gaps = torch.floor(torch.log1p(-uniform) / math.log1p(-rate)) + 1
        hits.append(last + gaps.clamp_(max=trials + 1).cumsum(0).long())
        last = int(hits[-1][-1])
    hit = torch.cat(hits)
    hit = hit[hit < trials]
    sizes = torch.bincount(hit // n, minlength=steps)
    return list((hit % n).split(sizes.tolist()))


class Roster(NamedTuple):
    """People from whom a model's batches are drawn, 0, 1, …, and the rows that it trains on.

    Attributes:
        rows: int64 (r,), person by person.
        sizes, starts: int64, each person's number of rows (0 is possible), and the index of the first one.
        most: maximum rows of one person in a batch. None: no limit.
        held: bool (m,), which of all rows are included, if ``most`` makes a difference.
        everybody: int64 (m,), the owner of every row, included or not.
        all_rows: int64 (m,), all rows, so that drawing among them reveals nothing about ``held``.
    """

    rows: Tensor
    sizes: Tensor
    starts: Tensor
    most: int | None
    held: Tensor
    everybody: Tensor
    all_rows: Tensor


def roster(rows: Tensor, groups: Tensor, held: Tensor | None, most: int | None) -> Roster:
    """Return the data that stay the same in all epochs.

    Args:
        rows: int64 (m,), the row numbers of this model's records.
        groups: int64 (m,), the owner of each.
        held: bool (m,), which of them the model trains on; None: all.
        most: maximum records of a person in a batch, drawn again each time; None: all.
    """
    found, own = groups.unique(return_inverse=True)
    held = torch.ones(len(rows), dtype=torch.bool) if held is None else held
    crowded = most is not None and int(torch.bincount(own).max()) > most
    order = own.argsort(stable=True)
    kept = order[held[order]]
    sizes = torch.bincount(own[kept], minlength=len(found))
    return Roster(rows[kept], sizes, sizes.cumsum(0) - sizes, most if crowded else None, held, own, rows)


def draw_persons(
    sampler: Sampler | str, rosters: Sequence[Roster], batch_size: float, generators: Sequence[Generator]
) -> list[list[Batch]]:
    """Draw the batches of one epoch for each model: people, with their included records.

    The state of a model's generator afterwards does not depend on ``held``.
    """
    drawn = [
        _drawn(sampler, len(own.sizes), batch_size, generator)
        for own, generator in zip(rosters, generators, strict=True)
    ]
    if any(own.most is not None for own in rosters):
        return [
            records_of(own, positions, partial(torch.randperm, generator=generator))
            for own, positions, generator in zip(rosters, drawn, generators, strict=True)
        ]
    # All models in one go, since an epoch of a small model has more indices than arithmetic.
    sizes, steps = torch.cat([own.sizes for own in rosters]), [len(positions) for positions in drawn]
    beside = rosters[0]._replace(
        rows=torch.cat([own.rows for own in rosters]), sizes=sizes, starts=sizes.cumsum(0) - sizes
    )
    persons = torch.tensor([len(own.sizes) for own in rosters])
    before = persons.cumsum(0) - persons
    positions = [chosen for of_model in drawn for chosen in of_model]
    batches = iter(_whole_persons(beside, positions, before.repeat_interleave(torch.tensor(steps))))
    return [list(islice(batches, count)) for count in steps]


def records_of(drawn: Roster, positions: Sequence[Tensor], permuted: Callable[[int], Tensor]) -> list[Batch]:
    """Return the included records of each batch's people. If ``most`` limits their number, they are drawn again for
    each batch.

    Args:
        drawn: the persons.
        positions: the people in each batch, int64.
        permuted: draws a random order of a given number of indices, int64.
    """
    if drawn.most is not None:
        taken = (_taken(_shuffled(drawn, permuted), chosen) for chosen in positions)
        return [Persons(rows, sizes[sizes > 0]) for rows, sizes in taken]
    return _whole_persons(drawn, positions, torch.zeros(len(positions), dtype=torch.int64))


def _whole_persons(drawn: Roster, positions: Sequence[Tensor], before: Tensor) -> list[Batch]:
    """Return all included records of each batch's people; positions count from ``before``, int64, one for
    each batch.
    """
    counts = torch.tensor([chosen.shape[0] for chosen in positions])
    step = torch.arange(len(counts)).repeat_interleave(counts)
    rows, sizes = _taken(drawn, torch.cat(list(positions)) + before[step])
    of_step = torch.zeros_like(counts).index_add_(0, step, sizes)
    there = sizes > 0
    present = torch.bincount(step[there], minlength=len(counts))
    pairs = zip(rows.split(of_step.tolist()), sizes[there].split(present.tolist()), strict=True)
    return [Persons(*pair) for pair in pairs]


def _shuffled(drawn: Roster, permuted: Callable[[int], Tensor]) -> Roster:
    """Return the roster with each person's rows in random order, cut to the first ``most`` included ones."""
    mixed = permuted(len(drawn.all_rows))
    order = mixed[drawn.everybody[mixed].argsort(stable=True)]
    return drawn._replace(rows=drawn.all_rows[order[drawn.held[order]]], sizes=drawn.sizes.clamp(max=drawn.most))


def _taken(drawn: Roster, chosen: Tensor) -> tuple[Tensor, Tensor]:
    """Return the rows of the chosen people, person by person, and the number of rows of each."""
    sizes = drawn.sizes[chosen]
    first = drawn.starts[chosen] - (sizes.cumsum(0) - sizes)
    places = torch.arange(int(sizes.sum())) + first.repeat_interleave(sizes)
    return drawn.rows[places], sizes


def _whole_groups(rows: Tensor, groups: Tensor, chosen: Tensor, held: Tensor | None) -> Batch:
    """Return the chosen groups, each with all of its included records."""
    inside = torch.isin(groups, chosen)
    positions = (inside if held is None else inside & held).nonzero()[:, 0]
    return [rows[own] for own in split_by_group(positions, groups)]


def split_by_group(positions: Tensor, groups: Tensor) -> list[Tensor]:
    """Return the positions, one tensor for each group that occurs among them."""
    own = groups[positions]
    sizes = torch.bincount(own)
    return list(positions[torch.argsort(own, stable=True)].split(sizes[sizes > 0].tolist()))
