"""Inverting gradients (Geiping et al. 2020): search for images whose gradient has the direction of the observed one."""

from math import ceil

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor

from dp_leakage.attacks.reconstruction.matching import overlap, squared_norms
from dp_leakage.attacks.reconstruction.outcome import outcome
from dp_leakage.attacks.reconstruction.released import Released, released, victims
from dp_leakage.common.captures import fast
from dp_leakage.data.dataset import Dataset
from dp_leakage.models.ensemble import Ensemble

# ``weights``: the model whose gradient is seen, untrained or the trained target; each is measured separately.
ATTACK = {
    "family": "gradient_reconstruction",
    "label": "IGA",
    "on_device": True,
    "settings": {
        "images": {"$ref": "#/$defs/images"},
        "batch": {"$ref": "#/$defs/batch"},
        "candidates": {"$ref": "#/$defs/candidates"},
        "weights": {"$ref": "#/$defs/weights"},
        "steps": {"type": "integer", "minimum": 1, "default": 24000, "description": "Steps of Adam."},
        "step_size": {
            "type": "number",
            "exclusiveMinimum": 0,
            "default": 0.1,
            "description": "Step size of Adam, in pixels.",
        },
        "total_variation": {
            "type": "number",
            "minimum": 0,
            "default": 0.2,
            "description": "The weight of the image's total variation.",
        },
        "precision": {
            "enum": ["float64", "float32"],
            "default": "float64",
            "description": "float32 takes half the time; float64 is for models whose gradients hardly depend on the "
            "image.",
        },
    },
}

BETAS, ADAM_EPSILON = (0.9, 0.999), 1e-8
MILESTONES = (3 / 8, 5 / 8, 7 / 8)  # shares of all steps after which the step size falls to a tenth
LEAST = 1e-30  # smaller squared norms count as no gradient at all


def score(
    target: Ensemble, data: Dataset, fitted: None, settings: dict, seed: int
) -> tuple[pd.DataFrame, dict[str, np.ndarray]]:
    """Reconstruct images from their gradients; see `released.released` for the attacker's view.

    Minimizes 1 − cos(g, G) + α·TV(x) over x in [0, 1] (directional2023, equation 6) by Adam on the signs of the
    gradient, from Gaussian noise. The attacker knows the class, since a gradient reveals it anyway (Zhao et al. 2020).

    Args:
        target: the R models under attack.
        data: images in [0, 1].
        fitted: unused, the attack learns nothing.
        settings: ``images``, their number; ``batch`` and ``weights``, see `released.released`; ``candidates``, see
            `outcome.outcome`; ``steps``; ``step_size`` of Adam, in
            pixels' units; ``total_variation``, α; ``precision``: float32, as in the method's released code, takes half
            the time. float64 is for models whose gradients hardly depend on the image: under an untrained LeNet with
            sigmoids the cosines for the gradients of an image and of white noise differ only in the sixth digit.
        seed: of everything random; the same in all cells.

    Returns:
        See `outcome.outcome`.

    Raises:
        UserError: the data are not images in [0, 1], or a setting is not valid.
    """
    x, y = victims(data, settings["images"], "iga")
    label = F.one_hot(y, data.n_classes)
    steps = released(target.to("cpu"), x, y, settings, seed, "iga")  # every device sees the same gradients
    rebuilt = [(seen, invert(seen, label, x.shape[1:], settings, target.device)) for seen in steps]
    return outcome(data, x, rebuilt, settings, target.mechanism)


def invert(
    seen: Released,
    label: Tensor,
    shape: tuple[int, ...],
    settings: dict,
    device: torch.device,
    box: tuple[float | Tensor, float | Tensor] = (0.0, 1.0),
) -> Tensor:
    """Return the images float32 (n, …), all at once.

    Args:
        seen: the gradients.
        label: (n, C) probabilities of the classes.
        shape: of one image.
        settings: of the attack.
        device: device for the computation.
        box: the least and the largest values of pixels, numbers or tensors (c, 1, 1).
    """
    precision = getattr(torch, settings["precision"])
    parameters = {name: value.to(device, precision) for name, value in seen.parameters.items()}
    gradients = {name: value.to(device, precision) for name, value in seen.gradients.items()}
    label = label.to(device, precision)
    length = squared_norms(gradients).clamp_min(LEAST).sqrt()
    start = torch.empty(len(label), *shape, dtype=torch.float64).normal_(generator=seen.generator)
    x = start.to(device, precision)  # the same start in either precision
    mean, square = torch.zeros_like(x), torch.zeros_like(x)
    limits = [torch.as_tensor(limit).to(device, precision) for limit in box]

    def step(factors: Tensor) -> None:
        """Move x. ``factors``: the step size and Adam's correction of the mean square, float64 (2,)."""
        image = x.detach().requires_grad_()
        inner, squared = overlap(seen.layers, parameters, gradients, image, label)
        cosine = inner / (squared.clamp_min(LEAST).sqrt() * length)
        smooth = total_variation(image).unflatten(0, (len(cosine), -1)).mean(1)
        objective = (1 - cosine + settings["total_variation"] * smooth).sum()
        (gradient,) = torch.autograd.grad(objective, image)
        sign = gradient.sign()
        mean.lerp_(sign, 1 - BETAS[0])
        square.lerp_(sign.square(), 1 - BETAS[1])
        size, correction = factors
        spread = (square / correction).sqrt_().add_(ADAM_EPSILON)
        x.sub_(size * mean / spread).clamp_(*limits)

    take = fast(step, x)
    numbers = range(1, settings["steps"] + 1)
    factors = [[step_size(n, settings) / (1 - BETAS[0] ** n), 1 - BETAS[1] ** n] for n in numbers]
    for own in torch.tensor(factors, dtype=torch.float64, device=device):
        take(own)
    return x.float().cpu()


def step_size(step: int, settings: dict) -> float:
    """Return the step size of step number ``step``, counted from 1."""
    passed = sum(step > ceil(milestone * settings["steps"]) for milestone in MILESTONES)
    return settings["step_size"] / 10**passed


def total_variation(x: Tensor) -> Tensor:
    """Return the mean absolute difference of vertical neighbors plus that of horizontal neighbors, (n,), for x (n, c,
    h, w).
    """
    return x.diff(dim=2).abs().mean((1, 2, 3)) + x.diff(dim=3).abs().mean((1, 2, 3))
