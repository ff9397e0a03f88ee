"""Sentences as objects: what the page says, with each number, what that estimates and under which choice.

The page, ``claims.json`` beside it and the last lines of a run are all made from the same list. A number enters a
sentence only through `Telling`, so each one on the page is in the list.
"""

from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np

from dp_leakage.metrics.intervals import CONFIDENCE, Estimate
from dp_leakage.table.numbers import fraction, number

FORMAT = 4  # of claims.json
ANSWER, REFUTED = "answer", "refuted"  # kinds of claims with which a run ends


@dataclass(frozen=True)
class Number:
    """One number of a sentence.

    Attributes:
        estimates: what it is: a metric (``test_accuracy``, ``accuracy_loss_best``, ``reached_advantage``, …), or what
            was given (``limit_accuracy_loss``, ``claimed_epsilon``, ``delta``, ``count``, …).
        value: the number itself, a fraction where the sentence says per cent.
        low, high: its interval; None if it has none.
        shown: as it stands in the sentence.
        dataset, model, defense: the cell that it belongs to; "" if to none.
        qualifiers: what it depends on, named as in ``metrics.parquet`` (``prior``: the share of members among those
            asked about).
        among: for how many numbers at once intervals like this one hold with the stated confidence: 1 for itself alone.
        confidence: of the interval.
    """

    estimates: str
    value: float
    low: float | None
    high: float | None
    shown: str
    dataset: str = ""
    model: str = ""
    defense: str = ""
    qualifiers: dict[str, Any] = field(default_factory=dict)
    among: int = 1
    confidence: float = CONFIDENCE

    @property
    def correction(self) -> str:
        """How the interval pays for a choice."""
        return "bonferroni" if self.among > 1 else "none"


FIELDS = {one.name for one in fields(Number)}


@dataclass(frozen=True)
class Claim:
    """One sentence, or few that belong together.

    Attributes:
        id: unique in the study: ``DATASET.KIND`` and a number where there are several.
        kind: what it is about: ``answer``, ``outside``, ``accuracy``, ``epsilon``, ``proven``, ``refuted``, ….
        dataset: the data set; "" for the whole study.
        words: the sentence; after a label and a figure, what stands below them.
        label, figure: a heading of few words, and the number that it is about; "" for none.
        verdict: of the answer: ``both``, ``open``, ``neither``, ``guessing``, ``untried`` or
            ``elsewhere``; "" of others.
        cells: (model, defense) of the cells that it is about, in the order of the sentence.
        screen: 0: in the alarm above all; 1: before the page's first figure; 2: below it; 3: folded.
        numbers: every number in the words.
    """

    id: str
    kind: str
    dataset: str
    words: str
    label: str = ""
    figure: str = ""
    verdict: str = ""
    cells: tuple[tuple[str, str], ...] = ()
    screen: int = 3
    numbers: tuple[Number, ...] = ()


@dataclass
class Telling:
    """Writes numbers into a sentence, and keeps them.

    Attributes:
        where: the cell that numbers belong to, and whatever else they share: fields of `Number`, or qualifiers.
        numbers: those written so far.
    """

    where: dict[str, Any] = field(default_factory=dict)
    numbers: list[Number] = field(default_factory=list)

    def __call__(self, estimates: str, value: float, shown: str, **more: Any) -> str:
        """A number, shown as it says."""
        given = {"low": None, "high": None, **self.where, **more}
        own = {key: given.pop(key) for key in FIELDS & given.keys()}
        self.numbers.append(Number(estimates, float(value), shown=shown, **own, qualifiers=given))
        return shown

    def claim(self, id: str, kind: str, dataset: str, words: str, **more: Any) -> Claim:
        """A claim with all numbers that were written so far; ``more`` are further fields of `Claim`."""
        return Claim(id, kind, dataset, words, numbers=tuple(self.numbers), **more)

    def percent(self, estimates: str, estimate: Estimate, **more: Any) -> str:
        """A fraction as ``12.3 % [10.1, 14.5]``."""
        return self._interval(estimates, estimate, percent(estimate), more)

    def fraction(self, estimates: str, estimate: Estimate, **more: Any) -> str:
        """A number as ``0.123 [0.101, 0.145]``."""
        ends = f" [{fraction(estimate.low)}, {fraction(estimate.high)}]" if np.isfinite(estimate[1:]).all() else ""
        return self._interval(estimates, estimate, fraction(estimate.value) + ends, more)

    def plain(self, estimates: str, value: float, **more: Any) -> str:
        """A given number, such as an ε."""
        return self(estimates, value, number(value), **more)

    def count(self, value: int) -> str:
        """A number of things."""
        return self("count", value, f"{value:,}")

    def _interval(self, estimates: str, estimate: Estimate, shown: str, more: dict[str, Any]) -> str:
        value, low, high = map(float, estimate)
        return self(estimates, value, shown, low=low, high=high, **more)


def percent(estimate: Estimate) -> str:
    """A fraction as ``12.3 % [10.1, 14.5]``."""
    value, low, high = (f"{round(100 * x, 1) + 0.0:.1f}".replace("-", "−") for x in estimate)
    return f"{value} % [{low}, {high}]"


def as_json(study: str, title: str, reduced: str, claims: list[Claim]) -> dict[str, Any]:
    """The content of ``claims.json``: only values that JSON has, an unknown or infinite number as null.

    ``reduced`` is what a run at a reduced scale says of itself, "" at full scale.
    """

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(one) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return [plain(one) for one in value]
        return None if isinstance(value, float) and not np.isfinite(value) else value

    told = [
        {**asdict(claim), "numbers": [{**asdict(one), "correction": one.correction} for one in claim.numbers]}
        for claim in claims
    ]
    return {"format": FORMAT, "study": study, "title": title, "reduced": reduced, "claims": plain(told)}


def headlines(content: dict[str, Any]) -> list[str]:
    """Refuted claims and the deciding sentence of each data set, from the content of ``claims.json``."""
    said = {REFUTED: "A privacy claim is broken: ", ANSWER: ""}
    return [said[claim["kind"]] + claim["words"] for claim in content["claims"] if claim["kind"] in said]


def verdict_on(content: dict[str, Any], cell: tuple[str, str, str]) -> list[str]:
    """Return what ``claims.json`` says of one setting: whether it is refuted, and whether the answer recommends it.

    Args:
        content: of ``claims.json``.
        cell: data set, model and defense.
    """
    dataset, *setting = cell
    said = [claim for claim in content["claims"] if claim["dataset"] == dataset and claim["kind"] in (ANSWER, REFUTED)]
    sentences = []
    for claim in said:
        named = setting in claim["cells"]
        if claim["kind"] == REFUTED and named:
            sentences.append(f"The report refutes what this setting claims: {claim['words']}")
        if claim["kind"] == ANSWER:
            recommends = "recommends" if claim["verdict"] == "both" and named else "does not recommend"
            sentences.append(f"The report {recommends} this setting: {claim['words']}")
    return sentences
