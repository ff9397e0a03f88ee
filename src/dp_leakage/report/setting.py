"""A setting of a data set, with its numbers and the results of its tests."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dp_leakage.common.utilities import label_of
from dp_leakage.data.outside import grouping
from dp_leakage.metrics.intervals import Estimate
from dp_leakage.report.decision import Conditions, Is, Judgment
from dp_leakage.report.guarantees import Proven
from dp_leakage.report.leak import Leak
from dp_leakage.report.tuned import Tuned
from dp_leakage.table.guesses import SAYS_LITTLE
from dp_leakage.table.looks import Series


@dataclass(frozen=True)
class Acceptable:
    """Limits on a recommended setting.

    Attributes:
        accuracy_loss: the largest acceptable loss in the measure of use, a fraction of the best undefended model's use.
        advantage: the largest acceptable advantage of an attacker, in (0, 1].
        risk: ``measured``: the limit holds for the strongest attack's advantage, or for the proven one; ``proven``: it
            holds for the proven advantage.
    """

    accuracy_loss: float = 0.1
    advantage: float = 0.1
    risk: str = "measured"


@dataclass(frozen=True)
class Setting:
    """A cell, judged together with all cells of its data set. Intervals hold for this cell alone.

    Attributes:
        dataset, model, defense: names.
        row: the cell's columns.
        private: whether the training is private with a known ε.
        holds: whether the target ε is proven for the training as run, under any neighboring relation.
        holds_for: the neighbors of that proof if they differ from ``neighbors``; otherwise "".
        spent, neighbors, accountant: the accounted ε, its neighbors ("" if unknown) and its accountant.
        measure: the measure of use, a key of `utility.UTILITIES`.
        accuracy: the use on new records in that measure.
        loss: the loss of use, a fraction of the best undefended model's use.
        twin_loss: the loss relative to the undefended model of the same architecture; None if not measured.
        leak: measured leakage; None without a membership attack.
        proven: proven limits of any attack; None without a proof.
        tuned: tuning of the learning rate; None if the rate was set.
        conditions: conditions on a recommended setting.
        judgment: results of the tests, corrected for all private settings.
        refuted: whether an attack refutes its ε or its proven limit. Then nothing counts as proven.
        front: whether it is Pareto-optimal in accuracy and measured advantage.
    """

    dataset: str
    model: str
    defense: str
    row: pd.Series
    private: bool
    holds: bool
    holds_for: str
    spent: float
    neighbors: str
    accountant: str
    measure: str
    accuracy: Estimate
    loss: Estimate
    twin_loss: Estimate | None
    leak: Leak | None
    proven: Proven | None
    tuned: Tuned | None
    conditions: Conditions
    judgment: Judgment
    refuted: bool = False
    front: bool = False

    @property
    def use_label(self) -> str:
        """Return the measure of use, as in a sentence."""
        return label_of(self.measure)

    @property
    def series(self) -> Series:
        """Return the columns of its label."""
        return Series(*(self.row[column] for column in Series._fields))

    @property
    def clustered(self) -> bool:
        """Return whether its units are subclasses that k-means found among the protected records."""
        return bool(self.row.get("partition", "") == "kmeans")

    @property
    def grouping(self) -> str:
        """Return `outside.grouping` of its units."""
        return grouping(str(self.row["unit"]), "kmeans" if self.clustered else None)

    @property
    def beats(self) -> Is:
        """Return whether it is shown to beat guessing."""
        return self.judgment.beats

    @property
    def keeps(self) -> Is:
        """Return whether the loss is acceptable and the model beats guessing."""
        return self.judgment.keeps

    @property
    def protects(self) -> Is:
        """Return whether the risk is acceptable; ``no`` also if a required proof is missing."""
        return "no" if self.refuted else self.judgment.protects

    @property
    def by_proof(self) -> bool:
        """Return whether a proof keeps the risk acceptable."""
        return self.conditions.by_proof

    @property
    def shown_to_leak(self) -> bool:
        """Return whether an attack significantly exceeds the acceptable advantage.

        Its success does not count if a difference between member and non-member records may explain it.
        """
        return self.judgment.leaks

    @property
    def advantage(self) -> float:
        """Return the strongest attack's advantage; infinite without an attack."""
        return self.leak.advantage.value if self.leak else np.inf

    @property
    def limit(self) -> float:
        """Return the proven limit of any attack's advantage; 1 if the limit excludes almost nothing."""
        return self.proven.advantage if self.proven and self.proven.advantage < SAYS_LITTLE else 1.0


def candidates(settings: Iterable[Setting]) -> list[Setting]:
    """Return the settings that may be recommended: private and not refuted."""
    return [one for one in settings if one.private and not one.refuted]


def shown_to_do_both(private: Iterable[Setting]) -> list[Setting]:
    """Return the settings that are shown to keep the accuracy and to protect."""
    return [one for one in private if one.keeps == one.protects == "yes"]


def is_within(one: Setting, limits: Acceptable) -> bool:
    """Return whether a setting's loss, and its measured or proven advantage, lie within the limits."""
    return one.loss.value <= limits.accuracy_loss and (one.by_proof or one.advantage <= limits.advantage)
