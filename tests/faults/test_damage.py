"""Damaged, foreign and unwritable files: refused by name, and repaired by making exactly that file anew."""

import os
import re
import shutil
import subprocess
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from dp_leakage.provenance.files import write_arrays

pytestmark = pytest.mark.faults
CELL = "digits/mlp/gaussian-rdp-eps=1"
OTHER = "digits/mlp/gaussian-rdp-eps=100"
YEOM = f"{CELL}/attack/yeom.parquet"
# Cached file → a file that is made from it in another job.
STAGES = {
    "digits/data.npz": f"{CELL}/signals.npz",
    f"{CELL}/target.safetensors": f"{CELL}/signals.npz",
    f"{CELL}/training.parquet": f"{CELL}/measured/training.parquet",
    "digits/mlp/shadow/models.safetensors": "digits/mlp/shadow/signals.npz",
    "digits/mlp/shadow/signals.npz": "digits/mlp/shadow/shokri.safetensors",
    "digits/mlp/shadow/shokri.safetensors": f"{CELL}/attack/shokri.parquet",
    f"{CELL}/measured/yeom.parquet": "figures/fig_leakage_yeom.png",
    f"{CELL}/metrics.parquet": "report.html",
}
# The same in one job, which makes the damaged file again.
MENDED = {
    f"{CELL}/signals.npz": YEOM,
    YEOM: f"{CELL}/measured/strongest.parquet",
    f"{CELL}/measured/training.parquet": f"{CELL}/metrics.parquet",
}


def _truncated(path: Path) -> bytes:
    return path.read_bytes()[: path.stat().st_size // 2]


def _flipped(path: Path) -> bytes:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    return bytes(content)


def _foreign(path: Path) -> bytes:
    """A whole file of the same kind that belongs elsewhere."""
    other = Path(str(path).replace(CELL, OTHER))
    if other == path:
        other = next((p for p in sorted(path.parents[1].rglob(f"*{path.suffix}")) if p != path), None)
    if other:
        return other.read_bytes()
    made = path.with_name("foreign.npz")  # the only one of its kind
    write_arrays(made, {"x": np.zeros((3, 2), np.float32)}, {"identity": "0" * 16, "settings": {}})
    content = made.read_bytes()
    made.unlink()
    return content


@pytest.mark.parametrize("damaged", STAGES)
def test_a_damaged_file_is_refused_by_name_and_making_it_anew_repairs(workflow, damaged):
    before = workflow.hashes()
    path, consumer = workflow.results / damaged, workflow.results / STAGES[damaged]
    target = str(consumer.relative_to(workflow.folder))
    content, stat = path.read_bytes(), path.stat()
    kept = _others(workflow, damaged)
    for damage in (_truncated, _flipped, _foreign):
        path.write_bytes(content)
        path.write_bytes(damage(path))
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # as a failing disk does it
        consumer.unlink(missing_ok=True)
        text = workflow.snakemake(target, "--cores", "1", check=False)
        assert re.search(rf"error: results/quickstart-smoke/{re.escape(damaged)} (is damaged|was made by)", text), text
        assert "Traceback" not in text
    path.unlink()
    workflow.run()
    assert workflow.hashes() == before
    assert _others(workflow, damaged) == kept


@pytest.mark.parametrize("damaged", MENDED)
def test_a_damaged_file_of_a_job_that_runs_again_is_made_again(workflow, damaged):
    before = workflow.hashes()
    path, beside = workflow.results / damaged, workflow.results / MENDED[damaged]
    stat = path.stat()
    for damage in (_truncated, _flipped, _foreign):
        path.write_bytes(damage(path))
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        beside.unlink()
        workflow.snakemake(str(beside.relative_to(workflow.folder)), "--cores", "1")
        assert workflow.hashes() == before


def _others(workflow, damaged: str) -> dict[Path, int]:
    """Models and scores of the other cells (none where the data is damaged), by inode: a file made anew has another."""
    folder = workflow.results / OTHER
    if "digits/mlp" not in damaged:
        return {}
    files = [folder / "target.safetensors", folder / "attack" / "yeom.parquet"]
    return {path: path.stat().st_ino for path in files}


def test_a_deleted_figure_or_csv_is_drawn_again_and_nothing_else(workflow):
    before = workflow.hashes()
    for kind in ("csv", "pdf"):
        (workflow.results / "figures" / f"fig_pareto.{kind}").unlink()
        assert workflow.planned("quickstart") == Counter(quickstart_fig_pareto=1, quickstart_report=1, quickstart=1)
        workflow.run()
        assert workflow.hashes() == before


def test_a_clock_that_jumps_loses_nothing(workflow):
    before = workflow.hashes()
    tomorrow = time.time() + 86_400
    files = sorted(path for path in workflow.results.rglob("*") if path.is_file())
    for number, path in enumerate(files):
        os.utime(path, (tomorrow, tomorrow) if number % 2 else (1e9, 1e9))
    text = workflow.run()
    assert "Traceback" not in text
    assert workflow.hashes() == before


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")
def test_on_a_full_disk_jobs_fail_by_name_and_a_rerun_with_room_finishes(unrun, finished):
    expected = finished.hashes()
    with _disk(unrun.folder / "results", "200k") as disk:
        text = unrun.snakemake("quickstart", "--cores", "2", check=False)
        assert re.search(r"error: results/\S+ cannot be written: .*No space left on device", text), text
        assert "Traceback" not in text
        for path, digest in unrun.hashes().items():
            assert digest == expected[path]
        finished_before = {p: (unrun.results / p).stat().st_ino for p in unrun.hashes() if p.endswith(".safetensors")}
        subprocess.run(["mount", "-o", "remount,size=200m", disk], check=True)
        unrun.run()
        assert unrun.hashes() == expected
        assert {p: (unrun.results / p).stat().st_ino for p in finished_before} == finished_before


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a read-only disk needs root")
def test_read_only_results_are_named_and_nothing_is_lost(workflow):
    before = workflow.hashes()
    aside = workflow.folder / "aside"
    shutil.move(workflow.folder / "results", aside)
    with _disk(workflow.folder / "results", "200m") as disk:
        shutil.copytree(aside, disk, dirs_exist_ok=True, copy_function=shutil.copy2)
        workflow.configure(epsilon=[1, 10, 100])
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        text = workflow.snakemake("quickstart", "--cores", "2", check=False)
        # What is there already cannot be replaced, and what is not cannot be written.
        assert re.search("Write-protected output files|Read-only file system", text), text
        assert "results/quickstart-smoke" in text
        assert workflow.hashes() == before
        subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
        workflow.run()
        assert {path: workflow.hashes()[path] for path in before if "figures" not in path} == {
            path: digest for path, digest in before.items() if "figures" not in path
        }


@contextmanager
def _disk(folder: Path, size: str):
    """A disk of its own at a folder."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)
