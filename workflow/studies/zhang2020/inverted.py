"""Inverted images in rows, a column for each class (zhang2020, figures 1, 2, 4, 5 and 10)."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from mia import ATTACKS, MEASURES, cell_words, measure_of

from dp_leakage.common.errors import UserError
from dp_leakage.figures.frames import CELL, NUMBERS
from dp_leakage.figures.notes import own_notes
from dp_leakage.figures.style import GREY, footnotes, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURE = {
    "caption": "What model inversion makes of each class. In the first row the training images that come "
    "nearest to the pictures below them. A picture that shows nothing may still be near to a thin digit: hold the "
    "numbers against those of a black image.",
    "needs": "images",
    "settings": {"classes": 10, "attack": None, "measure": "euclidean", "width": 0.55, "stretch": False},
    "kinds": {
        "classes": ["either", "count", ["list", ["whole", "from", 0]]],
        "attack": ["either", "null", "text"],
        "measure": ["choice", "euclidean", "1-ssim"],
        "width": ["number", "above", 0],
        "stretch": "flag",
    },
}

Shown = list[tuple[dict[str, Any], str, dict[str, np.ndarray]]]
LABEL, GAP, HEAD, NUMBER = 1.35, 0.06, 0.22, 0.13  # inches: row labels, between pictures, column heads, numbers


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
    from matplotlib.figure import Figure

    measure = measure_of(settings)
    chosen = [entry for entry in shown if settings["attack"] in (None, entry[1]) and "reconstruction" in entry[2]]
    if not chosen:
        raise UserError("figure of kind 'inverted': there are no pictures; name an inversion attack in its parts")
    across = min(settings["classes"], chosen[0][2]["reconstruction"].shape[1])
    several = len({attack for _, attack, _ in chosen}) > 1
    rows: list[tuple[str, Any, Any]] = [("training image", chosen[0][2]["original"][0], None)]
    rows += [(_label(columns, attack, several), made["reconstruction"][0], made) for columns, attack, made in chosen]
    wide = settings["width"]
    tall = wide * rows[0][1].shape[-2] / rows[0][1].shape[-1]
    width = LABEL + across * (wide + GAP) + GAP
    notes = [
        f"Under each picture: {MEASURES[measure]} distance to the nearest training image of its class; in brackets the "
        "probability that the model gives it for the class. First model of each cell."
        + (" Each picture from its own darkest to its own brightest pixel." if settings["stretch"] else ""),
        *own_notes(settings),
    ]
    text = footnotes(notes, width)
    top = HEAD + (0.25 if settings["title"] else 0)
    height = top + len(rows) * (tall + NUMBER + GAP) + 0.13 * (text.count("\n") + 1) + 0.12
    figure = Figure(figsize=(width, height))
    page = figure.add_axes((0, 0, 1, 1))
    page.set(xlim=(0, width), ylim=(0, height))  # inches from the lower left corner
    page.set_axis_off()
    if settings["title"]:
        page.text(GAP, height - 0.17, settings["title"], fontsize=10, fontweight="bold", va="center")
    for line, (label, images, made) in enumerate(rows):
        y = height - top - line * (tall + NUMBER + GAP) - tall
        page.text(GAP, y + tall / 2, label, va="center", fontsize=7.5)
        for column in range(across):
            x = LABEL + column * (wide + GAP)
            ax = figure.add_axes((x / width, y / height, wide / width, tall / height))
            _show(ax, _stretched(images[column]) if settings["stretch"] else images[column])
            middle = {"x": x + wide / 2, "ha": "center", "va": "center"}
            if line == 0:
                page.text(y=y + tall + 0.1, s=f"{chosen[0][2]['target'][0, column]:g}", fontsize=8, **middle)
            if made is not None:
                words = f"{_distance(made, measure)[column]:.2f} ({made['confidence'][0, column]:.2f})"
                page.text(y=y - NUMBER / 2, s=words, fontsize=5.5, color=GREY, **middle)
    page.text(GAP, 0.06, text, fontsize=7, color=GREY, va="bottom", linespacing=1.25)
    return figure, _numbers(chosen, across, measure)


def _show(ax: Any, image: np.ndarray) -> None:
    ax.imshow(image[0] if len(image) == 1 else image.transpose(1, 2, 0), cmap="gray", vmin=0, vmax=1)
    ax.set_axis_off()


def _stretched(image: np.ndarray) -> np.ndarray:
    """From 0 to 1, unless it has one value."""
    low, high = image.min(), image.max()
    return (image - low) / (high - low) if high > low else image


def _label(columns: dict[str, Any], attack: str, several: bool) -> str:
    cell = cell_words(columns["mechanism"], columns["defense"])
    return f"{cell}\n{ATTACKS.get(attack, attack)}" if several else cell.replace(" σ", "\nσ")


def _distance(made: dict[str, np.ndarray], measure: str) -> np.ndarray:
    return made["distance"][0] if measure == "euclidean" else 1 - made["ssim"][0]


def _numbers(chosen: Shown, across: int, measure: str) -> pd.DataFrame:
    rows = [
        {
            **{key: columns.get(key, np.nan) for key in CELL},
            "attack": attack,
            "metric": "mia_distance",
            "setting": f"attack={attack};class={made['target'][0, column]:g};measure={measure}",
            "measured": float(_distance(made, measure)[column]),
            "confidence": float(made["confidence"][0, column]),
        }
        for columns, attack, made in chosen
        for column in range(across)
    ]
    frame = pd.DataFrame(rows).assign(low=np.nan, high=np.nan, published=np.nan)
    frame = frame.assign(inside=pd.array([pd.NA] * len(frame), dtype="boolean"))
    return frame[[*CELL, "attack", *NUMBERS, "confidence"]]
