"""A user's own module as a layer: against Opacus, beside other models, under every mechanism."""

import sys

import pytest
import torch
from small import SETTINGS, data_of, layers_of, subsets_of
from torch import nn

from dp_leakage.common.errors import UserError
from dp_leakage.models.ensemble import Ensemble
from dp_leakage.models.input_gradients import logits_and_pull_back
from dp_leakage.models.user_module import module_factory, module_layers
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.training.blocks import block_dimensions
from dp_leakage.training.checkpoint import Checkpoint
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.trainer import train
from dp_leakage.training.watch import WhiteBoxObserver


class Net(nn.Module):
    """A module of a kind that the ensemble trainer has no closed form for."""

    def __init__(self, input_shape, n_classes, width=6, rate=0.2):
        super().__init__()
        self.enter = nn.Linear(input_shape[0], width)
        self.norm = nn.LayerNorm(width)
        self.leave = nn.Linear(width, n_classes)
        self.dropout = nn.Dropout(rate)

    def forward(self, x):
        return self.leave(self.dropout(torch.relu(self.norm(self.enter(x)))))


class WithBatchNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(12)
        self.leave = nn.Linear(12, 5)

    def forward(self, x):
        return self.leave(self.norm(x))


def factory(name="Net", **settings):
    sys.modules.setdefault("nets_of_a_user", sys.modules[__name__])
    return module_factory(f"nets_of_a_user:{name}", (12,), 5, **settings)


def net(name="Net"):
    return module_layers(factory(name), (12,), 5)


SEEDS = [3, 4]
PERSON = torch.arange(40) % 20
PRIVATE = Mechanism("poisson", clip_norm=0.8, noise_multiplier=0.5)


def train_net(mechanism, settings=SETTINGS, seeds=SEEDS, **arguments):
    x, y = data_of("mlp")
    subsets = subsets_of(40, len(SEEDS), 30)[[SEEDS.index(seed) for seed in seeds]]
    return train(net(), x, y, subsets, seeds, settings, mechanism, **arguments)


@pytest.mark.parametrize(
    ("mechanism", "optimizer"),
    [
        (None, "adam"),
        (None, "sgd"),
        (Mechanism(clip_norm=0.8, noise="none"), "adam"),
        (Mechanism("wor", clip_norm=0.8, noise="none"), "sgd"),
        (Mechanism("poisson", clip_norm=0.8, noise="none"), "adam"),
        (Mechanism(unit="batch", clip_norm=0.8, noise="none"), "adam"),
        (Mechanism(unit="class", bound="normalize", noise="none"), "sgd"),
        (Mechanism("poisson", unit="person", clip_norm=0.8, noise_multiplier=0.5), "adam"),
        (Mechanism("wor", clip_norm=0.8, noise_multiplier=0.5), "sgd"),
        (Mechanism(bound="per_layer", clip_norm=0.8, noise="none"), "sgd"),
    ],
)
def test_a_module_trains_as_the_built_in_architecture_that_it_copies(mechanism, optimizer):
    """The same start, batches and noise, so that only rounding remains."""
    x, y = data_of("mlp", dtype=torch.float64)
    layers, subsets = layers_of("mlp"), subsets_of(40, 2)
    settings = TrainingSettings(optimizer, 0.01, l2=1e-3, epochs=2, batch_size=8)
    start, _ = train(layers, x, y, subsets, SEEDS, TrainingSettings("sgd", 1e-300, epochs=1))
    begin = {name: value[0].clone() for name, value in start.parameters.items()}
    others = {
        "evaluate_on": torch.arange(9),
        "groups": y if mechanism is None or mechanism.unit != "person" else PERSON,
    }
    ours, history = train(layers, x, y, subsets, SEEDS, settings, mechanism, initial=begin, **others)
    own, begin = module_layers(lambda: start.module(0), (12,), 5), {f"0.{name}": value for name, value in begin.items()}
    theirs, its_history = train(own, x, y, subsets, SEEDS, settings, mechanism, initial=begin, **others)
    for name, value in ours.parameters.items():
        torch.testing.assert_close(theirs.parameters[f"0.{name}"], value, rtol=1e-9, atol=1e-10)
    assert [row["epoch"] for row in its_history] == [row["epoch"] for row in history]
    assert its_history[-1]["loss"] == pytest.approx(history[-1]["loss"], rel=1e-8)


