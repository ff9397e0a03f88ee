"""Names at the ends of lines: all are there, apart, readable, and none is in the legend too."""

from collections.abc import Sequence
from colorsys import rgb_to_hls
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from scipy.optimize import minimize

from dp_leakage.figures.labels import apart, name_lines, named_beside, readable
from dp_leakage.figures.marks import draw_measured
from dp_leakage.figures.style import canvas, finish, sample, styled
from dp_leakage.table.looks import COLORS, LOOKS, SPARE_COLORS, Look

PLACES = st.lists(st.floats(0, 1), min_size=1, max_size=12).map(np.array)


def draw_lines_of(ax: Axes, styles: Sequence[Look], height: float) -> None:
    """Lines from (1, 0.5) to (10, height)."""
    ends = pd.DataFrame({"x": 10.0, "measured": height, "series": [style.label for style in styles]})
    rows = pd.concat([ends.assign(x=1.0, measured=0.5), ends], ignore_index=True)
    rows = rows.assign(low=rows["measured"], high=rows["measured"], published=np.nan)
    draw_measured(ax, rows, "x", {style.label: style for style in styles}, rows["x"] > 0)


@given(PLACES, st.floats(0.01, 1 / 12))
def test_names_are_apart_inside_the_panel_and_in_the_order_of_the_lines(places, gap) -> None:
    moved = apart(places, gap)
    assert np.diff(np.sort(moved)).min(initial=1) >= gap - 1e-9
    assert gap / 2 - 1e-9 <= moved.min() <= moved.max() <= 1 - gap / 2 + 1e-9
    assert (np.argsort(moved, kind="stable") == np.argsort(places, kind="stable")).all()


@pytest.mark.parametrize("places", [[0.5], [0.5, 0.5, 0.5], [0.2, 0.21, 0.8], [0.02, 0.03, 0.5, 0.97, 0.98]])
def test_no_name_is_moved_further_than_needed(places) -> None:
    """As a general solver moves them that knows only the distances and the ends."""
    gap, n = 0.1, len(places)
    limits = [(gap / 2, 1 - gap / 2)] * n
    gaps = [{"type": "ineq", "fun": lambda at, i=i: at[i + 1] - at[i] - gap} for i in range(n - 1)]
    found = minimize(lambda at: ((at - places) ** 2).sum(), np.linspace(0.1, 0.9, n), bounds=limits, constraints=gaps)
    assert apart(np.array(places), gap) == pytest.approx(found.x, abs=1e-4)


@pytest.mark.parametrize("color", [*COLORS, *SPARE_COLORS, *sorted({known.color for known in LOOKS.values()})])
def test_names_are_read_on_white_in_the_hue_of_their_line(color) -> None:
    def contrast(rgb) -> float:
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in rgb]
        return 1.05 / (0.05 + sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True)))

    assert contrast(readable(color)) >= 4.5
    hue, lightness, _ = rgb_to_hls(*to_rgb(color))
    assert rgb_to_hls(*readable(color))[:2] == pytest.approx((hue, min(lightness, 0.25)))


@pytest.mark.parametrize("count", [1, 9, 30])
@styled
def test_each_line_is_named_once_and_many_make_the_figure_higher(count) -> None:
    styles = [Look(f"number {i}" + " of a long name" * (i == 0) * 4, "#0072b2", "o") for i in range(count)]
    figure, axes = canvas(1, 2)
    for ax in axes[0]:
        draw_lines_of(ax, styles, 0.5)
    height = figure.get_size_inches()[1]
    finish(figure, [sample(style) for style in styles])
    assert not figure.legends
    figure.draw_without_rendering()
    texts = [text for text in axes[0][1].texts if text.get_text()]
    assert sorted(text.get_text() for text in texts) == sorted(style.label for style in styles)
    assert not [text for text in axes[0][0].texts if text.get_text()]
    assert (figure.get_size_inches()[1] > height) == (count == 30)
    boxes = sorted((box.y0, box.y1) for box in (text.get_window_extent() for text in texts))
    assert all(upper[0] >= lower[1] - 1.5 for lower, upper in pairwise(boxes))
    right = max(text.get_window_extent().x1 for text in texts)
    assert right <= figure.bbox.x1 + 1


@styled
def test_what_no_last_panel_has_is_named_beside_the_last_panel_that_has_it() -> None:
    here, there, both = (LOOKS["gaussian", accountant] for accountant in ("rdp", "zcdp", "pld"))
    figure, ((left, right), (lower, spare)) = canvas(2, 2)
    for ax, styles in ((left, (there, both)), (right, (here, both)), (lower, (there,))):
        draw_lines_of(ax, styles, 0.2)
    spare.remove()
    beside = [(ax, set(lines)) for ax, lines in named_beside(figure)]
    assert beside == [(right, {here.label, both.label}), (lower, {there.label})]
    lower.clear()
    beside = [(ax, set(lines)) for ax, lines in named_beside(figure)]
    assert beside == [(left, {there.label}), (right, {here.label, both.label})]
    finish(figure, [sample(style) for style in (here, there, both)])
    assert not figure.legends
    figure.draw_without_rendering()
    (between,) = (text.get_window_extent() for text in left.texts if text.get_text())
    assert left.bbox.x1 < between.x0 < between.x1 < right.get_tightbbox().x0 + 1


@styled
def test_a_figure_without_named_lines_is_left_as_it_is() -> None:
    figure, ((ax,),) = canvas(1, 1)
    ax.plot([0, 1], [0, 1])
    size = tuple(figure.get_size_inches())
    name_lines(figure, named_beside(figure))
    assert tuple(figure.get_size_inches()) == size
    assert not ax.texts
