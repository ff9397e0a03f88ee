"""From a context to HTML."""

import re
from base64 import b64encode
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from dp_leakage import figures
from dp_leakage.figures.notes import remarks
from dp_leakage.figures.numbers import fraction, interval
from dp_leakage.figures.style import Series, look, name, number
from dp_leakage.intervals import Estimate
from dp_leakage.report import tables
from dp_leakage.report.answer import Answer, answers, best_of
from dp_leakage.report.context import ReportContext, ReportFigure

TEMPLATE = Path(__file__).with_name("template.html")
QUESTION = (
    "What does each privacy budget cost in accuracy, and what does an attacker still learn about the training records?"
)
SHOWN_AS_TABLE = "members_exposed"  # the page has the same numbers as a table


def render(context: ReportContext) -> str:
    """The page: one HTML document with its style and pictures inside, without scripts, that loads nothing."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"words": name, "thousands": lambda value: f"{value:,}", "unbroken": unbroken}
    found = answers(context.metrics, context.tolerance)
    pictures = [figure for figure in context.figures if figure.kind != SHOWN_AS_TABLE]
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        context=context,
        question=context.question or QUESTION,
        broken=tables.broken_claims(context.metrics),
        answers=[sentences(answer, context.tolerance) for answer in best_of(found)],
        answer_table=_answer_table(found) if found else None,
        first=[_picture(figure) for figure in pictures if figure.kind == "pareto"],
        others=[_picture(figure) for figure in pictures if figure.kind != "pareto"],
        most_exposed=tables.most_exposed(context.exposed),
        spent=tables.claimed_and_spent(context.metrics),
        remarks=remarks(context.metrics.fillna({"accountant": "", "setting": ""})),
        audited=(context.metrics["metric"] == "epsilon_lower_bound").any(),
        any_hypothetical=context.metrics["setting"].str.contains("hypothetical_poisson").any(),
        exposed=tables.members_exposed(context.metrics),
        verdicts=tables.verdicts(context.metrics),
        defenses=tables.defenses(context.metrics),
        times=tables.times(context.timings),
    )


def sentences(answer: Answer, tolerance: float) -> tuple[str, str]:
    """The answer in two sentences: the budget to choose, and what leaks there."""
    claim = (
        f"ε = {number(answer.claimed)}"
        if np.isfinite(answer.claimed)
        else f"σ = {number(answer.row['noise_multiplier'])}"
    )
    cell = f"{claim} ({look_of(answer)}, {name(answer.model)})"
    lost = f"{_percent(answer.loss)} of the undefended accuracy"
    limit = f"keeps the accuracy loss below {100 * tolerance:g} %"
    first = {
        "met": f"the smallest budget that {limit} is {cell}: it costs {lost}",
        "barely": f"no budget surely {limit}; the smallest that may is {cell}: it costs {lost}, so chance decides",
        "missed": f"no private model {limit}; the most accurate, {cell}, costs {lost}",
    }[answer.verdict]
    return f"On {name(answer.dataset)}, {first}{_spent_words(answer)}.", _leak_words(answer)


def unbroken(text: str) -> str:
    """The text with spaces that do not break within a formula, an interval or before a percent sign."""
    text = text.replace(" = ", "\u00a0=\u00a0").replace(" %", "\u00a0%")
    return re.sub(r"\[[^]]*\]", lambda found: found[0].replace(" ", "\u00a0"), text)


def look_of(answer: Answer) -> str:
    """The label of the answer's series."""
    row = answer.row
    return look(Series(row["mechanism"], row["accountant"], row["unit"], row["block"])).label


def _spent_words(answer: Answer) -> str:
    if not np.isfinite(answer.spent):
        return ""
    neighbours = f" ({name(answer.neighbours)} neighbours)" if answer.neighbours else ""
    return f", and its training really spent ε = {number(answer.spent)}{neighbours}"


def _leak_words(answer: Answer) -> str:
    if answer.leak is None:
        return "No membership attack was run on it."
    attack = (
        f"the strongest attack tried, {name(answer.attack)}, has an advantage of {interval(*answer.leak)} over guessing"
    )
    judged = "more than chance explains" if answer.leak.low > 0 else "which chance alone could explain"
    before = f", against {_undefended(answer)} without any defence" if answer.undefended_leak else ""
    return f"There {attack}, {judged}{before}."


def _undefended(answer: Answer) -> str:
    other = f" of {name(answer.undefended_attack)}" if answer.undefended_attack != answer.attack else ""
    return interval(*answer.undefended_leak) + other


def _percent(estimate: Estimate) -> str:
    value, low, high = (f"{round(100 * x, 1) + 0.0:.1f}".replace("-", "−") for x in estimate)
    return f"{value} % [{low}, {high}]"


def _answer_table(found: list[Answer]) -> tables.HtmlTable:
    """A column per data set and model: what the sentences say, for all of them."""

    def row(words: str, texts: Iterable[str]) -> list[str]:
        return [words, *texts]

    def estimates(words: str, values: Iterable[Estimate | None]) -> list[str]:
        return row(words, (interval(*value) if value else "–" for value in values))

    verdicts = {"met": "", "barely": " (barely accurate enough)", "missed": " (not accurate enough)"}
    rows = [
        row("defence", (look_of(a) + verdicts[a.verdict] for a in found)),
        row("ε claimed", (number(a.claimed) for a in found)),
        row("ε spent", (number(a.spent) for a in found)),
        estimates("accuracy loss (fraction)", (a.loss for a in found)),
        estimates("test accuracy", (a.accuracy for a in found)),
        estimates("… undefended", (a.undefended_accuracy for a in found)),
        row("strongest attack", (name(a.attack) or "–" for a in found)),
        estimates("its advantage", (a.leak for a in found)),
        row("… undefended", (_undefended(a) if a.undefended_leak else "–" for a in found)),
        row("any attack's, at most", (fraction(a.guaranteed) for a in found)),
    ]
    return tables.HtmlTable("", ["", *(f"{name(a.dataset)} · {name(a.model)}" for a in found)], rows)


def _picture(figure: ReportFigure) -> dict[str, str]:
    return {
        "name": figure.name,
        "title": figure.title,
        "caption": figure.caption or figures.FIGURES[figure.kind].caption,
        "source": f"data:image/png;base64,{b64encode(figure.png).decode()}",
    }
