"""Every kind: what it draws is what it returns, and nothing lies on top of anything."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from scipy.stats import norm
from sklearn.metrics import roc_auc_score
from synthetic import all_notes, all_texts, bounded_frame

from dp_leakage import figures
from dp_leakage.common.errors import UserError
from dp_leakage.common.schemas import holds
from dp_leakage.common.user_code import _imported
from dp_leakage.figures import COMMON, FIGURES, draw, figures_of, resolve
from dp_leakage.figures.labels import named_beside
from dp_leakage.figures.pareto import surely_beaten, undominated
from dp_leakage.figures.style import encode
from dp_leakage.metrics.rates import tpr_at
from dp_leakage.metrics.rows import CELL, qualifiers
from dp_leakage.metrics.spent import spent
from dp_leakage.privacy.accounting.tradeoff import gaussian
from dp_leakage.privacy.rates import FPR_OF_CURVE, between
from dp_leakage.provenance import fingerprint
from dp_leakage.study.step_code import step_code
from dp_leakage.table.frames import NUMBERS, OF_CELL
from dp_leakage.table.looks import ALARM
from dp_leakage.table.notes import claimed_relations
from dp_leakage.table.numbers import at_most
from dp_leakage.table.words import name

# name: (kind, frame, settings, with the paper's prints)
CASES: dict[str, tuple[str, str, dict[str, Any], bool]] = {
    "accuracy loss": ("accuracy_loss", "quick", {}, False),
    "accuracy loss beside print": (
        "accuracy_loss",
        "paper",
        {"model": "softmax_regression", "across": "claimed"},
        True,
    ),
    "test accuracy": (
        "accuracy_loss",
        "quick",
        {"normalized": False, "title": "Accuracy", "notes": ["A note."]},
        False,
    ),
    "leakage of all attacks": ("leakage", "quick", {}, False),
    "leakage, axis cut": (
        "leakage",
        "paper",
        {"model": "mlp", "attack": "yeom", "y_max": 0.25, "point": True, "across": "claimed"},
        True,
    ),
    "leakage at few false positives": ("leakage", "quick", {"attack": "yeom", "fpr": 0.01}, False),
    "leakage beside the point": ("leakage", "quick", {"point": True, "across": "claimed"}, False),
    "accuracy over proven risk": ("accuracy_proven", "quick", {"title": "At equal risk"}, False),
    "loss over proven rate": ("accuracy_proven", "quick", {"metric": "accuracy_loss", "fpr": 0.001}, False),
    "spent epsilon": ("spent_epsilon", "quick", {}, False),
    "loss over spent epsilon": ("spent_axis", "paper", {"model": "mlp"}, True),
    "leakage over spent epsilon": ("spent_axis", "quick", {"metric": "leakage"}, False),
    "collapse": ("collapse", "paper", {}, True),
    "pareto": ("pareto", "quick", {}, False),
    "kinds of models": ("kinds_of_models", "quick", {"title": "Of all kinds"}, False),
    "members exposed": ("members_exposed", "quick", {}, False),
    "members exposed beside print": ("members_exposed", "paper", {"model": "mlp"}, True),
    "results": ("results_table", "quick", {"model": "mlp"}, False),
    "results beside print": ("results_table", "paper", {"model": "softmax_regression"}, True),
    "baselines": ("baseline_table", "paper", {}, True),
    "lambda search": ("lambda_search", "lambdas", {}, False),
    "training curve": ("training_curve", "histories", {}, False),
    "matrix": ("matrix", "quick", {"model": "mlp", "title": "All against all"}, False),
    "claimed and measured": ("claimed_measured", "audited", {}, False),
    "proved": ("proved", "audited", {"literature": [{"label": "others", "epsilon": 10, "bound": 7.21}]}, False),
    "roc": ("roc", "scores", {"title": "Few false positives"}, False),
    "risk in people": ("risk_table", "quick", {"title": "What an accusation is worth"}, False),
    "people and records": ("persons_table", "persons", {"attack": "yeom", "title": "People"}, False),
    "guesses": ("guesses_table", "guesses", {"title": "Guesses"}, False),
    "guesses of one attack": ("guesses_table", "guesses", {"attack": "csmia"}, False),
    "structure": ("structure_table", "structure", {"title": "Without any attack"}, False),
    "groups": ("groups", "groups", {"title": "Who pays", "attack": "lira"}, False),
    "few groups in a table": ("groups_table", "groups", {"title": "Who pays", "most": 3}, False),
    "bounded roc": ("roc", "bounded", {}, False),
    "paired": ("paired_table", "scores", {"title": "On the same records", "fpr": 0.05}, False),
    "roc by coins": ("roc", "tossed", {"attack": "lira"}, False),
    "paired by coins": ("paired_table", "tossed", {"attacks": ["lira"]}, False),
    "vulnerability": ("vulnerability", "tossed", {"attack": "lira", "title": "Who is exposed"}, False),
    "inverted": ("inverted", "inverted", {"title": "Inverted"}, False),
    "subclasses": ("subclasses", "inverted", {"title": "Subclasses"}, False),
    "MIA distance": ("mia_distance", "inversions", {"title": "At equal accuracy"}, False),
    "MIA budget": ("mia_budget", "inversions", {}, False),
    "MIA over subclasses": ("mia_budget", "inversions", {"across": "k_sub", "measure": "1-ssim"}, False),
    "inversion of the undefended": ("mia_table", "inversions", {}, False),
    "inversion of all cells": ("mia_cells", "inversions", {"attacks": ["inversion_l1"]}, False),
    "calibrated accuracy": ("calibrate_accuracy", "inversions", {"wanted": {"mnist": [0.95, 0.93, 0.5]}}, False),
    "accountants": ("accountants", "images", {"dataset": "mnist"}, False),
    "projection noise": ("projection_noise", "projected", {}, False),
    "compared": (
        "compared_table",
        "images",
        {"metrics": ["membership_auc/yeom", "membership_auc/shokri"], "best_of": ["membership_auc"]},
        False,
    ),
    "training times": ("timing_table", "times", {}, False),
    "inversion by layer": ("decoded_layers", "images", {}, False),
    "inversion by defense": ("decoded_table", "images", {}, False),
    "tradeoff": ("tradeoff", "images", {}, False),
    "decoded pictures": ("decoded_pictures", "pictures", {"title": "Rebuilt"}, False),
    "differences": ("difference_table", "directional", {"metrics": ["membership_auc/attack_r"]}, False),
    "pictures": ("pictures", "pictures", {"title": "Rebuilt"}, False),
}
# What they show is computed from metrics and not one of them.
DERIVED = ("training curve", "roc", "paired", "accountants", "compared", "training times", "tradeoff")
DERIVED += ("inversion by layer", "inversion by defense", "decoded pictures", "differences", "pictures")
DERIVED += (
    "calibrated accuracy",
    "inverted",
    "subclasses",
    "roc by coins",
    "paired by coins",
    "vulnerability",
    "bounded roc",
    "risk in people",
)


OF_OTHER_FRAMES = (
    "lambda_search", "training_curve", "claimed_measured", "proved", "roc", "paired_table", "accountants",
    "projection_noise",
    "timing_table", "decoded_layers", "decoded_table", "tradeoff", "decoded_pictures", "difference_table", "pictures",
    "mia_distance", "mia_budget", "mia_table", "mia_cells", "inverted", "subclasses", "vulnerability",
    "persons_table", "guesses_table", "groups", "groups_table",
    "structure_table",
)  # fmt: skip


@pytest.fixture(scope="module")
def drawn(request: pytest.FixtureRequest) -> dict[str, tuple[Any, pd.DataFrame]]:
    """Every case drawn once."""
    prints = request.getfixturevalue("printed")
    return {
        name: draw(kind, request.getfixturevalue(frame), settings, prints if printed else None)
        for name, (kind, frame, settings, printed) in CASES.items()
    }


def test_every_kind_is_drawn_here() -> None:
    of_formulas = {"composition"}  # it shows no cell: tests/figures/test_composition.py
    assert {kind for kind, *_ in CASES.values()} == set(FIGURES) - of_formulas


@pytest.mark.parametrize("kind", FIGURES)
def test_a_kind_declares_a_caption_and_settings_of_its_own_and_what_they_may_hold(kind: str) -> None:
    entry = FIGURES[kind]
    assert callable(_imported(entry.module).draw)
    assert entry.caption.endswith(".")
    assert not set(entry.settings) & set(COMMON)
    assert entry.schemas.keys() == entry.settings.keys() | COMMON.keys()
    assert all(holds(default, entry.schemas[setting]) for setting, default in (COMMON | dict(entry.settings)).items())


def test_a_kind_of_figure_says_what_its_own_settings_hold() -> None:
    given = {"caption": "Shown.", "settings": {"fpr": {"enum": ["low", "high"], "default": "low"}}}
    ours = figures_of("mine.py", "mine", given)["mine"]
    assert holds("high", ours.schemas["fpr"])
    assert not holds("high", FIGURES["roc"].schemas["fpr"])
    with pytest.raises(UserError, match=r"mine\.py: key 'needs' is 'scors'; did you mean 'scores'"):
        figures_of("mine.py", "mine", given | {"needs": "scors"})


def test_settings_that_are_not_given_have_their_defaults() -> None:
    assert resolve("leakage", {"attack": "yeom"})["definition"] == "gap"


# What the numbers of some kinds depend on beside the qualifiers of metrics.
OF_FIGURES = ("mechanism", "epoch", "prior", "named", "engine", "accuracy", "subclass", "picture", "image")


@pytest.mark.parametrize("case", CASES)
def test_the_table_has_the_agreed_columns_and_one_row_per_number(case: str, drawn: dict) -> None:
    _, rows = drawn[case]
    assert {*OF_CELL, *NUMBERS} <= set(rows.columns)
    if case != "calibrated accuracy":  # a σ that no cell reaches has no number
        assert rows["measured"].notna().all()
    own = [column for column in OF_FIGURES if column in rows]
    assert not rows.duplicated([*CELL, "metric", *qualifiers(rows), *own]).any()
    assert list(rows.index) == list(range(len(rows)))


def _keyed(rows: pd.DataFrame, key: list[str]) -> pd.DataFrame:
    return rows.assign(**{column: rows[column].astype(str) for column in key}).set_index(key)


@pytest.mark.parametrize("case", [case for case in CASES if case not in DERIVED])
def test_the_table_repeats_the_metrics_to_the_last_bit(case: str, drawn: dict, request: pytest.FixtureRequest) -> None:
    _, rows = drawn[case]
    rows = rows[rows["metric"] != "attribute_accuracy_proven"]  # from the proven curve; see its own test
    metrics = request.getfixturevalue(CASES[case][1])
    key = [*CELL, "metric", *qualifiers(rows)]
    given = _keyed(metrics[metrics["repeat"] == "all"], key)[["value", "low", "high"]]
    found = _keyed(rows, key)[["measured", "low", "high"]]
    np.testing.assert_array_equal(found.to_numpy(), given.loc[found.index].to_numpy())


@pytest.mark.parametrize(
    "case", ["accuracy loss", "leakage of all attacks", "loss over spent epsilon", "collapse", "pareto"]
)
def test_lines_pass_through_the_numbers_of_the_table(case: str, drawn: dict) -> None:
    figure, rows = drawn[case]
    x = {"collapse": "noise_multiplier", "pareto": "test_accuracy"}.get(case, "epsilon_spent")
    private = rows[rows["accountant"] != ""]
    table = {(f"{a:.9g}", f"{b:.9g}") for a, b in zip(private[x], private["measured"], strict=True)}
    points = set()
    for ax in figure.axes:
        for line in ax.lines:
            if line.get_marker() not in ("None", None, "", "^_") and line.get_markerfacecolor() != "none":
                points |= {(f"{a:.9g}", f"{b:.9g}") for a, b in zip(*line.get_data(), strict=True)}
    assert table <= points


def test_prints_are_hollow_markers_at_the_printed_values(drawn: dict) -> None:
    figure, rows = drawn["accuracy loss beside print"]
    hollow = [
        (float(a), float(b))
        for line in figure.axes[0].lines
        if line.get_markerfacecolor() == "none"
        for a, b in zip(*line.get_data(), strict=True)
    ]
    printed = rows[rows["published"].notna()]
    assert len(printed) == 44
    expected = sorted(zip(printed["epsilon"], printed["published"], strict=True))
    np.testing.assert_allclose(sorted(hollow), expected, rtol=1e-12)  # there and back through a logarithm


def test_bounds_are_those_of_the_textbook(drawn: dict) -> None:
    _, rows = drawn["leakage beside the point"]
    private = rows[rows["accountant"] != ""]
    epsilon, delta = private["epsilon"].to_numpy(), 1e-5
    grown = np.exp(np.minimum(epsilon, 300))
    np.testing.assert_allclose(private["bound_replace_one"], (grown - 1 + 2 * delta) / (grown + 1), rtol=1e-9)
    np.testing.assert_allclose(
        private["bound_printed"], np.where(epsilon > 700, np.inf, np.expm1(np.minimum(epsilon, 700))), rtol=1e-9
    )
    # Two add/remove steps: the best (TPR, FPR) under (2ε, (1 + e^ε)δ)-DP.
    far = np.minimum((grown**2 - 1 + 2 * np.minimum((1 + grown) * delta, 1)) / (grown**2 + 1), 1)
    np.testing.assert_allclose(private["bound_add_remove"], far, rtol=1e-9)
    assert rows.loc[rows["accountant"] == "", "bound_replace_one"].isna().all()


def test_what_lies_above_a_cut_axis_is_named(drawn: dict) -> None:
    figure, rows = drawn["leakage, axis cut"]
    assert figure.axes[0].get_ylim()[1] == 0.25
    top = rows.loc[rows["accountant"] == "rdp", "measured"].max()
    assert f"DP-SGD, RDP {top:.2f}" in figure.get_supxlabel()


def test_spent_epsilon_draws_cells_that_spend_the_same_once_and_lists_all(drawn: dict) -> None:
    figure, rows = drawn["spent epsilon"]
    assert [ax.get_title(loc="left").replace("\n", " ") for ax in figure.axes] == [
        f"claim of {words}"
        for words in ("DP-SGD, naive composition", "DP-SGD, advanced composition", "DP-SGD, zCDP", "DP-SGD, RDP")
    ]
    assert set(rows["model"]) == {"mlp", "softmax_regression"}
    assert "RDP (add/remove), if Poisson" in {name for _, lines in named_beside(figure) for name in lines}
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["claim = spent"]
    assert "not what was spent" in figure.get_supxlabel()


def test_spent_epsilon_keeps_to_the_neighbors_of_the_claim_unless_asked(drawn: dict, quick: pd.DataFrame) -> None:
    _, rows = drawn["spent epsilon"]
    assert set(rows.loc[~rows["hypothetical"], "neighbors"]) == {"zero_out", "add_remove"}
    _, rows = draw("spent_epsilon", quick, {"neighbors": "replace_one"})
    assert set(rows["neighbors"]) == {"replace_one"}


@pytest.mark.parametrize("kind", [kind for kind in FIGURES if kind not in OF_OTHER_FRAMES])
def test_one_private_cell_is_enough(kind: str, quick: pd.DataFrame) -> None:
    few = quick[quick["defense"].isin(["none", "gaussian-rdp-eps=1"]) & (quick["model"] == "mlp")]
    figure, rows = draw(kind, few, {})
    assert len(rows)
    if FIGURES[kind].table:
        assert all(table.rows for table in figure.tables)
        return
    for ax in (ax for ax in figure.axes if ax.axison):
        low, high = ax.get_xlim()
        assert any(low <= tick <= high for tick in ax.get_xticks())


def test_an_infinite_epsilon_gets_a_place_of_its_own(quick: pd.DataFrame) -> None:
    endless = quick.copy()
    where = (endless["metric"] == "epsilon_spent") & (endless["defense"] == "gaussian-zcdp-eps=1000")
    endless.loc[where, "value"] = np.inf
    figure, rows = draw("spent_epsilon", endless, {"model": "mlp"})
    assert np.isinf(rows["measured"]).any()
    assert "∞" in [tick.get_text() for tick in figure.axes[0].get_yticklabels()]
    figure, rows = draw("spent_axis", endless, {"model": "mlp"})
    assert np.isinf(rows["epsilon_spent"]).any()
    assert encode(figure, "png")


def test_any_series_can_stand_over_any_budget(quick: pd.DataFrame) -> None:
    """What is upward and what is across are chosen apart: the numbers upward stay those of the kind."""
    quick = quick[quick["model"] == "mlp"]
    for kind, own, others in (
        ("accuracy_loss", "claimed", ("spent", None)),
        ("leakage", "claimed", ("spent", "proven", None)),
        ("accuracy_proven", "proven", ("claimed", "spent", None)),
    ):
        rows = {across: draw(kind, quick, {"across": across})[1] for across in (own, *others)}
        upward = [*CELL, "metric", *(["attack"] if kind == "leakage" else []), "measured"]
        for across in others:
            pd.testing.assert_frame_equal(rows[across][upward], rows[own][upward])
            column = {"claimed": "epsilon", "proven": "advantage_proven"}.get(across, "epsilon_spent")
            assert column in rows[across]
    figure, _ = draw("leakage", quick, {"across": "proven", "fpr": 0.01})
    assert "maximum TPR of any attack\nat 1 % false positives" in figure.axes[-1].get_xlabel()


def test_cells_given_by_their_noise_are_left_out_over_the_claimed_epsilon_only(quick: pd.DataFrame) -> None:
    by_noise = quick.assign(epsilon=quick["epsilon"].where(quick["accountant"] != "rdp"))
    claimed, spent = (draw("accuracy_loss", by_noise, {"across": across})[1] for across in ("claimed", "spent"))
    assert "rdp" not in set(claimed["accountant"])
    assert "rdp" in set(spent["accountant"])


def test_accounting_is_explained_in_the_footnotes_and_the_studys_own_words_come_first(quick: pd.DataFrame) -> None:
    figure, _ = draw("accuracy_loss", quick, {"across": "claimed", "notes": ["Said by the study."]})
    said = all_notes(figure)
    assert "naive, advanced, zCDP (zero-out neighbors): shuffled batches; nominal ε of an accountant" in said
    assert "RDP (add/remove neighbors): Poisson batches" in said
    assert "Said by the study." in said
    table = quick.assign(accounting_note=np.where(quick["accountant"] == "rdp", "σ from the authors' table.", ""))
    figure, _ = draw("accuracy_loss", table, {"across": "claimed"})
    said = all_notes(figure)
    assert "RDP (add/remove neighbors): σ from the authors' table." in said
    assert "Poisson" not in said


def test_collapse_says_how_far_the_points_lie_from_one_curve(drawn: dict) -> None:
    figure, rows = drawn["collapse"]
    part = rows[(rows["model"] == "mlp") & (rows["metric"] == "accuracy_loss")]
    assert part.sort_values("noise_multiplier")["curve"].is_monotonic_increasing
    distance = np.sqrt(((part["measured"] - part["curve"]) ** 2).mean())
    assert distance < 0.02
    assert f"{distance:.3f} (MLP · accuracy loss)" in figure.get_supxlabel().replace("\n", " ")


def test_pareto_takes_the_strongest_attack_of_each_cell_and_marks_its_best_points(
    drawn: dict, quick: pd.DataFrame
) -> None:
    figure, rows = drawn["pareto"]
    assert set(rows["attack"]) == {"strongest"}
    assert set(rows["of"]) == {"yeom"}
    mlp = rows[rows["model"] == "mlp"]
    for row in mlp[mlp["best"]].itertuples():
        better = (mlp["test_accuracy"] > row.test_accuracy) & (mlp["measured"] < row.measured)
        assert not better.any()
    use, leak = pd.Series([0.1, 0.2, 0.2, 0.3]), pd.Series([0.0, 0.0, 0.1, 0.5])
    assert undominated(use, leak).tolist() == [False, True, False, True]
    assert "Strongest of Shokri membership, Yeom membership" in figure.get_supxlabel().replace("\n", " ")
    alone, rows = draw("pareto", quick, {"attack": "shokri"})
    assert set(rows["attack"]) == {"shokri"}
    assert "Strongest of" not in alone.get_supxlabel()


@pytest.mark.parametrize("kind", ["pareto", "kinds_of_models"])
def test_the_number_beside_a_point_is_the_spent_epsilon_of_one_relation(kind: str, quick: pd.DataFrame) -> None:
    figure, rows = draw(kind, quick, {})
    known = rows["epsilon_spent"].notna()
    assert rows.loc[known, "spent_neighbors"].nunique() == 1
    (relation,) = set(rows.loc[known, "spent_neighbors"])
    truth = spent(quick[quick["repeat"] == "all"], relation).set_index(["dataset", "model", "defense"])["epsilon_spent"]
    for row in rows[known].itertuples():
        assert row.epsilon_spent == truth[row.dataset, row.model, row.defense]
    assert not np.allclose(rows.loc[known, "epsilon"], rows.loc[known, "epsilon_spent"])  # the claims differ
    labels = {text.get_text() for ax in figure.axes for text in ax.texts}
    assert labels
    assert labels <= {at_most(value) for value in rows.loc[known, "epsilon_spent"]}
    assert not any("e+" in label for label in labels)
    notes = " ".join(figure.get_supxlabel().split())
    assert f"ε spent, for {name(relation)} neighbors" in notes
    assert "claimed ε" not in notes


def test_a_point_is_surely_beaten_only_where_intervals_are_apart_in_both() -> None:
    points = pd.DataFrame(
        {
            "accuracy_low": [0.80, 0.70, 0.60, 0.60],
            "accuracy_high": [0.84, 0.78, 0.82, 0.70],
            "low": [0.10, 0.30, 0.30, 0.15],
            "high": [0.20, 0.40, 0.40, 0.25],
        }
    )
    # Beaten by the first are: the second in both; the third in leakage alone; the fourth in accuracy alone.
    assert surely_beaten(points).tolist() == [False, True, False, False]


def test_training_curves_are_means_over_repeats_with_students_interval(drawn: dict, histories: pd.DataFrame) -> None:
    _, rows = drawn["training curve"]
    row = rows[(rows["defense"] == "none") & (rows["epoch"] == 50) & (rows["metric"] == "test_accuracy")].iloc[0]
    values = histories[(histories["defense"] == "none") & (histories["epoch"] == 50)]["test_accuracy"]
    assert row["measured"] == pytest.approx(values.mean())
    assert row["high"] - row["measured"] == pytest.approx(4.302652730 * values.std() / np.sqrt(3))
    single, rows = draw("training_curve", histories[histories["repeat"] == 0].drop(columns="epsilon_spent"), {})
    assert len(single.axes) == 1
    assert rows["low"].isna().all()


def test_lambda_is_read_from_the_column(lambdas: pd.DataFrame) -> None:
    named = lambdas[lambdas["l2"] > 0].copy()
    _, rows = draw("lambda_search", named, {"model": "mlp"})
    assert sorted(set(rows["l2"])) == [1e-8, 1e-6, 1e-5, 1e-4, 1e-2]


def test_results_count_what_lies_inside_and_near(drawn: dict) -> None:
    figure, rows = drawn["results beside print"]
    notes = all_notes(figure)
    loss = rows[(rows["metric"] == "accuracy_loss") & rows["published"].notna()]
    assert f"accuracy loss {loss['inside'].sum()} of 44" in notes
    assert (
        f"within ±0.03 of print: {((loss['measured'] - loss['published']).abs() <= 0.03 + 1e-9).sum()} of 44" in notes
    )
    exposed = rows[rows["metric"] == "members_exposed"]
    counting = exposed["counting"]
    assert set(counting[exposed["mechanism"] == "none"]) == {"mean"}  # one run is counted there
    assert set(counting[exposed["mechanism"] != "none"]) == {"all_runs"}


TABLES = [case for case, (kind, *_) in CASES.items() if FIGURES[kind].table]


@pytest.mark.parametrize("case", TABLES)
def test_each_row_has_a_text_for_each_head_and_all_its_names(case: str, drawn: dict) -> None:
    shown, _ = drawn[case]
    for table in shown.tables:
        assert {len(row) for row in table.rows} == {len(table.heads)}
        assert not table.groups or sum(columns for _, columns in table.groups) == len(table.heads)
        assert all(row[0] for row in table.rows)


# ---------------------------------------------------------------------------------- nothing on top of anything
def boxes(figure: Any) -> list[tuple[str, np.ndarray]]:
    """(words, [x0, y0, x1, y1] in pixels) of every text and legend, as it is drawn."""
    figure.set_dpi(100)
    canvas = FigureCanvasAgg(figure)
    figure.draw_without_rendering()
    renderer = canvas.get_renderer()
    texts = list(figure.texts)  # title and footnotes among them
    found = [("legend", legend.get_window_extent(renderer)) for legend in figure.legends]
    for ax in figure.axes:
        if ax.axison:
            texts += [ax.title, ax._left_title, ax.xaxis.label, ax.yaxis.label]
            for axis in (ax.xaxis, ax.yaxis):
                shown = axis.get_tick_params()[f"label{'bottom' if axis is ax.xaxis else 'left'}"]
                low, high = sorted(axis.get_view_interval())
                ticks = [t for t in axis.get_major_ticks() if low <= t.get_loc() <= high] if shown else []
                texts += [tick.label1 for tick in ticks]
        texts += ax.texts
    found += [(t.get_text(), t.get_window_extent(renderer)) for t in texts if t.get_text().strip() and t.get_visible()]
    return [(words, np.array([box.x0, box.y0, box.x1, box.y1])) for words, box in found]


@pytest.mark.parametrize("case", [case for case, (kind, *_) in CASES.items() if not FIGURES[kind].table])
def test_no_words_overlap_or_leave_the_page(case: str, drawn: dict) -> None:
    figure, _ = drawn[case]
    words, corners = zip(*boxes(figure), strict=True)
    x0, y0, x1, y1 = np.array(corners).T
    width, height = figure.bbox.size
    slack = 1.5  # pixels: boxes include room that letters do not fill
    outside = (x0 < -slack) | (y0 < -slack) | (x1 > width + slack) | (y1 > height + slack)
    assert not outside.any(), [words[i] for i in np.flatnonzero(outside)]
    over = (np.minimum(x1[:, None], x1) - np.maximum(x0[:, None], x0) > slack) & (
        np.minimum(y1[:, None], y1) - np.maximum(y0[:, None], y0) > slack
    )
    clashes = [(words[i], words[j]) for i, j in np.argwhere(np.triu(over, 1))]
    assert not clashes


def test_the_roc_says_where_there_are_too_few_records_and_gives_the_rates_of_the_metrics(
    drawn: dict, scores: pd.DataFrame
) -> None:
    figure, rows = drawn["roc"]
    assert "Not measured with fewer independent non-members: 0.1 % takes\n2,995" in figure.get_supxlabel()
    own = scores[(scores["attack"] == "lira") & (scores["defense"] == "none")]
    member, score = (own[column].to_numpy().reshape(3, -1) for column in ("member", "score"))
    for row in rows[(rows["attack"] == "lira") & (rows["defense"] == "none")].itertuples():
        assert row.measured == tpr_at(score, member[0].astype(bool), row.fpr).found.value
    assert (rows["low"] <= rows["measured"]).all()
    assert (rows["measured"] <= rows["high"]).all()


def test_paired_differences_are_those_of_the_scores(scores: pd.DataFrame) -> None:
    _, rows = draw("paired_table", scores, {"attacks": ["lira"]})
    others = [defense for defense in scores["defense"].unique() if defense != "none"]
    assert sorted(rows["defense"]) == sorted(others)

    def area(defense: str) -> float:
        cell = scores[(scores["attack"] == "lira") & (scores["defense"] == defense)]
        return float(np.mean([roc_auc_score(run["member"], run["score"]) for _, run in cell.groupby("repeat")]))

    for row in rows.itertuples():
        assert row.measured == pytest.approx(area(row.defense) - area("none"), abs=1e-12)
        assert row.low <= row.measured <= row.high


@pytest.mark.parametrize("design", ["scores", "tossed"])
def test_differences_at_a_rate_that_no_non_member_resolves_are_not_known(
    design: str, request: pytest.FixtureRequest
) -> None:
    scores = request.getfixturevalue(design)
    _, rows = draw("paired_table", scores, {"attacks": ["lira"], "fpr": 1e-6})
    assert rows["measured"].isna().all()
    assert set(zip(rows["low"], rows["high"], strict=True)) == {(-1.0, 1.0)}


def test_by_coins_a_cell_is_compared_with_another_on_the_same_coins_only(tossed: pd.DataFrame) -> None:
    turned = tossed["member"] ^ ((tossed["defense"] == "none") & (tossed["record"] == 3))
    with pytest.raises(UserError, match="attacked on different records"):
        draw("paired_table", tossed.assign(member=turned), {"attacks": ["lira"]})


def test_the_undefended_models_name_the_planted_records_and_the_others_lie_on_chance(
    drawn: dict, tossed: pd.DataFrame
) -> None:
    _, rows = drawn["vulnerability"]
    at = rows[np.isclose(rows["named"], 0.9)].set_index("defense")
    assert 0.7 * 30 / 600 < at.loc["none", "measured"] <= 33 / 600
    assert at.loc["gaussian-rdp-eps=1", "measured"] == 0
    often = rows[np.isclose(rows["named"], 0.1)].set_index("defense").loc["gaussian-rdp-eps=1"]
    assert often["outside"] == pytest.approx(0.07, abs=0.04)


@pytest.mark.parametrize(
    ("budgets", "shown"), [(1, [0.5]), (2, [0.5, 100]), (3, [0.5, 2, 100]), (9, [0.5, 1, 2, 10, 100])]
)
def test_of_a_defense_at_many_budgets_the_smallest_the_largest_and_some_between_are_drawn(tossed, budgets, shown):
    private = tossed[tossed["defense"] != "none"]
    many = [private.assign(epsilon=epsilon, defense=f"dp-{epsilon}") for epsilon in (0.5, 1, 2, 10, 100)]
    frame = pd.concat([tossed[tossed["defense"] == "none"], *many])
    _, rows = draw("vulnerability", frame, {"attack": "lira", "budgets": budgets})
    assert set(rows["defense"]) == {"none", *(f"dp-{epsilon}" for epsilon in shown)}


def test_people_are_called_people_where_each_has_several_records(tossed: pd.DataFrame) -> None:
    settings = {"attack": "lira"}
    of_people = tossed.assign(of_records=[np.zeros(2)] * len(tossed))
    for frame, whom in ((tossed, "records"), (of_people, "people")):
        figure, _ = draw("vulnerability", frame, settings, None)
        assert {ax.get_ylabel() for ax in figure.axes if ax.get_ylabel()} == {f"share of the {whom}"}


def test_defenses_attacked_on_other_records_are_not_compared(scores: pd.DataFrame) -> None:
    moved = scores.assign(record=scores["record"] + (scores["defense"] == "none"))
    with pytest.raises(UserError, match="attacked on different records"):
        draw("paired_table", moved, {"attacks": ["lira"]})


def test_training_curves_of_all_panels_lie_inside_the_axes_that_they_share(histories: pd.DataFrame) -> None:
    higher = histories.assign(model="zz", **{c: histories[c] * 1.7 for c in ("test_accuracy", "train_accuracy")})
    if "epsilon_spent" in higher:
        higher["epsilon_spent"] *= 40
    figure, _ = draw("training_curve", pd.concat([histories, higher], ignore_index=True), {})
    for ax in figure.axes:
        low, high = ax.get_ylim()
        drawn_here = np.concatenate([line.get_ydata() for line in ax.lines])
        assert low <= np.nanmin(drawn_here)
        assert np.nanmax(drawn_here) <= high


def test_a_bound_above_what_was_spent_is_counted_and_no_other(drawn: dict, audited: pd.DataFrame) -> None:
    figure, rows = drawn["claimed and measured"]
    told = " ".join(figure.get_supxlabel().split())
    assert "None exceeds what was spent, which for 6 of 54 is not known for these neighbors." in told
    known = audited[(audited["metric"] != "epsilon_spent")]
    figure, _ = draw("claimed_measured", known, {})
    assert "is known of none for these neighbors, so none can be compared" in " ".join(figure.get_supxlabel().split())
    broken = audited.copy()
    where = (broken["metric"] == "epsilon_lower_bound") & (broken["defense"] == "gaussian-rdp-eps=1")
    broken.loc[where, "value"] = 9.0
    figure, rows = draw("claimed_measured", broken, {})
    assert "2 above what was spent, in red" in " ".join(figure.get_supxlabel().split())  # one in each model
    assert (rows["measured"] > rows["epsilon_spent"]).sum() == 2


def test_every_leakage_figure_gives_what_the_noise_proves_and_not_what_its_point_allows(drawn: dict) -> None:
    figure, rows = drawn["leakage of all attacks"]
    assert "no attack can be above, proven" in [text.get_text() for text in figure.legends[0].get_texts()]
    private = rows[rows["accountant"] != ""]
    mu = 2 * np.sqrt(100) / private["noise_multiplier"]
    np.testing.assert_allclose(private["mu"], mu)
    np.testing.assert_allclose(private["advantage_proven"], 2 * norm.cdf(mu / 2) - 1)
    exact = norm.cdf(norm.ppf(1e-3) + mu)
    assert (private["tpr_proven"] >= exact - 1e-12).all()
    np.testing.assert_allclose(private["tpr_proven"], exact, rtol=0.02)
    assert rows.loc[rows["accountant"] == "", ["mu", "advantage_proven", "tpr_proven"]].isna().all(axis=None)
    assert not any(column.startswith("bound_") for column in rows)
    assert any(column.startswith("bound_") for column in drawn["leakage, axis cut"][1])


def test_measured_rates_below_the_proven_curve_are_drawn_without_alarm(drawn: dict) -> None:
    figure, rows = drawn["bounded roc"]
    assert not rows["crosses"].any()
    private = rows[rows["accountant"] != ""]
    exact = norm.cdf(norm.ppf(private["fpr"]) + 1)
    assert (private["tpr_proven"] >= exact - 1e-9).all()
    np.testing.assert_allclose(private["tpr_proven"], exact, rtol=0.02)
    assert (rows.loc[rows["accountant"] == "", "tpr_proven"] == 1).all()
    assert "an error" not in " ".join(text.get_text() for text in figure.legends[0].get_texts())


def test_an_attack_beyond_the_proven_curve_is_drawn_in_red_and_named_an_error() -> None:
    """Scores planted in the private cell that separate by two standard deviations, noise that allows a tenth."""
    frame = bounded_frame(mu=0.1)
    planted = (frame["defense"] != "none") & (frame["attack"] == "lira")
    frame.loc[planted, "score"] += 2.0 * frame.loc[planted, "member"].astype(float)
    figure, rows = draw("roc", frame, {})
    wrong = rows[rows["crosses"]]
    assert set(wrong["attack"]) == {"lira"}
    assert set(wrong["defense"]) == {"gaussian-rdp-eps=1"}
    assert "beyond what is proven: an error" in [text.get_text() for text in figure.legends[0].get_texts()]
    red = [line for ax in figure.axes for line in ax.lines if line.get_color() == ALARM and len(line.get_xdata())]
    assert sum(len(line.get_xdata()) for line in red) == len(wrong)


def test_the_matrix_sets_every_cells_limit_beside_its_attacks(drawn: dict, quick: pd.DataFrame) -> None:
    figure, rows = drawn["matrix"]
    private = rows[(rows["accountant"] != "") & (rows["metric"] != "attribute_advantage")]
    of_cell = quick[quick["metric"] == "advantage_proven"].set_index(["dataset", "model", "defense"])["value"]
    expected = [of_cell[row.dataset, row.model, row.defense] for row in private.itertuples()]
    np.testing.assert_array_equal(private["advantage_proven"], expected)
    assert rows.loc[rows["accountant"] == "", "advantage_proven"].isna().all()
    assert not rows["crosses"].any()
    (ax,) = figure.axes
    written = [text.get_text() for text in ax.texts if text.get_position()[0] == ax.get_xlim()[1] - 0.5]
    assert len(written) == len(ax.get_yticks())
    assert "–" in written
    assert all(float(text) >= 0 for text in written if text != "–")


def test_an_advantage_above_the_proven_one_is_written_in_red(quick: pd.DataFrame) -> None:
    frame = quick.copy()
    private = (frame["metric"] == "advantage_proven") & (frame["defense"] == "gaussian-rdp-eps=1")
    found = (frame["metric"] == "reached_advantage") & (frame["defense"] == "gaussian-rdp-eps=1")
    frame.loc[private, "value"] = 0.01
    frame.loc[found, ["value", "low", "high"]] = [0.3, 0.2, 0.4]
    figure, rows = draw("matrix", frame, {"model": "mlp"})
    wrong = rows[rows["crosses"]]
    assert set(wrong["defense"]) == {"gaussian-rdp-eps=1"}
    assert sum(text.get_color() == ALARM for text in figure.axes[0].texts) == len(wrong) > 0


def test_numbers_of_a_matrix_that_chance_alone_puts_above_a_limit_are_not_red(quick: pd.DataFrame) -> None:
    """Each had an interval of its own: of many correct numbers some were red.

    Of 20 figures, at 95 % for all numbers, more than 4 have a red one in 3 of 1,000 times.
    """
    frame = quick.copy()
    frame.loc[frame["metric"] == "advantage_proven", "value"] = 0.0
    found, red = frame["metric"] == "reached_advantage", 0
    for seed in range(20):
        value = 0.02 * np.random.default_rng(seed).standard_normal(found.sum())
        frame.loc[found, "value"] = value
        frame.loc[found, "low"], frame.loc[found, "high"] = value - 0.0392, value + 0.0392
        _, rows = draw("matrix", frame, {"threshold": "best"})
        red += bool(rows["crosses"].any())
    assert rows["advantage_proven"].notna().sum() > 20
    assert red <= 4


def test_equal_proven_risk_stands_at_one_place_whatever_the_mechanism(drawn: dict) -> None:
    _, rows = drawn["accuracy over proven risk"]
    private = rows[rows["accountant"] != ""]
    by_noise = private.groupby("noise_multiplier")["advantage_proven"].nunique()
    assert (by_noise == 1).all()
    assert private["accountant"].nunique() == 4


@pytest.mark.parametrize("mu", [0.01, 0.5, 3.0, 8.0])
def test_between_the_written_rates_the_limit_is_never_below_the_curve_and_close_to_it(mu: float) -> None:
    curve, rates = gaussian(mu), np.array(FPR_OF_CURVE)
    at = np.concatenate([np.geomspace(1e-6, 1, 997), np.linspace(0, 1, 301), [1e-7, 1e-9]])
    found, exact = between(at, rates, curve.tpr(rates)), curve.tpr(at)
    assert (found >= exact - 1e-12).all()
    inside = at >= 1.3e-6
    np.testing.assert_allclose(found[inside], exact[inside], rtol=0.05)
    assert between(np.array([1e-3, 1.0]), rates, curve.tpr(rates)) == pytest.approx(curve.tpr([1e-3, 1.0]))


def test_what_was_proved_is_drawn_as_a_share_of_the_claim(audited: pd.DataFrame) -> None:
    figure, rows = draw("proved", audited, {})
    assert rows["share"].tolist() == pytest.approx((rows["measured"] / rows["epsilon"]).tolist())
    assert len(figure.axes[0].get_yticklabels()) == len(rows) > 0


def test_a_bound_is_held_against_a_claim_for_the_same_neighbors(audited: pd.DataFrame) -> None:
    """One for exchanged records stood beside an ε for one record more or less, half of it, and was called an error."""
    private = (audited["metric"] == "epsilon_lower_bound") & audited["epsilon"].notna()
    own = audited[private].drop_duplicates(["model", "defense"])
    bounds = [
        own.assign(neighbors=neighbors, value=factor * own["epsilon"])
        for neighbors, factor in (("replace_one", 1.5), ("presence", 0.8))
    ]
    figure, rows = draw("proved", pd.concat([audited[audited["metric"] != "epsilon_lower_bound"], *bounds]), {})
    of_presence = claimed_relations(rows).isin(["add_remove", "zero_out"])
    assert of_presence.any()
    np.testing.assert_allclose(rows["share"], np.where(of_presence, 0.8, 1.5))
    alarmed = sum(line.get_color() == ALARM and line.get_marker() == ">" for line in figure.axes[0].lines)
    assert alarmed == (~of_presence).sum()


def test_points_that_chance_alone_puts_above_a_limit_are_no_errors() -> None:
    """Each of 25 points a curve was judged by an interval of its own: one correct curve in ten had a red cross.

    Of 40 figures of two null curves, at 95 % for all points, more than 6 have one once in 10,000 times.
    """
    frame = bounded_frame(mu=0.1)
    crossed = 0
    for seed in range(40):
        noise = np.random.default_rng(seed).standard_normal(len(frame))
        crossed += bool(
            draw("roc", frame.assign(score=frame["score"].where(frame["score"].isna(), noise)), {})[1]["crosses"].any()
        )
    assert crossed <= 6


def test_an_advantage_that_no_privacy_bounds_has_no_limit_beside_it(quick: pd.DataFrame) -> None:
    """As in jayaraman2019's code, it holds what the other features tell of an attribute, which needs no record."""
    drawn = {
        definition: draw("leakage", quick, {"attack": "yeom_attribute", "definition": definition, "point": True})
        for definition in ("gap", "released")
    }
    said = {key: [text.get_text() for text in figure.legends[0].get_texts()] for key, (figure, _) in drawn.items()}
    assert "no attack can be above, proven" in said["gap"]
    assert not any("no attack can be above" in text or "bound" in text for text in said["released"])
    assert drawn["released"][1]["advantage_proven"].isna().all()


