"""Kinds of figures, by name. Importing this package reads only declarations; a kind's module is imported to draw.

A figure of a study is a kind with settings. A kind is one file, with a literal ``FIGURE`` at its top (see
`common.declarations`), whose keys are the fields of `FigureKind`, and one public function. It lies in this folder where
any study can use it, with a study where only that draws it (`enter`), or is a plugin:

    draw(metrics: DataFrame, settings: dict, published: DataFrame | None) -> (matplotlib Figure, DataFrame)

It reads and writes no files. A kind with ``"table": True`` returns `table.tables.Tables` in place of the Figure.
``metrics`` holds one row per number of every cell that the figure covers (`frames` names the columns), ``published``
the paper's printed results as `published.read_published` returns them. The returned DataFrame holds exactly the numbers
shown, with the columns ``metric``, ``measured``, ``low``, ``high``, ``published`` and ``inside`` (whether the printed
value lies in our interval), and the columns of axes and series.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from dp_leakage.common.declarations import (
    DEFAULT,
    SHARED,
    check_plain,
    declarations,
    declared,
    settings_of,
    things_of,
)
from dp_leakage.common.errors import UserError, nearest
from dp_leakage.common.places import placeless
from dp_leakage.common.schemas import FLAG, TEXT, Schema, check, enum, table
from dp_leakage.common.user_code import FILES, call

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from dp_leakage.table.tables import Tables

Needs = Literal["metrics", "training", "scores", "images", "timing"]


@dataclass(frozen=True)
class FigureKind:
    """Properties of a kind that a study and the report need without importing it.

    Attributes:
        module: import path of the module that has ``draw``.
        caption: what the figure shows and how to read it, for the report.
        settings: the kind's own settings with their defaults; ``COMMON`` settings come on top.
        schemas: schema of each setting, common ones included.
        needs: what the first argument of ``draw`` holds: ``metrics`` (metrics.parquet of the cells), ``training``
            (training.parquet of the cells), ``scores`` (score files of the membership attacks, with a column
            ``attack``) or ``timing`` (how long epochs take), each with the cell's columns beside; or ``images``: a list
            of (the cell's columns, attack, name → array) in place of the frame, one for each attack on each cell.
        proven: whether the frame also holds the rows ``tpr_proven``, ``advantage_proven`` and ``mu`` of private cells.
        spent: whether the frame also holds numbers of the training itself, e.g. ``epsilon_spent``.
        persons: whether the figure is only for people with several records.
        part: the required part of a cell, and the study's key that adds it.
        table: whether the figure consists of tables.
        cells: the required kind of cells: ``bounded``, with lower bounds on ε, or ``private``; "" for any.
    """

    module: str
    caption: str
    settings: Mapping[str, Any]
    schemas: Mapping[str, Schema]
    needs: Needs = "metrics"
    proven: bool = False
    spent: bool = False
    persons: bool = False
    part: str = ""
    table: bool = False
    cells: Literal["", "bounded", "private"] = ""


_NAMES: Schema = {"type": ["null", "string", "array"], "minLength": 1, "items": TEXT, "default": None}
# Settings that every kind has.
SHARED_SCHEMAS: dict[str, Schema] = {
    "dataset": {**_NAMES, "description": "Data sets that are drawn; null for all."},
    "model": {**_NAMES, "description": "Models that are drawn; null for all."},
    "unit": {**_NAMES, "description": "Units of privacy that are drawn; null for all."},
    "title": {"type": ["null", "string"], "minLength": 1, "default": None, "description": "Stands above the figure."},
    "notes": {
        "type": ["string", "array"],
        "minLength": 1,
        "items": TEXT,
        "default": (),
        "description": "Footnotes of the study's own.",
    },
}
COMMON: Mapping[str, Any] = {name: schema[DEFAULT] for name, schema in SHARED_SCHEMAS.items()}
# Settings that several kinds have: ``{"$ref": "#/$defs/attack"}`` in a declaration.
DEFINITIONS: dict[str, Schema] = {
    "attack": {
        "type": ["null", "string"],
        "minLength": 1,
        "default": None,
        "description": "The attack that is shown; null for the strongest on each model.",
    },
    "neighbors": {
        "enum": [None, "add_remove", "zero_out", "replace_one"],
        "default": None,
        "description": "Neighbors of the accounted ε; null for the relation that most cells have.",
    },
    "definition": {
        "enum": ["gap", "released"],
        "default": "gap",
        "description": "Definition of an attribute attack's advantage, the gap in accuracy between members and "
        "non-members, or as in jayaraman2019's released code.",
    },
    "threshold": {
        "enum": ["best", "own"],
        "default": "best",
        "description": "The threshold of a membership attack: the best, chosen on other records, or the attack's own.",
    },
    "measure": {
        "enum": ["euclidean", "1-ssim"],
        "default": "euclidean",
        "description": "The distance between pictures.",
    },
    "by": {
        "type": ["null", "string"],
        "minLength": 1,
        "default": None,
        "description": "Criterion of the groups, `class`, `duplicates` or the name of a sensitive column; null for "
        "everything that was measured.",
    },
    "most": {
        "type": "integer",
        "minimum": 1,
        "default": 12,
        "description": "Maximum number of groups, those with the largest advantage under any defense.",
    },
    "across": {
        "enum": [None, "claimed", "spent", "proven"],
        "default": None,
        "description": "Horizontal axis, target ε (claimed), accounted ε (spent), or the proven limit on any "
        "attack; null for the ε that all cells have.",
    },
}

WORD = "FIGURE"
SCHEMA = table(
    {
        "caption": TEXT,
        "needs": enum(*get_args(Needs)),
        "proven": FLAG,
        "spent": FLAG,
        "persons": FLAG,
        "part": TEXT,
        "table": FLAG,
        "cells": enum("bounded", "private"),
        **SHARED,
    },
    required=["caption"],
)


def _figure(where: str, module: str, given: dict[str, Any]) -> FigureKind:
    check(given, SCHEMA, where)
    settings, schemas = settings_of(where, given, DEFINITIONS)
    own = {key: given[key] for key in ("needs", "proven", "spent", "persons", "part", "cells", "table") if key in given}
    return FigureKind(module, given["caption"], settings, SHARED_SCHEMAS | schemas, **own)


figures_of = partial(things_of, WORD, _figure)  # the kinds of figures that a file declares, by name

FIGURES: dict[str, FigureKind] = {}
ENTERED: dict[str, Path] = {}  # kind that lies with a study → its file
for _module, _given in declarations(__name__, Path(__file__).parent, WORD):
    FIGURES |= figures_of(_module, _module, _given)


def enter(folder: Path) -> None:
    """Register the kinds in a study's folder: they are read like built-in ones, and imported when they draw.

    Raises:
        UserError: a file is not a kind of figure, or its name is taken.
    """
    for path in sorted(folder.glob("*.py")):
        file = placeless(path)
        try:
            given = declared(path.read_text(encoding="utf-8"), WORD)
        except (ValueError, TypeError, SyntaxError, OSError, MemoryError, RecursionError):
            raise UserError(f"{file}: {WORD} must be a mapping that is written out, without names or calls") from None
        if given is None:
            continue
        check_plain(str(file), WORD, given)
        for name, kind in figures_of(str(file), str(file), given).items():
            if name in FIGURES and ENTERED.get(name) != path.resolve():
                raise UserError(f"{file}: '{name}' is already a kind of figure; choose another name")
            FIGURES[name], ENTERED[name] = kind, path.resolve()


def resolve(kind: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return a kind's settings with its defaults filled in.

    Raises:
        UserError: the kind does not exist, or does not have the setting.
    """
    if kind not in FIGURES:
        raise UserError(f"figure kind '{kind}' does not exist: {nearest(kind, FIGURES)}")
    defaults = {**COMMON, **FIGURES[kind].settings}
    for key in settings:
        if key not in defaults:
            raise UserError(f"figure kind '{kind}' has no setting '{key}': {nearest(key, defaults)}")
    return {**defaults, **settings}


def draw(
    kind: str, metrics: "DataFrame", settings: Mapping[str, Any], published: "DataFrame | None" = None
) -> "tuple[Figure | Tables, DataFrame]":
    """Draw one figure: (picture or tables, exactly the numbers in it). UserError as from `resolve` and the kind."""
    resolved = resolve(kind, settings)
    return drawn_by(FIGURES[kind].module, metrics, resolved, published, FIGURES[kind].table)


def drawn_by(
    module: str, metrics: "DataFrame", settings: Mapping[str, Any], published: "DataFrame | None", table: bool = False
) -> "tuple[Figure | Tables, DataFrame]":
    """Return the result of a module's ``draw``. Raises UserError if a plugin fails or returns another type."""
    from pandas import DataFrame

    expected: type[Any]
    if table:
        from dp_leakage.table.tables import Tables as expected
    else:
        from matplotlib.figure import Figure as expected
    made = call(module, "draw", metrics, settings, published)
    parts = made if isinstance(made, tuple) else (made,)
    if len(parts) != 2 or not isinstance(parts[0], expected) or not isinstance(parts[1], DataFrame):
        shown = ", ".join(type(part).__name__ for part in parts)
        valid = "dp_leakage.table.tables.Tables" if table else "matplotlib Figure"
        raise UserError(f"plugin {module}: draw returns ({shown}); expected ({valid}, pandas DataFrame)")
    if module in FILES and parts[1].empty:
        there = f"; metrics here: {', '.join(sorted(set(metrics['metric'])))}" if "metric" in metrics else ""
        raise UserError(f"plugin {module}: draw returns a table without rows, which shows nothing{there}")
    return made
