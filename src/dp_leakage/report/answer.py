"""The answer of a study: which private setting keeps the accuracy and protects, with the choice paid for.

All settings of a data set, of all its models, are judged in one currency. Accuracy is lost against the best undefended
model of the data set, not against the setting's own twin. Risk is the advantage of an attacker in the study's own game:
what is proven of any attack, and what the strongest attack measures. An ε is shown with its neighbors, and ranks
nothing.

A setting whose ε, or what is proven of it, an attack refutes is not chosen among, and nothing counts as proven of it.

A setting is recommended only if it passes a test of all that it must satisfy (`decision`). So of all studies, at most
one in twenty recommends a setting that fails.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd

from dp_leakage.common.utilities import label_of
from dp_leakage.data.outside import grouping
from dp_leakage.metrics.contrast import Contrast, above_share, kept, kept_use
from dp_leakage.metrics.intervals import Estimate
from dp_leakage.metrics.paired import paired_loss, pairs, unpaired_loss
from dp_leakage.metrics.people import RightAnswers
from dp_leakage.metrics.rows import CELL
from dp_leakage.metrics.spent import contradicted, known, spent
from dp_leakage.metrics.thresholds import METRIC, of_row
from dp_leakage.metrics.utility import Use, lost_use, measure_in, metrics_in
from dp_leakage.report.decision import SINGLE, Conditions, Is, Judgment, Look, judge
from dp_leakage.report.exceeded import exceeded
from dp_leakage.report.forecast import Forecast, forecast, times_records
from dp_leakage.report.guarantees import Proven, proven_of
from dp_leakage.report.leak import Leak, leaks
from dp_leakage.report.tuned import Tuned, tuned_of
from dp_leakage.table.frames import chosen, in_order, is_private
from dp_leakage.table.guesses import SAYS_LITTLE
from dp_leakage.table.looks import Series

NEAR = 1e-3  # relative: what a search for noise misses its ε by, and versions of libraries differ by, is less
Key = tuple[str, str, str]  # data set, model, defense
Tested = RightAnswers | Use  # how models did on new records: which they are right on, or in another measure of use
Kind = Literal["both", "open", "neither", "guessing", "untried", "elsewhere"]


@dataclass(frozen=True)
class Acceptable:
    """What a recommended setting must satisfy.

    Attributes:
        accuracy_loss: the largest acceptable loss in the measure of use, a fraction of the best undefended model's.
        advantage: the largest acceptable advantage of an attacker, in (0, 1].
        risk: ``measured``: the strongest attack's advantage must be at most that, or it must be proven; ``proven``: it
            must be proven of any attack.
    """

    accuracy_loss: float = 0.1
    advantage: float = 0.1
    risk: str = "measured"


@dataclass(frozen=True)
class Setting:
    """One cell, judged beside all others of its data set. Intervals hold for this cell alone, unless said otherwise.

    Attributes:
        dataset, model, defense: names.
        row: the cell's columns.
        private: whether it is a private training with an ε that is known.
        holds: whether the ε that its noise was chosen for is proven of the training as it was run, for any neighbors.
        holds_for: for which neighbors, where not for those of ``spent``; "" where it is for these, or holds for none.
        spent, neighbors, accountant: its accounted ε, for which neighbors ("" if not known), and by whom.
        measure: of use, a key of `utility.UTILITIES`.
        accuracy: what it reaches on new records in that measure.
        loss: of that, a fraction of what the best undefended one reaches.
        twin_loss: the same against the undefended model of the same architecture; None if it was not measured.
        leak: what attackers reach there; None if no membership attack was run.
        proven: the most that any attack could reach; None if nothing is proven.
        tuned: how its learning rate was found; None if it was given.
        conditions: what it must satisfy.
        judgment: what the test shows of it among all private settings.
        refuted: whether an attack refutes its ε or what is proven of it, so that nothing is.
        front: whether no other setting is at least as accurate and as little leaky as measured, and better in one.
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
        """The measure of use in a sentence."""
        return label_of(self.measure)

    @property
    def series(self) -> Series:
        """What its label is made from."""
        return Series(*(self.row[column] for column in Series._fields))

    @property
    def clustered(self) -> bool:
        """Whether its units are subclasses that k-means found among the records that they protect."""
        return bool(self.row.get("partition", "") == "kmeans")

    @property
    def grouping(self) -> str:
        """`outside.grouping` of its units."""
        return grouping(str(self.row["unit"]), "kmeans" if self.clustered else None)

    @property
    def beats(self) -> Is:
        """Whether it is better than guessing the class."""
        return self.judgment.beats

    @property
    def keeps(self) -> Is:
        """Whether the accuracy loss is acceptable and the model better than guessing."""
        return self.judgment.keeps

    @property
    def protects(self) -> Is:
        """Whether the risk is acceptable; ``no`` also where that needs a proof and there is none."""
        return "no" if self.refuted else self.judgment.protects

    @property
    def by_proof(self) -> bool:
        """Whether the risk is proven to be acceptable."""
        return self.conditions.by_proof

    @property
    def shown_to_leak(self) -> bool:
        """Whether an attack surely exceeds the acceptable advantage, and no difference between members and others
        themselves explains it.
        """
        return self.judgment.leaks

    @property
    def advantage(self) -> float:
        """What the strongest attack reaches; infinite if none was run."""
        return self.leak.advantage.value if self.leak else np.inf

    @property
    def limit(self) -> float:
        """What is proven of any attack's advantage; 1 where that excludes almost nothing."""
        return self.proven.advantage if self.proven and self.proven.advantage < SAYS_LITTLE else 1.0


