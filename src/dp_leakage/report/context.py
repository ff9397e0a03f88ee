"""Everything that a report is made from."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pandas as pd
from markupsafe import Markup

from dp_leakage.data.near_copies import Copies
from dp_leakage.report.answer import Acceptable, Tested
from dp_leakage.report.decision import Look
from dp_leakage.report.elsewhere import Elsewhere
from dp_leakage.report.exposed import MostExposed


@dataclass(frozen=True)
class ReportFigure:
    """One figure of the study.

    Attributes:
        name: its file name below ``figures/``, without ending.
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
    """One data set of the study.

    Attributes:
        name: in the study.
        source: where it comes from, in words.
        sha256: hash of the prepared data, or of the source, in hexadecimal.
        roles: role → number of records.
        features: shape of one record, in words ("50 numbers", "1 × 28 × 28").
        classes: number of classes.
        warnings: sentences on what makes results on it hard to judge.
        persons: how many persons' records training draws from; None if every record is a person of its own.
        notes: sentences that only inform.
        guessing: the accuracy on new records of guessing the class (`metrics.majority.guessing`), or what that scores
            in the study's measure of use; NaN if not known.
        constant: how guessing does on these records, if it says one thing always; else None.
        outside: what was computed from its records and no ε covers, such as "the PCA, fitted on 800 records".
        copies: the near-copies among the records whose membership is asked, where each has a coin or a place of its
            own; None if they are not known.
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
    """Everything that the page says.

    Attributes:
        study: the study's name.
        title: one line.
        metrics: rows of all cells, with the columns that `dp_leakage.table.frames` names.
        figures: in the order of the page; one of kind ``pareto`` comes right below the answer.
        data: the data sets.
        models: model → its architecture in words.
        attacks: attack → what it does or its settings, in words.
        training: settings that all trainings share: "optimizer" → "adam", …
        repeats: models per cell.
        seed: the study's.
        question: what the study asks; "" for the general question.
        paper: the paper that is reproduced, as a citation; "" if none.
        reduced: what a run at a reduced scale says of itself (`table.origin`); "" at full scale.
        choices: choices and caveats of the study, a sentence each.
        versions: package → version, in words.
        exposed: the most exposed records of the cells that are shown; those of the user's own data also with ``shown``
            (`exposed.described`) and ``called``, their names.
        aware: whether an attack learns from models that were trained under the defense that it attacks.
        acceptable: what a recommended setting must satisfy.
        look: which of the planned looks at the study this is.
        elsewhere: models that were trained elsewhere.
        tested: data set, model, defense → how it did on new records, the same ones of all cells of a data set.
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
    look: Look = field(default_factory=Look)
    elsewhere: Elsewhere = field(default_factory=Elsewhere)
    tested: Mapping[tuple[str, str, str], Tested] = field(default_factory=dict)
