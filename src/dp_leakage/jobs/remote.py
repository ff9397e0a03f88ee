"""Ctrl-C on a cluster:

Snakemake ends within seconds and cancels every job of the run. After cancelling its jobs, Snakemake 9.27's cluster
executor waits for the thread that asks for their states. That thread sleeps between two questions: 40 s with the SLURM
plugin 2.8, and 10 s more after each one without news, up to 180 s. While it asks, the executor's list of jobs is empty,
so a Ctrl-C then cancels none.
"""

import asyncio
import shutil
import subprocess
from collections.abc import Sequence
from types import MethodType
from typing import Any

LOOK = 0.5  # seconds


def end_soon(executor: Any) -> None:
    """Makes a cluster's executor stop while it sleeps, and cancel by the run's name the jobs that it lost track of."""
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
