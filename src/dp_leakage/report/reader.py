"""Reader of a data set's settings and their conditions, from the metrics."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dp_leakage.metrics.contrast import Contrast, above_share, kept, kept_use
from dp_leakage.metrics.intervals import Estimate
from dp_leakage.metrics.paired import paired_loss, pairs, unpaired_loss
from dp_leakage.metrics.people import RightAnswers
from dp_leakage.metrics.thresholds import METRIC, of_row
from dp_leakage.metrics.utility import Use, lost_use
from dp_leakage.report.decision import Conditions, Judgment
from dp_leakage.report.guarantees import Proven, proven_of
from dp_leakage.report.leak import Leak
from dp_leakage.report.setting import Acceptable, Setting
from dp_leakage.report.tuned import tuned_of

NEAR = 1e-3  # relative; larger than the error of a noise search and than differences between library versions
Key = tuple[str, str, str]  # data set, model, defense
Tested = RightAnswers | Use  # results on new records: right answers, or another measure of use


@dataclass(frozen=True)
class Reader:
    """Reader of the settings of one data set, with the conditions on each."""

    cells: Mapping[Key, pd.DataFrame]
    tested: Mapping[Key, Tested]
    constant: Tested | None
    leaks: Mapping[Key, Leak]
    undefended: pd.DataFrame
    accounted: pd.DataFrame
    least: pd.DataFrame  # the smallest ε that a valid accountant proves, for any neighbors
    refuted: Collection[Key]  # cells whose ε or proven limit an attack refutes
    acceptable: Acceptable
    guessing: float
    measure: str
    lost: str  # the metric of its loss

    def setting(self, row: pd.Series) -> Setting:
        """Return a setting without its judgment."""
        key = (row["dataset"], row["model"], row["defense"])
        own, found = self.cells[key], self.leaks.get(key)
        refuted = key in self.refuted
        proven = None if refuted else proven_of(own, key[2])
        accuracy = Estimate.from_row(row)
        told = self.accounted.loc[key] if row["private"] else None
        least = self.least.loc[key] if key in self.least.index else None
        most = (1 + NEAR) * row["epsilon"]
        holds = least is not None and bool(least["epsilon_spent"] <= most)
        others = holds and told is not None and told["epsilon_spent"] > most
        twin = own[own["metric"] == self.lost]
        return Setting(
            *key,
            row=row,
            private=bool(row["private"]),
            holds=holds,
            holds_for=str(least["spent_neighbors"]) if least is not None and others else "",
            spent=np.nan if told is None else float(told["epsilon_spent"]),
            neighbors="" if told is None else str(told["spent_neighbors"]),
            accountant="" if told is None else str(told["spent_accountant"]),
            measure=self.measure,
            accuracy=accuracy,
            loss=self._loss(key, accuracy),
            twin_loss=None if twin.empty else Estimate.from_row(twin.iloc[0]),
            leak=found,
            proven=proven,
            tuned=tuned_of(own),
            conditions=self._conditions(key, accuracy, found, proven, bool(row["private"]) and not refuted),
            judgment=Judgment(),
            refuted=refuted,
        )

    def _conditions(
        self, key: Key, accuracy: Estimate, leak: Leak | None, proven: Proven | None, chosen_among: bool
    ) -> Conditions:
        rows = self.cells[key]
        advantages = tuple(of_row(row) for _, row in rows[rows["metric"] == METRIC].iterrows())
        limit = proven.advantage if proven else 1.0
        return Conditions(
            use=tuple(self._kept(row, key, accuracy) for _, row in self.undefended.iterrows()),
            guess=self._above_guessing(key, accuracy),
            leak=advantages,
            by_proof=limit <= self.acceptable.advantage,
            limit=limit,
            chosen_among=chosen_among,
            explained=leak is not None and leak.explained,
            hidden=leak is not None and leak.shifted,
        )

    def _kept(self, row: pd.Series, key: Key, accuracy: Estimate) -> Contrast:
        """Return the accuracy minus the required part of an undefended model's accuracy."""
        base: Key = (row["dataset"], row["model"], row["defense"])
        weight = 1 - self.acceptable.accuracy_loss
        paired = _kept_in_pairs(self.tested.get(key), self.tested.get(base), weight)
        return Contrast.unpaired(accuracy, Estimate.from_row(row), weight) if paired is None else paired

    def _above_guessing(self, key: Key, accuracy: Estimate) -> Contrast | None:
        """Return the accuracy minus that of guessing, paired by record if the guess is constant; None: unknown."""
        own = self.tested.get(key)
        if (paired := _kept_in_pairs(own, self.constant, 1.0)) is not None:
            return paired
        if not np.isfinite(self.guessing):
            return None
        if isinstance(own, RightAnswers) and len(own.asked) > 1:
            return above_share(own, self.guessing)
        return Contrast.unpaired(accuracy, Estimate(*[self.guessing] * 3), 1.0)

    def _loss(self, key: Key, accuracy: Estimate) -> Estimate:
        """Return the loss relative to the best undefended model.

        The best model is itself uncertain. The loss relative to the truly best one is the largest loss relative to any,
        so each end of the interval is the largest end over all. An undefended model loses nothing against itself.
        """
        if self.undefended.empty:
            return Estimate(np.nan, np.nan, np.nan)
        best = int(np.argmax(self.undefended["value"]))
        lost = [self._loss_against(row, key, accuracy) for _, row in self.undefended.iterrows()]
        return Estimate(lost[best].value, max(one.low for one in lost), max(one.high for one in lost))

    def _loss_against(self, row: pd.Series, key: Key, accuracy: Estimate) -> Estimate:
        base: Key = (row["dataset"], row["model"], row["defense"])
        if base == key:
            return Estimate(0.0, 0.0, 0.0)
        own, theirs = self.tested.get(key), self.tested.get(base)
        if isinstance(own, Use) and isinstance(theirs, Use):
            return lost_use(own, theirs)
        if isinstance(own, RightAnswers) and isinstance(theirs, RightAnswers) and pairs(own, theirs):
            return paired_loss(own, theirs)
        return unpaired_loss(accuracy, Estimate.from_row(row))


def _kept_in_pairs(own: Tested | None, base: Tested | None, weight: float) -> Contrast | None:
    """Return own − weight · base, paired by record; None if the records are not known to be the same."""
    if isinstance(own, Use) and isinstance(base, Use):
        return kept_use(own, base, weight)
    if isinstance(own, RightAnswers) and isinstance(base, RightAnswers) and pairs(own, base):
        return kept(own, base, weight)
    return None
