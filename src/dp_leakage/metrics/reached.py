"""What an attacker can reach, with a threshold (and, of several, an attack) chosen on other records than those judged.

An attack's own decision uses a threshold that it carries over from elsewhere, often a bad one. It shows how well the
threshold was guessed, not what leaks. The best threshold for the judged records themselves overstates the leakage,
since some threshold always does well by luck. So the records are dealt into `FOLDS` folds, and each fold is judged with
the threshold and the attack that did best in the other folds (Stone 1974, cross-validation). It is as if the attacker
knew the membership of the other records.

Scores are float (R, N): R independently trained runs, N records in an order that has nothing to do with membership.
``member`` is bool, (N,) if all runs share their members, else (R, N). Higher scores mean members. An increasing
function of all scores of a run changes nothing here.
"""

from typing import NamedTuple

import numpy as np

from dp_leakage.metrics import coins, roc

FOLDS = 10  # with 200 + 200 records and a leak of .38, choosing costs .01 (.03 with two folds)


class Reached(NamedTuple):
    """The records that the attacker names, and the attack that names them.

    Attributes:
        named: bool (R, N), each by a threshold and an attack that were chosen without that record.
        attack: the name of the attack that does best on all records.
        alone: attack → bool (R, N), whom it names by itself, with thresholds chosen without that record.
    """

    named: np.ndarray
    attack: str
    alone: dict[str, np.ndarray]


def named_by_best_threshold(score: np.ndarray, member: np.ndarray, owner: np.ndarray | None = None) -> np.ndarray:
    """Bool (R, N): the records above the threshold with the largest TPR − FPR on the other folds.

    All records of an owner, int64 (N,) from 0 on, are in one fold; None: every record has an owner of its own.
    """
    member = np.broadcast_to(member, score.shape)
    fold = (np.arange(score.shape[1]) if owner is None else owner) % FOLDS
    return score >= _best_thresholds(score, member, fold)[0][fold].T


def named_by_strongest(scores: dict[str, np.ndarray], member: np.ndarray) -> Reached:
    """The records that an attacker with several attacks on them names.

    Args:
        scores: attack → (R, N).
        member: which records are members; every run has members and others outside each fold, or its threshold names
            nobody there.

            Each fold uses the attack whose TPR − FPR, at the best threshold of every run, is largest on the other folds
            on average over the runs; of equal ones the first.
    """
    attacks = list(scores)
    first = scores[attacks[0]]
    member = np.broadcast_to(member, first.shape)
    fold = np.arange(first.shape[1]) % FOLDS
    thresholds = {attack: _best_thresholds(score, member, fold) for attack, score in scores.items()}
    advantages = np.array([thresholds[attack][1].mean(axis=1) for attack in attacks])  # (attacks, FOLDS + 1)
    alone = {attack: score >= thresholds[attack][0][fold].T for attack, score in scores.items()}
    return _by_best(alone, advantages.argmax(axis=0), fold)


def named_by_strongest_at(scores: dict[str, np.ndarray], member: np.ndarray, fpr: float) -> Reached:
    """The same at a false positive rate in (0, 1), at the thresholds of `reached_tpr`.

    Those are set by the non-members alone. Each fold uses the attack that names most members on the other folds.
    """
    alone = {attack: _named_at(score, member, fpr) for attack, score in scores.items()}
    first = next(iter(alone.values()))
    fold, inside = np.arange(first.shape[1]) % FOLDS, np.broadcast_to(member, first.shape)
    used = fold != np.arange(FOLDS + 1)[:, None]  # (FOLDS + 1, N): all records in the last row
    counts = np.array([used @ (named & inside).sum(axis=0) for named in alone.values()])
    return _by_best(alone, counts.argmax(axis=0), fold)


def _named_at(score: np.ndarray, member: np.ndarray, fpr: float) -> np.ndarray:
    """Bool (R, N): with fixed members each run has its own threshold, with coins all runs share one."""
    if member.ndim == 2:
        return coins.reached_at_fpr(score, member, fpr)
    return roc.reached_at_fpr(score, score[:, ~member], fpr)


def _by_best(alone: dict[str, np.ndarray], best: np.ndarray, fold: np.ndarray) -> Reached:
    """Whom the best attack names on each fold, given its number for each fold and for all records, (FOLDS + 1,)."""
    attacks = list(alone)
    named = np.stack(list(alone.values()))[best[fold], :, np.arange(len(fold))].T
    return Reached(named, attacks[best[FOLDS]], alone)


def _best_thresholds(score: np.ndarray, member: np.ndarray, fold: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Thresholds and what they reach, both float64 (FOLDS + 1, R): without each fold, and finally with all records.

    Records from their run's threshold on are named. If no threshold beats naming nobody, it is infinite.
    """
    thresholds = np.empty((FOLDS + 1, len(score)))
    reached = np.empty_like(thresholds)
    for r, (values, inside) in enumerate(zip(score, member, strict=True)):
        order = np.argsort(-values, kind="stable")
        values, inside, folds = values[order], inside[order], fold[order]
        last = np.append(values[1:] != values[:-1], True)  # either all or none of several equal scores are named
        for k in range(FOLDS + 1):
            counts = folds != k
            members, others = np.cumsum(inside & counts), np.cumsum(~inside & counts)
            advantage = np.where(last, members / max(members[-1], 1) - others / max(others[-1], 1), 0.0)
            known = members[-1] > 0 and others[-1] > 0
            place = int(advantage.argmax())
            reached[k, r] = advantage[place] if known else 0.0
            thresholds[k, r] = values[place] if known and advantage[place] > 0 else np.inf
    return thresholds, reached
