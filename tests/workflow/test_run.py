"""The small study for real: its files, its bytes, and what happens to damaged ones."""

import json
import re
from collections import Counter

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.numpy import load_file

from dp_leakage.metrics.rows import MEASURED, told


def test_the_files_are_those_of_the_contract(finished):
    cell = finished.results / "digits" / "mlp" / "gaussian-rdp-eps=1"
    data = np.load(finished.results / "digits" / "data.npz", allow_pickle=False)
    assert data["x"].dtype == np.float32
    assert data["y"].dtype == np.int64
    roles = [data[role] for role in ("target_members", "target_nonmembers", "shadow_pool", "reference_pool")]
    assert all(role.dtype == np.int64 for role in roles)
    assert len(np.unique(np.concatenate(roles))) == sum(map(len, roles))
    assert all(len(tensor) == 2 for tensor in load_file(cell / "target.safetensors").values())
    training = pd.read_parquet(cell / "training.parquet")
    assert list(training.columns) == ["repeat", "epoch", "loss", "train_accuracy", "test_accuracy", "right", "asked"]
    last = training[training["epoch"] == training["epoch"].max()]
    assert training["right"].notna().sum() == len(last)
    assert [right.mean() for right in last["right"]] == pytest.approx(last["test_accuracy"])
    assert all(len(asked) == len(data["target_nonmembers"]) and (asked == 1).all() for asked in last["asked"])
    scores = pd.read_parquet(cell / "attack" / "yeom.parquet")
    assert {"repeat", "record", "member", "score", "flagged"} <= set(scores.columns)
    assert set(scores["record"]) == set(data["target_members"]) | set(data["target_nonmembers"])
    metrics = pd.read_parquet(cell / "metrics.parquet")
    assert list(metrics.columns) == [*MEASURED, *told(metrics)]
    assert {"attack", "fpr", "counting", "neighbors", "accounted_by", "valid"} <= set(metrics.columns)
    assert {"test_accuracy", "accuracy_loss", "membership_advantage", "members_exposed", "epsilon_spent"} <= set(
        metrics["metric"]
    )
    assert (cell / "timing.json").exists()
    figures = finished.results / "figures"
    for kind in ("pdf", "png", "csv"):
        assert (figures / f"fig_accuracy_loss.{kind}").stat().st_size > 500
    drawn = pd.read_csv(figures / "fig_accuracy_loss.csv")
    assert {"metric", "measured", "low", "high", "published", "inside"} <= set(drawn.columns)
    report = (finished.results / "report.html").read_text()
    assert "quickstart" in report
    assert not list(finished.results.rglob("*.part*"))
    overview = (finished.results.parent / "index.html").read_text()
    assert f'href="{finished.results.name}/report.html"' in overview


def test_the_log_of_every_job_ends_with_time_memory_device_and_versions(finished):
    logs = list((finished.folder / "logs").rglob("*.log"))
    assert len(logs) > 20
    end = re.compile(
        r"done in [\d.]+ s \([\d.]+ s of processor time, at most [\d,]+ MiB\) on (CPU|NVIDIA.*) with Python 3"
    )
    assert [path for path in logs if not end.search(path.read_text().splitlines()[-1])] == []
    trained = [path.read_text() for path in logs if "train" in path.name]
    assert trained
    assert all(f"torch {torch.__version__}" in text for text in trained)


def test_the_log_of_a_figure_says_nothing_of_its_fonts(finished):
    logs = list((finished.folder / "logs").rglob("fig_pareto.log"))
    assert logs
    assert "pruned" not in logs[0].read_text()


def test_the_numbers_in_a_csv_are_those_in_the_metrics(finished):
    drawn = pd.read_csv(finished.results / "figures" / "fig_accuracy_loss.csv")
    for defense, accountant, epsilon in (
        ("gaussian-rdp-eps=1", "rdp", 1.0),
        ("gaussian-naive-eps=100", "naive", 100.0),
    ):
        metrics = pd.read_parquet(finished.results / "digits" / "mlp" / defense / "metrics.parquet")
        value = metrics.query("metric == 'accuracy_loss' and repeat == 'all'")["value"].item()
        row = drawn[(drawn["accountant"] == accountant) & (drawn["epsilon"] == epsilon)]
        assert row["measured"].item() == pytest.approx(value)