@pytest.mark.parametrize("unit", ["example", "class"])
def test_an_observer_of_the_steps_scores_a_canary_as_of_the_built_in_architecture(unit):
    x, y = data_of("mlp", dtype=torch.float64)
    mechanism = Mechanism("poisson" if unit == "example" else "class_poisson", unit=unit, noise_multiplier=0.5)
    start, _ = train(layers_of("mlp"), x, y, subsets_of(40, 1), [1], TrainingSettings("sgd", 1e-300, epochs=1))
    begin = {name: value[0].clone() for name, value in start.parameters.items()}
    copy = module_layers(lambda: start.module(0), (12,), 5), {f"0.{name}": value for name, value in begin.items()}
    units = None if unit == "example" else ([torch.arange(28, 33)], [torch.arange(28, 32)])
    settings, scores = TrainingSettings("sgd", 0.1, epochs=2, batch_size=5), []
    for layers, initial in ((layers_of("mlp"), begin), copy):
        watch = WhiteBoxObserver(40, torch.tensor([36]), torch.tensor([37]), units=units, claimed=mechanism)
        train(layers, x, y, torch.arange(37)[None], [3], settings, mechanism, groups=y, initial=initial, watch=watch)
        scores.append(watch.scores)
    assert float(scores[0].abs()) > 0
    torch.testing.assert_close(scores[1], scores[0], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("block", ["whole", "layer", "row"])
def test_directional_noise_takes_a_module(block):
    models, _ = train_net(Mechanism("wor", bound="normalize", noise="vmf", kappa=50.0, block=block))
    assert all(bool(value.isfinite().all()) for value in models.parameters.values())


@pytest.mark.parametrize("mechanism", [None, PRIVATE], ids=["plain", "private"])
def test_any_module_trains_and_a_model_does_not_depend_on_its_company(mechanism):
    models, history = train_net(mechanism)
    alone, _ = train_net(mechanism, seeds=[4])
    assert all(torch.equal(alone.parameters[name][0], value[1]) for name, value in models.parameters.items())
    assert len(history) == 2
    x, _ = data_of("mlp")
    again = Ensemble.from_tensors(net(), models.tensors())
    torch.testing.assert_close(again.logits(x), torch.stack([models.module(k)(x).detach() for k in range(2)]))


def test_noise_has_its_standard_deviation():
    settings = TrainingSettings("sgd", 1.0, epochs=1, batch_size=30)
    loud, _ = train_net(Mechanism(clip_norm=0.8, noise_multiplier=50.0), settings)
    silent, _ = train_net(Mechanism(clip_norm=0.8, noise="none"), settings)
    noise = torch.cat([(loud.parameters[name] - silent.parameters[name]).flatten() for name in loud.parameters])
    count = noise.numel()
    z = ((noise / (50 * 0.8 / 30)).square().sum() - count) / (2 * count) ** 0.5
    assert abs(z) < 6


def test_empty_batches_get_noise_only():
    models, _ = train_net(PRIVATE, TrainingSettings("sgd", 1.0, epochs=1, batch_size=1))
    assert all(bool(value.isfinite().all()) for value in models.parameters.values())


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_it_goes_on_from_its_checkpoint_with_the_same_bytes(optimizer, tmp_path):
    class Stop(Exception):
        pass

    def stop(epoch):
        if epoch == 3:
            raise Stop

    settings = TrainingSettings(optimizer, 0.01, momentum=0.9 * (optimizer == "sgd"), epochs=6, batch_size=8)
    with pytest.raises(Stop):
        train_net(PRIVATE, settings, checkpoint=Checkpoint(tmp_path / "c", "cell", 0), on_epoch=stop)
    models, history = train_net(PRIVATE, settings, checkpoint=Checkpoint(tmp_path / "c", "cell", 0))
    undisturbed, its_history = train_net(PRIVATE, settings)
    assert str(history) == str(its_history)
    assert all(torch.equal(undisturbed.parameters[name], value) for name, value in models.parameters.items())


def test_the_global_random_stream_is_left_alone():
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    train_net(PRIVATE)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize(
    ("path", "settings", "message"),
    [
        ("nets", {}, "must be an import path"),
        ("no_such_package:Net", {}, "cannot be imported"),
        ("nets_of_a_user:Nett", {}, "did you mean 'Net'"),
        ("nets_of_a_user:Net", {"widht": 3}, "widht"),
    ],
)
def test_a_module_that_cannot_be_made_is_refused_in_a_sentence(path, settings, message):
    factory()
    with pytest.raises(UserError, match=message):
        module_factory(path, (12,), 5, **settings)


def test_normalization_over_the_batch_is_refused_under_a_mechanism():
    x, y = data_of("mlp")
    with pytest.raises(UserError, match=r"WithBatchNorm cannot be trained privately: .*BatchNorm"):
        train(net("WithBatchNorm"), x, y, subsets_of(40, 1), [1], SETTINGS, PRIVATE)


def test_plain_training_keeps_each_models_running_statistics():
    """Against PyTorch, with batches that no pass may cut."""
    x, y = data_of("mlp")
    subsets = subsets_of(40, 2, 40)
    settings = TrainingSettings("sgd", 0.1, epochs=1, batch_size=40)
    models, _ = train(net("WithBatchNorm"), x, y, subsets, SEEDS, settings)
    alone, _ = train(net("WithBatchNorm"), x, y, subsets[1:], SEEDS[1:], settings)
    for name, value in models.parameters.items():
        assert torch.equal(alone.parameters[name][0], value[1])
    start, _ = train(net("WithBatchNorm"), x, y, subsets, SEEDS, TrainingSettings("sgd", 1e-300, epochs=1))
    for model in range(2):
        oracle = WithBatchNorm()
        for name, own in oracle.named_parameters():
            own.data.copy_(start.parameters[f"0.{name}"][model])
        optimizer = torch.optim.SGD(oracle.parameters(), 0.1)
        torch.nn.functional.cross_entropy(oracle(x), y).backward()
        optimizer.step()
        for name, value in oracle.state_dict().items():
            torch.testing.assert_close(models.parameters[f"0.{name}"][model], value, rtol=1e-5, atol=1e-6)
    assert models.module(1)[0].norm.num_batches_tracked == 1


def test_directional_noise_by_rows_needs_layers_with_rows():
    class Odd(Net):
        def __init__(self):
            super().__init__((12,), 5)
            self.leave.register_parameter("gain", nn.Parameter(torch.ones(())))

    with pytest.raises(UserError, match=r"block 'row': layer '0\.leave'"):
        block_dimensions(module_layers(Odd, (12,), 5), "row")
    assert sum(block_dimensions(module_layers(Odd, (12,), 5), "layer")) == 12 * 6 + 6 + 12 + 6 * 5 + 5 + 1


def test_gradients_with_respect_to_the_input_are_autograds():
    x, _ = data_of("mlp")
    models, _ = train_net(None)
    shown = torch.stack([x[:4], x[4:8]])
    logits, pull_back = logits_and_pull_back(models, shown)
    delta = torch.randn(logits.shape, generator=torch.Generator().manual_seed(1))
    found = pull_back(delta)
    for model in range(2):
        leaf = shown[model].clone().requires_grad_()
        said = models.module(model)(leaf)
        torch.testing.assert_close(logits[model], said.detach())
        torch.testing.assert_close(found[model], torch.autograd.grad(said, leaf, delta[model])[0])


def test_a_module_with_nothing_to_train_is_refused():
    with pytest.raises(UserError, match="Flatten has no parameters that require a gradient"):
        module_layers(nn.Flatten, (5,), 5)
