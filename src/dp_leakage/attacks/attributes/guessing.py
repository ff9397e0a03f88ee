"""Common parts of attribute inference attacks: candidate values, the guess without the model, and the model's outputs.

Jayaraman & Evans (2022) found that most successes of attribute inference follow from data that the attacker has anyway.
So every attack is compared with a guess about the same records without the model (*imputation*).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dp_leakage.attacks.attribute import drawn_features, with_value
from dp_leakage.attacks.queries import logits, trained_on
from dp_leakage.data.dataset import Dataset
from dp_leakage.data.roles import POOL, attackers_roles
from dp_leakage.models.ensemble import Models, class_probabilities


class Question(NamedTuple):
    """Candidate values of a feature, k of them.

    Attributes:
        tried: float (k,), ascending: values that are fed to the models.
        edges: float (k - 1,): the bounds between them. A value on a bound belongs to the lower side.
        intervals: whether candidates represent intervals of a number rather than all of its values.
    """

    tried: np.ndarray
    edges: np.ndarray
    intervals: bool = False

    def code(self, values: np.ndarray) -> np.ndarray:
        """Return the index of each value's candidate, int64 (n,)."""
        return np.searchsorted(self.edges, values, side="left").astype(np.int64)


def question(own: np.ndarray, every: np.ndarray, categories: int, intervals: int) -> Question:
    """Choose the candidate values of a feature.

    Args:
        own: its values (m,) in the attacker's records.
        every: its values in all records.
        categories: with up to so many different values in ``every``, each is a candidate.
        intervals: number of intervals between quantiles of ``own`` for other features; the candidates are the medians
            inside.
    """
    distinct = np.unique(every)
    if len(distinct) <= categories:
        return Question(distinct, (distinct[1:] + distinct[:-1]) / 2)
    method: Any = "inverted_cdf"
    edges = np.unique(np.quantile(own, np.arange(1, intervals) / intervals, method=method))
    edges = edges[edges < own.max()]  # nothing of the attacker's lies above a bound at the maximum
    code = np.searchsorted(edges, own, side="left")
    return Question(np.array([np.median(own[code == place]) for place in range(len(edges) + 1)]), edges, True)


@dataclass(frozen=True)
class Asked:
    """An attribute inference problem: n records under attack, m records of the attacker, R models, k candidates, C
    classes.

    Attributes:
        target: the models.
        data: all records.
        feature: the column that is guessed.
        question: its candidates.
        record: rows of the records under attack, int64 (n,).
        own: rows of the attacker's, int64 (m,).
        learner: see `fitted`.
    """

    target: Models
    data: Dataset
    feature: int
    question: Question
    record: np.ndarray
    own: np.ndarray
    learner: str

    def code(self, rows: np.ndarray) -> np.ndarray:
        """Return the true candidate of records, int64."""
        return self.question.code(self.data.x[rows].reshape(len(rows), -1)[:, self.feature])

    def answers(self, rows: np.ndarray) -> np.ndarray:
        """Return probabilities of all classes, float64 (R, k, rows, C), with the feature set to each candidate."""
        x, n_classes = self.data.x[rows], self.data.n_classes
        return np.stack([probabilities(self.target, with_value(x, self.feature, v), n_classes) for v in self.tried], 1)

    @property
    def tried(self) -> np.ndarray:
        """Return the candidates, (k,)."""
        return self.question.tried

    @cached_property
    def prior(self) -> np.ndarray:
        """Return each candidate's frequency among the attacker's records, float64 (k,), by the rule of succession."""
        count = np.bincount(self.code(self.own), minlength=len(self.tried)) + 1
        return count / count.sum()

    def known(self, rows: np.ndarray) -> np.ndarray:
        """Return the attacker's knowledge of records, (rows, d - 1 + C): other features and the one-hot class."""
        others = np.delete(self.data.x[rows].reshape(len(rows), -1), self.feature, axis=1)
        return np.hstack([others, np.eye(self.data.n_classes)[self.data.y[rows]]])

    @cached_property
    def imputed(self) -> np.ndarray:
        """Guess without the model: return probabilities of the candidates, float64 (n, k)."""
        return fitted(self.learner, self.known(self.own), self.code(self.own), len(self.tried))(self.known(self.record))


def probabilities(models: Models, x: np.ndarray, n_classes: int) -> np.ndarray:
    """Return probabilities of all classes, float64 (R, n, C)."""
    result = np.empty((models.size, len(x), n_classes))
    for model, part, z in logits(models, x, n_classes):
        result[model, part] = class_probabilities(z)
    return result


