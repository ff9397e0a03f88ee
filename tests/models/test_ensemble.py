import pytest
import torch
from torch import nn

from dp_leakage.models import ensemble as module_under_test
from dp_leakage.models.architectures import build
from dp_leakage.models.ensemble import Ensemble
from dp_leakage.models.layers import initial_parameters


def random_ensemble(name, shape, models=3, **settings):
    layers = build(name, shape, 10, **settings)
    starts = [initial_parameters(layers, torch.Generator().manual_seed(k)) for k in range(models)]
    parameters = {key: torch.stack([start[key] for start in starts]) for key in starts[0]}
    return Ensemble(layers, parameters, torch.arange(models * 4).view(models, 4))


CASES = [("softmax_regression", (20,)), ("mlp", (20,)), ("lenet", (1, 28, 28)), ("cnn", (3, 16, 16))]


@pytest.mark.parametrize(("name", "shape"), CASES)
def test_logits_are_those_of_the_exported_modules(name, shape):
    models = random_ensemble(name, shape, dropout=0.5)
    x = torch.randn(7, *shape)
    logits = models.logits(x)
    for k in range(models.size):
        module = models.module(k)
        assert isinstance(module, nn.Sequential)
        assert not module.training
        torch.testing.assert_close(logits[k], module(x).detach(), rtol=1e-4, atol=1e-5)


def test_logits_leave_the_records_as_they_were():
    models = random_ensemble("mlp", (20,))
    x = torch.randn(5, 20)
    before = x.clone()
    models.logits(x)
    assert torch.equal(x, before)


def test_some_models_may_be_asked_alone():
    models = random_ensemble("mlp", (20,))
    x = torch.randn(5, 20)
    assert torch.equal(models.logits(x, [2, 0]), models.logits(x)[[2, 0]])


def test_many_records_are_taken_in_parts(monkeypatch):
    models = random_ensemble("cnn", (3, 16, 16))
    x = torch.randn(9, 3, 16, 16)
    whole = models.logits(x)
    monkeypatch.setattr(module_under_test, "LOGITS_BYTES", 1)
    torch.testing.assert_close(models.logits(x), whole, rtol=1e-4, atol=1e-5)


def test_tensors_and_back():
    models = random_ensemble("lenet", (1, 28, 28))
    again = Ensemble.from_tensors(models.layers, models.tensors())
    assert torch.equal(again.train_indices, models.train_indices)
    assert all(torch.equal(again.parameters[name], value) for name, value in models.parameters.items())


def test_an_exported_module_gives_gradients_of_its_input():
    module = random_ensemble("lenet", (1, 28, 28)).module(1)
    x = torch.randn(2, 1, 28, 28, requires_grad=True)
    module(x).sum().backward()
    assert bool((x.grad != 0).any())
