"""Selection of one figure's rows from all cells' metrics, joined with published numbers and sorted. Pure.

Columns of a metrics frame: ``metric``, ``repeat`` ("0", "1", … or "all"), ``value``, ``low``, ``high``, the qualifiers
of `metrics.rows` (``attack``, ``fpr``, …; "" or NaN where they do not apply), and of the cell: ``study``, ``dataset``,
``model``, ``defense``, ``mechanism``, ``accountant``, ``unit``, ``block``, ``bound`` ("" if none), ``epsilon``
(nominal), ``delta``, ``noise_multiplier`` (NaN if none), ``epochs``, ``n_members``, ``n_nonmembers``,
``accounting_note`` (the study's note on this ε; optional). Figures draw the rows of repeat "all".
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dp_leakage.common.errors import UserError, nearest
from dp_leakage.metrics import utility
from dp_leakage.metrics.measure import STRONGEST
from dp_leakage.metrics.rows import CELL, QUALIFIERS, fitting, is_empty, qualifiers, told, words_of
from dp_leakage.metrics.runs import ALL
from dp_leakage.table.looks import Series, order
from dp_leakage.table.published import with_published
from dp_leakage.table.words import name

NAMES = [*CELL, *Series._fields]
OF_CELL = [*NAMES, "epsilon", "delta", "noise_multiplier"]
FURTHER = ["sampler", "partition", "most", "guessing"]  # of the cell, kept where they say something
GUESSING = {  # of a model that only guesses
    "test_accuracy": "guessing_accuracy",
    "accuracy_loss": "guessing_loss",
    utility.METRIC: utility.GUESSING,
    utility.LOSS: utility.GUESSING_LOSS,
}
IN_USE = {"test_accuracy": utility.METRIC, "accuracy_loss": utility.LOSS}  # in data sets with another measure of use
NUMBERS = ["metric", "measured", "low", "high", "published", "inside"]
ADVANTAGES = {"best": "reached_advantage", "own": "membership_advantage"}  # by where the threshold comes from


def chosen(metrics: pd.DataFrame, settings: Mapping[str, Any]) -> pd.DataFrame:
    """Select the rows over all repeats of the data sets, models and units in the settings (None: all).

    Training histories, which have no column ``metric``, keep their repeats. Non-private rows have no unit and are kept
    whatever the unit.

    Raises:
        UserError: a name that no cell has.
    """
    frame = metrics[metrics["repeat"] == ALL] if "metric" in metrics else metrics
    frame = frame.assign(**{column: frame[column].fillna("") for column in NAMES if column in frame})
    private = is_private(frame)
    frame = frame.assign(**{column: frame[column].where(private, "") for column in ("unit", "block", "bound")})
    for key in ("dataset", "model", "unit"):
        wanted = listed(settings.get(key))
        if not wanted:
            continue
        for value in wanted:
            if value not in set(frame[key]):
                known = nearest(value, set(frame[key]) - {""})
                raise UserError(f"figure setting '{key}': no cell has '{value}'; {known}")
        kept = {*wanted, ""} if key == "unit" else {*wanted}
        frame = frame[frame[key].isin(kept)]
    return frame


def listed(value: Any) -> list[Any]:
    """Return a list: None → [], a name → [name], a list unchanged."""
    return [] if value is None else [value] if isinstance(value, str | float | int) else list(value)


def require_scores(frame: pd.DataFrame, key: str, column: str, names: Iterable[str]) -> None:
    """Raise UserError, naming the figure's setting ``key``, for a name that no row of ``column`` has."""
    there = set(frame[column].unique())
    for value in names:
        if value not in there:
            known = nearest(value, there)
            raise UserError(f"figure setting '{key}': the figure has no scores of '{value}'; {known}")


def metric_rows(frame: pd.DataFrame, metric: str, **conditions: Any) -> pd.DataFrame:
    """Select the rows of one metric with the given qualifiers; None, or one that does not apply to a row, matches any.

    For `GUESSING` metrics the column ``guessing`` has the value of predicting the most frequent class, NaN if unknown.

    Raises:
        UserError: no such row exists; the message lists the existing ones.
    """
    of_metric = frame[frame["metric"] == metric]
    wanted = {key: value for key, value in conditions.items() if value is not None}
    found = of_metric[fitting(of_metric, **wanted)]
    if found.empty:
        asked = f"{metric} ({', '.join(f'{k}={v}' for k, v in wanted.items())})" if wanted else metric
        cases = frame[["metric", *qualifiers(frame)]].drop_duplicates().to_dict("records")
        there = sorted({f"{case['metric']} {words_of(case)}".strip() for case in cases})
        raise UserError(f"figure: nothing measured for {asked}; there is: {', '.join(there[:12]) or 'nothing'}")
    return found.assign(guessing=_guessing(frame, found, metric)) if metric in GUESSING else found


