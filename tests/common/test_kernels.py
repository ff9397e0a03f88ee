"""PyTorch's private functions: what stands in for them means the same, and nothing else calls one."""

import ast
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import gamma, kstest

from dp_leakage.common import kernels

SOURCES = Path(kernels.__file__).parent
PRIVATE = ("torch._", "torch.ops.mkldnn._")


@pytest.fixture
def public(monkeypatch):
    """A PyTorch without the private functions."""
    monkeypatch.setattr(kernels, "has", lambda name: False)


def adam(steps: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    flat = torch.randn(3, 50, generator=generator)
    mean, square, count = torch.zeros_like(flat), torch.zeros_like(flat), torch.zeros(())
    for _ in range(steps):
        count.add_(1)
        kernels.adam_step(flat, torch.randn(3, 50, generator=generator), mean, square, count, 0.1)
    return flat


def test_adam_without_the_fused_kernel_is_pytorchs_own(public):
    generator = torch.Generator().manual_seed(0)
    parameter = torch.nn.Parameter(torch.randn(3, 50, generator=generator))
    optimizer = torch.optim.Adam([parameter], lr=0.1)
    for _ in range(20):
        parameter.grad = torch.randn(3, 50, generator=generator)
        optimizer.step()
    torch.testing.assert_close(adam(20), parameter.detach(), rtol=1e-5, atol=1e-6)


def test_adam_with_and_without_the_fused_kernel_agree(monkeypatch):
    fused = adam(20)
    monkeypatch.setattr(kernels, "has", lambda name: False)
    torch.testing.assert_close(adam(20), fused, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("private", [True, False])
@pytest.mark.parametrize("shape", [0.5, 30.0])
def test_gamma_draws_follow_the_distribution_and_the_generator_alone(private, shape, monkeypatch):
    monkeypatch.setattr(kernels, "has", lambda name: private)
    asked = torch.full((4000,), shape, dtype=torch.float64)
    state = torch.get_rng_state()
    first, second = (kernels.standard_gamma(asked, torch.Generator().manual_seed(1)) for _ in range(2))
    assert torch.equal(first, second)
    assert torch.equal(state, torch.get_rng_state())
    assert kstest(first.numpy(), gamma(shape).cdf).pvalue > 0.001
    generator = torch.Generator().manual_seed(1)
    both = [kernels.standard_gamma(asked, generator) for _ in range(2)]
    assert abs(np.corrcoef(*both)[0, 1]) < 0.1


def test_a_product_without_onednn_is_the_same(public):
    generator = torch.Generator().manual_seed(0)
    x, weight, bias = (torch.randn(*size, generator=generator) for size in ((7, 30), (20, 30), (20,)))
    torch.testing.assert_close(kernels.linear(x, weight, bias), x @ weight.T + bias)
    torch.testing.assert_close(kernels.linear(x, weight), x @ weight.T)


def test_no_other_module_calls_a_private_function_of_pytorch():
    found = [
        f"{path.relative_to(SOURCES)}:{node.lineno}"
        for path in sorted(SOURCES.rglob("*.py"))
        if path.name != "kernels.py"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and ast.unparse(node).startswith(PRIVATE)
    ]
    assert found == []


def test_tiny_numbers_are_zero_inside_alone():
    def kept():
        return float(torch.full((1,), 1e-40) * 1.0) > 0

    assert kept()
    with kernels.flushed():
        with kernels.flushed():
            assert not kept()
        assert not kept()
    assert kept()