@dataclass(frozen=True)
class Answer:
    """The answer for one data set.

    Attributes:
        dataset: its name.
        kind: ``both``: a setting keeps the accuracy and protects; ``open``: one may; ``neither``: every setting surely
            fails one of the two; ``guessing``: the best undefended model is not surely better than guessing, so that
            no loss means anything; ``untried``: no private setting has an ε that is known and not refuted;
            ``elsewhere``: all models were trained elsewhere, so that there is nothing to choose.
        best: the most accurate undefended model; None if there is none.
        settings: all cells, in the order of legends.
        told: those that the answer is about: the recommended one, the one that may be, or the one that keeps the
            accuracy and the one that protects (each if there is one).
        tried: the private settings that it was chosen among.
        look: the planned look at the study.
        sharers: among how many tests the error of this look was divided (`decision.judge`).
        guessing: what guessing reaches in the measure of use (`metrics.majority.guessing`); NaN if not known.
        acceptable: the limits.
        aware: whether an attack knows the defense that it attacks.
        forecast: what more repeats would do for an open answer; None if it is not open or nothing is known of that.
        times_records: how many times the records would confirm the open setting with any number of repeats; None as for
            `forecast.times_records`.
    """

    dataset: str
    kind: Kind
    best: Setting | None
    settings: tuple[Setting, ...]
    told: tuple[Setting, ...]
    tried: int
    sharers: int
    guessing: float
    acceptable: Acceptable
    aware: bool = True
    look: Look = SINGLE
    forecast: Forecast | None = None
    times_records: float | None = None

    @property
    def measure(self) -> str:
        """Name the measure of use, a key of `utilities.UTILITIES`."""
        return self.settings[0].measure

    @property
    def use_label(self) -> str:
        """The measure of use in a sentence."""
        return self.settings[0].use_label


def answers(
    metrics: pd.DataFrame,
    acceptable: Acceptable | None = None,
    guessing: Mapping[str, float] | None = None,
    aware: bool = True,
    elsewhere: Collection[str] = (),
    tested: Mapping[Key, Tested] | None = None,
    constant: Mapping[str, Tested] | None = None,
    look: Look = SINGLE,
) -> list[Answer]:
    """One answer per data set whose use was measured, in their order.

    Args:
        metrics: rows of all cells.
        acceptable: the limits; None for the defaults.
        guessing: data set → what guessing reaches in the measure of use, if it is known.
        aware: whether an attack learns from models under the defense that it attacks. Where none does, little measured
            leakage is no evidence of protection, and only a proof protects.
        elsewhere: models that were trained elsewhere.
        tested: how the cells did on new records, the same of all cells of a data set. Accuracies of cells without it
            count as independent, so that losses have wider intervals.
        constant: data set → how guessing does on these records, if that says one thing always.
        look: the planned look at the study.
    """
    limits, known, right, named = acceptable or Acceptable(), guessing or {}, tested or {}, constant or {}
    frame = chosen(metrics, {})
    refuted = {*contradicted(frame)[CELL].itertuples(index=False, name=None), *(one.cell for one in exceeded(metrics))}
    found = [
        _answer(
            part,
            refuted,
            limits,
            float(known.get(str(dataset), np.nan)),
            aware,
            right,
            named.get(str(dataset)),
            look,
        )
        for dataset, part in frame.groupby("dataset", sort=False)
        if (part["metric"] == metrics_in(part)[0]).any()
    ]
    return [
        replace(answer, kind="elsewhere", told=answer.settings)
        if all(one.model in elsewhere for one in answer.settings)
        else answer
        for answer in found
    ]


