"""Real data in every format that the README names, from `new_study` to the report."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from workflow_copies import ONE_FIGURE

from dp_leakage.results import read_cell

sys.path.append(str(Path(__file__).parents[1] / "data"))
from data_files import image_bytes, write_files, write_zip

ANSWER = re.compile('data-claim="mine.answer">[A-Z][^<]*ε')
# The smallest run that goes the whole way: one model, two cells, one attack.
SMALLEST = {
    "models": {"softmax_regression": None},
    "epsilon": [10],
    "defenses": [{"defense": "none"}, {"defense": "gaussian", "accountant": "rdp", "sampler": "poisson"}],
    "repeats": 2,
    "attacks": {"rmia_online": None, "lira_online": None},
    "figures": ONE_FIGURE,
}


def digit_files(n: int = 600) -> dict[str, bytes]:
    bundle = load_digits()
    images = (bundle.images[:n] * 15).astype(np.uint8)
    return {f"{c}/{i}.png": image_bytes(image) for i, (image, c) in enumerate(zip(images, bundle.target, strict=False))}


def csv(folder: Path) -> list[str]:
    frame = load_wine(as_frame=True).frame
    frame["grape"] = np.array(["barolo", "grignolino", "barbera"])[frame.pop("target")]
    frame["color"] = np.where(frame["hue"] > 1, "red", "white")
    frame.to_csv(folder / "wine.csv", index=False)
    return ["--data", "wine.csv", "--label", "grape", "--sensitive", "alcohol,color"]


def tsv(folder: Path) -> list[str]:
    frame = load_wine(as_frame=True).frame
    frame["color"] = np.where(frame["hue"] > 1, "red", "white")
    frame.loc[5, "hue"] = np.nan
    frame.to_csv(folder / "wine.tsv", index=False, sep="\t")
    return ["--data", "wine.tsv", "--label", "target", "--missing", "impute", "--sensitive", "color"]


def parquet(folder: Path) -> list[str]:
    load_breast_cancer(as_frame=True).frame.to_parquet(folder / "cancer.parquet")
    return ["--data", "cancer.parquet", "--label", "target"]


def npz(folder: Path) -> list[str]:
    bundle = load_digits()
    np.savez(folder / "digits.npz", x=bundle.data[:600], y=bundle.target[:600])
    return ["--data", "digits.npz"]


def images(folder: Path) -> list[str]:
    write_files(folder / "digits", digit_files())
    return ["--data", "digits"]


def zipped(folder: Path) -> list[str]:
    write_zip(folder / "digits.zip", digit_files())
    return ["--data", "digits.zip"]


def new_study(workflow, arguments: list[str]) -> str:
    command = [sys.executable, "-m", "dp_leakage", "new", "mine", "--seed", "1", *arguments]
    return subprocess.run(command, cwd=workflow.folder, text=True, capture_output=True, check=True).stdout


def report(workflow, **overrides: object) -> str:
    workflow.edit("config.yaml", "overrides: {}", yaml.safe_dump({"overrides": {"mine": overrides}}))
    workflow.snakemake("mine", "--cores", "1", "--config", "scale=smoke")
    assert "Nothing to be done" in workflow.snakemake("-n", "mine", "--config", "scale=smoke")
    return (workflow.folder / "results" / "mine-smoke" / "report.html").read_text()


@pytest.fixture(scope="module")
def of_wine(another):
    """A workflow that made and ran the smallest study of a table with named classes and sensitive columns."""
    workflow = another("wine")
    said = new_study(workflow, csv(workflow.folder))
    return workflow, said, report(workflow, **SMALLEST)


def test_a_csv_becomes_a_study_and_a_report(of_wine):
    _, said, page = of_wine
    assert "pool                  118" in said
    assert ANSWER.search(page)
    assert "wine.csv" in page
    assert "Only 118 records are in the pool" in page


def test_leakage_by_group_is_told_by_the_users_own_names_of_classes_columns_and_values(of_wine):
    workflow, _, page = of_wine
    drawn = pd.read_csv(workflow.folder / "results/mine-smoke/figures/fig_groups.csv")
    found = drawn.groupby("by")["group"].unique()
    assert set(found["class"]) == {"barbera", "barolo", "grignolino"}
    assert set(found["color"]) == {"red", "white"}
    own = read_cell(workflow.folder / "results/mine-smoke/mine/mlp/none").data.own_values
    alcohol = load_wine(as_frame=True).frame["alcohol"].to_numpy(np.float32)
    np.testing.assert_array_equal(own[:, 0], alcohol)
    assert len(found["alcohol"]) > 1
    assert all(group.startswith(("up to 1", "over 1")) for group in found["alcohol"])  # 11.03 to 14.83 %
    told = [f"of class {group}" for group in found["class"]]
    told += [f"with {by}: {group}" for by in ("alcohol", "color") for group in found[by]]
    assert any(f"records {words}" in page for words in told)


@pytest.mark.study
@pytest.mark.parametrize("write", [tsv, parquet, npz, images, zipped])
def test_every_other_format_becomes_a_report_too(whole, write):
    new_study(whole, write(whole.folder))
    page = report(whole, **SMALLEST)
    assert ANSWER.search(page)
    assert "SHA-256" in page


@pytest.mark.study
@pytest.mark.parametrize("write", [csv, images])
def test_the_whole_study_runs_at_smoke_scale_to_a_report(whole, write):
    new_study(whole, write(whole.folder))
    page = report(whole)
    for part in ("The answer", "The most exposed records", "Target ε and accounted ε", "LiRA"):
        assert part in page


@pytest.fixture(scope="module")
def mine(another):
    """A workflow with a study of a table of the user's own."""
    workflow = another("mine")
    command = [sys.executable, "-m", "dp_leakage", "new", "mine", "--seed", "1", *csv(workflow.folder)]
    subprocess.run(command, cwd=workflow.folder, check=True, capture_output=True)
    return workflow


@pytest.mark.parametrize(
    ("target", "became"),
    [
        *((target, "nothing") for target in ("mine", "mine_report", "mine_fig_pareto", "mine_verify", "data.npz")),
        ("mine", "a pipe"),
    ],
)
def test_data_that_were_moved_are_named_in_one_sentence(mine, target, became):
    table, kept = mine.folder / "wine.csv", mine.folder / "kept.csv"
    table.rename(kept)
    try:
        if became == "a pipe":
            os.mkfifo(table)
        path = f"results/mine/mine/{target}" if "." in target else target
        text = mine.snakemake("-n", path, check=False, timeout=60)
    finally:
        table.unlink(missing_ok=True)
        kept.rename(table)
    errors = [line for line in text.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1, text
    assert "wine.csv" in errors[0]
    assert "Traceback" not in text
    assert "Exception" not in text


def test_a_sentence_begins_a_line_however_slowly_snakemake_prints(mine):
    """Snakemake prints its own lines from another thread: CI once read "Building DAG of jobs...error: study mine"."""
    mine.append(
        "src/snakemake_logger_plugin_dp_leakage/__init__.py",
        '\n\nLogHandler.terminator = property(lambda self: time.sleep(0.3) or "\\n")\n',
    )
    (mine.folder / "wine.csv").unlink()
    (mine.folder / "studies" / "faulty.yaml").write_text("name: faulty\n")
    text = mine.snakemake("-n", "mine", check=False)
    assert [line.split(":")[0] for line in text.splitlines() if "faulty" in line or "wine.csv" in line] == [
        "left out",
        "error",
    ], text
