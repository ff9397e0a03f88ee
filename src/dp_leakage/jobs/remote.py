"""Cluster runs: submission, interruption and failed submissions, by the interface that Snakemake's executors share.

A submission plans again where it runs, with the code and the study of that moment, while Snakemake records its files
as made by this run's plan. So each submission receives the planned identities, and its steps refuse any other.

Ctrl-C: Snakemake ends within seconds and cancels every job of the run. Without this module, it would wait for the
thread that polls the jobs' states, which sleeps between polls: 40 s, and 10 s more after each one without news, up to
180 s. During a poll, the executor's list of jobs is empty, so a Ctrl-C then cancels none.

A failed submission keeps finished files (``--keep-incomplete``). Snakemake records all of its files as made by this
run, even those of an earlier run that it did not reach. They are marked as incomplete, so the next run makes them.
"""

import asyncio
import json
import os
import shutil
import subprocess
import time
from contextlib import suppress
from typing import Any

from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor

from dp_leakage.common.identity import identity
from dp_leakage.jobs import PLANNED

LOOK = 0.5  # seconds


def improve(executors: Any = RemoteExecutor) -> None:
    """Change these four things of a class of executors. A plugin that overrides one of its methods keeps its own."""
    tell_planned(executors)
    end_soon(executors)
    mark_unmade(executors)


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
