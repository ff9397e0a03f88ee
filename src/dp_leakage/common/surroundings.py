"""Environment that a process needs before anything is imported. Imports nothing that takes time or memory."""

import os
import sys
from collections.abc import Iterable
from contextlib import suppress

from dp_leakage.common.errors import UserError

PROBE = 2**16  # bytes that a folder must have room for
LIBRARIES = (
    "torch",
    "opacus",
    "numpy",
    "scipy",
    "sklearn",
    "lightgbm",
    "pandas",
    "matplotlib",
    "seaborn",
    "snakemake",
    "yaml",
)
LEAST = 3 * 2**30  # bytes of address space in which all libraries load


def check_surroundings() -> None:
    """End this process with one sentence where the working folder was deleted or no library could be loaded."""
    complaint = _of_folder() or _of_libraries() or _of_memory()
    if complaint:
        print(f"error: {complaint}", file=sys.stderr, flush=True)
        os._exit(1)


def _of_folder() -> str:
    try:
        os.getcwd()
    except FileNotFoundError:
        return "the current folder was deleted; change to one that exists, and run it again"
    return ""


def _of_libraries() -> str:
    """Name a file that jobs would import in place of a library, from the working folder or PYTHONPATH."""
    for folder in ("", *os.environ.get("PYTHONPATH", "").split(os.pathsep)):
        for name in LIBRARIES:
            file = os.path.join(folder, f"{name}.py")
            if os.path.isfile(file):
                return (
                    f"{file} hides the library {name}; rename it, or run in another folder and without it in PYTHONPATH"
                )
    return ""


def _of_memory() -> str:
    try:
        import resource
    except ImportError:  # not Unix, which has no such limit
        return ""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY or limit >= LEAST:
        return ""
    return (
        f"the address space of this process is limited to {limit / 2**20:,.0f} MiB; it must be {LEAST // 2**20:,} MiB "
        f"or more. Raise the limit: ulimit -v {LEAST // 2**10}"
    )


def check_writable(folders: Iterable[str]) -> None:
    """Create folders if necessary and raise UserError if one is not writable."""
    for name in folders:
        probe = os.path.join(name, f".probe.{os.getpid()}")
        try:
            os.makedirs(name, exist_ok=True)
            with open(probe, "wb") as file:
                file.write(b"0" * PROBE)
            os.remove(probe)
        except OSError as error:
            with suppress(OSError):
                os.remove(probe)
            words = f"{name} cannot be written: {error.strerror}; fix that, and run the same command again"
            raise UserError(words) from None
