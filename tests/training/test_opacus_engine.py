import itertools
import sys

import pytest
import torch
from small import SETTINGS, data_of, layers_of, subsets_of
from torch import nn

from dp_leakage.common.errors import UserError
from dp_leakage.models.user_module import ModuleEnsemble, module_factory
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.training.checkpoint import Checkpoint
from dp_leakage.training.opacus_engine import train_module
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.trainer import train

pytestmark = pytest.mark.filterwarnings("ignore:Full backward hook is firing")


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


SEEDS = [3, 4]
PRIVATE = Mechanism("poisson", clip_norm=0.8, noise_multiplier=0.5)


def train_net(mechanism, settings=SETTINGS, seeds=SEEDS, **arguments):
    x, y = data_of("mlp")
    subsets = subsets_of(40, len(SEEDS), 30)[[SEEDS.index(seed) for seed in seeds]]
    return train_module(factory(), x, y, subsets, seeds, settings, mechanism, **arguments)


@pytest.mark.parametrize(
    ("mechanism", "optimizer"),
    [
        (None, "adam"),
        (None, "sgd"),
        (Mechanism(clip_norm=0.8, noise="none"), "adam"),
        (Mechanism("wor", clip_norm=0.8, noise="none"), "sgd"),
        (Mechanism("poisson", clip_norm=0.8, noise="none"), "adam"),
    ],
)
def test_both_engines_train_alike_from_the_same_start(mechanism, optimizer):
    """The same batches from the same seeds; without noise only rounding remains."""
    x, y = data_of("mlp", dtype=torch.float64)
    layers, subsets = layers_of("mlp"), subsets_of(40, 2, 30)
    settings = TrainingSettings(optimizer, 0.01, l2=1e-3, epochs=2, batch_size=8)
    ours, history = train(layers, x, y, subsets, SEEDS, settings, mechanism, evaluate_on=torch.arange(9))
    start, _ = train(layers, x, y, subsets, SEEDS, TrainingSettings("sgd", 1e-300, epochs=1))
    # A private training tries a module of its own; the next two that the engine makes are the models; it fills those
    # that it makes for evaluation itself.
    made = itertools.chain([0] * (mechanism is not None), range(2), itertools.repeat(0))
    theirs, its_history = train_module(
        lambda: start.module(next(made)), x, y, subsets, SEEDS, settings, mechanism, evaluate_on=torch.arange(9)
    )
    for name, value in ours.parameters.items():
        torch.testing.assert_close(theirs.parameters[name], value, rtol=1e-9, atol=1e-10)
    assert [row["epoch"] for row in its_history] == [row["epoch"] for row in history]
    assert its_history[-1]["loss"] == pytest.approx(history[-1]["loss"], rel=1e-8)


@pytest.mark.parametrize("mechanism", [None, PRIVATE], ids=["plain", "private"])
def test_any_module_trains_and_a_model_does_not_depend_on_its_company(mechanism):
    models, history = train_net(mechanism)
    alone, _ = train_net(mechanism, seeds=[4])
    assert all(torch.equal(alone.parameters[name][0], value[1]) for name, value in models.parameters.items())
    assert len(history) == 2
    x, _ = data_of("mlp")
    again = ModuleEnsemble.from_tensors(factory(), models.tensors())
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


@pytest.mark.parametrize(
    ("mechanism", "name", "message"),
    [
        (Mechanism(unit="batch"), "Net", "cannot do unit 'batch'"),
        (Mechanism(bound="normalise"), "Net", "bound 'normalise'"),
        (PRIVATE, "WithBatchNorm", "cannot train WithBatchNorm privately"),
    ],
)
def test_what_opacus_cannot_train_is_refused_in_a_sentence(mechanism, name, message):
    x, y = data_of("mlp")
    with pytest.raises(UserError, match=message):
        train_module(factory(name), x, y, subsets_of(40, 1), [1], SETTINGS, mechanism)
