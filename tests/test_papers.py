"""The page of all printed numbers: each is there once and compared at the paper's size alone."""

import re
from pathlib import Path

import pandas as pd
import pytest
import yaml

from dp_leakage.common.errors import UserError
from dp_leakage.papers.__main__ import PAPERS, README, WITH_PRINTS, made, main
from dp_leakage.papers.controls import tried
from dp_leakage.papers.prints import (
    CALIBRATED,
    COMPARED,
    ELSEWHERE,
    INSIDE,
    NOT_KNOWN,
    NOT_RUN,
    OF_MADE_UP,
    OUTSIDE,
    SMALLER,
    measured_at_scale,
    outcomes,
)
from dp_leakage.table.origin import MADE_UP

REPO = Path(__file__).parents[1]
RESULTS = REPO / "docs" / "results"
STUDIES = REPO / "workflow" / "studies"
CELL = {"dataset": "cifar100", "model": "mlp", "defense": "gaussian-rdp-eps=1", "mechanism": "gaussian"}
CELL |= {"accountant": "rdp", "unit": "example", "block": "whole", "bound": "clip", "epsilon": 1.0}
LOSS = {"metric": "accuracy_loss", "measured": 0.90, "low": 0.88, "high": 0.92, "inside": True}
EXPOSED = {"metric": "members_exposed", "measured": 5.0, "low": 2.0, "high": 9.0, "inside": True}


def figure(*rows: dict[str, object]) -> pd.DataFrame:
    """A figure's csv file, as it is read."""
    return pd.DataFrame([CELL | row for row in rows])


def prints(*rows: dict[str, object]) -> pd.DataFrame:
    """Printed rows of the cell above."""
    common = {"paper": "jayaraman2019", "artefact": "table7", "dataset": "CIFAR-100", "model": "neural_network"}
    common |= {"mechanism": "rdp", "epsilon": "1", "delta": "1e-5", "stderr": float("nan"), "note": ""}
    common |= {"explained_by": str(STUDIES / "jayaraman2019" / "jayaraman2019.py")}
    return pd.DataFrame([common | row for row in rows])


def printed_loss(value: float) -> dict[str, object]:
    return {"metric": "accuracy_loss", "setting": "unit=fraction", "value": str(value)}


@pytest.fixture(scope="module")
def written() -> dict[str, str]:
    return made(RESULTS, STUDIES)


@pytest.mark.parametrize(
    "name",
    ["papers.csv", "claims.csv", "controls.csv", "papers.md", *(f"{paper}/README.md" for paper in PAPERS), README],
)
def test_the_page_is_up_to_date(name: str, written: dict[str, str]) -> None:
    assert (RESULTS / name).read_text(encoding="utf-8") == written[name], "run: make papers"


def test_a_folder_without_results_gets_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"error: {tmp_path / 'explained.yaml'}")
    assert said.count("\n") == 1


def test_every_printed_number_has_one_row() -> None:
    rows = pd.read_csv(RESULTS / "papers.csv")
    given = {paper: len(pd.read_csv(STUDIES / paper / f"{paper}.csv")) for paper in WITH_PRINTS}
    assert rows["paper"].value_counts().to_dict() == given
    assert rows.loc[rows["inside"] != True, "why"].notna().all()  # noqa: E712


def test_what_is_explained_is_there() -> None:
    """Nothing is explained that came to lie inside, or that no longer exists."""
    rows = pd.read_csv(RESULTS / "papers.csv")
    said = yaml.safe_load((RESULTS / "explained.yaml").read_text(encoding="utf-8"))
    assert [known["why"] for known in said["known"] if known["why"] not in set(rows["why"])] == []
    assert [one["file"] for one in said["controls"] if not (RESULTS / one["file"]).is_file()] == []


START = "Algorithm 1 begins with w at zero"
OF_ZHANG2020 = [RESULTS / "explained.yaml", RESULTS / "papers.md", RESULTS / "zhang2020" / "README.md"]


@pytest.mark.parametrize("path", [*OF_ZHANG2020, STUDIES / "zhang2020" / "study.yaml"], ids=lambda path: path.name)
def test_nothing_says_that_zhang2020_leaves_open_where_w_begins(path: Path) -> None:
    """Line 1 of its Algorithm 1: w, m and v are zeros."""
    text = path.read_text(encoding="utf-8")
    open_start = re.findall(r"[^.;]*\b(?:start of w|where w begins|w starts)\b[^.;]*", text)
    assert [said for said in open_start if "not" in said.split()] == []
    assert START in text or "w begins at zero" in text


