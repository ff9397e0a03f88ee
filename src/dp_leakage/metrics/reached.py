"""What an attacker can reach, with a threshold chosen on other records than those judged.

An attack's own decision uses a threshold that it carries over from elsewhere, often a bad one. It shows how well the
threshold was guessed, not what leaks. The best threshold for the judged records themselves overstates the leakage,
since some threshold always does well by luck. So the records are dealt into `FOLDS` folds, and each fold is judged with
the threshold that did best in the other folds (Stone 1974, cross-validation). It is as if the attacker knew the
membership of the other records. `strongest` says how the choice among several attacks is paid for.

Scores are float (R, N): R independently trained runs, N records in an order that has nothing to do with membership.
``member`` is bool, (N,) if all runs share their members, else (R, N). Higher scores mean members. An increasing
function of all scores of a run changes nothing here.
"""

import numpy as np

FOLDS = 10  # with 200 + 200 records and a leak of .38, choosing costs .01 (.03 with two folds)


def named_by_best_threshold(score: np.ndarray, member: np.ndarray, owner: np.ndarray | None = None) -> np.ndarray:
    """Bool (R, N): the records above the threshold with the largest TPR − FPR on the other folds.

    All records of an owner, int64 (N,) from 0 on, are in one fold; None: every record has an owner of its own.
    """
    member = np.broadcast_to(member, score.shape)
    fold = (np.arange(score.shape[1]) if owner is None else owner) % FOLDS
    return score >= _best_thresholds(score, member, fold)[fold].T


def _best_thresholds(score: np.ndarray, member: np.ndarray, fold: np.ndarray) -> np.ndarray:
    """Thresholds, float64 (FOLDS, R), each chosen without a fold.

    Records from their run's threshold on are named. If no threshold beats naming nobody, it is infinite.
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
