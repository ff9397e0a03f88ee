"""Marks: short functions that draw rows into a panel with seaborn.

seaborn draws lines, points, bars and heat maps in the looks of `style`. It averages nothing and computes no interval:
the rows hold each point once and its 95 % interval as ``low`` and ``high``.
"""

from typing import Any

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes


def draw_heat_map(
    ax: Axes, tiles: pd.DataFrame, texts: pd.DataFrame, styles: pd.DataFrame | None = None, **heat: Any
) -> Axes:
    """Draws a tile with a text for each number, in letters that are read on its shade, and returns the panel.

    Args:
        ax: the panel.
        tiles: numbers from 0 up; NaN where there is no tile.
        texts: of the tiles.
        styles: keywords for each text; seaborn has the same for all.
        heat: palette and ``vmax``, as for `seaborn.heatmap`.
    """
    look = {"fmt": "", "annot_kws": {"fontsize": 6.5}, "cbar": False, "linewidths": 0.5, "linecolor": "white"}
    before = len(ax.texts)
    sns.heatmap(tiles, annot=texts, ax=ax, vmin=0, **look, **heat)
    if styles is not None:
        there = styles.reindex(columns=tiles.columns).to_numpy()[tiles.notna().to_numpy()]
        for text, style in zip(ax.texts[before:], there, strict=True):
            text.set(**style)
    ax.tick_params(length=0, labelsize=7, rotation=0)
    ax.set(xlabel="", ylabel="")
    ax.grid(visible=False)
    return ax
