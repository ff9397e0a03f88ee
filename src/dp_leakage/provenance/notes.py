"""Snakemake's notes on what made a file, by which it sees that a setting or the code was changed."""

from base64 import urlsafe_b64encode
from pathlib import Path

NOTES = Path(".snakemake", "metadata")


def lost(file: Path) -> bool:
    """Whether a file lies here without its note, as in a copy of the results alone.

    ``file`` is relative, as Snakemake knows it, in the working folder; its path has at most 180 characters.
    """
    return file.exists() and not (NOTES / urlsafe_b64encode(str(file).encode()).decode()).exists()
