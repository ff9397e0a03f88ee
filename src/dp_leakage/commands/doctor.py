"""``dp-leakage doctor``: what is installed, and what a run here would use."""

import os
import platform
import re
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from dp_leakage import __version__
from dp_leakage.common.places import REPOSITORY
from dp_leakage.options.doctor import parser

PIN = re.compile(r"([A-Za-z0-9_.-]+)==([^\s;]+)")


def main(words: Sequence[str]) -> int:
    """Print it."""
    parser().parse_args(words)
    pins = PIN.findall((REPOSITORY / "envs" / "constraints.txt").read_text(encoding="utf-8"))
    print(f"dp-leakage {__version__}, Python {platform.python_version()}, {len(os.sched_getaffinity(0))} cores")
    print(f"Workflow: {REPOSITORY}")
    config = "config.yaml of this folder" if Path("config.yaml").exists() else "none here, so the defaults hold"
    print(f"Config: {config}")
    other = [f"{name} {own} (tested: {pin})" for name, pin in pins if (own := _version(name)) not in ("", pin)]
    print(
        "\n".join(["Packages of other versions than those that are tested:", *other])
        if other
        else "Packages: as tested"
    )
    return 0


def _version(name: str) -> str:
    """Return the version of a package without its build; "" if it is not installed."""
    try:
        return version(name).partition("+")[0]
    except PackageNotFoundError:
        return ""
