"""Decoder network per layer that reconstructs images from the layer's activations (Lomurno & Matteucci 2022, §3)."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dp_leakage.common.captures import fast
from dp_leakage.common.errors import UserError
from dp_leakage.common.identity import derived_seed
from dp_leakage.data.dataset import Dataset
from dp_leakage.models.ensemble import Ensemble
from dp_leakage.models.layers import (
    AvgPool2d,
    Conv2d,
    GlobalAvgPool2d,
    Layers,
    Linear,
    MaxPool2d,
    ReLU,
    Residual,
    Sigmoid,
    SiLU,
    Tanh,
    TemperedSigmoid,
    WeightStandardizedConv2d,
)

ATTACK = {
    "family": "decoder_inversion",
    "roles": ["shadow_pool"],
    "on_device": True,
    "settings": {
        "train_records": {
            "type": ["null", "integer"],
            "minimum": 1,
            "default": None,
            "description": "How many of the first records of `shadow_pool` the decoders train on; null for all.",
        },
        "test_records": {
            "type": "integer",
            "minimum": 1,
            "default": 1000,
            "description": "How many of the first non-members are scored.",
        },
        "epochs": {"type": "integer", "minimum": 1, "default": 20, "description": "Epochs of each decoder's training."},
        "batch_size": {
            "type": "integer",
            "minimum": 1,
            "default": 100,
            "description": "Records in a batch of that training.",
        },
        "learning_rate": {
            "type": "number",
            "exclusiveMinimum": 0,
            "default": 0.001,
            "description": "Learning rate of Adam, on the mean squared error.",
        },
        "width": {"type": "integer", "minimum": 1, "default": 32, "description": "Channels of the decoders."},
        "spread": {
            "type": "number",
            "exclusiveMinimum": 0,
            "default": 1.0,
            "description": "The standard deviation to which the control `prediction_matched` scales the "
            "log-probabilities.",
        },
        "shown": {
            "type": "integer",
            "minimum": 1,
            "default": 8,
            "description": "How many images are kept as pictures.",
        },
    },
}

ACTIVATIONS = (ReLU, Tanh, Sigmoid, SiLU, TemperedSigmoid)
WORDS = {
    Conv2d: "conv",
    WeightStandardizedConv2d: "conv",
    Residual: "block",
    MaxPool2d: "maxpool",
    AvgPool2d: "avgpool",
    GlobalAvgPool2d: "avgpool",
    Linear: "dense",
}
PREDICTION = "prediction"  # the vector of probabilities, which is all that a black box shows
MATCHED, SCORES = "prediction_matched", "prediction_scores"  # controls, see `score`
NOTHING = "mean_image"  # the image of an attacker who sees no activation at all
LEAST = -69.0  # the least log-probability, ln 1e-30
AT_ONCE = 256  # images rebuilt at a time


class Cut(NamedTuple):
    """Point at which a model is cut: after the first ``stop`` layers, and an activation if pooling precedes it.

    ``stop`` None: the whole model.
    """

    name: str
    stop: int | None
    activation: nn.Module | None


def score(
    target: Ensemble, data: Dataset, fitted: dict[str, np.ndarray] | None, settings: dict, seed: int
) -> tuple[pd.DataFrame, dict[str, np.ndarray]]:
    """Train a decoder for each layer of each target model on auxiliary images and score it on unseen ones.

    There are two further controls besides the layers. They show whether a defense's prediction vector is harder to
    invert because it holds less information or because it is flatter. For ``prediction_matched``, the log-probabilities
    are scaled to a standard deviation of ``spread`` over the auxiliary records, so that all models have the same
    temperature. ``prediction_scores`` are those scaled log-probabilities themselves, centered in each record. A model
    that changes only its temperature changes neither. And ``mean_image`` is the mean of the auxiliary images, which
    needs no activation.

    Args:
        target: the R models under attack, on the device where decoders train. The layers of a user's own module are
            not known here, so only its prediction is used.
        data: images (n, channels, height, width) in [0, 1], and roles.
        fitted: unused, the attack learns from the target itself.
        settings: ``train_records``, how many of the first records of ``shadow_pool`` the decoders train on (None: all);
            ``test_records``, how many of the first non-members are scored; ``epochs``, ``batch_size`` and
            ``learning_rate`` of Adam on the mean squared error; ``width``, channels of the decoders; ``spread``;
            ``shown``, how many images are kept as pictures.
        seed: draws the decoders' initial parameters and batches; the same in all cells.

    Returns:
        Frame: repeat, target (place among the scored records), restart (0), layer, mse (over all pixels of an image).
        Pictures: ``original`` and, of the first model, one array per layer: float32 (shown, channels, height, width).

    Raises:
        UserError: the records are not images in [0, 1].
    """
    known, unknown = (images.to(target.device) for images in _images(data, settings))
    frames, pictures = [], {"original": unknown[: settings["shown"]].cpu().numpy()}
    for repeat in range(target.size):
        for layer, train_on, test_on in _views(target, repeat, known, unknown, settings["spread"]):
            rebuilt = _rebuilt(train_on, known, test_on, settings, derived_seed(seed, layer))
            error = (rebuilt - unknown).double().square().flatten(1).mean(1).cpu()
            frames.append(
                pd.DataFrame({"repeat": repeat, "target": range(len(error)), "layer": layer, "mse": error.numpy()})
            )
            if repeat == 0:
                pictures[layer] = rebuilt[: settings["shown"]].cpu().numpy()
    frame = pd.concat(frames, ignore_index=True).assign(restart=0)
    return frame[["repeat", "target", "restart", "layer", "mse"]], pictures


def cuts(layers: Layers) -> list[Cut]:
    """Return the points at which a model can be cut, from the input on. The last is the logits, called ``prediction``.

    Layers are named and numbered as in the paper (conv1, maxpool1, …, dense, prediction). A layer's output is taken
    after its activation. If the activation comes after the pooling, the attacker applies it to the convolution's
    output.

    >>> [cut.name for cut in cuts((Conv2d(1, 2, 3), MaxPool2d(2), ReLU(), Linear(8, 2)))]
    ['conv1', 'maxpool1', 'prediction']
    """
    hidden = sum(isinstance(layer, Linear) for layer in layers) - 1
    counts: dict[str, int] = {}
    result = []
    for place, layer in enumerate(layers):
        word = WORDS.get(type(layer))
        if word is None:
            continue
        counts[word] = counts.get(word, 0) + 1
        if word == "dense" and counts[word] > hidden:
            result.append(Cut(PREDICTION, len(layers), None))
            continue
        number = "" if word == "dense" and hidden == 1 else str(counts[word])
        after = _activation_after(layers, place)
        if after is None:
            result.append(Cut(word + number, place + 1, None))
        elif any(isinstance(between, MaxPool2d | AvgPool2d) for between in layers[place + 1 : after]):
            result.append(Cut(word + number, place + 1, layers[after].module()))
        else:
            result.append(Cut(word + number, after + 1, None))
    return result


def decoder(shape: tuple[int, ...], image: tuple[int, int, int], width: int) -> nn.Sequential:
    """Return a network from activations of ``shape``, (c, h, w) or (d,), to images (channels, height, width) in [0, 1].

    The paper draws its decoder and does not describe it. Ours: a vector becomes a quarter-size map; transposed
    convolutions double a map until it is as large as the image; SiLU between, a convolution and a sigmoid at the end.
    """
    channels, *size = image
    sizes = [size]
    while min(sizes[-1]) >= 4:
        sizes.append([side // 2 for side in sizes[-1]])
    parts: list[nn.Module] = []
    if len(shape) == 1:
        now = sizes[min(2, len(sizes) - 1)]
        parts += [nn.Linear(shape[0], width * now[0] * now[1]), nn.SiLU(), nn.Unflatten(1, (width, *now))]
    else:
        now = list(shape[1:])
        parts += [nn.Conv2d(shape[0], width, 3, padding=1), nn.SiLU()]
    while now[0] < size[0]:
        larger = min((s for s in sizes if s[0] > now[0]), key=lambda s: s[0])
        extra = tuple(b - 2 * a for a, b in zip(now, larger, strict=True))
        parts += [nn.ConvTranspose2d(width, width, 4, stride=2, padding=1, output_padding=extra), nn.SiLU()]
        now = larger
    return nn.Sequential(*parts, nn.Conv2d(width, channels, 3, padding=1), nn.Sigmoid())


def _activation_after(layers: Layers, place: int) -> int | None:
    """Return the index of the activation between layer ``place`` and the next layer with weights, or None."""
    for later in range(place + 1, len(layers)):
        if isinstance(layers[later], ACTIVATIONS):
            return later
        if isinstance(layers[later], Linear | Conv2d | Residual):
            return None
    return None


def _images(data: Dataset, settings: dict) -> tuple[Tensor, Tensor]:
    """Return auxiliary and test images."""
    auxiliary, others = data.roles["shadow_pool"], data.roles["target_nonmembers"]
    rows = auxiliary[: settings["train_records"]], others[: settings["test_records"]]
    if data.x.ndim != 4 or not all(len(r) and data.x[r].min() >= 0 and data.x[r].max() <= 1 for r in rows):
        raise UserError("attack decoder: the records are not images with values in [0, 1]; leave them unprojected")
    known, unknown = (torch.from_numpy(np.ascontiguousarray(data.x[r])) for r in rows)
    return known, unknown


def _views(
    target: Ensemble, model: int, known: Tensor, unknown: Tensor, spread: float
) -> Iterator[tuple[str, Tensor, Tensor]]:
    """Return (layer, activations of the known images, activations of the unknown ones), float32 (n, …)."""
    module = target.module(model)
    known_layers = cuts(target.layers) or [Cut(PREDICTION, None, None)]
    for name, stop, activation in known_layers:
        part = module if stop is None else nn.Sequential(*module[:stop], *filter(None, [activation]))
        seen = [_outputs(part, x) for x in (known, unknown)]
        if name != PREDICTION:
            yield name, *seen
            continue
        yield name, *(z.softmax(1) for z in seen)
        logs = [z.log_softmax(1).clamp(min=LEAST) for z in seen]
        logs = [z - z.mean(1, keepdim=True) for z in logs]
        scaled = [z / logs[0].std().clamp(min=1e-12) for z in logs]
        yield MATCHED, *((spread * z).softmax(1) for z in scaled)
        yield SCORES, *scaled
    yield NOTHING, known[:, :0], unknown[:, :0]


@torch.no_grad()
def _outputs(module: nn.Module, x: Tensor) -> Tensor:
    return torch.cat([module(part) for part in x.split(AT_ONCE)])


def _rebuilt(train_on: Tensor, known: Tensor, test_on: Tensor, settings: dict, seed: int) -> Tensor:
    """Train a decoder on (activations, images) and return its images for other activations."""
    if not train_on.shape[1]:
        return known.mean(0).expand(len(test_on), *known.shape[1:])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = decoder(tuple(train_on.shape[1:]), tuple(known.shape[1:]), settings["width"]).to(known.device)
        with torch.no_grad():  # start at the images' mean color, which training would take hundreds of steps to find
            network[-2].bias.copy_(known.mean((0, 2, 3)).clamp(0.01, 0.99).logit())
        parameters = list(network.parameters())
        optimizer = torch.optim.Adam(parameters, lr=settings["learning_rate"], capturable=known.is_cuda)

        def step(rows: Tensor) -> None:
            error = F.mse_loss(network(train_on[rows]), known[rows])
            for own, gradient in zip(parameters, torch.autograd.grad(error, parameters), strict=True):
                own.grad = gradient
            optimizer.step()

        take = fast(step, known)
        for _ in range(settings["epochs"]):
            for rows in torch.randperm(len(known)).to(known.device).split(settings["batch_size"]):
                take(rows)
    return _outputs(network, test_on)
