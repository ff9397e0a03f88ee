"""Digests of the user's own files at the start of a run, for jobs on machines without the files."""

import json
import os
from collections.abc import Mapping

VARIABLE = "DP_LEAKAGE_CONTENTS"  # environment variable with them, as JSON: the file's name in the study → SHA-256


def known(name: str) -> str | None:
    """Return the digest of a file at the start of the run; None outside a run's jobs, or for other files."""
    found = _all().get(name)
    return found if isinstance(found, str) else None


def tell(contents: Mapping[str, str]) -> None:
    """Pass the digests of this process to the jobs of its run."""
    os.environ[VARIABLE] = json.dumps({**_all(), **contents})


def _all() -> dict[str, object]:
    read = json.loads(os.environ.get(VARIABLE) or "{}")
    return read if isinstance(read, dict) else {}
