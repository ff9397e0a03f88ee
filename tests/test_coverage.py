"""Every interval that a figure draws holds the truth as often as it says, by simulation of records and trainings.

In each draw there are new records and new trainings, of different difficulty and strength; the truth of a number is its
mean over the draws. Intervals over two and three repeats are on the safe side, so only too few hits count. That the
numbers themselves are right is for the tests of each metric.
"""

from collections import defaultdict

import numpy as np
import pandas as pd
import pytest

from dp_leakage.figures.calibrate_accuracy import sigma_at
from dp_leakage.figures.decoded import change_percent, mean_over_datasets
from dp_leakage.figures.frames import CELL
from dp_leakage.figures.training_curve import _curves
from dp_leakage.intervals import Estimate, difference
from dp_leakage.metrics import (
    measure_attribute,
    measure_inversion,
    measure_membership,
    measure_ranks,
    measure_reconstruction,
    measure_training,
    roc,
)
from dp_leakage.metrics.compare import paired_difference

SMALL, LARGE = 80, 400  # draws
LEAST = {SMALL: 0.86, LARGE: 0.915}  # at .95 undercut once in 1,000 runs, of each interval


def scored(rng, repeats, shift, strength=0.1, record=None, n=150):
    """Scores of n members and n outsiders, (repeats, n) each: a part of the record, one of the run, and one of both."""
    record = rng.normal(size=(2, n)) if record is None else record
    run = shift + strength * rng.normal(size=(repeats, 1))
    own = 0.6 * rng.normal(size=(2, repeats, n))
    return run + 0.8 * record[0] + own[0], 0.8 * record[1] + own[1]


def long(values, **columns):
    """One row per repeat and record of arrays (repeats, n), by name."""
    repeats, n = next(iter(values.values())).shape
    index = {"repeat": np.repeat(np.arange(repeats), n), "record": np.tile(np.arange(n), repeats)}
    return pd.DataFrame(index | {name: array.ravel() for name, array in values.items()} | columns)


def over_all(rows):
    return {
        f"{row['metric']} {row['setting']}": Estimate(row["value"], row["low"], row["high"])
        for row in rows
        if row["repeat"] == "all"
    }


def membership(rng, repeats):
    members, others = scored(rng, repeats, 0.7)
    order = rng.permutation(members.shape[1] * 2)
    score = np.concatenate([members, others], axis=1)[:, order]
    member = np.broadcast_to((np.arange(len(order)) < members.shape[1])[order], score.shape)
    rows = measure_membership(long({"score": score, "member": member, "flagged": score > 0.3}), "a")
    found = over_all(rows)
    # Small rates of so few records have next to no hits; the intersection over runs is given these runs.
    return {name: one for name, one in found.items() if "0.001" not in name and "all_runs" not in name}


def attribute(rng, repeats):
    n, features = 300, 4
    member = np.arange(n) < n // 2
    truth = rng.random((n, features)) < 0.4
    skill = 0.3 * (1 + member)[None, :, None] + 0.05 * rng.normal(size=(repeats, 1, 1)) + 0.1 * rng.normal(size=(n, 1))
    guess = np.where(rng.random((repeats, n, features)) < skill, truth, rng.random((repeats, n, features)) < 0.5)
    frames = [
        long(
            {
                "truth": np.broadcast_to(truth[:, f], (repeats, n)),
                "guess": guess[..., f],
                "member": np.broadcast_to(member, (repeats, n)),
            },
            feature=f,
        )
        for f in range(features)
    ]
    return over_all(measure_attribute(pd.concat(frames), "a"))


def histories(rng, repeats, level, n=400):
    hard = rng.normal(size=n)
    run = level + 0.05 * rng.normal(size=(repeats, 1))
    right = (run + 0.8 * hard + 0.6 * rng.normal(size=(repeats, n)) > 0).mean(axis=1)
    return right


def training(rng, repeats):
    frames = []
    for level in (0.6, 1.0):
        accuracies = {
            "train_accuracy": histories(rng, repeats, level + 0.3),
            "test_accuracy": histories(rng, repeats, level),
        }
        frames.append(pd.DataFrame({"repeat": np.arange(repeats), "epoch": 5, **accuracies}))
    return over_all(measure_training(*frames, n_train=400, n_test=400))


def ranks(rng, repeats):
    n = 200
    rank = 8 + 4 * rng.normal(size=n) + rng.normal(size=(repeats, 1)) + 2 * rng.normal(size=(repeats, n))
    member = np.broadcast_to(np.arange(n) < 50, rank.shape)
    return over_all(measure_ranks(long({"rank": rank, "member": member}), "ranks"))


def errors(rng, repeats, n):
    """Mean squared errors of n pictures: skewed, some hard, some runs worse."""
    return np.exp(0.5 * rng.normal(size=n) + 0.1 * rng.normal(size=(repeats, 1)) + 0.2 * rng.normal(size=(repeats, n)))


def reconstruction(rng, repeats):
    frame = long({"mse": errors(rng, repeats, 40)}).rename(columns={"record": "target"}).assign(restart=0)
    return over_all(measure_reconstruction(frame, "iga"))


