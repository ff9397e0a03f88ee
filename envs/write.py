"""Writes jobs.yaml, the conda environment of the workflow's jobs, from constraints.txt beside it.

    python envs/write.py    # in an environment that `make constraints` or `make install` made

The pins stand in the file itself: Snakemake copies it elsewhere and makes the environment anew when its text changes.
They are what a job needs: what the package needs (with the extra ``tabular``), but not Snakemake, and what these need
in turn. One file serves CPUs and GPUs, as PyTorch's own wheels do.
"""

import re
import tomllib
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement

ENVS = Path(__file__).parent
WITH_PYTHON = {"pip", "setuptools", "wheel"}  # they come with conda's Python
FILE = """\
# What jobs run in under --sdm conda.
# Written by envs/write.py from constraints.txt; do not edit it by hand.
channels:
  - conda-forge
  - nodefaults
dependencies:
  - python =3.11
  - pip
  - pip:
{lines}
"""


def plain(name: str) -> str:
    """Return a package's name as pip compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins() -> dict[str, str]:
    """Return package → the line of constraints.txt that pins it."""
    lines = (ENVS / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return {plain(line.partition("==")[0]): line for line in lines if "==" in line}


def needed() -> set[str]:
    """Return the packages that a job needs, as the metadata of this environment's packages name them."""
    project = tomllib.loads((ENVS.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = project["dependencies"] + project["optional-dependencies"]["tabular"]
    left = [need for need in map(Requirement, asked) if not need.name.startswith("snakemake")]
    found: set[str] = set()
    while left:
        need = left.pop()
        if plain(need.name) in found | WITH_PYTHON:
            continue
        found.add(plain(need.name))
        for text in distribution(need.name).requires or []:
            further = Requirement(text)
            if further.marker is None or any(further.marker.evaluate({"extra": one}) for one in need.extras or {""}):
                left.append(further)
    # PyTorch with CUDA pins NVIDIA's packages itself.
    return {name for name in found if not name.startswith(("nvidia-", "cuda-", "triton"))}


def text() -> str:
    """Return the text of jobs.yaml."""
    pinned = pins()
    return FILE.format(lines="\n".join(f"    - {pinned[name]}" for name in sorted(needed())))


if __name__ == "__main__":
    (ENVS / "jobs.yaml").write_text(text(), encoding="utf-8")
