"""Robust membership inference (RMIA, Zarifzadeh, Liu & Shokri 2024): does the record stand out against others?"""

import numpy as np

from dp_leakage.attacks.membership.references import mean_where, population, require
from dp_leakage.attacks.signals import Scores, Signals, losses
from dp_leakage.metrics.roc import auc

LEAVES_OUT = True
TRIED = np.linspace(0, 1, 11)  # values of a that "auto" tries
ALONE = 0.3  # a where a single reference model leaves none to attack


def score(target: Signals, learnt: Signals, settings: dict, seed: int) -> Scores:
    """Scores every record x asked about with the share of records z of which LR(x, z) ≥ γ.

    LR(x, z) = [Pr(x | target)/Pr(x)] / [Pr(z | target)/Pr(z)] (equation 3). As it is a ratio of a term of x
    and a term of z, all N·Z comparisons are one search among the sorted terms of z. Flagged from 1 −
    ``alpha`` on.

    Args:
        target: of the R models under attack; the records z are those of ``reference_pool``.
        learnt: of the reference models, the same records.
        settings: ``online``; ``a`` in [0, 1] or ``auto``, see `best_a`; ``gamma``, ``alpha``; ``queries``, how many
            margins to average.
        seed: unused, nothing is drawn.

    Raises:
        UserError: ``reference_pool`` is empty, or every reference model was trained on every record asked about.
    """
    queries = settings["queries"]
    asked, others = learnt.asked, population(learnt, "rmia")
    require(~asked.trained_on, "rmia", "without")
    both = [np.exp(-losses(part.mean_margin(queries))) for part in (asked, others)]
    probability, inside = np.concatenate(both, axis=1), np.concatenate([asked.trained_on, others.trained_on], axis=1)
    a = _chosen_a(probability, inside, learnt.left_out) if settings["a"] == "auto" else float(settings["a"])
    before = np.log(expected(probability, inside, a, settings["online"], learnt.left_out))
    n, usable = len(asked.record), ~others.trained_on.all(axis=0)
    ratio_x = -losses(target.asked.mean_margin(queries)) - before[..., :n]
    ratio_z = -losses(population(target, "rmia").mean_margin(queries)) - before[..., n:]
    share = dominated(ratio_x, ratio_z[:, usable], settings["gamma"])
    return Scores(share, share >= 1 - settings["alpha"])


def dominated(of_x: np.ndarray, of_z: np.ndarray, gamma: float) -> np.ndarray:
    """For each x, the share of z with exp(x − z) ≥ γ: logarithms (R, n) and (R, Z), result (R, n)."""
    reach = of_x - np.log(gamma)
    counts = [np.searchsorted(np.sort(z), x, side="right") for x, z in zip(reach, of_z, strict=True)]
    return np.stack(counts) / of_z.shape[1]


def expected(
    probability: np.ndarray, inside: np.ndarray, a: float | np.ndarray, online: bool, left_out: bool = False
) -> np.ndarray:
    """The probabilities of the true class that one expects before seeing the target, Pr(x), float64 (n,).

    Pr = (P_in + P_out)/2, means over the reference models trained with and without a record. Offline, and for
    records that no reference model saw, P_in is taken as a·P_out + 1 − a (the paper's equation 11).

    Args:
        probability: of the true class under the reference models, (K, n).
        inside: who was trained on what, bool (K, n).
        a: in [0, 1].
        online: whether models trained with the record count.
        left_out: whether line k of the result, then (K, n), is without model k; ``a`` may be (K, 1).
    """
    without = mean_where(probability, ~inside, left_out)
    assumed = a * without + 1 - a
    if not online:
        return (assumed + without) / 2
    seen = inside.sum(axis=0) - (inside if left_out else 0) > 0
    return (np.where(seen, mean_where(probability, inside, left_out), assumed) + without) / 2


def _chosen_a(probability: np.ndarray, inside: np.ndarray, left_out: bool) -> float | np.ndarray:
    """`best_a` of all models, or, (K, 1), of all but each."""
    if not left_out:
        return best_a(probability, inside)
    numbers = np.arange(len(inside))
    return np.array([[best_a(probability[numbers != k], inside[numbers != k])] for k in numbers])


def best_a(probability: np.ndarray, inside: np.ndarray) -> float:
    """Of 0, 0.1, … 1 the a with the best AUC when the first reference model is attacked with the others' help.

    The smallest of equally good ones; arguments as of `expected`, K ≥ 1.
    """
    if len(probability) < 2:
        return ALONE
    usable = ~inside[1:].all(axis=0)
    member = inside[0, usable]
    if member.all() or not member.any():
        return ALONE
    helpers, known = probability[1:, usable], inside[1:, usable]
    ratios = [probability[0, usable] / expected(helpers, known, a, online=False) for a in TRIED]
    return float(TRIED[np.argmax([auc(r[None, member], r[None, ~member]).value for r in ratios])])
