"""How persons share passes."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from dp_leakage.training.folds import SIDE_BY_SIDE, Fold, folded, make_folds, persons_of


@given(
    sizes=st.lists(st.integers(1, 90), min_size=1, max_size=40),
    expected=st.integers(1, 30),
    width=st.integers(1, 400),
    multiple=st.sampled_from([1, 8]),
)
def test_every_size_that_goes_side_by_side_has_one_fold(sizes, expected, width, multiple):
    folds = make_folds(torch.tensor(sizes), expected, width, multiple)
    most = min(width, SIDE_BY_SIDE)
    assert [fold.records for fold in folds] == sorted({fold.records for fold in folds})
    assert {fold.records for fold in folds} <= set(sizes)
    assert max((size for size in sizes if size <= most), default=None) == (folds[-1].records if folds else None)
    assert all(fold.records * fold.persons % multiple == 0 for fold in folds)
    for size in {size for size in sizes if size <= most}:
        assert size > next(fold.records for fold in folds if size <= fold.records) / 2


@given(
    batches=st.lists(st.lists(st.integers(0, 12), max_size=9), min_size=1, max_size=4),
    persons=st.integers(1, 5),
    edges=st.sets(st.integers(1, 12), max_size=4),
    always=st.booleans(),
)
def test_everybody_up_to_the_last_fold_is_in_exactly_one_pass_with_equal_weights(batches, persons, edges, always):
    numbers = iter(range(1000))
    units = [[torch.tensor([next(numbers) for _ in range(size)], dtype=torch.int64) for size in own] for own in batches]
    folds = [Fold(edge, persons, always) for edge in sorted(edges)]
    seen = [{} for _ in batches]
    for rows, weights in folded(persons_of(units), folds, torch.float64):
        assert rows.shape[0] == len(batches)
        assert rows.numel() == weights.numel()
        of_model = weights.view(len(batches), -1, weights.shape[1])
        for model, (own_rows, own_weights) in enumerate(zip(rows.view(of_model.shape), of_model, strict=True)):
            for person, weight in zip(own_rows, own_weights, strict=True):
                if weight.sum() == 0:
                    continue
                there = weight > 0
                key = tuple(person[there].tolist())
                assert key not in seen[model]
                seen[model][key] = weight[there].tolist()
    most = max(edges, default=0)
    for model, own in enumerate(units):
        expected = {tuple(unit.tolist()): [1 / len(unit)] * len(unit) for unit in own if 0 < len(unit) <= most}
        assert seen[model] == expected
