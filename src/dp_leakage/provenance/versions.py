"""The versions of what results depend on. Each training keeps its own, since an upgrade retrains nothing."""

import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version

PACKAGES = ("dp-leakage", "torch", "dp-accounting", "opacus", "numpy", "scipy", "scikit-learn", "pandas", "snakemake")


def versions() -> dict[str, str]:
    """Package → its version here, of those that are installed; Python's first."""
    return {"Python": platform.python_version()} | {name: found for name in PACKAGES if (found := _version(name))}


def of_page_and_trainings(here: Mapping[str, str], trainings: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Package → its version, in words that also name those of trainings that had another.

    >>> of_page_and_trainings({"torch": "2.13"}, [{"torch": "2.13"}, {"torch": "2.12"}, {"torch": "2.12"}])
    {'torch': '2.13 (2.12 in 2 of 3 target trainings)'}
    """
    said = {}
    for package, found in here.items():
        others = Counter(of.get(package, "none") for of in trainings)
        others.pop(found, None)
        words = ", ".join(f"{other} in {count:,}" for other, count in sorted(others.items()))
        said[package] = f"{found} ({words} of {len(trainings):,} target trainings)" if words else found
    return said


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
