"""Snakemake's records of a file's settings and code, which it uses to detect changes."""

from base64 import urlsafe_b64encode
from pathlib import Path

NOTES = Path(".snakemake", "metadata")
DATABASE = NOTES.with_name("metadata.db")  # of --persistence-backend db


def lost(file: Path) -> bool:
    """Return whether a file exists without its record, as in a copy of the results alone. A database of records is not
    looked into.

    ``file`` is relative, as Snakemake knows it, in the working folder; its path has at most 180 characters.
    """
    return (
        file.exists()
        and not DATABASE.exists()
        and not (NOTES / urlsafe_b64encode(str(file).encode()).decode()).exists()
    )