def inversion(rng, repeats):
    values = {"distance": 5 + errors(rng, repeats, 12), "ssim": 0.3 * rng.random((repeats, 12))}
    values["confidence"] = 1 / (1 + errors(rng, repeats, 12))
    frame = long(values).rename(columns={"record": "target"}).assign(restart=0)
    found = over_all(measure_inversion(frame, "mia"))
    # Of a class: over trainings alone, so the class itself must be the same in every draw.
    return {name: one for name, one in found.items() if "class=" not in name}


def one_class(rng, repeats):
    values = 5 + 0.3 * rng.normal(size=(repeats, 1))
    frame = long({"distance": values, "ssim": 0.1 * values, "confidence": values / 10})
    found = over_all(measure_inversion(frame.rename(columns={"record": "target"}).assign(restart=0), "mia"))
    return {name: one for name, one in found.items() if "class=" in name and "euclidean" in name}


def pairs(rng, repeats):
    record = rng.normal(size=(2, 150))
    a, b = (scored(rng, repeats, shift, record=record) for shift in (0.8, 0.3))
    return {
        "paired AUC": paired_difference(roc.area, a, b),
        "paired TPR": paired_difference(lambda m, n: roc.share_above(m, n, 0.1), a, b),
        "difference of independent cells": difference(roc.auc(*a), roc.auc(*b)),
    }


def derived(rng, repeats):
    """What figures make of several cells: changes against the undefended, means over data sets."""
    rows = []
    for dataset in ("one", "two", "three"):
        for mechanism, factor in (("none", 1.0), ("gaussian", 1.5)):
            frame = long({"mse": factor * errors(rng, repeats, 40)}).rename(columns={"record": "target"})
            found = over_all(measure_reconstruction(frame.assign(restart=0), "iga"))["mse attack=iga;statistic=mean"]
            rows.append(
                {
                    "dataset": dataset,
                    "mechanism": mechanism,
                    "n_members": 100,
                    "noise_multiplier": np.nan,
                    **found._asdict(),
                }
            )
    changes = change_percent(pd.DataFrame(rows), ["dataset"])
    mean = mean_over_datasets(changes, ["mechanism"]).iloc[0]
    first = changes.iloc[0]
    return {
        "change in percent": Estimate(first["value"], first["low"], first["high"]),
        "mean over data sets": Estimate(mean["value"], mean["low"], mean["high"]),
    }


def curves(rng, repeats):
    level = 0.7 + 0.05 * rng.normal(size=repeats)
    frame = pd.DataFrame({column: [""] * repeats for column in CELL} | {"repeat": np.arange(repeats), "epoch": 1})
    frame = frame.assign(epsilon=1.0, delta=1e-5, noise_multiplier=1.0, test_accuracy=level, train_accuracy=level)
    row = _curves(frame).iloc[0]
    return {"training curve": Estimate(row["measured"], row["low"], row["high"])}


def calibrated(rng, repeats):
    """The noise at which an accuracy is reached, from the curves of the intervals' ends."""
    grid, ends = np.array([0.5, 1.0, 2.0, 4.0, 8.0]), []
    for sigma in grid:
        accuracies = histories(rng, repeats, 1.2 - 0.3 * np.log2(sigma))
        frame = pd.DataFrame(
            {"repeat": np.arange(repeats), "epoch": 1, "train_accuracy": 0.5, "test_accuracy": accuracies}
        )
        ends.append(over_all(measure_training(frame, n_train=400, n_test=400))["test_accuracy "])
    value, low, high = (sigma_at(0.7, grid, np.array([end[k] for end in ends])) for k in range(3))
    low, high = (0.0 if np.isnan(low) else low), (np.inf if np.isnan(high) else high)
    return {"noise at an accuracy": Estimate(float(np.log(value)), float(np.log(max(low, 1e-9))), float(np.log(high)))}


SIMULATED = (
    membership, attribute, training, ranks, reconstruction, inversion, one_class, pairs, derived, curves, calibrated
)  # fmt: skip


def hits(simulate, repeats, draws):
    """Name of an interval → how often it held the mean of its number over the draws."""
    rng = np.random.default_rng(repeats)
    found = defaultdict(list)
    for _ in range(draws):
        for name, estimate in simulate(rng, repeats).items():
            found[name].append(estimate)
    shares = {}
    for name, estimates in found.items():
        value, low, high = np.array(estimates, dtype=float).T
        truth = np.nanmean(value)
        shares[name] = float(np.mean((low <= truth) & (truth <= high)))
    return shares


@pytest.mark.parametrize("simulate", SIMULATED)
def test_intervals_over_three_repeats_hold_the_truth(simulate):
    shares = hits(simulate, 3, SMALL)
    assert shares
    assert min(shares.values()) >= LEAST[SMALL], shares


@pytest.mark.slow
@pytest.mark.parametrize("repeats", [2, 3, 5])
@pytest.mark.parametrize("simulate", SIMULATED)
def test_intervals_hold_the_truth_at_two_to_five_repeats(simulate, repeats):
    shares = hits(simulate, repeats, LARGE)
    assert min(shares.values()) >= LEAST[LARGE], shares
