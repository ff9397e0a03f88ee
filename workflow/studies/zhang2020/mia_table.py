"""MIA distance of attacks and controls for every class of the undefended model (zhang2020, tables I and II)."""

from typing import Any

import numpy as np
import pandas as pd
from mia import (
    ATTACKS,
    CONTROLS,
    MEASURES,
    PRINTED_MEMBERS,
    control_rows,
    drawn,
    inversion_rows,
    one,
    printed_distances,
    window_notes,
)

from dp_leakage.table.frames import chosen
from dp_leakage.table.notes import own_notes
from dp_leakage.table.tables import Table, Tables

FIGURE = {
    "table": True,
    "caption": "Distance between the pictures of each attack on the undefended model and the training images of each "
    "class, beside pictures made without a model.",
    "settings": {
        "attacks": {
            "type": "array",
            "items": {"type": "string", "minLength": 1},
            "default": ["inversion_original", "inversion_l1"],
            "description": "The attacks that are compared.",
        },
        "measure": {"$ref": "#/$defs/measure"},
        "classes": {
            "anyOf": [{"type": "integer", "minimum": 1}, {"type": "array", "items": {"type": "integer", "minimum": 0}}],
            "default": 10,
            "description": "How many classes are shown.",
        },
    },
}


def draw(
    metrics: pd.DataFrame, settings: dict[str, Any], published: pd.DataFrame | None
) -> tuple[Tables, pd.DataFrame]:
    """A row for each attack and control, a column for each class, and the mean over all.

    Settings:
        attacks: which, in this order.
        measure: ``euclidean`` or ``1-ssim``.
        classes: how many columns, from the first class on; the mean is over all classes.
    """
    frame, measure = chosen(metrics, settings), settings["measure"]
    frame = frame[frame["mechanism"] == "none"]
    cell = one(frame, "mia_table")
    controls = control_rows(frame, measure, by_class=True)
    found = {attack: inversion_rows(frame, attack, measure, by_class=True) for attack in settings["attacks"]}
    lines, digits = [], 2 if measure == "euclidean" else 3
    shown = sorted(set(found[settings["attacks"][0]]["class"]))[: settings["classes"]]
    numbers = []
    for attack, rows in found.items():
        mean = inversion_rows(frame, attack, measure)["value"].iloc[0]
        called = ATTACKS.get(attack, attack)
        lines.append([called, *_values(rows, shown, digits), f"{mean:.{digits}f}"])
        prints = printed_distances(published, cell["dataset"], attack)
        if prints:
            text = [f"{prints[c]:.{digits}f}" if c in prints else "" for c in range(len(shown))]
            lines.append([f"{called}, the paper's print", *text, f"{np.mean([*prints.values()]):.{digits}f}"])
        numbers.append(_printed(rows, prints, cell["dataset"], measure))
    for variant, rows in controls.items():
        mean = control_rows(frame, measure)[variant]["value"].iloc[0]
        lines.append([CONTROLS[variant], *_values(rows, shown, digits), f"{mean:.{digits}f}"])
        numbers.append(drawn(rows, ["class", "variant"]))
    table = Table(f"{MEASURES[measure]} MIA distance", ["class", *(f"{label:g}" for label in shown), "mean"], lines)
    notes = [
        _better(found),
        *window_notes(measure),
        *_print_note(cell["dataset"], frame, published),
        *own_notes(settings),
    ]
    return Tables([table], [note for note in notes if note], settings.get("title")), pd.concat(
        numbers, ignore_index=True
    )


def _values(rows: pd.DataFrame, shown: list[float], digits: int) -> list[str]:
    by_class = rows.set_index("class")["value"]
    return [f"{by_class[c]:.{digits}f}" for c in shown]


def _printed(rows: pd.DataFrame, prints: dict[int, float], dataset: str, measure: str) -> pd.DataFrame:
    """Rows with the print of the same digit; the six people of table II have no names, so nothing is joined there."""
    numbers = drawn(rows, ["class", "variant"])
    comparable = measure == "euclidean" and (rows["n_members"] == PRINTED_MEMBERS.get(dataset)).all()
    if not prints or not comparable:
        return numbers
    printed = numbers["class"].map(prints)
    inside = ((numbers["low"] <= printed) & (printed <= numbers["high"])).astype("boolean")
    return numbers.assign(published=printed, inside=inside.mask(printed.isna() | numbers["low"].isna()))


def _better(found: dict[str, pd.DataFrame]) -> str:
    """In how many classes each other attack comes nearer than the first."""
    first, *others = found.items()
    base = first[1].set_index("class")["value"]
    words = [
        f"{ATTACKS.get(name, name)} {int((rows.set_index('class')['value'] < base).sum())}" for name, rows in others
    ]
    return (
        f"Nearer than {ATTACKS.get(first[0], first[0])}, of {len(base)} classes: {'; '.join(words)}." if words else ""
    )


def _print_note(dataset: str, frame: pd.DataFrame, published: pd.DataFrame | None) -> list[str]:
    members = PRINTED_MEMBERS.get(dataset)
    if published is None or members is None:
        return []
    notes = []
    if dataset == "faces94":
        notes.append("The paper does not say which six people its prints are of: they stand in its order.")
    if (frame["n_members"] != members).any():
        own = int(frame["n_members"].iloc[0])
        notes.append(
            f"The paper trains on {members:,} records, this run on {own:,}, among which the nearest one is farther."
        )
    return notes
