"""Names for settings, and seeds from names: the same on every machine and in every order."""

import json
from hashlib import blake2b
from typing import Any


def canonical(settings: dict[str, Any]) -> str:
    """The one JSON spelling of settings that rules pass to steps and that identities are hashed from."""
    # `snakemake --report` puts it into a script, where a < of the user's could end that.
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
