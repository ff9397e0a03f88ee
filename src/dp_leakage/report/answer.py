"""The answer of a study: the private setting that keeps the accuracy and protects, or why there is none.

All settings of a data set are compared by two numbers. The loss of accuracy is relative to the best undefended model of
the data set, of any architecture. The risk is an attacker's advantage in the study's own game: the proven limit of any
attack, and the measured advantage of the strongest attack. An ε is shown with its neighbors and does not rank settings.

If an attack refutes the ε or the proven limit of a setting, the setting cannot be recommended and counts as unproven.

A recommended setting has passed a test of all its conditions (`decision`). So at most one study in twenty recommends a
setting that fails a condition.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd

from dp_leakage.metrics.rows import CELL
from dp_leakage.metrics.spent import contradicted, known, spent
from dp_leakage.metrics.utility import measure_in, metrics_in
from dp_leakage.report.decision import SINGLE, Look, judge
from dp_leakage.report.exceeded import exceeded
from dp_leakage.report.forecast import Forecast, forecast, times_records
from dp_leakage.report.leak import leaks
from dp_leakage.report.reader import NEAR, Key, Reader, Tested
from dp_leakage.report.setting import Acceptable, Setting, candidates, is_within, shown_to_do_both
from dp_leakage.table.frames import chosen, in_order, is_private

Kind = Literal["both", "open", "neither", "guessing", "untried", "elsewhere"]


@dataclass(frozen=True)
class Answer:
    """The answer for one data set.

    Attributes:
        dataset: its name.
        kind: ``both``: a setting keeps the accuracy and protects; ``open``: a setting may do both; ``neither``: every
            setting significantly fails one of the two; ``guessing``: no undefended model is shown to beat guessing, so
            losses mean nothing; ``untried``: every private setting has an unknown or refuted ε; ``elsewhere``: all
            models are external, so there is nothing to choose.
        best: the most accurate undefended model; None if there is none.
        settings: all cells, in the order of legends.
        told: the settings named in the answer: the recommended one, the closest one, or the setting that keeps the
            accuracy and the setting that protects (each if it exists).
        tried: number of private settings in the comparison.
        look: the planned look at the study.
        sharers: number of tests that share the error of this look (`decision.judge`).
        guessing: value of guessing in the measure of use (`metrics.majority.guessing`); NaN: unknown.
        acceptable: the limits.
        aware: whether a defense-aware attack was run.
        forecast: effect of more repeats on an open answer; None for other answers, or if unknown.
        times_records: factor on the number of records that would confirm the open setting; None as for
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
        """Return the measure of use, as in a sentence."""
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
    """Return an answer for each data set with a measured use, in their order.

    Args:
        metrics: rows of all cells.
        acceptable: the limits; None for the defaults.
        guessing: data set → value of guessing in the measure of use, if known.
        aware: whether a defense-aware attack was run. Without one, low measured leakage is not evidence of protection,
            and only a proof protects.
        elsewhere: names of external models.
        tested: cell → results on new records, which all cells of a data set share. Accuracies of other cells count as
            independent, so their losses have wider intervals.
        constant: data set → results of a constant guess on these records, if guessing is constant.
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
    """Return (data set, model, defense, attack) of the strongest attack on each undefended model and named setting.

    Attacks whose success a difference between member and non-member records may explain are left out.
    """
    return {
        (cell.dataset, cell.model, cell.defense, cell.leak.attack)
        for answer in found
        for cell in (*answer.told, *(one for one in answer.settings if one.defense == "none"))
        if cell.leak is not None and not cell.leak.explained
    }


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
    """Return the answer for one data set, from rows over all repeats."""
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
    reader = Reader(
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
    # One undefended model that beats guessing is enough, so they do not share the error.
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


def _with_front(settings: list[Setting]) -> list[Setting]:
    """Mark the settings that are Pareto-optimal in accuracy and measured advantage."""
    points = [(one.accuracy.value, one.advantage) for one in settings]

    def beaten(own: tuple[float, float]) -> bool:
        return any(use >= own[0] and leak <= own[1] and (use, leak) != own for use, leak in points)

    return [replace(one, front=not beaten(own)) for one, own in zip(settings, points, strict=True)]


def _excess(one: Setting, limits: Acceptable) -> float:
    """Return the larger ratio of loss and advantage to their limits; only of the loss if a proof protects."""
    lost = np.nan_to_num(one.loss.value) / max(limits.accuracy_loss, NEAR)
    return float(max(lost, 0.0 if one.by_proof else one.advantage / limits.advantage))


def _choose(private: list[Setting], limits: Acceptable) -> tuple[Kind, list[Setting]]:
    """Return the kind of answer, and the settings that it names.

    Among undecided settings, a setting within both limits comes first, preferably one that is shown to beat guessing;
    without such a setting, the one closest to the limits is named.
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
    """Return the settings that are shown to satisfy a condition, or all if there are none."""
    return [one for one in settings if getattr(one, condition) == "yes"] or settings


def _safest(settings: list[Setting]) -> Setting:
    """Return the setting with the smallest proven limit.

    Ties: the most accurate setting. Without protection by a proof, only settings that are not significantly leakier
    than the least leaky one compete.
    """
    limit = min(one.limit for one in settings)
    alike = [one for one in settings if one.limit <= limit]
    least = min(alike, key=lambda one: one.advantage)
    if least.leak is None or all(one.by_proof for one in alike):
        return _most_accurate(alike)
    ceiling = least.leak.advantage.high
    tied = [one for one in alike if one.leak is not None and one.leak.advantage.low <= ceiling]
    return _most_accurate(tied)