def use_rows(frame: pd.DataFrame, metric: str, **conditions: Any) -> pd.DataFrame:
    """Return `metric_rows` in each data set's measure of use, which may differ from accuracy."""
    other = frame["dataset"].isin(frame.loc[frame["metric"] == utility.METRIC, "dataset"])
    if metric not in IN_USE or not other.any():
        return metric_rows(frame, metric, **conditions)
    parts = [metric_rows(frame[other], IN_USE[metric], **conditions)]
    return pd.concat(parts if other.all() else [metric_rows(frame[~other], metric, **conditions), *parts])


def use_axis(rows: pd.DataFrame) -> str:
    """Return the axis label of `use_rows`: test accuracy (fraction right), or another measure on new records."""
    of = utility.labels_in(rows)
    return "test accuracy (fraction right)" if of == ["accuracy"] else f"{' or '.join(of)} on new records"


def _guessing(frame: pd.DataFrame, found: pd.DataFrame, metric: str) -> list[float]:
    guesses = frame[frame["metric"] == GUESSING[metric]].set_index(CELL)["value"].to_dict()
    return [guesses.get(cell, np.nan) for cell in _rows(found[CELL])]


def attack_rows(frame: pd.DataFrame, attack: str | None, definition: str, threshold: str = "own") -> pd.DataFrame:
    """Select the advantage rows of one attack; None: of every attack separately.

    Args:
        frame: rows over all repeats.
        attack: its name; ``strongest``: the strongest in each cell, corrected for the choice.
        definition: of an attribute attack's advantage.
        threshold: of a membership attack: ``best`` (chosen on other records) or ``own`` (set by the attack).

    Raises:
        UserError: no such attack was measured.
    """
    rows = frame[frame["metric"].isin([ADVANTAGES[threshold], "attribute_advantage"])]
    rows = rows[fitting(rows, definition=definition)]
    if attack == STRONGEST and rows["attack"].nunique() == 1:
        return rows
    if attack is None:
        return rows[rows["attack"] != STRONGEST]
    if attack not in set(rows["attack"]):
        known = nearest(attack, set(rows["attack"]))
        raise UserError(f"figure setting 'attack': nothing was measured for '{attack}'; {known}")
    return rows[rows["attack"] == attack]


def rate_rows(frame: pd.DataFrame, attack: str | None, fpr: float) -> pd.DataFrame:
    """Select the TPR of a membership attack at a false positive rate.

    Args:
        frame: rows over all repeats.
        attack: its name; ``strongest``: the strongest in each cell at that rate; None: each attack separately.
        fpr: the rate.
    """
    rows = metric_rows(frame, "reached_tpr", attack=attack, fpr=fpr)
    return rows[rows["attack"] != STRONGEST] if attack is None else rows


def reached(frame: pd.DataFrame) -> pd.DataFrame:
    """Select the cross-validated advantages of membership attacks; ``of`` names the attack behind "strongest"."""
    rows = metric_rows(frame, "reached_advantage")
    if rows["attack"].nunique() > 1:
        return rows
    return pd.concat([rows, rows.assign(of=rows["attack"], attack=STRONGEST)])  # the only attack is the strongest


def drawn_numbers(
    rows: pd.DataFrame, published: pd.DataFrame | None, extra: Sequence[str] = (), any_size: bool = False
) -> pd.DataFrame:
    """Return a figure's csv: ``value`` renamed to ``measured``, published numbers and ``inside`` joined, sorted.

    Args:
        rows: metrics rows.
        published: the paper's rows as printed, or None.
        extra: further columns to keep, put after the cell's; qualifiers that say something are kept in any case.
        any_size: as for `with_published`.
    """
    frame = with_published(rows.rename(columns={"value": "measured"}), published, any_size)
    return in_order(frame[csv_columns(frame, extra)])


