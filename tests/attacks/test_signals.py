"""What attacks read off models."""

import numpy as np
import pytest
import torch

from dp_leakage.attacks import signals


def test_losses_equal_torchs_cross_entropy_record_by_record(overfitted):
    data, target, _ = overfitted
    record, _ = signals.target_records(data)
    loss = signals.losses(signals.margins(target, data.x[record], data.y[record]))
    for k in range(target.size):
        module = target.module(k)
        for i in (0, 17, 399):
            z = module(torch.from_numpy(data.x[record[i]])[None])
            oracle = torch.nn.functional.cross_entropy(z, torch.tensor([int(data.y[record[i]])])).item()
            assert loss[k, i] == pytest.approx(oracle, rel=1e-4, abs=1e-6)


def test_margins_keep_their_digits_where_the_probability_rounds_to_one(known):
    z = np.array([[200.0, 0.0, -1.0], [201.0, 0.0, -1.0]])
    margin = signals.margins(known(lambda k, x: z, 1), np.zeros((2, 1), np.float32), np.array([0, 0]))
    expected = np.array([[200.0, 201.0]]) - np.log1p(np.exp(-1))
    assert margin == pytest.approx(expected, rel=1e-6)
    assert signals.losses(margin)[0, 0] > signals.losses(margin)[0, 1] > 0


def test_parts_of_the_records_make_no_difference(overfitted, monkeypatch):
    data, target, _ = overfitted
    whole = signals.margins(target, data.x, data.y)
    monkeypatch.setattr(signals, "LOGITS_AT_ONCE", 100)
    np.testing.assert_allclose(signals.margins(target, data.x, data.y), whole, atol=1e-4)


def test_membership_frame_has_the_contracts_columns(numbered):
    data = numbered(target_members=2, target_nonmembers=3)
    frame = signals.membership_frame(data, np.arange(10.0).reshape(2, 5), np.ones((2, 5)))
    assert dict(frame.dtypes.astype(str)) == {
        "repeat": "int64",
        "record": "int64",
        "member": "bool",
        "score": "float64",
        "flagged": "bool",
    }
    assert list(frame["member"]) == [True, True, False, False, False] * 2
    assert set(frame["record"][frame["member"]]) == set(data.roles["target_members"])