def test_bounds_that_coins_prove_of_the_same_cells_are_no_audits(audited: pd.DataFrame) -> None:
    """They plant no bug, so that they must not make a cell one of those with bugs either."""
    of_coins = audited[audited["metric"] == "epsilon_lower_bound"].assign(audit="", bug="", attack="lira_online")
    _, rows = draw("proved", pd.concat([audited, of_coins], ignore_index=True), {})
    assert len(rows) == len(draw("proved", audited, {})[1])
    assert (rows["audit"] == "losses").all()


def test_budgets_are_written_no_smaller_and_bounds_no_larger_than_they_are(
    quick: pd.DataFrame, audited: pd.DataFrame
) -> None:
    def texts(kind: str, frame: pd.DataFrame, metric: str, value: float) -> set[str]:
        frame = frame.assign(value=frame["value"].mask(frame["metric"] == metric, value))
        return {text.get_text() for ax in draw(kind, frame, {})[0].axes for text in ax.texts}

    assert "1.01" in texts("pareto", quick, "epsilon_spent", 1.0049)
    assert "≥ 0.299" in texts("proved", audited, "epsilon_lower_bound", 0.2999)


def test_audits_of_several_data_sets_are_told_apart(audited: pd.DataFrame) -> None:
    def labels(frame: pd.DataFrame) -> set[str]:
        return {label.get_text() for label in draw("proved", frame, {})[0].axes[0].get_yticklabels()}

    both = labels(pd.concat([audited, audited.assign(dataset="other_records")], ignore_index=True))
    assert len(both) == 2 * len(labels(audited))


