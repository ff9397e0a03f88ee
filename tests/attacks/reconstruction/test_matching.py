"""The overlap of gradients, against PyTorch's own per-example gradients."""

import pytest
import torch
from torch.func import functional_call, grad, vmap

from dp_leakage.attacks.reconstruction.matching import overlap, squared_norms

ARCHITECTURES = {
    "mlp": {"hidden": [5]},
    "lenet_strided": {"channels": [3, 2], "strides": [2, 1]},
    "cnn_small": {"channels": [2, 3], "dense": 4},
}


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_overlap_and_its_derivative_equal_those_of_gradients_formed_one_by_one(name, batch, models, pictures):
    target = models(name, **ARCHITECTURES[name])
    module = target.module(0).double()
    parameters = {key: value[0].double() for key, value in target.parameters.items()}
    x = torch.from_numpy(pictures.x[:4]).double()
    generator = torch.Generator().manual_seed(1)
    label = torch.rand(4, 3, generator=generator, dtype=torch.float64).softmax(1)
    seen = {
        key: torch.randn(4 // batch, *value.shape, generator=generator, dtype=torch.float64)
        for key, value in parameters.items()
    }

    def loss(parameters, x, label):
        return -(functional_call(module, parameters, (x[None],))[0].log_softmax(0) * label).sum()

    def compared(x, label):
        formed = vmap(grad(loss), (None, 0, 0))(parameters, x, label)
        formed = {key: value.unflatten(0, (-1, batch)).sum(1) for key, value in formed.items()}
        inner = sum((formed[key] * seen[key]).flatten(1).sum(1) for key in seen)
        return inner, sum(value.flatten(1).square().sum(1) for value in formed.values())

    results = []
    for function in (compared, lambda x, label: overlap(target.layers, parameters, seen, x, label)):
        variables = [x.clone().requires_grad_(), label.clone().requires_grad_()]
        inner, squared = function(*variables)
        results.append([inner, squared, *torch.autograd.grad((inner.sin() + squared.sqrt()).sum(), variables)])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-12)


def test_squared_norms_are_of_all_parameters_together():
    found = squared_norms({"0.weight": torch.ones(2, 3, 4), "0.bias": torch.full((2, 3), 2.0)})
    torch.testing.assert_close(found, torch.full((2,), 24.0))
