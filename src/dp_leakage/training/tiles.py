"""Layout of people's records in a pass: side by side, and in tiles that hold all records of a person.

All records of a batch go through one pass, as single records do. Only the length of a person's mean gradient takes
more: the inner products of the gradients of that person's records. For these, records are laid into tiles, those of a
person next to each other. People are ordered from the largest to the smallest, and each gets room for a power of two of
records. So no person lies across the border of two tiles, gaps are few, one product over all tiles of a size serves
everybody, and there is no loop over persons.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from dp_leakage.models.products import CPU_MULTIPLE
from dp_leakage.training.samplers import Persons

# Records of a tile: inner products cost as much per record as there are in a tile, so persons with even more records
# have their mean gradients formed. No tile is smaller than that at whose multiples kernels round alike.
SMALL, MOST = 16, 64


def _room(size: int) -> int:
    """Return the least power of two that is not below a number."""
    return 1 << (size - 1).bit_length()


ROOM = np.array([0, *map(_room, range(1, MOST + 1))])


class Layout(NamedTuple):
    """Positions of the r records of a pass.

    Attributes:
        sizes: int64 (G,), number of records per person.
        persons: int64 (r,), the owner of each.
        places: int64 (r,), its place in the pass of K models, 0 to K·B − 1.
        slots: int64 (r,), its place in the tiles.
        tiles: two int64 (t, T) for each size of tiles: the place in the pass of each slot's record, and whose it is. In
            a gap these are any place, and −1.
    """

    sizes: Tensor
    persons: Tensor
    places: Tensor
    slots: Tensor
    tiles: list[tuple[Tensor, Tensor]]

    def to(self, device: torch.device) -> "Layout":
        """Return the layout on another device."""
        sizes, persons, places, slots = (own.to(device) for own in self[:4])
        return Layout(sizes, persons, places, slots, [(own.to(device), of.to(device)) for own, of in self.tiles])


def tile_sizes(largest: int) -> tuple[int, int]:
    """Return the number of records in small and in large tiles if a person has at most ``largest`` records."""
    room = max(CPU_MULTIPLE, _room(min(largest, MOST)))
    return min(room, SMALL), room


def even_layout(count: int, size: int) -> Layout:
    """Return the layout of a pass with only ``count`` people of ``size`` records each, person by person."""
    places = torch.arange(count * size)
    persons = places // size
    tiles = [(places.view(count, size), persons.view(count, size))]
    return Layout(torch.full((count,), size), persons, places, places, tiles)


def passes_of(batches: Sequence[Persons], width: int) -> Iterator[list[Persons]]:
    """Yield a batch's people for each model, in passes of at most ``width`` records of a model.

    The pass of a person depends only on the batch of its own model.
    """
    if all(batch.rows.shape[0] <= width for batch in batches):
        yield list(batches)
        return
    numbers = [_pass_of(batch, width) for batch in batches]
    for number in range(1 + max(int(own.max()) for own in numbers if len(own))):
        yield [batch.where(own == number) for batch, own in zip(batches, numbers, strict=True)]


def _pass_of(batch: Persons, width: int) -> Tensor:
    """Return the index of each person's pass, by the position of the person's first record, with room for the last
    person."""
    if batch.rows.shape[0] <= width:
        return torch.zeros_like(batch.sizes)
    return (batch.sizes.cumsum(0) - batch.sizes) // (width + 1 - int(batch.sizes.max()))


def lay_out_persons(batches: Sequence[Persons], width: int, tiles: tuple[int, int]) -> Layout:
    """Lay out one pass with ``width`` positions for each model's people, who have at most `MOST` records.

    ``tiles`` are the records of small and of large ones, see `tile_sizes`. The arithmetic is NumPy's, which on so few
    numbers takes half of PyTorch's time (measured with 240 people).
    """
    together = len(batches)
    model = np.arange(together)
    sizes = torch.cat([batch.sizes for batch in batches]).numpy()
    counts = np.array([len(batch) for batch in batches])
    records = np.array([batch.rows.shape[0] for batch in batches])
    persons = np.arange(len(sizes)).repeat(sizes)
    record = np.arange(len(persons))
    places = record + (model * width - records.cumsum() + records).repeat(records)
    # Small tiles come first, and among those of a size each model has its own.
    part = model.repeat(counts) + (sizes > tiles[0]) * together
    room = ROOM[sizes]
    filled = np.bincount(part, room, 2 * together).astype(np.int64)
    of_tile = np.repeat(tiles, together)
    reserved = -(-filled // of_tile) * of_tile
    gaps = reserved - filled
    order = np.argsort(part * (2 * MOST) - room, kind="stable")
    filled_by = room[order]
    starts = np.empty_like(sizes)
    starts[order] = filled_by.cumsum() - filled_by + (gaps.cumsum() - gaps)[part[order]]
    slots = record + (starts - sizes.cumsum() + sizes).repeat(sizes)
    small = int(reserved[:together].sum())
    taken, whose = np.zeros(reserved.sum(), np.int64), np.full(reserved.sum(), -1)
    taken[slots], whose[slots] = places, persons
    found = [
        (torch.from_numpy(taken[own]).view(-1, size), torch.from_numpy(whose[own]).view(-1, size))
        for own, size in zip((slice(small), slice(small, None)), tiles, strict=True)
    ]
    own_sizes, owners, in_pass, in_tiles = map(torch.from_numpy, (sizes, persons, places, slots))
    return Layout(own_sizes, owners, in_pass, in_tiles, found)
