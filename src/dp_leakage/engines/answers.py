"""Outputs of models of any origin on all records of a data set, and the resulting signals. Uses only NumPy."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dp_leakage.attacks.signals import Signals
from dp_leakage.common.errors import UserError
from dp_leakage.data.dataset import Dataset
from dp_leakage.data.outputs import margins_of
from dp_leakage.data.roles import asked_roles


class Answers(NamedTuple):
    """Outputs of K models on the N records of a data set.

    Attributes:
        trained_on: bool (K, N), which model was trained on which record.
        log_probability: float64 (K, N, C), of all classes; None if they are not known.
        margin: float64 (Q, K, N), of the record's class; the first query is the record as it is.
        parameters: int64 (K,), number of parameters that each model fitted to its records; None if not requested.
        leaves: float64 (K, 3), how anonymous its training records are in the leaves of its trees
            (`structure.Anonymity`); None if it is not made of trees, or not requested.
        stored: int64 (K,), number of training records that each model stores as they are; None if not requested.
    """

    trained_on: np.ndarray
    log_probability: np.ndarray | None
    margin: np.ndarray
    parameters: np.ndarray | None = None
    leaves: np.ndarray | None = None
    stored: np.ndarray | None = None

    @classmethod
    def of(cls, trained_on: np.ndarray, log_probability: np.ndarray, y: np.ndarray) -> "Answers":
        """Return answers from the logarithms of all probabilities, (K, N, C), and the classes (N,)."""
        return cls(trained_on, log_probability, margins_of(log_probability, y)[None])

    def tensors(self) -> dict[str, np.ndarray]:
        """Return everything that a file of these answers holds."""
        return {name: value for name, value in self._asdict().items() if value is not None}

    @classmethod
    def from_tensors(cls, tensors: dict[str, np.ndarray]) -> "Answers":
        """Return the inverse of `tensors`."""
        known = {name: tensors.get(name) for name in ("log_probability", "parameters", "leaves", "stored")}
        return cls(tensors["trained_on"].astype(bool), margin=tensors["margin"], **known)

    def probabilities(self, record: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return probabilities of all classes: the records and float32 (K, n, C). UserError if only margins
        are known.
        """
        if self.log_probability is None:
            raise UserError(
                "attacks that read probabilities need them of all classes; only losses or margins are given"
            )
        return record, np.exp(self.log_probability[:, record]).astype(np.float32)

    def test_probabilities(self, record: np.ndarray, y: np.ndarray) -> np.ndarray:
        """As `probabilities` without the records, of two classes y (N,) also where only their margins are known."""
        if self.log_probability is None and y.max() < 2:
            own = 1 / (1 + np.exp(-self.margin[0][:, record]))
            return np.stack([np.where(y[record] == one, own, 1 - own) for one in (0, 1)], axis=2)
        return self.probabilities(record)[1]

    def ranks(self, y: np.ndarray) -> np.ndarray:
        """Return the rank of each record's class, int32 (K, N). If only margins are known, it is 1 above 0
        and otherwise 2.
        """
        if self.log_probability is None:
            return np.where(self.margin[0] > 0, 1, 2).astype(np.int32)
        own = np.take_along_axis(self.log_probability, np.broadcast_to(y[:, None], (*self.margin.shape[1:], 1)), 2)
        return (self.log_probability >= own).sum(axis=2).astype(np.int32)

    def correct(self, y: np.ndarray) -> np.ndarray:
        """Return whether the class has the largest probability, bool (K, N); with only margins, whether it exceeds
        ½.
        """
        if self.log_probability is None:
            return self.margin[0] > 0
        return self.log_probability.argmax(axis=2) == y


def trained_on(data: Dataset, subsets: Sequence[np.ndarray]) -> np.ndarray:
    """Return the membership of a data set's records in K subsets, int64 (m,) each: bool (K, N)."""
    return np.stack([np.isin(np.arange(len(data.y)), rows) for rows in subsets])


def signals_of(answers: Answers, data: Dataset, record: np.ndarray, role: np.ndarray, queries: int) -> Signals:
    """Return the signals of some records (`asked_records`). Raises UserError if there are too few queries."""
    if queries > len(answers.margin):
        raise UserError(f"key 'queries' is {queries}, but there are {len(answers.margin)} answers for each record")
    y = data.y[record]
    margin, rank, correct = (
        answers.margin[:queries, :, record],
        answers.ranks(data.y)[:, record],
        answers.correct(data.y),
    )
    own = data.owners(record)
    return Signals(record, y, role, answers.trained_on[:, record], margin, correct[:, record], rank, person=own)


def history_of(answers: Answers, data: Dataset) -> dict[str, list]:
    """Return the only row of a training history that answers allow, per model: loss and accuracy on its training
    records.

    The test accuracy is over ``target_nonmembers``, as everywhere.
    """
    correct, loss = answers.correct(data.y), np.logaddexp(0.0, -answers.margin[0])
    asked = np.isin(np.arange(len(data.y)), np.concatenate([data.roles[name] for name in asked_roles(data.roles)]))
    outside = data.roles["target_nonmembers"]
    rows = [own if own.any() else asked for own in answers.trained_on]
    return {
        "repeat": list(range(len(rows))),
        "epoch": [1] * len(rows),
        "loss": [float(each[own].mean()) for each, own in zip(loss, rows, strict=True)],
        "train_accuracy": [float(each[own].mean()) for each, own in zip(correct, rows, strict=True)],
        "test_accuracy": [float(each[outside].mean()) for each in correct],
    }
