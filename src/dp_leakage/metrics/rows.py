"""Rows of metrics, one per number: its name, interval, and a column for each quantity that it depends on.

A row has ``metric``, ``repeat`` (``"0"``, ``"1"``, … or ``"all"``), ``value``, ``low``, ``high``, and those of
`QUALIFIERS` that apply to it. A file of rows has the columns that one of its rows needs. `completed` adds the others.
To add a qualifier, name it here, and give it to `row` where the metric is made.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dp_leakage.common.errors import UserError, nearest
from dp_leakage.metrics.intervals import Estimate

CELL = ["dataset", "model", "defense"]  # the columns that name a cell of a study
NUMBERS = ["value", "low", "high"]
MEASURED = ["metric", "repeat", *NUMBERS]
OF_ONE_RECORD = "one record of a person's"  # how the note of an ε begins that is no bound for a person with many


class Qualifier(NamedTuple):
    """Meaning and type of a qualifier column. Rows to which it does not apply have ``empty``."""

    words: str
    kind: type[str] | type[float] | type[bool] = str

    @property
    def empty(self) -> Any:
        """Return the value for rows to which it does not apply."""
        return {str: "", float: np.nan, bool: pd.NA}[self.kind]

    def column(self, values: "pd.Series[Any]") -> "pd.Series[Any]":
        """Return a typed column, empty where no value is given."""
        if self.kind is str:
            return values.astype(object).where(values.notna(), "")
        return values.astype("float64" if self.kind is float else "boolean")


QUALIFIERS = {
    "attack": Qualifier("name of the attack; `strongest`: of each cell the one that finds most"),
    "of": Qualifier("of `strongest`, which attack that is; of guessed attributes, whose they are; of use, the measure"),
    "fpr": Qualifier("false positive rate", float),
    "definition": Qualifier("of an attribute attack's advantage: `gap` or `released`"),
    "counting": Qualifier("of members exposed: `mean` of the runs, or in `all_runs`"),
    "by": Qualifier(
        "of guessed attributes: `attack`, or `imputation` without the model; of groups: what they differ in"
    ),
    "group": Qualifier("the group of records, by the user's own names"),
    "top": Qualifier("of guessed attributes: only this share of the guesses, the surest", float),
    "cells": Qualifier("of a model's structure: records in one cell share their `answers`, or their `leaves`"),
    "below": Qualifier("of a model's structure: cells of fewer records are small", float),
    "measure": Qualifier("of distances between images: `euclidean` or `1-ssim`"),
    "statistic": Qualifier("over targets: `mean` or `median`"),
    "class": Qualifier("the class that a picture is of, from 0", float),
    "layer": Qualifier("the layer whose outputs an attack sees"),
    "candidates": Qualifier(
        "number of equally likely images among which a reconstructed one is to be recognized", float
    ),
    "batch": Qualifier("of how many images a gradient is", float),
    "weights": Qualifier("the weights at which a gradient is seen: `initial` or `trained`"),
    "variant": Qualifier("which of an attack's variants"),
    "against": Qualifier("what a difference is taken against"),
    "neighbors": Qualifier("the neighboring relation for which an ε, a limit or a bound holds"),
    "accounted_by": Qualifier("the accountant that finds an ε"),
    "valid": Qualifier("whether that ε holds; false for printed formulas outside their conditions", bool),
    "sampling": Qualifier("`hypothetical_SAMPLER` of an ε for other batches than those of the training"),
    "note": Qualifier("what one should know of an ε"),
    "source": Qualifier("where a proven limit comes from"),
    "tried": Qualifier("a learning rate that was tried", float),
    "records": Qualifier("number of independent records that a number rests on", float),
    "audit": Qualifier("name of an audit in its study"),
    "design": Qualifier("of an audit: `one_run`, `many_runs` or `trials`"),
    "canary": Qualifier("of an audit: the kind of its canaries"),
    "claim": Qualifier("of an audit: what it tests, the bare (ε, δ) or the mechanism's `own` curve"),
    "seen": Qualifier("of an audit or a blind guess: what it sees, such as `loss` or `white_box`"),
    "start": Qualifier("of an audit: where trainings start"),
    "bug": Qualifier("of an audit: the fault planted in the training; `none` without"),
    "models": Qualifier("of an audit: how many models were trained; of references: how many there are", float),
    "runs": Qualifier("number of repeats that a number rests on", float),
    "threshold": Qualifier("of an advantage at a fixed threshold: the share of the records above it", float),
    "var_repeats": Qualifier("of such an advantage: the variance that its repeats show", float),
    "var_records": Qualifier("of such an advantage: the variance that its records show", float),
    "var_cells": Qualifier("of such an advantage: the part of both of one record in one repeat", float),
    "coins": Qualifier("of an audit: number of canaries", float),
    "guesses": Qualifier("of an audit: number of guesses", float),
    "right": Qualifier("of an audit: how many guesses were right", float),
    "confidence": Qualifier("of an audit: of its bound", float),
    "stated": Qualifier("of an audit: whether its bound holds `together` with the study's others or `alone`"),
    "alone": Qualifier("of an audit: its bound for itself at 95 %", float),
    "reach": Qualifier("of an audit: the largest bound that it could have shown", float),
}


def row(metric: str, repeat: str, found: Estimate, **qualifiers: Any) -> dict[str, Any]:
    """Return a row; qualifiers that are empty or None are left out.

    Raises:
        UserError: a name is not one of `QUALIFIERS`.
    """
    for name in qualifiers:
        if name not in QUALIFIERS:
            raise UserError(f"metric '{metric}': '{name}' is not a column of metrics; {nearest(name, QUALIFIERS)}")
    given = {name: value for name, value in qualifiers.items() if value is not None and value != ""}
    typed = {name: QUALIFIERS[name].kind(value) for name, value in given.items()}
    return {"metric": metric, "repeat": repeat, **found._asdict(), **typed}


def tidy(rows: Iterable[Mapping[str, Any]] | pd.DataFrame) -> pd.DataFrame:
    """Return rows as a frame with typed columns, in the order of `MEASURED` and `QUALIFIERS`, without unused
    qualifiers.

    A frame without rows has columns of numbers too, so joining it changes no type.
    """
    frame = pd.DataFrame(rows if isinstance(rows, pd.DataFrame) else list(rows))
    frame = frame.reindex(columns=[*MEASURED, *(name for name in QUALIFIERS if name in frame)])
    frame = frame.astype(dict.fromkeys(NUMBERS, "float64"))
    return _typed(frame, qualifiers(frame))


def completed(frame: pd.DataFrame) -> pd.DataFrame:
    """Return rows, of several cells perhaps, with all columns of `QUALIFIERS`, typed."""
    absent = {name: own.empty for name, own in QUALIFIERS.items() if name not in frame}
    added = pd.DataFrame(absent, index=frame.index).astype(
        {name: {str: object, float: "float64", bool: "boolean"}[QUALIFIERS[name].kind] for name in absent}
    )
    return pd.concat([_typed(frame, qualifiers(frame)), added], axis=1)


def _typed(frame: pd.DataFrame, names: Iterable[str]) -> pd.DataFrame:
    return frame.assign(**{name: QUALIFIERS[name].column(frame[name]) for name in names})


def qualifiers(frame: pd.DataFrame) -> list[str]:
    """Return the columns of a frame that are qualifiers, in the order of `QUALIFIERS`."""
    return [name for name in QUALIFIERS if name in frame]


def told(frame: pd.DataFrame) -> list[str]:
    """Return the qualifiers that apply to at least one row."""
    return [name for name in qualifiers(frame) if not is_empty(frame[name]).all()]


def is_empty(column: "pd.Series[Any]") -> "pd.Series[bool]":
    """Return the rows to which a qualifier does not apply."""
    return column.isna() | (column == "").fillna(False).astype(bool)


def fitting(frame: pd.DataFrame, **wanted: Any) -> "pd.Series[bool]":
    """Return the rows with these values; a row to which a qualifier does not apply matches any value of it."""
    fits = pd.Series(True, index=frame.index)
    for name, value in wanted.items():
        if name in frame:
            fits &= is_empty(frame[name]) | (frame[name] == QUALIFIERS[name].kind(value)).fillna(False).astype(bool)
    return fits


def words_of(row: Mapping[str, Any]) -> str:
    """Return the qualifiers that apply to a row, for messages."""
    there = {name: row[name] for name in QUALIFIERS if name in row and not pd.isna(row[name]) and row[name] != ""}
    return ", ".join(f"{name}={of:g}" if isinstance(of, float) else f"{name}={of}" for name, of in there.items())