def test_one_core_gives_the_same_bytes_as_two(finished, unrun):
    unrun.snakemake("quickstart", "--cores", "1")
    assert unrun.hashes() == finished.hashes()


def test_the_last_lines_name_the_report_that_was_just_made_and_no_other(workflow):
    for study in ("quickstart", "atlas-smoke"):  # of runs before
        (workflow.folder / "results" / study).mkdir()
        (workflow.folder / "results" / study / "report.html").touch()
    figure, own = workflow.results / "figures" / "fig_accuracy_loss.png", "results/quickstart-smoke/report.html"
    figure.unlink()
    assert "Report:" not in workflow.snakemake("quickstart_fig_accuracy_loss", "--cores", "1")
    (workflow.folder / own).unlink()
    told = [line for line in workflow.run().splitlines() if line.startswith("Report:")]
    assert told == [f"Report: {own}"]
    said = workflow.snakemake("quickstart", "quickstart_verify", "--cores", "1")
    assert "Report:" not in said  # it looks at the report, and makes none
    assert re.search(r"^quickstart: \d+ files are whole, as their digests say$", said, re.MULTILINE)


def test_a_damaged_file_is_refused_by_name_and_deleting_it_repairs(workflow):
    target = workflow.results / "digits" / "mlp" / "none" / "target.safetensors"
    before = workflow.hashes()
    whole = target.read_bytes()
    target.write_bytes(whole[:-100])
    text = workflow.snakemake("quickstart", "--cores", "2", check=False)
    assert "target.safetensors is damaged" in text
    assert "Traceback" not in text
    target.unlink()
    workflow.run()
    assert workflow.hashes() == before


def test_a_file_of_another_cell_is_refused_by_name(workflow):
    cells = workflow.results / "digits" / "mlp"
    foreign = (cells / "gaussian-rdp-eps=100" / "target.safetensors").read_bytes()
    (cells / "gaussian-rdp-eps=1" / "target.safetensors").write_bytes(foreign)
    text = workflow.snakemake("quickstart", "--cores", "2", check=False)
    assert "gaussian-rdp-eps=1/target.safetensors was made by other settings" in text
    assert "gaussian-rdp-eps=100" in text


def test_a_file_of_other_code_is_refused_where_snakemakes_records_are_lost(workflow):
    import shutil

    shutil.rmtree(workflow.folder / ".snakemake")
    workflow.append("src/dp_leakage/training/trainer.py", "\n\nEDITED = True\n")
    (workflow.results / "digits" / "mlp" / "none" / "attack" / "yeom.parquet").unlink()
    (workflow.results / "digits" / "mlp" / "none" / "metrics.parquet").unlink()
    (workflow.results / "report.html").unlink()
    text = workflow.snakemake("quickstart", "--cores", "2", check=False)
    assert "none/target.safetensors was made by other settings or other code" in text


def test_a_bad_config_stops_before_anything_with_one_sentence_and_loses_nothing(workflow):
    before = workflow.hashes()
    workflow.edit("config.yaml", "device: auto", "device: gpu")
    text = workflow.snakemake("quickstart", check=False)
    assert "error: config.yaml: key 'device' is 'gpu'" in text
    assert "Traceback" not in text
    assert "Building DAG" not in text
    assert workflow.hashes() == before
    workflow.edit("config.yaml", "device: gpu", "device: auto")
    assert workflow.planned("quickstart") == Counter()


def test_every_target_is_listed_with_what_it_is(finished):
    text = finished.snakemake("--list-target-rules")
    assert "quickstart_fig_accuracy_loss (Accuracy lost to each privacy budget)" in text
    assert "train_target" not in text


def test_a_cell_says_its_settings_and_its_code(finished):
    from safetensors import safe_open

    path = finished.results / "digits" / "mlp" / "gaussian-naive-eps=1" / "target.safetensors"
    with safe_open(path, framework="numpy") as file:
        made = json.loads(file.metadata()["dp_leakage"])["provenance"]
    assert made["settings"]["mechanism"]["epsilon"] == 1.0
    assert made["training"]["mechanism"]["noise_multiplier"] > 0
    assert len(made["settings"]["code"]) == 16
