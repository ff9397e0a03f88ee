"""Bounded sum of a step for people in a released model: each person's term is formed before it is added.

A study never forms a person's mean gradient: its length comes from inner products, and it enters the sum record by
record. If the gradients of a person's records cancel, both round by more than the mean's own length says. Here the
mean gradient of each person is one float64 vector of P numbers, which is bounded, divided, and rounded to the grid of
the noise. Then removing a person moves the sum by at most C(1 + `released.SLACK`)/divisor, whatever the records are:

1. A term is a grid vector of at most that length. The length of a formed vector is off by at most P·2⁻⁵³, relative
   (Higham 2002, equation 3.5: γ_P for the squares, half of it for the root), which has nothing to do with how the
   vector came about. Rounding to the grid adds at most √P/2 steps, a quarter of the slack.
2. Terms are whole multiples of the step that stay below 2⁵³ steps in sum (`check_size`). So they are added exactly,
   in any order, and the sums with and without a person differ by that person's term alone.
3. A term depends on the model and on the person's own records, and on nobody else's. In a pass, a person takes the
   place that a model has in an ensemble: a product of its own, in a part of memory of its own, padded to a length that
   only the person's number of records decides. For layers whose bytes would depend on the other models in a pass
       (`model_batches.model_batch_size`), people pass one at a time.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from dp_leakage.common.errors import UserError
from dp_leakage.models.layers import activation_floats
from dp_leakage.models.norms import LEAST_NORM
from dp_leakage.models.products import CPU_MULTIPLE
from dp_leakage.privacy.clipping import bound_scales
from dp_leakage.training import flat
from dp_leakage.training.backward import backpropagate
from dp_leakage.training.gradients import Program
from dp_leakage.training.model_batches import pass_width
from dp_leakage.training.samplers import Batch, Persons

EXACT = 2.0**53  # whole numbers below are sums of float64 without rounding
CACHE_BYTES = 1 << 24  # of the formed terms of a pass


def check_size(program: Program, grid: float, persons: int) -> None:
    """Raise UserError if there are too many people for an exact sum of their terms.

    Args:
        program: of the training.
        grid: its step.
        persons: the most in one batch.
    """
    mechanism = program.mechanism
    assert mechanism is not None  # nothing else is released
    longest = 2 * mechanism.clip_norm / program.divisor / grid
    if persons * longest >= EXACT:
        most = int(EXACT / longest) - 1
        raise UserError(f"a release of a model of this size can have up to {most:,} persons; got {persons:,}")


def fill_formed(program: Program, grid: float, largest: int, batches: list[Batch], step: int = 0) -> None:
    """Fill the gradient as `gradients.fill_gradient` for one float64 model with people as units: the sum of their terms
    on the grid.

    Args:
        program: state shared by all steps.
        grid: its step, a power of two.
        largest: the most records of a person.
        batches: one, of the rows of each person.
        step: its number, counted over the whole training.
    """
    program.noise.add(step)
    (batch,) = map(Persons.of, batches)
    above = 0
    for length in _lengths(largest):
        alike = ((batch.sizes > above) & (batch.sizes <= length)).nonzero()[:, 0]
        above = length
        for own in alike.split(_at_once(program, length)) if len(alike) else ():
            means = _means(program, *_padded(batch, own, length, program.x.dtype))
            program.gradient[0].add_(terms(program, grid, means).sum(0), alpha=grid)


def terms(program: Program, grid: float, means: Tensor) -> Tensor:
    """Return the bounded vectors as whole numbers of grid steps, float64 (G, P); ``means`` (G, P) is overwritten.

    A vector without a finite length counts as zero, because an error would reveal the person.
    """
    mechanism = program.mechanism
    assert mechanism is not None  # nothing else is released
    norms = torch.linalg.vector_norm(means, dim=1)
    kept = norms.isfinite()
    if not bool(kept.all()):
        means = means.where(kept[:, None], 0.0)
    norms = norms.where(kept, 0.0).clamp_(min=LEAST_NORM)
    scales = bound_scales(norms, mechanism.clip_norm, mechanism.bound, program.divisor)
    return means.mul_(scales[:, None]).div_(grid).round_()


def _means(program: Program, rows: Tensor, weights: Tensor) -> Tensor:
    """Return the mean gradient of each person, (G, P), from the rows (G, n) of their records and their
    weights (G, n).
    """
    (model_batch,) = program.model_batches
    count = len(rows)
    found = program.x.new_zeros(count, flat.size(program.layers))
    into = flat.views(program.layers, found)
    parameters = {name: view.expand(count, *view.shape[1:]) for name, view in model_batch.parameters.items()}
    width = _width(program)
    for own, shares in zip(rows.split(width, 1), weights.split(width, 1), strict=True):
        records = program.x[own], program.y[own]
        backpropagate(program.layers, parameters, *records, model_batch.dropout * count).add_weighted_sum(shares, into)
    return found


def _padded(batch: Persons, own: Tensor, length: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return the rows of these people's records, (G, length), and their weights in the means; 0 for padding."""
    sizes = batch.sizes[own, None]
    within = torch.arange(length)
    starts = (batch.sizes.cumsum(0) - batch.sizes)[own, None]
    return batch.rows[starts + within.minimum(sizes - 1)], (within < sizes).to(dtype) / sizes


def _lengths(largest: int) -> Iterator[int]:
    """Yield 8, 16, 32, …, the padded lengths; the choice for a person depends only on the person's own number of
    records.
    """
    length = CPU_MULTIPLE
    yield length
    while length < largest:
        length *= 2
        yield length


def _at_once(program: Program, length: int) -> int:
    """Return the number of people of this length in one pass; see 3 above."""
    if any(layer.alone for layer in program.layers):
        return 1
    of_record = activation_floats(program.layers, program.x.shape[1:])
    floats = flat.size(program.layers) + min(length, _width(program)) * of_record
    return max(1, int(CACHE_BYTES / (floats * program.x.element_size())))


def _width(program: Program) -> int:
    """Return the most records of a person in one pass, a multiple of `CPU_MULTIPLE`; longer ones are added in parts."""
    return max(1, pass_width(program.layers, program.x.shape[1:], program.x.device) // CPU_MULTIPLE) * CPU_MULTIPLE
