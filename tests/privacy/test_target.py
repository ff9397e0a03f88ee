"""Noise chosen by risk: the target is reached and never exceeded, and what makes no sense is refused in a sentence."""

from dataclasses import replace

import pytest
from asked import calibrated
from scipy.stats import norm

from dp_leakage.common.errors import UserError
from dp_leakage.privacy.accounting.curve import noise_for, proven_curve
from dp_leakage.privacy.defenses import expanded
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.privacy.target import Target
from dp_leakage.privacy.training import Training

SCHEDULE = {"epochs": 20, "batch_size": 50, "dataset_size": 500}
TARGETS = [{"advantage": 0.1}, {"tpr": 0.05, "fpr": 0.001}, {"precision": 0.5, "prior": 0.01}]
MECHANISMS = {
    "shuffle": (Mechanism(sampler="shuffle"), "replace_one"),
    "shuffle, a record in or out": (Mechanism(sampler="shuffle"), "zero_out"),
    "poisson": (Mechanism(sampler="poisson"), "replace_one"),
    "poisson, a record in or out": (Mechanism(sampler="poisson"), "add_remove"),
    "fixed size": (Mechanism(sampler="wor"), "replace_one"),
    "batch": (Mechanism(sampler="poisson", unit="batch"), "replace_one"),
    "class": (Mechanism(sampler="class_poisson", unit="class"), "replace_one"),
    "directional": (Mechanism(sampler="shuffle", bound="normalize", noise="vmf"), "replace_one"),
}


def risk(target, training, neighbors, noise):
    name = "kappa" if training.mechanism.noise == "vmf" else "noise_multiplier"
    curve = proven_curve(replace(training, mechanism=replace(training.mechanism, **{name: noise})), neighbors)
    if target.measure == "advantage":
        return curve.advantage
    return float(curve.tpr(target.fpr)) if target.measure == "tpr" else curve.precision(target.prior, target.fpr)


@pytest.mark.parametrize("given", TARGETS, ids=str)
@pytest.mark.parametrize("name", MECHANISMS)
def test_the_noise_of_a_target_gives_the_wanted_risk_back_and_no_more(name, given):
    mechanism, neighbors = MECHANISMS[name]
    training, target = Training(mechanism, blocks=(100,), **SCHEDULE), Target.read(given)
    noise = noise_for(target, training, neighbors)
    found = risk(target, training, neighbors, noise)
    assert found <= target.value
    assert found == pytest.approx(target.value, rel=2e-3)


def test_the_noise_of_an_advantage_without_sampling_is_the_closed_form():
    training = Training(Mechanism(sampler="shuffle"), **SCHEDULE)
    mu = 2 * norm.ppf(0.55)
    assert noise_for(Target.read({"advantage": 0.1}), training, "replace_one") == pytest.approx(
        2 * 20**0.5 / mu, rel=1e-5
    )


def test_a_private_projection_is_part_of_the_risk():
    target, plain = Target.read({"advantage": 0.3}), Training(Mechanism(sampler="poisson"), **SCHEDULE)
    alone = noise_for(target, plain, "replace_one")
    with_projection = replace(plain, projection_noise=4.0)
    assert noise_for(target, with_projection, "replace_one") > 1.02 * alone
    with pytest.raises(UserError, match=r"target: the private PCA alone exceeds advantage ≤ 0.05"):
        noise_for(Target.read({"advantage": 0.05}), with_projection, "replace_one")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "target is {}; expected {advantage: 0.1}"),
        ({"advantage": 0.1, "tpr": 0.2}, "expected {advantage: 0.1}"),
        ({"advantage": 0}, "target.advantage is 0; expected a number above 0 and below 1"),
        ({"advantage": True}, "target.advantage is True"),
        ({"tpr": 0.1}, "lacks the key 'fpr', which tpr needs"),
        ({"tpr": 0.01, "fpr": 0.05}, "target.tpr is 0.01; expected above the fpr, 0.05"),
        ({"advantage": 0.1, "fpr": 0.5}, "unknown key 'fpr'"),
        ({"precision": 0.3, "prior": 0.5}, "target.precision is 0.3; expected above the prior, 0.5"),
        ({"precision": 0.99, "prior": 0.001, "fpr": 0.01}, "is never exceeded"),
    ],
)
def test_a_target_without_sense_is_refused_in_a_sentence(given, sentence):
    with pytest.raises(UserError) as caught:
        Target.read(given)
    assert sentence in str(caught.value)


def test_neighbors_that_a_mechanism_does_not_protect_have_no_noise():
    directional = Training(Mechanism(sampler="poisson", bound="normalize", noise="vmf"), **SCHEDULE)
    with pytest.raises(UserError, match="proves nothing for add_remove neighbors, whatever its noise"):
        noise_for(Target.read({"advantage": 0.1}), directional, "add_remove")


def test_a_defense_and_a_study_may_give_targets_in_place_of_epsilon():
    entry = {"defense": "gaussian", "accountant": "rdp", "target": [{"advantage": 0.1}, {"tpr": 0.05, "fpr": 0.001}]}
    names = [name for name, _, _ in expanded(entry, {"delta": 1e-5, "epsilon": [1]})]
    assert names == ["gaussian-rdp-advantage=0.1", "gaussian-rdp-tpr=0.05-fpr=0.001"]
    plain = {"defense": "gaussian", "accountant": "zcdp"}
    spec = {"delta": 1e-5, "epsilon": [1], "target": {"precision": 0.5, "prior": 0.01}}
    names = [name for name, _, _ in expanded(plain, spec)]
    assert names == ["gaussian-zcdp-eps=1", "gaussian-zcdp-precision=0.5-prior=0.01-fpr=0.001"]


@pytest.mark.parametrize(("design", "neighbors"), [("split", "replace_one"), ("coins", "add_remove")])
def test_the_noise_of_a_cell_follows_the_game_of_its_study(design, neighbors):
    entry = {"defense": "gaussian", "accountant": "rdp", "target": {"advantage": 0.2}}
    ((_, protection, _),) = expanded(entry, {"delta": 1e-5, "design": design})
    mechanism = calibrated(protection.settings, **SCHEDULE)
    curve = proven_curve(Training(mechanism, **SCHEDULE), neighbors)
    assert curve.advantage == pytest.approx(0.2, rel=2e-3)
    assert curve.advantage <= 0.2
