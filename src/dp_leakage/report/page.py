"""From a context to HTML."""

import re
from base64 import b64encode
from collections.abc import Iterable
from pathlib import Path

from dp_leakage.figures.members_exposed import tossed
from dp_leakage.figures.notes import remarks
from dp_leakage.figures.numbers import fraction, interval
from dp_leakage.figures.style import name, number
from dp_leakage.metrics.intervals import Estimate
from dp_leakage.provenance.files import UNSEALED
from dp_leakage.report import tables
from dp_leakage.report.answer import Answer, answers, best_of
from dp_leakage.report.context import ReportContext, ReportFigure
from dp_leakage.report.leak import Leak
from dp_leakage.report.proven import rounded_up
from dp_leakage.report.words import UNAWARE, look_of, sentences

TEMPLATE = Path(__file__).with_name("template.html")
QUESTION = (
    "What does each privacy budget cost in accuracy, and what does an attacker still learn about the training records?"
)
SHOWN_AS_TABLE = "members_exposed"  # the page shows the same numbers as a table


def render(context: ReportContext) -> str:
    """The page: one HTML document with its style and pictures inside, without scripts. It loads nothing."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"words": name, "thousands": lambda value: f"{value:,}", "unbroken": unbroken}
    found = answers(context.metrics, context.tolerance, {data.name: data.guessing for data in context.data})
    pictures = [figure for figure in context.figures if figure.kind != SHOWN_AS_TABLE]
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        seal=UNSEALED,
        context=context,
        question=context.question or QUESTION,
        broken=tables.broken_claims(context.metrics),
        beware="" if context.aware else UNAWARE,
        answers=[sentences(answer, context.tolerance) for answer in best_of(found)],
        answer_table=_answer_table(found) if found else None,
        first=[_picture(figure) for figure in pictures if figure.kind == "pareto"],
        others=[_picture(figure) for figure in pictures if figure.kind != "pareto"],
        most_exposed=tables.most_exposed(context.exposed),
        nobody_exposed=context.exposed is not None and context.exposed.empty,
        by_coins=context.exposed is not None and "named_in" in context.exposed,
        spent=tables.claimed_and_spent(context.metrics),
        remarks=remarks(context.metrics.fillna({"accountant": "", "setting": ""})),
        audited=(context.metrics["metric"] == "epsilon_lower_bound").any(),
        any_hypothetical=context.metrics["setting"].str.contains("hypothetical_poisson").any(),
        exposed=tables.members_exposed(context.metrics),
        rates=tables.learning_rates(context.metrics),
        tossed=tossed(context.metrics),
        verdicts=tables.verdicts(context.metrics),
        defenses=tables.defenses(context.metrics),
        times=tables.times(context.timings),
    )


def unbroken(text: str) -> str:
    """The text with spaces that do not break within a formula, an interval or before a percent sign."""
    text = text.replace(" = ", "\u00a0=\u00a0").replace(" %", "\u00a0%")
    return re.sub(r"\[[^]]*\]", lambda found: found[0].replace(" ", "\u00a0"), text)


def _answer_table(found: list[Answer]) -> tables.HtmlTable:
    """A column for each data set and model, with the numbers of the sentences."""

    def row(words: str, texts: Iterable[str]) -> list[str]:
        return [words, *texts]

    def estimates(words: str, values: Iterable[Estimate | None]) -> list[str]:
        return row(words, (interval(*value) if value else "–" for value in values))

    def leak_rows(words: str, leaks: list[Leak | None]) -> list[list[str]]:
        rates = sorted({rate for leak in leaks if leak for rate in leak.tprs}, reverse=True)
        return [
            row(f"{words}: by", (name(leak.attack) if leak else "–" for leak in leaks)),
            estimates("… advantage", (leak.advantage if leak else None for leak in leaks)),
            *(
                estimates(
                    f"… members named at {100 * rate:g} % false alarms",
                    (leak.tprs.get(rate) if leak else None for leak in leaks),
                )
                for rate in rates
            ),
            estimates("… AUC", (leak.auc if leak else None for leak in leaks)),
        ]

    verdicts = {
        "met": "accurate enough",
        "open": "perhaps accurate enough",
        "missed": "not accurate enough",
        "guessing": "undefended no better than guessing",
    }
    rows = [
        row("defence", map(look_of, found)),
        row("verdict", (verdicts[a.verdict] for a in found)),
        row("ε claimed", (number(a.claimed) for a in found)),
        row("ε spent", (number(a.spent) for a in found)),
        estimates("accuracy loss (fraction)", (None if a.at_chance else a.loss for a in found)),
        estimates("test accuracy", (a.accuracy for a in found)),
        estimates("… undefended", (a.undefended_accuracy for a in found)),
        row("… by guessing", (fraction(a.guessing) for a in found)),
        *leak_rows("an attacker", [a.leak for a in found]),
        *leak_rows("the same, undefended", [a.undefended_leak for a in found]),
        row("any attack's advantage, at most", (rounded_up(a.proven.advantage) if a.proven else "–" for a in found)),
        *(
            row(
                f"… members named at {100 * rate:g} % false alarms, at most",
                (rounded_up(a.proven.tprs[rate]) if a.proven else "–" for a in found),
            )
            for rate in sorted({rate for a in found if a.proven for rate in a.proven.tprs}, reverse=True)
        ),
        row("… μ of Gaussian noise with that advantage", (number(a.proven.mu) if a.proven else "–" for a in found)),
    ]
    return tables.HtmlTable("", ["", *(f"{name(a.dataset)} · {name(a.model)}" for a in found)], rows)


def _picture(figure: ReportFigure) -> dict[str, str]:
    return {
        "name": figure.name,
        "title": figure.title,
        "caption": figure.caption,
        "source": f"data:image/png;base64,{b64encode(figure.png).decode()}",
    }
