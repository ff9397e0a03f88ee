"""Outputs of models on records, as arrays: everything that a membership attack reads.

This module uses only NumPy; ``queries`` asks the models. The files of step ``query`` hold these arrays, and
docs/signals.md describes them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dp_leakage.common.errors import UserError, nearest
from dp_leakage.data.roles import ROLES, asked_roles
from dp_leakage.provenance.contents import Expected, check_arrays, check_distinct


@dataclass(frozen=True)
class Signals:
    """Outputs of R models of one type on n records in Q queries each.

    Attributes:
        record: int64 (n,), rows of the data set, each once.
        y: int64 (n,), the class of each, 0 … C-1.
        role: text (n,), the role of each in the study's split.
        trained_on: bool (R, n), which model trained on which record.
        margin: float64 (Q, R, n), ln p_y/(1 − p_y), p_y the probability of the record's class; the first query is the
            unchanged record.
        correct: bool (R, n), whether the class has the largest probability.
        rank: int32 (R, n), the place of the class among all by probability, from 1; ties count against the model.
        probability: float32 (R, n, C), of all classes; None unless it was read.
        x: float32 (n, …), the features; None unless they were read.
        losses: float32 (E, R, n), the loss at each evaluated epoch of the training, in nats; None unless it was read.
        person: int64 (n,), the owner of each record; None if every record has its own owner.
        left_out: for reference models: whether model r must not judge target r, since both have the same members (they
            may be the same model). Only attacks that declare it (``LEAVES_OUT``) receive such signals.
    """

    record: np.ndarray
    y: np.ndarray
    role: np.ndarray
    trained_on: np.ndarray
    margin: np.ndarray
    correct: np.ndarray
    rank: np.ndarray
    probability: np.ndarray | None = None
    x: np.ndarray | None = None
    losses: np.ndarray | None = None
    person: np.ndarray | None = None
    left_out: bool = False

    @property
    def size(self) -> int:
        """R."""
        return len(self.trained_on)

    @property
    def asked(self) -> "Signals":
        """Return the signals of the records whose membership is attacked."""
        return self.of(*asked_roles(self.roles))

    @property
    def roles(self) -> set[str]:
        """Return the roles of its records."""
        return {role for role, _ in self._runs()}

    def of(self, *roles: str) -> "Signals":
        """Select the records with these roles, in their order here."""
        runs = [run for role, run in self._runs() if role in roles]
        if runs and all(a.stop == b.start for a, b in pairwise(runs)):  # one piece: no copy
            return self._piece(slice(runs[0].start, runs[-1].stop))
        return self.records(np.isin(self.role, roles))

    def _runs(self) -> list[tuple[str, slice]]:
        """Return runs of consecutive records with one role. Comparing texts is slow, and most roles are one run."""
        ends = [0, *(np.flatnonzero(self.role[1:] != self.role[:-1]) + 1).tolist(), len(self.role)]
        pieces = [slice(start, end) for start, end in pairwise(ends) if end > start]
        return [(str(self.role[piece.start]), piece) for piece in pieces]

    def _piece(self, records: slice) -> "Signals":
        places = {name: (slice(None),) * AXES[name].index("n") + (records,) for name in self.arrays()}
        taken: dict[str, Any] = {name: getattr(self, name)[place] for name, place in places.items()}
        return replace(self, **taken)

    def records(self, chosen: np.ndarray) -> "Signals":
        """Select records: bool (n,), or positions int64 (m,)."""
        rows = np.flatnonzero(chosen) if chosen.dtype == bool else chosen
        return self._taken("n", rows)

    def models(self, chosen: np.ndarray) -> "Signals":
        """Select models: bool (R,), or positions int64 (k,)."""
        rows = np.flatnonzero(chosen) if chosen.dtype == bool else chosen
        return self._taken("R", rows)

    def mean_margin(self, queries: int = 1) -> np.ndarray:
        """Return margins averaged over the first ``queries`` queries, float64 (R, n). Raises UserError for fewer
        queries.
        """
        if not 1 <= queries <= len(self.margin):
            raise UserError(f"key 'queries' is {queries}; expected 1 to {len(self.margin)}, the number of queries made")
        return self.margin[0] if queries == 1 else self.margin[:queries].sum(axis=0) / queries

    @classmethod
    def held_by(cls, arrays: Mapping[str, Any], where: str | Path) -> "Signals":
        """Construct from the arrays of a file without probabilities, features and losses; the inverse of `arrays`.

        Raises:
            UserError: they are not what models can have said; the error message begins with the file, ``where``.
        """
        known = IN_FILE | ({"person": Expected("int64", "n", 0)} if "person" in arrays else {})
        check_arrays(arrays, known, str(where))
        check_distinct(arrays["record"], f"{where}: array 'record'")
        if unknown := sorted(set(arrays["role"].tolist()) - set(ROLES)):
            raise UserError(f"{where}: array 'role' holds {unknown[0]!r}; {nearest(unknown[0], ROLES)}")
        return cls(**arrays)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all arrays that are not None, by name, as in a file."""
        return {name: values for name in AXES if (values := getattr(self, name)) is not None}

    def _taken(self, axis: str, positions: np.ndarray) -> "Signals":
        held = {name: array for name, array in self.arrays().items() if axis in AXES[name]}
        taken: dict[str, Any] = {name: array.take(positions, AXES[name].index(axis)) for name, array in held.items()}
        return replace(self, **taken)


AXES = {
    "record": "n", "y": "n", "role": "n", "x": "n", "trained_on": "Rn", "margin": "QRn", "correct": "Rn", "rank": "Rn",
    "probability": "RnC", "losses": "ERn", "person": "n",
}  # fmt: skip
IN_FILE = {
    "record": Expected("int64", AXES["record"], 0),
    "y": Expected("int64", AXES["y"], 0),
    "role": Expected("text", AXES["role"]),
    "trained_on": Expected("bool", AXES["trained_on"]),
    "margin": Expected("float64", AXES["margin"]),
    "correct": Expected("bool", AXES["correct"]),
    "rank": Expected("int32", AXES["rank"], 1),
}


class Scores(NamedTuple):
    """Result of a membership attack on R models and the n queried records, ``Signals.asked``.

    Attributes:
        score: float64 (R, n), the higher, the more likely a member.
        flagged: bool (R, n), the attack's own decision.
    """

    score: np.ndarray
    flagged: np.ndarray


def losses(margin: np.ndarray) -> np.ndarray:
    """Return the cross-entropy −ln p_y in nats, ≥ 0, of records with these margins; same shape."""
    return np.logaddexp(0.0, -margin)


def score_columns(asked: Signals, said: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Return the columns of the score file of an attack that reads signals.

    Args:
        asked: the R models under attack and the n queried records; says who is a member.
        said: the attack's result, each (R, n): ``score`` and ``flagged`` of a membership attack.

    Returns:
        repeat int64, record int64, member bool, and the scores, one row per repeat and record.
    """
    repeats, n = asked.trained_on.shape
    return {
        "repeat": np.repeat(np.arange(repeats), n),
        "record": np.tile(asked.record, repeats),
        "member": asked.trained_on.ravel(),
        **{name: np.asarray(values).ravel() for name, values in said.items()},
    }


def positions(wanted: np.ndarray, record: np.ndarray) -> np.ndarray:
    """Return the position of each wanted record in ``record``, int64. Both contain each record once.

    Raises:
        ValueError: a record is missing.
    """
    order = np.argsort(record)
    found = order[np.searchsorted(record, wanted, sorter=order).clip(max=len(record) - 1)]
    if not np.array_equal(record[found], wanted):
        raise ValueError("a record is missing")
    return found
