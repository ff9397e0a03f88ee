"""From metrics to the rows of a figure."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dp_leakage.figures.bounds import bound_notes
from dp_leakage.metrics.rows import completed
from dp_leakage.metrics.spent import spent, spent_alike
from dp_leakage.table.frames import attack_rows, chosen, drawn_numbers, metric_rows, panels
from dp_leakage.table.notes import accounting_notes, claimed_neighbors, claimed_relations, remarks
from dp_leakage.table.numbers import cell_budget
from dp_leakage.table.published import KEYS


def test_what_an_accountant_adds_to_a_valid_epsilon_is_a_footnote():
    rows = pd.DataFrame(
        [
            ("epsilon_spent", "class_moments", "mind the groups", True),
            ("epsilon_spent", "pld", "mind the groups", True),
            ("epsilon_spent", "naive", "does not hold", False),
            ("epsilon_spent", "rdp", "", True),
            ("accuracy_loss", "rdp", "", None),
        ],
        columns=["metric", "accountant", "note", "valid"],
    )
    assert remarks(rows) == ["class moments, PLD: mind the groups."]
    assert remarks(rows.drop(columns="metric")) == []


def test_only_rows_over_all_repeats_are_drawn(quick: pd.DataFrame) -> None:
    assert set(chosen(quick, {})["repeat"]) == {"all"}


def test_settings_choose_data_sets_models_and_units_and_keep_the_undefended_model(quick: pd.DataFrame) -> None:
    frame = chosen(quick, {"model": "mlp", "unit": "example"})
    assert set(frame["model"]) == {"mlp"}
    assert "none" in set(frame["mechanism"])
    assert set(chosen(quick, {"model": ["mlp", "softmax_regression"]})["model"]) == {"mlp", "softmax_regression"}


def test_attribute_attacks_come_in_the_definition_asked_for(quick: pd.DataFrame) -> None:
    frame = chosen(quick, {})
    for definition in ("gap", "released"):
        rows = attack_rows(frame, "yeom_attribute", definition)
        assert (set(rows["attack"]), set(rows["definition"])) == ({"yeom_attribute"}, {definition})
        assert not rows.duplicated(["model", "defense"]).any()


def test_inside_says_whether_the_print_lies_in_our_interval(paper: pd.DataFrame, printed: pd.DataFrame) -> None:
    rows = drawn_numbers(metric_rows(chosen(paper, {}), "accuracy_loss"), printed)
    compared = rows[rows["published"].notna()]
    assert len(compared) == 88  # tables 5 and 7
    # The tables' losses have two digits: .93 is anything from .925 to .935.
    near = (compared["low"] - 0.005, compared["high"] + 0.005)
    expected = (near[0] <= compared["published"]) & (compared["published"] <= near[1])
    assert compared["inside"].astype(bool).tolist() == expected.tolist()
    assert expected.any()
    assert not expected.all()
    assert rows.loc[rows["published"].isna(), "inside"].isna().all()


def test_prints_stand_only_beside_runs_of_the_papers_size(paper: pd.DataFrame, printed: pd.DataFrame) -> None:
    reduced = metric_rows(chosen(paper, {}), "accuracy_loss").assign(n_members=300)
    assert drawn_numbers(reduced, printed)["published"].isna().all()


def test_prints_for_clipped_examples_do_not_stand_beside_clipped_batches(
    paper: pd.DataFrame, printed: pd.DataFrame
) -> None:
    rows = metric_rows(chosen(paper, {}), "accuracy_loss")
    batch = rows[rows["accountant"] != ""].assign(unit="batch")
    assert drawn_numbers(batch, printed)["published"].isna().all()


def test_without_prints_the_columns_are_there_and_empty(quick: pd.DataFrame) -> None:
    rows = drawn_numbers(metric_rows(chosen(quick, {}), "accuracy_loss"), None)
    assert rows["published"].isna().all()
    assert rows["inside"].isna().all()
    assert set(KEYS) <= set(rows.columns)


def test_rows_are_ordered_by_model_series_and_budget_whatever_their_order_was(quick: pd.DataFrame) -> None:
    rows = metric_rows(chosen(quick, {}), "accuracy_loss")
    ordered = drawn_numbers(rows, None)
    shuffled = drawn_numbers(rows.sample(frac=1, random_state=0), None)
    pd.testing.assert_frame_equal(ordered, shuffled)
    mlp = ordered[ordered["model"] == "mlp"]
    assert list(dict.fromkeys(mlp["accountant"])) == ["", "naive", "advanced", "zcdp", "rdp"]
    assert mlp.loc[mlp["accountant"] == "rdp", "epsilon"].is_monotonic_increasing


def test_what_a_cell_is_keeps_its_words_through_a_figures_csv(quick: pd.DataFrame, tmp_path: Path) -> None:
    private = quick[quick["accountant"] == "rdp"].assign(sampler="wor", partition="random", most=2)
    rows = metric_rows(chosen(private, {}), "accuracy_loss")
    drawn_numbers(rows, None).to_csv(tmp_path / "figure.csv", index=False)
    read = pd.read_csv(tmp_path / "figure.csv")
    assert set(claimed_relations(read)) == {"replace_one"}
    for row in read.itertuples():
        assert cell_budget(row) == f"{row.epsilon:g}, random, most 2"


def spent_row(defense: str, value: float, accounted_by: str, neighbors: str, **more: object) -> dict:
    cell = {"dataset": "d", "model": "m", "defense": defense, "metric": "epsilon_spent", "repeat": "all"}
    said = {"accounted_by": accounted_by, "neighbors": neighbors, "valid": True, **more}
    return {**cell, "value": value, "low": value, "high": value, **said}


def test_spent_is_the_smallest_that_a_valid_accountant_proves_for_what_was_done() -> None:
    rows = pd.DataFrame(
        [
            spent_row("a", 9.0, "zcdp", "zero_out"),
            spent_row("a", 7.0, "gdp", "zero_out"),
            spent_row("a", 3.0, "naive", "zero_out", valid=False),
            spent_row("a", 1.0, "rdp", "add_remove", sampling="hypothetical_poisson"),
            spent_row("a", 14.0, "gdp", "replace_one"),
            spent_row("b", np.inf, "rdp", "add_remove"),
        ]
    )
    game = spent_row("a", 0.3, "", "zero_out", source="gaussian") | {"metric": "advantage_proven"}
    rows = completed(rows)
    found = spent(pd.concat([rows, completed(pd.DataFrame([game]))])).set_index("defense")
    assert found.loc["a", ["epsilon_spent", "spent_accountant"]].tolist() == [7.0, "gdp"]
    assert found.loc["b", "epsilon_spent"] == np.inf
    replaced = spent(rows, "replace_one").set_index("defense")
    assert replaced["epsilon_spent"].to_dict() == {"a": 14.0}


def test_spent_never_takes_the_smallest_over_different_neighbors() -> None:
    rows = pd.DataFrame(
        [
            spent_row("poisson", 1.35, "pld", "add_remove"),
            spent_row("poisson", 2.75, "pld", "replace_one"),
            spent_row("wor", 2.04, "rdp", "replace_one"),
        ]
    )
    found = spent(completed(rows)).set_index("defense")
    assert found["epsilon_spent"].to_dict() == {"poisson": 2.75, "wor": 2.04}
    assert set(found["spent_neighbors"]) == {"replace_one"}


@pytest.mark.parametrize("unit", ["class", "subclass"])
def test_of_whole_classes_the_epsilon_of_a_record_is_that_of_an_exchanged_class(unit: str) -> None:
    """A record more or fewer changes its class's bounded mean by up to twice the bound. 3.5 would be of a class that is
    there or not, which no record decides.
    """
    rows = [
        spent_row("class", 7.2, "pld", "replace_one") | {"unit": unit},
        spent_row("class", 3.5, "pld", "add_remove") | {"unit": unit},
        spent_row("records", 12.4, "pld", "replace_one") | {"unit": "example"},
        spent_row("records", 8.7, "pld", "add_remove") | {"unit": "example"},
    ]
    for game, relation in (("add_remove", "add_remove"), ("replace_one", "replace_one")):
        limits = [
            spent_row(cell, 0.3, "", game, source="pld") | {"metric": "advantage_proven"}
            for cell in ("class", "records")
        ]
        found = spent(completed(pd.DataFrame([*rows, *limits]))).set_index("defense")
        assert found.loc["class", ["epsilon_spent", "spent_neighbors"]].tolist() == [7.2, "add_remove"]
        assert found.loc["records", "spent_neighbors"] == relation
    alike, relation = spent_alike(completed(pd.DataFrame(rows)))
    assert relation == "add_remove"
    assert alike.set_index("defense")["epsilon_spent"].to_dict() == {"class": 7.2, "records": 8.7}


def test_panel_headings_leave_out_what_is_the_same_everywhere(quick: pd.DataFrame) -> None:
    frame = chosen(quick, {})
    assert [heading for heading, _ in panels(frame)] == ["MLP", "softmax regression"]
    assert [heading for heading, _ in panels(frame[frame["model"] == "mlp"])] == ["digits · MLP"]


def claiming(accountant: str, unit: str = "example", block: str = "", sampler: str = "") -> pd.DataFrame:
    return pd.DataFrame({"accountant": [accountant], "unit": [unit], "block": [block], "sampler": [sampler]})


@pytest.mark.parametrize(
    ("cell", "relation"),
    [
        (claiming("rdp"), "add_remove"),
        (claiming("rdp", sampler="wor"), "replace_one"),
        (claiming("pld", unit="class", sampler="class_poisson"), "replace_one"),
        (claiming("vmf_rdp", block="row"), "replace_one"),
        (claiming("vmf_rdp", block="sum"), "add_remove"),
        (claiming("vmf_rdp", unit="batch"), "add_remove"),
        (claiming("vmf_rdp", block="sum", sampler="shuffle"), "replace_one"),
        (claiming(""), ""),
        (claiming("a_plugins"), ""),
    ],
)
def test_figures_take_an_epsilon_for_the_neighbors_that_the_noise_was_solved_for(cell, relation):
    assert list(claimed_relations(cell)) == [relation]
    assert claimed_neighbors(cell) == {relation} - {""}


def test_noise_on_the_sum_keeps_the_bound_for_its_neighbors_and_names_them():
    rows = claiming("vmf_rdp", block="sum").assign(delta=1e-5, metric="")
    assert any("dash-dotted" in note for note in bound_notes(rows, claimed_neighbors(rows)))
    assert "of the summed gradient (add/remove neighbors)" in accounting_notes(rows, {})[0]
