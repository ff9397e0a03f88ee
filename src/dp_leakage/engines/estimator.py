"""Engine ``estimator``: classifiers of scikit-learn, LightGBM and similar libraries, trained here by import path.

A trained classifier is stored as its outputs on all records, never as a pickle.
"""

import importlib
import inspect
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from dp_leakage.common.config import Json
from dp_leakage.common.errors import UserError, brief, nearest
from dp_leakage.common.schemas import Schema, holds
from dp_leakage.common.user_code import blamed, module_file
from dp_leakage.data.dataset import Dataset
from dp_leakage.data.outputs import FLOOR, SUM, log_probabilities
from dp_leakage.engines.answers import Answers, trained_on
from dp_leakage.engines.structure import Structure, known, leaves_of, parameters_of, stored_in
from dp_leakage.privacy.defenses import CLAIMED

SEEDS = 2**31 - 1  # the range of seeds that NumPy's and LightGBM's generators take
BOUNDS: Schema = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}


def answers(settings: Json, data: Dataset, subsets: list[np.ndarray], seeds: list[int]) -> Answers:
    """Train one estimator for each subset, and query it about all records.

    Args:
        settings: of step ``train``; the architecture is ``name``, ``module:Class``, and the class's arguments. In a
            cell of defense ``claimed``, it is the class under the model's key ``private``, with the cell's ε.
        data: the records; images are flattened.
        subsets: int64 (m,) for each of K: the records that it trains on.
        seeds: one for each.

    Raises:
        UserError: there is no such class, it does not take these arguments, records or classes, or it warns that its ε
            does not hold.
    """
    x = data.x.reshape(len(data.x), -1)
    said = np.empty((len(seeds), len(x), data.n_classes))
    structures = []
    for k, (rows, seed) in enumerate(zip(subsets, seeds, strict=True)):
        estimator = made(_with_bounds(settings["architecture"], x.shape[1]), seed % SEEDS)
        said[k] = _fitted(estimator, x, data.y, rows, settings["architecture"]["name"], data.n_classes)
        if settings.get("structure"):
            members = x[rows]
            structures.append(
                Structure(
                    data.y[rows], parameters_of(estimator), leaves_of(estimator, members), stored_in(estimator, members)
                )
            )
    found = Answers.of(trained_on(data, subsets), log_probabilities(said), data.y)
    return found._replace(**known(structures))


def _with_bounds(architecture: Json, features: int) -> Json:
    """Return the architecture with the bounds of features in the form that libraries expect."""
    changed = dict(architecture)
    for key in ("privacy_bounds", "bounds"):
        if isinstance(bounds := architecture.get(key), list):
            if not holds(bounds, BOUNDS):
                raise UserError(f"key {key!r} is {bounds!r}; expected two numbers, the bounds of every feature")
            # InterpretML wants a pair for each feature, diffprivlib a tuple.
            changed[key] = np.tile(np.array(bounds, np.float64), (features, 1)) if key != "bounds" else tuple(bounds)
    return changed


def made(architecture: Json, seed: int) -> Any:
    """Create the estimator of an import path; seeded and on one thread if it has parameters for that.

    Raises:
        UserError: it cannot be imported, or does not take the arguments.
    """
    name = str(architecture["name"])
    package, found, (where, file) = name.partition(":")[0], _found(name), _place(name)
    with blamed(where, file):
        takes = inspect.signature(found).parameters
    budget = {key: value for key, value in architecture.get(CLAIMED, {}).items() if key in takes and value is not None}
    if CLAIMED in architecture and "epsilon" not in budget:
        raise UserError(f"estimator {name!r} takes no epsilon; defense {CLAIMED} needs a class that takes it")
    given = {key: value for key, value in architecture.items() if key not in ("name", CLAIMED)} | budget
    own = {"random_state": seed, "n_jobs": 1, "verbose": -1 if package.startswith("lightgbm") else None}
    own |= {"deterministic": True, "force_row_wise": True} if package.startswith("lightgbm") else {}
    anything = any(parameter.kind is parameter.VAR_KEYWORD for parameter in takes.values())
    own = {key: value for key, value in own.items() if value is not None and (key in takes or anything)}
    unknown = [key for key in given if key not in takes and not anything]
    if unknown:
        raise UserError(f"estimator {name!r} does not take {unknown[0]!r}; {nearest(unknown[0], takes)}")
    try:
        with blamed(where, file):
            estimator = found(**own | given)
    except UserError as error:
        if isinstance(error.__cause__, TypeError | ValueError):
            raise UserError(f"{where} does not take these settings: {_one_line(error.__cause__)}") from None
        raise
    for method in ("fit", "predict_proba"):
        with blamed(where, file):
            has = callable(getattr(estimator, method, None))
        if not has:
            raise UserError(f"{where} has no {method}; expected a classifier that gives probabilities")
    return estimator


