"""Design coins: every repeat is a target, and all the others are its references."""

import numpy as np
import pytest
from scipy.stats import norm

from dp_leakage.attacks import ATTACKS
from dp_leakage.attacks.membership import attack_r, combined, lira, posterior, rmia
from dp_leakage.attacks.membership.references import leave_one_out, mean_where
from dp_leakage.attacks.signals import Signals

POOL, OTHERS = 300, 120
WITH_REFERENCES = [name for name, entry in ATTACKS.items() if entry.needs == "reference"]
MODULES = {"lira": lira, "rmia": rmia, "attack_r": attack_r, "posterior": posterior, "combined": combined}


def tossed(repeats=8, gain=1.0, seed=0, held=None, deviation=1.0):
    """Signals of planted Gaussian margins: a record's own level, and ``gain`` more where a model trained on it."""
    rng = np.random.default_rng(seed)
    n = POOL + OTHERS
    held = rng.random((repeats, POOL)) < 0.5 if held is None else held
    inside = np.concatenate([held, np.zeros((repeats, OTHERS), bool)], axis=1)
    margin = np.linspace(-2, 3, n)[rng.permutation(n)] + gain * inside + deviation * rng.normal(size=(repeats, n))
    role = np.repeat(["pool", "target_nonmembers"], [POOL, OTHERS])
    y, correct = np.zeros(n, np.int64), margin > 0
    own = 1 / (1 + np.exp(-margin))
    probability = np.stack([own, 0.7 * (1 - own), 0.3 * (1 - own)], axis=2).astype(np.float32)
    rank = np.ones((repeats, n), np.int32)
    return Signals(np.arange(n), y, role, inside, margin[None], correct, rank, probability)


def module_of(name):
    return MODULES[ATTACKS[name].module.rpartition(".")[2]]


@pytest.mark.parametrize("variance", ["fixed", "per_record"])
@pytest.mark.parametrize("name", WITH_REFERENCES)
def test_a_targets_scores_are_those_by_the_other_repeats_alone(name, variance):
    settings = ATTACKS[name].settings | ({"variance": variance} if "variance" in ATTACKS[name].settings else {})
    module, said = module_of(name), tossed()
    found = leave_one_out(module, said, said, settings, 0)
    for r in range(said.size):
        others = said.models(np.arange(said.size) != r)
        alone = module.score(said.models(np.array([r])), others, settings, 0)
        np.testing.assert_allclose(found.score[r], alone.score[0], rtol=1e-9, atol=1e-9)
        np.testing.assert_array_equal(found.flagged[r], alone.flagged[0])


@pytest.mark.parametrize("repeats", [8, 5])
def test_references_of_an_undefended_cell_leave_out_the_repeat_of_the_same_coins(repeats):
    held = np.random.default_rng(5).random((8, POOL)) < 0.5
    target, undefended = tossed(repeats, 0.2, 1, held[:repeats]), tossed(8, 1.0, 2, held)
    found = leave_one_out(lira, target, undefended, ATTACKS["lira_unaware"].settings, 0)
    for r in range(repeats):
        others = undefended.models(np.arange(8) != r)
        alone = lira.score(target.models(np.array([r])), others, ATTACKS["lira_unaware"].settings, 0)
        np.testing.assert_allclose(found.score[r], alone.score[0], rtol=1e-9)


def test_with_many_repeats_the_score_of_planted_gaussians_is_their_likelihood_ratio():
    repeats, gain, deviation = 3000, 1.5, 0.7
    rng = np.random.default_rng(3)
    held = rng.random((repeats, POOL)) < 0.5
    said = tossed(repeats, gain, 3, held, deviation)
    level = (said.margin[0] - gain * said.trained_on)[:, :POOL].mean(axis=0)
    margin = said.margin[0][:, :POOL]
    exact = norm.logpdf(margin, level + gain, deviation) - norm.logpdf(margin, level, deviation)
    found = leave_one_out(lira, said, said, ATTACKS["lira_online"].settings, 0).score
    # Of means over 1,500 models: an error of about .7/√1500 = .018, times the slope gain/deviation² = 3.1.
    assert np.abs(found - exact).max() < 0.6
    assert np.abs(found - exact).mean() < 0.06


def test_with_known_moments_the_score_is_the_likelihood_ratio_to_the_last_digits():
    """Margins of two values only, whose means and deviation without a model are worked out by hand."""
    rng = np.random.default_rng(4)
    said = tossed(6, 1.0, 4)
    margin, inside = said.margin[0][:, :POOL], said.trained_on[:, :POOL]
    found = leave_one_out(lira, said, said, ATTACKS["lira_online"].settings, 0).score
    for r, i in zip(rng.integers(6, size=5), rng.integers(POOL, size=5), strict=True):
        others = np.arange(6) != r
        chosen = {side: [margin[others][inside[others][:, j] == side, j] for j in range(POOL)] for side in (0, 1)}
        if any(len(chosen[side][i]) == 0 for side in (0, 1)):
            continue
        mean = {side: np.mean(chosen[side][i]) for side in (0, 1)}
        squares = {side: sum(np.sum((v - v.mean()) ** 2) for v in chosen[side] if len(v)) for side in (0, 1)}
        freedom = {side: sum(max(len(v) - 1, 0) for v in chosen[side]) for side in (0, 1)}
        spread = {side: np.sqrt(squares[side] / freedom[side]) for side in (0, 1)}
        densities = [norm.logpdf(margin[r, i], mean[side], spread[side]) for side in (0, 1)]
        assert found[r, i] == pytest.approx(densities[1] - densities[0], rel=1e-9)


def test_means_without_one_model_fall_back_on_all_records_where_nobody_is_left():
    values = np.array([[1.0, 10.0], [3.0, 20.0], [5.0, 30.0]])
    chosen = np.array([[True, True], [False, True], [False, True]])
    found = mean_where(values, chosen, left_out=True)
    np.testing.assert_allclose(found[0], [25.0, 25.0])  # of the first record nobody is left: all chosen, but the first
    np.testing.assert_allclose(found[1], [1.0, 20.0])


@pytest.mark.parametrize("name", ["lira_online", "rmia_online"])
def test_models_that_tell_nothing_are_not_told_from_others(name):
    """Without a leak the area under the ROC is a half: within 4.5 standard errors, false alarm 1e-5."""
    from dp_leakage.metrics.roc import area

    said = tossed(32, 0.0, 9)
    scores = leave_one_out(module_of(name), said, said, ATTACKS[name].settings, 0).score
    areas = [area(s[None, m], s[None, ~m]).value for s, m in zip(scores, said.trained_on[:, :POOL], strict=True)]
    assert abs(np.mean(areas) - 0.5) < 4.5 * 0.5 / np.sqrt(3 * POOL / 2) / np.sqrt(32)
