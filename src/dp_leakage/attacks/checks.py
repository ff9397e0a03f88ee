"""Checks of a user attack's result before it is written, since the measuring step relies on every column."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from dp_leakage.attacks import CLOSENESS, COLUMNS, PICTURING
from dp_leakage.common.errors import UserError

KINDS = {"whole numbers": "iu", "values": "iub", "truth values": "b", "numbers": "iuf"}


def checked_scores(scored: Any, who: str, family: str, models: int) -> tuple[pd.DataFrame, dict[str, np.ndarray]]:
    """Check and return the frame and the images of a plugin's ``score``; only some families produce images.

    Args:
        scored: the plugin's result.
        who: the plugin and its attack, for the error message (`user_code.whose`).
        family: of the attack.
        models: number of target models; repeats are numbered from 0 to one less.

    Raises:
        UserError: names the plugin, and the column that is missing or wrong.
    """
    where = f"{who}: score returns"
    pictures: Any = {}
    if family in PICTURING:
        if not isinstance(scored, tuple) or len(scored) != 2:
            raise UserError(f"{where} {type(scored).__name__}; the family {family} returns (frame, pictures)")
        scored, pictures = scored
    if not isinstance(scored, pd.DataFrame):
        raise UserError(f"{where} {type(scored).__name__}; expected a pandas.DataFrame, see `membership_frame`")
    if scored.empty:
        raise UserError(f"{where} no rows; expected one for each model and record")
    measures = [column for column in CLOSENESS if family in PICTURING and column in scored]
    for column, kind in (dict.fromkeys(measures, "numbers") | COLUMNS[family]).items():
        if column not in scored:
            raise UserError(f"{where} no column {column!r}; the family {family} has {', '.join(COLUMNS[family])}")
        if scored[column].dtype.kind not in KINDS[kind]:
            raise UserError(f"{where} a column {column!r} of {scored[column].dtype}; expected {kind}")
        if not np.isfinite(scored[column].to_numpy(dtype=np.float64)).all():
            raise UserError(f"{where} numbers in column {column!r} that are not finite")
    if family in PICTURING and not measures:
        raise UserError(f"{where} no measure of its pictures; expected at least one of {', '.join(CLOSENESS)}")
    if not scored["repeat"].between(0, models - 1).all():
        raise UserError(f"{where} a repeat beyond the models, whose numbers are 0 to {models - 1}")
    return scored, checked_arrays(pictures, f"{where} pictures that are")


def check_said(said: Any, who: str, family: str, shape: tuple[int, int]) -> None:
    """Refuse the result of a plugin's ``score`` of signals unless it is a named tuple of arrays (`signals.Scores`).

    Args:
        said: the plugin's result.
        who: the plugin and its attack, for the error message (`user_code.whose`).
        family: of the attack.
        shape: (models, queried records), of each array.

    Raises:
        UserError: names the plugin, and the array that is missing or wrong.
    """
    where = f"{who}: score returns"
    wanted = {name: kind for name, kind in COLUMNS[family].items() if name not in ("repeat", "record", "member")}
    if not hasattr(said, "_asdict") or set(said._asdict()) != set(wanted):
        raise UserError(f"{where} {type(said).__name__}; expected a named tuple of {' and '.join(wanted)}")
    for name, kind in wanted.items():
        array = getattr(said, name)
        if not isinstance(array, np.ndarray) or array.dtype.kind not in KINDS[kind]:
            raise UserError(
                f"{where} {getattr(array, 'dtype', type(array).__name__)} as {name}; expected an array of {kind}"
            )
        if array.shape != tuple(shape):
            raise UserError(
                f"{where} {name} of shape {array.shape}; expected {tuple(shape)}, models by queried records"
            )
        if not np.isfinite(array).all():
            raise UserError(f"{where} numbers in {name} that are not finite")


def checked_arrays(arrays: Any, where: str) -> dict[str, np.ndarray]:
    """Return arrays of numbers by name. Raises UserError, whose sentence begins with ``where``, for anything else."""
    if not isinstance(arrays, Mapping):
        raise UserError(f"{where} {type(arrays).__name__}; expected a dict of arrays by name")
    for name, array in arrays.items():
        if not isinstance(name, str) or not isinstance(array, np.ndarray) or array.dtype.kind not in "biuf":
            raise UserError(f"{where} {type(array).__name__} under {name!r}; expected numpy arrays of numbers by name")
    return dict(arrays)
