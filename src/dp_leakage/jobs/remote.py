"""Cluster runs: submission, interruption and failed submissions (Snakemake 9.27, SLURM plugin 2.8).

A submission plans again where it runs, with the code and the study of that moment, while Snakemake records its files
as made by this run's plan. So each submission receives the planned identities, and its steps refuse any other.

Ctrl-C: Snakemake ends within seconds and cancels every job of the run. Without this module, it would wait for the
thread that polls the jobs' states, which sleeps between polls: 40 s, and 10 s more after each one without news, up to
180 s. During a poll, the executor's list of jobs is empty, so a Ctrl-C then cancels none.

A failed submission keeps finished files (``--keep-incomplete``). Without this module, Snakemake would record all of
its files as made by this run, even those of an earlier run that it did not reach, and would not make them again.
"""

import asyncio
import json
import shutil
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import version
from operator import attrgetter
from types import MethodType
from typing import Any

from dp_leakage.common.errors import UserError
from dp_leakage.common.identity import identity
from dp_leakage.jobs import PLANNED

# What is replaced here: not all of it is documented, so another Snakemake or plugin may lack it.
REPLACED = (
    "persistence.started",
    "scheduler._executor.sleep",
    "scheduler._executor.cancel_jobs",
    "scheduler._executor.get_job_exec_prefix",
)
LOOK = 0.5  # seconds


def take_over(workflow: Any) -> None:
    """Install all of these changes, for a run that submits jobs. Raises UserError if this Snakemake lacks a part."""
    for name in REPLACED:
        try:
            attrgetter(name)(workflow)
        except AttributeError:
            raise UserError(
                f"Snakemake {version('snakemake')} has no `workflow.{name}`, which runs on a cluster need: install the "
                "version that envs/constraints.txt names, or run without a cluster"
            ) from None
    tell_planned(workflow.scheduler._executor)
    end_soon(workflow.scheduler._executor)
    keep_records(workflow.persistence)


def tell_planned(executor: Any) -> None:
    """Make an executor pass to each submission the identities of the results that this run planned.

    It goes with the submission's own command, which any cluster and any storage hands on.
    """
    prefix = executor.get_job_exec_prefix

    def with_planned(own: Any, submission: Any) -> str:
        jobs = submission.jobs if submission.is_group() else [submission]
        planned = [name for job in jobs for name in _identities(job)]
        told = f"export {PLANNED}={':'.join(planned)}" if planned else ""
        return " && ".join(filter(None, (prefix(submission), told)))

    executor.get_job_exec_prefix = MethodType(with_planned, executor)


def _identities(job: Any) -> list[str]:
    """Return the identity of the settings of a step's job; none for jobs of other Snakefiles, whose params may be
    anything.
    """
    with suppress(TypeError, ValueError):
        return [identity(json.loads(job.params.get("settings")))]
    return []


def end_soon(executor: Any) -> None:
    """Make a cluster's executor stop while it sleeps, and cancel by the run's name the jobs that it lost track of."""
    asleep, cancel_jobs = executor.sleep, executor.cancel_jobs

    async def sleep(own: Any) -> None:
        sleeping = asyncio.ensure_future(asleep())
        while own.wait and not sleeping.done():
            await asyncio.wait([sleeping], timeout=LOOK)
        sleeping.cancel()

    def cancel(own: Any, active_jobs: Sequence[Any]) -> None:
        try:
            cancel_jobs(active_jobs)
        finally:
            name = getattr(own, "run_uuid", None)  # of the SLURM plugin: every job of the run has it
            if name and shutil.which("scancel"):
                subprocess.run(["scancel", "--name", name], check=False, timeout=60, capture_output=True)

    executor.sleep, executor.cancel_jobs = MethodType(sleep, executor), MethodType(cancel, executor)


def keep_records(persistence: Any) -> None:
    """Keep Snakemake's records of old files that a failed submission did not replace.

    The next run makes them again: they stay marked as incomplete, or, if the cluster refused the submission, as made
    by earlier settings.
    """
    from snakemake.io import is_flagged
    from snakemake.jobs import Job

    submitted: dict[Job, float] = {}
    started, postprocess = persistence.started, Job.postprocess

    def note(job: Job, *given: Any, **named: Any) -> None:
        submitted[job] = time.time()
        started(job, *given, **named)

    async def is_old(job: Job, path: Any) -> bool:
        # A job that updates a file may keep it.
        if is_flagged(path, "update") or not await path.exists():
            return False
        return bool((await path.mtime()).local_or_storage() < submitted[job])

    async def after(job: Job, *given: Any, error: bool = False, **named: Any) -> None:
        # What the cluster refused to take was never submitted, and made nothing.
        if error and (job not in submitted or any([await is_old(job, path) for path in job.output])):
            return
        await postprocess(job, *given, error=error, **named)

    persistence.started, Job.postprocess = note, after
