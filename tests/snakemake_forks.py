"""Runs Snakemake in forks of a process that has made its imports, which take a second and a quarter.

Reads a line of JSON for each run, and prints the run's process, then its exit status.
"""

import json
import os
import sys
from typing import Any

import jsonschema  # noqa: F401
import requests  # noqa: F401
import smart_open  # noqa: F401
import snakemake.report.html_reporter  # noqa: F401
from snakemake.cli import main


def runs() -> Any:
    """Returns in the fork, with what it is to run."""
    for line in sys.stdin:
        child = os.fork()
        if not child:
            return json.loads(line)
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    sys.exit()


def become(folder: str, arguments: list[str], environment: dict[str, str], output: str) -> None:
    """What ``python -m snakemake`` is when it is started in a folder, in a session of its own, without input."""
    os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    written = os.open(output, os.O_WRONLY)
    for stream, place in enumerate((os.open(os.devnull, os.O_RDONLY), written, written)):
        os.dup2(place, stream)
    sys.path[:1] = [folder, *environment["PYTHONPATH"].split(os.pathsep)]
    sys.argv[:] = ["snakemake", *arguments]


become(**runs())
main()
