"""Label-only attack by noise (Choquette-Choo et al. 2021): the share of a record's noisy copies that keep its class.

Members lie further from the decision boundary, and so keep their label under more noise. The attack reads only
predicted classes, so a defense that changes confidences does not affect it.
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
    """Score every queried record with the share of its noisy copies that are predicted as its class.

    In design ``coins`` the other repeats are references: the score is the share minus the mean share of repeats that
    did not train on the record, so that easy records are not taken for members. The threshold needs no members: a share
    ``alpha`` of the population exceeds it.

    It costs 1 + ``copies`` × len(``noise``) queries per record, of the population too.

    Args:
        target: the R models under attack.
        data: features, labels, roles.
        fitted: unused, the attack learns nothing.
        settings: ``copies`` of each record at each ``noise``, a normal deviation in units of the features' mean
            standard deviation; ``alpha``, in (0, 1).
        seed: draws the noise, the same for all models.

    Returns:
        The columns of family ``membership``, a row per model and record.

    Raises:
        UserError: the population is empty.
    """
    rng = np.random.default_rng(seed)
    return frame_of(
        "label_noise", target, data, lambda rows: kept(target, data, rows, settings, rng), settings["alpha"]
    )


def frame_of(
    attack: str, target: Models, data: Dataset, measured: Callable[[np.ndarray], np.ndarray], alpha: float
) -> pd.DataFrame:
    """Return the score table of an attack that measures single records of R models: rows (n,) → float64 (R, n), high
    for members.

    With random inclusion, the score is the excess over the mean of the other repeats that did not train on the record.
    A share ``alpha`` of the population exceeds the threshold. Raises UserError if the population is empty.
    """
    role, record = population_role(data.roles), data.targets
    if not len(data.roles.get(role, ())):
        raise UserError(f"attack {attack}: role '{role}' has no records; expected one or more")
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
    """Return the share of each record and its noisy copies that R models predict as its class, float64 (R, n) in [0,
    1].
    """
    x, y = data.x[rows], data.y[rows]
    spread = float(data.x[rows].reshape(len(rows), -1).std(axis=0).mean())
    found = _correct(models, x, y, data.n_classes)
    for noise in settings["noise"]:
        for _ in range(settings["copies"]):
            moved = x + (noise * spread * rng.standard_normal(x.shape)).astype(np.float32)
            found += _correct(models, moved, y, data.n_classes)
    return found / (1 + settings["copies"] * len(settings["noise"]))


def _correct(models: Models, x: np.ndarray, y: np.ndarray, n_classes: int) -> np.ndarray:
    """Return 1 if a model predicts the class, otherwise 0: float64 (R, n)."""
    result = np.empty((models.size, len(x)))
    for model, part, z in logits(models, x, n_classes):
        result[model, part] = z.argmax(1).cpu().numpy() == y[part]
    return result


def columns_of(record: np.ndarray, inside: np.ndarray, score: np.ndarray, flagged: np.ndarray) -> dict[str, np.ndarray]:
    """Return the columns of the score file."""
    repeats, n = score.shape
    return {
        "repeat": np.repeat(np.arange(repeats), n),
        "record": np.tile(record.astype(np.int64), repeats),
        "member": inside.ravel(),
        "score": score.ravel(),
        "flagged": flagged.ravel(),
    }
