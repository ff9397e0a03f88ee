"""Valid names of data sets, models, figures, studies and plugins. Names become parts of paths and of commands."""

import re

from dp_leakage.common.errors import UserError

NAME = re.compile(r"[a-z][a-z0-9_]*")
LONGEST = 60  # a file name has room for 255 characters, and names are joined with other words
VALID = f"up to {LONGEST} lowercase letters, digits and _, a letter first"
# The workflow's own rules. No target may have one of their names.
RULES = (
    "all", "prepare_dataset", "learn_features", "project_pca", "train_target", "train_auxiliary",
    "train_auxiliary_same", "time_training", "query", "fit_attack", "fit_attack_same", "reconstruct", "audit",
    "measure", "tune",
)  # fmt: skip
# Words that YAML does not read as text, and the names of files, folders and parts of a cell.
YAML = ("true", "false", "null", "yes", "no", "on", "off", "y", "n")
RESERVED = frozenset({
    *RULES, *YAML, "none", "shadow", "reference", "figures",
    "target", "models", "training", "curve", "proven", "coins", "strongest", "scores", "images", "timing",
    "measured", "metrics", "report", "verify", "release", "groups", "structure",
})  # fmt: skip


def check_name(name: object, what: str) -> None:
    """Refuse a name that is not valid or already means something else.

    Args:
        name: the name.
        what: key or file that has it, for the error message.

    Raises:
        UserError: it does not match ``NAME`` to the last character, is too long, or reserved.
    """
    if not isinstance(name, str) or not NAME.fullmatch(name) or len(name) > LONGEST:
        raise UserError(f"{what}: {name!r} is not a valid name; expected {VALID}")
    if name in RESERVED:
        raise UserError(f"{what}: '{name}' is reserved here for {_meaning(name)}; choose another name")


def _meaning(name: str) -> str:
    """Return the meaning of a reserved name."""
    if name in RULES:
        return "a rule of the workflow"
    return "a word of YAML" if name in YAML else "a part, file or folder of results"
