"""What is unusual works, and what cannot work is refused in a sentence."""

import math

import pytest
import torch
from small import SETTINGS, SHAPES, data_of, layers_of, subsets_of
from torch.profiler import ProfilerActivity, profile

from dp_leakage.common.errors import UserError
from dp_leakage.models.architectures import build
from dp_leakage.models.layers import Linear, parameter_shapes
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.trainer import train

MECHANISMS = [
    None,
    *(Mechanism(sampler, noise_multiplier=0.5) for sampler in ("shuffle", "poisson", "wor")),
    Mechanism("poisson", unit="batch", noise_multiplier=0.1),
    Mechanism("poisson", unit="class", noise_multiplier=0.1),
    Mechanism("class_poisson", unit="class", noise_multiplier=0.1),
    *(
        Mechanism("poisson", bound="normalize", noise="vmf", kappa=5.0, block=block)
        for block in ("whole", "layer", "row", "sum")
    ),
]
every_mechanism = pytest.mark.parametrize(
    "mechanism",
    MECHANISMS,
    ids=lambda m: "none" if m is None else f"{m.sampler} {m.unit} {m.noise} {m.block if m.noise == 'vmf' else ''}",
)


def finite(models, history):
    assert all(bool(value.isfinite().all()) for value in models.parameters.values())
    assert all(math.isfinite(row["loss"]) for row in history)


@every_mechanism
@pytest.mark.parametrize("batch_size", [1, 1000], ids=["batches of one", "n below the batch"])
def test_small_and_large_batches(mechanism, batch_size):
    x, y = data_of("mlp", 12)
    settings = TrainingSettings("adam", 0.01, epochs=2, batch_size=batch_size)
    finite(*train(layers_of("mlp"), x, y, subsets_of(12, 2, 9), [1, 2], settings, mechanism))


@every_mechanism
def test_empty_poisson_batches(mechanism):
    """At rate 0.1/9 nearly every batch is empty (shuffle and wor round up to one record)."""
    x, y = data_of("mlp", 12)
    settings = TrainingSettings(
        "adam", 0.01, epochs=1, batch_size=0.1 if mechanism and "poisson" in mechanism.sampler else 1
    )
    finite(*train(layers_of("mlp"), x, y, subsets_of(12, 2, 9), [1, 2], settings, mechanism))


@every_mechanism
@pytest.mark.parametrize("constant", [0.0, 3.0])
def test_constant_features(mechanism, constant):
    x, y = data_of("cnn_small", 12)
    finite(
        *train(layers_of("cnn_small"), torch.full_like(x, constant), y, subsets_of(12, 2), [1, 2], SETTINGS, mechanism)
    )


@every_mechanism
def test_a_single_class_whose_gradients_are_all_zero(mechanism):
    x, _ = data_of("mlp", 12)
    models, history = train(
        (Linear(12, 1),), x, torch.zeros(12, dtype=torch.int64), subsets_of(12, 2), [1, 2], SETTINGS, mechanism
    )
    finite(models, history)
    assert all(row["train_accuracy"] == 1 for row in history)


def test_one_record():
    x, y = data_of("mlp", 1)
    finite(*train(layers_of("mlp"), x, y, subsets_of(1, 2), [1, 2], SETTINGS, Mechanism(noise_multiplier=0.1)))


@pytest.mark.parametrize("name", SHAPES)
def test_the_callers_tensors_stay_as_they_were_and_the_result_can_be_differentiated(name):
    x, y = data_of(name)
    before = x.clone()
    models, _ = train(layers_of(name), x, y, subsets_of(40, 2), [1, 2], SETTINGS)
    assert torch.equal(x, before)
    inputs = x[:3].clone().requires_grad_()
    models.module(0)(inputs).sum().backward()
    assert inputs.grad is not None


def test_history_is_the_exact_evaluation_at_the_epochs_asked_for_and_the_last():
    x, y = data_of("mlp")
    subsets = subsets_of(40, 2, 30)
    settings = TrainingSettings("adam", 0.01, epochs=7, batch_size=8, evaluate_every=3)
    models, history = train(layers_of("mlp"), x, y, subsets, [1, 2], settings, evaluate_on=torch.arange(5))
    assert [(row["model"], row["epoch"]) for row in history] == [(m, e) for e in (3, 6, 7) for m in (0, 1)]
    for row in history[-2:]:
        own = subsets[row["model"]]
        logits = models.module(row["model"])(x).detach()
        assert row["loss"] == pytest.approx(torch.nn.functional.cross_entropy(logits[own], y[own]).item(), rel=1e-5)
        assert row["train_accuracy"] == (logits.argmax(1) == y)[own].double().mean().item()
        assert row["test_accuracy"] == (logits.argmax(1) == y)[:5].double().mean().item()


