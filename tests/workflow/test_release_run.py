"""A study that was run, and the model that is released after it."""

import json
import os
import subprocess
import sys

import pandas as pd
import pytest

CELL = "mlp/gaussian-rdp-eps=100"


def command(workflow, *words):
    """`dp-leakage …` in the workflow's folder; what it prints."""
    process = subprocess.run(
        [sys.executable, "-m", "dp_leakage", *words],
        cwd=workflow.folder,
        env=os.environ | {"PYTHONPATH": str(workflow.folder / "src")},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


def test_the_sheet_says_what_the_study_measured(workflow):
    workflow.configure(release={"owner": "the owner", "data_subjects": "digits", "expires": "2030-01-01"})
    assert "Released with ε = " in command(workflow, "release", "quickstart", CELL)
    folder = workflow.folder / "releases" / f"quickstart-smoke-{CELL.replace('/', '-')}"
    assert command(workflow, "verify", str(folder)).count("ε = ") == 3
    told = json.loads((folder / "privacy.json").read_text())
    rows = pd.read_parquet(workflow.results / "digits" / CELL / "metrics.parquet")
    rows = rows[(rows["metric"] == "reached_advantage") & (rows["repeat"] == "all")]
    (row,) = rows[rows["attack"] == "strongest"].to_dict("records")
    measured = told["measured"]
    assert sorted(measured["attacks_run"]) == ["shokri", "yeom"]
    assert measured["advantage"]["value"] == pytest.approx(row["value"])
    sheet = (folder / "sheet.html").read_text()
    assert f"has an advantage of {row['value']:.3f} [{row['low']:.3f}, {row['high']:.3f}]" in sheet
    assert '<th scope="row">Owner</th><td>the owner</td>' in sheet
    assert '<th scope="row">Expires</th><td>2030-01-01</td>' in sheet
    assert "What attacks and audits measured was computed from the same records, without noise." in told["outside"]


def test_a_study_that_names_a_cell_has_a_target_that_makes_its_release_once(workflow):
    assert "quickstart_release" not in workflow.snakemake("--list-target-rules")
    workflow.configure(release={"cell": CELL})
    assert "quickstart_release" in workflow.snakemake("--list-target-rules")
    workflow.snakemake("quickstart_release", "--cores", "1")
    folder = workflow.folder / "releases" / f"quickstart-smoke-{CELL.replace('/', '-')}"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert "6 files have the SHA-256" in workflow.snakemake("quickstart_release", "--cores", "1")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    (folder / "model.onnx").write_bytes(b"")
    assert "model.onnx has changed" in workflow.snakemake("quickstart_release", "--cores", "1", check=False)


def test_a_release_of_a_cell_that_is_not_there_stops_before_anything_runs(workflow):
    workflow.configure(release={"cell": "mlp/gaussian-rdp-eps=7"})
    said = workflow.snakemake("quickstart_release", "--cores", "1", check=False)
    assert "error: CELL: study quickstart has no cell 'mlp/gaussian-rdp-eps=7'" in said


def test_a_release_that_would_have_expired_stops_before_anything_runs(workflow):
    workflow.configure(release={"cell": CELL, "expires": "2025-12-31"})
    said = workflow.snakemake("quickstart_release", "--cores", "1", check=False)
    assert "error: study quickstart: key 'release.expires' is '2025-12-31'; expected a day as YYYY-MM-DD after" in said
    (workflow.folder / "releases" / f"quickstart-smoke-{CELL.replace('/', '-')}").mkdir(parents=True)
    assert "release.expires" not in workflow.snakemake("quickstart_release", "--dry-run")  # it would be verified


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("overrides", "{quickstart: {release: {cell: mlp/gaussian-rdp-eps=1}}}"),
        ("data_dir", "elsewhere"),
        ("only_datasets", "[digits]"),
    ],
)
def test_a_release_that_would_not_read_a_key_of_the_command_line_stops_before_anything_runs(workflow, key, value):
    workflow.configure(release={"cell": CELL})
    said = workflow.snakemake("quickstart_release", "--dry-run", "--config", f"{key}={value}", check=False)
    assert f"error: key '{key}' is " in said
    assert "target 'quickstart_release' reads; write it into config.yaml, or leave it out" in said


def test_keys_that_decide_nothing_about_a_release_may_be_on_its_command_line(workflow):
    workflow.configure(release={"cell": CELL})
    given = ["--config", "device=cpu", "preload=false", "checkpoint_seconds=5", "data_dir=data"]
    assert "quickstart_release" in workflow.snakemake("quickstart_release", "--dry-run", *given)
    assert "error" not in workflow.snakemake("quickstart", "--dry-run", "--config", "only_datasets=[digits]")
