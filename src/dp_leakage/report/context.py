"""Input of a report: everything the page is made from."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pandas as pd
from markupsafe import Markup

from dp_leakage.data.near_copies import Copies
from dp_leakage.report.answer import Acceptable, Tested
from dp_leakage.report.decision import SINGLE, Look
from dp_leakage.report.elsewhere import Elsewhere
from dp_leakage.report.exposed import MostExposed


@dataclass(frozen=True)
class ReportFigure:
    """A figure of the study.

    Attributes:
        name: its file name below ``figures/``, without extension.
        kind: its kind, a key of `dp_leakage.figures.FIGURES`.
        shown: the picture as PNG, or the tables as HTML (`table.html.content`).
        caption: how to read it.
    """

    name: str
    kind: str
    shown: bytes | Markup
    caption: str = ""


@dataclass(frozen=True)
class DataFacts:
    """Properties of a data set of the study.

    Attributes:
        name: in the study.
        source: its source, in words.
        sha256: hexadecimal hash of the prepared data, or of the source.
        roles: role → number of records.
        features: shape of one record, in words ("50 numbers", "1 × 28 × 28").
        classes: number of classes.
        warnings: sentences on properties that make results hard to judge.
        persons: number of people whose records are used for training; None: one record per person.
        notes: informative sentences.
        guessing: accuracy of guessing the class of new records (`metrics.majority.guessing`), or its value in the
            study's measure of use; NaN: unknown.
        constant: result of a constant guess on these records; None if the best guess is not constant.
        outside: preparation that no ε covers, e.g. "the PCA, fitted on 800 records".
        copies: near-copies among the attacked records that are included independently; None: unknown.
    """

    name: str
    source: str
    sha256: str
    roles: Mapping[str, int]
    features: str
    classes: int
    warnings: tuple[str, ...] = ()
    persons: int | None = None
    notes: tuple[str, ...] = ()
    guessing: float = float("nan")
    constant: Tested | None = None
    outside: tuple[str, ...] = ()
    copies: Copies | None = None


@dataclass(frozen=True)
class ReportContext:
    """Everything on the page.

    Attributes:
        study: the study's name.
        title: its title, one line.
        metrics: rows of all cells, with the columns that `dp_leakage.table.frames` names.
        figures: in the order of the page; one of kind ``pareto`` comes right below the answer.
        data: the data sets.
        models: model → its architecture in words.
        attacks: attack → its description or settings, in words.
        training: settings that all trainings share: "optimizer" → "adam", …
        repeats: models per cell.
        seed: seed of the study.
        question: the study's question; "" for the general question.
        paper: citation of the reproduced paper; "" if none.
        reduced: warning of a run at a reduced scale (`table.origin`); "" at full scale.
        choices: choices and caveats of the study, a sentence each.
        versions: package → version, in words.
        exposed: the most exposed records of the shown cells; for the user's own data also with ``shown``
            (`exposed.described`) and ``called``, their names.
        aware: whether a defense-aware attack was run.
        acceptable: the limits of a recommendation.
        look: the planned look at the study.
        elsewhere: external models.
        tested: data set, model, defense → results on new records, which all cells of a data set share.
    """

    study: str
    title: str
    metrics: pd.DataFrame
    figures: tuple[ReportFigure, ...]
    data: tuple[DataFacts, ...]
    models: Mapping[str, str]
    attacks: Mapping[str, str]
    training: Mapping[str, str]
    repeats: int
    seed: int
    question: str = ""
    paper: str = ""
    reduced: str = ""
    choices: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    exposed: tuple[MostExposed, ...] = ()
    aware: bool = False
    acceptable: Acceptable = field(default_factory=Acceptable)
    look: Look = SINGLE
    elsewhere: Elsewhere = field(default_factory=Elsewhere)
    tested: Mapping[tuple[str, str, str], Tested] = field(default_factory=dict)
