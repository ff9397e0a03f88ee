"""How often 95 % intervals hold the truth, by simulation: prints the tables of docs/results/intervals.md.

Records and repeats are crossed, as in a study by coins: each record's score is its own, plus what it gains by being in,
plus chance. Nominal are 95 %; the column ± is 1.96 standard errors of the simulation itself.

    python benchmarks/interval_coverage.py                                   # all: some 20 minutes of one core
    python benchmarks/interval_coverage.py --sizes 64x20000 --tables scores  # one size of one table
"""

import argparse
from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

import numpy as np
from figure_worlds import SIZES, coverage
from scipy.optimize import brentq
from scipy.special import expit, ndtr, ndtri, stdtrit
from scipy.stats.qmc import Sobol

from dp_leakage.audits import approximate_dp, gaussian_dp, many_runs_bound, one_run_bound, trials_bound
from dp_leakage.audits.claims import gaussian_epsilon
from dp_leakage.metrics.coins import auc, rate_difference
from dp_leakage.metrics.exposure import exposed
from dp_leakage.metrics.intervals import FEWEST_REPEATS, ROUNDING, Estimate, Influences, Layout, crossed, over_layouts
from dp_leakage.metrics.rates import tpr_at
from dp_leakage.metrics.reached import named_by_best_threshold

Pair = tuple[np.ndarray, np.ndarray]
CUT = 0.7  # from which score on the attack names that the advantage is of
AUDITS = 1000
DRAWN = 2000
DELTA = 1e-5

# Studies for each size: enough for ± 1 % where that is minutes of one core, fewer where it is not.
STUDIES = {
    (4, 200): 3000, (16, 200): 2000, (64, 200): 2000,
    (4, 2000): 1500, (16, 2000): 1000, (64, 2000): 600,
    (4, 20_000): 400, (16, 20_000): 200, (64, 20_000): 120,
}  # fmt: skip
KINDS = {
    "none": "no leakage",
    "normal": "gains normal over records",
    "heavy": "gains lognormal, scores of infinite variance",
    "few": "one record in fifty gives itself away",
}
# Shares of a mean's variance: of repeats, of records, and of what belongs to one record in one repeat.
SHARES = ((1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0.01), (0, 0.3, 1), (1, 1, 1), (3, 1, 1))
RECORDS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "t with 3 degrees of freedom": lambda rng, n: rng.standard_t(3, size=n) / np.sqrt(3),
    "lognormal": lambda rng, n: (np.exp(rng.normal(size=n)) - np.exp(0.5)) / np.sqrt(np.e * (np.e - 1)),
}

LISTED = 120
# How much each of 400 records' scores gain by being in, in standard deviations of a score.
GAINS = {
    "nothing leaks": lambda rng: np.zeros(400),
    "all leak weakly": lambda rng: np.full(400, 0.3),
    "5 of 100 leak much": lambda rng: 4.0 * (np.arange(400) < 20),
    "all leak, by lognormal amounts": lambda rng: rng.lognormal(size=400),
}


# ---------------------------------------------------------------------- what attacks measure, by coins
def drawn(repeats: int, records: int, kind: str, rng: np.random.Generator) -> Pair:
    """Scores (R, n) and coins: what a record adds when it is in differs between records and between runs."""
    member = rng.random((repeats, records)) < 0.5
    own, gain = parts(kind, *rng.random((2, records)), rng.normal(size=(repeats, 1)))
    return own + member * gain + rng.normal(size=(repeats, records)), member


def parts(kind: str, own: np.ndarray, gain: np.ndarray, run: np.ndarray) -> Pair:
    """What each record scores by itself, (n,), and what it gains by being in, (n,) or (R, n).

    They are made of uniform numbers, (n,) each, and of the chance of a run, standard normal.
    """
    if kind == "none":
        return ndtri(own), np.zeros(own.shape)
    if kind == "normal":
        return ndtri(own), 0.5 + 0.3 * ndtri(gain) + 0.1 * run
    if kind == "heavy":
        return stdtrit(2, own), np.exp(1.5 * ndtri(gain) - 1.5) + 0.1 * run
    return ndtri(own), np.where(gain < 0.02, 6.0, 0.0)


