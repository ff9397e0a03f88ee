"""Model inversion: for every class, an image that the model assigns to it (Fredrikson et al. 2015; zhang2020).

The image x minimizes a loss of the model's answer plus λ·R(x). All classes of all models, with all restarts, are
one batch for each penalty.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from dp_leakage.attacks.inversion.regularizers import REGULARIZERS
from dp_leakage.attacks.inversion.scores import Found, Frames, classes_of, judged
from dp_leakage.common.errors import UserError
from dp_leakage.data.dataset import Dataset
from dp_leakage.models.ensemble import Ensemble
from dp_leakage.models.input_gradients import logits_and_pull_back

# What is minimized over an image, and how.
ATTACK = {
    "family": "model_inversion",
    "settings": {
        "loss": {
            "enum": ["probability", "cross_entropy"],
            "default": "probability",
            "description": "Minimized loss, 1 − p_y (zhang2020, equation 1), or −ln p_y, whose gradient does not "
            "vanish where p_y is 0.",
        },
        "box": {
            "enum": ["tanh", "none"],
            "default": "tanh",
            "description": "Constraint of pixels to [0, 1], x = (tanh w + 1)/2, or x = w, cut at the end.",
        },
        "gradient": {
            "enum": ["image", "variable"],
            "default": "image",
            "description": "Gradient that w follows, the one for the image (as zhang2020 prints it), or for w itself, "
            "which vanishes when a pixel is near 0 or 1.",
        },
        "penalties": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "array",
                "items": {
                    "type": "array",
                    "minItems": 2,
                    "maxItems": 2,
                    "prefixItems": [
                        {"enum": ["none", "l1", "l1_mean", "l2", "smoothness", "btv"]},
                        {"type": "number", "minimum": 0},
                    ],
                },
            },
            "default": [[["none", 0.0]]],
            "description": "Each is tried: a list of terms [name, weight], which are added.",
        },
        "optimizer": {
            "enum": ["adam", "sgd"],
            "default": "adam",
            "description": "Adam as zhang2020 prints it, without bias correction, or plain gradient descent.",
        },
        "learning_rate": {"type": "number", "exclusiveMinimum": 0, "default": 0.1, "description": "Step size."},
        "steps": {"type": "integer", "minimum": 1, "default": 5000, "description": "Number of steps."},
        "start": {
            "type": "number",
            "default": 0.0,
            "description": "The mean of the normal numbers that w starts from.",
        },
        "start_deviation": {
            "type": "number",
            "minimum": 0,
            "default": 0.0,
            "description": "The standard deviation of the normal numbers that w starts from.",
        },
        "noise": {
            "type": "number",
            "minimum": 0,
            "default": 0.0,
            "description": "Each step evaluates the image with Gaussian noise of this standard deviation.",
        },
        "shift": {
            "type": "integer",
            "minimum": 0,
            "default": 0,
            "description": "Maximum shift of the image in each step, in pixels; the image wraps around.",
        },
        "looks": {
            "type": "integer",
            "minimum": 1,
            "default": 1,
            "description": "Number of evaluations averaged in each step, each with its own noise and shift.",
        },
        "restarts": {
            "type": "integer",
            "minimum": 1,
            "default": 1,
            "description": "Starts for each class and penalty; the one with the least loss counts.",
        },
        "told": {
            "enum": ["none", "euclidean", "ssim"],
            "default": "none",
            "description": "Choice among several penalties, the first, or for each model the one whose images "
            "are closest to the training images. An attacker does not know these distances, so that is an upper "
            "bound on what tuning can gain.",
        },
    },
    "variants": {
        # As Fredrikson et al. (2015) have it.
        "inversion_original": {
            "label": "inversion, original",
            "settings": {"box": "none", "optimizer": "sgd", "learning_rate": 10.0},
        },
        "inversion_original_slow": {
            "label": "inversion, original with small steps",
            "like": "inversion_original",
            "settings": {"learning_rate": 0.1},
        },
        # zhang2020's algorithm without a penalty, and its two enhanced attacks with the printed settings: the ℓ1 norm
        # as a mean over pixels or, as its formula says, a sum.
        "inversion_unpenalized": {
            "label": "inversion, without penalty",
            "draws_as": "inversion_unpenalised",  # the word that its seed is drawn from
        },
        "inversion_l1": {"label": "inversion, ℓ1", "settings": {"penalties": [[["l1_mean", 0.05]]]}},
        "inversion_l1_sum": {"label": "inversion, ℓ1 as a sum", "settings": {"penalties": [[["l1", 0.05]]]}},
        "inversion_btv": {
            "label": "inversion, BTV",
            "settings": {"penalties": [[["btv", 0.001]]], "learning_rate": 0.05, "steps": 100},
        },
        # Stronger: restarts, a loss that does not vanish, pictures that must withstand noise and shifts, and the
        # penalty that does best by one of the paper's distances.
        "inversion_tuned_euclidean": {
            "label": "inversion, tuned by distance",
            "settings": {
                "loss": "cross_entropy",
                "penalties": [
                    [["l1", 0.01], ["btv", 0.001]],
                    [["l1", 0.05]],
                    [["l2", 0.06], ["smoothness", 0.1]],
                    [["l2", 0.12], ["smoothness", 0.1]],
                    [["l2", 0.2], ["smoothness", 0.2]],
                ],
                "learning_rate": 0.02,
                "steps": 400,
                "start": -1.0,
                "start_deviation": 0.3,
                "noise": 0.3,
                "shift": 2,
                "looks": 8,
                "restarts": 3,
                "told": "euclidean",
            },
        },
        "inversion_tuned_ssim": {
            "label": "inversion, tuned by SSIM",
            "like": "inversion_tuned_euclidean",
            "settings": {"told": "ssim"},
        },
    },
}

BETA1, BETA2, TAU = 0.9, 0.999, 1e-8  # zhang2020, section III


def score(
    target: Ensemble, data: Dataset, fitted: dict[str, np.ndarray] | None, settings: dict, seed: int
) -> tuple[pd.DataFrame, dict[str, np.ndarray]]:
    """Invert every class of every model.

    Args:
        target: the K models under attack.
        data: images or rows of numbers in [0, 1]. The attacker knows only their classes and shape; the rest serves to
            judge.
        fitted: unused, the attack learns nothing.
        settings: see `ATTACK`.
        seed: of the starts.

    Returns:
        The frame and the images as `scores.judged` gives them.

    Raises:
        UserError: the records are not images.
    """
    if data.x.ndim != 4:
        raise UserError("model inversion: the records are not images; expected a data set without projection")
    classes = classes_of(target, data)
    found = [
        invert(target, classes, data.x.shape[1:], _Search.of(settings, penalty), seed)
        for penalty in settings["penalties"]
    ]
    scored = judged(data, target.train_indices.numpy(), classes, found)
    which = _told(settings["told"], [frame for frame, _ in scored])
    frames, pictures = zip(*scored, strict=True)
    return _of_each_model(which, frames), {
        **{name: np.stack([pictures[w][name][k] for k, w in enumerate(which)]) for name in pictures[0]},
        "penalty": np.asarray(which, np.float32),
    }


@dataclass(frozen=True)
class _Search:
    """Settings of the search for an image; see `score`."""

    loss: str
    box: str
    gradient: str
    penalty: tuple[tuple[str, float], ...]
    optimizer: str
    learning_rate: float
    steps: int
    start: float
    start_deviation: float
    noise: float
    shift: int
    looks: int
    restarts: int

    @classmethod
    def of(cls, settings: dict, penalty: list[list]) -> "_Search":
        own = {key: value for key, value in settings.items() if key not in ("penalties", "told")}
        return cls(penalty=tuple((kind, float(weight)) for kind, weight in penalty), **own)


def invert(models: Ensemble, classes: np.ndarray, shape: tuple[int, ...], search: _Search, seed: int) -> Found:
    """Return the best of all restarts, for each model and class.

    Args:
        models: K models.
        classes: int64 (C,), for which to find images.
        shape: of an image.
        search: settings of the search.
        seed: of the starts.
    """
    labels = torch.from_numpy(np.tile(classes, search.restarts)).expand(models.size, -1)
    generator = torch.Generator().manual_seed(seed)
    start = torch.randn(search.restarts * len(classes), *shape, generator=generator) * search.start_deviation
    w = (start + search.start).expand(models.size, *start.shape).clone()
    moments = torch.zeros_like(w), torch.zeros_like(w)
    for _ in range(search.steps):
        gradient = objective(models, w, labels, search, generator)[2]
        if search.optimizer == "adam":
            adam_step(w, gradient, *moments, search.learning_rate)
        else:
            w.sub_(gradient, alpha=search.learning_rate)
    images = pixels(w, search.box).clamp_(0, 1)
    reached, probability, _ = objective(
        models, images, labels, replace(search, box="none", noise=0.0, shift=0, looks=1)
    )
    by_restart = (models.size, search.restarts, len(classes))
    best = reached.view(by_restart).argmin(1)
    chosen = best[:, None]
    images = images.view(*by_restart, -1).gather(1, chosen[..., None].expand(-1, -1, -1, w[0, 0].numel()))[:, 0]
    probability = probability.view(by_restart).gather(1, chosen)[:, 0]
    return Found(images.view(models.size, len(classes), *shape).numpy(), best.numpy(), probability.numpy())


def objective(
    models: Ensemble, w: Tensor, labels: Tensor, search: _Search, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the minimized loss (K, B), the probability p_y (K, B), and the gradient that w follows (K, B, …).

    Args:
        models: K models.
        w: (K, B, …).
        labels: int64 (K, B).
        search: settings of the search.
        generator: of the noise and the shifts, if there are any.
    """
    x = pixels(w, search.box)
    seen, returned = _disturbed(x, search, generator)
    logits, pulled = logits_and_pull_back(models, seen)
    index = labels.repeat(1, search.looks)[..., None]
    log_p = torch.log_softmax(logits, -1)
    p = log_p.exp()
    own = p.gather(2, index)
    delta = p.scatter_add(2, index, -torch.ones_like(own))  # ∂(−ln p_y)/∂logits
    if search.loss == "probability":
        delta, loss = delta * own, 1 - own[..., 0]
    else:
        loss = -log_p.gather(2, index)[..., 0]
    own, loss = (_mean_look(values, search.looks) for values in (own[..., 0], loss))
    gradient = returned(pulled(delta))
    terms = [(kind, weight) for kind, weight in search.penalty if weight]
    if terms:
        with torch.enable_grad():
            image = x.detach().requires_grad_()
            penalty = sum(weight * REGULARIZERS[kind](image).flatten(2).sum(2) for kind, weight in terms)
            gradient = gradient + torch.autograd.grad(penalty.sum(), image)[0]
        loss = loss + penalty.detach()
    if search.box == "tanh" and search.gradient == "variable":
        gradient = gradient * (2 * x * (1 - x))  # d(tanh w + 1)/2 / dw
    return loss, own, gradient


