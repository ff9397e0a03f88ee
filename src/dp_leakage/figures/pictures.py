"""Originals and attackers' reconstructions: a row per cell and attack, a column per image."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from dp_leakage.attacks.likeness import similarity
from dp_leakage.common.errors import UserError
from dp_leakage.figures.style import footnotes, styled
from dp_leakage.table.frames import listed, own_row
from dp_leakage.table.looks import GRAY, Series, look
from dp_leakage.table.notes import own_notes
from dp_leakage.table.numbers import budget, fraction
from dp_leakage.table.words import mechanism_name, name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FIGURE = {
    "caption": "Images, and an attacker's reconstructions of them. If a row looks like the first row, its defense did "
    "not hide the images.",
    "needs": "images",
    "settings": {
        "attack": {
            "type": ["null", "string", "array"],
            "minLength": 1,
            "items": {"type": "string", "minLength": 1},
            "default": None,
            "description": "The attacks whose images are shown; null for all.",
        },
        "count": {"type": "integer", "minimum": 1, "default": 8, "description": "Number of images in a row."},
        "width": {
            "type": "number",
            "exclusiveMinimum": 0,
            "default": 0.62,
            "description": "Width of an image, in inches.",
        },
    },
}

Shown = Sequence[tuple[dict[str, Any], str, dict[str, np.ndarray]]]
GAP, HEAD, NUMBER = 0.05, 0.24, 0.12  # inches: between pictures, a heading, words under a picture


class Line(NamedTuple):
    """A row of images: its label, images (c, h, w) with pixels in [0, 1], and a caption below each, or None."""

    words: str
    images: Sequence[np.ndarray]
    under: Sequence[str] | None = None


class Block(NamedTuple):
    """Rows of images of one size under a heading, with optional column headers."""

    heading: str
    lines: Sequence[Line]
    heads: Sequence[str] = ()


def page(
    blocks: Sequence[Block], notes: Sequence[str], title: str | None, *, width: float = 0.62, label: float = 1.75
) -> "Figure":
    """Lay out blocks of images one below the other, then the footnotes; the figure's size follows.

    Args:
        blocks: at least one.
        notes: footnotes.
        title: above everything.
        width: of a picture, in inches.
        label: width of the words of a line, in inches.
    """
    from matplotlib.figure import Figure

    across = max(len(line.images) for block in blocks for line in block.lines)
    wide = label + across * (width + GAP) + GAP
    figure = Figure()
    text = footnotes(figure, notes, wide)
    top = 0.3 if title else 0.08
    heights = [_heights(block, width) for block in blocks]
    high = top + sum(head + len(block.lines) * sum(line) for block, (head, *line) in zip(blocks, heights, strict=True))
    high += 0.13 * (text.count("\n") + 1) + 0.12
    figure.set_size_inches(wide, high)

    def write(x: float, y: float, words: str, **how: Any) -> None:
        figure.text(x / wide, y / high, words, va="center", **how)

    if title:
        write(GAP, high - 0.17, title, fontsize=10, fontweight="bold")
    y = high - top
    for block, (head, tall, below) in zip(blocks, heights, strict=True):
        left = [label + column * (width + GAP) for column in range(across)]
        write(GAP, y - head / 2, block.heading, fontsize=8.5, fontweight="bold")
        for x, words in zip(left, block.heads, strict=False):
            write(x + width / 2, y - 0.7 * head, words, fontsize=6.5, ha="center")
        y -= head
        for line in block.lines:
            y -= tall
            write(GAP, y + tall / 2, line.words, fontsize=7)
            for x, image in zip(left, line.images, strict=False):
                _show(figure.add_axes((x / wide, y / high, width / wide, tall / high)), image)
            for x, words in zip(left, line.under or (), strict=False):
                write(x + width / 2, y - NUMBER / 2, words, fontsize=5.5, color=GRAY, ha="center")
            y -= below
    figure.text(GAP / wide, 0.06 / high, text, fontsize=7, color=GRAY, va="bottom", linespacing=1.25)
    return figure


def _heights(block: Block, width: float) -> tuple[float, float, float]:
    """Return the height in inches of a block's heading, of its images, and of the space below each row."""
    shape = block.lines[0].images[0].shape
    numbered = any(line.under is not None for line in block.lines)
    return HEAD + 0.06 * bool(block.heads), width * shape[-2] / shape[-1], (NUMBER if numbered else 0) + GAP


