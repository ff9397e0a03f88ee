"""Model inversion: for every class an image that the model takes for it (Fredrikson et al. 2015; zhang2020).

The image x minimises a loss of the model's answer plus λ·R(x). All classes of all models, with all restarts and
regularisers, are one batch.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from dp_leakage.attacks.inversion.regularisers import REGULARISERS
from dp_leakage.attacks.inversion.scores import Found, Frames, classes_of, judged
from dp_leakage.data.dataset import Dataset
from dp_leakage.errors import UserError, nearest
from dp_leakage.models.ensemble import Models
from dp_leakage.models.input_gradients import logits_and_pull_back

LOSSES = ("probability", "cross_entropy")
BOXES = ("tanh", "none")
OPTIMIZERS = ("adam", "sgd")
TOLD = ("none", "euclidean", "ssim")
BETA1, BETA2, TAU = 0.9, 0.999, 1e-8  # zhang2020, section III


def score(
    target: Models, data: Dataset, fitted: dict[str, np.ndarray] | None, settings: dict, seed: int
) -> tuple[pd.DataFrame, dict[str, np.ndarray]]:
    """Inverts every class of every model.

    Args:
        target: the K models under attack.
        data: images or rows of numbers in [0, 1]; only their classes and shape are the attacker's, the rest judges.
        fitted: unused, the attack learns nothing.
        settings:
            loss: ``probability`` 1 − p_y (zhang2020, equation 1), or ``cross_entropy`` −ln p_y, whose gradient does
                not vanish where p_y is 0.
            box: ``tanh``: x = (tanh w + 1)/2 (algorithm 1, line 4); ``none``: x = w, cut to [0, 1] in the end.
            regularisers: list of [name in `REGULARISERS`, λ ≥ 0]; each is tried.
            optimizer: ``adam`` as zhang2020 prints it, without bias correction; ``sgd`` plain descent.
            learning_rate: η > 0.
            steps: T ≥ 1.
            start_deviation: w starts at 0 (0), or from normal numbers of this deviation.
            restarts: of each class and regulariser, ≥ 1; the attacker keeps the one with the least loss.
            told: which of several regularisers counts. ``none`` takes the first; ``euclidean`` and ``ssim`` take, for
                each model, the one whose images are nearest in the mean over classes: an attacker who is told these
                means, so that the result bounds from above what tuning can gain.
        seed: of the starts.

    Returns:
        The frame and the images as `scores.judged` gives them.

    Raises:
        UserError: a setting is not valid, or the records are no images.
    """
    _check(settings, data)
    classes = classes_of(target, data)
    found = [
        invert(target, classes, data.x.shape[1:], _Search.of(settings, kind, float(weight)), seed)
        for kind, weight in settings["regularisers"]
    ]
    scored = judged(data, target.train_indices.numpy(), classes, found)
    which = _told(settings["told"], [frame for frame, _ in scored])
    frames, pictures = zip(*scored, strict=True)
    return _of_each_model(which, frames), {
        **{name: np.stack([pictures[w][name][k] for k, w in enumerate(which)]) for name in pictures[0]},
        "regulariser": np.asarray(which, np.float32),
    }


@dataclass(frozen=True)
class _Search:
    """How one image is looked for; see `score`."""

    loss: str
    box: str
    kind: str
    weight: float
    optimizer: str
    learning_rate: float
    steps: int
    start_deviation: float
    restarts: int

    @classmethod
    def of(cls, settings: dict, kind: str, weight: float) -> "_Search":
        own = {key: value for key, value in settings.items() if key not in ("regularisers", "told")}
        return cls(kind=kind, weight=weight, **own)


def invert(models: Models, classes: np.ndarray, shape: tuple[int, ...], search: _Search, seed: int) -> Found:
    """The best of all restarts, for each model and class.

    Args:
        models: K models.
        classes: int64 (C,), for which to find images.
        shape: of an image.
        search: how.
        seed: of the starts.
    """
    labels = torch.from_numpy(np.tile(classes, search.restarts)).expand(models.size, -1)
    generator = torch.Generator().manual_seed(seed)
    start = torch.randn(search.restarts * len(classes), *shape, generator=generator) * search.start_deviation
    w = start.expand(models.size, *start.shape).clone()
    moments = torch.zeros_like(w), torch.zeros_like(w)
    for _ in range(search.steps):
        gradient = objective(models, w, labels, search)[2]
        if search.optimizer == "adam":
            adam_step(w, gradient, *moments, search.learning_rate)
        else:
            w.sub_(gradient, alpha=search.learning_rate)
    images = pixels(w, search.box).clamp_(0, 1)
    reached, probability, _ = objective(models, images, labels, search, boxed=False)
    by_restart = (models.size, search.restarts, len(classes))
    best = reached.view(by_restart).argmin(1)
    chosen = best[:, None]
    images = images.view(*by_restart, -1).gather(1, chosen[..., None].expand(-1, -1, -1, w[0, 0].numel()))[:, 0]
    probability = probability.view(by_restart).gather(1, chosen)[:, 0]
    return Found(images.view(models.size, len(classes), *shape).numpy(), best.numpy(), probability.numpy())


def objective(
    models: Models, w: Tensor, labels: Tensor, search: _Search, boxed: bool = True
) -> tuple[Tensor, Tensor, Tensor]:
    """What is minimised (K, B), the probability p_y (K, B), and the gradient for w (K, B, …).

    ``boxed=False`` takes w for the image itself.
    """
    x = pixels(w, search.box) if boxed else w
    logits, pulled = logits_and_pull_back(models, x)
    index = labels[..., None]
    log_p = torch.log_softmax(logits, -1)
    p = log_p.exp()
    own = p.gather(2, index)
    delta = p.scatter_add(2, index, -torch.ones_like(own))  # ∂(−ln p_y)/∂logits
    if search.loss == "probability":
        delta, loss = delta * own, 1 - own[..., 0]
    else:
        loss = -log_p.gather(2, index)[..., 0]
    gradient = pulled(delta)
    if search.weight:
        with torch.enable_grad():
            image = x.detach().requires_grad_()
            penalty = search.weight * REGULARISERS[search.kind](image).flatten(2).sum(2)
            gradient = gradient + torch.autograd.grad(penalty.sum(), image)[0]
        loss = loss + penalty.detach()
    if boxed and search.box == "tanh":
        gradient = gradient * (2 * x * (1 - x))  # d(tanh w + 1)/2 / dw
    return loss, own[..., 0], gradient


def pixels(w: Tensor, box: str) -> Tensor:
    """The image of w."""
    return (torch.tanh(w) + 1) / 2 if box == "tanh" else w.clone()


def adam_step(w: Tensor, gradient: Tensor, m: Tensor, v: Tensor, learning_rate: float) -> None:
    """One step of zhang2020's algorithm 1 (lines 6 to 8), in place: w ← w − η m/√(v + τ), without bias correction."""
    m.mul_(BETA1).add_(gradient, alpha=1 - BETA1)
    v.mul_(BETA2).addcmul_(gradient, gradient, value=1 - BETA2)
    w.addcdiv_(m, (v + TAU).sqrt_(), value=-learning_rate)


