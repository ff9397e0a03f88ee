"""Reads the record off the gradient of a fully connected first layer (Phong et al. 2017), without any search."""

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from dp_leakage.attacks.reconstruction.outcome import outcome
from dp_leakage.attacks.reconstruction.released import Released, released, victims
from dp_leakage.common.errors import UserError
from dp_leakage.data.dataset import Dataset
from dp_leakage.models.ensemble import Ensemble
from dp_leakage.models.layers import Dropout, Flatten, Layers, Linear

# ``weights``: the model whose gradient is seen, untrained or the trained target; each is measured separately.
ATTACK = {
    "family": "gradient_reconstruction",
    "settings": {"images": {"$ref": "#/$defs/images"}, "weights": {"$ref": "#/$defs/weights"}},
}


def score(
    target: Ensemble, data: Dataset, fitted: None, settings: dict, seed: int
) -> tuple[pd.DataFrame, dict[str, np.ndarray]]:
    """Computes images from their gradients; see `released.released` for what the attacker sees.

    In the first layer the gradient of a record x is δxᵀ for the weights and δ for the bias, where δ is the gradient of
    the layer's output. Side by side they are δ(x, 1)ᵀ, a matrix of rank one, which clipping only scales. So x is known
    from any row. Noise hides it; of all matrices of rank one the nearest to the noisy one is then the most likely
    under Gaussian noise.

    Args:
        target: the R models under attack.
        data: images in [0, 1].
        fitted: unused, the attack learns nothing.
        settings: ``images``, how many; ``weights``, see `released.released`.
        seed: of the initial models and the noise; the same in all cells.

    Returns:
        See `outcome.outcome`.

    Raises:
        UserError: the model does not begin with a fully connected layer, the data are no images in [0, 1], or a
            setting is not valid.
    """
    x, y = victims(data, settings["images"], "analytic")
    rebuilt = [(seen, read_off(seen).reshape(x.shape)) for seen in released(target, x, y, settings, seed, "analytic")]
    return outcome(data, x, rebuilt)


def read_off(seen: Released) -> Tensor:
    """The inputs of the first layer, float32 (n, d). 0.5 where the gradient is zero, which says nothing."""
    first = _first_layer(seen.layers)
    weight, bias = seen.gradients[f"{first}.weight"], seen.gradients[f"{first}.bias"]
    return torch.stack([_input(torch.column_stack(both).double()) for both in zip(weight, bias, strict=True)]).float()


def _input(gradient: Tensor) -> Tensor:
    """x of the δ(x, 1)ᵀ that is nearest to a matrix (outputs, d + 1), by Eckart and Young's theorem; (d,)."""
    left = torch.linalg.eigh(gradient @ gradient.T).eigenvectors[:, -1]
    right = left @ gradient
    return right[:-1] / right[-1] if right[-1] else torch.full_like(right[:-1], 0.5)


def _first_layer(layers: Layers) -> int:
    """The index of the first layer that changes records. Raises UserError if it is not fully connected."""
    index, first = next((i, layer) for i, layer in enumerate(layers) if not isinstance(layer, Flatten | Dropout))
    if not isinstance(first, Linear):
        raise UserError(
            "attack analytic reads records off the gradient of a fully connected first layer; it cannot be run on a "
            f"model that begins with {type(first).__name__}"
        )
    return index
