"""``dp-leakage doctor``: installed packages, and the resources that a run here would use."""

import os
import platform
import re
import shutil
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from dp_leakage import __version__
from dp_leakage.commands.studies import studies_in
from dp_leakage.common.places import PROFILES, REPOSITORY
from dp_leakage.options.doctor import parser

PIN = re.compile(r"^([A-Za-z0-9_.-]+)==([^\s;]+)", re.MULTILINE)
TOOLS = {"sbatch": "--on slurm", "apptainer": "--sdm apptainer", "conda": "--sdm conda", "rsync": "--on storage"}


def main(words: Sequence[str]) -> int:
    """Print the report; return 1 if a run cannot start."""
    options = parser().parse_args(words)
    constraints = (REPOSITORY / "envs" / "constraints.txt").read_text(encoding="utf-8")
    if options.constraints:
        print(constraints, end="")
        return 0
    pins = dict(PIN.findall(constraints))
    own = {name: _version(name) for name in {*pins, *_needs()}}
    other = [f"{name} {own[name]} (tested: {pin})" for name, pin in sorted(pins.items()) if own[name] not in ("", pin)]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    print(f"dp-leakage {__version__}, Python {platform.python_version()}, {cores} cores")
    print(f"Disk: {shutil.disk_usage('.').free / 2**30:.1f} GiB free here")
    print(f"Workflow: {REPOSITORY}")
    print(f"Profiles: {PROFILES / 'slurm'} and {PROFILES / 'storage'}; a copy in profiles/ here comes first")
    config = "config.yaml of this folder" if Path("config.yaml").exists() else "none here, so the defaults hold"
    print(f"Config: {config}")
    print(f"Studies of yours: {', '.join(sorted(studies_in(Path('studies')))) or 'none in studies/'}")
    print("\n".join(["Packages of other versions than tested:", *other]) if other else "Packages: as tested")
    for tool, use in TOOLS.items():
        print(f"{tool}: {shutil.which(tool) or f'not found; {use} needs it'}")
    wrong = [f"package {name} is not installed: pip install dp-leakage" for name in _needs() if not own[name]]
    if not Path(sys.executable).with_name("python").exists():
        wrong.append(f"{Path(sys.executable).parent} has no `python`, which jobs start; use a virtual environment")
    if not os.access(".", os.W_OK):
        wrong.append("this folder cannot be written; change to one that can")
    for sentence in wrong:
        print(f"error: {sentence}", file=sys.stderr)
    return 1 if wrong else 0


def _needs() -> list[str]:
    """Return the required packages; empty if this package is not installed."""
    try:
        lines = requires("dp-leakage") or []
    except PackageNotFoundError:
        return []
    return sorted(re.split(r"[^A-Za-z0-9._-]", line, maxsplit=1)[0] for line in lines if "extra ==" not in line)


def _version(name: str) -> str:
    """Return the version of a package without its build; "" if it is not installed."""
    try:
        return version(name).partition("+")[0]
    except PackageNotFoundError:
        return ""
