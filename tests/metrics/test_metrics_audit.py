"""Bounds from canary scores: an exact randomized response is never exceeded but at the stated rate, and is found."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dp_leakage.audits import approximate_dp
from dp_leakage.data.audit_design import AuditDesign
from dp_leakage.metrics.audit import measure_audit

DESIGN = AuditDesign("one_run", models=40, share=0.5, neighbors="zero_out", canary="natural")


def responses(epsilon, models=40, places=50, seed=0):
    """Scores whose sign is each coin, told truly with probability e^ε/(1 + e^ε): ε-DP and no better."""
    rng = np.random.default_rng(seed)
    held = rng.random((models, places)) < 0.5
    true = rng.random(held.shape) < 1 / (1 + np.exp(-epsilon))
    size = rng.random(held.shape)
    return pd.DataFrame(
        {
            "repeat": np.repeat(np.arange(models), places),
            "place": np.tile(np.arange(places), models),
            "held": held.ravel(),
            "score": np.where(held == true, size, -size).ravel(),
        }
    )


def rows_of(frame, comparisons=1, delta=0.0, **changes):
    designs = {name: replace(DESIGN, design=name, **changes) for name in ("one_run", "many_runs", "trials")}
    whole = pd.concat([frame.assign(design=name) for name in designs])
    return measure_audit(whole, designs, lambda design: approximate_dp(delta), comparisons, 0)


def bounds(frame, comparisons=1):
    return {row["audit"]: row["value"] for row in rows_of(frame, comparisons)}


def test_one_run_finds_most_of_a_known_epsilon_and_more_comparisons_find_less():
    found = bounds(responses(2.0))
    assert 1.6 < found["one_run"] <= 2.0
    assert bounds(responses(2.0), 1000)["one_run"] < found["one_run"]


def test_many_runs_find_something_across_many_models():
    assert 0.5 < bounds(responses(4.0, models=400, places=2))["many_runs"] <= 4.0


@pytest.mark.parametrize("design", ["one_run", "many_runs"])
def test_a_true_claim_is_exceeded_at_the_stated_rate_at_most(design):
    """Of 200 audits at 95 %, more than 21 above the truth happen once in 1,000 runs."""
    found = [bounds(responses(1.0, models=20, places=10, seed=seed))[design] for seed in range(200)]
    assert np.sum(np.array(found) > 1.0) <= 21


def test_a_row_says_what_was_done_and_what_the_design_could_have_shown():
    one_run, many_runs, _ = rows_of(responses(8.0, models=100, places=4))
    assert (one_run["coins"], many_runs["coins"]) == (400, 100)
    assert one_run["guesses"] == 200
    assert one_run["alone"] == one_run["value"]
    assert one_run["reach"] > many_runs["reach"] > 2


def exchanged(frame, delta=0.0):
    """(design, neighbors) → bound, of canaries that change places."""
    rows = rows_of(frame, 1, delta, neighbors="replace_one")
    return {(row["audit"], row["neighbors"]): row["value"] for row in rows}


@pytest.mark.parametrize("design", ["one_run", "many_runs", "trials"])
def test_without_delta_an_exchange_is_two_presences(design):
    found = exchanged(responses(4.0, models=400, places=2))
    assert 0 < found[design, "presence"] == pytest.approx(found[design, "replace_one"] / 2, abs=1e-6)


def test_with_delta_the_bound_on_a_presence_refutes_twice_its_epsilon_at_the_delta_that_goes_with_it():
    """(ε, δ) of a presence is (2ε, (1 + e^ε)δ) of an exchange; there the audit just refutes."""
    frame = responses(6.0, models=100, places=20)
    found = exchanged(frame, 1e-3)
    present = found["one_run", "presence"]
    at_its_delta = exchanged(frame, (1 + np.exp(present)) * 1e-3)["one_run", "replace_one"]
    assert at_its_delta == pytest.approx(2 * present, abs=1e-3)
    assert present < found["one_run", "replace_one"] / 2  # more δ allows more


def test_bounds_of_a_presence_have_no_twin():
    assert {row["neighbors"] for row in rows_of(responses(2.0))} == {"zero_out"}