def test_models_may_be_evaluated_on_records_of_their_own():
    x, y = data_of("mlp")
    arguments = (layers_of("mlp"), x, y, subsets_of(40, 2), [1, 2], SETTINGS)
    rows = torch.tensor([[0, 1, 2], [3, 4, 5]])
    _, own = train(*arguments, evaluate_on=rows)
    for k in range(2):
        _, shared = train(*arguments, evaluate_on=rows[k])
        assert own[k]["test_accuracy"] == shared[k]["test_accuracy"]


def test_subclasses_are_the_groups_that_the_caller_names():
    x, y = data_of("mlp")
    mechanism = Mechanism("class_poisson", unit="subclass", noise_multiplier=0.0)
    settings = TrainingSettings("sgd", 0.1, epochs=2, batch_size=20)
    runs = [
        train(layers_of("mlp"), x, y, subsets_of(40, 1), [1], settings, mechanism, groups=groups)[0]
        for groups in (None, y, torch.arange(40) % 8)
    ]
    weights = [models.parameters["0.weight"] for models in runs]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"subsets": torch.zeros(2, 0, dtype=torch.int64)}, "neither of them 0"),
        ({"subsets": torch.tensor([[0, 99], [0, 1]])}, "row 99"),
        ({"seeds": [1, 2, 3]}, "3 seeds for 2 models"),
        ({"y": torch.full((40,), 7)}, "classes go up to 7"),
        ({"y": torch.full((40,), -1)}, "counted from 0"),
        ({"x": torch.full((40, 12), torch.nan)}, "NaN"),
        ({"mechanism": Mechanism("class_poisson", noise_multiplier=1.0)}, "whole \\(sub\\)classes"),
        ({"mechanism": Mechanism(clip_norm=0.0, noise_multiplier=1.0)}, "clip_norm is 0.0"),
        ({"mechanism": Mechanism(noise_multiplier=-1.0)}, "noise_multiplier is -1.0"),
        ({"mechanism": Mechanism(noise="vmf", kappa=1.0)}, "use bound normalize"),
        ({"mechanism": Mechanism(bound="normalize", noise="vmf")}, "kappa is None"),
        ({"mechanism": Mechanism("wor"), "settings": TrainingSettings(batch_size=7.5)}, "must be whole"),
    ],
)
def test_an_impossible_request_is_refused_in_a_sentence(change, message):
    x, y = data_of("mlp")
    request = {"x": x, "y": y, "subsets": subsets_of(40, 2), "seeds": [1, 2], "settings": SETTINGS, "mechanism": None}
    with pytest.raises(UserError, match=message):
        train(layers=layers_of("mlp"), **request | change)


def test_no_temporary_array_is_as_large_as_the_data():
    """4,000 wide records: the checks, the lengths of records and the evaluation look at a few at a time."""
    x, y = torch.randn(4000, 3000), torch.arange(4000) % 2
    layers = build("softmax_regression", (3000,), 2)
    settings = TrainingSettings("sgd", 0.1, epochs=1, batch_size=1000)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        train(layers, x, y, torch.arange(4000)[None], [1], settings, Mechanism(noise_multiplier=1.0))
    largest = max(event.cpu_memory_usage for event in profiled.events())
    assert 0 < largest < x.nbytes


def test_a_precision_that_breaks_the_bound_is_refused():
    x, y = data_of("mlp")
    torch.set_float32_matmul_precision("medium")
    try:
        with pytest.raises(UserError, match="breaks the clipping bound"):
            train(layers_of("mlp"), x, y, subsets_of(40, 1), [1], SETTINGS, Mechanism(noise_multiplier=1.0))
    finally:
        torch.set_float32_matmul_precision("highest")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"optimizer": "adamw"}, "did you mean 'adam'"),
        ({"l2_on": "lst"}, "did you mean 'last'"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0"),
        ({"momentum": 0.9}, "momentum 0.9 is for optimizer 'sgd'"),
        ({"epochs": 0}, "epochs is 0"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"l2": -1.0}, "l2 is -1.0"),
    ],
)
def test_settings_out_of_range_are_refused_in_a_sentence(settings, message):
    with pytest.raises(UserError, match=message):
        TrainingSettings(**settings)


def test_weights_too_small_for_full_precision_become_zero_in_a_step():
    x, y = data_of("softmax_regression")
    x[:, 0] = 0.0  # so that no gradient moves the weights of this feature
    layers = layers_of("softmax_regression")
    initial = {name: torch.full(shape, 1e-40) for name, shape in parameter_shapes(layers).items()}
    ensemble, _ = train(layers, x, y, subsets_of(len(x), 1), [1], SETTINGS, None, initial=initial)
    weight = ensemble.parameters["0.weight"][0]
    assert not weight[:, 0].any()
    assert weight[:, 1:].all()
