"""The test behind a recommendation, in planted worlds: how often it errs at the limits, and what it finds within them.

`python tests/report/test_decision.py 60` prints the table for so many worlds of each kind, at 8, 16 and 32 repeats, and
how often a setting is recommended at any of three planned looks at these.
"""

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import binom, norm

from dp_leakage.metrics.coins import aligned
from dp_leakage.metrics.contrast import Contrast, above_share, kept
from dp_leakage.metrics.people import RightAnswers
from dp_leakage.metrics.rows import tidy
from dp_leakage.metrics.thresholds import PARTS, SHARES, advantage_of, measure_thresholds, of_row
from dp_leakage.report.decision import ALPHA, Conditions, Look, judge, look_of

LIMIT = 0.1  # of the loss and of the advantage
OWN = 0.5  # share of the variance that belongs to a record
ONCE_IN = 1e-4  # so often chance fails a test of a rate
LOOKS = (8, 16, 32)


class Planted(NamedTuple):
    """A setting: its loss, its advantage, and whether a proof makes that acceptable."""

    loss: float
    advantage: float
    proof: bool = False


class Kind(NamedTuple):
    """A kind of world.

    Attributes:
        settings: what is planted.
        attacks: how many, which leak alike.
        n: pool of records, and new ones.
        base: accuracies of the undefended models.
        of_model: the standard deviation of a model's accuracy, about.
        fully: whether few records leak fully, and records' own parts are Student's with two degrees of freedom.
        per_person: new records of each person.
        by_coins: whether coins make the members.
        guessing: accuracy of guessing.
    """

    settings: tuple[Planted, ...]
    attacks: int = 1
    n: int = 1000
    base: tuple[float, ...] = (0.85,)
    of_model: float = 0.005
    fully: bool = False
    per_person: int = 1
    by_coins: bool = True
    guessing: float = 0.1


LEAKS, LOSES = Planted(0.02, LIMIT + 0.0001), Planted(LIMIT + 0.0001, 0.02)
AT_THE_LIMITS = {
    "all leak": Kind((LEAKS,) * 4),
    "all leak, three attacks": Kind((LEAKS,) * 4, attacks=3),
    "all lose": Kind((LOSES,) * 4),
    "half lose, half leak": Kind((LOSES, LEAKS) * 2),
    "few records, heavy tails, few leak fully": Kind((LOSES, LEAKS) * 2, n=300, fully=True),
    "few leak fully": Kind((LEAKS,) * 4, fully=True),
    "models differ": Kind((LOSES, LEAKS) * 2, of_model=0.02),
    "two undefended models": Kind((LOSES, LEAKS) * 2, base=(0.85, 0.85)),
    "rare classes": Kind((LOSES, LEAKS) * 2, base=(0.97,), guessing=0.8),
    "persons": Kind((LOSES,) * 4, n=996, per_person=6),
    "fixed members": Kind((LOSES, LEAKS) * 2, by_coins=False),
    "proofs that lose": Kind((Planted(LIMIT + 0.0001, 0.02, True),) * 4),
    "beyond by chance": Kind(tuple(Planted(0.02, LIMIT + x) for x in (0.0001, 0.01, 0.02, 0.05, 0.1))),
}
CLEAR = (Planted(0.01, 0.4), Planted(0.3, 0.02))
A_FIFTH, A_QUARTER = (0.8 * LIMIT,) * 2, (0.75 * LIMIT,) * 2
WITHIN = {
    "a fifth inside, one attack": Kind((Planted(*A_FIFTH), *CLEAR)),
    "a fifth inside, three attacks": Kind((Planted(*A_FIFTH), *CLEAR), attacks=3),
    "a quarter inside, three attacks": Kind((Planted(*A_QUARTER), *CLEAR), attacks=3),
    "a fifth inside, models differ": Kind((Planted(*A_FIFTH), *CLEAR), of_model=0.02),
}


class Study(NamedTuple):
    """What is drawn of each setting: right answers, and scores of each attack; and of the undefended models."""

    kind: Kind
    right: list[np.ndarray]
    scores: list[list[np.ndarray]]
    bases: list[np.ndarray]
    member: np.ndarray


