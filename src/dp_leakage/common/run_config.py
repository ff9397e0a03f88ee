"""config.yaml: the settings of a run that do not belong to a study."""

from pathlib import Path

from dp_leakage.common.places import REPOSITORY
from dp_leakage.common.yaml_files import Json, read_yaml

CONFIG = Path("config.yaml")


def read_config(repository: Path = REPOSITORY) -> Json:
    """Return the config of the working folder: its own config.yaml merged over the workflow's.

    A working folder needs no config.yaml, and need not repeat what it does not change.

    Args:
        repository: the folder that holds ``workflow``, with the config.yaml of every key.

    Raises:
        UserError: a file is missing in ``repository``, or is not a YAML mapping.
    """
    if repository.resolve() == Path.cwd():
        return read_yaml(CONFIG)
    whole = read_yaml(repository / CONFIG)
    return whole | read_yaml(CONFIG) if CONFIG.exists() else whole
