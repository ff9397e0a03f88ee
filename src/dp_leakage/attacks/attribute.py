"""Attribute inference (Yeom et al. 2018): guess the value of a feature, among two, whose loss is more member-like."""

from typing import Any

import numpy as np
import pandas as pd

from dp_leakage.attacks.queries import margins, trained_on
from dp_leakage.attacks.signals import losses
from dp_leakage.common.errors import UserError
from dp_leakage.data.dataset import Dataset
from dp_leakage.data.roles import POOL
from dp_leakage.models.ensemble import Ensemble

ATTACK = {
    "family": "attribute",
    "settings": {
        "features": {"$ref": "#/$defs/features"},
        "candidates": {
            "enum": ["quartiles", "distinct_quartiles"],
            "default": "quartiles",
            "description": "The two values that are tried: the quartiles of all values, or of the distinct values. "
            "If most values are equal, the first are equal, and the attack learns nothing.",
        },
        "rule": {
            "enum": ["lower", "closest"],
            "default": "lower",
            "description": "Which value is guessed: the one with the lower loss, or the one whose loss is closest to "
            "the mean training loss, which the attacker is assumed to know.",
        },
    },
    "variants": {
        "yeom_attribute": {"label": "Yeom attribute", "draws_as": "yeom_attribute"},
        # As the text of jayaraman2019 states it (section 4.1); its code guesses the lower loss.
        "yeom_attribute_closest": {
            "label": "Yeom attribute, closest loss",
            "draws_as": "yeom_attribute",
            "settings": {"rule": "closest"},
        },
    },
}

CANDIDATES = {"quartiles": "linear", "distinct_quartiles": "inverted_cdf"}  # rule → np.quantile's method


def score(
    target: Ensemble, data: Dataset, fitted: dict[str, np.ndarray] | None, settings: dict, seed: int
) -> pd.DataFrame:
    """Guess single features of every target record from its other features and its label.

    The two candidate values are quartiles of the feature over all target records, and the question is whether the true
    value lies above the median, as in the released code of jayaraman2019. There the guess is the candidate with the
    lower loss, since it is likelier under N(0, training loss). The paper's text guesses the candidate whose loss is
    closest to the mean training loss. Ties: the lower value.

    Args:
        target: the R models under attack.
        data: features, labels, roles; features are drawn from ``data.sensitive`` unless that is empty.
        fitted: unused, the attack learns nothing.
        settings: ``features``, how many to draw (of those with more than one value); ``candidates``: ``quartiles`` of
            all values, or ``distinct_quartiles`` of the distinct values (and their median). For a binary feature these
            are its two values. If most values are equal, both quartiles of all values are equal, and the attack learns
            nothing; ``rule``: ``lower`` or ``closest``.
        seed: draws the features.

    Returns:
        repeat int64, record int64, member bool, feature int64 (column of x, flattened), truth bool, guess
        bool, score float32: how much better, in nats, the loss suits a member with the candidate on the true side. It
            is above 0 for a right guess, and a higher score means more likely a member.

    Raises:
        UserError: too few features have two values.
    """
    record = data.targets
    by_coins = POOL in data.roles
    member = trained_on(target, record) if by_coins else np.tile(np.isin(record, data.trainable), (target.size, 1))
    x, y = data.x[record], data.y[record]
    columns = x.reshape(len(x), -1)
    expected = _mean_training_loss(target, data) if settings["rule"] == "closest" else 0.0
    frames = []
    for feature in drawn_features(columns, data.sensitive, settings["features"], seed):
        values = columns[:, feature]
        *tried, boundary = question(values, settings["candidates"])
        low, high = (margins(target, with_value(x, feature, value), y) for value in tried)
        truth = np.broadcast_to(values > boundary, low.shape)
        gap = np.abs(losses(low) - expected) - np.abs(losses(high) - expected)
        frames.append(
            {
                "repeat": np.repeat(np.arange(target.size), len(record)),
                "record": np.tile(record.astype(np.int64), target.size),
                "member": member.ravel(),
                "feature": np.full(low.size, feature),
                "truth": truth.ravel(),
                "guess": (gap > 0 if settings["rule"] == "closest" else high > low).ravel(),
                "score": np.where(truth, gap, -gap).astype(np.float32).ravel(),
            }
        )
    return pd.DataFrame({name: np.concatenate([f[name] for f in frames]) for name in frames[0]})


def _mean_training_loss(target: Ensemble, data: Dataset) -> np.ndarray:
    """Return each model's mean loss on its training records, nats: (R, 1)."""
    trained = trained_on(target, data.trainable)
    loss = losses(margins(target, data.x[data.trainable], data.y[data.trainable]))
    return np.where(trained, loss, 0.0).sum(axis=1, keepdims=True) / trained.sum(axis=1, keepdims=True)


def drawn_features(columns: np.ndarray, sensitive: np.ndarray, number: int, seed: int) -> np.ndarray:
    """Draw ``number`` columns of (n, d) with more than one value, from ``sensitive`` unless it is empty.

    Returns them ascending, int64.

    Raises:
        UserError: fewer columns have two values or more.
    """
    allowed = np.asarray(sensitive if len(sensitive) else np.arange(columns.shape[1]), dtype=np.int64)
    varied = allowed[np.ptp(columns[:, allowed], axis=0) > 0]
    if number > len(varied):
        raise UserError(
            f"attribute inference: key 'features' is {number}, but only {len(varied)} "
            f"{'sensitive ' if len(sensitive) else ''}features have two values or more; expected at most that"
        )
    return np.sort(np.random.default_rng(seed).permutation(varied)[:number])


def question(values: np.ndarray, rule: str) -> tuple[float, float, float]:
    """Return the low and the high candidate value of a feature from its values, and the boundary between them.

    See ``candidates`` in `score`.
    """
    judged = values if rule == "quartiles" else np.unique(values)
    method: Any = CANDIDATES[rule]
    low, high = np.quantile(judged, [0.25, 0.75], method=method)
    return float(low), float(high), float(np.median(judged))


def with_value(x: np.ndarray, feature: int, value: float) -> np.ndarray:
    """Return x with one feature of every record set to a value."""
    changed = x.copy()
    changed.reshape(len(x), -1)[:, feature] = value
    return changed
