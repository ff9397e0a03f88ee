"""Penalties on inverted images: functions of images (…, height, width) that sum over the last two axes."""

from collections.abc import Callable

import torch
from torch import Tensor

WINDOW, DECAY = 2, 0.9  # p and α of the bilateral total variation (zhang2020, section V.B)


def none(x: Tensor) -> Tensor:
    """0."""
    return torch.zeros_like(x[..., 0, 0])


def l1(x: Tensor) -> Tensor:
    """‖x‖₁ (zhang2020, equation 4)."""
    return x.abs().sum((-2, -1))


def l1_mean(x: Tensor) -> Tensor:
    """‖x‖₁ divided by the number of pixels. Only under this reading does zhang2020's λ leave pictures that are not
    black.
    """
    return x.abs().mean((-2, -1))


def l2(x: Tensor) -> Tensor:
    """‖x‖₂², which punishes bright pixels more than faint ones."""
    return x.square().sum((-2, -1))


def smoothness(x: Tensor) -> Tensor:
    """Σ (difference of neighbors)², down and to the right, which favors broad strokes over single pixels."""
    down, right = x[..., 1:, :] - x[..., :-1, :], x[..., 1:] - x[..., :-1]
    return l2(down) + l2(right)


def btv(x: Tensor, window: int = WINDOW, decay: float = DECAY) -> Tensor:
    """Bilateral total variation Σ α^{l+m} ‖x − S_x^l S_y^m x‖₁ over −p ≤ l ≤ p, 0 ≤ m ≤ p, l + m > 0.

    zhang2020, equation 5, as printed; its source (Farsiu et al. 2004) uses weights of |l| + m. Shifted images repeat
    their edge, so that the penalty of a constant image is 0.
    """
    total = none(x)
    for down in range(window + 1):
        for right in range(-window, window + 1):
            if right + down > 0:
                total = total + decay ** (right + down) * l1(x - _shifted(_shifted(x, down, -2), right, -1))
    return total


def _shifted(x: Tensor, by: int, axis: int) -> Tensor:
    """Return the images shifted by ``by`` pixels along an axis. The edge is repeated."""
    side = x.shape[axis]
    return x.index_select(axis, (torch.arange(side, device=x.device) - by).clamp_(0, side - 1))


REGULARIZERS: dict[str, Callable[[Tensor], Tensor]] = {
    "none": none,
    "l1": l1,
    "l1_mean": l1_mean,
    "l2": l2,
    "smoothness": smoothness,
    "btv": btv,
}
