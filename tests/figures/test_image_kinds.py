"""Figures of inversions, times, private projections and accountants: what they compute from metrics."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from asked import epsilon_spent
from synthetic import LAYERS

from dp_leakage.figures import draw
from dp_leakage.table.published import comparable, map_published, with_published

NONE, EPS2, EPS8 = "none", "gaussian-rdp-eps=2", "gaussian-rdp-eps=8"


def one(rows: pd.DataFrame, **where: Any) -> pd.Series:
    found = rows[np.logical_and.reduce([rows[key] == value for key, value in where.items()])]
    assert len(found) == 1
    return found.iloc[0]


def test_every_print_of_lomurno2022_is_mapped_or_says_why_not(printed_images: pd.DataFrame) -> None:
    mapped = map_published(printed_images)
    why = mapped[mapped["reason"] != ""]
    assert set(why["artefact"]) == {"text"}
    found = comparable(printed_images)
    counts = {metric: len(part) for metric, part in found.groupby("metric")}
    tables = ("test_accuracy", "training_seconds", "membership_auc")
    assert [counts[metric] for metric in tables] == [21, 21, 21]
    assert (found["artefact"] == "table4").sum() == 48
    row = one(found, dataset="mean", mechanism="l2", attack="decoder", layer="prediction")
    assert row["published"] == 73.8


def test_percentages_of_abadi2016_become_fractions() -> None:
    row = {"paper": "abadi2016", "artefact": "text", "dataset": "MNIST", "model": "not_stated", "mechanism": "gaussian"}
    row |= {"epsilon": "8", "delta": "1e-5", "setting": "accountant=moments;unit=percent", "metric": "train_accuracy"}
    row |= {"explained_by": str(Path(__file__).parents[2] / "workflow/studies/abadi2016/abadi2016.py")}
    mapped = map_published(pd.DataFrame([row | {"value": 97, "stderr": np.nan, "note": ""}])).iloc[0]
    assert (mapped["published"], mapped["accountant"], mapped["n_members"]) == (0.97, "rdp", 60_000)


def test_prints_stand_beside_smaller_runs_without_a_verdict(images: pd.DataFrame, printed_images: pd.DataFrame) -> None:
    rows = images[images["metric"] == "test_accuracy"].rename(columns={"value": "measured"}).assign(unit="")
    small = rows[rows["accountant"] == ""].assign(n_members=3000)
    assert with_published(small, printed_images)["published"].isna().all()
    shown = with_published(small, printed_images, any_size=True)
    assert shown["published"].notna().all()
    assert shown["inside"].isna().all()
    full = with_published(small.assign(n_members=50_000), printed_images, any_size=True)
    assert full.loc[full["dataset"] == "cifar10", "inside"].notna().all()


def test_the_best_of_two_attacks_is_the_larger_number(images: pd.DataFrame) -> None:
    settings = {"metrics": ["membership_auc/yeom", "membership_auc/shokri"], "best_of": ["membership_auc"]}
    figure, rows = draw("compared_table", images, settings)
    assert figure.tables[0].rows
    for (_, _), cell in rows.groupby(["dataset", "defense"]):
        values = cell.set_index("attack")["measured"]
        assert values["best_of_two"] == max(values["yeom"], values["shokri"])


def test_changes_are_relative_to_the_undefended_model_and_averaged_over_data_sets(images: pd.DataFrame) -> None:
    _, rows = draw("decoded_table", images, {})
    for defense, change in (("l2", 50.0), ("dropout", 20.0), (EPS2, -20.0)):
        for layer in LAYERS:
            row = one(rows, dataset="mean", defense=defense, layer=layer)
            assert row["measured"] == pytest.approx(change)
            assert row["low"] < change < row["high"]
    each = one(rows, dataset="mnist", defense="l2", layer="conv3")
    mean = one(rows, dataset="mean", defense="l2", layer="conv3")
    # Two data sets of the same width: the mean's is 1/√2 of it.
    assert mean["high"] - mean["measured"] == pytest.approx((each["high"] - each["measured"]) / np.sqrt(2))


def test_prints_of_table_4_stand_beside_the_means(images: pd.DataFrame, printed_images: pd.DataFrame) -> None:
    _, rows = draw("decoded_table", images, {}, printed_images)
    assert one(rows, dataset="mean", defense="l2", layer="prediction")["published"] == 73.8
    assert one(rows, dataset="mean", defense=EPS8, layer="conv1")["published"] == -1.4
    assert rows.loc[rows["dataset"] != "mean", "published"].isna().all()


def test_undefended_errors_by_layer_are_bars_of_the_mean(images: pd.DataFrame) -> None:
    figure, rows = draw("decoded_layers", images, {})
    heights = [patch.get_height() for patch in figure.axes[0].patches]
    np.testing.assert_allclose(heights, 0.01 * np.arange(1, 10))
    assert set(rows["defense"]) == {NONE}


def test_the_tradeoff_draws_changes_against_accuracy(images: pd.DataFrame) -> None:
    _, rows = draw("tradeoff", images, {})
    assert one(rows, defense="l2", metric="inversion_mse_change_percent")["measured"] == pytest.approx(50)
    base, own = 0.49 + 1.2 * 0.19, 0.49 + 1.2 * 0.12
    expected = 100 * (own / base - 1)
    assert one(rows, defense="l2", metric="membership_auc_change_percent")["measured"] == pytest.approx(expected)
    assert one(rows, defense="dropout", metric="test_accuracy")["measured"] == pytest.approx(0.83)


def test_times_are_compared_within_their_round(times: pd.DataFrame, printed_images: pd.DataFrame) -> None:
    _, rows = draw("timing_table", times, {}, printed_images)
    own = times[times["timed"] == times["defense"]]
    ours = own[own["engine"] == "ours"].pivot_table(index="round", columns="defense", values="seconds")
    row = one(rows, defense=EPS8, metric="slowdown", engine="ours")
    ratio = ours[EPS8] / ours[NONE]
    assert (row["measured"], row["low"], row["high"]) == pytest.approx((ratio.median(), ratio.min(), ratio.max()))
    assert row["published"] == pytest.approx(2897.1 / 73.3)
    seconds = one(rows, defense=NONE, metric="seconds_per_epoch", engine="ours")
    assert seconds["measured"] == pytest.approx(ours[NONE].median() * 50)
    assert rows["inside"].isna().all()
    assert set(rows.loc[rows["engine"] == "opacus", "defense"]) == {EPS2}


def test_accountants_count_the_same_training(images: pd.DataFrame) -> None:
    _, rows = draw("accountants", images.assign(projection_noise=4.0), {"dataset": "mnist"})
    last = rows[rows["epoch"] == 4].set_index(["defense", "accounted_by"])["measured"]
    terms = {"noise_multiplier": 2 / 8**0.5, "delta": 1e-5, "epochs": 4, "batch_size": 600, "dataset_size": 50_000}
    expected = epsilon_spent("rdp", projection_noise=4.0, **terms)
    assert last[EPS8, "rdp"] == pytest.approx(expected)
    for defense in (EPS2, EPS8):
        tight, moments, loose = (last[defense, accountant] for accountant in ("pld", "rdp", "advanced"))
        assert tight <= moments < loose
    assert (rows.sort_values("epoch").groupby(["defense", "accounted_by"])["measured"].diff().dropna() > 0).all()


def test_the_projections_noise_is_across_and_its_lack_a_level_line(projected: pd.DataFrame) -> None:
    figure, rows = draw("projection_noise", projected, {})
    ax = figure.axes[0]
    levels = {round(float(line.get_ydata()[0]), 6) for line in ax.lines if len(line.get_xdata()) == 2}
    expected = rows[rows["projection"] != "private_pca"]["measured"].round(6)
    assert set(expected) <= levels
    through = [line for line in ax.lines if len(line.get_xdata()) == 3]
    np.testing.assert_allclose([line.get_xdata() for line in through], [[1, 4, 16]] * 2, rtol=1e-12)


def test_a_ring_marks_the_epoch_of_the_highest_accuracy_on_new_records(histories: pd.DataFrame) -> None:
    few = histories[histories["defense"] == NONE]
    figure, rows = draw("training_curve", few, {"best": True})
    on_new = rows[rows["metric"] == "test_accuracy"].sort_values("epoch")
    best = on_new.loc[on_new["measured"].idxmax()]
    rings = [line for line in figure.axes[0].lines if line.get_markersize() == 11]
    assert [(line.get_xdata()[0], line.get_ydata()[0]) for line in rings] == [(best["epoch"], best["measured"])]
    assert f"new records: digits · MLP {best['epoch']}" in " ".join(figure.get_supxlabel().split())


def test_pictures_of_a_layer_stand_below_its_name_and_their_errors_in_the_table(pictures: list) -> None:
    figure, rows = draw("decoded_pictures", pictures, {"image": 1, "layers": ["conv1", "dense"]})
    assert len(figure.axes) == len(pictures) * 3
    cell, _, made = pictures[-1]
    np.testing.assert_array_equal(figure.axes[-1].images[0].get_array(), made["dense"][1, 0])
    row = one(rows, dataset=cell["dataset"], defense=cell["defense"], attack="decoder", layer="dense", image=1)
    assert row["measured"] == pytest.approx(((made["dense"][1] - made["original"][1]) ** 2).mean(), rel=1e-5)