def flagged(scores: np.ndarray, member: np.ndarray) -> Influences:
    """TPR − FPR of an attack that names from one threshold on."""
    return rate_difference((scores > CUT).astype(float), member)


def reached(scores: np.ndarray, member: np.ndarray) -> Influences:
    """TPR − FPR at thresholds that other records have chosen."""
    return rate_difference(named_by_best_threshold(scores, member).astype(float), member)


def over(
    measure: Callable[[np.ndarray, np.ndarray], Influences], limits: tuple[float, float]
) -> Callable[[np.ndarray, np.ndarray], Estimate]:
    return lambda scores, member: crossed(measure(scores, member), limits)


def rate(fpr: float) -> Callable[[np.ndarray, np.ndarray], Estimate]:
    """The TPR; NaN where the non-members cannot measure it."""
    return lambda scores, member: tpr_at(scores, member, fpr).told


# Table → measure. Who are exposed are the members' number times the TPR at 1 %.
MEASURES: dict[str, dict[str, Callable[[np.ndarray, np.ndarray], Estimate]]] = {
    "scores": {"AUC": over(auc, (0.0, 1.0)), "advantage": over(flagged, (-1.0, 1.0))},
    "chosen": {
        "reached advantage": over(reached, (-1.0, 1.0)),
        "TPR at 1 %": rate(0.01),
        "TPR at 0.1 %": rate(0.001),
    },
}


class Population(NamedTuple):
    """Whom a study is drawn from: what records score by themselves, what others score, and what they gain, (n,)."""

    own: np.ndarray
    other: np.ndarray
    gain: np.ndarray


@cache
def population(kind: str) -> Population:
    """A million points of a Sobol sequence, so that means over them are exact to about six digits."""
    own, other, gain, run = Sobol(4, rng=99).random_base2(20).T
    score, gains = parts(kind, own, gain, ndtri(run))
    return Population(score, parts(kind, other, gain, ndtri(run))[0], gains)


@cache
def truth(kind: str) -> dict[str, float]:
    """Measure → what it is on the whole population. What belongs to one record in one run is normal."""
    own, other, gain = population(kind)
    inside = own + gain
    return {
        "AUC": float(ndtr((inside - other) / np.sqrt(2)).mean()),
        "advantage": float((ndtr(inside - CUT) - ndtr(own - CUT)).mean()),
        "TPR at 1 %": float(ndtr(inside - cut(kind, 0.01)).mean()),
        "TPR at 0.1 %": float(ndtr(inside - cut(kind, 0.001)).mean()),
    }


@cache
def cut(kind: str, fpr: float) -> float:
    """The score above which so many of the population's others are."""
    other = population(kind).other
    return float(brentq(lambda score: ndtr(other - score).mean() - fpr, 0, 100))


def covered(
    repeats: int, records: int, kind: str, studies: int, table: str = "scores", seed: int = 5
) -> dict[str, float]:
    """Measure → how often its interval holds the truth; NaN if most studies cannot measure it.

    The advantage that is reached depends on how well so many records choose a threshold. The truth is then the mean
    over all studies.
    """
    rng = np.random.default_rng(seed)
    found: dict[str, list[Estimate]] = {name: [] for name in MEASURES[table]}
    for _ in range(studies):
        scores, member = drawn(repeats, records, kind, rng)
        for name, measure in MEASURES[table].items():
            found[name].append(measure(scores, member))
    held = {}
    for name, intervals in found.items():
        known = [one for one in intervals if not np.isnan(one.value)]
        true = truth(kind).get(name, float(np.mean([one.value for one in intervals])))
        held[name] = float(np.mean([_holds(one, true) for one in known])) if 2 * len(known) > studies else float("nan")
    return held


# ---------------------------------------------------------------------- lower bounds on ε
def responses(epsilon: float, coins: int, rng: np.random.Generator) -> Pair:
    """Randomized response, the worst that (ε, 0)-DP allows: the coin itself, or with 1/(1 + e^ε) the other side."""
    held = rng.random(coins) < 0.5
    return np.where(held == (rng.random(coins) < expit(epsilon)), 1.0, -1.0) + 0.01 * rng.random(coins), held


