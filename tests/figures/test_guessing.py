"""Every figure of accuracies shows what naming the most frequent class reaches, or says where that lies."""

from typing import Any

import pandas as pd
import pytest

from dp_leakage.figures import draw

ENTRY = "guessing the most frequent class"
GUESS = {"guessing_accuracy": 0.12, "guessing_loss": 0.3}


def with_guesses(frame: pd.DataFrame, **guesses: float) -> pd.DataFrame:
    """The frame with what guessing reaches in each of its cells."""
    own = frame[(frame["metric"] == "test_accuracy") & (frame["repeat"] == "all")]
    added = [own.assign(metric=metric, value=value, low=value, high=value) for metric, value in guesses.items()]
    return pd.concat([frame, *added], ignore_index=True)


def lines_at(figure: Any, value: float, which: str) -> int:
    """In how many panels a line lies at the value along a whole axis."""
    read = {"x": lambda line: line.get_xdata(), "y": lambda line: line.get_ydata()}[which]
    return sum(
        any(len(read(line)) == 2 and set(read(line)) == {value} for line in ax.get_lines()) for ax in figure.axes
    )


def entries(figure: Any) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


@pytest.mark.parametrize(
    ("kind", "settings", "which", "value"),
    [
        ("accuracy_loss", {"normalized": False}, "y", 0.12),
        ("accuracy_loss", {}, "y", 0.3),
        ("accuracy_proven", {}, "y", 0.12),
        ("spent_axis", {}, "y", 0.3),
        ("collapse", {"attack": None}, "y", 0.3),
        ("pareto", {}, "x", 0.12),
        ("kinds_of_models", {}, "x", 0.12),
    ],
)
def test_a_line_lies_at_what_guessing_reaches(
    kind: str, settings: dict[str, Any], which: str, value: float, quick: pd.DataFrame
) -> None:
    figure, rows = draw(kind, with_guesses(quick, **GUESS), settings)
    assert lines_at(figure, value, which) == len(figure.axes)
    assert ENTRY in entries(figure)
    assert set(rows["guessing"]) == {value}
    plain, without = draw(kind, quick, settings)
    assert ENTRY not in entries(plain)
    assert "guessing" not in without


def test_a_guess_beyond_the_axis_moves_no_axis_and_stands_in_a_note(quick: pd.DataFrame) -> None:
    figure, _ = draw("accuracy_loss", with_guesses(quick, guessing_loss=0.912), {"y_max": 0.8})
    assert ENTRY not in entries(figure)
    assert "Beyond the axis: guessing the most frequent class, at 0.912." in " ".join(figure.get_supxlabel().split())
    assert figure.axes[0].get_ylim()[1] == 0.8


def test_training_curves_have_the_line_too(histories: pd.DataFrame) -> None:
    figure, rows = draw("training_curve", histories.assign(guessing=0.25), {})
    assert lines_at(figure, 0.25, "y") == 1
    assert ENTRY in entries(figure)
    assert set(rows.loc[rows["metric"] == "test_accuracy", "guessing"]) == {0.25}


def test_where_most_records_have_one_class_a_loss_of_zero_is_seen_to_be_a_guess(quick: pd.DataFrame) -> None:
    """98 % of the records have one class: models that lose nothing lie on the line."""
    lost = quick["metric"] == "accuracy_loss"
    rare = quick.assign(**{column: quick[column].mask(lost, 0.001) for column in ("value", "low", "high")})
    figure, rows = draw("accuracy_loss", with_guesses(rare, guessing_loss=0.002), {})
    assert lines_at(figure, 0.002, "y") == len(figure.axes)
    assert (rows["measured"] - rows["guessing"]).abs().max() < 0.01
