"""How numbers are written in tables."""

from math import isfinite
from typing import Any

import pandas as pd

from dp_leakage.figures.style import Series, look, number

PRINTED = "Print: the paper's number; ✓ if our interval holds a value that rounds to it, ✗ if not."


def fraction(value: float, digits: int = 3) -> str:
    """0.123, with a minus sign that is one and none before zero; – where there is no number."""
    if not isfinite(value):
        return "–"
    return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")


def count(value: float) -> str:
    """4.2, or whole from 10 on; – where there is no number."""
    if not isfinite(value):
        return "–"
    return f"{value:,.0f}" if value >= 10 or value == round(value) else f"{value:.1f}"


def interval(value: float, low: float, high: float, *, counts: bool = False) -> str:
    """A value with its interval: 0.123 [0.100, 0.150]; the value alone where there is no interval."""
    spell = count if counts else fraction
    return f"{spell(value)} [{spell(low)}, {spell(high)}]" if isfinite(low) and isfinite(high) else spell(value)


def printed(value: float, inside: object, *, counts: bool = False) -> str:
    """The paper's number, with ✓ if it lies inside our interval and ✗ if not; nothing where it prints none.

    Without a mark where ``inside`` is empty: the two are not compared.
    """
    if not isfinite(value):
        return ""
    text = count(value) if counts else fraction(value, 2 if round(value, 2) == value else 3)
    if pd.isna(inside):
        return text
    return f"{text} {'✓' if inside is True or inside == 1 else '✗'}"


def budget(epsilon: float, noise_multiplier: float) -> str:
    """A cell's claimed ε, else its σ, else a dash."""
    if isfinite(epsilon):
        return number(epsilon)
    return f"σ = {number(noise_multiplier)}" if isfinite(noise_multiplier) else "–"


def cell_label(series: Series, row: Any) -> str:
    """The series, the cell's budget, and what else its folder name says that no series knows."""
    label = look(series).label + (", random" if "partition=random" in row.defense else "")
    return f"{label}, {budget(row.epsilon, row.noise_multiplier)}" if series.accountant else label
