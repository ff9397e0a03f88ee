"""What the mathematics proves about a cell against any attack, and what a risk means for a person."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from dp_leakage.figures.numbers import fraction
from dp_leakage.metrics.spent import parse_setting
from dp_leakage.privacy.proven import PRIORS, precision
from dp_leakage.report.leak import Leak

SAYS_LITTLE = 0.9  # a bound on the advantage from here on excludes almost nothing
SHARES = {0.01: "one in a hundred", 0.1: "one in ten", 0.5: "half"}


@dataclass(frozen=True)
class Proven:
    """The limits that no attack on a cell can exceed.

    Attributes:
        advantage: TPR − FPR.
        tprs: FPR → TPR.
        mu: μ of Gaussian noise that allows this advantage.
        exact: whether that is exactly the cell's own noise.
        neighbours: the neighbouring data sets, which are those of the study's attack game.
    """

    advantage: float
    tprs: dict[float, float]
    mu: float
    exact: bool
    neighbours: str


def proven_of(here: pd.DataFrame, defense: str) -> Proven | None:
    """What is proven about a cell, from the metrics of its data set and model; None if nothing is."""
    rows = here[(here["defense"] == defense) & here["metric"].isin(["advantage_proven", "tpr_proven", "mu"])]
    if rows.empty:
        return None
    said = [parse_setting(setting) for setting in rows["setting"]]
    values = dict(zip(rows["metric"], rows["value"], strict=True))
    tprs = {float(s["fpr"]): float(v) for s, v in zip(said, rows["value"], strict=True) if "fpr" in s}
    exact, neighbours = said[0]["source"] == "gaussian", said[0]["neighbours"]
    return Proven(float(values["advantage_proven"]), tprs, float(values["mu"]), exact, neighbours)


def proven_words(proven: Proven | None) -> str:
    """The sentence on what is proven about a cell."""
    if proven is None:
        return "Nothing is proven there of attacks that were not tried."
    words = f"Proven is that no attack at all reaches an advantage above {rounded_up(proven.advantage)}"
    if proven.advantage >= SAYS_LITTLE:
        return f"{words}, which rules out next to nothing."
    rates = [
        f"{rounded_up(100 * tpr, 1)} % of the members at {100 * fpr:g} % false alarms"
        for fpr, tpr in proven.tprs.items()
    ]
    named = f" or names more than {' or '.join(rates)}" if rates else ""
    return f"{words}{named}{f' (μ = {proven.mu:.2f})' if proven.exact else ''}."


def risk_words(leak: Leak | None, proven: Proven | None) -> str:
    """What an accusation is worth, for a reader who has never seen a privacy paper; "" if nothing was measured."""
    if leak is None or not leak.tprs:
        return ""
    fpr = min(leak.tprs)
    measured, most = leak.tprs[fpr], proven.tprs.get(fpr) if proven else None
    lines = []
    for prior in PRIORS:
        value, low, high = (10 * precision(prior, tpr, fpr) for tpr in measured)
        limit = (
            ""
            if most is None
            else f"; no attack can be right about more than {rounded_up(10 * precision(prior, most, fpr), 1)}"
        )
        verb = "was" if prior < 0.5 else "were"
        lines.append(
            f"where {SHARES[prior]} of those asked about {verb} in the training data, "
            f"{value:.1f} [{low:.1f}, {high:.1f}] "
            f"(at random {10 * prior:g}){limit}"
        )
    return (
        f"In words: suppose an attacker is wrong about {_people(fpr)} who were not in the training data. Of ten people "
        f"whom the best measured attack then accuses, so many were members: {'. Or, '.join(lines)}."
    )


def choice_words(tried: int) -> str:
    """How the recommended cell was chosen, and that its ε does not cover the choice."""
    if tried < 2:
        return ""
    return (
        f"It was chosen among {tried} private cells by what was measured of all of them. That choice looked at the "
        f"data {tried} times, which its ε does not cover; docs/choosing.md says how to pay for it."
    )


def _people(fpr: float) -> str:
    return f"one in {round(1 / fpr)} people"


def rounded_up(value: float, digits: int = 3) -> str:
    """Rounded up, so that a proven limit is never stated too small."""
    if digits == 3:
        return fraction(np.ceil(1000 * value) / 1000)
    return f"{np.ceil(10 * value - 1e-9) / 10:.1f}"
