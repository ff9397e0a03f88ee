"""A study that was run, and the model that is released after it."""

import json
import os
import subprocess
import sys

import pandas as pd
import pytest

CELL = "mlp/gaussian-rdp-eps=100"


def command(workflow, *words):
    """`python -m dp_leakage.release …` in the workflow's folder; what it prints."""
    process = subprocess.run(
        [sys.executable, "-m", "dp_leakage.release", *words],
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
    assert "Released with ε = " in command(workflow, "make", "quickstart", CELL)
    folder = workflow.folder / "releases" / f"quickstart-smoke-{CELL.replace('/', '-')}"
    assert command(workflow, "verify", str(folder)).count("ε = ") == 3
    told = json.loads((folder / "privacy.json").read_text())
    rows = pd.read_parquet(workflow.results / "digits" / CELL / "metrics.parquet")
    rows = rows[(rows["metric"] == "reached_advantage") & (rows["repeat"] == "all")]
    (row,) = rows[rows["setting"].str.contains("attack=strongest")].to_dict("records")
    measured = told["measured"]
    assert sorted(measured["attacks_run"]) == ["shokri", "yeom"]
    assert measured["advantage"]["value"] == pytest.approx(row["value"])
    sheet = (folder / "sheet.html").read_text()
    assert f"has an advantage of {row['value']:.3f} [{row['low']:.3f}, {row['high']:.3f}]" in sheet
    assert "Owner: the owner." in sheet
    assert "Expires: 2030-01-01." in sheet
    assert "What attacks and audits measured was computed from the same records, without noise." in told["outside"]