def draw(kind: Kind, repeats: int, rng: np.random.Generator) -> Study:
    shape = repeats, kind.n
    member = rng.random(shape) < 0.5
    if not kind.by_coins:
        member[:] = rng.permutation(np.arange(kind.n) % 2 == 0)
    hard = np.sqrt(OWN) * np.repeat(rng.normal(size=kind.n // kind.per_person), kind.per_person)

    def right(accuracy: float) -> np.ndarray:
        of_model = kind.of_model / norm.pdf(ndtri(accuracy))  # of a probit, of which accuracies differ by that much
        latent = rng.normal(size=shape) * np.sqrt(1 - OWN) + of_model * rng.normal(size=(repeats, 1))
        return (latent + hard) / np.sqrt(1 + of_model**2) < ndtri(accuracy)

    def score(advantage: float) -> np.ndarray:
        if kind.fully:
            own = rng.standard_t(2, size=kind.n)
            moved = rng.random(shape) < advantage  # of so many members the score is far above all others
            return own + rng.normal(size=shape) + 100 * (moved & member)
        own = np.sqrt(OWN) * rng.normal(size=kind.n)
        return own + np.sqrt(1 - OWN) * rng.normal(size=shape) + 2 * ndtri((1 + advantage) / 2) * member

    best = max(kind.base)
    return Study(
        kind,
        [right(best * (1 - one.loss)) for one in kind.settings],
        [[score(one.advantage) for _ in range(kind.attacks)] for one in kind.settings],
        [right(base) for base in kind.base],
        member,
    )


def conditions(study: Study, repeats: int) -> list[Conditions]:
    """What is tested of each setting after so many of the repeats."""
    kind, member = study.kind, study.member[:repeats]
    person = np.arange(kind.n) // kind.per_person
    bases = [RightAnswers.of(base[:repeats], person) for base in study.bases]
    found = []
    for planted, right, scores in zip(kind.settings, study.right, study.scores, strict=True):
        own = RightAnswers.of(right[:repeats], person)
        rows = [measure_thresholds(one[:repeats], member if kind.by_coins else member[0], "a") for one in scores]
        leak = tuple(of_row(row) for rows_of in rows for row in rows_of)
        use = tuple(kept(own, base, 1 - LIMIT) for base in bases)
        guess = above_share(own, kind.guessing)
        found.append(Conditions(use, guess, leak, planted.proof, 0.05 if planted.proof else 1.0, True))
    return found


def recommends(settings: Sequence[Conditions], error: float = ALPHA) -> list[int]:
    found, _ = judge(settings, LIMIT, error=error)
    return [i for i, one in enumerate(found) if one.keeps == one.protects == "yes"]


def oracle(settings: Sequence[Conditions]) -> bool:
    """Whether the first setting passes if it is known that this is the one to test."""
    return settings[0].keeps(ALPHA) and settings[0].holds(LIMIT, ALPHA)


def share(kind: Kind, repeats: int, worlds: int, seed: int) -> tuple[float, float]:
    """In how many worlds a setting is recommended, and in how many the oracle would."""
    rng, named, known = np.random.default_rng(seed), [], []
    for _ in range(worlds):
        found = conditions(draw(kind, repeats, rng), repeats)
        named.append(bool(recommends(found)))
        known.append(oracle(found))
    return float(np.mean(named)), float(np.mean(known))


def at_looks(kind: Kind, rng: np.random.Generator) -> tuple[bool, bool]:
    """Whether a setting is recommended at any of the looks: by their parts of the 5 %, and by all of it at each."""
    study = draw(kind, LOOKS[-1], rng)
    seen = [(look_of(repeats, LOOKS).level, conditions(study, repeats)) for repeats in LOOKS]
    return any(recommends(one, level) for level, one in seen), any(recommends(one) for _, one in seen)


def test_at_the_limits_hardly_anything_is_recommended():
    """Of 130 worlds where every setting fails by .0001, at 16 repeats; 18 errors come once in 10,000 times at 5 %."""
    worlds = 10
    wrong = sum(worlds * share(kind, 16, worlds, 3)[0] for kind in AT_THE_LIMITS.values())
    assert wrong <= binom.ppf(1 - ONCE_IN, worlds * len(AT_THE_LIMITS), ALPHA)


def test_at_three_looks_hardly_anything_at_the_limits_is_recommended():
    """In 13 worlds; 6 or more errors come once in 50,000 times at 5 %."""
    found = [at_looks(kind, np.random.default_rng([72, i])) for i, kind in enumerate(AT_THE_LIMITS.values())]
    assert sum(planned for planned, _ in found) <= 5


@pytest.mark.slow
def test_of_520_worlds_at_the_limits_5_in_100_at_most_err_at_any_of_three_looks():
    """Of these, 12 err (2.3 %, at most 4.0 % with 97.5 % confidence), and 38 (7.3 %) if each look has the whole 5 %.

    The seeds are fixed, so that it fails by a change alone; with fresh ones, a true rate of 2.3 % would once in 10,000.
    """
    found = []
    for i, kind in enumerate(AT_THE_LIMITS.values()):
        rng = np.random.default_rng([72, i])
        found += [at_looks(kind, rng) for _ in range(40)]
    planned, careless = np.mean(found, axis=0)
    assert planned <= ALPHA < careless


# Of worlds with 1,000 records, how many name the setting inside both limits, at least: number of repeats → share.
PROMISED = {
    "a fifth inside, one attack": {16: 0.60, 32: 0.85},
    "a fifth inside, three attacks": {16: 0.45, 32: 0.90},
    "a quarter inside, three attacks": {24: 0.85},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROMISED)
def test_a_setting_inside_both_limits_is_named_as_often_as_promised_and_as_by_an_oracle(name):
    """Of 100 worlds; the oracle knows which setting to test, on the same worlds.

    One attack: .74 at 16 repeats, .99 at 32. Three: .60 and 1.00. A quarter inside: 1.00. The oracle has the same. The
    seeds are fixed; by fresh ones these rates would fail once in 600 times.
    """
    rng, found = np.random.default_rng([74, len(name)]), []
    for _ in range(100):
        study = draw(WITHIN[name], max(PROMISED[name]), rng)
        seen = [conditions(study, repeats) for repeats in PROMISED[name]]
        found.append([(bool(recommends(one)), oracle(one)) for one in seen])
    for (named, known), promised in zip(np.mean(found, axis=0), PROMISED[name].values(), strict=True):
        assert named >= promised
        assert named >= known - 0.03


def test_where_neighbors_are_clear_the_choice_costs_next_to_nothing():
    named, known = share(WITHIN["a fifth inside, three attacks"], 32, 20, 4)
    assert known - 0.05 <= named
    assert named >= 0.7


def test_a_threshold_chosen_by_looking_would_err_and_a_fixed_list_does_not_choose():
    """The number at the best threshold of the list is at most what is tested: every threshold must pass."""
    one = Contrast(0.05, 1e-6, 1e-6, 0.0, 16, 1000)
    settings = Conditions((one,), None, (one,) * 12, False, 1.0, True)
    assert recommends([settings]) == [0]
    leaky = replace(settings, leak=(*settings.leak, replace(one, value=0.0999)))
    assert recommends([leaky]) == []


def sure(loss: float, leak: float, error: float, proof: float | None = None) -> Conditions:
    """A setting whose two numbers have this standard error."""
    use, risk = (Contrast(value, 0.0, error**2, 0.0, 1, 1e6) for value in (LIMIT - loss, leak))
    return Conditions((use,), None, (risk,), proof is not None, 1.0 if proof is None else proof, True)


def test_what_surely_fails_costs_the_others_nothing():
    near = sure(0.08, 0.05, 0.01)  # 2.0 standard errors: enough at 5 %, not at a third of it
    assert recommends([near]) == [0]
    assert recommends([near, *[sure(0.5, 0.0, 0.01)] * 9]) == [0]
    assert recommends([near, *[sure(0.1, 0.1, 0.01)] * 2]) == []


@pytest.mark.parametrize("planned", [(), (16,), (8, 16), LOOKS])
def test_planned_looks_divide_the_error_among_them(planned):
    assert sum(Look(planned).levels) == pytest.approx(ALPHA)
    assert len(Look(planned).levels) == max(len(planned), 1)
    for place, repeats in enumerate(planned):
        look = look_of(repeats, planned)
        assert (look.number, look.level, tuple(look.later)) == (place + 1, look.levels[place], planned[place + 1 :])


def test_a_look_tests_and_sets_aside_by_its_own_part():
    near, failing = sure(0.08, 0.05, 0.01), sure(0.13, 0.0, 0.01)  # 2 standard errors within, 3 beyond a limit
    errors = [look_of(repeats, LOOKS).level for repeats in LOOKS]
    assert [recommends([near], error) for error in errors] == [[], [], [0]]  # 2.24, 2.24 and 1.96 are needed
    assert [judge([failing], LIMIT, error=error)[0][0].aside for error in (ALPHA, *errors)] == [
        True,
        False,
        False,
        True,
    ]


def test_settings_that_a_proof_protects_share_once_from_the_weakest_protection_on():
    proven = [sure(0.08, 0.5, 0.01, limit) for limit in (0.02, 0.05, 0.08)]
    assert recommends(proven) == [0, 1, 2]
    assert recommends([proven[0], sure(0.1, 0.0, 0.01, 0.05), proven[2]]) == [2]  # behind one that fails none is tested


def test_without_a_defense_aware_attack_only_a_proof_protects():
    settings = [sure(0.02, 0.0, 0.01), sure(0.02, 0.0, 0.01, 0.05)]
    found, sharers = judge(settings, LIMIT, aware=False)
    assert ([one.protects for one in found], sharers) == (["open", "yes"], 1)
    found, _ = judge(settings, LIMIT, risk="proven")
    assert [one.protects for one in found] == ["no", "yes"]


@pytest.mark.parametrize(("repeats", "coins"), [(1, False), (4, True), (16, True), (16, False)])
def test_a_reach_holds_as_often_as_it_says_on_one_side(repeats: int, coins: bool):
    """Of 400 studies; the error of 10 % may seem to be 15 % once in 1,000 times."""
    rng, level, n, missed = np.random.default_rng(repeats), 0.1, 200, 0
    for _ in range(400):
        member = rng.random((repeats, n)) < 0.5 if coins else np.arange(n) % 2 == 0
        own = np.sqrt(OWN) * rng.normal(size=n)
        score = own + np.sqrt(1 - OWN) * rng.normal(size=(repeats, n))
        found = advantage_of(score > 0, member)
        missed += not found.value + found.reach(level) >= 0
    assert missed / 400 <= 0.15


def test_a_row_keeps_what_every_level_needs():
    rng = np.random.default_rng(0)
    score, member = rng.normal(size=(6, 100)), rng.random((6, 100)) < 0.5
    rows = tidy(measure_thresholds(score, member, "a"))
    assert tuple(rows["threshold"]) == SHARES
    assert set(PARTS) <= set(rows)
    values = aligned(score)
    top = advantage_of(values > np.sort(values, axis=None)[299], member)
    (half,) = [of_row(row) for _, row in rows[rows["threshold"] == 0.5].iterrows()]
    assert [half.reach(level) for level in (0.05, 0.001)] == pytest.approx([top.reach(x) for x in (0.05, 0.001)])
    assert half.value == pytest.approx(top.value)


def main(worlds: int) -> None:
    """Prints how often a setting is recommended, and how often the oracle would."""
    print("| world | worlds | R = 8 | 16 | 24 | 32 |\n| --- | ---: | ---: | ---: | ---: | ---: |")
    for name, kind in (AT_THE_LIMITS | WITHIN).items():
        rng, found = np.random.default_rng(len(name)), []
        for _ in range(worlds):
            study = draw(kind, 32, rng)
            settings = [conditions(study, repeats) for repeats in (8, 16, 24, 32)]
            found.append([(bool(recommends(one)), oracle(one)) for one in settings])
        rates = np.mean(found, axis=0)
        cells = [f"{a:.3f}" + (f" ({b:.3f})" if name in WITHIN else "") for a, b in rates]
        print(f"| {name} | {worlds} | {' | '.join(cells)} |", flush=True)
    print("| world | worlds | any of three planned looks | three looks at 5 % each |\n| --- | ---: | ---: | ---: |")
    for name, kind in (AT_THE_LIMITS | WITHIN).items():
        rng = np.random.default_rng([73, len(name)])
        planned, careless = np.mean([at_looks(kind, rng) for _ in range(worlds)], axis=0)
        print(f"| {name} | {worlds} | {planned:.3f} | {careless:.3f} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
