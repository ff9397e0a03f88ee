"""Measures of use: the quality that a study wants its models to keep. One table for the code that computes, compares or
names them.

Accuracy says little if nearly all records have one class. Other measures are functions of the true classes and the
models' probabilities, as scikit-learn or a plugin defines them. Their intervals, losses and tests need each record's
influence, which the jackknife finds for any measure (Efron & Stein 1981): records, or persons with all their records,
are left out in `BLOCKS` equal blocks, the same ones for all models of a data set. So models compare in pairs. A block
holds records of all classes in equal shares.
"""

from typing import Any, NamedTuple

import numpy as np

from dp_leakage.common.errors import UserError
from dp_leakage.common.utilities import ACCURACY, AUROC, UTILITIES, label_of
from dp_leakage.metrics.intervals import Estimate, Influences, Z, crossed, freedom_of, ratio
from dp_leakage.metrics.people import ASKED

DOMINATES = 0.9  # the share of one class from which on accuracy is not the default
BLOCKS = 100  # at most so many are left out in turn
VALUE, INFLUENCES = "utility", "influences"  # columns of a training's history
METRIC, LOSS, GUESSING, GUESSING_LOSS = "test_utility", "utility_loss", "guessing_utility", "guessing_utility_loss"
LIMITS = (0.0, 1.0)


def utility_for(given: str | None, trained: np.ndarray, tested: np.ndarray) -> str:
    """Return the measure's name: the given one, or the default for data with these classes.

    Args:
        given: by the study; None: it names none.
        trained, tested: int64 (m,) and (n,), the classes of the training records and of those that use is measured on.
    """
    if given is not None:
        return given
    dominated = np.bincount(trained).max() >= DOMINATES * len(trained)
    return AUROC if dominated and len(np.unique(tested)) > 1 else ACCURACY


class Use(NamedTuple):
    """Scores of R models of a data set in a measure, and the influences of blocks of records.

    Attributes:
        values: float64 (R,).
        influences: float64 (R, blocks), of each block on its model's value; rows sum to 0.
        units: number of records, or people, in all blocks together.
    """

    values: np.ndarray
    influences: np.ndarray
    units: int

    @property
    def value(self) -> float:
        """Return the mean over the models."""
        return float(self.values.mean())

    @property
    def block(self) -> np.ndarray:
        """Return the influences on the mean, float64 (R, blocks), see `intervals.Influences`."""
        return np.asarray(self.influences + (self.values - self.value)[:, None])

    @property
    def estimate(self) -> Estimate:
        """Return the mean with its interval over both the records and the trainings."""
        return crossed(Influences(self.value, (self.block,)), LIMITS)

    def of_model(self, place: int) -> "Use":
        """Return the use of a single model."""
        return self.of_models(slice(place, place + 1))

    def of_models(self, some: slice) -> "Use":
        """Return the use of some of the models."""
        return Use(self.values[some], self.influences[some], self.units)


def measured_use(
    name: str, y: np.ndarray, probabilities: np.ndarray, trained: np.ndarray, person: np.ndarray | None = None
) -> Use:
    """Return models' scores on records that they did not train on.

    Args:
        name: of the measure, a key of `UTILITIES`.
        y: int64 (n,), the records' classes.
        probabilities: float (R, n, classes), what each of R models says of them.
        trained: int64 (m,), the classes of the training records.
        person: int64 (n,), the owner of each record; None: all owners differ.

    Raises:
        UserError: the records have one class only, or a plugin returns no number from 0 to 1.
    """
    labels, told = _rarer_last(y, np.asarray(probabilities, np.float64), trained)
    if len(np.unique(labels)) < 2:
        raise UserError(f"key 'utility': '{name}' needs test records of two classes or more; all are of one")
    score = UTILITIES[name].score
    block, units = _blocks(labels, person)
    kept = [block != one for one in range(int(block.max()) + 1)]
    values = np.array([score(labels, one) for one in told])
    without = np.array([[score(labels[rows], one[rows]) for rows in kept] for one in told])
    # A block with all records of a class leaves nothing to measure: then all that was reached is its.
    influences = (len(kept) - 1) * (values[:, None] - np.where(np.isnan(without), 0.0, without))
    return Use(values, influences - influences.mean(axis=1, keepdims=True), units)


