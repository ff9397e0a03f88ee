"""Rows on disclosure by the structure of models (`engines.structure`): exact counts, without intervals."""

import numpy as np

from dp_leakage.engines.answers import Answers
from dp_leakage.engines.structure import SMALL, Anonymity, alike, anonymity
from dp_leakage.metrics.intervals import Estimate
from dp_leakage.metrics.rows import row
from dp_leakage.metrics.runs import ALL

LEAST = ("smallest_cell", "residual_freedom")  # of several models the least counts, of all others the largest


def measure_structure(said: Answers, y: np.ndarray) -> list[dict]:
    """Return rows of K models, each by itself, and the worst of them as repeat ``all``.

    Args:
        said: the models' outputs, with the structure of trees and linear models.
        y: int64 (N,), the records' classes.

    Returns:
        ``cells=answers``, of the training records that a model answers alike, and ``cells=leaves``, of those in one
        leaf of its trees: smallest_cell, in_small_cells (the share in cells of fewer than `SMALL`) and class_disclosed
        (the share in cells of one class). residual_freedom: training records less parameters. stored_records: those
        that the model stores as they are. Unknown counts have no row.
    """
    found: dict[tuple[str, str], list[float]] = {}  # metric, cells → of each model
    for k, rows in enumerate(said.trained_on):
        if not rows.any():
            continue
        of: dict[str, Anonymity] = {}
        if said.log_probability is not None:
            of["answers"] = anonymity(alike(said.log_probability[k][rows]), y[rows])
        if said.leaves is not None:
            of["leaves"] = Anonymity(*said.leaves[k].tolist())
        for cells, each in of.items():
            found.setdefault(("smallest_cell", cells), []).append(each.smallest)
            found.setdefault(("in_small_cells", cells), []).append(each.in_small)
            found.setdefault(("class_disclosed", cells), []).append(each.disclosed)
        if said.parameters is not None:
            found.setdefault(("residual_freedom", ""), []).append(float(rows.sum() - said.parameters[k]))
        if said.stored is not None:
            found.setdefault(("stored_records", ""), []).append(float(said.stored[k]))
    return [one for (metric, cells), values in found.items() for one in _rows(metric, cells, values)]


def _rows(metric: str, cells: str, values: list[float]) -> list[dict]:
    worst = min(values) if metric in LEAST else max(values)
    named = [*((str(r), value) for r, value in enumerate(values)), (ALL, worst)]
    below = SMALL if metric == "in_small_cells" else None
    return [row(metric, repeat, Estimate(value, np.nan, np.nan), cells=cells, below=below) for repeat, value in named]
