"""Per-example gradients without forming them, against `torch.func`, which forms them."""

from dataclasses import dataclass

import pytest
import torch
import torch.nn.functional as F
from small import SHAPES, data_of, layers_of
from torch.func import functional_call, grad, vmap

from dp_leakage.common.errors import UserError
from dp_leakage.models.ensemble import Ensemble
from dp_leakage.models.layers import Linear, Residual, conv_gradients, initial_parameters
from dp_leakage.training.backward import _softmax, backpropagate
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.trainer import train

MODELS, BATCH = 2, 6


def passed_back(name, dtype=torch.float64):
    """A backward pass of two models, and each one's per-example gradients, name → (K, B, …)."""
    layers = layers_of(name)
    starts = [initial_parameters(layers, torch.Generator().manual_seed(k)) for k in range(MODELS)]
    parameters = {key: torch.stack([start[key] for start in starts]).to(dtype) for key in starts[0]}
    x, y = data_of(name, MODELS * BATCH, dtype)
    x, y = x.unflatten(0, (MODELS, BATCH)), y.view(MODELS, BATCH)
    passed = backpropagate(layers, parameters, x, y)
    ensemble = Ensemble(layers, parameters, torch.zeros(MODELS, 1))

    def of_model(k):
        module = ensemble.module(k).to(dtype)

        def loss(values, one, label):
            return F.cross_entropy(functional_call(module, values, (one[None],)), label[None])

        values = {key: value.detach() for key, value in module.named_parameters()}
        return vmap(grad(loss), in_dims=(None, 0, 0))(values, x[k], y[k])

    own = [of_model(k) for k in range(MODELS)]
    return passed, {key: torch.stack([gradients[key] for gradients in own]) for key in parameters}


def flattened(gradients):
    """Name → (K, B, …) as one (K, B, P)."""
    return torch.cat([values.flatten(2) for values in gradients.values()], 2)


def close(actual, expected):
    torch.testing.assert_close(actual, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", SHAPES)
def test_norms_sums_and_products_are_those_of_the_formed_gradients(name):
    passed, gradients = passed_back(name)
    flat = flattened(gradients)
    close(passed.norms(), flat.norm(dim=2))
    close(passed.gram(), flat @ flat.mT)

    scales = torch.rand(MODELS, BATCH, dtype=torch.float64)
    total = {key: torch.ones_like(values[:, 0]) for key, values in gradients.items()}
    passed.add_weighted_sum(scales, total)
    for key, values in gradients.items():
        close(total[key], 1 + torch.einsum("kb,kb...->k...", scales, values))

    direction = {key: torch.randn_like(values[:, 0]) for key, values in gradients.items()}
    along = torch.cat([values.flatten(1) for values in direction.values()], 1)
    close(passed.directional_derivative(direction), torch.einsum("kbp,kp->kb", flat, along))


@pytest.mark.parametrize("name", SHAPES)
def test_rows_are_those_of_the_weights_with_their_bias(name):
    passed, gradients = passed_back(name)
    for part in passed.parts:
        expected = torch.cat([gradients[name].unflatten(2, (-1, 1)).flatten(3) for name in part.names], 3)
        close(part.rows(), expected)
        close(part.rows(slice(1, 3)), expected[:, 1:3])
        close(part.norms(), expected.flatten(2).norm(dim=2))


def test_cache_sized_chunks_change_nothing(monkeypatch):
    whole = flattened(passed_back("cnn")[1])
    monkeypatch.setattr(conv_gradients, "CACHE_BYTES", 1)
    passed, _ = passed_back("cnn")
    close(passed.norms(), whole.norm(dim=2))


@pytest.mark.parametrize("name", SHAPES)
def test_float32_norms_are_right_to_what_the_bound_allows_for(name):
    norms = passed_back(name, torch.float32)[0].norms().double()
    exact = passed_back(name)[0].norms()
    eps = torch.finfo(torch.float32).eps
    assert (norms >= exact * (1 - 16 * eps)).all()
    assert (norms <= exact * (1 + 100 * eps)).all()  # of a convolution, with what rounding takes from its sum


@dataclass(frozen=True)
class Forgetful(Linear):
    """A layer that has a parameter more than it gives a gradient of."""

    def parameter_shapes(self):
        return super().parameter_shapes() | {"gain": (self.outputs,)}

    def initial(self, generator, scheme):
        return super().initial(generator, scheme) | {"gain": torch.ones(self.outputs)}


@pytest.mark.parametrize("inside_a_block", [False, True])
def test_a_parameter_without_a_gradient_stops_the_training_before_its_first_step(inside_a_block):
    layers = (Forgetful(3, 3), Linear(3, 2))
    if inside_a_block:
        layers = (Linear(3, 3), Residual((Forgetful(3, 3),)), Linear(3, 2))
    x, y = torch.randn(8, 3), torch.zeros(8, dtype=torch.int64)
    settings = TrainingSettings("sgd", 0.1, epochs=1, batch_size=4)
    with pytest.raises(UserError, match=r"parameter '.*gain' has no per-example gradient"):
        train(layers, x, y, torch.arange(8)[None], [1], settings)


@pytest.mark.parametrize("classes", [2, 5, 10])
def test_the_softmax_of_a_record_has_the_same_bits_at_every_place_of_every_pass(classes):
    """Kernels round what does not fill a vector in another way."""
    logits = torch.randn(40, classes, generator=torch.Generator().manual_seed(0))
    for row in logits:
        found = [_softmax(row.expand(1, records, classes).contiguous())[0] for records in (1, 8, 16, 24, 40, 56)]
        assert {tuple(own.tolist()) for several in found for own in several} == {tuple(found[0][0].tolist())}
