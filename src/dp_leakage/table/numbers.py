"""Formatting of numbers in tables, and rows and columns common to most tables."""

from collections.abc import Callable, Iterable, Mapping
from math import floor, inf, isfinite, log10
from typing import Any

import pandas as pd

from dp_leakage.common.rounding import rounded_down, rounded_up
from dp_leakage.table.frames import each_cell, each_series
from dp_leakage.table.looks import Series, look

Texts = Callable[[pd.DataFrame], list[str]]

PRINTED = "Print: the paper's number; ✓ if our interval holds a value that rounds to it, ✗ if not."


def number(value: float) -> str:
    """Format a budget or a noise multiplier to three digits: 1000, 0.05, 57200; ∞, and – if missing."""
    return f"{float(f'{value:.3g}'):g}" if isfinite(value) else _not_finite(value)


def at_most(value: float) -> str:
    """Format an upper bound, e.g. an accounted ε, to three digits, rounded up."""
    return rounded_up(value, 3) if isfinite(value) else _not_finite(value)


def at_most_beside(value: float, limit: float) -> str:
    """Format an upper bound to two digits, rounded up; with more if that would lift it above a limit that it keeps."""
    shown = (rounded_up(value, digits) for digits in range(2, 18))
    return next(text for text in shown if value > limit or float(text) <= limit)


def at_least(value: float) -> str:
    """Format a lower bound, e.g. the ε proven by an audit, to three digits, rounded down."""
    return rounded_down(value, 3) if isfinite(value) else _not_finite(value)


def _not_finite(value: float) -> str:
    return "∞" if value == inf else "–"


def fraction(value: float, digits: int = 3) -> str:
    """Format as 0.123, with U+2212 as the minus sign and never −0.000; – if missing."""
    if not isfinite(value):
        return "–"
    return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")


def rounded(value: float, limit: float = inf, decimals: int = 3) -> str:
    """Format to two digits, with at most so many decimals, and more if it would else be rounded to a limit or across.

    >>> rounded(0.1234), rounded(0.1002, 0.1), rounded(50.04, 10, 1)
    ('0.12', '0.1002', '50')
    """
    if not isfinite(value):
        return "–"
    for more in range(16):
        digits = min(max(1 + more - _exponent(value), 0), decimals + more)
        near = round(value, digits) + 0.0
        if value == limit or ((near < limit) == (value < limit) and near != limit):
            break
    return f"{near:.{digits}f}".rstrip("0").rstrip(".").replace("-", "−") if digits else f"{near:.0f}"


def count(value: float) -> str:
    """Format as 4.2, or without decimals from 10 on; – if missing."""
    if not isfinite(value):
        return "–"
    return f"{value:,.0f}" if value >= 10 or value == round(value) else f"{value:.1f}"


def _exponent(value: float) -> int:
    return floor(log10(abs(value))) if value else 0


def interval(value: float, low: float, high: float, *, counts: bool = False) -> str:
    """Return a value with its interval: 0.123 [0.100, 0.150]; the value alone where either is unknown."""
    spell = count if counts else fraction
    if not all(map(isfinite, (value, low, high))):
        return spell(value)
    return f"{spell(value)} [{spell(low)}, {spell(high)}]"


def printed(value: float, inside: object, *, counts: bool = False) -> str:
    """Format the paper's number, with ✓ if it lies inside our interval and ✗ if not; empty if it prints none.

    Without a mark where ``inside`` is empty: the two are not compared.
    """
    if not isfinite(value):
        return ""
    text = count(value) if counts else fraction(value, 2 if round(value, 2) == value else 3)
    if pd.isna(inside):
        return text
    return f"{text} {'✓' if inside is True or inside == 1 else '✗'}"


def budget(epsilon: float, noise_multiplier: float) -> str:
    """Format a cell's target ε, otherwise its σ, otherwise a dash."""
    if isfinite(epsilon):
        return number(epsilon)
    return f"σ = {number(noise_multiplier)}" if isfinite(noise_multiplier) else "–"


def budget_words(epsilon: float, noise_multiplier: float) -> str:
    """Format the budget with its symbol: ``ε = 1``, or ``σ = 2`` without a target ε."""
    words = budget(epsilon, noise_multiplier)
    return f"ε = {words}" if isfinite(epsilon) else words


def cell_budget(row: Any) -> str:
    """Return the cell's budget, and properties that its series does not include."""
    return (_target(row) or budget(row.epsilon, row.noise_multiplier)) + _further(row)


def cell_words(row: Any) -> str:
    """Return the cell's budget with its symbol; the target risk if the noise was chosen by it."""
    return _target(row) or budget_words(row.epsilon, row.noise_multiplier)


def cell_label(series: Series, row: Any) -> str:
    """Return series, budget with symbol, and further properties of the cell."""
    if not series.accountant:
        return look(series).label
    return f"{look(series).label}, {cell_words(row)}{_further(row)}"


def cell_labels(rows: pd.DataFrame) -> dict[str, str]:
    """Return folder name of a defense → its `cell_label`."""
    return {row.defense: cell_label(series, row) for series, part in each_series(rows) for row in part.itertuples()}


def _target(row: Any) -> str:
    """Return ``advantage ≤ 0.1`` if only the target identifies the cell's noise; otherwise "". Some tables lack this
    column.
    """
    target = getattr(row, "target", "")
    known = isfinite(row.epsilon) or isfinite(row.noise_multiplier)
    return target if isinstance(target, str) and not known else ""


def _further(row: Any) -> str:
    """Return properties of a cell that its series does not include; some tables lack these columns, since they are
    constant.
    """
    partition, most = getattr(row, "partition", ""), getattr(row, "most", None)
    return (", random" if partition == "random" else "") + ("" if most is None or pd.isna(most) else f", most {most:g}")


def rows_by_budget(part: pd.DataFrame, lines: Callable[[pd.DataFrame], Iterable[list[str]]]) -> list[list[str]]:
    """Return table rows: the series in a column, the budget in the next, then the columns of ``lines``.

    Args:
        part: rows of a figure, with the columns of the cell.
        lines: the further columns, of one or several rows, from the rows of one cell.
    """
    return [
        [look(series).label, cell_budget(cell.iloc[0]), *line]
        for series, cell in each_cell(part)
        for line in lines(cell)
    ]


def beside_prints(part: pd.DataFrame, columns: Mapping[str, str], nothing: str = "–") -> tuple[list[str], Texts]:
    """Return table columns with intervals, each followed by the paper's printed numbers if there are any.

    Args:
        part: the rows of the table, with ``column``, where each stands.
        columns: values of that column in their order, with the words at the head of each.
        nothing: text for a missing number.

    Returns:
        The heads, and a function from the rows of one cell to its columns' texts.
    """
    with_print = {column: part.loc[part["column"] == column, "published"].notna().any() for column in columns}
    heads = [head for column, words in columns.items() for head in [words, "print"][: 1 + with_print[column]]]

    def texts(cell: pd.DataFrame) -> list[str]:
        found = {row.column: row for row in cell.itertuples()}
        return [text for column in columns for text in _pair(found.get(column), nothing)[: 1 + with_print[column]]]

    return heads, texts


def _pair(row: Any, nothing: str) -> tuple[str, str]:
    """Return a number with its interval, and the printed number."""
    if row is None:
        return nothing, ""
    counts = row.metric == "members_exposed"
    words = interval(row.measured, row.low, row.high, counts=counts)
    return words, printed(row.published, row.inside, counts=counts)
