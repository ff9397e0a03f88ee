"""Limited-memory BFGS on many small problems at once, each with its own memory and its own steps."""

from collections import deque
from collections.abc import Callable

import torch
from torch import Tensor

CURVATURE = 1e-10  # steps with less curvature ⟨s, y⟩ hold no information and are not remembered
DECREASE = 1e-4  # share of the predicted decrease that a step must reach (Armijo)
HALVINGS = 12


def minimize(
    objective: Callable[[Tensor], Tensor], start: Tensor, steps: int, memory: int = 20, enough: float = -torch.inf
) -> Tensor:
    """Minimize n functions of d variables side by side (Nocedal & Wright 2006, algorithm 7.5, with backtracking).

    Args:
        objective: differentiable, x (n, d) → (n,), where element i depends only on row i of x.
        start: (n, d).
        steps: the most steps. A problem that finds no decrease clears its memory, and stops if that does not help.
        memory: number of remembered steps of each problem.
        enough: a value at which a problem is solved.

    Returns:
        (n, d), nowhere worse than the start.
    """
    x = start.detach().clone()
    value, gradient = _evaluated(objective, x)
    past: deque[tuple[Tensor, Tensor, Tensor]] = deque(maxlen=memory)
    going = value > enough
    afresh = torch.ones_like(going)
    for _ in range(steps):
        if not bool(going.any()):
            break
        direction = _direction(gradient, past)
        new_x, new_value, new_gradient, accepted = _step(objective, x, value, gradient, direction, going)
        s, y = new_x - x, new_gradient - gradient
        curved = (s * y).sum(1)
        weight = torch.where(accepted & (curved > CURVATURE * y.square().sum(1)), 1 / curved, 0.0)
        past.append((s, y, weight))
        for _, _, remembered in past:
            remembered[~accepted] = 0.0
        x, value, gradient = new_x, new_value, new_gradient
        going = going & (accepted | ~afresh) & (value > enough)
        afresh = ~accepted
    return x


def _evaluated(objective: Callable[[Tensor], Tensor], x: Tensor) -> tuple[Tensor, Tensor]:
    """Return values (n,) and gradients (n, d)."""
    x = x.detach().requires_grad_()
    value = objective(x)
    (gradient,) = torch.autograd.grad(value.sum(), x)
    return value.detach(), gradient


def _direction(gradient: Tensor, past: "deque[tuple[Tensor, Tensor, Tensor]]") -> Tensor:
    """Return the search direction by the two-loop recursion; without memory, the gradient cut to an ℓ1 norm of 1."""
    q = -gradient
    shares = []
    for s, y, weight in reversed(past):
        share = weight * (s * q).sum(1)
        q = q - share[:, None] * y
        shares.append(share)
    first = 1 / gradient.abs().sum(1).clamp_min(1.0)
    scale = first.clone()
    for _, y, weight in past:  # the newest remembered step decides
        scale = torch.where(weight > 0, 1 / (weight * y.square().sum(1)).clamp_min(1e-300), scale)
    q = q * scale[:, None]
    for (s, y, weight), share in zip(past, reversed(shares), strict=True):
        q = q + (share - weight * (y * q).sum(1))[:, None] * s
    return q


def _step(
    objective: Callable[[Tensor], Tensor], x: Tensor, value: Tensor, gradient: Tensor, direction: Tensor, going: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Take, for each problem, the first of the lengths 1, ½, ¼, … with sufficient decrease. Other problems do not
    move.
    """
    new_x, new_value, new_gradient = x.clone(), value.clone(), gradient.clone()
    slope = (direction * gradient).sum(1)
    searching = going & (slope < 0)
    accepted = torch.zeros_like(searching)
    length = 1.0
    for _ in range(HALVINGS):
        if not bool(searching.any()):
            break
        tried = torch.where(searching[:, None], x + length * direction, new_x)
        tried_value, tried_gradient = _evaluated(objective, tried)
        good = searching & (tried_value <= value + DECREASE * length * slope) & tried_gradient.isfinite().all(1)
        new_x[good], new_value[good], new_gradient[good] = tried[good], tried_value[good], tried_gradient[good]
        accepted, searching = accepted | good, searching & ~good
        length /= 2
    return new_x, new_value, new_gradient, accepted
