"""Snakemake's records of a file's settings and code, which it uses to detect changes."""

from base64 import urlsafe_b64encode
from pathlib import Path

NOTES = Path(".snakemake", "metadata")


def lost(file: Path) -> bool:
    """Return whether a file exists without its record, as in a copy of the results alone.

    ``file`` is relative, as Snakemake knows it, in the working folder; its path has at most 180 characters.
    """
    return file.exists() and not (NOTES / urlsafe_b64encode(str(file).encode()).decode()).exists()