def test_risk_in_people_is_bayes_rule_of_the_strongest_attack_measured_and_proven(drawn: dict) -> None:
    _, rows = drawn["risk in people"]
    assert set(rows["attack"]) == {"yeom"}
    quick = drawn["leakage at few false positives"][1].set_index(["model", "defense"])
    for row in rows.itertuples():
        tpr = quick.loc[(row.model, row.defense)]
        right = row.prior * tpr["measured"]
        assert row.measured == pytest.approx(right / (right + (1 - row.prior) * 0.01))
        if row.accountant:
            most = row.prior * tpr["tpr_proven"]
            assert row.precision_proven == pytest.approx(most / (most + (1 - row.prior) * 0.01))
    assert rows.loc[rows["accountant"] == "", "precision_proven"].isna().all()


def test_defenses_that_are_told_in_the_same_words_have_a_line_each(quick: pd.DataFrame) -> None:
    """Two partitions of one class, say; a cell without a number makes the whole column one of objects."""
    one = quick[quick["defense"] == "gaussian-rdp-eps=10"]
    both = pd.concat([quick, one.assign(defense="gaussian-rdp-eps=10-again")], ignore_index=True)
    _, rows = draw("risk_table", both, {})
    assert (
        (rows["defense"] == "gaussian-rdp-eps=10-again").sum() == (rows["defense"] == "gaussian-rdp-eps=10").sum() > 0
    )
    _, rows = draw("accuracy_proven", both.assign(epsilon=both["epsilon"].astype(object)), {})
    assert "gaussian-rdp-eps=10-again" in set(rows["defense"])


