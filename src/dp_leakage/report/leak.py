"""Measured leakage of a cell: the numbers behind all of the page's sentences and tables on leakage."""

from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from dp_leakage.metrics import STRONGEST
from dp_leakage.metrics.intervals import Estimate
from dp_leakage.metrics.rows import CELL
from dp_leakage.report.sources import Sources, sources_of
from dp_leakage.table.frames import reached

ESTIMATE = ["value", "low", "high"]


@dataclass(frozen=True)
class Leak:
    """Leakage of a cell by its strongest membership attack.

    Attributes:
        attack: name of the attack.
        tried: number of attacks tried.
        advantage: the cross-validated advantage, corrected for the choice of attack.
        tprs: FPR → TPR of the strongest attack at that rate; only measurable rates.
        auc: of ``attack``.
        too_few: FPR → number of independent non-members, for rates that so few cannot measure.
        sources: differences between member and non-member records; None if drawn at random from one source.
    """

    attack: str
    tried: int
    advantage: Estimate
    tprs: dict[float, Estimate]
    auc: Estimate
    too_few: dict[float, float] = field(default_factory=dict)
    sources: Sources | None = None

    @property
    def explained(self) -> bool:
        """Return whether a difference between member and non-member records may explain the attack's success."""
        return self.sources is not None and self.sources.explains(self.attack)

    @property
    def shifted(self) -> bool:
        """Return whether member and non-member records are shown to differ."""
        return self.sources is not None and self.sources.shifted


def leaks(frame: pd.DataFrame) -> dict[tuple[str, str, str], Leak]:
    """Return (data set, model, defense) → leakage, for cells with membership attacks; rows over all repeats."""
    if not (frame["metric"] == "reached_advantage").any():
        return {}
    rows = reached(frame)
    strongest, single = rows[rows["attack"] == STRONGEST][[*CELL, "of", *ESTIMATE]], rows[rows["attack"] != STRONGEST]
    tried = single.groupby(CELL).size()
    beside = frame[frame["metric"].isin(["reached_tpr", "nonmembers_worth", "membership_auc"])]
    beside = beside[[*CELL, "attack", "metric", "fpr", *ESTIMATE]]
    parts = dict(iter(beside.groupby([*CELL, "attack"])))
    sources = sources_of(frame)
    keys = [(row.dataset, row.model, row.defense) for row in strongest.itertuples()]
    return {
        key: _leak(
            row, int(tried[key]), parts[*key, row.of], parts.get((*key, STRONGEST), beside.iloc[:0]), sources.get(key)
        )
        for key, row in zip(keys, strongest.itertuples(), strict=True)
    }


def _leak(row: Any, tried: int, beside: pd.DataFrame, rates: pd.DataFrame, sources: Sources | None) -> Leak:
    aucs = beside[beside["metric"] == "membership_auc"]
    tprs = rates[(rates["metric"] == "reached_tpr") & rates["value"].notna()]
    worth = rates[(rates["metric"] == "nonmembers_worth") & ~rates["fpr"].isin(tprs["fpr"])]
    return Leak(
        row.of,
        tried,
        _estimate(row),
        {rate.fpr: _estimate(rate) for rate in tprs.itertuples()},
        next(_estimate(auc) for auc in aucs.itertuples()),
        dict(zip(worth["fpr"], worth["value"], strict=True)),
        sources,
    )


def _estimate(row: Any) -> Estimate:
    return Estimate(float(row.value), float(row.low), float(row.high))
