"""Names for settings, and seeds from names: the same on every machine and in every order."""

import json
from hashlib import blake2b
from typing import Any


def canonical(settings: dict[str, Any]) -> str:
    """Settings as JSON, always spelled the same way: rules pass this text to steps, and identities are its hashes."""
    # `snakemake --report` puts this text into a script, which a < in the user's text could end.
    return json.dumps(settings, sort_keys=True, separators=(",", ":")).replace("<", "\\u003c")


def identity(settings: dict[str, Any]) -> str:
    """16 hexadecimal digits that name these settings; the order of keys does not count."""
    return blake2b(canonical(settings).encode(), digest_size=8).hexdigest()


def derived_seed(*parts: object) -> int:
    """A seed in [0, 2⁶³) from names and numbers.

    >>> derived_seed(1, "digits") == derived_seed(1, "digits") != derived_seed(2, "digits")
    True
    """
    return int.from_bytes(blake2b("\0".join(map(str, parts)).encode(), digest_size=8).digest(), "big") >> 1
