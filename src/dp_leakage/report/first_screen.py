"""The first screen of an answer: a verdict in a word, cards that compare numbers with limits, and 100 guesses.

The test alone (`decision`) decides whether a card says "within" or "beyond" its limit, not the drawn interval. The
numbers are those of the setting's tiles, which are claims.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from markupsafe import Markup, escape

from dp_leakage.common.shown import capital
from dp_leakage.common.utilities import ACCURACY
from dp_leakage.metrics.intervals import Estimate
from dp_leakage.report.answer import Answer, Setting, candidates, shown_to_do_both
from dp_leakage.report.claims import ClaimWriter, percent
from dp_leakage.report.decision import Is
from dp_leakage.report.guarantees import rounded_up
from dp_leakage.report.phrases import describe_epsilon, label_budget, name_assumptions
from dp_leakage.table.guesses import MODERATE, SAYS_LITTLE, STRONG, bar, most_of_100, of_100
from dp_leakage.table.numbers import fraction, interval
from dp_leakage.table.words import name

Tone = Literal["good", "open", "bad", "plain"]
LEFT, RIGHT, TOP, THICK = 6.0, 294.0, 18.0, 12.0  # of a gauge, in a picture of 300 × 60


@dataclass(frozen=True)
class Chip:
    """The verdict: a sign, a word and a color."""

    sign: str
    word: str
    tone: Tone


@dataclass(frozen=True)
class Card:
    """A number of the answer's setting, compared with its limit.

    Attributes:
        label: name of the number.
        state: its state, by the test.
        figure: the number.
        words: its interval and its limit.
        gauge: an SVG drawing.
    """

    label: str
    state: Chip
    figure: str
    words: str
    gauge: Markup


@dataclass(frozen=True)
class Guesses:
    """Number of right guesses of an attacker who is shown 100 records, half of them members.

    Attributes:
        setting: the attacked setting.
        measured, undefended: by the strongest attack, on this setting and on the best undefended model; None without
            attack.
        most: the proven maximum of any attack; None without a proof.
        bar: an SVG drawing.
    """

    setting: str
    measured: int
    undefended: int | None
    most: int | None
    bar: Markup


def chip_of(answer: Answer) -> Chip:
    """Return the verdict on a data set in a word."""
    if answer.kind == "both":
        private = candidates(answer.settings)
        if len(private) > 1 and len(shown_to_do_both(private)) == len(private):
            return Chip("✓", "All qualify", "good")
        return Chip("✓", "Recommended, proven" if answer.told[0].by_proof else "Recommended", "good")
    if answer.kind == "elsewhere":
        leaks = [one.leak for one in answer.settings if one.leak is not None and one.leak.advantage.low > 0]
        shown = any(not leak.explained and not leak.shifted for leak in leaks)
        return Chip("✗", "Leaks", "bad") if shown else Chip("?", "No leak shown", "open")
    return {
        "open": Chip("?", "Cannot tell", "open"),
        "neither": Chip("✗", "None qualifies", "bad"),
        "guessing": Chip("–", "Not measurable", "plain"),
        "untried": Chip("–", "No budget", "plain"),
    }[answer.kind]


def about(answer: Answer) -> str:
    """Name the setting of the cards if the sentence above names two; otherwise return ""."""
    return _called(answer.told[0]) if answer.kind == "neither" and len(answer.told) > 1 else ""


def cards_of(answer: Answer, outside: Sequence[str] = ()) -> list[Card]:
    """Return the cards of the answer's first setting; none where there is nothing to choose.

    ``outside`` is the preparation that no ε of the data set covers.
    """
    if answer.kind not in ("both", "open", "neither"):
        return []
    one = answer.told[0]
    return [card for card in (_lost(answer, one), _leaked(answer, one), _guaranteed(answer, one, outside)) if card]


def guesses_of(answer: Answer) -> Guesses | None:
    """Return the attacker's right guesses on the answer's first setting; None without an attack."""
    if answer.kind not in ("both", "open", "neither") or (one := answer.told[0]).leak is None:
        return None
    bare = answer.best.leak if answer.best else None
    measured, undefended = of_100(one.advantage), of_100(bare.advantage.value) if bare else None
    tells = one.proven is not None and one.proven.advantage < SAYS_LITTLE
    most = most_of_100(one.limit) if tells else None
    return Guesses(_called(one), measured, undefended, most, bar(measured, undefended, most))


def _lost(answer: Answer, one: Setting) -> Card | None:
    if not np.isfinite(one.loss.value) or answer.best is None:
        return None
    figure, _, ends = percent(one.loss).partition(" [")
    own, base = (_reaches(setting) for setting in (one, answer.best))
    words = f"[{ends}. {own} of new records are right, {base} {_bare(one, answer.best)}."
    if one.measure != ACCURACY:
        words = f"[{ends}. {one.use_label} {own} on new records, {base} {_bare(one, answer.best)}."
    limit = answer.acceptable.accuracy_loss
    gauge = _gauge(one.loss, limit, f"limit {100 * limit:g} %", max(2 * limit, 1.05 * one.loss.high))
    return Card(f"{capital(one.use_label)} lost", _state(one.keeps), figure, words, gauge)


def _bare(one: Setting, best: Setting) -> str:
    """Name the undefended model that a setting is compared with: its architecture too if that is another."""
    return "without privacy" if best.model == one.model else f"without privacy ({name(best.model)})"


def _reaches(one: Setting) -> str:
    if one.measure == ACCURACY:
        return percent(one.accuracy).partition(" [")[0]
    return fraction(one.accuracy.value)


def _leaked(answer: Answer, one: Setting) -> Card | None:
    if one.leak is None:
        return None
    found, limit = one.leak.advantage, answer.acceptable.advantage
    bare = answer.best.leak.advantage.value if answer.best and answer.best.leak else None
    figure, _, ends = interval(*found).partition(" [")
    whose = f"the strongest of {one.leak.tried} attacks" if one.leak.tried > 1 else name(one.leak.attack)
    state = _state("no" if one.shown_to_leak else "yes" if one.protects == "yes" and not one.by_proof else "open")
    if one.by_proof and not one.shown_to_leak:
        state = Chip("", "proof decides", "plain")
    width = max(2 * limit, 1.05 * found.high, 1.15 * (bare or 0.0))
    words = f"[{ends}, {whose}; 0 is guessing. Another attack may find more."
    mark = (bare, _bare(one, answer.best)) if answer.best and bare is not None else None
    return Card("Measured leakage", state, figure, words, _gauge(found, limit, f"limit {limit:g}", width, mark))


def _guaranteed(answer: Answer, one: Setting, outside: Sequence[str]) -> Card:
    writer, limit = ClaimWriter(), answer.acceptable.advantage
    budget = f"{describe_epsilon(one)}."
    if one.proven is None or one.proven.advantage >= SAYS_LITTLE:
        figure = "–" if one.proven is None else rounded_up(one.proven.advantage)
        words = f"{'Nothing' if one.proven is None else 'Next to nothing'} is proven of other attacks. {budget}"
        return Card("Guaranteed", Chip("", "no protection proven", "plain"), figure, words, Markup())
    known, most = name_assumptions(one, outside, writer), one.proven.advantage
    words = f"No attack can have a larger advantage{f', given {known}' if known else ''}. {budget}"
    state = Chip("✓", "within limit", "good") if one.by_proof else Chip("", _strength(most), "plain")
    gauge = _gauge(Estimate(most, most, most), limit, f"limit {limit:g}", 1.0)
    return Card("Guaranteed", state, rounded_up(most), words, gauge)


def _strength(most: float) -> str:
    return "strong" if most <= STRONG else "moderate" if most <= MODERATE else "weak"


def _state(shown: Is) -> Chip:
    states: dict[Is, Chip] = {
        "yes": Chip("✓", "within limit", "good"),
        "no": Chip("✗", "beyond limit", "bad"),
        "open": Chip("?", "undecided", "open"),
    }
    return states[shown]


def _called(one: Setting) -> str:
    return f"{label_budget(one)} ({name(one.model)})"


def _gauge(found: Estimate, limit: float, words: str, width: float, mark: tuple[float, str] | None = None) -> Markup:
    """Draw a track from 0 to ``width`` with the acceptable range, limit, interval, value and a further named value."""

    def x(value: float) -> float:
        return LEFT + (RIGHT - LEFT) * min(max(value / width, 0.0), 1.0)

    at, middle = x(limit), TOP + THICK / 2
    anchor = "start" if at < 60 else "end" if at > 240 else "middle"
    parts = [
        f'<rect class="acceptable" x="{LEFT:.1f}" y="{TOP}" width="{at - LEFT:.1f}" height="{THICK}"/>',
        f'<rect class="track" x="{at:.1f}" y="{TOP}" width="{RIGHT - at:.1f}" height="{THICK}"/>',
        f'<line class="limit" x1="{at:.1f}" x2="{at:.1f}" y1="{TOP - 5}" y2="{TOP + THICK + 5}"/>',
        f'<text x="{LEFT if anchor == "start" else at:.1f}" y="49" text-anchor="{anchor}">{escape(words)}</text>',
    ]
    if mark is not None:
        there, called = x(mark[0]), mark[1]
        beside = "start" if there < 60 else "end" if there > 180 else "middle"
        parts += [
            f'<line class="bare" x1="{there:.1f}" x2="{there:.1f}" y1="{TOP - 5}" y2="{TOP + THICK + 5}"/>',
            f'<text x="{there:.1f}" y="10" text-anchor="{beside}">{escape(called)}</text>',
        ]
    low, high = x(found.low), x(found.high)
    parts += [
        f'<rect class="interval" x="{low:.1f}" y="{TOP + 2}" width="{high - low:.1f}" height="{THICK - 4}" rx="4"/>',
        f'<circle class="value" cx="{x(found.value):.1f}" cy="{middle}" r="6.5"/>',
    ]
    return Markup(f'<svg viewBox="0 -5 300 60" class="gauge" aria-hidden="true">{"".join(parts)}</svg>')
