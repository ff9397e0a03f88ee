"""The figures of model inversion: zhang2020's prints, the noise at equal accuracy, and what is refused."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from calibrate_accuracy import sigma_at
from mia import own_spent, printed_accuracies, printed_distances
from synthetic import all_notes

from dp_leakage.common.errors import UserError
from dp_leakage.common.schemas import check
from dp_leakage.figures import FIGURES, draw
from dp_leakage.table.published import read_published

TABLE_1 = [8.02, 8.36, 9.14, 9.50, 8.35, 9.76, 9.64, 8.38, 8.79, 8.93]


@pytest.fixture(scope="module")
def prints() -> pd.DataFrame:
    return read_published(Path(__file__).parents[2] / "workflow/studies/zhang2020/zhang2020.csv")


def test_the_prints_of_the_tables_are_found(prints: pd.DataFrame) -> None:
    assert [*printed_distances(prints, "mnist", "inversion_original").values()] == TABLE_1
    assert printed_distances(prints, "mnist", "inversion_l1")[9] == 8.76
    assert printed_distances(prints, "faces94", "inversion_btv")[0] == 0.691
    assert printed_distances(prints, "mnist", "inversion_tuned_euclidean") == {}
    found = printed_accuracies(prints, "mnist", "subclass").to_numpy().tolist()
    assert found == [[1.6, 18.6, 0.96], [3.0, 8.2, 0.93], [3.65, 7.0, 0.91]]


def test_prints_are_joined_to_runs_of_the_papers_size_only(inversions: pd.DataFrame, prints: pd.DataFrame) -> None:
    _, rows = draw("mia_table", inversions, {}, prints)
    printed = rows[rows["attack"] == "inversion_original"].sort_values("class")["published"]
    assert printed.tolist() == TABLE_1
    _, reduced = draw("mia_table", inversions.assign(n_members=6000), {}, prints)
    assert reduced["published"].isna().all()


def test_a_table_counts_the_classes_in_which_an_attack_comes_nearer(inversions: pd.DataFrame) -> None:
    figure, rows = draw("mia_table", inversions, {}, None)
    wide = rows[rows["attack"] != "inversion_controls"].pivot_table(index="class", columns="attack", values="measured")
    nearer = int((wide["inversion_l1"] < wide["inversion_original"]).sum())
    words = all_notes(figure)
    assert f"of 10 classes: enhanced (ℓ1) {nearer}." in words


def test_levels_pair_the_mechanisms_by_the_order_of_their_noise(inversions: pd.DataFrame) -> None:
    figure, _ = draw("mia_distance", inversions, {})
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    assert [[line.split(":")[0] for line in title.splitlines()] for title in titles] == [
        ["record-DP σ = 0.65", "subclass-DP σ = 1.6"],
        ["record-DP σ = 1", "subclass-DP σ = 3"],
        ["record-DP σ = 1.8", "subclass-DP σ = 3.65"],
    ]


def test_a_budget_is_that_of_the_cells_own_accountant(inversions: pd.DataFrame) -> None:
    spent = own_spent(inversions).set_index("defense")["epsilon_spent"]
    assert spent["subclass-k_sub=50-class_moments-sigma=1.6"] == pytest.approx(10 / 1.6)
    assert spent["gaussian-rdp-sigma=1"] == pytest.approx(4.0)
    figure, rows = draw("mia_budget", inversions[inversions["mechanism"] != "subclass"], {})
    private = rows[(rows["mechanism"] == "gaussian") & (rows["metric"] == "mia_distance")]
    assert (private["epsilon_spent"] == private["defense"].map(spent)).all()
    assert "correlation of 3 cells: −1.00" in " ".join(figure.get_supxlabel().split())


def test_the_caveat_of_a_partition_is_a_note_of_the_figure(inversions: pd.DataFrame) -> None:
    for kind in ("mia_distance", "mia_budget"):
        figure, _ = draw(kind, inversions, {})
        assert "of a fixed partition" in all_notes(figure)


@pytest.mark.parametrize(("wanted", "expected"), [(0.95, 0.5), (0.85, np.sqrt(2)), (0.8, 2.0), (0.65, np.sqrt(8))])
def test_the_noise_for_an_accuracy_is_read_between_the_points(wanted: float, expected: float) -> None:
    sigma, accuracy = np.array([0.5, 1.0, 2.0, 4.0]), np.array([0.95, 0.9, 0.8, 0.5])
    assert sigma_at(wanted, sigma, accuracy) == pytest.approx(expected)


def test_the_noise_is_unknown_beyond_the_points_and_an_outlier_is_levelled() -> None:
    sigma = np.array([0.5, 1.0, 2.0])
    assert np.isnan(sigma_at(0.99, sigma, np.array([0.95, 0.9, 0.8])))
    assert np.isnan(sigma_at(0.1, sigma, np.array([0.95, 0.9, 0.8])))
    assert sigma_at(0.9, sigma, np.array([0.88, 0.92, 0.5])) == pytest.approx(1.0)  # both are 0.9 in the curve


def test_calibration_returns_a_row_for_each_wanted_accuracy(inversions: pd.DataFrame) -> None:
    figure, rows = draw("calibrate_accuracy", inversions, {"wanted": {"mnist": [0.95, 0.5]}})
    found = rows[rows["metric"] == "noise_multiplier"].set_index(["mechanism", "accuracy"])["measured"]
    # accuracy falls by 0.03 per σ from 0.98: 0.95 at σ = 1, a point of the grid
    assert found["gaussian", 0.95] == pytest.approx(1.0)
    assert np.isnan(found["gaussian", 0.5])
    assert "record-DP: σ = 1 for 95 %, σ = – for 50 %" in " ".join(figure.get_supxlabel().split())


def test_other_measures_and_several_data_sets_are_refused(inversions: pd.DataFrame) -> None:
    with pytest.raises(UserError, match="measure"):
        check("mse", FIGURES["inverted"].schemas["measure"], key="measure")
    with pytest.raises(UserError, match="several data sets"):
        draw("mia_distance", pd.concat([inversions, inversions.assign(dataset="faces94")]), {})