def test_the_ten_misses_of_the_enhanced_attack_are_explained_by_departures_from_its_printed_start() -> None:
    rows = pd.read_csv(RESULTS / "papers.csv")
    enhanced = rows["setting"].str.contains("attack=enhanced_mia", na=False)
    missed = rows[(rows["paper"] == "zhang2020") & (rows["artefact"] == "table1") & enhanced]
    missed = missed[missed["outcome"] == "outside"]
    assert missed["why"].str.startswith(f"not known. {START}").tolist() == [True] * 10
    near_black = pd.read_csv(RESULTS / "zhang2020" / "table1_near_black.csv").set_index("class")
    near_black = near_black[near_black["attack"] == "inversion_l1"]
    assert near_black.index[near_black["inside"] != True].tolist() == [9]  # noqa: E712
    nine, page = near_black.loc[9], OF_ZHANG2020[2].read_text(encoding="utf-8")
    interval = f"{nine['measured']:.2f} [{nine['low']:.2f}, {nine['high']:.2f}]"
    assert all(interval in text for text in (page, missed.set_index("setting")["why"].iloc[-1]))
    assert f"the mean is {near_black['measured'].mean():.2f}" in page


def test_nothing_is_explained_by_a_guess() -> None:
    said = yaml.safe_load((RESULTS / "explained.yaml").read_text(encoding="utf-8"))
    guesses = ("likely", "it seems", "perhaps", "probably")
    assert [known["why"] for known in said["known"] if any(guess in known["why"] for guess in guesses)] == []


@pytest.mark.parametrize(
    ("value", "expected"), [(0.90, INSIDE), (0.92, INSIDE), (0.924, INSIDE), (0.93, OUTSIDE), (0.87, OUTSIDE)]
)
def test_a_print_is_inside_if_our_interval_holds_a_value_that_rounds_to_it(value: float, expected: str) -> None:
    rows = outcomes(
        prints(printed_loss(value)), measured_at_scale({"table7.csv": figure({**LOSS, "high": 0.9236})}), []
    )
    assert rows["outcome"].tolist() == [expected]
    assert rows["measured"].tolist() == [0.90]


def test_a_smaller_run_is_not_compared() -> None:
    small = figure({**LOSS, "inside": float("nan")})
    rows = outcomes(prints(printed_loss(0.90)), measured_at_scale({"table7.csv": small}), [])
    assert rows["outcome"].tolist() == [NOT_RUN]
    assert rows["measured"].isna().all()


def test_what_made_up_data_give_stands_beside_the_print_and_is_not_compared() -> None:
    made_up = figure({**LOSS, "inside": float("nan"), "data_source": f"purchase_like ({MADE_UP})"})
    (row,) = outcomes(prints(printed_loss(0.90)), measured_at_scale({"table7.csv": made_up}), []).to_dict("records")
    assert (row["outcome"], row["measured"], row["apart"]) == (OF_MADE_UP, 0.90, MADE_UP)
    assert pd.isna([row["inside"], row["near"], row["wide"]]).all()
    assert OF_MADE_UP not in COMPARED


def test_of_two_readings_that_of_the_authors_code_counts() -> None:
    said = {"attack": "yeom", "fpr": 0.01}
    counted = [EXPOSED | said | {"counting": "mean", "low": 100, "high": 200, "measured": 150.0}]
    counted += [EXPOSED | said | {"counting": "all_runs"}]
    printed = {"metric": "members_exposed", "setting": "attack=yeom;fpr=0.01;unit=count", "value": 4.0}
    rows = outcomes(prints(printed), measured_at_scale({"table7.csv": figure(*counted)}), [])
    assert rows["outcome"].tolist() == [INSIDE]
    assert rows["measured"].tolist() == [5.0]


def test_another_setting_is_held_against_what_ours_holds_too() -> None:
    """Of ε = 1 and 10 ours holds the first print and the control the second."""
    printed = prints(printed_loss(0.90), {**printed_loss(0.50), "epsilon": "10"})
    ours = figure(LOSS, {**LOSS, "epsilon": 10.0, "defense": "ten", "inside": False})
    other = figure({**LOSS, "low": 0.48, "high": 0.52}, {**LOSS, "epsilon": 10.0, "low": 0.48, "high": 0.52})
    rows = outcomes(printed, measured_at_scale({"table7.csv": ours}), [])
    controls = [{"file": "a.csv", "setting": "another"}]
    (found,) = tried(printed, rows, controls, {"a.csv": other}).to_dict("records")
    assert {key: found[key] for key in ("prints", "missed", "gained", "held", "lost")} == {
        "prints": 2, "missed": 1, "gained": 1, "held": 1, "lost": 1,
    }  # fmt: skip
    seeds = pd.concat([other.assign(seed=1), other.assign(seed=2)])
    assert tried(printed, rows, controls, {"a.csv": seeds})["setting"].tolist() == [
        "another (seed 1)",
        "another (seed 2)",
    ]


