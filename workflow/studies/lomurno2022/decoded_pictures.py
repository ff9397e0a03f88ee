"""Pictures rebuilt from each layer: a column per layer, a row per defence."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dp_leakage.common.errors import UserError
from dp_leakage.figures.frames import CELL, NUMBERS
from dp_leakage.figures.notes import own_notes
from dp_leakage.figures.numbers import cell_label
from dp_leakage.figures.style import Series, footnotes, name, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURE = {
    "caption": "One image as a decoder rebuilds it from each layer of each model; further right less is left of it.",
    "needs": "images",
    "settings": {
        "attack": "decoder",
        "layers": ["conv1", "maxpool1", "conv2", "maxpool2", "conv3", "maxpool3", "dense", "prediction"],
        "image": 0,
    },
    "kinds": {"attack": ["either", "null", "text"], "layers": "texts", "image": ["whole", "from", 0]},
}

Shown = Sequence[tuple[dict[str, Any], str, dict[str, np.ndarray]]]
LABEL, PICTURE, GAP, HEAD = 1.35, 0.58, 0.05, 0.3  # inches: row labels, a picture, between pictures, headings


@styled
def draw(shown: Shown, settings: dict[str, Any], published: pd.DataFrame | None) -> "tuple[Figure, pd.DataFrame]":
    """A block per data set: the original in front, then what a decoder rebuilt of it from each layer, per defence.

    Args:
        shown: the cell's columns, the attack, and its arrays: ``original`` and one per layer, (n, c, h, w) in [0, 1].
        settings: ``attack``; ``layers``, from left to right; ``image``, which of the n.
        published: not used.

    Raises:
        UserError: the attack made no pictures of a layer, or too few.
    """
    from matplotlib.figure import Figure

    blocks: dict[str, list[tuple[dict[str, Any], dict[str, np.ndarray]]]] = {}
    for cell, attack, made in shown:
        if attack == settings["attack"]:
            blocks.setdefault(cell["dataset"], []).append((cell, made))
    if not blocks:
        raise UserError(f"figure setting 'attack': there are no pictures of '{settings['attack']}'")
    heads = ["original", *settings["layers"]]
    width = LABEL + len(heads) * (PICTURE + GAP) + GAP
    notes = ["Rebuilt from one unseen image, by a decoder of its own for each layer and model.", *own_notes(settings)]
    text = footnotes(notes, width)
    top = 0.3 if settings.get("title") else 0.08
    rows = sum(map(len, blocks.values()))
    height = top + len(blocks) * HEAD + rows * (PICTURE + GAP) + 0.13 * (text.count("\n") + 1) + 0.12
    figure = Figure(figsize=(width, height))
    if settings.get("title"):
        figure.text(GAP / width, 1 - 0.17 / height, settings["title"], fontsize=10, fontweight="bold", va="center")
    y = height - top
    for dataset, cells in blocks.items():
        figure.text(GAP / width, (y - HEAD / 2) / height, name(dataset), fontsize=8.5, fontweight="bold", va="center")
        for column, head in enumerate(heads):
            middle = (LABEL + column * (PICTURE + GAP) + PICTURE / 2) / width
            figure.text(middle, (y - 0.7 * HEAD) / height, name(head), fontsize=6.5, ha="center", va="center")
        y -= HEAD
        for cell, made in cells:
            y -= PICTURE
            figure.text(GAP / width, (y + PICTURE / 2) / height, _words(cell), va="center", fontsize=7)
            for column, head in enumerate(heads):
                box = ((LABEL + column * (PICTURE + GAP)) / width, y / height, PICTURE / width, PICTURE / height)
                _show(figure.add_axes(box), _picture(made, head, settings["image"]))
            y -= GAP
    figure.text(GAP / width, 0.06 / height, text, fontsize=7, va="bottom", linespacing=1.25)
    return figure, _errors(blocks, settings)


def _picture(made: dict[str, np.ndarray], layer: str, image: int) -> np.ndarray:
    """(c, h, w)."""
    if layer not in made:
        raise UserError(f"figure setting 'layers': there is no picture of the layer '{layer}'")
    if image >= len(made[layer]):
        raise UserError(f"figure setting 'image' is {image}; valid is less than the {len(made[layer])} pictures kept")
    return made[layer][image]


def _show(ax: Any, image: np.ndarray) -> None:
    ax.imshow(image[0] if len(image) == 1 else image.transpose(1, 2, 0), cmap="gray", vmin=0, vmax=1)
    ax.set_axis_off()


def _words(cell: dict[str, Any]) -> str:
    given = {key: np.nan if cell.get(key) is None else cell[key] for key in ("epsilon", "noise_multiplier")}
    private = bool(cell["accountant"])
    series = Series(*(cell[key] for key in ("mechanism", "accountant", "unit", "block")))
    return cell_label(
        series if private else Series(cell["mechanism"]), pd.Series({**given, "defense": cell["defense"]})
    )


def _errors(blocks: dict[str, list], settings: dict[str, Any]) -> pd.DataFrame:
    """The mean squared error of each picture shown."""
    rows = []
    for cell, made in (entry for cells in blocks.values() for entry in cells):
        truth = _picture(made, "original", settings["image"]).astype(float)
        for layer in settings["layers"]:
            error = ((_picture(made, layer, settings["image"]) - truth) ** 2).mean()
            setting = f"attack={settings['attack']};layer={layer};target={settings['image']}"
            columns = {key: cell.get(key) for key in CELL}
            rows.append({**columns, "metric": "mse", "setting": setting, "measured": float(error)})
    frame = pd.DataFrame(rows).assign(low=np.nan, high=np.nan, published=np.nan)
    return frame.assign(inside=pd.array([pd.NA] * len(frame), dtype="boolean"))[[*CELL, *NUMBERS]]
