"""Joint score of a person's records, learned on the attacker's own models."""

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from dp_leakage.attacks.membership.references import leave_one_out
from dp_leakage.attacks.persons import combined, persons_of
from dp_leakage.attacks.signals import Signals
from dp_leakage.common.errors import UserError


def learned_odds(
    attack: ModuleType, target: Signals, reference: Signals | None, settings: dict, seed: int, by_coins: bool
) -> list[Any]:
    """Learn each target's weights of a person's scores, in the order of the targets.

    The attacker runs the attack on models with known members, each judged by the others as references, and fits a
    logistic regression. With random inclusion these models are all repeats except the target: its outputs are not used
    as a reference, and its members are not read.

    Args:
        attack: its module.
        target: of R models.
        reference: of the reference models; None if the attack needs none.
        settings, seed: of the attack.
        by_coins: whether the references are repeats, as the attacker's models always are if an attack needs none.

    Raises:
        UserError: these models have no person as a member, or none as a non-member.
    """
    if reference is not None and not by_coins:
        return [_fitted(attack, reference, True, settings, seed)] * target.size
    group = target if reference is None else reference
    numbers = np.arange(group.size)
    return [
        _fitted(attack, group.models(numbers != r), reference is not None, settings, seed) for r in range(target.size)
    ]


def _fitted(attack: ModuleType, own: Signals, compares: bool, settings: dict, seed: int) -> Any:
    """Return a scikit-learn classifier of `features`, fitted on the attacker's own models."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    said = leave_one_out(attack, own, own, settings, seed) if compares else attack.score(own, None, settings, seed)
    persons, owner = persons_of(own.asked)
    if len(np.unique(persons.trained_on)) < 2:
        words = "models that trained on some of the people asked about and not on others; got none"
        raise UserError(f"key 'of_person' is learned; that needs reference {words}")
    weights = LogisticRegression(class_weight="balanced", solver="newton-cholesky", tol=1e-8)
    fitted = make_pipeline(StandardScaler(), weights)
    return fitted.fit(np.concatenate(features(said.score, owner)), persons.trained_on.ravel())


def odds(fitted: Sequence[Any], score: np.ndarray, owner: np.ndarray) -> np.ndarray:
    """Return the logarithm of each person's odds to be a member, float64 (R, P), from the records' scores (R, n)."""
    pairs = zip(fitted, features(score, owner), strict=True)
    return np.stack([each.decision_function(values) for each, values in pairs])


def features(score: np.ndarray, owner: np.ndarray) -> np.ndarray:
    """Return the sum, mean and maximum of each person's scores, and the logarithm of their number, float64 (R, P, 4).

    ``score`` is (R, n); ``owner``, int64 (n,) from 0 on, is the owner of each record.
    """
    told = [combined(score, owner, how) for how in ("sum", "mean", "max")]
    return np.stack([*told, np.broadcast_to(np.log(np.bincount(owner)), told[0].shape)], axis=-1)