@pytest.mark.parametrize("kind", ["members_exposed", "compared_table", "risk_table", "results_table"])
def test_a_table_has_a_line_for_each_of_two_partitions_of_a_class(kind: str, quick: pd.DataFrame) -> None:
    """They are told in the same words and have one budget, and the last one's numbers stood in the only line."""
    one = quick[quick["defense"] == "gaussian-rdp-eps=10"]
    figure, _ = draw(kind, pd.concat([quick, one.assign(defense="other", partition="random")]), {})
    lines = all_texts(figure)
    assert lines.count("10, random") == one["model"].nunique() > 0
    assert "10" in lines


OWN_KIND = """
from beside import COLOUR

from dp_leakage.figures.style import canvas, finish, styled

FIGURE = {"caption": "Mine.", "settings": {"size": {"type": "integer", "minimum": 1, "default": 3}}}


@styled
def draw(metrics, settings, published):
    figure, [[ax]] = canvas(1, 1)
    ax.plot([0, 1], [0, 1], color=COLOUR, linewidth=settings["size"])
    return finish(figure, [], title=settings["title"]), metrics.head(2)
"""


@pytest.fixture
def entered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table of kinds and Python's path as they were, afterwards."""
    monkeypatch.setattr(figures, "FIGURES", dict(FIGURES))
    monkeypatch.setattr(figures, "ENTERED", dict(figures.ENTERED))
    monkeypatch.setattr(sys, "path", list(sys.path))


