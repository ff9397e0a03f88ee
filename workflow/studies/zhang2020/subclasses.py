"""Examples of the subclasses that k-means finds in a class (zhang2020, figure 3)."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dp_leakage.common.errors import UserError
from dp_leakage.figures.style import finish, styled
from dp_leakage.table.frames import own_row
from dp_leakage.table.notes import own_notes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURE = {
    "caption": "What the subclasses are that subclass-level privacy protects as a whole: records of a class "
    "that look alike.",
    "needs": "images",
    "settings": {
        "classes": {
            "anyOf": [{"type": "integer", "minimum": 1}, {"type": "array", "items": {"type": "integer", "minimum": 0}}],
            "default": [4, 9],
            "description": "The classes that are shown.",
        },
    },
}


@styled
def draw(
    shown: list[tuple[dict[str, Any], str, dict[str, np.ndarray]]],
    settings: dict[str, Any],
    published: pd.DataFrame | None,
) -> "tuple[Figure, pd.DataFrame]":
    """A panel for each class, a block of images for each of its subclasses.

    Settings:
        classes: which.

    Returns:
        The figure; and for each subclass shown the mean pixel distance of its images from their mean, as ``measured``.
    """
    from matplotlib.figure import Figure

    found = [(columns, made["subclasses"]) for columns, _, made in shown if "subclasses" in made]
    if not found:
        raise UserError("figure of kind 'subclasses': there are none; set k_sub of attack inversion_controls")
    columns, images = found[0]
    wrong = [c for c in settings["classes"] if not 0 <= c < len(images)]
    if wrong:
        raise UserError(f"figure setting 'classes': there is no class {wrong[0]}; expected 0 to {len(images) - 1}")
    figure = Figure(figsize=(max(1.6 * images.shape[1] * len(settings["classes"]), 5.2), 1.9), layout="constrained")
    axes = figure.subplots(1, images.shape[1] * len(settings["classes"]), squeeze=False)[0]
    rows = []
    for place, (label, subclass) in enumerate((c, s) for c in settings["classes"] for s in range(images.shape[1])):
        block = images[label, subclass]
        side = int(np.ceil(np.sqrt(len(block))))
        tiles = np.zeros((side * side, *block.shape[-2:]), np.float32)
        tiles[: len(block)] = block.mean(1)
        lines = tiles.reshape(side, side, *block.shape[-2:])
        axes[place].imshow(np.block([list(line) for line in lines]), cmap="gray", vmin=0, vmax=1)
        axes[place].set_axis_off()
        axes[place].set_title(f"class {label}, subclass {'AB'[subclass]}", fontsize=8)
        filled = block[block.any((1, 2, 3))]
        spread = np.sqrt(((filled - filled.mean(0)) ** 2).sum((1, 2, 3))).mean()
        own = {"class": label, "subclass": "AB"[subclass]}
        rows.append(own_row(columns, "distance_from_mean", [float(spread)], **own))
    note = "Up to nine images of each; the largest subclasses of the class. k-means looks at the records themselves."
    return finish(figure, [], [note, *own_notes(settings)], settings.get("title")), pd.DataFrame(rows)
