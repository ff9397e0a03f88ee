"""All records of a source, for the steps that load one."""

from pathlib import Path

from dp_leakage.common.errors import UserError
from dp_leakage.common.paths import user_path
from dp_leakage.data import load
from dp_leakage.data.raw import Raw
from dp_leakage.data.trees import content_of, content_of_source
from dp_leakage.steps import Json


def read_source(source: Json, content: str | None, data_dir: Path) -> Raw:
    """Read the records from the user's own files or a published set, unchanged.

    Args:
        source: as ``data.resolve`` returns it.
        content: digest of the user's files when the run was planned; None for other sources.
        data_dir: folder of published sets.

    Raises:
        UserError: as `data.load`, or a file has changed since.
    """
    raw = load(source, data_dir)
    found = content_of_source(source, lambda key: content_of(user_path(source[key])))
    if content not in (None, found):
        raise UserError(f"{source['path']} has changed since this run began; run the same command again")
    return raw
