"""How well inputs are rebuilt from each layer: what the inversion figures and tables share."""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from dp_leakage.common.errors import UserError
from dp_leakage.metrics.intervals import Estimate, ratio
from dp_leakage.table.frames import metric_rows

MEAN = "mean"  # the data set that means over data sets are filed under
MEASURED = ["value", "low", "high"]


def layer_rows(frame: pd.DataFrame, attack: str, layers: Sequence[str]) -> pd.DataFrame:
    """Mean reconstruction errors (mse) of an attack on the layers.

    Raises:
        UserError: nothing was measured for a layer.
    """
    rows = metric_rows(frame, "mse", attack=attack, statistic="mean")
    for layer in layers:
        if layer not in set(rows["layer"]):
            raise UserError(f"figure setting 'layers': nothing was measured for the layer '{layer}'")
    return rows[rows["layer"].isin(layers)]


def mean_over_datasets(rows: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Rows of ``value``, ``low``, ``high`` averaged over data sets, one per combination of the columns ``by``.

    The data sets' errors are independent, so half-widths add in squares. Of the cell's other columns the first data
    set's stand, but ``dataset`` is ``MEAN`` and ``n_members`` the fewest.
    """
    found = [_mean(part) for _, part in rows.groupby([*by], sort=False, dropna=False)]
    return pd.DataFrame(found).infer_objects().reset_index(drop=True)


def _mean(part: pd.DataFrame) -> pd.Series:
    value = part["value"].mean()
    below, above = (
        np.sqrt((width**2).sum()) / len(part) for width in (part["value"] - part["low"], part["high"] - part["value"])
    )
    own = {"dataset": MEAN, "n_members": part["n_members"].min(), "noise_multiplier": np.nan}
    own |= {"value": value, "low": value - below, "high": value + above}
    own |= {"guessing": part["guessing"].mean()} if "guessing" in part else {}
    return pd.concat([part.iloc[0].drop([*own]), pd.Series(own)])


def change_percent(rows: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Rows of defended cells with their change against the undefended cell in percent, 100 (x/x₀ − 1).

    Both are taken as independent, which is on the safe side where they were measured on the same records.

    Args:
        rows: rows of ``value``, ``low``, ``high`` of all cells.
        keys: columns that a row shares with its undefended counterpart.

    Raises:
        UserError: there is no undefended cell.
    """
    plain = rows[rows["mechanism"] == "none"]
    if plain.empty:
        raise UserError("figure: changes are against the undefended model; select the cell 'none' too")
    base = dict(_keyed(plain, keys))
    defended = rows[rows["mechanism"] != "none"]
    changes = [ratio(estimate, base[key]) for key, estimate in _keyed(defended, keys)]
    in_percent = {name: [100 * (change[place] - 1) for change in changes] for place, name in enumerate(MEASURED)}
    return defended.assign(**in_percent)


def _keyed(rows: pd.DataFrame, keys: Sequence[str]) -> Iterator[tuple[tuple[str, ...], Estimate]]:
    for key, numbers in zip(rows[[*keys]].itertuples(index=False), rows[MEASURED].to_numpy(), strict=True):
        yield tuple(key), Estimate(*map(float, numbers))
