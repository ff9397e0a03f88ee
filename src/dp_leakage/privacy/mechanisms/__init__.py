"""Mechanisms: every file of this folder defines one or more; `base` describes such a file.

>>> sorted(MECHANISMS)[:8]
['adaptive', 'automatic', 'banded', 'banded_optimal', 'blt', 'class', 'gaussian', 'normalize']
"""

from dataclasses import replace
from importlib import import_module
from pkgutil import iter_modules

from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.privacy.mechanisms.base import Accountant, Declaration

_FIRST = ("normalize", "gaussian", "vmf", "groups")  # order of these files; the others follow by name
_FILES = sorted(
    (found.name for found in iter_modules(__path__) if found.name != "base"),
    key=lambda name: (_FIRST.index(name) if name in _FIRST else len(_FIRST), name),
)
MECHANISM_FILES = tuple(f"{__name__}.{name}" for name in _FILES)
MECHANISMS: dict[str, Declaration] = {}
ACCOUNTANTS: dict[str, Accountant] = {}
for _file in _FILES:
    _module = import_module(f"{__name__}.{_file}")
    MECHANISMS |= _module.MECHANISMS
    ACCOUNTANTS |= _module.ACCOUNTANTS
BOUNDS = tuple(declared.bound for name, declared in MECHANISMS.items() if declared.bound == name in _FILES)


def noise_module(noise: str) -> str:
    """Dotted name of the module that defines a mechanism's noise or bound: a file of this folder, or a plugin."""
    return f"{__name__}.{noise}" if noise in _FILES else noise


def amount_of(noise: str) -> str:
    """Return the name of a noise's amount: the field of `Mechanism` that holds it."""
    return next((m.amount for m in MECHANISMS.values() if m.noise == noise), "noise_multiplier")


def with_amount(mechanism: Mechanism, amount: float) -> Mechanism:
    """Return the mechanism with this amount of its noise: σ, or κ."""
    if amount_of(mechanism.noise) == "kappa":
        return replace(mechanism, kappa=amount)
    return replace(mechanism, noise_multiplier=amount)
