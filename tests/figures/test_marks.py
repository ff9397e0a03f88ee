"""Marks draw the rows as they are: nothing is averaged, left out or given the look of something else."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import same_color

from dp_leakage.figures.marks import draw_bars, draw_heat_map, draw_lines, draw_measured, draw_points
from dp_leakage.figures.style import canvas, styled
from dp_leakage.table.looks import BLOCK_FILLS, LOOKS

FILLED = {
    f"{one.label} {fill}": replace(one, fill=fill) for one in LOOKS.values() for fill in ("full", *BLOCK_FILLS.values())
}


def rows_of(**columns: object) -> pd.DataFrame:
    return pd.DataFrame(columns).assign(low=lambda rows: rows["y"] - 0.1, high=lambda rows: rows["y"] + 0.2)


@styled
def test_points_at_one_place_are_drawn_each_and_not_averaged() -> None:
    _, [[ax]] = canvas(1, 1)
    looks = {"one": LOOKS["gaussian", "rdp"], "other": LOOKS["none", ""]}
    rows = rows_of(series=["one", "one", "one", "other"], x=[2.0, 1.0, 1.0, 1.0], y=[3.0, 0.25, 1.0, np.nan])
    assert draw_lines(ax, rows, "x", "y", looks, named=True) is ax
    (line,) = ax.lines
    assert line.get_xydata().tolist() == [[1.0, 0.25], [1.0, 1.0], [2.0, 3.0]]
    assert line.get_label() == "DP-SGD, RDP"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("", "")


@styled
def test_every_look_is_drawn_in_its_own_color_marker_and_fill() -> None:
    _, [[ax]] = canvas(1, 1)
    x = np.arange(len(FILLED), dtype=float)
    draw_points(ax, rows_of(series=list(FILLED), x=x, y=x), "x", "y", FILLED)
    assert [line.get_fillstyle() for line in ax.lines] == [one.fill for one in FILLED.values()]
    for line, one in zip(ax.lines, FILLED.values(), strict=True):
        assert same_color(line.get_color(), one.color)
        assert same_color(line.get_markeredgecolor(), one.color)


@pytest.mark.parametrize("value", [0.0, -1.0])
@styled
def test_what_a_logarithmic_axis_cannot_show_hides_nothing_else(value: float) -> None:
    _, [[ax]] = canvas(1, 1)
    ax.set(xscale="log", yscale="log", xlim=(0.1, 10), ylim=(0.1, 10))
    looks = {"low": LOOKS["gaussian", "rdp"], "high": LOOKS["gaussian", "zcdp"]}
    rows = rows_of(series=["low", "low", "high", "high"], x=[1.0, 2.0, 1.0, 2.0], y=[value, value, 1.0, 2.0])
    draw_lines(ax, rows, "x", "y", looks, named=True)
    (high,) = (line for line in ax.lines if line.get_label() == "DP-SGD, zCDP")
    np.testing.assert_allclose(high.get_ydata(), [1, 2])
    assert same_color(high.get_color(), looks["high"].color)


@styled
def test_intervals_are_those_of_the_rows() -> None:
    _, [[ax]] = canvas(1, 1)
    looks = {"one": LOOKS["gaussian", "rdp"]}
    rows = rows_of(series=["one"], x=[5.0], y=[1.0]).assign(x_low=4.0, x_high=7.0)
    draw_bars(ax, rows, "x", "y", looks, across=("x_low", "x_high"))
    segments = [np.round(part, 9).tolist() for lines in ax.collections for part in lines.get_segments()]
    assert segments == [[[4.0, 1.0], [7.0, 1.0]], [[5.0, 0.9], [5.0, 1.2]]]


@styled
def test_one_point_has_a_bar_and_two_a_band() -> None:
    looks = {"one": LOOKS["gaussian", "rdp"]}
    for points, bands in ((1, 0), (2, 1)):
        _, [[ax]] = canvas(1, 1)
        rows = rows_of(series=["one"] * points, x=np.arange(1.0, points + 1), y=[1.0] * points)
        rows = rows.assign(measured=rows["y"], published=np.nan)
        draw_measured(ax, rows, "x", looks, rows["x"] > 0)
        assert sum(type(part).__name__ == "FillBetweenPolyCollection" for part in ax.collections) == bands


@styled
def test_a_heat_map_writes_each_number_once_with_its_style() -> None:
    _, [[ax]] = canvas(1, 1)
    tiles = pd.DataFrame([[0.1, np.nan], [0.2, 0.9]], ["a", "b"], ["c", "d"])
    styles = pd.DataFrame([[{}, np.nan], [{"weight": "bold"}, {"color": "red"}]], tiles.index, tiles.columns)
    draw_heat_map(ax, tiles, tiles.map(str), styles, cmap="Blues", vmax=1)
    written = [(text.get_text(), text.get_weight(), text.get_color() == "red") for text in ax.texts]
    assert written == [("0.1", "normal", False), ("0.2", "bold", False), ("0.9", "normal", True)]
