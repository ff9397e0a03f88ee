"""The private PyTorch functions that we call, each with a public fallback for versions that no longer have it.

No other module calls a PyTorch name that begins with an underscore. The private functions run Adam in one pass over the
memory, draw from a given generator, and reach oneDNN's matrix product, which on AMD processors is up to twice as fast
as MKL's. With the public fallbacks a training has other bits but the same meaning.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Generator, Tensor

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8  # Adam's constants, as in its paper and in PyTorch
ALIGNMENT = 16  # numbers, 64 bytes in float32


def aligned(count: int) -> int:
    """Return ``count`` rounded up, so that the next row starts at a vector's boundary.

    Otherwise a kernel would process the same number in its vector part in one ensemble and in its remainder in another,
    and these round differently.
    """
    return -(-count // ALIGNMENT) * ALIGNMENT


@cache
def has(name: str) -> bool:
    """Return whether this PyTorch has a private function: ``adam``, ``gamma`` or ``linear``."""
    import torch

    if name == "linear":
        return torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    return hasattr(torch, {"adam": "_fused_adam_", "gamma": "_standard_gamma"}[name])


def exact() -> AbstractContextManager[None]:
    """Context in which cuDNN computes in full 32 bits and always in the same order, as on the CPU.

    Its own choice for convolutions is TF32, whose rounding would break the bound on a gradient and move margins.
    """
    import torch

    flags: AbstractContextManager[None] = torch.backends.cudnn.flags(enabled=True, deterministic=True, allow_tf32=False)
    return flags


@contextmanager
def flushed() -> Iterator[None]:
    """Context manager in which this thread's CPU treats numbers below 1.2e-38 (float32) or 2.2e-308 (float64) as zero.

    The gradients of a saturated model, Adam's averages of them and shrunk weights fall that low, and then a step takes
    up to sixteen times as long (measured).
    """
    import torch

    before = float(torch.full((1,), 1e-40) * 1.0) == 0.0
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


def adam_step(
    flat: Tensor, gradient: Tensor, mean: Tensor, square: Tensor, count: Tensor, rate: float | Tensor
) -> None:
    """One step of Adam (Kingma and Ba 2015, Algorithm 1) in place.

    Args:
        flat: parameters, any shape; moved.
        gradient: of the same shape.
        mean, square: running averages of the gradient and of its square; updated.
        count: number of steps including this one, float32 ().
        rate: the learning rate; or a tensor of it, float32 () on the device of ``flat``.
    """
    import torch

    if has("adam"):
        options = {"beta1": BETA1, "beta2": BETA2, "eps": EPSILON, "weight_decay": 0.0, "amsgrad": False}
        torch._fused_adam_([flat], [gradient], [mean], [square], [], [count], lr=rate, maximize=False, **options)
        return
    mean.lerp_(gradient, 1 - BETA1)
    square.mul_(BETA2).addcmul_(gradient, gradient, value=1 - BETA2)
    steps = count.double()  # in float32 1 − β₂ loses three digits
    width = square.sqrt().div_((1 - BETA2**steps).sqrt()).add_(EPSILON)
    flat.addcdiv_(mean * (rate / (1 - BETA1**steps)), width, value=-1)


def standard_gamma(shape: Tensor, generator: Generator | None = None) -> Tensor:
    """Draw from the gamma distribution of scale 1, one value for each entry of ``shape`` > 0.

    `torch.distributions.Gamma` takes no generator. As the fallback, it draws from PyTorch's global generator, which is
    seeded by ours and restored afterwards.
    """
    import torch

    if has("gamma"):
        return torch._standard_gamma(shape, generator=generator)
    device = shape.device if generator is None else generator.device
    seed = int(torch.randint(2**62, (), generator=generator, device=device))
    with torch.random.fork_rng(devices=[shape.device] if shape.is_cuda else []):
        torch.manual_seed(seed)
        return torch.distributions.Gamma(shape, torch.ones_like(shape)).sample()


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """xWᵀ + b, float32 on a CPU: x (B, i), weight (o, i), bias (o,) → (B, o)."""
    import torch

    if has("linear"):
        return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return torch.nn.functional.linear(x, weight, bias)
