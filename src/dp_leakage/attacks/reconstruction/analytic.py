"""Reconstruct records from the gradient of a fully connected first layer: one (Phong et al. 2017), or a batch.

A batch's records come out exactly if many units are inactive for each of them, as under a ReLU (Dimitrov, Baader,
Müller & Vechev 2024, "SPEAR: Exact gradient inversion of batches in federated learning").
"""

import numpy as np
import pandas as pd
import torch
from torch import Generator, Tensor

from dp_leakage.attacks.reconstruction.outcome import outcome
from dp_leakage.attacks.reconstruction.released import Released, released, victims
from dp_leakage.common.errors import UserError
from dp_leakage.data.dataset import Dataset
from dp_leakage.models.ensemble import Ensemble
from dp_leakage.models.layers import Dropout, Flatten, Layers, Linear

# ``weights``: the model whose gradient is seen, untrained or the trained target; each is measured separately.
ATTACK = {
    "family": "gradient_reconstruction",
    "label": "Analytic inversion",
    "settings": {
        "images": {"$ref": "#/$defs/images"},
        "batch": {"$ref": "#/$defs/batch"},
        "candidates": {"$ref": "#/$defs/candidates"},
        "weights": {"$ref": "#/$defs/weights"},
    },
}

DRAWS = 10_000  # sets of units for which a record is looked for that all of them ignore
SILENT = 1e-3  # of a record's largest entry: up to here a unit ignores it, but for rounding
APART = 1e-2  # sine of the angle from which on two directions are different


def score(
    target: Ensemble, data: Dataset, fitted: None, settings: dict, seed: int
) -> tuple[pd.DataFrame, dict[str, np.ndarray]]:
    """Compute images from their gradients; see `released.released` for the attacker's view.

    In the first layer the gradient of a record x is δxᵀ for the weights and δ for the bias, where δ is the gradient of
    the layer's output. Side by side they are δ(x, 1)ᵀ, a matrix of rank one, which clipping only scales. So x is known
    from any row. A batch's gradient is the sum of such matrices, ΔX; `_records` separates them. Under Gaussian noise,
    the most likely ΔX is the nearest matrix of its rank.

    Args:
        target: the R models under attack.
        data: images in [0, 1].
        fitted: unused, the attack learns nothing.
        settings: ``images``, their number; ``batch`` and ``weights``, see `released.released`; ``candidates``, see
            `outcome.outcome`.
        seed: of the initial models and the noise; the same in all cells.

    Returns:
        See `outcome.outcome`.

    Raises:
        UserError: the model does not begin with a fully connected layer, the data are not images in [0, 1], or a
            setting is not valid.
    """
    x, y = victims(data, settings["images"], "analytic")
    steps = released(target, x, y, settings, seed, "analytic")
    rebuilt = [(seen, read_off(seen).reshape(x.shape)) for seen in steps]
    return outcome(data, x, rebuilt, settings, target.mechanism)


def read_off(seen: Released) -> Tensor:
    """Return the inputs of the first layer, float32 (n, d), of a batch in any order. 0.5 where the gradient has no
    information.
    """
    first = _first_layer(seen.layers)
    weight, bias = seen.gradients[f"{first}.weight"], seen.gradients[f"{first}.bias"]
    each = [torch.column_stack(both).double() for both in zip(weight, bias, strict=True)]
    return torch.cat([_records(gradient, seen.batch, seen.generator) for gradient in each]).float()


def _records(gradient: Tensor, batch: int, generator: Generator) -> Tensor:
    """Return the rows x of X, (batch, d), of the ΔX with rows (x, 1) that is nearest to a matrix (outputs, d + 1).

    The nearest matrix of that rank (Eckart & Young) is LR, with L (outputs, batch) and X = Q⁻¹R for some Q. The column
    of Q that belongs to a record is orthogonal to the rows of L of all units that are inactive for the record, so LQ =
    Δ has zeros there. Any other direction has fewer zeros, except in the last hidden layer if there are at most as many
    classes as records. So the search tries directions orthogonal to batch − 1 rows of L, and keeps the directions with
    the most zeros.
    """
    gradient = gradient[gradient.any(1)]  # units that ignore all records say nothing
    if len(gradient) < batch:
        return gradient.new_full((batch, gradient.shape[1] - 1), 0.5)
    left = torch.linalg.eigh(gradient @ gradient.T).eigenvectors[:, -batch:]
    found = torch.linalg.solve(_directions(left, generator), left.T @ gradient)
    return (found[:, :-1] / found[:, -1:]).nan_to_num(0.5, 0.5, 0.5)


def _directions(left: Tensor, generator: Generator) -> Tensor:
    """Return the columns q, (batch, batch), for which ``left`` (outputs, batch) times q has the most
    zeros; independent.
    """
    batch = left.shape[1]
    if batch == 1:
        return left.new_ones(1, 1)
    drawn = torch.rand(DRAWS, len(left), generator=generator).argsort(1)[:, : batch - 1]
    tried = torch.linalg.svd(left[drawn]).Vh[:, -1]
    entries = (tried @ left.T).abs()
    zeros = (entries <= SILENT * entries.amax(1, keepdim=True)).sum(1).double()
    chosen, rest = [], tried
    for _ in range(batch):
        best = int(torch.where(rest.norm(dim=1) > APART, zeros, -1.0).argmax())
        chosen.append(tried[best])
        direction = rest[best] / rest[best].norm()
        rest = rest - (rest @ direction)[:, None] * direction
    return torch.stack(chosen, 1)


def _first_layer(layers: Layers) -> int:
    """Return the index of the first layer that changes records. Raises UserError if it is not fully connected."""
    index, first = next((i, layer) for i, layer in enumerate(layers) if not isinstance(layer, Flatten | Dropout))
    if not isinstance(first, Linear):
        raise UserError(
            "attack analytic reads records off the gradient of a fully connected first layer; it cannot be run on a "
            f"model that begins with {type(first).__name__}"
        )
    return index
