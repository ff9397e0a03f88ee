"""Identities of settings and seeds derived from names, equal on every machine and in every order."""

import json
import re
from hashlib import blake2b
from pathlib import PurePosixPath
from typing import Any


def canonical(settings: dict[str, Any]) -> str:
    """Return settings as JSON in a unique spelling: rules pass this text to steps, and identities are its hashes."""
    # `snakemake --report` puts this text into a script, which a < in the user's text could end.
    return json.dumps(settings, sort_keys=True, separators=(",", ":")).replace("<", "\\u003c")


def identity(settings: dict[str, Any]) -> str:
    """Return 16 hexadecimal digits that identify these settings, `portable` or not; the order of keys
    does not matter.
    """
    return blake2b(_portable(canonical(settings)).encode(), digest_size=8).hexdigest()


def portable(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings with each path outside the working folder replaced by the file's name and a digest of the
    path.

    Results hold them so, since the folders of a machine tell who uses it.

    >>> portable({"path": "/home/ann/data/x.csv", "other": "data/x.csv"})
    {'other': 'data/x.csv', 'path': 'x.csv#99a5fc11'}
    """
    found: dict[str, Any] = json.loads(_portable(canonical(settings)))
    return found


OUTSIDE = re.compile(r'(?<!\\)"(?:/|~[^"/ ]*/|(?:[^"\\]*/)?\.\./)(?:[^"\\]|\\.)*"(?!:)')  # such a value in JSON


def _portable(text: str) -> str:
    def named(found: re.Match[str]) -> str:
        path = json.loads(found[0])
        return json.dumps(f"{PurePosixPath(path).name}#{blake2b(path.encode(), digest_size=4).hexdigest()}")

    return OUTSIDE.sub(named, text)


def derived_seed(*parts: object) -> int:
    """Return a seed in [0, 2⁶³) from names and numbers.

    >>> derived_seed(1, "digits") == derived_seed(1, "digits") != derived_seed(2, "digits")
    True
    """
    return int.from_bytes(blake2b("\0".join(map(str, parts)).encode(), digest_size=8).digest(), "big") >> 1
