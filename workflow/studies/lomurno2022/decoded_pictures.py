"""Pictures rebuilt from each layer: a column per layer, a row per defense."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dp_leakage.common.errors import UserError
from dp_leakage.figures.pictures import Block, Line, Shown, page
from dp_leakage.figures.style import styled
from dp_leakage.table.frames import own_row
from dp_leakage.table.looks import Series
from dp_leakage.table.notes import own_notes
from dp_leakage.table.numbers import cell_label
from dp_leakage.table.words import name

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURE = {
    "caption": "One image as a decoder rebuilds it from each layer of each model; further right less is left of it.",
    "needs": "images",
    "settings": {
        "attack": {"$ref": "#/$defs/attack", "default": "decoder"},
        "layers": {
            "type": "array",
            "items": {"type": "string", "minLength": 1},
            "default": ["conv1", "maxpool1", "conv2", "maxpool2", "conv3", "maxpool3", "dense", "prediction"],
            "description": "The layers that are shown.",
        },
        "image": {"type": "integer", "minimum": 0, "default": 0, "description": "Which of the kept images, from 0."},
    },
}


@styled
def draw(shown: Shown, settings: dict[str, Any], published: pd.DataFrame | None) -> "tuple[Figure, pd.DataFrame]":
    """A block per data set: the original in front, then what a decoder rebuilt of it from each layer, per defense.

    Args:
        shown: the cell's columns, the attack, and its arrays: ``original`` and one per layer, (n, c, h, w) in [0, 1].
        settings: ``attack``; ``layers``, from left to right; ``image``, which of the n.
        published: not used.

    Raises:
        UserError: the attack made no pictures of a layer, or too few.
    """
    blocks: dict[str, list[tuple[dict[str, Any], list[np.ndarray]]]] = {}
    heads = ["original", *settings["layers"]]
    for cell, attack, made in shown:
        if attack == settings["attack"]:
            images = [_picture(made, head, settings["image"]) for head in heads]
            blocks.setdefault(cell["dataset"], []).append((cell, images))
    if not blocks:
        raise UserError(f"figure setting 'attack': there are no pictures of '{settings['attack']}'")
    names = [name(head) for head in heads]
    drawn = [
        Block(name(dataset), [Line(_words(cell), images) for cell, images in cells], names)
        for dataset, cells in blocks.items()
    ]
    notes = ["Rebuilt from one unseen image, by a decoder of its own for each layer and model.", *own_notes(settings)]
    figure = page(drawn, notes, settings.get("title"), width=0.58, label=1.35)
    return figure, _errors([entry for cells in blocks.values() for entry in cells], settings)


def _picture(made: dict[str, np.ndarray], layer: str, image: int) -> np.ndarray:
    """(c, h, w)."""
    if layer not in made:
        raise UserError(f"figure setting 'layers': there is no picture of the layer '{layer}'")
    if image >= len(made[layer]):
        raise UserError(f"figure setting 'image' is {image}; expected less than the {len(made[layer])} pictures kept")
    return made[layer][image]


def _words(cell: dict[str, Any]) -> str:
    given = {key: np.nan if cell.get(key) is None else cell[key] for key in ("epsilon", "noise_multiplier")}
    private = bool(cell["accountant"])
    series = Series(*(cell[key] for key in Series._fields))
    return cell_label(series if private else Series(cell["mechanism"]), pd.Series({**cell, **given}))


def _errors(cells: list[tuple[dict[str, Any], list[np.ndarray]]], settings: dict[str, Any]) -> pd.DataFrame:
    """The mean squared error of each picture shown."""
    rows = []
    for cell, (truth, *rebuilt) in cells:
        for layer, image in zip(settings["layers"], rebuilt, strict=True):
            error = float(((image - truth.astype(float)) ** 2).mean())
            own = {"attack": settings["attack"], "layer": layer, "image": settings["image"]}
            rows.append(own_row(cell, "mse", [error], **own))
    return pd.DataFrame(rows)
