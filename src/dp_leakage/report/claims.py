"""Claims: sentences of the page as objects, with every number, its meaning and its corrections.

The page, ``claims.json`` next to it and the last lines of a run are made from one list of claims. A number enters a
sentence only through `ClaimWriter`, so each number on the page is in the list.
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
    """A number in a sentence.

    Attributes:
        estimates: its meaning: a metric (``test_accuracy``, ``accuracy_loss_best``, ``reached_advantage``, …), or an
            input (``limit_accuracy_loss``, ``claimed_epsilon``, ``delta``, ``count``, …).
        value: the number itself, a fraction even where the sentence has a percentage.
        low, high: its interval; None if it has none.
        shown: its text in the sentence.
        dataset, model, defense: its cell; "" if it belongs to none.
        qualifiers: further conditions, named as in ``metrics.parquet`` (``prior``: the share of members among the
            records an attacker asks about).
        among: number of intervals that hold simultaneously with the stated confidence, this one included.
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
        """Describe how the interval is corrected for a choice; "" without a correction."""
        return "bonferroni" if self.among > 1 else "none"


FIELDS = {one.name for one in fields(Number)}


@dataclass(frozen=True)
class Claim:
    """A sentence, or a few that belong together.

    Attributes:
        id: unique in the study: ``DATASET.KIND``, with a number if there are several.
        kind: its topic: ``answer``, ``outside``, ``accuracy``, ``epsilon``, ``proven``, ``refuted``, ….
        dataset: the data set; "" for the whole study.
        words: the sentence; with a label and a figure, the text below them.
        label, figure: a short heading and its number; "" for none.
        verdict: for an answer: ``both``, ``open``, ``neither``, ``guessing``, ``untried`` or ``elsewhere``; "" for
            other kinds.
        cells: (model, defense) of its cells, in the order of the sentence.
        screen: position on the page: 0 in the alarm at the top, 1 before the first figure, 2 below it, 3 folded.
        numbers: all numbers in the sentence.
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
class ClaimWriter:
    """Writer that puts numbers into sentences and records them.

    Attributes:
        where: the numbers' cell and other common properties: fields of `Number`, or qualifiers.
        numbers: the numbers written so far.
    """

    where: dict[str, Any] = field(default_factory=dict)
    numbers: list[Number] = field(default_factory=list)

    def __call__(self, estimates: str, value: float, shown: str, **more: Any) -> str:
        """Record a number and return its text."""
        given = {"low": None, "high": None, **self.where, **more}
        own = {key: given.pop(key) for key in FIELDS & given.keys()}
        self.numbers.append(Number(estimates, float(value), shown=shown, **own, qualifiers=given))
        return shown

    def claim(self, id: str, kind: str, dataset: str, words: str, **more: Any) -> Claim:
        """Return a claim with all numbers written so far; ``more`` are further fields of `Claim`."""
        return Claim(id, kind, dataset, words, numbers=tuple(self.numbers), **more)

    def percent(self, estimates: str, estimate: Estimate, **more: Any) -> str:
        """Format a fraction as ``12.3 % [10.1, 14.5]``."""
        return self._interval(estimates, estimate, percent(estimate), more)

    def fraction(self, estimates: str, estimate: Estimate, **more: Any) -> str:
        """Record a number and return it as ``0.123 [0.101, 0.145]``."""
        ends = f" [{fraction(estimate.low)}, {fraction(estimate.high)}]" if np.isfinite(estimate[1:]).all() else ""
        return self._interval(estimates, estimate, fraction(estimate.value) + ends, more)

    def plain(self, estimates: str, value: float, **more: Any) -> str:
        """Record an input, e.g. an ε, and return its text."""
        return self(estimates, value, number(value), **more)

    def count(self, value: int) -> str:
        """Record a count and return its text."""
        return self("count", value, f"{value:,}")

    def _interval(self, estimates: str, estimate: Estimate, shown: str, more: dict[str, Any]) -> str:
        value, low, high = map(float, estimate)
        return self(estimates, value, shown, low=low, high=high, **more)


def percent(estimate: Estimate) -> str:
    """Format a fraction as ``12.3 % [10.1, 14.5]``."""
    value, low, high = (f"{round(100 * x, 1) + 0.0:.1f}".replace("-", "−") for x in estimate)
    return f"{value} % [{low}, {high}]"


def as_json(study: str, title: str, reduced: str, claims: list[Claim]) -> dict[str, Any]:
    """Return the content of ``claims.json``, in values that JSON has: unknown and infinite numbers become null.

    ``reduced`` is the warning of a run at a reduced scale; "" at full scale.
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
    """Return the refuted claims and each data set's answer, from the content of ``claims.json``."""
    said = {REFUTED: "A privacy claim is broken: ", ANSWER: ""}
    return [said[claim["kind"]] + claim["words"] for claim in content["claims"] if claim["kind"] in said]


def verdict_on(content: dict[str, Any], cell: tuple[str, str, str]) -> list[str]:
    """Return whether ``claims.json`` refutes a setting, and whether it recommends the setting.

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