def _disturbed(x: Tensor, search: _Search, generator: torch.Generator | None) -> tuple[Tensor, Callable]:
    """Return noisy, shifted copies of the images (K, looks · B, …), and a function from their gradient to that of x."""
    x = x.repeat(1, search.looks, *[1] * (x.ndim - 2))
    if search.noise:
        x = x + search.noise * torch.randn(x.shape[1:], generator=generator)
    if not search.shift:
        return x, lambda gradient: _mean_look(gradient, search.looks)
    by = torch.randint(-search.shift, search.shift + 1, (2,), generator=generator).tolist()
    back = [-step for step in by]
    return torch.roll(x, by, (-2, -1)), lambda gradient: _mean_look(torch.roll(gradient, back, (-2, -1)), search.looks)


def _mean_look(values: Tensor, looks: int) -> Tensor:
    """Average over copies: (K, looks · B, …) → (K, B, …)."""
    return values if looks == 1 else values.unflatten(1, (looks, -1)).mean(1)


def pixels(w: Tensor, box: str) -> Tensor:
    """Return the image of w."""
    return (torch.tanh(w) + 1) / 2 if box == "tanh" else w.clone()


def adam_step(w: Tensor, gradient: Tensor, m: Tensor, v: Tensor, learning_rate: float) -> None:
    """Apply zhang2020's algorithm 1 (lines 6 to 8) in place: w ← w − η m/√(v + τ), without bias correction."""
    m.mul_(BETA1).add_(gradient, alpha=1 - BETA1)
    v.mul_(BETA2).addcmul_(gradient, gradient, value=1 - BETA2)
    w.addcdiv_(m, (v + TAU).sqrt_(), value=-learning_rate)


def _told(measure: str, frames: Frames) -> list[int]:
    """Return the index of the selected penalty for each model."""
    repeats = frames[0]["repeat"].nunique()
    if measure == "none":
        return [0] * repeats
    column, sign = {"euclidean": ("distance", 1), "ssim": ("ssim", -1)}[measure]
    means = np.array([sign * frame.groupby("repeat")[column].mean().to_numpy() for frame in frames])
    return means.argmin(0).tolist()


def _of_each_model(which: list[int], frames: Frames) -> pd.DataFrame:
    parts = [frames[number][frames[number]["repeat"] == repeat] for repeat, number in enumerate(which)]
    return pd.concat(parts, ignore_index=True)
