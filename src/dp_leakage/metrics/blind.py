"""Blind guess of membership, from the records alone, without the model under attack.

If members and non-members come from two sources, attacks may only distinguish the sources. A guess without the model
measures how much the records themselves reveal (Das et al. 2024, arXiv 2406.16201).
"""

import warnings

import numpy as np

from dp_leakage.data.near_copies import directions

FOLDS = 5
STEADY = 0.1  # inverse ℓ2 penalty of the linear models
UNSURE = 1e-3  # no single guess is surer than this
LEAST = 1e-6  # probability of a class that the models of the other folds never saw
ROUNDS, TREES = 50, 300  # of the guess; most of a label's models, classes times rounds
HOW = {"num_leaves": 8, "num_threads": 1, "deterministic": True, "force_row_wise": True, "verbose": -1}


def blind_guess(
    member: np.ndarray, y: np.ndarray, x: np.ndarray | None = None, fit: np.ndarray | None = None, seed: int = 0
) -> np.ndarray:
    """Return the probability of membership, float64 (n,), of each record by models fitted to other records.

    It is the mean logit of a logistic regression and of boosted trees, calibrated by one slope ≥ 0 for all folds.
    Guesses from noise on a left-out fold tend to be anti-correlated, and a slope that may be negative would find
    "members" in half of all data sets without a difference.

    Args:
        member: bool (n,), with members and non-members.
        y: int64 (n,), the records' classes.
        x: (n, …) features; None if unknown. A few random projections replace many features.
        fit: (n, k) fit of each label to its record, by models trained on neither (`label_fit`); None: not used.
        seed: of the folds.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold

    n, folds = len(member), min(FOLDS, int(min(member.sum(), (~member).sum())))
    share = member.mean()
    if folds < 2:
        return np.full(n, share)
    numbers = np.empty((n, 0)) if x is None else _numbers(x, seed)
    fit = np.empty((n, 0)) if fit is None else fit
    classes = np.eye(int(y.max()) + 1)[y]
    pairs = (numbers[:, :, None] * classes[:, None]).reshape(n, -1)
    few = pairs.shape[1] <= n // 4  # more products than that are learned by heart
    flat = np.concatenate([numbers, classes, *([pairs] if few else []), fit, np.abs(fit)], axis=1)
    trees = np.concatenate([numbers, y[:, None], fit], axis=1)
    how = HOW | {"objective": "binary", "learning_rate": 0.05, "bagging_fraction": 0.8, "bagging_freq": 1, "seed": seed}
    logit = np.zeros(n)
    for known, asked in StratifiedKFold(folds, shuffle=True, random_state=seed).split(flat, member):
        said = (
            _linear(flat[known], member[known], flat[asked])[:, 1],
            _boosted(trees[known], member[known], trees[asked], how, ROUNDS),
        )
        logit[asked] = np.mean([_logit(np.clip(one, UNSURE, 1 - UNSURE)) for one in said], axis=0)
    logit -= logit.mean()
    slope = max(float(LogisticRegression(C=10.0).fit(logit[:, None], member).coef_[0, 0]), 0.0)
    return np.asarray(1 / (1 + np.exp(-slope * logit - _logit(share))))


def label_fit(x: np.ndarray, y: np.ndarray, seed: int = 0) -> np.ndarray:
    """Return ln p_y − ln (the largest other p), float64 (n,), by models fitted to the labels of other folds.

    It alone shows that the labels of one side are noisier.
    """
    from sklearn.model_selection import KFold

    numbers, classes = _numbers(x, seed), int(y.max()) + 1
    p = np.full((len(y), classes), LEAST)
    for known, asked in KFold(min(FOLDS, len(y)), shuffle=True, random_state=seed).split(numbers):
        there, place = np.unique(y[known], return_inverse=True)
        if len(there) < 2:
            p[asked, there] += 1
            continue
        how = HOW | {"objective": "multiclass", "num_class": len(there), "seed": seed}
        rounds = max(1, min(30, TREES // len(there)))
        for said in (
            _linear(numbers[known], place, numbers[asked]),
            _boosted(numbers[known], place, numbers[asked], how, rounds),
        ):
            p[np.ix_(asked, there)] += said / 2
    own = p[np.arange(len(y)), y].copy()
    p[np.arange(len(y)), y] = 0
    return np.asarray(np.log(own) - np.log(p.max(axis=1)))


def _numbers(x: np.ndarray, seed: int) -> np.ndarray:
    return directions(x.reshape(len(x), -1), np.random.default_rng(seed))


def _linear(known: np.ndarray, of: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """Return class probabilities of other records by a logistic regression fitted to classes ``of`` the
    known records.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), LogisticRegression(C=STEADY, max_iter=300))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a guess need not be the best of its kind
        return np.asarray(model.fit(known, of).predict_proba(asked))


def _boosted(known: np.ndarray, of: np.ndarray, asked: np.ndarray, how: dict, rounds: int) -> np.ndarray:
    """As `_linear`, by boosted trees; for two classes the probability of the second only."""
    import lightgbm

    return np.asarray(lightgbm.train(how, lightgbm.Dataset(known, of.astype(int)), rounds).predict(asked))


def _logit(p: np.ndarray | float) -> np.ndarray:
    return np.asarray(np.log(p) - np.log1p(-np.asarray(p)))
