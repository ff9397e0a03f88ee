"""Words of versions up to 0.2 that study files and commands may still say; they are read until 1.0."""

import re
from collections.abc import Mapping
from typing import Any

_BEGIN = {"initialisation": "initialization"}
ATTACKS = {"inversion_unpenalised": "inversion_unpenalized", "learnt_attribute": "learned_attribute"}
# Under which key → old key → today's.
KEYS: Mapping[str, Mapping[str, str]] = {
    "attacks": ATTACKS,
    "choose": _BEGIN,
    "settings": {"neighbours": "neighbors", "normalised": "normalized"},  # of figures
    "shokri": _BEGIN,
    "training": _BEGIN,
}
FOREIGN = ("architecture", "private", "source")  # under them stand arguments of the user's own code, as it calls them
_NORMALIZE = {"normalise": "normalize"}
# Where they stand → old word → today's. A cell's name holds the word of its defense and bound.
VALUES: Mapping[str, Mapping[str, str]] = {
    "attack": ATTACKS,
    "attacks": ATTACKS,
    "bound": _NORMALIZE,
    "canary": {"mislabelled": "mislabeled", "optimised": "optimized"},
    "cell": _NORMALIZE,
    "defense": _NORMALIZE,
    "metrics": {**ATTACKS, "mse_standardised": "mse_standardized"},  # of figures, such as ssim/iga
    "of_person": {"learnt": "learned"},
    "parts": ATTACKS,
}


def renamed(given: Any, key: str = "") -> Any:
    """What stands under a key of a study file, in today's words.

    An old key beside today's stays, so that the schema refuses it.

    >>> renamed({"initialisation": "glorot", "initialization": "torch"}, "training")
    {'initialisation': 'glorot', 'initialization': 'torch'}
    """
    match given:
        case Mapping() if key not in FOREIGN:
            keys = {old: new for old, new in KEYS.get(key, {}).items() if new not in given}
            return {keys.get(name, name): renamed(value, name) for name, value in given.items()}
        case list():
            return [renamed(value, key) for value in given]
        case str():
            return today(given, key)
    return given


def today(value: str, key: str) -> str:
    """A value in today's words.

    >>> today("mlp/gaussian-normalise-rdp-eps=1", "cell"), today("my.normalise", "bound")
    ('mlp/gaussian-normalize-rdp-eps=1', 'my.normalise')
    """
    for old, new in VALUES.get(key, {}).items():
        value = re.sub(rf"(?<![\w.:]){old}(?![\w.:])", new, value)
    return value


def seeded(name: str) -> str:
    """A cell's defense in the words from which seeds are drawn: those of version 0.2, so that no number changes.

    >>> seeded("gaussian-normalize-rdp-eps=1")
    'gaussian-normalise-rdp-eps=1'
    """
    return re.sub(r"(?<![\w.:])normalize(?![\w.:])", "normalise", name)
