"""How often 95 % intervals hold the truth, by simulation: prints the table of docs/results/intervals.md.

Records and repeats are crossed, as in a study by coins: each record's score is its own, plus what it gains by being in,
plus chance. Nominal are 95 %; the column ± is 1.96 standard errors of the simulation itself.

    python benchmarks/interval_coverage.py                    # all: some 6 minutes of one core
    python benchmarks/interval_coverage.py --sizes 64x20000   # one size
"""

import argparse
from functools import cache
from itertools import product

import numpy as np

from dp_leakage.metrics.coins import auc, rate_difference
from dp_leakage.metrics.intervals import Estimate, Influences, Layout, crossed, over_layouts

Pair = tuple[np.ndarray, np.ndarray]
CUT = 0.7  # from which score on the attack names that the advantage is of

# Studies for each size: enough for ± 1 % where that is minutes of one core, fewer where it is not.
STUDIES = {
    (4, 200): 1500, (16, 200): 1000, (64, 200): 600,
    (4, 2000): 800, (16, 2000): 400, (64, 2000): 200,
    (4, 20_000): 200, (16, 20_000): 100, (64, 20_000): 60,
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


# ---------------------------------------------------------------------- what attacks measure, by coins
def drawn(repeats: int, records: int, kind: str, rng: np.random.Generator) -> Pair:
    """Scores (R, n) and coins: what a record adds when it is in differs between records and between runs."""
    member = rng.random((repeats, records)) < 0.5
    own, gain = _parts(records, kind, rng.normal(size=(repeats, 1)), rng)
    return own + member * gain + rng.normal(size=(repeats, records)), member


def _parts(records: int, kind: str, run: np.ndarray, rng: np.random.Generator) -> Pair:
    """What each record scores by itself, (n,), and what it gains by being in, (n,) or (R, n) with chance ``run``."""
    if kind == "none":
        return rng.normal(size=records), np.zeros(records)
    if kind == "normal":
        return rng.normal(size=records), 0.5 + 0.3 * rng.normal(size=records) + 0.1 * run
    if kind == "heavy":
        return rng.standard_t(2, size=records), np.exp(1.5 * rng.normal(size=records) - 1.5) + 0.1 * run
    return rng.normal(size=records), np.where(rng.random(records) < 0.02, 6.0, 0.0)


def flagged(scores: np.ndarray, member: np.ndarray) -> Influences:
    """TPR − FPR of an attack that names from one threshold on."""
    return rate_difference((scores > CUT).astype(float), member)


MEASURES = {"AUC": (auc, (0.0, 1.0)), "advantage": (flagged, (-1.0, 1.0))}


@cache
def truth(kind: str) -> dict[str, float]:
    """Measure → what it is on the whole population, from four million pairs of a member and another record."""
    rng = np.random.default_rng(99)
    pairs = [_pairs(200_000, kind, rng) for _ in range(20)]
    inside, outside = (np.concatenate(part) for part in zip(*pairs, strict=True))
    return {"AUC": float((inside > outside).mean()), "advantage": float((inside > CUT).mean() - (outside > CUT).mean())}


def _pairs(n: int, kind: str, rng: np.random.Generator) -> Pair:
    """Scores of n members and of n others, (n,) each: as `drawn` has them, every one of a run of its own."""
    one, two = (_parts(n, kind, rng.normal(size=n), rng) for _ in range(2))
    return one[0] + one[1] + rng.normal(size=n), two[0] + rng.normal(size=n)


def covered(repeats: int, records: int, kind: str, studies: int, seed: int = 5) -> dict[str, float]:
    """Measure → how often its interval holds the truth."""
    rng, held = np.random.default_rng(seed), dict.fromkeys(MEASURES, 0)
    for _ in range(studies):
        scores, member = drawn(repeats, records, kind, rng)
        for name, (measure, limits) in MEASURES.items():
            held[name] += _holds(crossed(measure(scores, member), limits), truth(kind)[name])
    return {name: count / studies for name, count in held.items()}


# ---------------------------------------------------------------------- a mean over repeats and records
def covered_mean(rng: np.random.Generator, repeats: int, n: int, shares: tuple, records: str, draws: int) -> float:
    """How often the interval of a mean over crossed repeats and records holds the true mean, 0.

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
        mean = float(own_rows.mean())
        hits += _holds(over_layouts(mean, [Layout(own_rows - mean, own_columns - mean, left)]), 0.0)
    return hits / draws


def _holds(found: Estimate, true: float) -> bool:
    return found.low <= true <= found.high


def _line(*cells: object) -> None:
    print("|", " | ".join(map(str, cells)), "|", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--sizes", nargs="*", metavar="SIZE", help="such as 64x20000, repeats and records; default: all"
    )
    wanted = parser.parse_args().sizes
    sizes = [size for size in STUDIES if not wanted or f"{size[0]}x{size[1]}" in wanted]
    _line(
        "repeats", "records", *(f"{name}, {words}" for words, name in product(KINDS.values(), MEASURES)), "studies", "±"
    )
    _line(*["---:"] * (4 + len(KINDS) * len(MEASURES)))
    for repeats, records in sizes:
        studies = STUDIES[repeats, records]
        found = [covered(repeats, records, kind, studies) for kind in KINDS]
        shares = [f"{100 * share:.1f}" for each in found for share in each.values()]
        _line(repeats, f"{records:,}", *shares, f"{studies:,}", f"{196 * np.sqrt(0.95 * 0.05 / studies):.1f}")
    print()
    _line("repeats", "records", *(f"mean, {records} records" for records in RECORDS), "draws", "±")
    _line(*["---:"] * (4 + len(RECORDS)))
    for repeats, n in sizes:
        rng, draws = np.random.default_rng(repeats * n), 600 if n > 2000 else 1000
        found = [[covered_mean(rng, repeats, n, shares, records, draws) for shares in SHARES] for records in RECORDS]
        cells = [f"{100 * min(each):.1f} to {100 * max(each):.1f}" for each in found]
        _line(repeats, f"{n:,}", *cells, f"{draws:,}", f"{196 * np.sqrt(0.95 * 0.05 / draws):.1f}")


if __name__ == "__main__":
    main()
