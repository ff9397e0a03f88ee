"""Label-only attack by distance (Li & Zhang 2021; Choquette-Choo et al. 2021): the distance of a record from another
class.

Training moves the boundary of a class away from the training records. The distance is found from predicted classes
alone, as HopSkipJump does (Chen, Jordan & Wainwright 2020): from a record of another class along a line to the
boundary, and then along it to where it comes nearest, in directions that noisy copies show.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch

from dp_leakage.attacks.membership.label_noise import frame_of
from dp_leakage.attacks.queries import LOGITS_AT_ONCE
from dp_leakage.data.dataset import Dataset
from dp_leakage.data.roles import population_role
from dp_leakage.models.ensemble import Models

# ``alpha`` as of `label_noise`.
ATTACK = {
    "family": "membership",
    "label": "label only, boundary",
    "reads": "models",
    "roles": ["reference_pool"],
    "settings": {
        "rounds": {
            "type": "integer",
            "minimum": 0,
            "default": 4,
            "description": "Steps of the search along the boundary.",
        },
        "copies": {
            "type": "integer",
            "minimum": 2,
            "default": 40,
            "description": "Noisy copies by which each step finds its direction.",
        },
        "halvings": {
            "type": "integer",
            "minimum": 1,
            "default": 10,
            "description": "Halvings of a line on which the boundary is found.",
        },
        "alpha": {"$ref": "#/$defs/alpha"},
    },
    "adapts": "reads predicted classes alone, on a search for the nearest point of another class",
}

STEPS = 4  # lengths that are tried in each direction, each half of the one before
Flips = Callable[[np.ndarray], np.ndarray]  # points (n, …) → whether each lies in another class than its record's


class Search(NamedTuple):
    """Settings of the search for the nearest point of another class; see `score`."""

    rounds: int
    copies: int
    halvings: int


def score(target: Models, data: Dataset, fitted: None, settings: dict, seed: int) -> pd.DataFrame:
    """Score every queried record with its distance from another class; 0 where the model misclassifies it.

    Other repeats as references, threshold and columns as in `label_noise`. It starts at the nearest record of the
    population that the model puts into another class. A record then costs at most (``halvings`` + ``copies`` + `STEPS`)
    · ``rounds`` + ``halvings`` + 1 queries, and the population one each.

    Args:
        target: the R models under attack.
        data: features, labels, roles.
        fitted: unused, the attack learns nothing.
        settings: ``rounds`` along the boundary, each with so many noisy ``copies``; ``halvings`` of a line on which the
            boundary is found; ``alpha``, in (0, 1).
        seed: draws the noise, the same for all models.

    Raises:
        UserError: there are no records that no model trained on and that no attack asks about.
    """
    search = Search(settings["rounds"], settings["copies"], settings["halvings"])
    population = data.roles.get(population_role(data.roles), np.empty(0, np.int64))

    def found(rows: np.ndarray) -> np.ndarray:
        return distances(target, data, rows, population, search, seed)

    return frame_of("boundary", target, data, found, settings["alpha"])


def distances(
    models: Models, data: Dataset, rows: np.ndarray, population: np.ndarray, search: Search, seed: int
) -> np.ndarray:
    """Return each record's distance from the nearest known point of another class, float64 (R, n), Euclidean.

    The distance is 0 if the model misclassifies the record, and the largest of all distances if the model assigns no
    record of the population to another class.
    """
    result = np.empty((models.size, len(rows)))
    for model in range(models.size):
        said = _predicted(models, model, data.x[population], data.n_classes)
        found = _of_model(models, model, data, rows, (data.x[population], said), search, seed)
        result[model] = np.minimum(found, found[np.isfinite(found)].max(initial=0.0))
    return result


def _of_model(
    models: Models,
    model: int,
    data: Dataset,
    rows: np.ndarray,
    population: tuple[np.ndarray, np.ndarray],
    search: Search,
    seed: int,
) -> np.ndarray:
    x, y = data.x[rows], data.y[rows]
    start = _nearest_of_another_class(x, y, *population)
    result = np.where(_predicted(models, model, x, data.n_classes) == y, np.inf, 0.0)
    open_ = np.flatnonzero((result > 0) & (start >= 0))
    if not len(open_):
        return result
    own, label = x[open_], y[open_]

    def flips(points: np.ndarray) -> np.ndarray:
        return _predicted(models, model, points, data.n_classes) != label

    rng = np.random.default_rng(seed)
    point = _to_boundary(flips, own, population[0][start[open_]], search.halvings)
    for place in range(1, search.rounds + 1):
        moved = _along(flips, own, point, search.copies, place, rng)
        moved = _to_boundary(flips, own, moved, search.halvings)
        nearer = _length(moved - own) < _length(point - own)
        point = np.where(_as_factor(nearer, point), moved, point)
    result[open_] = _length(point - own)
    return result


def _nearest_of_another_class(x: np.ndarray, y: np.ndarray, others: np.ndarray, said: np.ndarray) -> np.ndarray:
    """Return the index of the nearest candidate, among (m, …), that is predicted as another class; −1 without one."""
    flat, among = (part.reshape(len(part), -1).astype(np.float64) for part in (x, others))
    place = np.full(len(x), -1)
    for label in np.unique(y):
        rows, there = np.flatnonzero(y == label), np.flatnonzero(said != label)
        if len(there):
            apart = (among[there] ** 2).sum(axis=1) - 2 * flat[rows] @ among[there].T
            place[rows] = there[apart.argmin(axis=1)]
    return place


def _to_boundary(flips: Flips, own: np.ndarray, other: np.ndarray, halvings: int) -> np.ndarray:
    """Return the nearest known point of another class on the line from each record to a point of another class."""
    near, far = np.zeros(len(own)), np.ones(len(own))
    for _ in range(halvings):
        middle = (near + far) / 2
        there = flips((own + _as_factor(middle, own) * (other - own)).astype(np.float32))
        near, far = np.where(there, near, middle), np.where(there, middle, far)
    return np.asarray(own + _as_factor(far, own) * (other - own), np.float32)


def _along(
    flips: Flips, own: np.ndarray, point: np.ndarray, copies: int, place: int, rng: np.random.Generator
) -> np.ndarray:
    """Move each point within the other class, in the mean direction of its noisy copies that are in this class.

    Copies are as far away as a search of so many features needs (Chen, Jordan & Wainwright 2020, section III): the
    distance over the root of their number. The step is the distance over the root of the round, or the longest of its
    halves that stays in the other class; otherwise the point stays.
    """
    reach = _length(point - own)
    radius = _as_factor(reach / own[0].size ** 0.5, own)
    agreed, total, drawn = np.zeros(own.shape), np.zeros(len(own)), np.zeros(own.shape)
    for _ in range(copies):
        noise = rng.standard_normal(own.shape)
        noise /= _as_factor(np.maximum(_length(noise), 1e-12), own)
        there = np.where(flips((point + radius * noise).astype(np.float32)), 1.0, -1.0)
        agreed, total, drawn = agreed + _as_factor(there, own) * noise, total + there, drawn + noise
    mean = _as_factor(total / copies, own)
    # Without the mean of what was said, unless all copies lie on one side.
    direction = np.where(np.abs(mean) < 1, agreed - mean * drawn, agreed)
    direction /= _as_factor(np.maximum(_length(direction), 1e-12), own)
    result, left = point.copy(), np.ones(len(own), bool)
    for halved in range(STEPS):
        step = reach / place**0.5 / 2**halved
        moved = (point + _as_factor(step, own) * direction).astype(np.float32)
        there = flips(moved) & left
        result[there], left = moved[there], left & ~there
    return result


def _predicted(models: Models, model: int, x: np.ndarray, n_classes: int) -> np.ndarray:
    """Return the class that one model predicts, int64 (n,)."""
    rows = max(1, LOGITS_AT_ONCE // n_classes)
    parts = [torch.from_numpy(x[start : start + rows]).to(models.device) for start in range(0, len(x), rows)]
    found = [models.logits(part, [model])[0].argmax(1).cpu().numpy() for part in parts]
    return np.concatenate(found) if found else np.empty(0, np.int64)


def _length(x: np.ndarray) -> np.ndarray:
    """Return Euclidean lengths (n,) of (n, …)."""
    return np.linalg.norm(x.reshape(len(x), -1).astype(np.float64), axis=1)


def _as_factor(values: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return one value (n,) for each record, in a shape that multiplies (n, …)."""
    return values.reshape(-1, *[1] * (x.ndim - 1))