def is_estimator(name: str) -> bool:
    """Return whether an import path names a class with ``fit``. Raises UserError if the path does not exist."""
    return hasattr(_found(name), "fit")


def _place(name: str) -> tuple[str, Path | None]:
    """Return the code's name for an error message, and its file if it is one of the user's."""
    return f"estimator {name!r}", module_file(name.partition(":")[0])


def _found(name: str) -> Any:
    package, _, what = name.partition(":")
    where, file = _place(name)
    if package.partition(".")[0] in sys.stdlib_module_names:
        raise UserError(f"{where} belongs to Python's standard library, which has no classifiers")
    try:
        with blamed(where, file):
            module = importlib.import_module(package)
            found = getattr(module, what, None)
    except UserError as error:
        if isinstance(error.__cause__, ImportError):
            words = f"cannot be imported ({error.__cause__}); is its library installed, or its folder here?"
            raise UserError(f"{name!r} {words}") from None
        raise
    if found is None:
        raise UserError(f"{name!r} does not exist: {package} has no {what!r}; {nearest(what, _classes(module))}")
    return found


def _classes(module: ModuleType) -> list[str]:
    """Return a module's public classes that return probabilities or are networks; if there are none, all public
    classes.
    """
    named = {name: one for name, one in vars(module).items() if not name.startswith("_")}
    apt = [name for name, one in named.items() if hasattr(one, "predict_proba") or hasattr(one, "forward")]
    return apt or list(named)


def _fitted(estimator: Any, x: np.ndarray, y: np.ndarray, rows: np.ndarray, name: str, n_classes: int) -> np.ndarray:
    """Return probabilities, float64 (N, C), of all records after training on some. A class that it never saw gets 0."""
    where, file = _place(name)
    try:
        with blamed(where, file), warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            estimator.fit(x[rows], y[rows])
            found = np.array(estimator.predict_proba(x.copy()), dtype=np.float64)
            classes = np.array(estimator.classes_)
    except UserError as error:
        if error.__cause__ is None:
            raise
        reason = str(error).removeprefix(where).lstrip(", :")
        raise UserError(f"{where} cannot be trained on these records ({reason})") from None
    for one in warned:
        words = _one_line(one.message)
        # InterpretML also warns about a fixed random_state, but reproducible results need one.
        if one.category.__name__ == "PrivacyLeakWarning" or "assuming min/max" in words:
            raise UserError(f"{where} reads properties of the records that its ε does not cover ({words})")
    classes = _checked_classes(classes, where, n_classes)
    if found.shape != (len(x), len(classes)) or not np.isfinite(found).all():
        raise UserError(f"{where} gives outputs of shape {found.shape}; expected probabilities, one per class")
    total = found.sum(axis=1)
    if (found < 0).any() or not np.allclose(total, 1, rtol=0, atol=SUM):
        worst = found.min() if (found < 0).any() else total[np.abs(total - 1).argmax()]
        part = "a probability of" if (found < 0).any() else "probabilities that sum to"
        raise UserError(f"{where} gives {part} {worst:g}; expected numbers from 0 that sum to 1")
    said = np.zeros((len(x), n_classes))
    said[:, classes] = found
    return said / np.maximum(said.sum(axis=1, keepdims=True), FLOOR)


def _checked_classes(classes: np.ndarray, where: str, n_classes: int) -> np.ndarray:
    """Return ``classes_`` as int64 (C,). UserError unless they are different classes of the records."""
    good = classes.ndim == 1 and classes.dtype.kind in "biuf" and classes.size > 0
    if not good or not np.isin(classes, np.arange(n_classes)).all() or len(np.unique(classes)) != len(classes):
        shown = brief(classes.tolist(), 60)
        raise UserError(f"{where} has classes_ {shown}; expected different classes from 0 to {n_classes - 1}")
    return classes.astype(np.int64)


def _one_line(error: object) -> str:
    """Return the text of an error or warning, or its type if it has none."""
    try:
        return brief(error) or type(error).__name__
    except Exception:
        return type(error).__name__
