"""The sentence on groups names the group that stands out most, and pays for having looked at all."""

import numpy as np
import pandas as pd
import pytest

from dp_leakage.metrics.groups import measure_groups
from dp_leakage.metrics.intervals import Estimate
from dp_leakage.metrics.simultaneous import simultaneous
from dp_leakage.report.groups import group_claims

CELL = {"dataset": "digits", "model": "mlp", "defense": "none", "accountant": ""}
PRIVATE = CELL | {"defense": "gaussian-rdp-eps=1", "accountant": "rdp"}


def rows(found: dict[tuple[str, str], tuple[float, float, float]], cell: dict[str, str] = CELL) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {**cell, "metric": "group_excess", "repeat": "all", "attack": "yeom", "by": by, "group": group}
            | dict(zip(("value", "low", "high"), numbers, strict=True))
            for (by, group), numbers in found.items()
        ]
    )


def test_the_group_that_stands_out_is_named_with_an_interval_for_all_that_were_looked_at():
    frame = rows({("class", "3"): (0.3, 0.2, 0.4), ("age", "over 30 up to 45"): (-0.1, -0.2, 0.0)})
    (claim,) = group_claims(frame)
    held = simultaneous(Estimate(0.3, 0.2, 0.4), 2, (-2.0, 2.0))
    assert claim.words == (
        f"By group, undefended models: the attack finds more among records of class 3 than among all others: the "
        f"advantage is larger by 0.300 [{held.low:.3f}, {held.high:.3f}]. That is Yeom membership on MLP, defense "
        "none, the most of 2 combinations of group, attack and model, whose intervals hold together."
    )
    assert (claim.numbers[0].low, claim.numbers[0].among) == (held.low, 2)
    assert held.low < 0.2


def test_a_smaller_excess_that_chance_does_not_explain_is_not_said_to_be_the_most():
    (claim,) = group_claims(rows({("class", "3"): (0.3, -0.4, 1.0), ("class", "4"): (0.2, 0.15, 0.25)}))
    assert "finds more among records of class 4 than" in claim.words
    assert claim.words.endswith(
        "defense none: of 2 combinations of group, attack and model, whose intervals hold together, the most that "
        "chance does not explain."
    )


def test_a_group_alone_is_the_most_of_nothing_and_one_that_is_surely_lower_is_told_as_it_is():
    (claim,) = group_claims(rows({("class", "3"): (-0.02, -0.03, -0.01)}))
    assert claim.words == (
        "By group, undefended models: in no group does an attack surely find more; nearest come records of class 3, "
        "where the advantage differs by −0.020 [−0.030, −0.010]. That is Yeom membership on MLP, defense none."
    )


def test_where_no_group_stands_out_beyond_chance_that_is_said_of_private_models_by_themselves():
    frame = pd.concat(
        [
            rows({("class", "3"): (0.3, 0.2, 0.4), ("class", "4"): (0.0, -0.1, 0.1)}),
            rows({("duplicates", "once"): (0.1, 0.01, 0.19), ("class", "4"): (0.0, -0.1, 0.1)}, PRIVATE),
        ]
    )
    undefended, private = group_claims(frame)
    assert "finds more among records of class 3" in undefended.words
    assert (
        "By group, private models: in no group does an attack surely find more; nearest come records that occur once,"
        in private.words
    )
    assert private.id == "digits.groups.private"
    assert group_claims(frame.iloc[:0]) == []


@pytest.mark.parametrize(
    ("by", "group", "words"),
    [
        ("class", "benign", "records of class benign"),
        ("age", "over 30 up to 45", "records with age: over 30 up to 45"),
        ("duplicates", "several times", "records that occur several times"),
    ],
)
def test_a_group_is_called_by_the_users_own_names(by, group, words):
    (claim,) = group_claims(rows({(by, group): (0.3, 0.2, 0.4)}))
    assert f"finds more among {words} than among all others" in claim.words


def test_a_group_is_named_in_few_worlds_where_none_leaks_more():
    """Ten groups that leak alike, so any that is named is wrong: 3 of 60 worlds are expected, and over 9 have a chance
    of .0005.
    """
    wrong = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        member = rng.random((8, 600)) < 0.5
        score = rng.normal(size=(8, 600)) + rng.normal(size=600) + 1.0 * member
        n = {"repeat": np.repeat(np.arange(8), 600), "record": np.tile(np.arange(600), 8)}
        frame = pd.DataFrame({**n, "member": member.ravel(), "score": score.ravel(), "flagged": False})
        groups = {"class": {str(g): np.flatnonzero(np.arange(600) % 10 == g) for g in range(10)}}
        found = pd.DataFrame(measure_groups({"yeom": frame}, groups)).assign(**CELL)
        (claim,) = group_claims(found)
        wrong += "finds more" in claim.words
    assert wrong <= 9


def test_a_group_that_leaks_is_named():
    rng = np.random.default_rng(1)
    member = rng.random((8, 600)) < 0.5
    score = rng.normal(size=(8, 600)) + 2.0 * (member & (np.arange(600) % 10 == 7))
    n = {"repeat": np.repeat(np.arange(8), 600), "record": np.tile(np.arange(600), 8)}
    frame = pd.DataFrame({**n, "member": member.ravel(), "score": score.ravel(), "flagged": False})
    groups = {"class": {str(g): np.flatnonzero(np.arange(600) % 10 == g) for g in range(10)}}
    (claim,) = group_claims(pd.DataFrame(measure_groups({"yeom": frame}, groups)).assign(**CELL))
    assert "finds more among records of class 7 " in claim.words
