"""Label-only, by noise (Choquette-Choo et al. 2021): how often is a record's class predicted of noisy copies of it?

Members lie further from the boundary of their class, and so keep their label under more noise. Only predicted classes
are read, so nothing that a defense does to confidences hides it.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd

from dp_leakage.attacks.membership.references import mean_where
from dp_leakage.attacks.queries import logits, trained_on
from dp_leakage.common.errors import UserError
from dp_leakage.data.dataset import Dataset
from dp_leakage.data.roles import POOL, population_role
from dp_leakage.models.ensemble import Models

# ``alpha`` is the level of the attack's own test: near the best advantage for weak and strong leaks.
ATTACK = {
    "family": "membership",
    "label": "label only, noise",
    "reads": "models",
    "roles": ["reference_pool"],
    "settings": {
        "copies": {
            "type": "integer",
            "minimum": 1,
            "default": 50,
            "description": "Noisy copies of each record at each level of noise.",
        },
        "noise": {
            "type": "array",
            "minItems": 1,
            "items": {"type": "number", "exclusiveMinimum": 0},
            "default": [0.1, 0.2, 0.4, 0.8],
            "description": "Standard deviations of the noise, in those of a feature.",
        },
        "alpha": {"$ref": "#/$defs/alpha"},
    },
    "adapts": "reads predicted classes alone, of noisy copies of each record",
}


def score(target: Models, data: Dataset, fitted: None, settings: dict, seed: int) -> pd.DataFrame:
    """Scores every record asked about with the share of its noisy copies that are given its class.

    In design ``coins`` the other repeats are references: what is scored is how far the share lies above the mean share
    of those that did not train on the record, so that easy records are not taken for members. The threshold needs no
    member: it is passed by a share ``alpha`` of the records that no model trained on.

    It costs 1 + ``copies`` × len(``noise``) queries a record, and as many for each record of the population.

    Args:
        target: the R models under attack.
        data: features, labels, roles.
        fitted: unused, the attack learns nothing.
        settings: ``copies`` of each record at each ``noise``, normal with that many standard deviations of a feature,
            the mean over the features; ``alpha``, in (0, 1).
        seed: draws the noise, the same for all models.

    Returns:
        The columns of family ``membership``, a row per model and record.

    Raises:
        UserError: there are no records that no model trained on and that no attack asks about.
    """
    rng = np.random.default_rng(seed)
    return frame_of(
        "label_noise", target, data, lambda rows: kept(target, data, rows, settings, rng), settings["alpha"]
    )


def frame_of(
    attack: str, target: Models, data: Dataset, measured: Callable[[np.ndarray], np.ndarray], alpha: float
) -> pd.DataFrame:
    """The columns of an attack that measures single records of R models: rows (n,) → float64 (R, n), high for members.

    With coins, what is scored is how far that lies above the mean of the other repeats that did not train on the
    record. The threshold is passed by a share ``alpha`` of the population. Raises UserError if that is empty.
    """
    role, record = population_role(data.roles), data.targets
    if not len(data.roles.get(role, ())):
        raise UserError(f"attack {attack}: role '{role}' has no records; valid is one or more")
    found, outside = (measured(rows) for rows in (record, data.roles[role]))
    inside = trained_on(target, record)
    if POOL in data.roles and target.size > 1:
        found = found - mean_where(found, ~inside, left_out=True)
        outside = outside - mean_where(outside, np.ones(outside.shape, bool), left_out=True)
    elif POOL not in data.roles:
        inside = np.tile(np.isin(record, data.trainable), (target.size, 1))
    limit = np.quantile(outside, 1 - alpha, axis=1, keepdims=True)
    return pd.DataFrame(columns_of(record, inside, found, found > limit))


def kept(models: Models, data: Dataset, rows: np.ndarray, settings: dict, rng: np.random.Generator) -> np.ndarray:
    """The share of each record and its noisy copies that R models give its class, float64 (R, n) in [0, 1]."""
    x, y = data.x[rows], data.y[rows]
    spread = float(data.x[rows].reshape(len(rows), -1).std(axis=0).mean())
    found = _correct(models, x, y, data.n_classes)
    for noise in settings["noise"]:
        for _ in range(settings["copies"]):
            moved = x + (noise * spread * rng.standard_normal(x.shape)).astype(np.float32)
            found += _correct(models, moved, y, data.n_classes)
    return found / (1 + settings["copies"] * len(settings["noise"]))


def _correct(models: Models, x: np.ndarray, y: np.ndarray, n_classes: int) -> np.ndarray:
    """1 where a model predicts the class, else 0: float64 (R, n)."""
    result = np.empty((models.size, len(x)))
    for model, part, z in logits(models, x, n_classes):
        result[model, part] = z.argmax(1).cpu().numpy() == y[part]
    return result


def columns_of(record: np.ndarray, inside: np.ndarray, score: np.ndarray, flagged: np.ndarray) -> dict[str, np.ndarray]:
    """The columns of the score file."""
    repeats, n = score.shape
    return {
        "repeat": np.repeat(np.arange(repeats), n),
        "record": np.tile(record.astype(np.int64), repeats),
        "member": inside.ravel(),
        "score": score.ravel(),
        "flagged": flagged.ravel(),
    }
