"""Cluster runs: submission, interruption and failed submissions, by the interface that Snakemake's executors share.

A submission is one Snakemake process. The SLURM plugin would start one more with `srun` for each of its jobs, and each
of them would read the workflow and plan again; only MPI needs that.

A submission plans again where it runs, with the code and the study of that moment, while Snakemake records its files
as made by this run's plan. So each submission receives the planned identities, and its steps refuse any other.

Ctrl-C: Snakemake ends within seconds and cancels every job of the run. Without this module, it would wait for the
thread that polls the jobs' states, which sleeps between polls: 40 s, and 10 s more after each one without news, up to
180 s. During a poll, the executor's list of jobs is empty, so a Ctrl-C then cancels none.

Snakemake reports what it submits as running. So the run's log says which jobs were submitted together, and after each
poll how many submissions wait in the queue, for the counts that a run prints.

A user's error would fail again, so its submission is not sent again (``--retries``), unlike one that was killed or
lacked memory.

A failed submission keeps finished files (``--keep-incomplete``). Snakemake records all of its files as made by this
run, even those of an earlier run that it did not reach. They are marked as incomplete, so the next run makes them.
"""

import asyncio
import json
import logging
import os
import re
import shutil
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor

from dp_leakage.common.identity import identity
from dp_leakage.jobs import PLANNED

LOOK = 0.5  # seconds
JOB_STEPS = "--executor slurm-jobstep --jobs 1"  # of the SLURM plugin's submissions
SAID = logging.getLogger("snakemake.logging")  # what Snakemake says, in its order
# As a step logs it (`steps.run`). More memory may help where it did not suffice.
USER_ERROR = re.compile(r"^\d\d:\d\d:\d\d error: (?!not enough memory)", re.MULTILINE)


def improve(executors: Any = RemoteExecutor) -> None:
    """Change these things of a class of executors. A plugin that overrides one of its methods keeps its own."""
    tell_planned(executors)
    run_in_one_process(executors)
    end_soon(executors)
    mark_unmade(executors)
    count_queue(executors)
    send_no_user_error_again(executors)


def tell_planned(executors: Any) -> None:
    """Pass to each submission the identities of the results that this run planned, with the submission's own command.

    Any cluster and any storage hands that on.
    """
    prefix = executors.get_job_exec_prefix

    def with_planned(self: Any, submission: Any) -> str:
        planned = [name for job in _members(submission) for name in _identities(job)]
        told = f"export {PLANNED}={':'.join(planned)}" if planned else ""
        return " && ".join(filter(None, (prefix(self, submission), told)))

    executors.get_job_exec_prefix = with_planned


def run_in_one_process(executors: Any) -> None:
    """Run the jobs of a submission in the Snakemake that it starts, as many beside each other as it has GPUs."""
    formatted = executors.format_job_exec

    def format_job_exec(self: Any, submission: Any) -> str:
        command: str = formatted(self, submission)
        return command.replace(JOB_STEPS, f"--resources gpu={submission.resources.get('gpu', 0)}")

    executors.format_job_exec = format_job_exec


def end_soon(executors: Any) -> None:
    """Stop while an executor sleeps, and cancel by the run's name the jobs that it lost track of."""
    asleep, cancelled = executors.sleep, executors.cancel

    async def sleep(self: Any) -> None:
        sleeping = asyncio.ensure_future(asleep(self))
        while self.wait and not sleeping.done():
            await asyncio.wait([sleeping], timeout=LOOK)
        sleeping.cancel()

    def cancel(self: Any) -> None:
        name = getattr(self, "run_uuid", None)  # of the SLURM plugin: every job of the run has it
        if name and shutil.which("scancel"):
            with suppress(subprocess.TimeoutExpired):
                subprocess.run(["scancel", "--name", name], check=False, timeout=60, capture_output=True)
        cancelled(self)

    executors.sleep, executors.cancel = sleep, cancel


def mark_unmade(executors: Any) -> None:
    """Mark old files that a failed submission did not replace as incomplete, once Snakemake has recorded them."""
    submitted: dict[Any, float] = {}  # submission → seconds
    reported, handled = executors.report_job_submission, executors.handle_job_error

    def report(self: Any, job_info: Any, *given: Any, **named: Any) -> None:
        submitted[job_info.job] = time.time()
        reported(self, job_info, *given, **named)

    def handle(self: Any, submission: Any) -> None:
        handled(self, submission)
        began = submitted.pop(submission, time.time())  # what the cluster refused to take made nothing
        for job in _members(submission):
            if any(os.path.exists(path) and os.path.getmtime(path) < began for path in job.output):
                job.register()

    executors.report_job_submission, executors.handle_job_error = report, handle


def count_queue(executors: Any) -> None:
    """Log which jobs were submitted together, and SLURM's number of waiting and running submissions after each poll."""
    reported, asleep = executors.report_job_submission, executors.sleep

    def report(self: Any, job_info: Any, *given: Any, **named: Any) -> None:
        jobs = [job.jobid for job in _members(job_info.job)]
        SAID.info(f"Submitted together: {jobs}", extra={"submitted": jobs})
        reported(self, job_info, *given, **named)

    async def sleep(self: Any) -> None:
        name = getattr(self, "run_uuid", None)  # of the SLURM plugin: every job of the run has it
        if name and self.active_jobs and shutil.which("squeue"):
            with suppress(subprocess.SubprocessError):
                command = ["squeue", "--noheader", f"--name={name}", "--states=PD,R,CG", "--format=%T"]
                states = subprocess.run(command, check=True, timeout=30, text=True, capture_output=True).stdout.split()
                queue = {"queued": states.count("PENDING"), "running": len(states) - states.count("PENDING")}
                SAID.info(f"In the queue: {queue}", extra={"queue": queue})
        await asleep(self)

    executors.report_job_submission, executors.sleep = report, sleep


def send_no_user_error_again(executors: Any) -> None:
    """Count the attempt of a submission as its last one if a log of its jobs ends with a user's error."""
    handled = executors.handle_job_error

    def handle(self: Any, submission: Any) -> None:
        handled(self, submission)
        if any(map(_is_user_error, (log for job in _members(submission) for log in job.log))):
            submission.attempt = submission.restart_times + 1

    executors.handle_job_error = handle


def _is_user_error(log: str) -> bool:
    """Return whether a step's log has the sentence of a user's error; a job removes the log of an earlier attempt."""
    try:
        return bool(USER_ERROR.search(Path(log).read_text(encoding="utf-8", errors="replace")))
    except OSError:
        return False


def _members(submission: Any) -> list[Any]:
    """Return the jobs of a submission."""
    return list(submission.jobs) if submission.is_group() else [submission]


def _identities(job: Any) -> list[str]:
    """Return the identity of the settings of a step's job; none for jobs of other Snakefiles, whose params may be
    anything.
    """
    with suppress(TypeError, ValueError):
        return [identity(json.loads(job.params.get("settings")))]
    return []
