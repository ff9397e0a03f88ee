"""What the page says where members and others come from two sources, by planted worlds."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from planted import Cell, World, draw

from dp_leakage.metrics.resemblance import Pair, Resemblance
from dp_leakage.metrics.rows import completed
from dp_leakage.report import answers, claims_of, singled_out
from dp_leakage.report.elsewhere import Elsewhere, claims_elsewhere
from dp_leakage.report.refuted import refuted_claims

DRAWS = 6
UNTOLD = "cannot be told without a model trained in the same way on none of them"


UNLESS = "unless members and non-members differ in something that a guess without the model did not find."


def world(shift, apart, **more):
    return World((Cell((shift, shift / 2)),), by_coins=False, repeats=1, n=800, apart=apart, **more)


def metrics(given, seed):
    return draw(given, np.random.default_rng(seed)).metrics.assign(n_nonmembers=100)


def with_references(frame, value, half, models=4):
    own = frame.iloc[:1].assign(metric="auc_beyond", repeat="all", attack="", against="references", models=models)
    return completed(pd.concat([frame, own.assign(value=value, low=value - half, high=value + half)]))


def told(frame, elsewhere=None):
    """What decides on a model that was trained elsewhere and what that rests on, and the attacks whose finds are
    listed.
    """
    elsewhere = elsewhere or Elsewhere(("mlp",))
    found = answers(frame, elsewhere=elsewhere.models)
    decision, evidence, *_ = claims_elsewhere(found[0], elsewhere, frame)
    return f"{decision.words} {evidence.words}", singled_out(found)


@pytest.mark.parametrize("shift", [0.0, 0.8])
def test_where_features_differ_nothing_is_said_to_be_learned_and_nobody_is_listed(shift):
    for seed in range(DRAWS):
        words, listed = told(metrics(world(shift, apart=1.0), seed))
        assert "the model leaks" not in words
        assert "On d, members and non-members differ: a guess that never saw the model finds members with" in words
        assert UNTOLD in words
        assert listed == set()


def test_where_nothing_differs_a_leak_is_still_a_leak_and_none_is_none():
    leaking = [told(metrics(world(0.8, apart=0.0), seed)) for seed in range(DRAWS)]
    assert all(f"the model leaks who was in its training data, {UNLESS}" in words for words, _ in leaking)
    assert all(listed for _, listed in leaking)
    silent = [told(metrics(world(0.0, apart=0.0), seed))[0] for seed in range(DRAWS)]
    assert sum("no attack tried is shown to tell" in words for words in silent) >= DRAWS - 1  # each with .95
    assert not any("the model leaks" in words for words in silent)


def test_what_is_proven_is_given_one_source_and_no_proof_covers_a_difference():
    given = World(
        (Cell((0.3,), 0.8), Cell((0.1,), 0.79, mu=0.2)), by_coins=False, repeats=3, n=400, n_test=2000, apart=1.0
    )
    study = draw(given, np.random.default_rng(0))
    (answer,) = answers(study.metrics, given.acceptable, {"d": 0.1}, True, (), study.tested)
    said = {claim.kind: claim.words for claim in claims_of([answer], {"d": ()}, True)}
    assert said["answer"].endswith("no attack can have an advantage above 0.08 (limit 0.1).")
    assert "No ε or proof here covers a difference between members and others." in said["caveat"]
    assert "Given that members and others come from one source, no attack can have" in said["limits"]
    assert "is proven given that members and others come from one source" in said["accusation"]
    assert "the strongest attack" in said["rates"]


def test_a_reversed_auc_is_a_difference_and_no_chance():
    frame = metrics(world(0.0, apart=0.0), 0)
    of = (frame["metric"] == "membership_auc") & (frame["attack"] == "attack_0")
    frame.loc[of, ["value", "low", "high"]] = 0.34, 0.3, 0.38
    words, listed = told(frame)
    assert "members and non-members differ: attack 0 ranks members below the others (AUC 0.340 [" in words
    assert "chance alone" not in words
    assert listed == set()


def test_references_that_saw_none_decide_whatever_differs():
    frame = metrics(world(0.8, apart=1.0), 0)
    words, listed = told(with_references(frame, 0.1, 0.03))
    assert (
        "the model leaks who was in its training data: the AUC of its loss exceeds that of 4 reference models " in words
    )
    assert "trained on none of these records by 0.100 [0.070, 0.130]. But members and non-members differ" in words
    assert listed == set()
    words, _ = told(with_references(frame, 0.01, 0.03))
    assert "the model leaks" not in words
    assert "That any of it was learned is not shown" in words


def test_references_unlike_the_model_decide_nothing():
    unlike = Resemblance(Pair(0.9, 0.6, 0.01, 4), None)
    frame = with_references(metrics(world(0.8, apart=1.0), 0), 0.1, 0.03)
    words, _ = told(frame, Elsewhere(("mlp",), resemblance={("d", "mlp"): unlike}))
    assert "the model leaks" not in words
    assert UNTOLD in words
    assert "Beware" in words


def test_where_only_labels_are_known_a_leak_is_one_on_a_condition():
    frame = metrics(world(0.8, apart=0.0), 0)
    words, listed = told(frame.assign(seen=np.where(frame["seen"] != "", "labels", "")))
    assert "the model leaks" not in words
    assert "If both were drawn from one source, it leaks who was in its training data." in words
    assert listed == set()


def test_a_study_of_a_publishers_split_says_so_first_and_refutes_no_claim_by_a_difference():
    """A claim of ε that the scores exceed by far, and hold for all that was learned."""
    cells = (Cell((0.0,)), Cell((0.0,), 0.79, mu=0.05))
    differ = metrics(World(cells, by_coins=False, repeats=6, n=2000, n_test=2000, apart=2.0), 1)
    found = answers(differ)
    (claim,) = [claim for claim in claims_of(found, {}) if claim.kind == "sources"]
    assert claim.screen == 1
    assert claim.words.startswith(
        "On d, members and non-members differ: a guess that never saw the model finds members"
    )
    assert UNTOLD in claim.words
    assert not any(one.shown_to_leak or one.refuted for one in found[0].settings)
    assert refuted_claims(differ) == []
    unknown = differ[~differ["metric"].isin(["blind_auc", "blind_advantage", "auc_beyond"])]
    assert refuted_claims(unknown) != []
    alike = answers(metrics(World(cells, by_coins=False, repeats=6, n=2000, n_test=2000, apart=0.0), 1))
    assert not [claim for claim in claims_of(alike, {}) if claim.kind == "sources"]


def test_a_shift_is_no_protection_however_little_attacks_reach():
    cells = (Cell((0.0,)), Cell((0.0,), 0.8, mu=1.0, proves=False))
    frame = metrics(World(cells, by_coins=False, repeats=6, n=4000, n_test=2000, apart=0.0), 1)
    assert "yes" in {one.protects for one in answers(frame)[0].settings if one.private}
    of = frame["metric"] == "blind_auc"
    frame.loc[of, ["value", "low", "high"]] = 0.6, 0.55, 0.65
    assert {one.protects for one in answers(frame)[0].settings if one.private} == {"open"}
    assert replace(answers(frame)[0].settings[0]).leak.shifted
