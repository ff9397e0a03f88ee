"""What a step of the budget costs and saves, where nothing is decided: planted worlds hold the truth.

`python tests/report/test_trade.py 300` prints how often the limits of each kind of chain hold the truth.
"""

import re
import sys
from dataclasses import replace

import numpy as np
import pytest
from planted import Cell, Study, World, draw, strongest
from scipy.stats import binom

from dp_leakage.metrics.intervals import Estimate
from dp_leakage.report import Answer, answers, claims_of
from dp_leakage.report.trade import rising, trade_of

ONCE_IN = 1e-4  # so often chance fails a test of a rate
CHOICE = 0.01  # of an advantage: what choosing thresholds on so few records may cost one setting more than the other


def chain(shifts: tuple[float, ...], accuracies: tuple[float, ...]) -> tuple[Cell, ...]:
    """Private settings that a loose proof leaves to attacks, from the smallest budget on."""
    pairs = zip(shifts, accuracies, strict=True)
    return tuple(Cell((shift,), accuracy, mu=2 + i) for i, (shift, accuracy) in enumerate(pairs))


BARE = Cell((0.9,), 0.8)
CHAINS = {
    "steep": World((BARE, *chain((0.05, 0.25, 0.5), (0.5, 0.71, 0.79))), repeats=8, n=300),
    "flat": World((BARE, *chain((0.25,) * 4, (0.72,) * 4)), repeats=8, n=300),
    "few repeats": World((BARE, *chain((0.1, 0.25, 0.4), (0.6, 0.72, 0.78))), repeats=3, n=300),
    "fixed members": World((BARE, *chain((0.1, 0.25, 0.4), (0.6, 0.72, 0.78))), repeats=6, n=300, by_coins=False),
    "people": World((BARE, *chain((0.1, 0.25, 0.4), (0.6, 0.72, 0.78))), repeats=8, n=300, n_test=600, per_person=6),
    "models differ": World((BARE, *chain((0.1, 0.25, 0.4), (0.6, 0.72, 0.78))), repeats=8, n=300, of_model=0.01),
}


def answer_of(study: Study) -> Answer:
    (found,) = answers(study.metrics, study.world.acceptable, {"d": 0.1}, tested=study.tested)
    return found


def held(study: Study) -> bool | None:
    """Whether the limits hold what was planted; None if nothing is said."""
    world, found = study.world, trade_of(answer_of(study))
    if found is None:
        return None
    old, new = (world.cell(one.model, one.defense) for one in (found.weaker, found.stronger))
    saved = strongest(world, old, "reached_advantage") - strongest(world, new, "reached_advantage")
    holds = found.cost.low - 1e-9 <= old.accuracy - new.accuracy <= found.cost.high + 1e-9
    return holds and found.saved.low - CHOICE <= saved <= found.saved.high + CHOICE


def counted(name: str, studies: int, seed: int = 0) -> tuple[int, int]:
    """In how many studies a trade is told, and in how many of them it is true."""
    rng = np.random.default_rng([seed, list(CHAINS).index(name)])
    found = [one for one in (held(draw(CHAINS[name], rng)) for _ in range(studies)) if one is not None]
    return len(found), sum(found)


def test_the_limits_hold_the_truth_in_95_of_100_studies():
    told, true = (sum(found) for found in zip(*(counted(name, 5) for name in CHAINS), strict=True))
    assert told >= 15
    assert true >= binom.ppf(ONCE_IN, told, 0.95)


@pytest.mark.slow
@pytest.mark.parametrize("name", CHAINS)
def test_they_do_so_in_each_kind_of_chain(name):
    told, true = counted(name, 200)
    assert true >= binom.ppf(ONCE_IN, told, 0.95)


def flat(rng: np.random.Generator) -> list[Estimate]:
    """Six equal numbers with limits that hold together in 95 of 100 cases."""
    reach = 2.6383  # of a standard normal at an error of 5 % / 12
    return [Estimate(x, x - reach, x + reach) for x in rng.normal(size=6)]


def test_a_rise_is_contradicted_in_at_most_one_of_twenty_studies_that_rise():
    """Of 2,000; numbers that are equal are the worst case."""
    rng = np.random.default_rng(0)
    assert sum(rising(flat(rng)) is None for _ in range(2000)) <= binom.ppf(1 - ONCE_IN, 2000, 0.05)


def test_limits_narrow_by_each_other_and_hold_together():
    """Of 2,000: all six hold in at least 95 of 100, with a mean width below that of one alone."""
    rng, held_all, widths = np.random.default_rng(1), 0, []
    for _ in range(2000):
        found = rising(flat(rng))
        held_all += found is not None and all(one.low <= 0 <= one.high for one in found)
        widths += [one.high - one.low for one in found or ()]
    assert held_all >= binom.ppf(ONCE_IN, 2000, 0.95)
    assert np.mean(widths) < 2 * 2.6383 * 0.8


