"""Figure: the accuracy of every defense as a bar, with its 95 % interval."""

from dp_leakage.figures.style import canvas, finish, styled
from dp_leakage.table.frames import chosen, drawn_numbers

FIGURE = {
    "caption": "Accuracy on new records; the line on each bar is its 95 % interval.",
    "settings": {"color": "#0072b2"},
}


@styled
def draw(metrics, settings, published):
    """Returns the picture and exactly the numbers in it."""
    rows = chosen(metrics, settings)
    rows = drawn_numbers(rows[rows["metric"] == "test_accuracy"], published)
    figure, [[ax]] = canvas(1, 1, panel=(5, 0.4 + 0.22 * len(rows)))
    whiskers = [rows["measured"] - rows["low"], rows["high"] - rows["measured"]]
    ax.barh(rows["model"] + ", " + rows["defense"], rows["measured"], xerr=whiskers, color=settings["color"])
    ax.set_xlabel("test accuracy (fraction right)")
    return finish(figure, [], title=settings["title"]), rows