def scored(name: str, y: np.ndarray, probabilities: np.ndarray, trained: np.ndarray) -> float:
    """Return one model's score, with probabilities (n, classes); 0 if its records have only one class."""
    labels, told = _rarer_last(y, np.asarray(probabilities, np.float64)[None], trained)
    return float(np.nan_to_num(UTILITIES[name].score(labels, told[0])))


def guessed_use(name: str, y: np.ndarray, trained: np.ndarray, classes: int, person: np.ndarray | None = None) -> Use:
    """Return the best score of a constant answer; arguments as for `measured_use`."""
    shares = np.bincount(trained, minlength=classes) / len(trained)
    constant = np.stack([shares, *np.eye(classes)])
    found = measured_use(name, y, np.repeat(constant[:, None], len(y), axis=1), trained, person)
    return found.of_model(int(found.values.argmax()))


def _rarer_last(y: np.ndarray, told: np.ndarray, trained: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return classes and probabilities, the two classes exchanged where the second has more training records."""
    if told.shape[2] != 2 or np.bincount(trained, minlength=2)[1] * 2 <= len(trained):
        return y, told
    return 1 - y, told[:, :, ::-1]


def _blocks(labels: np.ndarray, person: np.ndarray | None) -> tuple[np.ndarray, int]:
    """Return the block of each record, int64 (n,), and the number of persons.

    They are dealt in the order of their largest class.
    """
    owner = np.arange(len(labels)) if person is None else np.unique(person, return_inverse=True)[1].reshape(-1)
    largest = np.zeros(int(owner.max()) + 1, np.int64)
    np.maximum.at(largest, owner, labels)
    place = np.argsort(np.argsort(largest, kind="stable"), kind="stable")
    return np.asarray((place % BLOCKS)[owner]), len(largest)


def independent_blocks(block: np.ndarray) -> float:
    """Return the number of independent normal blocks that would determine the spread between records equally precisely,
    from (R, blocks).

    The influences of rare classes are few and large, so that fewer degrees of freedom are left (`freedom_of`).
    """
    return freedom_of(block.mean(axis=0)) + 1


def lost_use(own: Use, base: Use) -> Estimate:
    """Return 1 − own / base of the means of R and S models on the same records (`ratio`).

    Trainings count as independent. The correlation is the one from the choice of the records.
    """
    apart, whole = own.estimate, base.estimate
    shared = Z**2 * float(np.cov(own.block.mean(axis=0), base.block.mean(axis=0))[0, 1]) / own.influences.shape[1]
    reaches = (apart.high - apart.low) * (whole.high - whole.low) / 4
    kept = ratio(apart, whole, float(np.clip(shared / reaches, -1, 1)) if reaches > 0 else 0.0)
    return Estimate(1 - kept.value, 1 - kept.high, min(1 - kept.low, 1.0))


def metrics_in(frame: Any) -> tuple[str, str]:
    """Return the metrics that say the use and its loss in these rows of one data set."""
    return (METRIC, LOSS) if (frame["metric"] == METRIC).any() else ("test_accuracy", "accuracy_loss")


def measure_in(frame: Any) -> str:
    """Return the measure of use in these rows of one data set."""
    return next(iter(frame.loc[frame["metric"] == METRIC, "of"]), ACCURACY)


def labels_in(rows: Any) -> list[str]:
    """Return the labels of the measures of use in these rows of a metric of use, each once."""
    if "of_use" not in rows:
        return [UTILITIES[ACCURACY].label]
    return [label_of(str(one) or ACCURACY) for one in dict.fromkeys(rows["of_use"])]


def columns_of(use: Use, final: list[Any]) -> dict[str, list[Any]]:
    """Return the columns of a training's history: ``final`` holds a model's number in its last row, None in others."""
    return {
        VALUE: [None if k is None else float(use.values[k]) for k in final],
        INFLUENCES: [None if k is None else use.influences[k] for k in final],
    }


def use_in(history: Any) -> Use | None:
    """Return the use that a training's history, a data frame, keeps; None if the measure is accuracy."""
    if VALUE not in history:
        return None
    rows = history[history[INFLUENCES].notna()].sort_values("repeat")
    return Use(rows[VALUE].to_numpy(np.float64), np.stack(rows[INFLUENCES].to_list()), len(rows[ASKED].iloc[0]))
