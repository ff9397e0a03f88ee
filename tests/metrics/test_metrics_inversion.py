"""Rows of inversion attacks, against plain means and Student's t."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from dp_leakage.metrics import measure_inversion
from dp_leakage.metrics.rows import NUMBERS

RNG = np.random.default_rng(0)


def frame_of(repeats, classes=4, **own):
    index = pd.MultiIndex.from_product([range(repeats), range(classes)], names=["repeat", "target"])
    n = repeats * classes
    values = {"distance": RNG.random(n) + 5, "ssim": RNG.random(n), "confidence": RNG.random(n)}
    return index.to_frame(index=False).assign(restart=0, **values, **own)


def found(rows, metric, repeat="all", **said):
    wanted = {"metric": metric, "repeat": repeat, **said}
    (row,) = [row for row in rows if {key: of for key, of in row.items() if key not in NUMBERS} == wanted]
    return row


def test_means_over_classes():
    frame = frame_of(3)
    rows = measure_inversion(frame, "mia")
    terms = {"attack": "mia", "statistic": "mean"}
    assert found(rows, "mia_distance", measure="euclidean", **terms)["value"] == pytest.approx(frame["distance"].mean())
    assert found(rows, "mia_distance", measure="1-ssim", **terms)["value"] == pytest.approx(1 - frame["ssim"].mean())
    assert found(rows, "attack_confidence", **terms)["value"] == pytest.approx(frame["confidence"].mean())


def test_a_class_has_students_interval_over_the_repeats():
    frame = frame_of(5)
    row = found(measure_inversion(frame, "mia"), "mia_distance", attack="mia", measure="euclidean", **{"class": 2})
    values = frame.loc[frame["target"] == 2, "distance"]
    low, high = stats.t.interval(0.95, 4, values.mean(), stats.sem(values))
    assert (row["value"], row["low"], row["high"]) == pytest.approx((values.mean(), low, high))


def test_one_repeat_has_no_interval_for_a_class():
    row = found(measure_inversion(frame_of(1), "a"), "mia_distance", attack="a", measure="1-ssim", **{"class": 0})
    assert np.isfinite(row["value"])
    assert np.isnan(row["low"])


def test_variants_are_judged_apart():
    frame = pd.concat([frame_of(2, variant="black"), frame_of(2, variant="gray")])
    rows = measure_inversion(frame, "c")
    for variant, part in frame.groupby("variant"):
        row = found(rows, "mia_distance", attack="c", measure="euclidean", statistic="mean", variant=variant)
        assert row["value"] == pytest.approx(part["distance"].mean())
