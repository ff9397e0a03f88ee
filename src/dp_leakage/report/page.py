"""The report's HTML page, from its context."""

import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pandas as pd

from dp_leakage.attacks import ATTACKS
from dp_leakage.common.utilities import ACCURACY, label_of
from dp_leakage.data.roles import POOL
from dp_leakage.metrics.spent import POISSON
from dp_leakage.provenance.files import BLANK_CHECKSUM
from dp_leakage.report import tables
from dp_leakage.report.added import added_claims
from dp_leakage.report.answer import Answer, answers, singled_out
from dp_leakage.report.calibration import calibration_claims
from dp_leakage.report.claims import REFUTED, Claim, ClaimWriter
from dp_leakage.report.context import DataFacts, ReportContext, ReportFigure
from dp_leakage.report.elsewhere import claims_elsewhere
from dp_leakage.report.explore import explored, marks_of
from dp_leakage.report.first_screen import about, cards_of, chip_of, guesses_of
from dp_leakage.report.groups import group_claims
from dp_leakage.report.rebuilt import rebuilt_claims
from dp_leakage.report.refuted import refuted_claims
from dp_leakage.report.sentences import claims_of
from dp_leakage.report.structure import structure_claims
from dp_leakage.report.verdicts import verdicts
from dp_leakage.table import palette
from dp_leakage.table.exposed import tossed
from dp_leakage.table.html import STYLE, to_html
from dp_leakage.table.notes import remarks
from dp_leakage.table.words import name

TEMPLATE, SCRIPT = (Path(__file__).with_name(file) for file in ("template.html", "page.js"))
QUESTION = (
    "What does each privacy budget cost in {use}, and what does an attacker still learn about the training records?"
)
MANY_COPIES = 0.05  # share of records with near-copies from which on the page says so first
SHOWN_AS_TABLE = "members_exposed"  # the page shows the same numbers as a table


def told(context: ReportContext) -> list[Claim]:
    """Return the page's claims in their order, as in ``claims.json``."""
    return _told(context, answers_of(context))


def _told(context: ReportContext, answered: list[Answer]) -> list[Claim]:
    found = claims_of(
        answered,
        {data.name: data.outside for data in context.data},
        context.aware,
        lambda answer: claims_elsewhere(answer, context.elsewhere, context.metrics),
        {data.name: data.persons for data in context.data if data.persons is not None},
        {str(dataset): _of_attacks(rows) for dataset, rows in context.metrics.groupby("dataset")},
        any(POOL in data.roles for data in context.data),
        "" if "-" in context.study else context.study,  # a scale or another engine has repeats of its own
    )
    return [
        *refuted_claims(context.metrics),
        *(claim for data in context.data for claim in _of_copies(data)),
        *found,
        *added_claims(context.metrics),
        *group_claims(context.metrics),
        *rebuilt_claims(context.metrics),
        *structure_claims(context.metrics),
        *calibration_claims(context.metrics),
    ]


def _of_copies(data: DataFacts) -> list[Claim]:
    """Warn that leakage through near-copies is understated, at the top of the page if there are many."""
    found = data.copies
    if found is None or not found.records >= MANY_COPIES * found.among > 0:
        return []
    writer = ClaimWriter({"dataset": data.name})
    share = writer("copies", found.records / found.among, f"{100 * found.records / found.among:.0f}")
    words = (
        f"On {name(data.name)}, {writer.count(found.records)} of {writer.count(found.among)} records ({share} %) are "
        "copies of others, or nearly so, and each is in or out of a training by itself. What these records leak is "
        "understated: where one is out, its copy may be in."
    )
    return [writer.claim(f"{data.name}.copies", "copies", data.name, words, screen=1)]


def _of_attacks(metrics: pd.DataFrame) -> dict[str, dict[str, str]]:
    """Describe the defense-aware attacks among these rows, and the needs of other attacks."""
    run = {attack: entry for attack, entry in ATTACKS.items() if attack in set(metrics["attack"])}
    return {
        "adaptive": {attack: entry.adapts for attack, entry in run.items() if entry.adapts},
        "access": {attack: entry.access for attack, entry in run.items() if entry.access},
    }


def answers_of(context: ReportContext) -> list[Answer]:
    """Return the answers of the page."""
    return answers(
        context.metrics,
        context.acceptable,
        {data.name: data.guessing for data in context.data},
        context.aware,
        context.elsewhere.models,
        context.tested,
        {data.name: data.constant for data in context.data if data.constant is not None},
        context.look,
    )


