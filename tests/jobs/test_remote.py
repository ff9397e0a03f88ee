"""What a submission is told, and what a failed one leaves behind; `tests/common/test_interrupts.py` has Ctrl-C."""

import asyncio
import logging
import os
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest

from dp_leakage.common.identity import canonical, identity
from dp_leakage.jobs.remote import count_queue, tell_planned

pytest.importorskip("snakemake_executor_plugin_slurm")
# Two chains in one submission.
WORKFLOW = """
from dp_leakage.jobs.remote import improve
improve()

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


def _job(**params):
    return SimpleNamespace(params=params, is_group=lambda: False)


def _group(*jobs):
    return SimpleNamespace(jobs=jobs, is_group=lambda: True)


def executor_saying(own):
    class Executor:
        def get_job_exec_prefix(self, job):
            return own

    tell_planned(Executor)
    return Executor()


SETTINGS = [{"study": "one", "share": 0.1}, {"study": "two", "path": "/home/ann/x.csv"}]
ONE, TWO = (_job(settings=canonical(settings)) for settings in SETTINGS)
FIRST, SECOND = map(identity, SETTINGS)


@pytest.mark.parametrize("own", ["", "cd /there"])
@pytest.mark.parametrize(
    ("submission", "told"),
    [(ONE, FIRST), (_group(ONE, TWO), f"{FIRST}:{SECOND}"), (_group(_job(settings="fast"), TWO, _job()), SECOND)],
    ids=["a job", "a group", "beside jobs of another Snakefile"],
)
def test_a_submission_is_told_what_its_run_planned_beside_what_the_executor_says(submission, told, own):
    executor = executor_saying(own)
    expected = f"export DP_LEAKAGE_PLANNED={told}"
    assert executor.get_job_exec_prefix(submission) == (f"{own} && {expected}" if own else expected)


@pytest.mark.parametrize("alive", [[], [ONE]])
def test_the_log_of_a_run_says_what_was_submitted_together_and_what_waits(tmp_path, monkeypatch, caplog, alive):
    class Executor:
        run_uuid, active_jobs = "dp_leakage_7", alive

        def report_job_submission(self, job_info):
            pass

        async def sleep(self):
            pass

    (tmp_path / "squeue").write_text("#!/bin/sh\necho $* > asked; echo PENDING; echo RUNNING; echo PENDING\n")
    (tmp_path / "squeue").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr("dp_leakage.jobs.remote.SAID", logging.getLogger("told"))
    caplog.set_level(logging.INFO, "told")
    count_queue(Executor)
    Executor().report_job_submission(SimpleNamespace(job=_group(SimpleNamespace(jobid=3), SimpleNamespace(jobid=5))))
    asyncio.run(Executor().sleep())
    assert [record.submitted for record in caplog.records if hasattr(record, "submitted")] == [[3, 5]]
    queues = [record.queue for record in caplog.records if hasattr(record, "queue")]
    assert queues == ([{"queued": 2, "running": 1}] if alive else [])
    if alive:
        assert "--name=dp_leakage_7" in (tmp_path / "asked").read_text()


@pytest.mark.parametrize("submission", [_job(settings=7.5j), _job(), _group()])
def test_a_submission_without_steps_is_told_nothing(submission):
    assert executor_saying("").get_job_exec_prefix(submission) == ""
