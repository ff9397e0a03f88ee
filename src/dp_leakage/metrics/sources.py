"""Leakage of a model whose members and non-members come from two different sources.

One claim holds however the sources differ: the model's AUC minus the AUC of reference models that were trained in the
same way on none of these records. A model that was not trained on them either would be one more reference, so the
difference would be 0 up to chance. Without such references a blind guess (`metrics.blind`) decides whether the AUC can
be interpreted.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from dp_leakage.metrics.blind import blind_guess, label_fit
from dp_leakage.metrics.intervals import CONFIDENCE, Estimate, Influences, Z, crossed
from dp_leakage.metrics.reached import named_by_best_threshold
from dp_leakage.metrics.roc import OF_FEW_RUNS, area, reached_advantage
from dp_leakage.metrics.rows import row
from dp_leakage.metrics.runs import ALL

MOST = 10_000  # records that the guess is made for, drawn by chance; more take minutes
BLIND, REFERENCES = "blind", "references"  # what an AUC is taken against
FEATURES, ANSWERS = "features", "answers of other models"  # what a guess may see beside labels
FLAT = 1e-9  # influences of a guess that is the same for all, but for rounding


class Asked(NamedTuple):
    """The n records whose membership is attacked, and the information about them besides the attacks' scores.

    Attributes:
        member: bool (n,).
        y: int64 (n,), their classes.
        x: (n, …) their features; None if they are not known.
        margin: float64 (R, n), of the models under attack.
        others: float64 (M, n), margins of reference models; None if there are none.
        seen: bool (M, n), whether a reference model was trained on a record.
        alike: whether references are trained like the models under attack.
    """

    member: np.ndarray
    y: np.ndarray
    x: np.ndarray | None
    margin: np.ndarray
    others: np.ndarray | None = None
    seen: np.ndarray | None = None
    alike: bool = True


def measure_sources(scores: Mapping[str, np.ndarray], asked: Asked) -> list[dict]:
    """Return rows on members and non-members from two sources.

    Args:
        scores: attack → (R, n), of the same records.
        asked: the records.

    Returns:
        blind_auc and blind_advantage, of a guess that never saw the model, with what it ``seen``. auc_beyond,
        ``against=blind``: for each attack, its AUC minus the AUC of the guess. auc_beyond, ``against=references``, if
        there
        are references trained alike on none of these records: the AUC of the models' loss minus the AUC of the
            references' loss.
    """
    some = np.sort(np.random.default_rng(0).permutation(len(asked.y))[:MOST])
    guess, member, seen = _guess(asked, some), asked.member[some], _seen(asked)
    blind = _area(guess[None], member)
    named = named_by_best_threshold(guess[None], member).astype(float)
    advantage = reached_advantage(named[:, member], named[:, ~member])
    rows = [
        row("blind_auc", ALL, _interval(blind, member, OF_FEW_RUNS), seen=seen),
        row("blind_advantage", ALL, advantage, seen=seen),
    ]
    for attack, score in scores.items():
        found = _interval(_less(_area(score[:, some], member), blind), member, OF_FEW_RUNS)
        rows.append(row("auc_beyond", ALL, found, attack=attack, against=BLIND, seen=seen))
    if asked.others is not None and asked.seen is not None and asked.alike and not asked.seen.any():
        found = beyond_references(asked.margin, asked.others, asked.member)
        rows.append(row("auc_beyond", ALL, found, against=REFERENCES, models=len(asked.others)))
    return rows


def beyond_references(margin: np.ndarray, others: np.ndarray, member: np.ndarray) -> Estimate:
    """Return the AUC of the loss of R models, margins (R, n), minus the AUC of M references, (M, n), on the same
    records.

    The spread of the references says how much trainings differ. With one or two references it is unknown, and the
    interval is widened as for a single run's choice of thresholds.
    """
    own, theirs = _area(margin, member), _area(others, member)
    (count, models), values = (len(others), len(margin)), theirs.value + theirs.blocks[0].mean(axis=1)
    apart = 0.0
    if count > 2:
        quantile = float(stdtrit(count - 1, (1 + CONFIDENCE) / 2))
        apart = quantile * float(values.std(ddof=1)) * np.sqrt(1 / models + 1 / count)
    return _interval(_less(own, theirs), member, OF_FEW_RUNS if count <= 2 else 1.0, apart)


def _guess(asked: Asked, some: np.ndarray) -> np.ndarray:
    y, x = asked.y[some], None if asked.x is None else asked.x[some]
    fits = [] if x is None else [label_fit(x, y)]
    if asked.others is not None and asked.seen is not None:
        fits.append(_answered(asked.others, asked.seen)[some])
    return blind_guess(asked.member[some], y, x, np.stack(fits, axis=1) if fits else None)


def _answered(others: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Return the mean margin, (n,), of models trained without a record; their median if there are none."""
    count = (~seen).sum(axis=0)
    mean = np.where(seen, 0.0, others).sum(axis=0) / np.maximum(count, 1)
    return np.where(count > 0, mean, np.median(mean[count > 0]) if count.any() else 0.0)


def _seen(asked: Asked) -> str:
    given = {FEATURES: asked.x is not None, "labels": True, ANSWERS: asked.others is not None}
    return ", ".join(what for what, there in given.items() if there)


def _area(scores: np.ndarray, member: np.ndarray) -> Influences:
    return area(scores[:, member], scores[:, ~member])


def _less(one: Influences, other: Influences) -> Influences:
    """Return the difference of two numbers on the same records; the second is averaged over its runs."""
    blocks = (a - b.mean(axis=0) for a, b in zip(one.blocks, other.blocks, strict=True))
    return Influences(one.value - other.value, tuple(blocks))


def _interval(found: Influences, member: np.ndarray, wider: float, apart: float = 0.0) -> Estimate:
    """Return an interval over records and runs, widened by a factor, with a further error of the same confidence.

    A guess that is the same for all records shows no spread; then it is the interval of an AUC under noise.
    """
    own = crossed(found)
    flat = max(float(np.abs(block).max()) for block in found.blocks) < FLAT
    least = Z * float(np.sqrt((1 / member.sum() + 1 / (~member).sum()) / 12)) if flat else 0.0
    below, above = (
        float(np.hypot(max(wider * reach, least), apart)) for reach in (own.value - own.low, own.high - own.value)
    )
    return Estimate(own.value, own.value - below, own.value + above)