def _told(measure: str, frames: Frames) -> list[int]:
    """For each model the number of the regulariser that counts."""
    repeats = frames[0]["repeat"].nunique()
    if measure == "none":
        return [0] * repeats
    column, sign = {"euclidean": ("distance", 1), "ssim": ("ssim", -1)}[measure]
    means = np.array([sign * frame.groupby("repeat")[column].mean().to_numpy() for frame in frames])
    return means.argmin(0).tolist()


def _of_each_model(which: list[int], frames: Frames) -> pd.DataFrame:
    parts = [frames[number][frames[number]["repeat"] == repeat] for repeat, number in enumerate(which)]
    return pd.concat(parts, ignore_index=True)


def _check(settings: dict, data: Dataset) -> None:
    if data.x.ndim != 4:
        raise UserError("model inversion: the records are no images; valid is a data set without projection")
    for key, valid in (("loss", LOSSES), ("box", BOXES), ("optimizer", OPTIMIZERS), ("told", TOLD)):
        if settings[key] not in valid:
            raise UserError(f"model inversion: key '{key}' is {settings[key]!r}; {nearest(settings[key], valid)}")
    if not settings["regularisers"]:
        raise UserError("model inversion: key 'regularisers' is empty; valid is a list of [name, weight]")
    for entry in settings["regularisers"]:
        if len(entry) != 2 or entry[0] not in REGULARISERS or not float(entry[1]) >= 0:
            raise UserError(
                f"model inversion: key 'regularisers' holds {entry!r}; valid is [name, weight] with a name of "
                f"{', '.join(REGULARISERS)} and a weight from 0 on"
            )
    if settings["steps"] < 1 or settings["restarts"] < 1 or not settings["learning_rate"] > 0:
        raise UserError("model inversion: 'steps' and 'restarts' must be 1 or more and 'learning_rate' above 0")
