"""Digests of the user's own files at the start of a run, for jobs on machines without the files."""

import json
import os
from collections.abc import Mapping

VARIABLE = "DP_LEAKAGE_CONTENTS"  # environment variable with them, as JSON: the file's name in the study → SHA-256


def known(name: str) -> str | None:
    """The digest of a file as the run found it; None outside a run's jobs, or of a file that the run does not read."""
    found = _all().get(name)
    return found if isinstance(found, str) else None


def tell(contents: Mapping[str, str]) -> None:
    """Tells the jobs of this process's run what it found."""
    os.environ[VARIABLE] = json.dumps({**_all(), **contents})


def _all() -> dict[str, object]:
    read = json.loads(os.environ.get(VARIABLE) or "{}")
    return read if isinstance(read, dict) else {}
