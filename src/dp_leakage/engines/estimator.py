"""Engine ``estimator``: classifiers of scikit-learn, LightGBM and similar libraries, trained here by import path.

A trained classifier is kept as its answers about all records, never as a pickle.
"""

import importlib
import inspect
import warnings
from typing import Any

import numpy as np

from dp_leakage.common.config import Json
from dp_leakage.common.errors import UserError, nearest
from dp_leakage.data.dataset import Dataset
from dp_leakage.data.outputs import FLOOR, log_probabilities
from dp_leakage.engines.answers import Answers, trained_on
from dp_leakage.privacy.defenses import CLAIMED

SEEDS = 2**31 - 1  # the range of seeds that NumPy's and LightGBM's generators take


def answers(settings: Json, data: Dataset, subsets: list[np.ndarray], seeds: list[int]) -> Answers:
    """Trains one estimator for each subset, and asks it about all records.

    Args:
        settings: of step ``train``; the architecture is ``name``, ``module:Class``, and the class's arguments. In a
            cell of defense ``claimed``, it is the one under the model's key ``private``, with the cell's ε.
        data: the records; images are flattened.
        subsets: int64 (m,) for each of K: the records that it trains on.
        seeds: one for each.

    Raises:
        UserError: there is no such class, it does not take these arguments, records or classes, or it warns that its ε
            does not hold.
    """
    x = data.x.reshape(len(data.x), -1)
    architecture = dict(settings["architecture"])
    if isinstance(bounds := architecture.get("privacy_bounds"), list):  # the same pair for all features
        architecture["privacy_bounds"] = np.tile(np.array(bounds, dtype=np.float64), (x.shape[1], 1))
    if isinstance(bounds := architecture.get("bounds"), list):  # diffprivlib wants a tuple, which YAML cannot write
        architecture["bounds"] = tuple(bounds)
    said = np.empty((len(seeds), len(x), data.n_classes))
    for k, (rows, seed) in enumerate(zip(subsets, seeds, strict=True)):
        estimator = made(architecture, seed % SEEDS)
        said[k] = _fitted(estimator, x, data.y, rows, settings["architecture"]["name"], data.n_classes)
    return Answers.of(trained_on(data, subsets), log_probabilities(said), data.y)


def made(architecture: Json, seed: int) -> Any:
    """The estimator of an import path with its arguments; seeded and on one thread if it has parameters for that.

    Raises:
        UserError: it cannot be imported, or does not take the arguments.
    """
    name = str(architecture["name"])
    package, found = name.partition(":")[0], _found(name)
    takes = inspect.signature(found).parameters
    budget = {key: value for key, value in architecture.get(CLAIMED, {}).items() if key in takes and value is not None}
    if CLAIMED in architecture and "epsilon" not in budget:
        raise UserError(f"estimator {name!r} takes no epsilon; valid for defense {CLAIMED} is a class that does")
    given = {key: value for key, value in architecture.items() if key not in ("name", CLAIMED)} | budget
    own = {"random_state": seed, "n_jobs": 1, "verbose": -1 if package.startswith("lightgbm") else None}
    own |= {"deterministic": True, "force_row_wise": True} if package.startswith("lightgbm") else {}
    anything = any(parameter.kind is parameter.VAR_KEYWORD for parameter in takes.values())
    own = {key: value for key, value in own.items() if value is not None and (key in takes or anything)}
    unknown = [key for key in given if key not in takes and not anything]
    if unknown:
        raise UserError(f"estimator {name!r} does not take {unknown[0]!r}; {nearest(unknown[0], takes)}")
    try:
        return found(**own | given)
    except (TypeError, ValueError) as error:
        raise UserError(f"estimator {name!r} does not take these settings: {error}") from None


def is_estimator(name: str) -> bool:
    """Whether an import path names a class that is trained by ``fit``. UserError if nothing is found there."""
    return hasattr(_found(name), "fit")


def _found(name: str) -> Any:
    package, _, what = name.partition(":")
    try:
        module = importlib.import_module(package)
    except ImportError as error:
        raise UserError(
            f"{name!r} cannot be imported ({error}); is its library installed, or its folder here?"
        ) from None
    except Exception as error:  # a user's file can raise anything
        raise UserError(f"{name!r} cannot be imported ({type(error).__name__}: {error})") from None
    if not hasattr(module, what):
        raise UserError(f"{name!r} is not there: {package} has no {what!r}; {nearest(what, vars(module))}")
    return getattr(module, what)


def _fitted(estimator: Any, x: np.ndarray, y: np.ndarray, rows: np.ndarray, name: str, n_classes: int) -> np.ndarray:
    """Probabilities, float64 (N, C), of all records after training on some. A class that it never saw gets 0."""
    for method in ("fit", "predict_proba"):
        if not callable(getattr(estimator, method, None)):
            raise UserError(f"estimator {name!r} has no {method}; valid is a classifier that gives probabilities")
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            estimator.fit(x[rows], y[rows])
            found = np.asarray(estimator.predict_proba(x), dtype=np.float64)
    except Exception as error:  # a library can raise anything
        words = " ".join(str(error).split())[:200]
        raise UserError(f"estimator {name!r} cannot be trained on these records ({words})") from None
    for one in warned:
        words = " ".join(str(one.message).split())
        # InterpretML also warns about a fixed random_state, but reproducible results need one.
        if one.category.__name__ == "PrivacyLeakWarning" or "assuming min/max" in words:
            raise UserError(f"estimator {name!r} takes from the records what its ε does not cover ({words[:200]})")
    classes = np.asarray(estimator.classes_, dtype=np.int64)
    if found.shape != (len(x), len(classes)) or not np.isfinite(found).all():
        raise UserError(
            f"estimator {name!r} gives outputs of shape {found.shape}; valid are probabilities, one per class"
        )
    said = np.zeros((len(x), n_classes))
    said[:, classes] = found
    return said / np.maximum(said.sum(axis=1, keepdims=True), FLOOR)
