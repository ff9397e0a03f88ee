"""Overview page of all studies in a results folder: completion times and answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dp_leakage.table import palette

TEMPLATE = Path(__file__).with_name("overview.html")


@dataclass(frozen=True)
class Entry:
    """A study on the overview.

    Attributes:
        study: name of the study.
        title: its title, one line.
        page: its report, relative to the overview; "" if there is none.
        finished: when the report was written, in words; "" if there is none.
        reduced: warning of a run at a reduced scale; "" at full scale.
        trouble: why it is incomplete; "" if complete.
        answers: the answer for each data set.
    """

    study: str
    title: str
    page: str = ""
    finished: str = ""
    reduced: str = ""
    trouble: str = ""
    answers: tuple[str, ...] = ()


def render(folder: str, entries: Sequence[Entry]) -> str:
    """Return the page, with the studies in the given order. It loads nothing and runs nothing."""
    template = palette.environment().from_string(TEMPLATE.read_text(encoding="utf-8"))
    return template.render(folder=folder, entries=list(entries))
