"""Cross-validated advantage: the threshold is chosen on other records than those judged.

An attack's own decision uses a threshold from other models, often a bad one. It shows the quality of that threshold,
not the leakage. The best threshold for the judged records themselves overstates the leakage, since some threshold
always does well by chance. So the records are dealt into `FOLDS` folds, and each fold is judged with the best threshold
of the other folds (Stone 1974, cross-validation), as if the attacker knew the membership of the other records.
`strongest` describes the correction for the choice among several attacks.

Scores are float (R, N): R independently trained runs, N records in an order independent of membership. ``member`` is
bool, (N,) if all runs share their members, otherwise (R, N). Higher scores mean members. An increasing function of all
scores of a run changes nothing here.
"""

import numpy as np

FOLDS = 10  # with 200 + 200 records and a leak of .38, choosing costs .01 (.03 with two folds)


def named_by_best_threshold(score: np.ndarray, member: np.ndarray, owner: np.ndarray | None = None) -> np.ndarray:
    """Return bool (R, N): the records above the threshold with the largest TPR − FPR on the other folds.

    All records of an owner, int64 (N,) from 0 on, are in one fold; None: every record has its own owner.
    """
    member = np.broadcast_to(member, score.shape)
    fold = (np.arange(score.shape[1]) if owner is None else owner) % FOLDS
    return score >= _best_thresholds(score, member, fold)[fold].T


def _best_thresholds(score: np.ndarray, member: np.ndarray, fold: np.ndarray) -> np.ndarray:
    """Return thresholds, float64 (FOLDS, R), each chosen without its fold.

    Records at or above their run's threshold are called members. If no threshold beats an empty selection, it is
    infinite.
    """
    thresholds = np.empty((FOLDS, len(score)))
    for r, (values, inside) in enumerate(zip(score, member, strict=True)):
        order = np.argsort(-values, kind="stable")
        values, inside, folds = values[order], inside[order], fold[order]
        last = np.append(values[1:] != values[:-1], True)  # either all or none of several equal scores are named
        for k in range(FOLDS):
            counts = folds != k
            members, others = np.cumsum(inside & counts), np.cumsum(~inside & counts)
            advantage = np.where(last, members / max(members[-1], 1) - others / max(others[-1], 1), 0.0)
            known = members[-1] > 0 and others[-1] > 0
            place = int(advantage.argmax())
            thresholds[k, r] = values[place] if known and advantage[place] > 0 else np.inf
    return thresholds
