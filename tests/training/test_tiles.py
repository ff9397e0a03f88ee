"""How persons share passes, and where the records of each meet."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from dp_leakage.training.samplers import Persons
from dp_leakage.training.tiles import MOST, even_layout, lay_out_persons, passes_of, tile_sizes

BATCHES = st.lists(st.lists(st.one_of(st.integers(1, 9), st.integers(1, MOST)), max_size=9), min_size=1, max_size=4)


def batches_of(sizes):
    """Batches in which every record has a number of its own."""
    numbers = iter(range(10_000))
    return [
        Persons.of([torch.tensor([next(numbers) for _ in range(size)], dtype=torch.int64) for size in own])
        for own in sizes
    ]


@given(sizes=BATCHES, more=st.integers(0, 20))
def test_everybody_lies_in_one_tile_and_each_record_in_one_slot(sizes, more):
    batches = batches_of(sizes)
    width = max(len(batch.rows) for batch in batches) + more
    layout = lay_out_persons(batches, width, tile_sizes(max(map(max, filter(None, sizes)), default=1)))
    places, persons = (torch.cat([pair[part].flatten() for pair in layout.tiles]) for part in (0, 1))
    small, large = (torch.arange(len(own)).repeat_interleave(own.shape[1]) for own, _ in layout.tiles)
    tile = torch.cat([small, -1 - large])
    assert len(layout.slots.unique()) == len(layout.slots)
    assert places[layout.slots].equal(layout.places)
    assert persons[layout.slots].equal(layout.persons)
    assert int((persons >= 0).sum()) == len(layout.persons)
    assert layout.sizes.tolist() == [size for own in sizes for size in own]
    rows = torch.cat([torch.nn.functional.pad(batch.rows, (0, width - len(batch.rows)), value=-1) for batch in batches])
    assert rows[layout.places].tolist() == [row for batch in batches for row in batch.rows.tolist()]
    for person in range(len(layout.sizes)):
        assert len(tile[layout.slots[layout.persons == person]].unique()) == 1


@given(sizes=BATCHES)
def test_a_models_tiles_do_not_depend_on_the_others(sizes):
    batches = batches_of(sizes)
    width = max(len(batch.rows) for batch in batches) + 1
    tiles = tile_sizes(max(map(max, filter(None, sizes)), default=1))
    together = lay_out_persons(batches, width, tiles)
    for model, batch in enumerate(batches):
        alone = lay_out_persons([batch], width, tiles)
        for (_, all_persons), (_, persons), (all_places, _), (places, _) in zip(
            together.tiles, alone.tiles, together.tiles, alone.tiles, strict=True
        ):
            own = (all_places // width == model) & (all_persons >= 0)
            mine = own.any(1)
            first = sum(map(len, batches[:model]))
            assert all_persons[mine].where(all_persons[mine] < 0, all_persons[mine] - first).equal(persons)
            there = persons >= 0
            assert (all_places[mine] - model * width)[there].equal(places[there])


@given(sizes=BATCHES, room=st.integers(0, 200))
def test_each_person_is_whole_in_one_pass_that_only_the_own_batch_decides(sizes, room):
    batches = batches_of(sizes)
    width = MOST + room
    found = list(passes_of(batches, width))
    for model, batch in enumerate(batches):
        passes = [own[model] for own in found]
        assert all(len(own.rows) <= width for own in passes)
        assert [unit.tolist() for own in passes for unit in own] == [unit.tolist() for unit in batch]
        alone = [own[0] for own in passes_of([batch], width)]
        assert [own.rows.tolist() for own in alone if len(own)] == [own.rows.tolist() for own in passes if len(own)]


def test_persons_of_one_size_side_by_side_fill_their_tiles():
    layout = even_layout(3, 2)
    assert layout.sizes.tolist() == [2, 2, 2]
    assert layout.places.tolist() == layout.slots.tolist() == list(range(6))
    assert [own.tolist() for own in layout.tiles[0]] == [[[0, 1], [2, 3], [4, 5]], [[0, 0], [1, 1], [2, 2]]]