@pytest.mark.usefixtures("entered")
def test_a_kind_that_lies_with_a_study_draws_with_what_lies_beside_it(tmp_path: Path, quick: pd.DataFrame) -> None:
    (tmp_path / "of_one_study.py").write_text(OWN_KIND)
    (tmp_path / "beside.py").write_text('COLOUR = "#0072b2"\n')
    figures.enter(tmp_path)
    figures.enter(tmp_path)
    kind = figures.FIGURES["of_one_study"]
    assert (kind.caption, kind.settings) == ("Mine.", {"size": 3})
    assert len(draw("of_one_study", quick, {"size": 1})[1]) == 2
    before = step_code("figure", kind.module)
    (tmp_path / "beside.py").write_text('COLOUR = "#d55e00"\n')
    for remembered in (step_code, fingerprint._parsed, fingerprint._imports):
        remembered.cache_clear()
    assert step_code("figure", kind.module) != before


@pytest.mark.usefixtures("entered")
@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("leakage", OWN_KIND, r"leakage\.py: 'leakage' is already a kind of figure"),
        ("mine", "FIGURE = {'caption': str(1)}\n", r"mine\.py: FIGURE must be a mapping that is written out"),
        ("mine", "FIGURE = {'captoin': 'Mine.'}\n", r"unknown key 'captoin'; did you mean 'caption'"),
    ],
)
def test_a_mistaken_kind_beside_a_study_gets_one_sentence(tmp_path: Path, name: str, text: str, sentence: str) -> None:
    (tmp_path / f"{name}.py").write_text(text)
    with pytest.raises(UserError, match=sentence):
        figures.enter(tmp_path)


