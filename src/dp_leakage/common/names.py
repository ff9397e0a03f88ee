"""What data sets, models, figures, studies and plugins may be called: names are parts of paths and of commands."""

import re

from dp_leakage.common.errors import UserError

NAME = re.compile(r"[a-z][a-z0-9_]*")
LONGEST = 60  # a file name has room for 255, of which what is made from it needs its share
VALID = f"up to {LONGEST} small letters, digits and _, a letter first"
# The workflow's own rules, whose names no target may have.
RULES = (
    "all", "prepare_dataset", "project_pca", "train_target", "train_auxiliary", "train_auxiliary_same", "time_training",
    "query", "fit_attack", "fit_attack_same", "attack", "attack_models", "reconstruct", "audit", "measure_training",
    "measure", "tune",
)  # fmt: skip
# What YAML reads as no text, and what files, folders and parts of a cell are called.
RESERVED = frozenset({
    *RULES, "true", "false", "null", "yes", "no", "on", "off", "y", "n", "none", "shadow", "reference", "figures",
    "benchmarks", "target", "models", "training", "curve", "scores", "images", "timing", "measured", "metrics",
    "report",
})  # fmt: skip


def check_name(name: object, what: str) -> None:
    """Refuse a name that is no name, or that means something else already.

    Args:
        name: the name.
        what: key or file that has it, for the complaint.

    Raises:
        UserError: it does not match ``NAME`` to the last character, is too long, or reserved.
    """
    if not isinstance(name, str) or not NAME.fullmatch(name) or len(name) > LONGEST:
        raise UserError(f"{what}: {name!r} is no name; valid are {VALID}")
    if name in RESERVED:
        raise UserError(f"{what}: '{name}' has a meaning of its own here; choose another name")
