"""The report of a study as one page: `told` makes a list of claims from a `ReportContext`, and `render` the page from
them. Nothing here reads or writes a study's files.
"""

from dp_leakage.report.answer import Acceptable, Answer, Setting, answers, singled_out
from dp_leakage.report.claims import Claim, Number, as_json, headlines
from dp_leakage.report.context import DataFacts, ReportContext, ReportFigure
from dp_leakage.report.exposed import most_exposed
from dp_leakage.report.page import answers_of, render, told
from dp_leakage.report.sentences import claims_of

__all__ = [
    "Acceptable",
    "Answer",
    "Claim",
    "DataFacts",
    "Number",
    "ReportContext",
    "ReportFigure",
    "Setting",
    "answers",
    "answers_of",
    "as_json",
    "claims_of",
    "headlines",
    "most_exposed",
    "render",
    "singled_out",
    "told",
]
