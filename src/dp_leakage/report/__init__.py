"""The study as one page: `render` makes it from a `ReportContext`. Nothing here reads or writes a study's files."""

from dp_leakage.report.answer import Answer, answers, singled_out
from dp_leakage.report.context import DataFacts, ReportContext, ReportFigure
from dp_leakage.report.exposed import most_exposed
from dp_leakage.report.page import TEMPLATE, render

__all__ = [
    "TEMPLATE",
    "Answer",
    "DataFacts",
    "ReportContext",
    "ReportFigure",
    "answers",
    "most_exposed",
    "render",
    "singled_out",
]