def test_people_and_records_stand_beside_each_other_in_a_table(persons: pd.DataFrame) -> None:
    figure, rows = draw("persons_table", persons, {"attack": "yeom", "model": "mlp"})
    words = all_texts(figure)
    assert words.count("a person") >= 3 + 1
    assert set(rows.loc[rows["mechanism"] == "person", "hides"]) == {"a person"}
    assert set(rows.loc[rows["mechanism"] == "gaussian", "hides"]) == {"a record"}
    assert set(rows.loc[rows["accountant"] == "", "hides"]) == {""}
    both = rows[rows["metric"].isin(["membership_auc", "record_auc"])].groupby("defense")["measured"]
    np.testing.assert_allclose(both.min() * 2, both.max())


def test_what_a_model_adds_stands_beside_imputation_in_a_table(guesses: pd.DataFrame) -> None:
    figure, rows = draw("guesses_table", guesses, {"model": "mlp"})
    ceiling = rows["metric"] == "attribute_accuracy_proven"
    assert len(rows[~ceiling]) == 5 * 2 * rows["defense"].nunique()
    words = all_texts(figure)
    assert {"attack", "imputation", "members", "others", "members less others", "at most, proven"} <= set(words)
    proven = rows[ceiling].set_index(["defense", "attack"])["measured"]
    assert len(proven) == 2 * rows.loc[rows["accountant"] != "", "defense"].nunique()
    said = guesses[guesses["model"].eq("mlp") & guesses["metric"].eq("attribute_accuracy")]
    said = said[said["of"].eq("nonmembers") & said["by"].eq("attack")].set_index(["defense", "attack"])
    mu = guesses[guesses["model"].eq("mlp") & guesses["metric"].eq("mu")].drop_duplicates("defense")
    mu = mu.set_index("defense")["value"]
    for (defense, attack), most in proven.items():
        exact = norm.cdf(norm.ppf(said.loc[(defense, attack), "high"]) + mu[defense])
        assert most == pytest.approx(exact, rel=0.05)
    assert words.count("CSMIA") == rows["defense"].nunique()
    _, one = draw("guesses_table", guesses, {"model": "mlp", "attack": "csmia"})
    assert set(one["attack"]) == {"csmia"}


