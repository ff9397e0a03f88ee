"""Worlds whose truth is known, for the intervals of figures: `interval_coverage.py` prints how often they hold it.

A study is drawn from each: R models (repeats), n records, effects of records, of models, and of both together.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
from scipy.stats import norm

from dp_leakage.figures.training_curve import _curves
from dp_leakage.metrics import coins, roc
from dp_leakage.metrics.intervals import FEWEST_REPEATS, Estimate, crossed, crossed_difference, difference
from dp_leakage.metrics.inversion import measure_inversion
from dp_leakage.metrics.measure import _accuracy
from dp_leakage.metrics.paired import paired_loss
from dp_leakage.metrics.people import RightAnswers
from dp_leakage.metrics.rates import tpr_at
from dp_leakage.metrics.reconstruction import STATISTICS
from dp_leakage.table.frames import CELL

Drawn = tuple[Estimate, float]  # an interval and the truth
HALF = np.sqrt(0.5)
FPR, CUT, GAIN, LEAKING = 0.05, 1.0, 6.0, 0.01
NEAR_1 = 2.3  # the normal quantile of an area of .989


def normal(rng, repeats, n, leaks):
    """Fixed members: scores (R, n) of members and of others, and the mean shift or the share that leaks."""
    member, other = (HALF * (rng.normal(size=n) + rng.normal(size=(repeats, n))) for _ in range(2))
    gain = np.where(rng.random(n) < LEAKING, GAIN, 0.0) if leaks == "few" else 0.5
    return member + gain, other


def by_coins(rng, repeats, n, leaks):
    """Coins: scores (R, n) and who is in."""
    member = rng.random((repeats, n)) < 0.5
    gain = np.where(rng.random(n) < LEAKING, GAIN, 0.0) if leaks == "few" else 0.5
    return HALF * (rng.normal(size=n) + rng.normal(size=(repeats, n))) + member * gain, member


def mixed(of: Callable[[float], float], leaks: str) -> float:
    """A number of all members, given that of members whose scores are shifted."""
    return LEAKING * of(GAIN) + (1 - LEAKING) * of(0.0) if leaks == "few" else of(0.5)


def area(gain: float) -> float:
    return float(norm.cdf(gain * HALF))


def above(gain: float, cut: float = CUT) -> float:
    return float(norm.sf(cut - gain))


def advantage(leaks: str) -> float:
    return mixed(above, leaks) - above(0.0)


def rate(leaks: str) -> float:
    return mixed(partial(above, cut=float(norm.isf(FPR))), leaks)


def flags(scores):
    return (scores > CUT).astype(float)


def fixed_auc(rng, repeats, n, leaks="all") -> Drawn:
    return roc.auc(*normal(rng, repeats, n, leaks)), mixed(area, leaks)


def fixed_high_auc(rng, repeats, n, spread) -> Drawn:
    """Members far above the others; a ``spread`` beyond 1 leaves a few of them below. Every training finds the same."""
    member, other = NEAR_1 * np.hypot(1, spread) + spread * rng.normal(size=n), rng.normal(size=n)
    return roc.auc(*(np.tile(scores, (repeats, 1)) for scores in (member, other))), float(norm.cdf(NEAR_1))


def fixed_advantage(rng, repeats, n, leaks="all") -> Drawn:
    return roc.rate_difference(*map(flags, normal(rng, repeats, n, leaks))), advantage(leaks)


def fixed_tpr(rng, repeats, n, leaks="all") -> Drawn:
    members, others = normal(rng, repeats, n, leaks)
    member = np.arange(2 * n) < n
    return tpr_at(np.concatenate([members, others], axis=1), member, FPR).found, rate(leaks)


def coins_auc(rng, repeats, n, leaks="all") -> Drawn:
    return crossed(coins.auc(*by_coins(rng, repeats, n, leaks)), (0.0, 1.0)), mixed(area, leaks)


def coins_advantage(rng, repeats, n, leaks="all") -> Drawn:
    scores, member = by_coins(rng, repeats, n, leaks)
    return crossed(coins.rate_difference(flags(scores), member), (-1.0, 1.0)), advantage(leaks)


def coins_tpr(rng, repeats, n, leaks="all") -> Drawn:
    return tpr_at(*by_coins(rng, repeats, n, leaks), FPR).found, rate(leaks)


def of_persons(rng, repeats, n, leaks):
    """Scores (R, about 3.5 n) of records of n persons with one to six each, who is in, and whose each record is."""
    owner = np.repeat(np.arange(n), rng.integers(1, 7, n))
    score, member = by_coins(rng, repeats, n, leaks)
    own = rng.normal(size=(repeats, len(owner)))
    return HALF * (score[:, owner] + own), member[:, owner], owner


GAIN_OF_PERSONS = 0.5 * HALF  # a member's records score higher by that, with a variance of 1 as above


def persons_auc(rng, repeats, n) -> Drawn:
    scores, member, owner = of_persons(rng, repeats, n, "all")
    return crossed(coins.auc(scores, member).of(owner), (0.0, 1.0)), area(GAIN_OF_PERSONS)


def fixed_persons_auc(rng, repeats, n) -> Drawn:
    """With the same members in each repeat."""
    owner, inside = np.repeat(np.arange(n), rng.integers(1, 7, n)), np.arange(n) < n // 2
    person = HALF * (rng.normal(size=n) + rng.normal(size=(repeats, n))) + 0.5 * inside
    scores = HALF * (person[:, owner] + rng.normal(size=(repeats, len(owner))))
    found = coins.auc(scores, np.broadcast_to(inside[owner], scores.shape))
    return crossed(found.of(owner), (0.0, 1.0)), area(GAIN_OF_PERSONS)


def persons_advantage(rng, repeats, n) -> Drawn:
    scores, member, owner = of_persons(rng, repeats, n, "all")
    found = coins.rate_difference(flags(scores), member).of(owner)
    return crossed(found, (-1.0, 1.0)), above(GAIN_OF_PERSONS) - above(0.0)


def persons_tpr(rng, repeats, n) -> Drawn:
    scores, member, owner = of_persons(rng, repeats, n, "all")
    return tpr_at(scores, member, FPR, owner).found, above(GAIN_OF_PERSONS, float(norm.isf(FPR)))


def fixed_difference(rng, repeats, n, leaks="all") -> Drawn:
    """AUC of two defenses on the same records, the second of which hides the leak and changes little else."""
    member, other = normal(rng, repeats, n, leaks)
    record = HALF * rng.normal(size=n)
    gain = np.where(rng.random(n) < LEAKING, GAIN, 0.0) if leaks == "few" else 0.5
    member = record + HALF * rng.normal(size=(repeats, n))
    again = record + HALF * rng.normal(size=(repeats, n))
    found = crossed_difference(roc.area(member + gain, other), roc.area(again, other))
    return found, mixed(area, leaks) - 0.5


def coins_difference(rng, repeats, n, leaks="all", alike=False) -> Drawn:
    """AUC of two defenses on the same coins; ``alike``: all scores but those of records that leak are the same."""
    member = rng.random((repeats, n)) < 0.5
    gain = np.where(rng.random(n) < LEAKING, GAIN, 0.0) if leaks == "few" else 0.5
    record = HALF * rng.normal(size=n)
    a, b = (record + HALF * rng.normal(size=(repeats, n)) for _ in range(2))
    b = a if alike else b
    return coins.paired_difference(coins.auc(a + member * gain, member), coins.auc(b, member)), mixed(area, leaks) - 0.5


def accuracies(rng, repeats, n, mean=0.9):
    """Of R models on n new records: some models are better (a single one is judged itself), some records harder."""
    better = 0.01 * rng.normal(size=(repeats, 1)) if repeats > 1 else 0.0
    chance = np.clip(mean + better + rng.choice([0.05, -0.05], n), 0, 1)
    return (rng.random((repeats, n)) < chance).mean(axis=1)


def accuracy(rng, repeats, n) -> Drawn:
    return _accuracy(accuracies(rng, repeats, n), n), 0.9


def accuracy_loss(rng, repeats, n) -> Drawn:
    """Two models that find the same records hard."""
    hard, better = HALF * rng.normal(size=n), 0.05 if repeats > 1 else 0.0

    def right(mean: float) -> RightAnswers:
        found = hard + better * rng.normal(size=(repeats, 1)) + HALF * rng.normal(size=(repeats, n))
        return RightAnswers.of(found < norm.ppf(mean) * np.sqrt(1 + better**2))

    return paired_loss(right(0.72), right(0.9)), 1 - 0.72 / 0.9


def unpaired_difference(rng, repeats, n) -> Drawn:
    (a, truth), (b, other) = fixed_auc(rng, repeats, n), fixed_auc(rng, repeats, n, "few")
    return difference(a, b), truth - other


def pictures(statistic: str, rng, repeats, n) -> Drawn:
    """Errors of rebuilt pictures: log-normal over targets, with a spread between trainings.

    With fewer than `FEWEST_REPEATS` trainings the interval, and so the truth, is of these very models.
    """
    errors = np.exp(0.5 * rng.normal(size=n) + 0.2 * rng.normal(size=(repeats, n)))
    model = 0.1 * rng.normal(size=(repeats, 1)) if repeats > 1 else 0.0
    truth = float(np.exp((0.5**2 + 0.2**2) / 2)) if statistic == "mean" else 1.0
    truth += float(np.mean(model)) if repeats < FEWEST_REPEATS else 0.0
    return STATISTICS[statistic](errors + model, np.arange(n), (-np.inf, np.inf)), truth


def inverted_class(rng, repeats, n) -> Drawn:
    distance = 3 + rng.normal(size=repeats)
    frame = pd.DataFrame({"repeat": range(repeats), "target": 0, "restart": 0, "distance": distance})
    rows = pd.DataFrame(measure_inversion(frame.assign(ssim=0.0, confidence=1.0), "inversion"))
    (row,) = rows[(rows.repeat == "all") & (rows["class"] == 0) & (rows["measure"] == "euclidean")].itertuples()
    return Estimate(row.value, row.low, row.high), 3.0


def curve(rng, repeats, n) -> Drawn:
    cell = dict.fromkeys(CELL, "x")
    values = 0.9 + 0.02 * rng.normal(size=repeats)
    frame = pd.DataFrame(cell | {"epsilon": 1.0, "epoch": 1, "repeat": range(repeats), "test_accuracy": values})
    (row,) = _curves(frame.assign(train_accuracy=np.nan)).dropna(subset="measured").itertuples()
    return Estimate(row.measured, row.low, row.high), 0.9


# What a figure draws → how it is drawn, with (R, n).
CASES: dict[str, tuple[Callable[..., Drawn], tuple[tuple[int, int], ...]]] = {
    "accuracy": (accuracy, ((1, 200), (3, 200), (16, 200))),
    "accuracy lost": (accuracy_loss, ((1, 200), (3, 200), (16, 200))),
    "AUC, fixed members": (fixed_auc, ((1, 200), (3, 200), (16, 200))),
    "AUC near 1, fixed members": (partial(fixed_high_auc, spread=1.0), ((1, 50), (1, 200), (3, 50))),
    "AUC near 1, fixed members of uneven scores": (partial(fixed_high_auc, spread=3.0), ((1, 50), (1, 200), (3, 50))),
    "advantage, fixed members": (fixed_advantage, ((1, 200), (3, 200), (16, 200))),
    "TPR at 5 %, fixed members": (fixed_tpr, ((1, 200), (3, 200), (16, 200))),
    "AUC, coins": (coins_auc, ((4, 200), (16, 200))),
    "advantage, coins": (coins_advantage, ((4, 200), (16, 200))),
    "TPR at 5 %, coins": (coins_tpr, ((4, 200), (16, 200))),
    "difference of two AUCs, same records": (fixed_difference, ((1, 200), (3, 200), (16, 200))),
    "difference of two AUCs, same coins": (coins_difference, ((4, 200), (16, 200))),
    "difference of two AUCs, other records": (unpaired_difference, ((1, 200), (3, 200))),
    "AUC of single records of persons, coins": (persons_auc, ((4, 100), (16, 200))),
    "AUC of single records of persons, fixed members": (fixed_persons_auc, ((1, 200), (3, 200), (16, 200))),
    "advantage of single records of persons, coins": (persons_advantage, ((4, 100), (16, 200))),
    "TPR at 5 % of single records of persons, coins": (persons_tpr, ((4, 100), (16, 200))),
    "AUC, fixed members; 2 of 200 leak": (partial(fixed_auc, leaks="few"), ((1, 200), (3, 200), (16, 200))),
    "advantage, fixed members; 2 of 200 leak": (partial(fixed_advantage, leaks="few"), ((1, 200), (3, 200))),
    "TPR at 5 %, fixed members; 2 of 200 leak": (partial(fixed_tpr, leaks="few"), ((1, 200), (3, 200))),
    "AUC, coins; 2 of 200 leak": (partial(coins_auc, leaks="few"), ((4, 200), (16, 200))),
    "advantage, coins; 2 of 200 leak": (partial(coins_advantage, leaks="few"), ((4, 200), (16, 200))),
    "TPR at 5 %, coins; 2 of 200 leak": (partial(coins_tpr, leaks="few"), ((4, 200), (16, 200))),
    "difference, same records; 2 of 200 leak": (partial(fixed_difference, leaks="few"), ((1, 200), (3, 200))),
    "difference, same coins; 2 of 200 leak": (partial(coins_difference, leaks="few"), ((4, 200), (16, 200))),
    "difference, same coins; 2 of 200 leak, all others score alike": (
        partial(coins_difference, leaks="few", alike=True),
        ((4, 200), (16, 200)),
    ),
    "mean error of pictures": (partial(pictures, "mean"), ((1, 8), (3, 8), (1, 64), (3, 64))),
    "median error of pictures": (partial(pictures, "median"), ((1, 8), (3, 8), (1, 64), (3, 64))),
    "inverted class, over models": (inverted_class, ((3, 1), (16, 1))),
    "training curve, over models": (curve, ((3, 1), (16, 1))),
}


SIZES = [(case, *size) for case, (_, sizes) in CASES.items() for size in sizes]


def coverage(case: str, repeats: int, n: int, draws: int) -> float:
    """How often the interval of a case holds the truth, among so many studies of R repeats and n records."""
    rng, drawn = np.random.default_rng(repeats * n), CASES[case][0]
    studies = (drawn(rng, repeats, n) for _ in range(draws))
    return float(np.mean([found.low - 1e-12 <= truth <= found.high + 1e-12 for found, truth in studies]))
