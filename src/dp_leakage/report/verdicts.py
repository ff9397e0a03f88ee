"""One sentence for each defense. These sentences are not in ``claims.json``."""

from collections.abc import Mapping

import pandas as pd

from dp_leakage.common.utilities import label_of
from dp_leakage.metrics.intervals import Estimate
from dp_leakage.metrics.rows import CELL
from dp_leakage.metrics.utility import METRIC, metrics_in
from dp_leakage.report.claims import percent
from dp_leakage.report.leak import Leak, leaks
from dp_leakage.table.frames import chosen, each_series, panels
from dp_leakage.table.looks import look
from dp_leakage.table.numbers import cell_words, fraction, interval
from dp_leakage.table.words import name


def verdicts(metrics: pd.DataFrame) -> list[str]:
    """Return one sentence per data set, model and defense: the model's utility and the attacker's success.

    If a defense has several budgets, the sentence describes the one with the highest utility.
    """
    frame = chosen(metrics, {})
    leak = leaks(frame)
    use = pd.concat([of[of["metric"] == metrics_in(of)[0]] for _, of in frame.groupby("dataset", sort=False)])
    found = []
    for heading, part in panels(use) if len(use) else []:
        for series, rows in each_series(part):
            for kind, own in rows.groupby(
                rows["partition"] == "random" if "partition" in rows else [False] * len(rows)
            ):
                row = own.loc[own["value"].idxmax()]
                reached_use = f"{100 * row['value']:.0f} % of new records classified correctly"
                if row["metric"] == METRIC:
                    reached_use = f"{label_of(row['of'])} {fraction(row['value'])}"
                at = f" at {cell_words(row)}" if series.accountant else ""
                label = look(series).label + (", random" if kind else "")
                reached = leak.get(tuple(row[CELL]))
                if reached is not None:
                    judged = "" if reached.advantage.low > 0 else "; chance alone could explain the advantage"
                    words = f"an attacker has {reach_words(reached)}{judged}"
                    found.append(f"{heading} · {label}: {reached_use}{at}; {words}.")
    return found


def reach_words(leak: Leak) -> str:
    """Describe the attacks' success: ``an advantage of 0.4 [0.3, 0.5] (ATTACK), and the attack that is strongest at 1 %
    FPR identifies 12 % […] …``.
    """
    return f"an advantage of {interval(*leak.advantage)} ({_by_words(leak)}){_named(leak)}"


def _named(leak: Leak) -> str:
    """Describe the identified members at each rate, by the strongest attack at that rate."""
    if not leak.tprs:
        return ""
    if leak.tried == 1:
        return f", and identifies {_at_rates(leak.tprs)}"
    if len(leak.tprs) > 1:
        return f", and the attack that is strongest at each rate identifies {_at_rates(leak.tprs)}"
    ((fpr, tpr),) = leak.tprs.items()
    return f", and the attack that is strongest at {_rate(fpr)} identifies {_of_members(tpr)}"


def _at_rates(tprs: Mapping[float, Estimate]) -> str:
    """Format as ``12 % […] of the members at 1 % FPR and 2 % […] at 0.1 % FPR``."""
    (first, tpr), *others = tprs.items()
    shares = [f"{_of_members(tpr)} at {_rate(first)}", *(f"{percent(tpr)} at {_rate(fpr)}" for fpr, tpr in others)]
    return " and ".join(shares)


def _of_members(tpr: Estimate) -> str:
    return f"{percent(tpr)} of the members"


def _rate(fpr: float) -> str:
    return f"{100 * fpr:g} % FPR"


def _by_words(leak: Leak) -> str:
    """Name the attack, the number of attacks tried, and its AUC."""
    strongest = f", the strongest of {leak.tried} attacks" if leak.tried > 1 else ""
    return f"{name(leak.attack)}{strongest}, AUC {fraction(leak.auc.value)}"
