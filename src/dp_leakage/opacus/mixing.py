"""Test whether a model's output for one record depends on other records of its batch."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map

FEWEST = 3  # records: one is replaced by its neighbor, and others must not notice
TOLERANCE = 1e-5  # relative


def mixing(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], batch_dim: int) -> float | None:
    """Return the largest relative change of other records' outputs if the first record changes.

    Buffers and random generators are restored. Only a module that counts its calls in attributes of its own is
    affected.

    Args:
        module: in training mode.
        args, kwargs: of its forward pass.
        batch_dim: the dimension of records.

    Returns:
        ≥ 0; None if the batch has fewer than ``FEWEST`` records or no tensor.
    """
    size = records_of(args, kwargs, batch_dim)
    if size is None or size < FEWEST:
        return None

    def replaced(value: Any) -> Any:
        if not _holds(value, size, batch_dim):
            return value
        rest = value.narrow(batch_dim, 1, size - 1)
        return torch.cat([value.narrow(batch_dim, 1, 1), rest], batch_dim)

    outputs = []
    for inputs in ((args, kwargs), tree_map(replaced, (args, kwargs))):
        with _same_draws():
            buffers = {name: buffer.clone() for name, buffer in module.named_buffers()}
            outputs.append(tree_leaves(torch.func.functional_call(module, buffers, *inputs)))
    worst = 0.0
    for before, after in zip(*outputs, strict=True):
        if _holds(before, size, batch_dim) and before.is_floating_point():
            change = (before - after).narrow(batch_dim, 1, size - 1).abs().max()
            worst = max(worst, float(change / before.abs().max().clamp(min=1e-9)))
    return worst


def records_of(args: tuple[Any, ...], kwargs: dict[str, Any], batch_dim: int) -> int | None:
    """Return the number of records of a forward pass, from its first tensor; None if it has none."""
    if args and torch.is_tensor(args[0]) and args[0].dim() > batch_dim:
        return args[0].shape[batch_dim]  # mostly; to look through all costs more
    leaves = (leaf for leaf in tree_leaves((args, kwargs)) if torch.is_tensor(leaf) and leaf.dim() > batch_dim)
    return next((leaf.shape[batch_dim] for leaf in leaves), None)


def _holds(value: Any, size: int, batch_dim: int) -> bool:
    return isinstance(value, Tensor) and value.dim() > batch_dim and value.shape[batch_dim] == size


@contextmanager
def _same_draws() -> Iterator[None]:
    """Restore the generators of Python, NumPy and PyTorch, so that two passes draw the same numbers."""
    states = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng():
            yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])
