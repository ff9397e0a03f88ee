"""Inverted images in rows, a column for each class (zhang2020, figures 1, 2, 4, 5 and 10)."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from mia import ATTACKS, MEASURES, cell_words, window_notes

from dp_leakage.common.errors import UserError
from dp_leakage.figures.pictures import Block, Line, Shown, page
from dp_leakage.figures.style import styled
from dp_leakage.table.frames import own_row
from dp_leakage.table.notes import own_notes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURE = {
    "caption": "Pictures of each class by model inversion. The first row shows the training images that are nearest to "
    "the pictures below. Even a black picture is near to a thin digit, so compare each number with that of a black "
    "picture.",
    "needs": "images",
    "settings": {
        "classes": {
            "anyOf": [{"type": "integer", "minimum": 1}, {"type": "array", "items": {"type": "integer", "minimum": 0}}],
            "default": 10,
            "description": "How many classes are shown.",
        },
        "attack": {"$ref": "#/$defs/attack"},
        "measure": {"$ref": "#/$defs/measure"},
        "width": {"type": "number", "exclusiveMinimum": 0, "default": 0.55, "description": "Of an image, in inches."},
        "stretch": {
            "type": "boolean",
            "default": False,
            "description": "Whether each picture is stretched from its own darkest to its own brightest pixel.",
        },
    },
}


@styled
def draw(shown: Shown, settings: dict[str, Any], published: pd.DataFrame | None) -> "tuple[Figure, pd.DataFrame]":
    """First the training images nearest to the first row's pictures, then a row for each attack on each cell.

    Settings:
        classes: how many classes, from the first on.
        attack: only this one (None: all).
        measure: the distance under each picture: ``euclidean`` or ``1-ssim``.
        width: of a picture, in inches.
        stretch: show each picture from its own darkest to its own brightest pixel, so that faint ones can be seen.
    """
    measure = settings["measure"]
    chosen = [entry for entry in shown if settings["attack"] in (None, entry[1]) and "reconstruction" in entry[2]]
    if not chosen:
        raise UserError("figure of kind 'inverted': there are no pictures; name an inversion attack in its parts")
    first = chosen[0][2]
    across = min(settings["classes"], first["reconstruction"].shape[1])
    several = len({attack for _, attack, _ in chosen}) > 1
    alike = _stretched if settings["stretch"] else np.asarray
    lines = [
        Line("training image", [alike(image) for image in first["original"][0][:across]]),
        *(
            Line(
                _label(columns, attack, several),
                [alike(image) for image in made["reconstruction"][0][:across]],
                [f"{_distance(made, measure)[c]:.2f} ({made['confidence'][0, c]:.2f})" for c in range(across)],
            )
            for columns, attack, made in chosen
        ),
    ]
    notes = [
        f"Under each picture: {MEASURES[measure]} distance to the nearest training image of its class; in brackets the "
        "probability that the model gives it for the class. First model of each cell."
        + (" Each picture from its own darkest to its own brightest pixel." if settings["stretch"] else ""),
        *window_notes(measure),
        *own_notes(settings),
    ]
    block = Block("", lines, [f"{target:g}" for target in first["target"][0, :across]])
    figure = page([block], notes, settings["title"], width=settings["width"], label=1.35)
    return figure, _numbers(chosen, across, measure)


def _stretched(image: np.ndarray) -> np.ndarray:
    """From 0 to 1, unless it has one value."""
    low, high = image.min(), image.max()
    return (image - low) / (high - low) if high > low else image


def _label(columns: dict[str, Any], attack: str, several: bool) -> str:
    cell = cell_words(columns)
    return f"{cell}\n{ATTACKS.get(attack, attack)}" if several else cell.replace(" σ", "\nσ")


def _distance(made: dict[str, np.ndarray], measure: str) -> np.ndarray:
    return made["distance"][0] if measure == "euclidean" else 1 - made["ssim"][0]


def _numbers(chosen: Shown, across: int, measure: str) -> pd.DataFrame:
    rows = []
    for columns, attack, made in chosen:
        for column in range(across):
            own = {"attack": attack, "class": float(made["target"][0, column]), "measure": measure}
            distance = float(_distance(made, measure)[column])
            row = own_row(columns, "mia_distance", [distance], **own)
            rows.append({**row, "confidence": float(made["confidence"][0, column])})
    return pd.DataFrame(rows)