def test_what_falls_by_chance_is_pooled_by_its_precision():
    """The middle two exchange places: their common value lies three times nearer to that with a third of the error."""
    wide, narrow = Estimate(0.4, 0.1, 0.7), Estimate(0.3, 0.2, 0.4)
    low, first, second, high = rising([Estimate(0.0, -0.1, 0.1), wide, narrow, Estimate(1.0, 0.9, 1.1)])
    assert (low.value, high.value) == (0.0, 1.0)
    assert first.value == pytest.approx(second.value) == pytest.approx((0.4 + 9 * 0.3) / 10)
    assert (first.low, first.high, second.low, second.high) == (0.1, 0.4, 0.2, 0.4)
    assert rising([Estimate(0.5, 0.45, 0.55), Estimate(0.3, 0.25, 0.35)]) is None


@pytest.fixture(scope="module")
def open_answer() -> Answer:
    found = answer_of(draw(CHAINS["steep"], np.random.default_rng(1)))
    assert found.kind == "open"
    return found


def test_the_sentence_leads_an_open_answer_and_has_its_numbers(open_answer):
    found = trade_of(open_answer)
    first, second, *_ = claims_of([open_answer], {})
    assert (first.kind, second.kind) == ("trade", "answer")
    assert first.cells == tuple((one.model, one.defense) for one in (found.weaker, found.stronger))
    cost, saved = (number for number in first.numbers if number.low is not None)
    assert (cost.value, cost.low, cost.high) == found.cost
    assert (saved.value, saved.low, saved.high) == found.saved
    assert cost.among == saved.among == 6
    number = r"([\d.]+) \[([\d.]+), ([\d.]+)\]"
    step = r"The step from ε = [\d.]+ to ε = [\d.]+ \(DP-SGD, MLP\)"
    words = f"{step} costs {number} points of accuracy and saves {number} of the strongest attack's advantage."
    shown = [float(one) for one in re.fullmatch(words, first.words).groups()]
    assert shown == pytest.approx([*(100 * x for x in found.cost), *found.saved], abs=0.5)


def test_another_measure_of_use_is_told_in_its_own_unit(open_answer):
    settings = tuple(replace(one, measure="auroc") for one in open_answer.settings)
    (told,) = (one for one in settings if one.defense == open_answer.told[0].defense)
    (best,) = (one for one in settings if one.defense == "none")
    words = claims_of([replace(open_answer, settings=settings, told=(told,), best=best)], {})[0].words
    assert re.search(r" costs 0\.\d+ \[0(\.\d+)?, 0\.\d+\] in AUROC and saves ", words)


def test_the_step_is_toward_the_limit_that_is_missed_most(open_answer):
    low, middle, high = sorted((one for one in open_answer.settings if one.private), key=lambda one: one.spent)
    leaky = replace(middle, leak=replace(middle.leak, advantage=Estimate(0.4, 0.3, 0.5)))
    lossy = replace(middle, loss=Estimate(0.4, 0.3, 0.5))
    pairs = [trade_of(_about(open_answer, middle, one)) for one in (leaky, lossy)]
    assert [(one.weaker.defense, one.stronger.defense) for one in pairs if one] == [
        (middle.defense, low.defense),
        (high.defense, middle.defense),
    ]
    assert trade_of(_about(open_answer, low, low)).stronger.defense == low.defense
    assert trade_of(_about(open_answer, high, high)).weaker.defense == high.defense


def test_nothing_is_said_without_a_neighbor_or_where_something_is_decided(open_answer):
    (one,) = open_answer.told
    others = tuple(other for other in open_answer.settings if not other.private or other is one)
    assert trade_of(replace(open_answer, settings=others)) is None
    assert trade_of(replace(open_answer, kind="neither")) is None
    assert trade_of(replace(open_answer, best=None)) is None
    alone = _about(open_answer, one, replace(one, leak=None))
    assert trade_of(alone) is None


def _about(answer: Answer, old: object, new: object) -> Answer:
    """Return the answer about ``new``, which takes the place of a setting."""
    return replace(answer, settings=tuple(new if one is old else one for one in answer.settings), told=(new,))


def main(studies: int) -> None:
    """Prints how often a trade is told, and its limits hold the truth."""
    print("| chain | studies | told | true |\n| --- | ---: | ---: | ---: |")
    for name in CHAINS:
        told, true = counted(name, studies, seed=1)
        print(f"| {name} | {studies} | {told} | {true / max(told, 1):.3f} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
