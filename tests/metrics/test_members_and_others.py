"""Members and others from two sources: no model that saw none of them is said to leak, and one that learned them is.

Ridge models on random features play the models, of 300 members and 300 others. Seeds are fixed.
"""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from dp_leakage.metrics.blind import blind_guess
from dp_leakage.metrics.sources import Asked, measure_sources

DRAWS = 6
# Shift of the first feature of members; share of the members' and of the others' labels drawn anew.
WORLDS = {
    "alike": (0.0, 0.0, 0.0),
    "features": (0.5, 0.0, 0.0),
    "features by far": (1.5, 0.0, 0.0),
    "noisy labels of others": (0.0, 0.0, 0.8),  # of two classes, so that 40 % are wrong
    "a few noisy labels of others": (0.0, 0.0, 0.3),
    "noisy labels of members": (0.0, 0.8, 0.0),
}
MIXED = np.random.default_rng(0).normal(size=(20, 400))


def records(member, world, rng):
    shift, of_members, of_others = world
    x = rng.normal(size=(len(member), 20))
    x[:, 0] += shift * member
    y = (x @ np.linspace(-1, 1, 20) + 0.5 * rng.normal(size=len(member)) > 0).astype(np.int64)
    noisy = rng.random(len(member)) < np.where(member, of_members, of_others)
    return x, np.where(noisy, rng.integers(0, 2, len(member)), y)


def margins(known, x, y):
    model = Ridge(alpha=0.3).fit(np.tanh(known[0] @ MIXED), 2 * known[1] - 1)
    return (2 * y - 1) * model.predict(np.tanh(x @ MIXED))


def asked(world, seed, learned, references=0, features=True):
    """A model that learned the members, or other records of their source; and references that learned others."""
    rng = np.random.default_rng(seed)
    member = rng.permutation(600) < 300
    x, y = records(member, world, rng)
    fresh = [records(np.ones(300, bool), world, rng) for _ in range(references + 1)]
    own = margins((x[member], y[member]) if learned else fresh[0], x, y)
    others = np.stack([margins(one, x, y) for one in fresh[1:]]) if references else None
    seen = None if others is None else np.zeros(others.shape, bool)
    return Asked(member, y, x if features else None, own[None], others, seen)


def judged(*given, **more):
    found = asked(*given, **more)
    rows = measure_sources({"loss": found.margin}, found)
    of = {(row["metric"], row.get("against")): row for row in rows}
    shifted = of["blind_auc", None]["low"] > 0.5
    beyond = of["auc_beyond", "blind"]["low"] > 0
    delta = of.get(("auc_beyond", "references"), {"low": np.nan})["low"] > 0
    return shifted, not shifted and beyond, delta


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("references", [0, 1, 4])
def test_a_model_that_saw_none_is_hardly_ever_said_to_leak(world, references):
    """Each claim is false in .025 of draws at most, so that of twelve two or more are with a chance of .04."""
    found = [judged(WORLDS[world], seed, learned=False, references=references) for seed in range(DRAWS)]
    assert sum(by_guess + delta for _, by_guess, delta in found) <= 1


@pytest.mark.parametrize("world", WORLDS)
def test_references_that_saw_none_show_what_a_model_learned_whatever_the_shift(world):
    found = [judged(WORLDS[world], seed, learned=True, references=4) for seed in range(DRAWS)]
    assert sum(delta for _, _, delta in found) >= 4


def test_without_references_a_leak_is_told_only_where_no_shift_is_found():
    found = {name: [judged(world, seed, True) for seed in range(DRAWS)] for name, world in WORLDS.items()}
    assert sum(leaks for _, leaks, _ in found["alike"]) >= 4
    for name in ("features by far", "noisy labels of others", "noisy labels of members"):
        assert all(shifted and not leaks for shifted, leaks, _ in found[name])
    assert sum(shifted for shifted, _, _ in found["features"]) >= 4
    assert not any(shifted for shifted, _, _ in found["alike"])


def test_a_difference_that_the_guess_cannot_learn_is_missed_so_that_a_leak_is_told_on_that_condition():
    """A fixed rule saw nobody, but knows labels that no simple model learns; 40 % of the others' are wrong."""
    told = 0
    for seed in range(DRAWS):
        rng = np.random.default_rng(seed)
        member = rng.permutation(800) < 400
        x = rng.normal(size=(800, 20))
        rule = np.sign(x[:, :3].prod(axis=1))
        sign = np.where(rng.random(800) < np.where(member, 0.0, 0.4), -rule, rule)
        margin = sign * rule + 0.1 * rng.normal(size=800)
        found = Asked(member, (sign > 0).astype(np.int64), x, margin[None], None, None)
        of = {(row["metric"], row.get("against")): row["low"] for row in measure_sources({"loss": margin[None]}, found)}
        told += of["blind_auc", None] <= 0.5 and of["auc_beyond", "blind"] > 0
    assert told >= DRAWS / 2


def test_answers_of_others_stand_for_features_that_are_not_known():
    noisy = WORLDS["noisy labels of others"]
    assert not any(judged(noisy, seed, False, features=False)[0] for seed in range(DRAWS))
    assert all(judged(noisy, seed, False, references=4, features=False)[0] for seed in range(DRAWS))
    rows = measure_sources({}, asked(noisy, 0, False, references=4, features=False))
    assert {row["seen"] for row in rows if "seen" in row} == {"labels, answers of other models"}


def test_the_guess_is_the_same_again_and_knows_classes_that_only_one_side_has():
    rng = np.random.default_rng(3)
    member, y, x = np.arange(60) % 2 == 0, np.arange(60) % 2, rng.normal(size=(60, 100))
    one = blind_guess(member, y, x)
    np.testing.assert_array_equal(one, blind_guess(member, y, x))
    assert one[member].min() > one[~member].max()
    np.testing.assert_array_equal(blind_guess(member[:3], y[:3]), np.full(3, 2 / 3))  # too few to learn from