def gaussian(mu: float, coins: int, rng: np.random.Generator) -> Pair:
    """What Gaussian noise of μ-GDP releases of each coin."""
    held = rng.random(coins) < 0.5
    return rng.normal(mu * held), held


BOUNDS = {
    "one run": lambda scores, held, claim, seed: one_run_bound(scores, held, claim).epsilon,
    "many runs": lambda scores, held, claim, seed: many_runs_bound(scores, held, claim).epsilon,
    "trials": lambda scores, held, claim, seed: trials_bound(scores[held], scores[~held], claim, seed).epsilon,
}


def below(design: str, coins: int, strength: float, noise: str, audits: int) -> tuple[float, float]:
    """How often a lower bound is no larger than the ε that is true, and its mean as a share of that.

    Args:
        design: of `BOUNDS`.
        coins: in each audit.
        strength: ε of randomized response, μ of Gaussian noise.
        noise: ``responses`` or ``gaussian``.
        audits: how many.
    """
    rng = np.random.default_rng(coins)
    told, claim, true = (
        (responses, approximate_dp(0.0), strength)
        if noise == "responses"
        else (gaussian, gaussian_dp(DELTA), gaussian_epsilon(strength, DELTA))
    )
    found = [BOUNDS[design](*told(strength, coins, rng), claim, seed) for seed in range(audits)]
    return float(np.mean(np.array(found) <= true)), float(np.mean(found) / true)


# ---------------------------------------------------------------------- a mean over repeats and records
def covered_mean(rng: np.random.Generator, repeats: int, n: int, shares: tuple, records: str, draws: int) -> float:
    """How often the interval of a mean over crossed repeats and records holds the true mean.

    That is 0, and with fewer than `FEWEST_REPEATS` the mean of these very repeats, which the interval then is for.

    What belongs to one record in one repeat is normal here. Of such an (R, n) table the row means, the column means and
    the sum of squares that is left are independent, so they are drawn themselves: R + n numbers in place of R·n.
    """
    of_repeat, of_record, of_both = np.sqrt(np.multiply(shares, (repeats, n, repeats * n)))
    hits = 0
    for _ in range(draws):
        grand = rng.normal() / np.sqrt(repeats * n)
        rows, columns = rng.normal(size=repeats) / np.sqrt(n), rng.normal(size=n) / np.sqrt(repeats)
        alone = of_repeat * rng.normal(size=repeats), of_record * RECORDS[records](rng, n)
        own_rows = alone[0] + alone[1].mean() + of_both * (grand + rows - rows.mean())
        own_columns = alone[1] + alone[0].mean() + of_both * (grand + columns - columns.mean())
        left = of_both**2 * rng.chisquare((repeats - 1) * (n - 1))
        mean, true = float(own_rows.mean()), 0.0 if repeats >= FEWEST_REPEATS else float(alone[0].mean())
        hits += _holds(over_layouts(mean, [Layout(own_rows - mean, own_columns - mean, left)]), true)
    return hits / draws


def _holds(found: Estimate, true: float) -> bool:
    return found.low - ROUNDING <= true <= found.high + ROUNDING


def _line(*cells: object) -> None:
    print("|", " | ".join(map(str, cells)), "|", flush=True)


def print_measures(table: str, sizes: list[tuple[int, int]]) -> None:
    """A line for each size: of each kind of leak the measures of a table."""
    print(f"\n{' · '.join(MEASURES[table])}:\n")
    _line("repeats", "records", *KINDS.values(), "studies", "±")
    _line(*["---:"] * (4 + len(KINDS)))
    for repeats, records in sizes:
        studies = STUDIES[repeats, records]
        found = [covered(repeats, records, kind, studies, table) for kind in KINDS]
        shares = [
            " · ".join("–" if np.isnan(share) else f"{100 * share:.1f}" for share in each.values()) for each in found
        ]
        _line(repeats, f"{records:,}", *shares, f"{studies:,}", f"{196 * np.sqrt(0.95 * 0.05 / studies):.1f}")


