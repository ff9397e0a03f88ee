"""Sentences on leakage where members and non-members come from different sources."""

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from dp_leakage.metrics.intervals import Estimate
from dp_leakage.metrics.rows import CELL
from dp_leakage.metrics.runs import ALL
from dp_leakage.metrics.simultaneous import simultaneous
from dp_leakage.metrics.sources import ANSWERS, BLIND, FEATURES, REFERENCES
from dp_leakage.report.claims import Claim, ClaimWriter
from dp_leakage.table.words import name

UNKNOWN = (
    "Whether any of it was learned in training cannot be told without a model trained in the same way on none of them."
)


@dataclass(frozen=True)
class Sources:
    """Differences between a cell's member and non-member records, and the part that the model must have learned.

    Attributes:
        blind, advantage: AUC and advantage of a blind guess, without the model.
        seen: the inputs of that guess.
        beyond: attack → its AUC minus the blind guess's AUC.
        beyond_references: AUC of the model's loss minus the AUC of references trained in the same way on other records;
            None without such references.
        references: number of these references.
        reversed: the attack with the lowest AUC, and that AUC with a simultaneous interval, if significantly below 1/2;
            otherwise None.
    """

    blind: Estimate
    advantage: Estimate
    seen: str
    beyond: Mapping[str, Estimate]
    beyond_references: Estimate | None
    references: int
    reversed: tuple[str, Estimate] | None

    @property
    def shifted(self) -> bool:
        """Return whether member and non-member records are shown to differ. A reversed AUC shows it too."""
        return self.blind.low > 0.5 or self.reversed is not None

    @property
    def compared(self) -> bool:
        """Return whether the guess saw more than labels, so that it could find most differences."""
        return FEATURES in self.seen or ANSWERS in self.seen

    def explains(self, attack: str) -> bool:
        """Return whether a difference of the records may explain an attack's success."""
        return self.shifted or not self.compared or not self.beyond[attack].low > 0


def sources_of(metrics: pd.DataFrame) -> dict[tuple[str, str, str], Sources]:
    """Return (data set, model, defense) → differences of the records, for cells with two sources."""
    kept = metrics["metric"].isin(["blind_auc", "blind_advantage", "auc_beyond", "membership_auc"])
    cells = dict(iter(metrics[kept & (metrics["repeat"] == ALL)].groupby(CELL)))
    return {key: _sources(rows) for key, rows in cells.items() if (rows["metric"] == "blind_auc").any()}


def _sources(rows: pd.DataFrame) -> Sources:
    of = {metric: own.to_dict("records") for metric, own in rows.groupby("metric")}
    (blind,), (advantage,) = of["blind_auc"], of["blind_advantage"]
    beyond = {row["attack"]: Estimate.from_row(row) for row in of["auc_beyond"] if row["against"] == BLIND}
    references = [row for row in of["auc_beyond"] if row["against"] == REFERENCES]
    aucs = {row["attack"]: Estimate.from_row(row) for row in of["membership_auc"]}
    attack = min(aucs, key=lambda attack: aucs[attack].high)
    lowest = simultaneous(aucs[attack], len(aucs), (0.0, 1.0))
    return Sources(
        Estimate.from_row(blind),
        Estimate.from_row(advantage),
        blind["seen"],
        beyond,
        Estimate.from_row(references[0]) if references else None,
        int(references[0]["models"]) if references else 0,
        (attack, lowest) if lowest.high < 0.5 else None,
    )


def differ(found: Sources, writer: ClaimWriter) -> str:
    """Say that members and non-members differ, or may, and how well a blind guess separates them."""
    verb = "differ" if found.shifted else "may differ"
    if found.reversed is not None and not found.blind.low > 0.5:
        attack, auc = found.reversed
        shown = writer.fraction("membership_auc", auc, attack=attack)
        return f"members and non-members {verb}: {name(attack)} ranks members below the others (AUC {shown})"
    guessed = writer.fraction("blind_advantage", found.advantage)
    return (
        f"members and non-members {verb}: a guess that never saw the model finds members with an advantage of {guessed}"
    )


def beside_references(found: Sources, writer: ClaimWriter) -> str:
    """Say by how much the AUC of the model's loss exceeds that of references trained on none of these records."""
    assert found.beyond_references is not None
    shown = writer.fraction("auc_beyond", found.beyond_references, against=REFERENCES)
    models = f"{writer.count(found.references)} reference model{'' if found.references == 1 else 's'}"
    return f"the AUC of its loss exceeds that of {models} trained on none of these records by {shown}"


def source_claims(dataset: str, found: Mapping[tuple[str, str], Sources]) -> list[Claim]:
    """Return claims that members and non-members of a data set differ, or may, by the first cell that shows it."""
    if not found:
        return []
    cell = max(found, key=lambda cell: found[cell].shifted)
    writer = ClaimWriter({"dataset": dataset, "model": cell[0], "defense": cell[1]})
    words = f"On {name(dataset)}, {differ(found[cell], writer)}. {UNKNOWN}"
    return [writer.claim(f"{dataset}.sources", "sources", dataset, words, cells=tuple(found), screen=1)]
