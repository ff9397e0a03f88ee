"""Versions of packages that affect results. Each training stores its own, since an upgrade does not retrain."""

import platform
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version

PACKAGES = ("dp-leakage", "torch", "dp-accounting", "numpy", "scipy", "scikit-learn", "pandas", "snakemake")

COMPUTING = ("torch", "opacus", "numpy", "scipy", "sklearn", "lightgbm", "pandas", "matplotlib", "seaborn")  # modules


def versions(*further: str) -> dict[str, str]:
    """Return package → version here, Python's first, for packages that every result depends on and ``further`` ones.

    Packages that are not installed are left out.
    """
    named = (*PACKAGES, *further)
    return {"Python": platform.python_version()} | {name: found for name in named if (found := _version(name))}


def imported() -> dict[str, str]:
    """Return module → version, Python's first, for imported modules that compute."""
    found = {name: getattr(sys.modules.get(name), "__version__", None) for name in COMPUTING}
    return {"Python": platform.python_version()} | {name: version for name, version in found.items() if version}


def of_page_and_trainings(here: Mapping[str, str], trainings: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return package → version, with a remark on trainings that had another version.

    >>> of_page_and_trainings({"torch": "2.13"}, [{"torch": "2.13"}, {"torch": "2.12"}, {"torch": "2.12"}])
    {'torch': '2.13 (2.12 in 2 of 3 target trainings)'}
    >>> of_page_and_trainings({}, [{"opacus": "1.6"}, {"opacus": "1.6"}, {}])
    {'opacus': '1.6'}
    """
    said = {}
    for package in dict.fromkeys([*here, *(name for of in trainings for name in of)]):
        others = Counter(of[package] for of in trainings if package in of)
        found = here.get(package) or others.most_common(1)[0][0]
        others.pop(found, None)
        words = ", ".join(f"{other} in {count:,}" for other, count in sorted(others.items()))
        said[package] = f"{found} ({words} of {len(trainings):,} target trainings)" if words else found
    return said


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
