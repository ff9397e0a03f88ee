"""Originals and what attackers made of them: pictures in rows, a column for each image."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from dp_leakage.attacks.likeness import similarity
from dp_leakage.common.errors import UserError
from dp_leakage.figures.frames import CELL, NUMBERS, listed
from dp_leakage.figures.notes import own_notes
from dp_leakage.figures.numbers import budget
from dp_leakage.figures.style import GREY, Series, footnotes, look, name, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURE = {
    "caption": "Images and what an attacker rebuilt of them. Where a row shows what the first row shows, the "
    "defence of that row has not hidden it.",
    "needs": "images",
    "settings": {"attack": None, "count": 8, "width": 0.62},
    "kinds": {
        "attack": ["either", "null", "text", "texts"],
        "count": "count",
        "width": ["number", "above", 0],
    },
}

Shown = Sequence[tuple[dict[str, Any], str, dict[str, np.ndarray]]]
LABEL, GAP, HEAD, NUMBER = 1.75, 0.05, 0.24, 0.12  # inches: row labels, between pictures, headings, numbers


class Row(NamedTuple):
    """One row of pictures: its words, the images (n, c, h, w), and of which cell, attack and array; None: originals."""

    words: str
    images: np.ndarray
    cell: dict[str, Any] | None = None
    attack: str = ""
    array: str = ""


@styled
def draw(shown: Shown, settings: dict[str, Any], published: pd.DataFrame | None) -> "tuple[Figure, pd.DataFrame]":
    """One block of rows per data set: the originals, then a row for each cell, attack and kind of picture.

    An attack's arrays are ``original`` (n, c, h, w) and any others of pictures, (n, c, h, w) or, with the repeats in
    front, (R, n, c, h, w), of which the first is shown; arrays of another rank are passed over. Pixels in [0, 1].

    Settings:
        attack: one, or a list; None: all.
        count: images, from the first on.
        width: of a picture, in inches.
    """
    from matplotlib.figure import Figure

    wanted = listed(settings["attack"])
    chosen = [entry for entry in shown if (not wanted or entry[1] in wanted) and "original" in entry[2]]
    chosen = [
        entry
        for entry in chosen
        if all(not listed(settings[key]) or entry[0][key] in listed(settings[key]) for key in ("dataset", "model"))
    ]
    if not chosen:
        raise UserError("figure of kind 'pictures': there are none; name an attack that makes pictures in its parts")
    blocks = _blocks(chosen, settings["count"])
    across = max(len(row.images) for _, rows in blocks for row in rows)
    width = LABEL + across * (settings["width"] + GAP) + GAP
    notes = [
        "Under each picture: its structural similarity (SSIM) to the original, 1 for the same picture and about 0 for "
        "an unrelated one.",
        *own_notes(settings),
    ]
    text = footnotes(notes, width)
    top = 0.3 if settings.get("title") else 0.08
    tall = {heading: settings["width"] * _aspect(rows[0].images) for heading, rows in blocks}
    height = top + sum(HEAD + len(rows) * (tall[heading] + NUMBER + GAP) for heading, rows in blocks)
    height += 0.13 * (text.count("\n") + 1) + 0.12
    figure = Figure(figsize=(width, height))
    if settings.get("title"):
        figure.text(GAP / width, 1 - 0.17 / height, settings["title"], fontsize=10, fontweight="bold", va="center")
    y = height - top
    for heading, rows in blocks:
        figure.text(GAP / width, (y - HEAD / 2) / height, heading, fontsize=8.5, fontweight="bold", va="center")
        y -= HEAD
        for row in rows:
            y -= tall[heading]
            figure.text(GAP / width, (y + tall[heading] / 2) / height, row.words, va="center", fontsize=7)
            likeness = similarity(rows[0].images, row.images) if row.cell else None
            for column, image in enumerate(row.images):
                x = LABEL + column * (settings["width"] + GAP)
                box = (x / width, y / height, settings["width"] / width, tall[heading] / height)
                _show(figure.add_axes(box), image)
                if likeness is not None:
                    middle = (x + settings["width"] / 2) / width
                    words = f"{likeness[column] + 0.0:.2f}".replace("-", "−")
                    place = {"ha": "center", "va": "center", "fontsize": 5.5, "color": GREY}
                    figure.text(middle, (y - NUMBER / 2) / height, words, **place)
            y -= NUMBER + GAP
    figure.text(GAP / width, 0.06 / height, text, fontsize=7, color=GREY, va="bottom", linespacing=1.25)
    return figure, _numbers(blocks)


def _blocks(chosen: Shown, count: int) -> list[tuple[str, list[Row]]]:
    """(data set, its rows), the originals first; each row without what all rows have in common."""
    attacks = {attack for _, attack, _ in chosen}
    models = {cell["model"] for cell, _, _ in chosen}
    arrays = {array for _, _, made in chosen for array in _pictures(made)}
    blocks: dict[str, list[Row]] = {}
    for cell, attack, made in chosen:
        rows = blocks.setdefault(name(cell["dataset"]), [Row("original", made["original"][:count])])
        for array, images in _pictures(made).items():
            words = [
                *([name(cell["model"])] if len(models) > 1 else []),
                _cell_words(cell),
                *([name(attack)] if len(attacks) > 1 else []),
                *([array.replace("_", " ").replace("=", " ").replace(";", ", ")] if len(arrays) > 1 else []),
            ]
            rows.append(Row("\n".join(words), images[:count], cell, attack, array))
    return list(blocks.items())


def _pictures(made: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays of pictures but the originals, (n, c, h, w) each, of the first repeat."""
    first = {key: array[0] if array.ndim == 5 else array for key, array in made.items() if key != "original"}
    return {key: array for key, array in first.items() if array.ndim == 4}


def _cell_words(cell: dict[str, Any]) -> str:
    """The defence and its budget: VMF by row, ε = 1 per step."""
    if not cell["accountant"]:
        return look(Series(cell["mechanism"])).label
    words = f"{name(cell['mechanism'])} by {cell['block']}" if cell["mechanism"] == "vmf" else name(cell["mechanism"])
    claimed = budget(*(np.nan if cell.get(key) is None else cell[key] for key in ("epsilon", "noise_multiplier")))
    per_step = " per step" if cell["accountant"] == "per_step" else ""
    return f"{words}\n{claimed if claimed.startswith('σ') else f'ε = {claimed}'}{per_step}"


def _aspect(images: np.ndarray) -> float:
    return images.shape[-2] / images.shape[-1]


def _show(ax: Any, image: np.ndarray) -> None:
    ax.imshow(image[0] if len(image) == 1 else image.transpose(1, 2, 0).clip(0, 1), cmap="gray", vmin=0, vmax=1)
    ax.set_axis_off()


def _numbers(blocks: list[tuple[str, list[Row]]]) -> pd.DataFrame:
    rows = [
        {
            **{key: row.cell.get(key) for key in CELL},
            "attack": row.attack,
            "metric": "ssim",
            "setting": f"attack={row.attack};picture={row.array.replace('=', ':').replace(';', ',')};target={target}",
            "measured": float(value),
        }
        for _, rows in blocks
        for row in rows
        if row.cell
        for target, value in enumerate(similarity(rows[0].images, row.images))
    ]
    frame = pd.DataFrame(rows).assign(low=np.nan, high=np.nan, published=np.nan)
    frame = frame.assign(inside=pd.array([pd.NA] * len(frame), dtype="boolean"))
    return frame[[*CELL, "attack", *NUMBERS]]
