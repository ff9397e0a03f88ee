"""Points and tiles of the page's interactive picture: one point a cell.

All words and numbers are made here. The script only moves points, and computes the precision of an accusation from the
share of members that the reader enters.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dp_leakage.common.utilities import ACCURACY
from dp_leakage.metrics.intervals import Estimate
from dp_leakage.metrics.measure import FPR_OF_TPR
from dp_leakage.report.answer import Answer, Setting
from dp_leakage.report.claims import Claim, ClaimWriter, percent
from dp_leakage.report.guarantees import rounded_up
from dp_leakage.report.phrases import label_budget, name_assumptions
from dp_leakage.report.tiles import make_tiles
from dp_leakage.table.looks import INK, look
from dp_leakage.table.numbers import cell_label, interval
from dp_leakage.table.words import name

FEWEST = 2  # points that are worth a picture


@dataclass(frozen=True)
class Explored:
    """Content of the interactive picture.

    Attributes:
        measures: key → label of the vertical axis; the first is shown first.
        groups: data set and model of each picture, in words; the first is shown first.
        points: one per cell, as `_point` makes it.
        tiles: the tiles of each point.
        limits: group → the smallest acceptable use and the largest acceptable advantage; empty without an undefended
            model.
    """

    measures: dict[str, str]
    groups: list[str]
    points: list[dict[str, Any]]
    tiles: list[list[Claim]]
    limits: dict[str, list[float]]

    @property
    def as_json(self) -> str:
        """Return JSON for the script, escaped so that it cannot end its HTML element."""
        content = {"measures": self.measures, "groups": self.groups, "points": self.points, "limits": self.limits}
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def explored(answers: Sequence[Answer], outside: Mapping[str, Sequence[str]] | None = None) -> Explored | None:
    """Return all cells with a measured use and leakage; None if there are none.

    ``outside``: data set → preparation that no ε covers.
    """
    uncovered = outside or {}
    chosen = [
        (answer, one)
        for answer in answers
        if answer.kind != "elsewhere"
        for one in answer.settings
        if one.leak is not None
    ]
    if len(chosen) < FEWEST:
        return None
    several = len(answers) > 1
    points = [_point(answer, one, several, uncovered.get(answer.dataset, ())) for answer, one in chosen]
    if not any(point["told"] for point in points):
        points[0]["told"] = True
    known = {key for point in points for key in point["up"]}
    limits = {
        point["group"]: [
            round((1 - answer.acceptable.accuracy_loss) * answer.best.accuracy.value, 6),
            answer.acceptable.advantage,
        ]
        for (answer, _), point in zip(chosen, points, strict=True)
        if answer.best is not None
    }
    groups = list(dict.fromkeys(point["group"] for point in points))
    first = next(point["group"] for point in points if point["told"])
    return Explored(
        measures={key: words for key, words in _measures().items() if key in known},
        groups=[first, *(group for group in groups if group != first)],
        points=points,
        tiles=[make_tiles(answer, one, outside=uncovered.get(answer.dataset, ())) for answer, one in chosen],
        limits=limits,
    )


def marks_of(answer: Answer) -> dict[str, float]:
    """Return kind of tile → value of the best undefended model, in [0, 1]; empty for external models."""
    if answer.best is None or answer.kind == "elsewhere":
        return {}
    leak = answer.best.leak
    return {"accuracy": answer.best.accuracy.value} | ({"measured": max(leak.advantage.value, 0.0)} if leak else {})


def _measures() -> dict[str, str]:
    rates = {_rate(fpr): f"members identified at {100 * fpr:g} % false positives" for fpr in FPR_OF_TPR}
    return {"advantage": "advantage measured", **rates, "proven": "advantage proven"}


def _rate(fpr: float) -> str:
    return f"tpr{fpr:g}"


def _point(answer: Answer, one: Setting, several: bool, outside: Sequence[str]) -> dict[str, Any]:
    """Return a cell's point: position (fractions with intervals), tiles, and for an accusation the attack's rates, the
    proven limit and the assumptions of the proof.
    """
    assert one.leak is not None
    known = name_assumptions(one, outside, ClaimWriter())
    found, style = one.leak, look(one.series)
    label = cell_label(one.series, one.row)
    accuracy = f"right on {percent(one.accuracy)} of new records"
    if one.measure != ACCURACY:
        accuracy = f"{one.use_label} {interval(*one.accuracy)} on new records"
    up: dict[str, list[float]] = {"advantage": _rounded(found.advantage)}
    says = {"advantage": f"an advantage of {interval(*found.advantage)} ({name(found.attack)})"}
    for fpr, tpr in found.tprs.items():
        up[_rate(fpr)] = _rounded(tpr)
        says[_rate(fpr)] = f"{percent(tpr)} of the members identified at {100 * fpr:g} % false positives"
    if one.proven is not None:
        up["proven"] = [round(one.proven.advantage, 6)]
        limit = f"no attack has an advantage above {rounded_up(one.proven.advantage)}"
        says["proven"] = f"{f'given {known}, ' if known else ''}{limit}"
    point = {
        "name": label,
        "series": style.label,
        "color": "" if style.color == INK else style.color,
        "group": " · ".join([*([name(answer.dataset)] if several else []), name(one.model)]),
        "told": one in answer.told,
        "beside": label_budget(one),
        "use": "" if one.measure == ACCURACY else one.use_label,
        "x": _rounded(one.accuracy),
        "up": up,
        "says": {key: f"{label}: {accuracy}; {words}." for key, words in says.items()},
    }
    return point | ({"accused": _accused(one, known)} if found.tprs else {})


def _accused(one: Setting, known: str) -> dict[str, Any]:
    """Return the rates behind the precision of an accusation, at the smallest measured false positive rate."""
    assert one.leak is not None
    fpr = min(one.leak.tprs)
    most = one.proven.tprs.get(fpr) if one.proven else None
    return {"fpr": fpr, "tpr": [max(end, 0.0) for end in one.leak.tprs[fpr]], "most": most, "given": known}


def _rounded(estimate: Estimate) -> list[float]:
    return [round(float(end), 6) for end in estimate]
