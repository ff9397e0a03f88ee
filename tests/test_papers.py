"""The page of all printed numbers: each is there once and compared at the paper's size alone."""

from pathlib import Path

import pandas as pd
import pytest
import yaml

from dp_leakage.common.errors import UserError
from dp_leakage.papers import INSIDE, NOT_KNOWN, NOT_RUN, OUTSIDE, PAPERS, made, main, measured_at_scale, outcomes

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
    return {"metric": "accuracy_loss", "setting": "unit=fraction", "value": value}


@pytest.fixture(scope="module")
def written() -> dict[str, str]:
    return made(RESULTS, STUDIES)


@pytest.mark.parametrize("name", ["papers.csv", "papers.md"])
def test_the_page_is_up_to_date(name: str, written: dict[str, str]) -> None:
    assert (RESULTS / name).read_text(encoding="utf-8") == written[name], "run: make papers"


def test_a_folder_without_results_gets_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"error: {tmp_path / 'explained.yaml'}")
    assert said.count("\n") == 1


def test_every_printed_number_has_one_row() -> None:
    rows = pd.read_csv(RESULTS / "papers.csv")
    given = {paper: len(pd.read_csv(STUDIES / paper / f"{paper}.csv")) for paper in PAPERS}
    assert rows["paper"].value_counts().to_dict() == given
    assert rows.loc[rows["outcome"] != INSIDE, "why"].notna().all()


def test_what_is_explained_is_there() -> None:
    """Nothing is explained that came to lie inside, or that no longer exists."""
    rows = pd.read_csv(RESULTS / "papers.csv")
    said = yaml.safe_load((RESULTS / "explained.yaml").read_text(encoding="utf-8"))
    assert [known["why"] for known in said["known"] if known["why"] not in set(rows["why"])] == []
    assert [name for name in said["controls"] if not (RESULTS / name).is_file()] == []


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


def test_of_two_readings_that_of_the_authors_code_counts() -> None:
    said = {"attack": "yeom", "fpr": 0.01}
    counted = [EXPOSED | said | {"counting": "mean", "low": 100, "high": 200, "measured": 150.0}]
    counted += [EXPOSED | said | {"counting": "all_runs"}]
    printed = {"metric": "members_exposed", "setting": "attack=yeom;fpr=0.01;unit=count", "value": 4.0}
    rows = outcomes(prints(printed), measured_at_scale({"table7.csv": figure(*counted)}), [])
    assert rows["outcome"].tolist() == [INSIDE]
    assert rows["measured"].tolist() == [5.0]


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
