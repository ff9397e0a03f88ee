"""Rows of inversion and reconstruction attacks, against plain means, medians and a normal interval."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from dp_leakage.metrics import measure_reconstruction


def _frame(values: np.ndarray, **own: object) -> pd.DataFrame:
    repeats, targets = values.shape
    index = pd.MultiIndex.from_product(
        [range(repeats), range(targets), range(2)], names=["repeat", "target", "restart"]
    )
    frame = index.to_frame(index=False)
    # two restarts on either side of the target's value
    return frame.assign(mse=np.repeat(values.ravel(), 2) + np.where(frame["restart"] == 0, -0.1, 0.1), **own)


def _row(rows: list[dict], repeat: str, statistic: str, **said: str) -> dict:
    wanted = {"repeat": repeat, "statistic": statistic, **said}
    (found,) = [row for row in rows if wanted.items() <= row.items()]
    return found


def test_mean_and_median_are_over_targets():
    values = np.random.default_rng(1).exponential(size=(3, 41))
    rows = measure_reconstruction(_frame(values), "iga")
    assert {r["metric"] for r in rows} == {"mse"}
    assert np.isclose(_row(rows, "all", "mean")["value"], values.mean())
    assert np.isclose(_row(rows, "all", "median")["value"], np.median(values))
    assert np.isclose(_row(rows, "1", "median")["value"], np.median(values[1]))


def test_the_interval_of_a_mean_is_close_to_the_normal_one():
    values = np.random.default_rng(2).normal(5, 1, size=(1, 400))
    row = _row(measure_reconstruction(_frame(values), "iga"), "0", "mean")
    assert np.isclose(row["high"] - row["low"], 2 * 1.96 * values.std() / 20, rtol=0.1)


def test_an_attacks_own_columns_are_judged_apart():
    frame = pd.concat([_frame(np.full((1, 4), 1.0), layer=0), _frame(np.full((1, 4), 2.0), layer=3)])
    rows = measure_reconstruction(frame, "decoder")
    assert [_row(rows, "all", "mean", layer=layer)["value"] for layer in ("0", "3")] == [1.0, 2.0]


def test_the_same_scores_give_the_same_bytes():
    frame = _frame(np.random.default_rng(3).normal(size=(2, 9)))
    assert measure_reconstruction(frame, "dlg") == measure_reconstruction(frame, "dlg")


def test_recognized_records_are_a_share_with_the_interval_of_a_proportion_and_the_limit_beside_it():
    flags = (np.arange(40) < 10).astype(float)
    frame = pd.DataFrame({"repeat": 0, "target": range(40), "restart": 0, "mse": 0.1, "candidates": 10,
                          "recognized": flags, "recognized_proven": 0.3})  # fmt: skip
    rows = measure_reconstruction(frame, "analytic")
    (share,) = [row for row in rows if row["metric"] == "recognized" and row["repeat"] == "all"]
    low, high = binomtest(10, 40).proportion_ci(method="wilson")
    assert (share["value"], share["low"], share["high"]) == pytest.approx((0.25, low, high), abs=0.02)
    (most,) = [row for row in rows if row["metric"] == "recognized_proven"]
    assert (most["value"], most["candidates"]) == (0.3, 10)