def _show(ax: "Axes", image: np.ndarray) -> None:
    ax.imshow(image[0] if len(image) == 1 else image.transpose(1, 2, 0).clip(0, 1), cmap="gray", vmin=0, vmax=1)
    ax.set_axis_off()


class Row(NamedTuple):
    """An attack's reconstructions: a label, images (n, c, h, w), and their cell and array."""

    words: str
    images: np.ndarray
    cell: dict[str, Any]
    attack: str
    array: str
    likeness: np.ndarray  # to the originals, (n,)


@styled
def draw(shown: Shown, settings: dict[str, Any], published: pd.DataFrame | None) -> "tuple[Figure, pd.DataFrame]":
    """Draw one block of rows per data set: the originals, then a row for each cell, attack and kind of image.

    An attack's arrays are ``original`` (n, c, h, w) and further pictures, (n, c, h, w) or (R, n, c, h, w) for R
    repeats, of which the first is shown. Arrays of another rank are ignored. Pixels in [0, 1].

    Settings:
        attack: one, or a list; None: all.
        count: images, from the first on.
        width: of a picture, in inches.
    """
    wanted = {key: listed(settings[key]) for key in ("attack", "dataset", "model")}
    chosen = [
        (cell, attack, made)
        for cell, attack, made in shown
        if "original" in made
        and all(not names or {**cell, "attack": attack}[key] in names for key, names in wanted.items())
    ]
    if not chosen:
        raise UserError("figure of kind 'pictures': its parts have no images; name an attack that makes images")
    of_datasets = _rows(chosen, settings["count"])
    blocks = [
        Block(
            name(dataset),
            [
                Line("original", originals),
                *(Line(row.words, row.images, [fraction(value, 2) for value in row.likeness]) for row in rows),
            ],
        )
        for dataset, (originals, rows) in of_datasets.items()
    ]
    notes = [
        "Under each picture: its structural similarity (SSIM) to the original.",
        "It is 1 for the same picture and about 0 for an unrelated one; its window is uniform, 7×7.",
        *own_notes(settings),
    ]
    figure = page(blocks, notes, settings.get("title"), width=settings["width"])
    return figure, _numbers(row for _, rows in of_datasets.values() for row in rows)


def _rows(chosen: Shown, count: int) -> dict[str, tuple[np.ndarray, list[Row]]]:
    """Return data set → originals and rows, without the parts of labels that all rows share."""
    attacks = {attack for _, attack, _ in chosen}
    models = {cell["model"] for cell, _, _ in chosen}
    arrays = {array for _, _, made in chosen for array in _pictures(made)}
    found: dict[str, tuple[np.ndarray, list[Row]]] = {}
    for cell, attack, made in chosen:
        originals, rows = found.setdefault(cell["dataset"], (made["original"][:count], []))
        for array, images in _pictures(made).items():
            words = [
                *([name(cell["model"])] if len(models) > 1 else []),
                _cell_words(cell),
                *([name(attack)] if len(attacks) > 1 else []),
                *([array.replace("_", " ").replace("=", " ").replace(";", ", ")] if len(arrays) > 1 else []),
            ]
            shown = images[:count]
            rows.append(Row("\n".join(words), shown, cell, attack, array, similarity(originals, shown)))
    return found


def _pictures(made: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the arrays of pictures but the originals, (n, c, h, w) each, of the first repeat."""
    first = {key: array[0] if array.ndim == 5 else array for key, array in made.items() if key != "original"}
    return {key: array for key, array in first.items() if array.ndim == 4}


def _cell_words(cell: dict[str, Any]) -> str:
    """Return the defense and its budget: VMF by row, ε = 1 per step."""
    if not cell["accountant"]:
        return look(Series(cell["mechanism"])).label
    words = mechanism_name(cell["mechanism"]) + (f" by {cell['block']}" if cell["mechanism"] == "vmf" else "")
    claimed = budget(*(np.nan if cell.get(key) is None else cell[key] for key in ("epsilon", "noise_multiplier")))
    per_step = " per step" if cell["accountant"] == "per_step" else ""
    return f"{words}\n{claimed if claimed.startswith('σ') else f'ε = {claimed}'}{per_step}"


def _numbers(rows: Iterable[Row]) -> pd.DataFrame:
    found = []
    for row in rows:
        for image, value in enumerate(row.likeness):
            own = {"attack": row.attack, "picture": row.array, "image": image}
            found.append(own_row(row.cell, "ssim", [float(value)], **own))
    return pd.DataFrame(found)
