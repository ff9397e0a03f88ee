"""How often the 95 % intervals of figures hold the truth, by simulation (benchmarks/interval_coverage.py)."""

import sys
from pathlib import Path

import numpy as np
import pytest

from dp_leakage.metrics import coins
from dp_leakage.metrics.intervals import crossed

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
from figure_worlds import SIZES, area, by_coins, coverage

DRAWS, FEWEST = 300, 0.90  # at a coverage of .95 undercut once in 5,000 runs


@pytest.mark.slow
@pytest.mark.parametrize(("case", "repeats", "n"), SIZES)
def test_an_interval_that_a_figure_draws_holds_the_truth_as_often_as_the_documentation_says(case, repeats, n):
    assert coverage(case, repeats, n, DRAWS) >= FEWEST


@pytest.mark.parametrize("case", ["AUC near 1, fixed members", "AUC near 1, fixed members of uneven scores"])
def test_an_area_near_1_lies_in_its_interval_though_hardly_a_record_says_how_it_varies(case):
    """The variance that was seen alone gave .82 with uneven scores. At .95, below .93 once in 5,000 runs."""
    assert coverage(case, 1, 50, 1500) >= 0.93


@pytest.mark.parametrize(("repeats", "least"), [(1, 0.95), (3, 0.93)])
def test_the_median_of_eight_targets_lies_in_its_interval_as_often_as_it_says(repeats, least):
    """Wilson's interval of the share below it held the median in .93 of studies of one model.

    That of one model is exact for whole numbers of targets, and so above .95. At .95, below .93 once in 5,000 runs.
    """
    assert coverage("median error of pictures", repeats, 8, 1500) >= least


def test_records_of_a_person_do_not_count_as_independent():
    """In a single run, with one score for all records of a person, intervals over records hold the truth every other
    time. A coverage of .95 is seen below .92 once in 100 runs, one of .5 above .6 once in 4,000.
    """
    rng, held = np.random.default_rng(5), {True: 0, False: 0}
    for _ in range(DRAWS):
        score, member = by_coins(rng, 1, 100, "all")
        owner = np.repeat(np.arange(100), rng.integers(1, 12, 100))
        found = coins.auc(score[:, owner], member[:, owner])
        for apart, (_, low, high) in {True: crossed(found.of(owner)), False: crossed(found)}.items():
            held[apart] += low <= area(0.5) <= high
    assert held[True] / DRAWS >= 0.92
    assert held[False] / DRAWS <= 0.6


@pytest.mark.parametrize("repeats", [4, 16])
def test_a_leak_of_which_no_record_was_drawn_lies_in_the_interval(repeats):
    """In one study of eight two defenses then score exactly alike; an interval of no width held the truth in .82."""
    assert coverage("difference, same coins; 2 of 200 leak, all others score alike", repeats, 200, 200) >= FEWEST
