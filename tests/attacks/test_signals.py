"""What attacks read off models."""

import numpy as np
import pytest
import torch

from dp_leakage.attacks import queries
from dp_leakage.attacks.queries import asked_records, margins
from dp_leakage.attacks.signals import losses, positions, score_columns
from dp_leakage.data.roles import asked_roles


def test_losses_equal_torchs_cross_entropy_record_by_record(overfitted):
    data, target, _ = overfitted
    record, _ = asked_records(data, asked_roles(data.roles))
    loss = losses(margins(target, data.x[record], data.y[record]))
    for k in range(target.size):
        module = target.module(k)
        for i in (0, 17, 399):
            z = module(torch.from_numpy(data.x[record[i]])[None])
            oracle = torch.nn.functional.cross_entropy(z, torch.tensor([int(data.y[record[i]])])).item()
            assert loss[k, i] == pytest.approx(oracle, rel=1e-4, abs=1e-6)


def test_margins_keep_their_digits_where_the_probability_rounds_to_one(known):
    z = np.array([[200.0, 0.0, -1.0], [201.0, 0.0, -1.0]])
    margin = margins(known(lambda k, x: z, 1), np.zeros((2, 1), np.float32), np.array([0, 0]))
    expected = np.array([[200.0, 201.0]]) - np.log1p(np.exp(-1))
    assert margin == pytest.approx(expected, rel=1e-6)
    assert losses(margin)[0, 0] > losses(margin)[0, 1] > 0


def test_parts_of_the_records_make_no_difference(overfitted, monkeypatch):
    data, target, _ = overfitted
    whole = margins(target, data.x, data.y)
    monkeypatch.setattr(queries, "LOGITS_AT_ONCE", 100)
    np.testing.assert_allclose(margins(target, data.x, data.y), whole, atol=1e-4)


def test_parts_of_records_and_of_models_are_those_of_the_whole(trained, signals):
    said = signals(trained.target, trained.data)
    rows = np.array([5, 3, 390])
    part = said.records(rows).models(np.array([1]))
    assert part.size == 1
    for name, values in part.arrays().items():
        whole = getattr(said, name)
        expected = {"margin": lambda w: w[:, 1:, rows], "record": lambda w: w[rows], "y": lambda w: w[rows]}
        expected |= {"role": lambda w: w[rows], "x": lambda w: w[rows], "losses": lambda w: w[:, 1:, rows]}
        np.testing.assert_array_equal(values, expected.get(name, lambda w: w[1:, rows])(whole))


def test_positions_find_every_record_or_none():
    record = np.array([7, 2, 9])
    np.testing.assert_array_equal(positions(np.array([9, 7]), record), [2, 0])
    for missing in (1, 8, 10):
        with pytest.raises(ValueError, match="missing"):
            positions(np.array([7, missing]), record)


def test_score_columns_are_the_contracts(known, numbered, signals, as_targets):
    data = numbered(target_members=2, target_nonmembers=3)
    asked = as_targets(signals(known(lambda k, x: np.zeros((len(x), 3)), 2), data)).asked
    columns = score_columns(asked, {"score": np.arange(10.0).reshape(2, 5), "flagged": np.ones((2, 5), bool)})
    assert {name: str(values.dtype) for name, values in columns.items()} == {
        "repeat": "int64",
        "record": "int64",
        "member": "bool",
        "score": "float64",
        "flagged": "bool",
    }
    assert list(columns["member"]) == [True, True, False, False, False] * 2
    assert set(columns["record"][columns["member"]]) == set(data.roles["target_members"])