def singled_out(found: Sequence[Answer]) -> set[tuple[str, str, str, str]]:
    """(data set, model, defense, attack): the strongest attack on each undefended model, and on the answers' cells,
    without those whose finds a difference between members and others themselves may explain.
    """
    return {
        (cell.dataset, cell.model, cell.defense, cell.leak.attack)
        for answer in found
        for cell in (*answer.told, *(one for one in answer.settings if one.defense == "none"))
        if cell.leak is not None and not cell.leak.explained
    }


# ---------------------------------------------------------------------- judging
def _answer(
    frame: pd.DataFrame,
    refuted: Collection[Key],
    acceptable: Acceptable,
    guessing: float,
    aware: bool,
    tested: Mapping[Key, Tested],
    constant: Tested | None,
    look: Look,
) -> Answer:
    """The answer from rows over all repeats."""
    metric, lost = metrics_in(frame)
    accuracy = in_order(frame[(frame["metric"] == metric) & frame["value"].notna()])
    accounted = spent(frame).set_index(CELL)
    accuracy = accuracy.assign(
        private=[
            bool(private) and bool(np.isfinite(accounted["epsilon_spent"].get(tuple(key), np.nan)))
            for private, key in zip(is_private(accuracy), accuracy[CELL].to_numpy(), strict=True)
        ]
    )
    undefended = accuracy[accuracy["defense"] == "none"]
    tried = int(accuracy["private"].sum())
    cells = dict(iter(frame.groupby(CELL)))
    least = known(frame).sort_values("epsilon_spent", kind="stable").drop_duplicates(CELL).set_index(CELL)
    reader = _Reader(
        cells,
        tested,
        constant,
        leaks(frame),
        undefended,
        accounted,
        least,
        refuted,
        acceptable,
        guessing,
        measure_in(frame),
        lost,
    )
    read = [reader.setting(row) for _, row in accuracy.iterrows()]
    judgments, sharers = judge(
        [one.conditions for one in read], acceptable.advantage, acceptable.risk, aware, look.level
    )
    settings = _with_front([replace(one, judgment=own) for one, own in zip(read, judgments, strict=True)])
    best = max((one for one in settings if one.defense == "none"), key=lambda one: one.accuracy.value, default=None)
    kind, told = _choose(candidates(settings), acceptable)
    # One that beats guessing is enough, so that nothing is divided among the undefended models.
    bases = [one.conditions.guess for one in settings if one.defense == "none"]
    if bases and not any(guess is None or guess.is_above(0.0, look.level) for guess in bases):
        kind, told = "guessing", []
    found = Answer(
        str(frame["dataset"].iloc[0]),
        kind,
        best,
        tuple(settings),
        tuple(told),
        tried,
        sharers,
        guessing,
        acceptable,
        aware,
        look,
    )
    if kind != "open" or best is None:
        return found
    conditions = [one.conditions for one in settings]
    return replace(
        found,
        forecast=forecast(conditions, acceptable.advantage, acceptable.risk, aware, look),
        times_records=times_records(told[0].conditions, acceptable.advantage, look.levels[-1]),
    )


