"""Persons side by side: how the persons of one step are cut into passes, for all models of a lane.

A person's records lie next to each other in a pass, padded at weight 0 to the length of a fold. So one product over
all folds gives the inner products of everybody's gradients, and there is no loop over persons.
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

SIDE_BY_SIDE = 64  # records of a person up to which inner products cost little beside the passes
SPREAD = 2.5  # standard deviations of a Poisson number of persons that one pass leaves room for


class Fold(NamedTuple):
    """Persons whose numbers of records are alike.

    Attributes:
        records: the most records of such a person; a shorter one is padded.
        persons: the most of one model in one pass.
        always: whether every pass is padded to that many, so that a model's bytes do not depend on the others'.
    """

    records: int
    persons: int
    always: bool


class Persons(NamedTuple):
    """The persons in one batch of each of K models, model by model.

    Attributes:
        rows: int64, the rows of x, person by person.
        sizes: int64 (G,), how many rows each person has, > 0.
        models: int64 (G,), the place of each person's model.
        together: K.
    """

    rows: Tensor
    sizes: Tensor
    models: Tensor
    together: int


class Folded(NamedTuple):
    """One pass of K models.

    Attributes:
        rows: int64 (K, persons·records), the rows of x.
        weights: (K·persons, records), each record's share of its person's mean; 0 for padding.
    """

    rows: Tensor
    weights: Tensor


def persons_of(batches: Sequence[Sequence[Tensor]]) -> Persons:
    """From a batch for each model: for each person the int64 rows of its records. Persons without any are left out."""
    units = [unit for batch in batches for unit in batch]
    sizes = torch.tensor([unit.shape[0] for unit in units], dtype=torch.int64)  # `len` takes seven times as long
    models = torch.arange(len(batches)).repeat_interleave(torch.tensor([len(batch) for batch in batches]))
    there = sizes > 0
    rows = torch.cat(units) if units else torch.empty(0, dtype=torch.int64)
    return Persons(rows, sizes[there], models[there], len(batches))


def make_folds(sizes: Tensor, expected: float, width: int, multiple: int) -> tuple[Fold, ...]:
    """The folds of a training, up to `SIDE_BY_SIDE` records: one for each power of two that the sizes come near to.

    Args:
        sizes: int64 (n,), how many records of each person are in a batch.
        expected: the number of persons in a batch.
        width: the most records of one model in one pass.
        multiple: a pass holds a multiple of this many records of one model. With 1, it holds as many persons as fit.
    """
    most = min(width, SIDE_BY_SIDE)
    folds, above = [], 0
    while above < most:
        own = sizes[(sizes > above) & (sizes <= max(2 * above, 1))]
        own = own[own <= most]
        above = max(2 * above, 1)
        if len(own):
            records = int(own.max())
            fits = max(1, width // records)
            mean = expected * len(own) / len(sizes)
            least = math.ceil(mean + SPREAD * math.sqrt(mean))
            step = multiple // math.gcd(multiple, records)
            persons = fits if multiple == 1 else -(-min(least, fits) // step) * step
            folds.append(Fold(records, persons, multiple > 1))
    return tuple(folds)


def folded(persons: Persons, folds: Sequence[Fold], dtype: torch.dtype) -> Iterator[Folded]:
    """The passes of one step: everybody with at most as many records as the last fold has room for.

    Args:
        persons: of a lane.
        folds: from `make_folds`.
        dtype: of the weights.
    """
    rows, sizes, models, together = persons
    starts, above = sizes.cumsum(0) - sizes, 0
    for fold in folds:
        own = ((sizes > above) & (sizes <= fold.records)).nonzero()[:, 0]
        above = fold.records
        if not own.shape[0]:
            continue
        counts = torch.bincount(models[own], minlength=together)[:, None]
        before, most = counts.cumsum(0) - counts, int(counts.max())
        width = fold.persons if fold.always else min(fold.persons, most)
        within = torch.arange(fold.records)
        for first in range(0, most, width):
            places = torch.arange(first, first + width)
            # Where a model has no more persons, its last one stands again.
            chosen = own[(before + places.minimum(counts - 1)).clamp(min=0)].flatten()
            length, there = sizes[chosen, None], (places < counts).view(-1, 1)
            taken = rows[starts[chosen, None] + within.minimum(length - 1)]
            yield Folded(taken.view(together, -1), ((within < length) & there).to(dtype) / length)