def test_two_files_that_contradict_each_other_are_named() -> None:
    files = {"fig5a.csv": figure(LOSS), "table7.csv": figure({**LOSS, "measured": 0.91})}
    with pytest.raises(UserError, match=r"fig5a\.csv and table7\.csv measure accuracy_loss of cifar100/mlp"):
        measured_at_scale(files)
    files["table7.csv"] = figure(LOSS)
    assert len(measured_at_scale(files)) == 1


def test_the_first_explanation_that_fits_counts_and_without_one_the_page_says_so() -> None:
    at_scale = measured_at_scale({"table7.csv": figure(LOSS)})
    known = [
        {"outcome": "outside", "model": "logistic_regression", "why": "another model"},
        {"outcome": "outside", "model": ["neural_network"], "why": "the first"},
        {"outcome": "outside", "why": "the second"},
    ]
    printed = prints(printed_loss(0.5), printed_loss(0.9))
    assert outcomes(printed, at_scale, known)["why"].tolist() == ["the first", ""]
    assert outcomes(printed, at_scale, [])["why"].tolist() == [NOT_KNOWN, ""]


def test_a_run_with_fewer_images_or_a_setting_chosen_by_the_print_does_not_count() -> None:
    at_scale = measured_at_scale({"table7.csv": figure(LOSS)})
    printed = prints(printed_loss(0.90))
    few = [{"unit": "fraction", "file": "table7.csv", "why": "20 images of 100"}]
    rows = outcomes(printed, at_scale, [], smaller=few)
    assert rows[["outcome", "apart", "inside"]].to_numpy().tolist() == [[SMALLER, "20 images of 100", True]]
    assert outcomes(printed, at_scale, [], calibrated=few)["outcome"].tolist() == [CALIBRATED]
    assert not {SMALLER, CALIBRATED} & set(COMPARED)


def test_a_number_that_is_printed_twice_counts_once() -> None:
    twice = prints(printed_loss(0.92), {**printed_loss(0.918), "artefact": "text"})
    assert outcomes(twice, measured_at_scale({"table7.csv": figure(LOSS)}), [])["outcome"].tolist() == [
        INSIDE,
        ELSEWHERE,
    ]


def test_floor_near_and_wide_are_told_beside_the_interval() -> None:
    wide = measured_at_scale({"table7.csv": figure({**LOSS, "measured": 0.5, "low": 0.0, "high": 1.0})})
    rows = outcomes(prints(printed_loss(0.9), printed_loss(0.47)), wide, [])
    assert rows[["floor", "inside", "near", "wide"]].to_numpy().tolist() == [
        [True, True, False, True],
        [False, True, True, True],
    ]


def test_zeros_of_a_print_say_how_finely_it_is_rounded() -> None:
    """.90 stands for .895 to .905, .900 for .8995 to .9005."""
    at_scale = measured_at_scale({"table7.csv": figure({**LOSS, "measured": 0.88, "low": 0.86, "high": 0.897})})
    coarse = prints({**printed_loss(0.9), "value": "0.90"})
    fine = prints({**printed_loss(0.9), "value": "0.900"})
    assert [outcomes(each, at_scale, [])["outcome"].item() for each in (coarse, fine)] == [INSIDE, OUTSIDE]


def test_no_row_that_counts_is_of_a_smaller_run() -> None:
    """Inverted gradients of 20 images stand apart from the paper's 100, in the files that the study's page names."""
    rows = pd.read_csv(RESULTS / "papers.csv")
    counted = rows[rows["outcome"].isin(COMPARED) & rows["setting"].str.contains("attack=iga")]
    page = (RESULTS / "directional2023" / "README.md").read_text(encoding="utf-8")
    assert "LeNets of CIFAR-10, and eight cells of LFW" in page
    assert set(counted["file"]) == {
        "table3_cifar10_lenet.csv",
        "table3_lfw_lenet.csv",
        "table6_cifar10_lenet.csv",
        "table6_lfw_lenet.csv",
    }