def fitted(learner: str, x: np.ndarray, code: np.ndarray, size: int) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function from features (n, f) to probabilities (n, size), learned from features (m, f) and codes (m,).

    ``learner``: ``linear`` is scikit-learn's logistic regression (C = 1) of standardized features; ``trees`` its
    gradient boosting of histograms (100 rounds). Candidates that are not among the codes have probability 0.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    seen = np.unique(code)
    if len(seen) == 1:  # nothing to learn, and scikit-learn refuses it
        return lambda rows: np.tile(np.eye(size)[seen[0]], (len(rows), 1))
    linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    trees = HistGradientBoostingClassifier(random_state=0, early_stopping=False)
    model = (linear if learner == "linear" else trees).fit(x, code)

    def predicted(rows: np.ndarray) -> np.ndarray:
        result = np.zeros((len(rows), size))
        result[:, seen] = model.predict_proba(rows)
        return result

    return predicted


def guessed(
    target: Models, data: Dataset, settings: dict, seed: int, judge: Callable[[Asked], np.ndarray]
) -> pd.DataFrame:
    """Return the score table of an attribute inference attack, with imputation for comparison.

    Args:
        target: the R models under attack.
        data: features, labels, roles; the attacker's own records are those of `attackers_roles`.
        settings: ``features``, the number drawn; ``categories`` and ``intervals`` of `question`; ``learner``.
        seed: draws the features.
        judge: score of each candidate of each record, in any unit, (R, n, k). The first of equal
            candidates is the guess.

    Returns:
        repeat, record, member, feature, as all attacks on attributes; truth, guess and imputed, int64: the candidate
        that is true, that the attack guesses, and that imputation guesses; score float32: the attack's preference for
        the true candidate over the best other one, above 0 for a right guess. Also confidence and imputed_confidence,
        float32, by how much the guess is preferred to the next candidate; and of numbers that are guessed by intervals
        (NaN of categories) value, guess_value and imputed_value, float32: the true number, and the medians of the
        intervals that are guessed.

    Raises:
        UserError: too few features have two values.
    """
    record = data.targets
    member = trained_on(target, record)
    if POOL not in data.roles:
        member = np.tile(np.isin(record, data.trainable), (target.size, 1))
    frames = []
    for asked in _questions(target, data, settings, seed):
        likely, truth = judge(asked), asked.code(record)
        own = np.take_along_axis(likely, np.broadcast_to(truth, likely.shape[:2])[..., None], 2)[..., 0]
        others = np.where(np.arange(likely.shape[2]) == truth[:, None], -np.inf, likely).max(axis=2)
        guess, imputed = likely.argmax(axis=2), asked.imputed.argmax(axis=1)
        columns = {
            "repeat": np.arange(target.size)[:, None],
            "record": record.astype(np.int64),
            "member": member,
            "feature": np.int64(asked.feature),
            "truth": truth,
            "guess": guess,
            "imputed": imputed,
            "score": (own - others).astype(np.float32),
            "confidence": _lead(likely),
            "imputed_confidence": _lead(asked.imputed),
            **_numbers(asked, guess, imputed),
        }
        frames.append({name: np.broadcast_to(column, member.shape).ravel() for name, column in columns.items()})
    return pd.DataFrame({name: np.concatenate([frame[name] for frame in frames]) for name in frames[0]})


def _lead(likely: np.ndarray) -> np.ndarray:
    """Return the likeliest candidate's lead over the next, float32 (…), from (…, k); 0 for a single candidate."""
    if likely.shape[-1] == 1:
        return np.zeros(likely.shape[:-1], np.float32)
    first, second = np.partition(likely, -2, axis=-1)[..., -1], np.partition(likely, -2, axis=-1)[..., -2]
    return np.asarray(first - second, np.float32)


def _numbers(asked: Asked, guess: np.ndarray, imputed: np.ndarray) -> dict[str, np.ndarray]:
    """Return the true and the guessed numbers of a feature guessed by intervals; NaN for categories."""
    true = asked.data.x[asked.record].reshape(len(asked.record), -1)[:, asked.feature]
    known = 1.0 if asked.question.intervals else np.nan
    found = {"value": true, "guess_value": asked.tried[guess], "imputed_value": asked.tried[imputed]}
    return {name: np.asarray(known * of, np.float32) for name, of in found.items()}


def _questions(target: Models, data: Dataset, settings: dict, seed: int) -> Iterator[Asked]:
    record = data.targets
    own = np.concatenate([np.sort(data.roles[role]) for role in attackers_roles(data.roles)])
    columns = data.x.reshape(len(data.x), -1)
    every = np.concatenate([record, own])
    for feature in drawn_features(columns[record], data.sensitive, settings["features"], seed):
        asks = question(columns[own, feature], columns[every, feature], settings["categories"], settings["intervals"])
        yield Asked(target, data, int(feature), asks, record, own, settings["learner"])
