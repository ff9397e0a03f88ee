"""Deep leakage from gradients (Zhu et al. 2019): search for images and labels with the observed gradient."""

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from dp_leakage.attacks.reconstruction.lbfgs import minimize
from dp_leakage.attacks.reconstruction.matching import overlap, squared_norms
from dp_leakage.attacks.reconstruction.outcome import outcome
from dp_leakage.attacks.reconstruction.released import Released, released, victims
from dp_leakage.data.dataset import Dataset
from dp_leakage.models.ensemble import Ensemble

# ``weights``: the model whose gradient is seen, untrained or the trained target; each is measured separately.
ATTACK = {
    "family": "gradient_reconstruction",
    "label": "DLG",
    "settings": {
        "images": {"$ref": "#/$defs/images"},
        "batch": {"$ref": "#/$defs/batch"},
        "candidates": {"$ref": "#/$defs/candidates"},
        "weights": {"$ref": "#/$defs/weights"},
        "steps": {"type": "integer", "minimum": 1, "default": 1200, "description": "Steps of L-BFGS."},
        "memory": {
            "type": "integer",
            "minimum": 1,
            "default": 20,
            "description": "How many past steps L-BFGS remembers.",
        },
    },
}

MATCHED = 1e-12  # ‖g − G‖²/‖G‖² below which only the rounding of the seen float32 gradient is left


def score(
    target: Ensemble, data: Dataset, fitted: None, settings: dict, seed: int
) -> tuple[pd.DataFrame, dict[str, np.ndarray]]:
    """Reconstruct images from their gradients; see `released.released` for what the attacker sees.

    Minimizes ‖g − G‖² (directional2023, equation 4) over a batch's images and the probabilities of their labels
    together, from Gaussian noise, by L-BFGS.

    Args:
        target: the R models under attack.
        data: images in [0, 1].
        fitted: unused, the attack learns nothing.
        settings: ``images``, their number; ``batch`` and ``weights``, see `released.released`; ``candidates``, see
            `outcome.outcome`; ``steps`` and ``memory`` of L-BFGS.
        seed: of everything random; the same in all cells.

    Returns:
        See `outcome.outcome`.

    Raises:
        UserError: the data are not images in [0, 1], or a setting is not valid.
    """
    x, y = victims(data, settings["images"], "dlg")
    rebuilt = [
        (seen, leak(seen, x.shape, data.n_classes, settings)[0])
        for seen in released(target, x, y, settings, seed, "dlg")
    ]
    return outcome(data, x, rebuilt, settings, target.mechanism)


def leak(seen: Released, shape: tuple[int, ...], n_classes: int, settings: dict) -> tuple[Tensor, Tensor]:
    """Return the images float32 ``shape`` (n, …) and labels (n, C), all at once.

    Computed in float64, since ‖g‖² − 2⟨g, G⟩ + ‖G‖² of nearly equal gradients would lose all digits in float32.
    """
    parameters = {name: value.double() for name, value in seen.parameters.items()}
    gradients = {name: value.double() for name, value in seen.gradients.items()}
    # Distances relative to ‖G‖², so that gradients of all lengths are matched to the same precision.
    length = squared_norms(gradients).clamp_min(torch.finfo(torch.float64).tiny)

    def unpacked(point: Tensor) -> tuple[Tensor, Tensor]:
        each = point.reshape(shape[0], -1)
        return each[:, :-n_classes].unflatten(1, shape[1:]), each[:, -n_classes:].softmax(1)

    def distance(point: Tensor) -> Tensor:
        inner, squared = overlap(seen.layers, parameters, gradients, *unpacked(point))
        batch = seen.batch  # the seen gradient is a mean over it, that of the images a sum
        return (squared / batch**2 - 2 * inner / batch) / length + 1

    start = torch.empty(shape[0], int(np.prod(shape[1:])) + n_classes, dtype=torch.float64)
    start.normal_(generator=seen.generator)
    found = minimize(distance, start.reshape(len(length), -1), settings["steps"], settings["memory"], MATCHED)
    x, label = unpacked(found)
    return x.float(), label.float()
