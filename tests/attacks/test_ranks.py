"""The place of the true class among a model's answers."""

import numpy as np
from sklearn.metrics import top_k_accuracy_score

from dp_leakage.attacks import ranks
from dp_leakage.attacks.queries import asked_records
from dp_leakage.data.roles import asked_roles
from dp_leakage.metrics import measure_ranks


def test_top_ten_accuracy_is_scikit_learns(known, numbered, frame_of):
    data = numbered(n_classes=30, target_members=20, target_nonmembers=200)
    outputs = np.random.default_rng(0).normal(size=(2, len(data.x), 30)).astype(np.float32)
    outputs[:, np.arange(len(data.x)), data.y] += 0.5
    target = known(lambda k, x: outputs[k, x[:, 0].astype(int)], 2)
    rows = measure_ranks(frame_of(ranks, target, data, None, {}), "ranks")
    record, role = asked_records(data, asked_roles(data.roles))
    outside = record[role == "target_nonmembers"]
    for row, scores in zip(rows, outputs, strict=False):
        expected = top_k_accuracy_score(data.y[outside], scores[outside], k=10, labels=range(30))
        assert np.isclose(row["value"], expected)
        assert row["low"] < row["value"] < row["high"]
    assert [row["repeat"] for row in rows] == ["0", "1", "all"]


def test_a_tie_counts_against_the_model(known, numbered, frame_of):
    data = numbered(target_members=2, target_nonmembers=2)
    frame = frame_of(ranks, known(lambda k, x: np.zeros((len(x), 3)), 1), data, None, {})
    assert (frame["rank"] == 3).all()
