"""All studies of a results folder on one page: when each was finished, and what it found."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dp_leakage.table import palette

TEMPLATE = Path(__file__).with_name("overview.html")


@dataclass(frozen=True)
class Entry:
    """One study.

    Attributes:
        study: its name.
        title: one line.
        page: its report, relative to the overview; "" if there is none.
        finished: when the report was written, in words; "" if there is none.
        reduced: what a run at a reduced scale says of itself; "" at full scale.
        trouble: why it is not whole; "" if it is.
        answers: the deciding sentence of each data set.
    """

    study: str
    title: str
    page: str = ""
    finished: str = ""
    reduced: str = ""
    trouble: str = ""
    answers: tuple[str, ...] = ()


def render(folder: str, entries: Sequence[Entry]) -> str:
    """The page, with the studies in the order given. It loads nothing and runs nothing."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    return template.render(folder=folder, entries=list(entries), palette=Markup(palette.style()))
