"""Sentences on single records: how often one record is accused, next to the rate over all records."""

import pandas as pd

from dp_leakage.metrics.intervals import Estimate
from dp_leakage.metrics.rows import CELL
from dp_leakage.metrics.runs import ALL
from dp_leakage.metrics.simultaneous import simultaneous
from dp_leakage.report.claims import Claim, ClaimWriter
from dp_leakage.table.words import name

FPR = 0.01
POOLED, OWN, AGAIN = "reached_tpr", ("own_tpr", "own_fpr"), "accused_again"


def calibration_claims(metrics: pd.DataFrame) -> list[Claim]:
    """Return for each data set a claim on the attack and undefended model with the largest rate over all records.

    Args:
        metrics: rows as `dp_leakage.table.frames` names them.

    The claim says how far single records deviate from that rate. Its intervals are simultaneous for all attacks and
    models.
    """
    rows = metrics[
        metrics["metric"].isin([POOLED, *OWN, AGAIN]) & (metrics["repeat"] == ALL) & (metrics["defense"] == "none")
    ]
    found = rows[rows["fpr"] == FPR].pivot_table(
        index=[*CELL, "attack"], columns="metric", values=["value", "low", "high"], sort=False
    )
    if not {("value", metric) for metric in (POOLED, *OWN)} <= set(found.columns):
        return []
    known = found.dropna(subset=[(end, metric) for end in ("value", "low", "high") for metric in (POOLED, *OWN)])
    return [_claim(str(dataset), own) for dataset, own in known.groupby(level="dataset", sort=False)]


def _claim(dataset: str, found: pd.DataFrame) -> Claim:
    most = found["value"][POOLED].idxmax()
    _, model, defense, attack = most
    writer = ClaimWriter(
        {"dataset": dataset, "model": model, "defense": defense, "attack": attack, "among": len(found)}
    )

    def shown(metric: str) -> str:
        alone = Estimate(*(float(found.loc[most, (end, metric)]) for end in ("value", "low", "high")))
        return writer.percent(metric, simultaneous(alone, len(found), (0.0, 1.0)), fpr=FPR)

    rate = writer("fpr", FPR, f"{100 * FPR:g} %")
    words = (
        f"Rates here are over all records together, as an attacker with one threshold has them: at {rate} false "
        f"positives {name(attack)} on {name(model)}, defense {defense}, identifies {shown(POOLED)} of the members. "
    )
    if pd.notna(found["value"].get(AGAIN, pd.Series()).get(most)):  # not measured where few records are accused
        words += (
            "Errors may always meet the same records: a record that is wrongly accused in one model is wrongly accused "
            f"in {shown(AGAIN)} of the other models without it. "
        )
    words += (
        "An attacker can also set a threshold for each record, by what models without it say of it: then "
        f"{shown('own_tpr')} of the members are identified, and {shown('own_fpr')} of the others wrongly accused."
    )
    if len(found) > 1:
        words += f" These intervals hold for all {writer.count(len(found))} attacks and models at once."
    return writer.claim(f"{dataset}.calibration", "calibration", dataset, words, cells=((model, defense),))
