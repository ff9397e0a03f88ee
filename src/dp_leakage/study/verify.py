"""Integrity check of a study's files by their embedded digests."""

from collections.abc import Callable, Iterable
from pathlib import Path

from dp_leakage.common.errors import UserError
from dp_leakage.provenance.files import REBUILD, verify_checksum

SHOWN = 5  # the most names in a complaint


def check_content(paths: Iterable[Path]) -> int:
    """Refuse files in which even one byte has changed; return the number of files read.

    Each file holds a digest of itself. A figure's PNG or HTML holds the digests of its other files.

    Raises:
        UserError: names them.
    """
    paths = [path for path in paths if path.suffix in CHECKS]
    bad = []
    for path in paths:
        try:
            CHECKS[path.suffix](path)
        except UserError:
            bad.append(str(path))
    if bad:
        more = f" and {len(bad) - SHOWN} more" if len(bad) > SHOWN else ""
        each = ", each" if len(bad) > 1 else ""
        raise UserError(f"{', '.join(bad[:SHOWN])}{more}{each} is damaged: {REBUILD}")
    return len(paths)


def _of_figure(path: Path) -> None:
    from dp_leakage.figures.files import check_file

    check_file(path)


CHECKS: dict[str, Callable[[Path], None]] = {
    **dict.fromkeys((".npz", ".safetensors", ".parquet", ".json", ".html"), verify_checksum),
    **dict.fromkeys((".png", ".pdf", ".tex", ".csv"), _of_figure),
}
