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


# ------------------------------------------------------------------ images that were rebuilt from one gradient
BATCH = 8


def _batches(recognized: np.ndarray) -> pd.DataFrame:
    """Images of batches that come out or do not, all together, float (R, batches)."""
    repeats, batches = recognized.shape
    frame = pd.MultiIndex.from_product([range(repeats), range(batches * BATCH)], names=["repeat", "target"]).to_frame(
        index=False
    )
    came_out = np.repeat(recognized, BATCH, axis=1).ravel()
    return frame.assign(
        restart=0, gradient=frame["target"] // BATCH, ssim=came_out, candidates=10, recognized=came_out,
        recognized_proven=1.0,
    )  # fmt: skip


def _all(rows: list[dict], metric: str, **said: str) -> dict:
    (found,) = [row for row in rows if {"metric": metric, "repeat": "all", **said}.items() <= row.items()]
    return found


def test_images_of_one_gradient_count_once():
    """Eight copies of each image say what the images say alone, whose interval is Wilson's."""
    came_out = (np.arange(40) < 10).astype(float)[None]
    row = _all(measure_reconstruction(_batches(came_out), "analytic"), "recognized")
    low, high = binomtest(10, 40).proportion_ci(method="wilson")
    assert (row["value"], row["low"], row["high"]) == pytest.approx((0.25, low, high), abs=0.02)


def test_a_median_over_images_of_few_gradients_has_the_interval_of_so_few():
    values = np.random.default_rng(5).uniform(0.2, 0.8, size=(1, 9))
    together, alone = _batches(values), _frame(values)
    found = _all(measure_reconstruction(together, "dlg"), "ssim", statistic="median")
    of_nine = _all(measure_reconstruction(alone, "dlg"), "mse", statistic="median")
    assert (found["value"], found["low"], found["high"]) == pytest.approx(
        (of_nine["value"], of_nine["low"], of_nine["high"])
    )


def test_images_of_a_single_gradient_have_no_interval():
    rows = measure_reconstruction(_batches(np.ones((1, 1))), "dlg")
    assert np.isnan([row[end] for row in rows for end in ("low", "high")]).all()


@pytest.mark.parametrize(("batches", "truth"), [(10, 0.7), (10, 0.95), (3, 0.9)])
def test_intervals_hold_the_truth_where_images_of_a_gradient_come_out_together(batches, truth):
    """Four repeats, 200 studies each. Of intervals that hold it in .95 of studies, fewer than .91 of 200 would do so
    in half a percent of all tests.
    """
    rng, held = np.random.default_rng(6), []
    for _ in range(200):
        easy, anew = rng.uniform(size=batches) < truth, rng.uniform(size=(4, batches)) < truth
        came_out = np.where(rng.uniform(size=(4, batches)) < 0.8, easy, anew).astype(float)
        rows = measure_reconstruction(_batches(came_out), "dlg")
        found = _all(rows, "recognized"), _all(rows, "ssim", statistic="mean")
        held.append([row["low"] <= truth <= row["high"] for row in found])
    assert (np.mean(held, axis=0) >= 0.91).all(), np.mean(held, axis=0)


def test_a_target_that_no_repeat_could_judge_is_left_out():
    frame = _batches(np.random.default_rng(7).uniform(size=(2, 6)))
    known = _all(measure_reconstruction(frame[frame["target"] > 7], "dlg"), "ssim", statistic="mean")
    frame.loc[frame["target"] <= 7, "ssim"] = np.nan
    assert _all(measure_reconstruction(frame, "dlg"), "ssim", statistic="mean") == known


def test_a_measure_that_is_unknown_for_every_target_is_unknown():
    rows = measure_reconstruction(_batches(np.full((2, 3), np.nan)), "dlg")
    assert np.isnan([row[end] for row in rows if row["metric"] == "ssim" for end in ("value", "low", "high")]).all()