def render(context: ReportContext) -> str:
    """Return the page: one HTML document with style, pictures and a script inside. It loads nothing.

    Its content security policy allows only this script, by its hash.
    """
    from markupsafe import Markup

    environment = palette.environment()
    filters = {"words": name, "thousands": lambda value: f"{value:,}", "unbroken": unbroken}
    environment.filters |= {**filters, "table": to_html, "headless": lambda table: replace(table, heading="")}
    answered = answers_of(context)
    found = _told(context, answered)
    outside = {data.name: data.outside for data in context.data}
    firsts = {answer.dataset: _first(answer, outside.get(answer.dataset, ())) for answer in answered}
    elsewhere = bool(answered) and all(answer.kind == "elsewhere" for answer in answered)
    compared = elsewhere or any(one.leak and one.leak.tried > 1 for answer in answered for one in answer.settings)
    uses = list(dict.fromkeys(answer.use_label for answer in answered)) or [label_of(ACCURACY)]
    use = uses[0] if len(uses) == 1 else "use"
    one = "person" if any(data.persons is not None for data in context.data) else "record"
    many = "people" if one == "person" else "records"
    script = f"\n{SCRIPT.read_text(encoding='utf-8')}"
    figures = [figure for figure in context.figures if figure.kind != SHOWN_AS_TABLE]
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        checksum=BLANK_CHECKSUM,
        table_style=Markup(STYLE),
        script=Markup(script),
        allowed=f"sha256-{b64encode(sha256(script.encode()).digest()).decode()}",
        explored=explored(answered, outside),
        context=context,
        one=one,
        many=many,
        use=use,
        tried=sum(answer.tried for answer in answered),
        question=context.question or QUESTION.format(use=use),
        broken=[claim for claim in found if claim.kind == REFUTED],
        study_wide=[claim for claim in found if not claim.dataset],
        screens=[
            _screen(found, data, firsts.get(data, {}))
            for data in dict.fromkeys(claim.dataset for claim in found if claim.dataset)
        ],
        marks={answer.dataset: marks_of(answer) for answer in answered},
        elsewhere=elsewhere,
        settings=[] if elsewhere else tables.settings(answered),
        attacks=tables.attacks(context.metrics, {key[:3] for key in singled_out(answered)}) if compared else [],
        first=[_figure(figure) for figure in figures if figure.kind == "pareto"],
        others=[_figure(figure) for figure in figures if figure.kind != "pareto"],
        most_exposed=tables.most_exposed(context.exposed, one, many),
        nobody_exposed=tables.nobody_exposed(context.exposed, many),
        by_coins=any(found.by_coins for found in context.exposed),
        spent=tables.claimed_and_spent(context.metrics),
        remarks=remarks(context.metrics.fillna({"accountant": ""})),
        audited=(context.metrics["metric"] == "epsilon_lower_bound").any(),
        any_hypothetical=(context.metrics["sampling"] == POISSON).any(),
        exposed=[] if elsewhere else tables.members_exposed(context.metrics),
        rates=tables.learning_rates(context.metrics),
        tossed=tossed(context.metrics),
        verdicts=[] if elsewhere else verdicts(context.metrics),
        defenses=[] if elsewhere else tables.defenses(context.metrics),
    )


def _first(answer: Answer, outside: tuple[str, ...]) -> dict[str, Any]:
    """Return the verdict in a word, the cards, and the attacker's guesses."""
    return {
        "chip": chip_of(answer),
        "cards": cards_of(answer, outside),
        "about": about(answer),
        "guesses": guesses_of(answer),
    }


def _screen(found: list[Claim], dataset: str, first: dict[str, Any]) -> dict[str, Any]:
    """Return a data set's part of the page: above the first figure, below it (with rows of tiles), and folded."""
    own = [claim for claim in found if claim.dataset == dataset]
    tiles = [claim for claim in own if claim.label]
    cells = dict.fromkeys(claim.cells[0] for claim in tiles)
    plain = [claim for claim in own if not claim.label]
    return {
        "chip": None,
        "cards": [],
        "about": "",
        "guesses": None,
        **first,
        "dataset": dataset,
        "first": [claim for claim in plain if claim.screen == 1],
        "tiles": [(cell, [claim for claim in tiles if claim.cells[0] == cell]) for cell in cells],
        "beside": [claim for claim in plain if claim.screen == 2],
        "more": [claim for claim in plain if claim.screen > 2],
    }


def unbroken(text: str) -> str:
    """Return the text with non-breaking spaces within formulas and intervals and before percent signs."""
    text = text.replace(" = ", "\u00a0=\u00a0").replace(" %", "\u00a0%")
    return re.sub(r"\[[^]]*\]", lambda found: found[0].replace(" ", "\u00a0"), text)


def _figure(figure: ReportFigure) -> dict[str, str]:
    source, tables = "", ""
    if isinstance(figure.shown, bytes):
        source = f"data:image/png;base64,{b64encode(figure.shown).decode()}"
    else:
        tables = figure.shown
    return {"name": figure.name, "caption": figure.caption, "source": source, "tables": tables}
