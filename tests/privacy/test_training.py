"""A training's facts: what they refuse, that they survive JSON, and that batches are drawn as they say."""

import json
import pickle
from dataclasses import asdict

import pytest
import torch
from asked import case_of

from dp_leakage.common.errors import UserError
from dp_leakage.privacy.accounting import ACCOUNTANTS, Case, epsilon_spent
from dp_leakage.privacy.mechanism import SAMPLERS, Mechanism
from dp_leakage.privacy.training import Training
from dp_leakage.provenance import fingerprint
from dp_leakage.study import step_code
from dp_leakage.training.samplers import draw_epoch

STEP = Mechanism("poisson", noise_multiplier=1.5)
BANDED = {"bands": 3}
FULL = Training(
    Mechanism("cyclic_poisson", noise="banded", noise_multiplier=2.0, settings=BANDED), 3, 8.0, 50, (4, 5), 2.5, 7, 2
)


@pytest.mark.parametrize("training", [Training(STEP, 2, 10, 100), FULL])
def test_a_training_survives_json_and_pickle(training):
    told = json.loads(json.dumps(asdict(training)))
    read = Training(**told | {"mechanism": Mechanism(**told["mechanism"])})
    assert read == training == pickle.loads(pickle.dumps(training))
    assert hash(read) == hash(training)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"epochs": 0}, "epochs: 0 is not a positive whole number"),
        ({"epochs": 1.5}, "epochs: 1.5 is not a positive whole number"),
        ({"batch_size": 0}, "batch_size: 0 does not lie between 1 and dataset_size, 100"),
        ({"batch_size": 101}, "batch_size: 101 does not lie"),
        ({"mechanism": Mechanism("poisson", noise_multiplier=-1.0)}, "noise_multiplier: -1.0 is out of range"),
        ({"mechanism": Mechanism("poisson", noise="vmf", kappa=float("inf"))}, "kappa: inf is out of range"),
        ({"projection_noise": float("nan")}, "projection_noise: nan is out of range"),
    ],
)
def test_what_no_training_has_is_refused_in_one_sentence(given, words):
    with pytest.raises(UserError, match=words):
        Training(**{"mechanism": STEP, "epochs": 2, "batch_size": 10, "dataset_size": 100} | given)


@pytest.mark.parametrize(("n", "batch_size"), [(50, 8), (48, 8), (30, 30)])
@pytest.mark.parametrize("sampler", [name for name in SAMPLERS if name != "class_poisson"])
def test_batches_are_drawn_as_a_training_says(sampler, n, batch_size):
    """Steps and uses are exact; the rate's false alarm is 2e-9, by six standard deviations."""
    settings = BANDED if sampler == "cyclic_poisson" else {}
    training = Training(Mechanism(sampler, settings=settings), 60, batch_size, n)
    turns, generator = training.mechanism.turns, torch.Generator().manual_seed(0)
    rows, groups, batches = torch.arange(n), torch.zeros(n, dtype=torch.int64), []
    for epoch in range(training.epochs):
        drawn = draw_epoch(sampler, "example", rows, batch_size, groups, generator, turns=turns, epoch=epoch)
        batches += [batch for (batch,) in drawn]
    assert len(batches) == training.steps == training.epochs * training.steps_per_epoch
    times = torch.bincount(torch.cat(batches), minlength=n)
    if training.uses == training.epochs and sampler not in ("poisson", "wor"):
        assert times.unique().tolist() == [training.epochs]
        return
    assert times.max() <= training.uses
    expected, spread = n * training.uses * training.rate, n * training.uses * training.rate * (1 - training.rate)
    assert abs(times.sum() - expected) <= 6 * spread**0.5 + n * (turns > 1)  # some parts have one turn less


@pytest.mark.parametrize(
    ("accountant", "sampler"),
    [
        (name, sampler)
        for name, rules in ACCOUNTANTS.items()
        if rules.noise == "gaussian"
        for sampler in rules.samplers
        if sampler in SAMPLERS
    ],
)
def test_a_gaussian_epsilon_is_of_the_same_neighbors_whatever_the_unit(accountant, sampler):
    """That a whole batch is one unit says where directional noise is drawn, and nothing of Gaussian noise."""
    settings = BANDED if sampler == "cyclic_poisson" else {}
    spent = {}
    for unit in ("example", "batch"):
        step = Mechanism(sampler, unit, noise_multiplier=3.0, settings=settings)
        case = Case(Training(step, 2, 10, 100), accountant, 1e-5)
        spent[unit] = case.neighbors, epsilon_spent(case)
    assert spent["batch"] == spent["example"]


def test_a_plugins_case_has_what_the_documentation_names():
    case = case_of("rdp", delta=1e-5, sampler="wor", epochs=3, batch_size=10, dataset_size=100)
    assert (case.uses, case.steps, case.rate, case.apart, case.delta) == (30, 30, 0.1, 2.0, 1e-5)


@pytest.mark.parametrize("step", ["train", "tune", "time_training"])
def test_an_edit_of_an_accountant_retrains_nothing(step):
    seen, todo = set(), [f"dp_leakage.steps.{step}"]
    left_out = {*step_code.REGISTRIES, *step_code.LAUNCHING, *step_code.ACCOUNTING}
    while todo:
        name = todo.pop()
        if name not in seen and name not in left_out:
            seen.add(name)
            todo += fingerprint._imports(name)
    assert not [name for name in seen if ".accounting" in name or name == "dp_leakage.privacy.calibration"]
    assert "dp_leakage.privacy.mechanism" in seen
