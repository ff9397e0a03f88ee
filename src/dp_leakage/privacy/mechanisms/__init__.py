"""The mechanisms: one file each, found by being in this folder. `base` says what a file holds.

>>> list(MECHANISMS)
['normalise', 'gaussian', 'vmf', 'class', 'subclass', 'banded']
"""

from importlib import import_module
from pkgutil import iter_modules

from dp_leakage.privacy.mechanisms.base import Accountant, Declaration

_FIRST = ("normalise", "gaussian", "vmf", "groups")  # of the files; the others follow by name
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


def noise_module(noise: str) -> str:
    """Dotted name of the module that defines a mechanism's noise, or its bound: one of this folder, or a plugin."""
    return f"{__name__}.{noise}" if noise in _FILES else noise


def amount_of(noise: str) -> str:
    """What the amount of a noise is called: the field of `Mechanism` that holds it."""
    return next((m.amount for m in MECHANISMS.values() if m.noise == noise), "noise_multiplier")
