"""The attack that reads the whole posterior, also where a defense hides a part of it."""

from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
from scipy.special import logit
from scipy.stats import multivariate_normal
from sklearn.metrics import roc_auc_score

from dp_leakage.attacks import ATTACKS
from dp_leakage.attacks.membership import lira, posterior
from dp_leakage.attacks.membership.posterior import Law
from dp_leakage.common.errors import UserError

PLAIN = ATTACKS["posterior"].settings
ADAPTIVE = {name for name, attack in ATTACKS.items() if attack.adapts}
LABELS_ALONE = {"label_noise", "boundary"}  # in test_label_only: what is done to confidences changes nothing
HIDING = sorted(ADAPTIVE - LABELS_ALONE)


@pytest.fixture(scope="module")
def planted():
    """The law of answers of two numbers, and 5 references and a target of 3,000 records by it, half of them in."""
    rng = np.random.default_rng(0)

    def covariance(scale):
        root = rng.normal(size=(2, 2))
        return scale * (root @ root.T + 0.3 * np.eye(2))

    law = Law(
        np.array([1.0, -2.0]), covariance(4), np.array([0.8, 0.3]), covariance(0.5), covariance(1), covariance(0.6)
    )
    n, models = 3000, 6
    inside = rng.random((models, n)) < 0.5
    own = rng.multivariate_normal(law.mean, law.spread, n)
    gain = rng.multivariate_normal(law.gain, law.gains, n)
    chance = [rng.multivariate_normal(np.zeros(2), part, (models, n)) for part in (law.without, law.within)]
    said = own + np.where(inside[..., None], gain + chance[1], chance[0])
    return law, said, inside


def joint(law, inside):
    """Mean and covariance of all answers about a record at once, one model after the other, given who was trained."""
    k = len(inside)
    both = np.outer(inside, inside).astype(float)
    covariance = np.kron(np.ones((k, k)), law.spread) + np.kron(both, law.gains)
    for model, one in enumerate(inside):
        place = slice(2 * model, 2 * model + 2)
        covariance[place, place] += law.within if one else law.without
    return np.tile(law.mean, k) + np.repeat(inside, 2) * np.tile(law.gain, k), covariance


def test_scores_are_the_ratio_of_the_joint_densities_of_all_answers(planted):
    """Also for records that all references saw, or none."""
    law, said, inside = planted
    found = posterior._of_law(law, said[:1, :200], said[1:, :200], inside[1:, :200]).score[0]
    assert {0, 5} <= set(inside[1:, :200].sum(axis=0).tolist())
    for record in range(200):
        answers = said[:, record].ravel()
        densities = [
            multivariate_normal(*joint(law, np.r_[one, inside[1:, record]])).logpdf(answers) for one in (True, False)
        ]
        assert found[record] == pytest.approx(densities[0] - densities[1], abs=1e-6)


def test_the_law_is_found_in_the_answers(planted):
    law, said, inside = planted
    found = posterior.law(said, inside)
    for name, tolerance in {"mean": 0.15, "gain": 0.08, "without": 0.08, "within": 0.08, "gains": 0.35}.items():
        np.testing.assert_allclose(getattr(found, name), getattr(law, name), atol=tolerance, err_msg=name)
    ours = posterior._of_law(found, said[:1], said[1:], inside[1:]).score[0]
    best = posterior._of_law(law, said[:1], said[1:], inside[1:]).score[0]
    assert roc_auc_score(inside[0], ours) > roc_auc_score(inside[0], best) - 0.01


def test_it_reads_more_than_margins(trained, signals):
    """A planted leak that lies in the share of another class alone, which no margin shows."""
    rng = np.random.default_rng(1)
    models, n, classes = 9, 800, 4
    inside = rng.random((models, n)) < 0.5
    y = rng.integers(classes, size=n)
    logits = rng.normal(size=(n, classes)) + rng.normal(size=(models, n, classes))
    other = (y + 1) % classes
    logits[:, np.arange(n), other] += 2.0 * inside
    rest = np.log(np.exp(logits).sum(axis=2) - np.exp(logits[:, np.arange(n), y]))
    logits[:, np.arange(n), y] = rest + rng.normal(size=(models, n))
    probability = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    margin = (logits[:, np.arange(n), y] - rest)[None]
    one = signals(trained.target, trained.data)
    said = replace(
        one, record=np.arange(n), y=y, role=np.full(n, "pool"), trained_on=inside, margin=margin, correct=margin[0] > 0,
        rank=np.ones((models, n), np.int32), probability=probability.astype(np.float32), x=None, losses=None,
    )  # fmt: skip
    target, reference = said.models(np.array([0])), said.models(np.arange(1, models))
    by_margin = lira.score(target, reference, ATTACKS["lira_online"].settings, 0).score[0]
    whole = posterior.score(target, reference, PLAIN | {"classes": 3}, 0).score[0]
    assert abs(roc_auc_score(inside[0], by_margin) - 0.5) < 0.06
    assert roc_auc_score(inside[0], whole) > 0.65


def hidden(probability, how):
    """What a defense shows that only hides, by other code than the attack's."""
    if how == "posterior_rounded":
        return np.array([float(f"{p:.2f}") for p in probability.ravel()]).reshape(probability.shape)
    if how == "posterior_rescaled":
        tempered = probability.astype(np.float64) ** (1 / 3)
        return tempered / tempered.sum(axis=2, keepdims=True)
    result = np.zeros(probability.shape)
    for place in np.ndindex(probability.shape[:2]):
        top, rest = probability[place].argmax(), probability[place].astype(np.float64)
        rest[top] = 0
        result[place] = 0 if how == "posterior_label" else 0.1 * rest / rest.sum()
        result[place][top] = 1 if how == "posterior_label" else 0.9
    return result


@pytest.mark.parametrize("name", HIDING)
def test_each_adaptive_attack_finds_on_a_defense_that_hides_what_it_finds_undefended(
    name, trained, signals, as_targets
):
    target = as_targets(signals(trained.target, trained.data))
    reference = signals(trained.reference_with_targets, trained.data)
    probability = hidden(target.probability, name)
    own = np.take_along_axis(probability, target.y[None, :, None], axis=2)[..., 0].clip(1e-9, 1 - 1e-9)
    behind = replace(target, probability=probability.astype(np.float32), margin=logit(own)[None])
    entry = ATTACKS[name]
    module, settings = import_module(entry.module), entry.settings
    member = target.asked.trained_on.ravel()
    areas = [roc_auc_score(member, module.score(one, reference, settings, 0).score.ravel()) for one in (target, behind)]
    assert areas[1] > areas[0] - 0.02
    assert areas[1] > 0.55


def test_references_of_one_kind_alone_are_refused(trained, signals, as_targets):
    target = as_targets(signals(trained.target, trained.data))
    reference = signals(trained.reference, trained.data)
    with pytest.raises(UserError, match="no reference model was trained with any"):
        posterior.score(target, replace(reference, trained_on=np.zeros_like(reference.trained_on)), PLAIN, 0)
