"""Environment variables for jobs, read by the workflow's rules and the benchmarks."""

import os
from pathlib import Path

ENVIRONMENT = {
    # One process per core: two threads per process were several times slower as soon as a neighbor was busy.
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    # glibc: keep freed memory. By default large blocks (above 32 MB at most) are returned and page-faulted in again at
    # each step.
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": "100000000000",
    "MALLOC_TOP_PAD_": "268435456",
    # Pictures are files. A nonsensical setting of windows in the user's shell would otherwise end a job at its import.
    "MPLBACKEND": "agg",
    # Arrow's second allocator, which starts no thread of its own that a fork would lose.
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}


def path_with(interpreter: str) -> str:
    """Return PATH with the folder of an interpreter first, so that a job's command starts the ``python`` there."""
    return os.pathsep.join([str(Path(interpreter).parent), os.environ.get("PATH", os.defpath)])
