"""Error messages of the checks of a study: one sentence with the key, its value and the valid values."""

from collections.abc import Iterable

from dp_leakage.common.errors import UserError, nearest


def require(holds: bool, complaint: str) -> None:
    """Raise UserError with ``complaint`` unless ``holds``."""
    if not holds:
        raise UserError(complaint)


def check_known(value: object, valid: Iterable[object], key: str) -> None:
    """Raise UserError unless ``value`` is one of ``valid``."""
    names = list(valid)
    require(value in names, f"key '{key}' is {value!r}; {nearest(value, names)}")
