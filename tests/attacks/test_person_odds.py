"""How a person's scores weigh together is learned on the attacker's own models, and never on the target's truth."""

from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from dp_leakage.attacks import ATTACKS
from dp_leakage.attacks.membership import lira, yeom
from dp_leakage.attacks.membership.references import leave_one_out
from dp_leakage.attacks.person_odds import features, learned_odds, odds
from dp_leakage.attacks.persons import combined, person_columns
from dp_leakage.attacks.signals import Signals
from dp_leakage.common.errors import UserError

R, P = 12, 400
ONLINE = ATTACKS["lira_online"].settings
SETTINGS = {lira: ONLINE, yeom: ATTACKS["yeom"].settings}


def repeats(leak: float, seed: int, role: str = "pool", each: float = 0.0) -> Signals:
    """Persons with 2 to 12 records, of which the model remembers one: another one in each repeat.

    It remembers all of them a little if ``each`` is above 0.
    """
    rng = np.random.default_rng(seed)
    counts = rng.integers(2, 13, P)
    person, coins = np.repeat(np.arange(P), counts), rng.random((R, P)) < 0.5
    margin = rng.normal(size=(1, R, len(person))) + each * coins[:, person]
    starts = np.cumsum(counts) - counts
    for run in range(R):
        margin[0, run, starts + rng.integers(0, counts)] += leak * coins[run]
    n = len(person)
    return Signals(
        record=np.arange(n),
        y=np.zeros(n, np.int64),
        role=np.repeat(role, n),
        trained_on=coins[:, person],
        margin=margin,
        correct=margin[0] > 0,
        rank=np.ones((R, n), np.int32),
        person=person,
    )


def areas(attack: ModuleType, group: Signals) -> dict[str, float]:
    """The AUC of each way to combine, where the repeats of a cell are references or the attack needs none."""
    reference = group if attack is lira else None
    arguments = (group, reference, SETTINGS[attack], 0)
    said = leave_one_out(attack, *arguments) if reference else attack.score(*arguments)
    member = group.trained_on[:, np.unique(group.person, return_index=True)[1]]
    scores = {how: combined(said.score, group.person, how) for how in ("sum", "mean", "max")}
    scores["learned"] = odds(learned_odds(attack, *arguments, by_coins=reference is not None), said.score, group.person)
    return {how: float(np.mean([*map(roc_auc_score, member, score)])) for how, score in scores.items()}


def test_learned_finds_that_one_record_gives_a_person_away() -> None:
    found = areas(yeom, repeats(3.0, 0))
    assert found["learned"] > found["mean"] + 0.1
    assert found["learned"] > found["sum"] + 0.1
    assert found["learned"] > found["max"]  # which grows with the number of records


def test_learned_finds_that_all_records_give_a_person_away() -> None:
    """The standard error of an area over 12 · 400 persons is below .0083, and less of a difference on the same ones."""
    found = areas(lira, repeats(0.0, 6, each=0.5))
    assert max(found, key=found.__getitem__) in ("sum", "learned")
    assert found["learned"] > found["sum"] - 0.01
    assert found["sum"] > found["max"] + 0.03


@pytest.mark.parametrize("attack", [yeom, lira], ids=["yeom", "lira"])
def test_learned_finds_nothing_in_models_that_never_saw_anyone(attack: ModuleType) -> None:
    # The standard error of an AUC over 12 · 400 persons is .0083: beyond four of them once in 16,000 runs.
    assert abs(areas(attack, repeats(0.0, 1))["learned"] - 0.5) < 4 * 0.0083


@pytest.mark.parametrize("attack", [yeom, lira], ids=["yeom", "lira"])
def test_the_target_has_no_part_in_what_its_attacker_learns(attack: ModuleType) -> None:
    group = repeats(2.0, 2)
    other = replace(group, trained_on=group.trained_on.copy(), margin=group.margin.copy())
    other.trained_on[3] = ~other.trained_on[3]
    other.margin[:, 3] *= -2
    before, after = (
        learned_odds(attack, given, given if attack is lira else None, SETTINGS[attack], 0, by_coins=True)
        for given in (group, other)
    )
    weights = [[each[-1].coef_ for each in fitted] for fitted in (before, after)]
    assert [np.array_equal(a, b) for a, b in zip(*weights, strict=True)] == [run == 3 for run in range(R)]


def test_with_fixed_members_the_references_teach_and_the_target_does_not() -> None:
    group = repeats(2.0, 3, "target_members")
    target = group.models(np.arange(2))
    references = group.models(np.arange(2, R))
    fitted = learned_odds(lira, target, references, ONLINE, 0, by_coins=False)
    assert len(fitted) == 2
    assert fitted[0] is fitted[1]
    said = lira.score(target, references, ONLINE, 0)
    got = odds(fitted, said.score, group.person)
    member = target.trained_on[:, np.unique(group.person, return_index=True)[1]]
    assert np.mean([*map(roc_auc_score, member, got)]) > 0.6


def test_references_that_trained_on_nobody_asked_about_are_refused() -> None:
    group = repeats(2.0, 4)
    blind = replace(group, trained_on=np.zeros_like(group.trained_on))
    with pytest.raises(UserError, match="key 'of_person' is learned; that needs reference models"):
        learned_odds(lira, group, blind, ONLINE | {"online": False}, 0, by_coins=False)


def test_features_are_those_of_each_persons_scores() -> None:
    score, owner = np.array([[1.0, 2.0, 5.0]]), np.array([1, 0, 1])
    assert features(score, owner)[0].tolist() == [[2, 2, 2, 0], [6, 3, 5, np.log(2)]]


def test_a_score_file_holds_the_odds_and_flags_those_above_even() -> None:
    group = repeats(3.0, 5)
    said = yeom.score(group, None, SETTINGS[yeom], 0)
    fitted = learned_odds(yeom, group, None, SETTINGS[yeom], 0, by_coins=False)
    expected = odds(fitted, said.score, group.person)
    got = person_columns(group, said._asdict(), "learned", lambda *given: odds(fitted, *given))
    assert np.array_equal(got["score"], expected.ravel())
    assert np.array_equal(got["flagged"], expected.ravel() > 0)