def csv_columns(frame: pd.DataFrame, extra: Iterable[str] = ()) -> list[str]:
    """Return the columns of a figure's csv: the cell's, ``extra`` ones, the qualifiers in use, the numbers."""
    further = [column for column in FURTHER if column in frame and not is_empty(frame[column]).all()]
    kept = dict.fromkeys([*further, *extra, *told(frame)])
    between = [column for column in kept if column not in [*OF_CELL, *NUMBERS]]
    return [*OF_CELL, *between, *NUMBERS]


def own_row(cell: Mapping[str, Any], metric: str, found: Sequence[float], **extra: Any) -> dict[str, Any]:
    """Return a csv row for a number that only the figure measures and no paper prints.

    Args:
        cell: the columns of the cell, or a row that has them.
        metric: the metric.
        found: value, low and high; the value alone if it has no interval.
        extra: qualifiers and further columns, put after the cell's.
    """
    columns = {column: cell.get(column, np.nan) for column in OF_CELL}
    columns |= {column: cell[column] for column in FURTHER if not pd.isna(cell.get(column)) and cell[column] != ""}
    value, low, high = found if len(found) == 3 else (*found, np.nan, np.nan)
    numbers = dict(zip(NUMBERS, (metric, value, low, high, np.nan, pd.NA), strict=True))
    return {**columns, **extra, **numbers}


def unprinted(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows with empty columns ``published`` and ``inside``: they have no printed number to compare with."""
    return rows.assign(published=np.nan, inside=pd.array([pd.NA] * len(rows), dtype="boolean"))


def _rows(frame: pd.DataFrame) -> Iterator[tuple[Any, ...]]:
    return frame.itertuples(index=False, name=None)


def in_order(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows sorted by data set, model, series (in the order of legends), budget, metric and
    epoch; a fresh index.
    """
    ranks = [order(series) for series in series_of(frame)]
    places = {rank: place for place, rank in enumerate(sorted(set(ranks)))}
    keyed = frame.assign(_series=[places[rank] for rank in ranks])
    by = ["dataset", "model", "_series", "epsilon", "noise_multiplier", "metric", *QUALIFIERS, "epoch"]
    present = [column for column in by if column in keyed]
    return keyed.sort_values(present, kind="stable").drop(columns="_series").reset_index(drop=True)


def series_of(frame: pd.DataFrame) -> list[Series]:
    """Return the series of each row."""
    return [Series(*parts) for parts in _rows(frame[list(Series._fields)])]


def each_series(frame: pd.DataFrame) -> Iterator[tuple[Series, pd.DataFrame]]:
    """Yield the series of a frame in the order of legends, each with its rows."""
    keys = pd.Series(series_of(frame), index=frame.index, dtype=object)
    for series in sorted(set(keys), key=order):
        yield series, frame[[key == series for key in keys]]


def each_budget(rows: pd.DataFrame) -> Iterator[tuple[tuple[float, float], pd.DataFrame]]:
    """Yield the cells of a series as ((ε, σ), rows), in the order of the budget.

    Several cells can have one budget, e.g. two partitions of a class.
    """
    for key, cells in rows.groupby(["epsilon", "noise_multiplier"], dropna=False):
        for _, cell in cells.groupby("defense", sort=False):
            yield key, cell


def each_cell(rows: pd.DataFrame) -> Iterator[tuple[Series, pd.DataFrame]]:
    """Yield the cells of one data set and model, each with its series, in the order of legends and then
    of the budget.
    """
    for series, of_series in each_series(rows):
        for _, cell in each_budget(of_series):
            yield series, cell


def is_private(frame: pd.DataFrame) -> pd.Series:
    """Return which rows belong to a differentially private defense."""
    return frame["accountant"] != ""


def claims_epsilon(rows: pd.DataFrame) -> pd.DataFrame:
    """Drop private cells that were given by their noise and so have no target ε."""
    return rows[rows["epsilon"].notna() | ~is_private(rows)]


def panels(
    frame: pd.DataFrame, by: Sequence[str] = ("dataset", "model"), named: Sequence[str] | None = None
) -> list[tuple[str, pd.DataFrame]]:
    """Return one (heading, rows) per combination of the columns ``by``.

    The heading has the values of ``named`` (None: of all), without values that are the same everywhere, unless all are.
    """
    naming = [*(by if named is None else named)]
    varying = [column for column in naming if frame[column].nunique() > 1] or naming
    return [
        (" · ".join(name(str(rows[column].iloc[0])) for column in varying if rows[column].iloc[0] != ""), rows)
        for _, rows in frame.groupby([*by], sort=True)
    ]
