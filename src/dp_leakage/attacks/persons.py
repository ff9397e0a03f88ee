"""Scores of people from scores of their records, for inclusion of all records of a person together."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dp_leakage.attacks.signals import Signals, score_columns


def person_columns(
    asked: Signals,
    said: Mapping[str, np.ndarray],
    how: str,
    weighed: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None,
) -> dict[str, Any]:
    """Return the columns of a score file with a row per repeat and person, in place of one per repeat and record.

    Args:
        asked: the R models under attack and the n queried records, with their owners.
        said: ``score`` and ``flagged`` of a membership attack, (R, n).
        how: combination of a person's scores. ``sum`` suits logarithms of likelihood ratios: it is the ratio of all
            records together if they are independent. ``mean`` suits scores that also tell how hard a record is;
            ``max`` is the record that gives most away; ``learned`` weighs these and the number of records
            (`person_odds`).
        weighed: the people's log odds (R, P) from the records' scores and whose they are, if ``how`` is ``learned``.

    Returns:
        As `score_columns`; ``record`` holds the person, and a person is flagged if at least half of the records are,
        or if learned odds are above even.
        A further column, ``of_records``, keeps the scores of the person's single records, float64, in their order here.
    """
    persons, own = persons_of(asked)
    if weighed is None:
        score = combined(said["score"], own, how)
        flagged = combined(said["flagged"].astype(np.float64), own, "mean") >= 0.5
    else:
        score = weighed(said["score"], own)
        flagged = score > 0
    return score_columns(persons, {"score": score, "flagged": flagged}) | {"of_records": _apart(said["score"], own)}


def _apart(score: np.ndarray, own: np.ndarray) -> list[np.ndarray]:
    """Return the scores of each person's records, model after model; ``own`` (n,) is the owner of each record."""
    order = np.argsort(own, kind="stable")
    starts = np.flatnonzero(np.diff(own[order]) > 0) + 1
    return [each for row in score[:, order].astype(np.float64) for each in np.split(row, starts)]


def person_signals(asked: Signals, margin: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the sum of each person's values (R, n), float64 (R, P), and each model's included people, bool (R, P)."""
    persons, own = persons_of(asked)
    return combined(margin, own, "sum"), persons.trained_on


def combined(values: np.ndarray, own: np.ndarray, how: str) -> np.ndarray:
    """Combine each model's values (R, n) to one per person, float64 (R, P); ``own`` (n,) is the owner of
    each record.
    """
    order = np.argsort(own, kind="stable")
    starts = np.flatnonzero(np.diff(own[order], prepend=-1))
    whole = {"sum": np.add, "mean": np.add, "max": np.maximum}[how].reduceat(values[:, order], starts, axis=1)
    return np.asarray(whole / np.bincount(own) if how == "mean" else whole, dtype=np.float64)


def persons_of(asked: Signals) -> tuple[Signals, np.ndarray]:
    """Return one record of each person, numbered by the person, and the index of each record's person among them."""
    assert asked.person is not None  # the caller asks only where persons are known
    found, first, own = np.unique(asked.person, return_index=True, return_inverse=True)
    one = asked.records(first)
    return type(asked)(found, one.y, one.role, one.trained_on, one.margin, one.correct, one.rank), own.reshape(-1)
