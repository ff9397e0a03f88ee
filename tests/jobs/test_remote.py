"""What a failed submission leaves behind; `tests/common/test_interrupts.py` has Ctrl-C."""

import os
import re
import subprocess
import sys

import pytest

pytest.importorskip("snakemake_executor_plugin_slurm")
# Two chains in one submission.
WORKFLOW = """
from dp_leakage.jobs.remote import keep_records

onstart:
    if not workflow.local_exec:
        keep_records(workflow.persistence)

rule all:
    input: "second.txt", "other.txt"

rule first:
    output: "first.txt"
    params: config["setting"]
    group: "cell"
    shell: "echo {params} > {output}"

use rule first as second with:
    input: "first.txt"
    output: "second.txt"

use rule first as other with:
    output: "other.txt"
"""
COMMANDS = {
    "squeue": "echo 2 > first.txt; echo '7|FAILED'",
    "scontrol": "echo 'MinJobAge = 300 sec'",
    **dict.fromkeys(("scancel", "sacct", "sacctmgr", "sshare"), "exit 0"),
}
SLURM = "--executor slurm --jobs 1 --keep-incomplete --group-components cell=3 --latency-wait 1 --default-resources"
SLURM += " slurm_account=x slurm_partition=x --slurm-status-command squeue --slurm-init-seconds-before-status-checks 1"
SLURM += " --seconds-between-status-checks 1"
NAMES = ("first", "second", "other")


@pytest.mark.parametrize(
    ("sbatch", "first", "left"),
    [("echo 7", "2", {"second", "other", "all"}), ("exit 1", "1", {"first", "second", "other", "all"})],
    ids=["the submission makes the first file, and fails", "sbatch fails"],
)
def test_a_failed_submission_keeps_old_files_and_the_next_run_makes_all_but_what_was_finished(
    tmp_path, monkeypatch, sbatch, first, left
):
    (tmp_path / "Snakefile").write_text(WORKFLOW)
    (tmp_path / "bin").mkdir()
    for name, words in (COMMANDS | {"sbatch": sbatch}).items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{words}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)

    def snakemake(setting, options):
        command = [sys.executable, "-m", "snakemake", "--config", f"setting={setting}", *options.split()]
        return subprocess.run(command, cwd=tmp_path, text=True, capture_output=True, timeout=120)

    assert snakemake(1, "--cores 1").returncode == 0
    failed = snakemake(2, SLURM)
    assert "At least one job did not complete successfully" in failed.stderr
    assert [(tmp_path / f"{name}.txt").read_text() for name in NAMES] == [f"{first}\n", "1\n", "1\n"]
    planned = snakemake(2, "--dry-run --rerun-incomplete").stdout
    assert set(re.findall(r"^ *rule (\w+):", planned, re.MULTILINE)) == left