def print_means(sizes: list[tuple[int, int]]) -> None:
    """A line for each size: of each kind of records the lowest and the highest of seven ways to vary."""
    print("\nA mean over repeats and records:\n")
    _line("repeats", "records", *(f"{records} records" for records in RECORDS), "draws", "±")
    _line(*["---:"] * (4 + len(RECORDS)))
    for repeats, n in sizes:
        rng, draws = np.random.default_rng(repeats * n), 600 if n > 2000 else 1000
        found = [[covered_mean(rng, repeats, n, shares, records, draws) for shares in SHARES] for records in RECORDS]
        cells = [f"{100 * min(each):.1f} to {100 * max(each):.1f}" for each in found]
        _line(repeats, f"{n:,}", *cells, f"{draws:,}", f"{196 * np.sqrt(0.95 * 0.05 / draws):.1f}")


def print_bounds() -> None:
    """A line for each design and number of coins: how often the bound is true, and how much of ε it finds."""
    print(f"\nLower bounds on ε, {AUDITS:,} audits (± {196 * np.sqrt(0.95 * 0.05 / AUDITS):.1f}):\n")
    worlds = [("responses", 1.0), ("responses", 4.0), ("gaussian", 0.5), ("gaussian", 2.0)]
    _line("design", "coins", *(f"{noise} {strength:g}" for noise, strength in worlds))
    _line("---", *["---:"] * (1 + len(worlds)))
    for design in BOUNDS:
        for coins in (100, 400):
            found = [below(design, coins, strength, noise, AUDITS) for noise, strength in worlds]
            _line(design, coins, *(f"{100 * held:.1f} ({100 * share:.0f} %)" for held, share in found))


def print_figures(_: list[tuple[int, int]]) -> None:
    """A line for each number that a figure draws, and size of its own: how often its interval holds the truth."""
    print(f"\nWhat figures draw, {DRAWN:,} studies each (± {196 * np.sqrt(0.95 * 0.05 / DRAWN):.1f}):\n")
    _line("number", "repeats", "records", "holds the truth")
    _line("---", *["---:"] * 3)
    for case, repeats, n in SIZES:
        _line(case, repeats, n, f"{coverage(case, repeats, n, DRAWN):.3f}")


def print_listed(_: list[tuple[int, int]]) -> None:
    """A line for each planted leak and number of models: who is listed as giving themselves away."""
    print(f"\nRecords that stand out, {LISTED} studies of 400 records each by coins:\n")
    heads = ("planted", "models", "studies that list anybody", "listed of those that leak", "listed of the others")
    _line(*heads, "share of the list that does not leak, on average", "at least so many do: true in")
    _line("---", *["---:"] * 6)
    for name, gain in GAINS.items():
        for repeats in (8, 12, 24):
            rng, lists = np.random.default_rng(repeats), []
            for study in range(LISTED):
                member = rng.random((repeats, 400)) < 0.5
                own, leaks = rng.normal(size=400), gain(rng)
                score = np.sqrt(0.5) * (own + rng.normal(size=(repeats, 400))) + leaks * member
                found = exposed(score, member, seed=study)
                right = int((leaks[found.order] > 0).sum())
                lists.append((right, len(found.order) - right, found.at_least <= right))
            right, wrong, true = np.transpose(lists)
            any_listed = (right + wrong > 0).mean()
            false = (wrong / np.maximum(right + wrong, 1)).mean()
            counts = f"{right.mean():.1f}", f"{wrong.mean():.2f}", f"{false:.3f}", f"{true.mean():.3f}"
            _line(name, repeats, f"{any_listed:.2f}", *counts)


TABLES = {
    "figures": print_figures,
    "scores": partial(print_measures, "scores"),
    "chosen": partial(print_measures, "chosen"),
    "means": print_means,
    "bounds": lambda sizes: print_bounds(),
    "listed": print_listed,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--sizes", nargs="*", metavar="SIZE", help="such as 64x20000, repeats and records; default: all"
    )
    parser.add_argument("--tables", nargs="*", choices=TABLES, default=list(TABLES), help="default: all")
    given = parser.parse_args()
    sizes = [size for size in STUDIES if not given.sizes or f"{size[0]}x{size[1]}" in given.sizes]
    for table in given.tables:
        TABLES[table](sizes)


if __name__ == "__main__":
    main()