def test_the_groups_with_the_largest_leakage_are_drawn(groups: pd.DataFrame) -> None:
    figure, rows = draw("groups", groups, {"model": "mlp", "most": 4, "attack": "lira", "by": "class"})
    every = groups[(groups["model"] == "mlp") & (groups["metric"] == "group_advantage")]
    every = every[every["attack"] == "lira"]
    largest = every.groupby("group")["value"].max().nlargest(4)
    assert set(rows["group"]) == set(largest.index)
    assert set(rows["attack"]) == {"lira"}
    labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert labels == [f"class {group}" for group in largest.index]


def test_the_table_of_groups_has_what_is_known_of_each(groups: pd.DataFrame) -> None:
    figure, rows = draw("groups_table", groups, {"model": "mlp", "most": 15, "attack": "yeom"})
    words = all_texts(figure)
    cells = rows["defense"].nunique()
    assert words.count("class 14") == words.count("54") == cells
    assert set(rows["metric"]) == {"group_advantage", "group_excess", "group_auc"}
    assert len(rows) == cells * (15 * 3 - 1)
    assert words.count("–") >= cells  # of the excess that is not there


def test_the_table_of_structure_says_what_was_counted_and_nothing_else(structure: pd.DataFrame) -> None:
    figure, rows = draw("structure_table", structure, {})
    words = all_texts(figure)
    assert {"−1,234", "321", "99.5 %", "25.0 %", "softmax regression", "MLP"} <= set(words)
    assert words.count("–") == 4  # leaves, parameters and stored records of the MLP
    assert len(rows) == 10