@dataclass(frozen=True)
class _Reader:
    """Reads the settings of one data set, and what each must satisfy."""

    cells: Mapping[Key, pd.DataFrame]
    tested: Mapping[Key, Tested]
    constant: Tested | None
    leaks: Mapping[Key, Leak]
    undefended: pd.DataFrame
    accounted: pd.DataFrame
    least: pd.DataFrame  # the smallest ε that a valid accountant proves, for any neighbors
    refuted: Collection[Key]  # those whose ε, or what is proven of them, an attack refutes
    acceptable: Acceptable
    guessing: float
    measure: str
    lost: str  # the metric of its loss

    def setting(self, row: pd.Series) -> Setting:
        """Return a setting that is not judged yet."""
        key = (row["dataset"], row["model"], row["defense"])
        own, found = self.cells[key], self.leaks.get(key)
        refuted = key in self.refuted
        proven = None if refuted else proven_of(own, key[2])
        accuracy = _of(row)
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
            twin_loss=None if twin.empty else _of(twin.iloc[0]),
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
        """The accuracy less what must be kept of an undefended model's."""
        base: Key = (row["dataset"], row["model"], row["defense"])
        weight = 1 - self.acceptable.accuracy_loss
        paired = _kept_in_pairs(self.tested.get(key), self.tested.get(base), weight)
        return Contrast.unpaired(accuracy, _of(row), weight) if paired is None else paired

    def _above_guessing(self, key: Key, accuracy: Estimate) -> Contrast | None:
        """The accuracy less that of guessing, record by record where that names one class always; None: not known."""
        own = self.tested.get(key)
        if (paired := _kept_in_pairs(own, self.constant, 1.0)) is not None:
            return paired
        if not np.isfinite(self.guessing):
            return None
        if isinstance(own, RightAnswers) and len(own.asked) > 1:
            return above_share(own, self.guessing)
        return Contrast.unpaired(accuracy, Estimate(*[self.guessing] * 3), 1.0)

    def _loss(self, key: Key, accuracy: Estimate) -> Estimate:
        """Lost against the best undefended model.

        Which one that is is not known for certain. The loss against the truly best is the largest against any, so each
        end is the largest of the ends against all of them. An undefended model loses nothing against itself.
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
        return unpaired_loss(accuracy, _of(row))


def _kept_in_pairs(own: Tested | None, base: Tested | None, weight: float) -> Contrast | None:
    """Return own − weight · base on the same records; None where these are not known to be the same."""
    if isinstance(own, Use) and isinstance(base, Use):
        return kept_use(own, base, weight)
    if isinstance(own, RightAnswers) and isinstance(base, RightAnswers) and pairs(own, base):
        return kept(own, base, weight)
    return None


def _of(row: pd.Series) -> Estimate:
    return Estimate(float(row["value"]), float(row["low"]), float(row["high"]))


def _with_front(settings: list[Setting]) -> list[Setting]:
    """The settings, marked which have no other that is as good in accuracy and measured advantage and better in one."""
    points = [(one.accuracy.value, one.advantage) for one in settings]

    def beaten(own: tuple[float, float]) -> bool:
        return any(use >= own[0] and leak <= own[1] and (use, leak) != own for use, leak in points)

    return [replace(one, front=not beaten(own)) for one, own in zip(settings, points, strict=True)]


# ---------------------------------------------------------------------- choosing
def candidates(settings: Iterable[Setting]) -> list[Setting]:
    """The settings that may be recommended: private ones whose claim nothing refutes."""
    return [one for one in settings if one.private and not one.refuted]


def shown_to_do_both(private: Iterable[Setting]) -> list[Setting]:
    """Those that surely keep the accuracy and surely protect."""
    return [one for one in private if one.keeps == one.protects == "yes"]


def is_within(one: Setting, limits: Acceptable) -> bool:
    """Return whether a setting was measured within both limits, or within that of the risk by proof."""
    return one.loss.value <= limits.accuracy_loss and (one.by_proof or one.advantage <= limits.advantage)


def _excess(one: Setting, limits: Acceptable) -> float:
    """How many times the worse of both numbers is its limit; the loss counts alone where a proof protects."""
    lost = np.nan_to_num(one.loss.value) / max(limits.accuracy_loss, NEAR)
    return float(max(lost, 0.0 if one.by_proof else one.advantage / limits.advantage))


def _choose(private: list[Setting], limits: Acceptable) -> tuple[Kind, list[Setting]]:
    """The kind of answer, and the settings that it is about.

    Of undecided ones, one that was measured within the limits or is within them by proof, and first those that surely
    beat guessing; else the closest.
    """
    if not private:
        return "untried", []
    sure = shown_to_do_both(private)
    if sure:
        return "both", [_safest(sure)]
    may = [one for one in private if "no" not in (one.keeps, one.protects)]
    if may:
        within = [one for one in may if is_within(one, limits)]
        closest = min(may, key=lambda one: _excess(one, limits))
        return "open", [_safest(_first(within, "beats")) if within else closest]
    keeping = _first([one for one in private if one.keeps != "no"], "keeps")
    protecting = _first([one for one in private if one.protects != "no"], "protects")
    told = [_safest(keeping)] if keeping else []
    told += [_most_accurate(protecting)] if protecting else []
    return "neither", told or [_most_accurate(private)]


def _most_accurate(settings: list[Setting]) -> Setting:
    return max(settings, key=lambda one: one.accuracy.value)


def _first(settings: list[Setting], condition: str) -> list[Setting]:
    """Those that surely satisfy a condition, else all."""
    return [one for one in settings if getattr(one, condition) == "yes"] or settings


def _safest(settings: list[Setting]) -> Setting:
    """The one with the smallest proven limit; of equal ones that a proof protects the most accurate, of others the most
    accurate of those not surely leakier than the one that leaks least.
    """
    limit = min(one.limit for one in settings)
    alike = [one for one in settings if one.limit <= limit]
    least = min(alike, key=lambda one: one.advantage)
    if least.leak is None or all(one.by_proof for one in alike):
        return _most_accurate(alike)
    ceiling = least.leak.advantage.high
    tied = [one for one in alike if one.leak is not None and one.leak.advantage.low <= ceiling]
    return _most_accurate(tied)
