"""What k mechanisms spend together, each ε₀-DP: the formulas of the paper's table 1, beside what is exact."""

from collections.abc import Callable
from math import expm1, log, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dp_leakage.figures.frames import chosen
from dp_leakage.figures.notes import own_notes
from dp_leakage.figures.style import styled
from dp_leakage.figures.table import Table, draw_tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURE = {
    "caption": "What as many mechanisms as there are epochs spend together if each is ε₀-DP, by the formulas of the "
    "paper's table 1. Exact is what the worst such mechanism, randomized response, really spends. A formula that is "
    "below it would be wrong; one far above it makes for noise that nobody needs.",
    "settings": {
        "each": {
            "type": "array",
            "minItems": 1,
            "items": {"type": "number", "exclusiveMinimum": 0},
            "default": [0.001, 0.01, 0.05, 0.1, 0.5, 1],
            "description": "The ε₀ of one mechanism.",
        },
    },
}

# ε of k mechanisms at δ, from ε₀, k and L = ln(1/δ), as printed.
FORMULAS: dict[str, Callable[[float, int, float], float]] = {
    "naive": lambda each, k, tail: k * each,
    "advanced": lambda each, k, tail: each * sqrt(2 * k * tail) + k * each * expm1(each),
    "CDP": lambda each, k, tail: each * sqrt(2 * k * tail) + k * each * expm1(each) / 2,
    "zCDP": lambda each, k, tail: each * sqrt(2 * k * tail) + k * each**2 / 2,
    "RDP": lambda each, k, tail: 4 * each * sqrt(2 * k * tail) if tail >= each**2 * k else np.nan,
}
EXACT = "exact"


@styled
def draw(
    metrics: pd.DataFrame, settings: dict[str, Any], published: pd.DataFrame | None
) -> "tuple[Figure, pd.DataFrame]":
    """One table, a row for each ε₀; k and δ are the epochs and the δ of the private cells.

    Settings:
        each: the ε₀ of one mechanism.
    """
    frame = chosen(metrics, settings).dropna(subset=["delta"])
    k, delta = int(frame["epochs"].iloc[0]), float(frame["delta"].iloc[0])
    rows = pd.DataFrame(
        [
            {"definition": name, "each": each, "k": k, "delta": delta, "epsilon": epsilon}
            for each in settings["each"]
            for name, epsilon in spent(each, k, delta).items()
        ]
    )
    wide = rows.pivot(index="each", columns="definition", values="epsilon")[[*FORMULAS, EXACT]]
    lines = [
        [f"{each:g}", *("–" if np.isnan(epsilon) else f"{epsilon:.3f}" for epsilon in line)]
        for each, line in zip(wide.index, wide.to_numpy(), strict=True)
    ]
    table = Table(f"ε of {k} ε₀-DP mechanisms at δ = {delta:g}", ["ε₀", *FORMULAS, EXACT], lines)
    notes = [
        "Exact: k-fold randomized response (Kairouz, Oh and Viswanath 2015). RDP's formula holds up to ln(1/δ) = ε₀²k.",
        *own_notes(settings),
    ]
    return draw_tables([table], notes, settings.get("title")), rows


def spent(each: float, k: int, delta: float) -> dict[str, float]:
    """ε of k mechanisms, each ``each``-DP, by each formula (NaN where it does not hold) and exactly."""
    return {name: of(each, k, log(1 / delta)) for name, of in FORMULAS.items()} | {EXACT: optimal(each, k, delta)}


def optimal(each: float, k: int, delta: float) -> float:
    """The least ε at which every k mechanisms of this ε₀ are (ε, δ)-DP together.

    Kairouz, Oh and Viswanath (2015, theorem 3.3): the worst are k randomized responses, whose privacy loss is
    ε₀(2i − k), i binomial with e^ε₀/(1 + e^ε₀).
    """
    from scipy.optimize import brentq
    from scipy.stats import binom

    told = np.arange(k + 1)
    chance, loss = binom.pmf(told, k, 1 / (1 + np.exp(-each))), each * (2 * told - k)

    def above(epsilon: float) -> float:
        beyond = loss > epsilon
        return float((chance[beyond] * -np.expm1(epsilon - loss[beyond])).sum() - delta)

    return float(brentq(above, 0.0, k * each, xtol=1e-12)) if above(0.0) > 0 else 0.0
