"""Shadow models (Shokri et al. 2017): networks learn members' outputs from shadow models.

This package's own trainer trains the networks, so this is the only membership attack that needs PyTorch.
"""

from typing import TYPE_CHECKING

import numpy as np

from dp_leakage.attacks.membership.shadows import shadow_examples
from dp_leakage.attacks.signals import Scores, Signals

if TYPE_CHECKING:
    from dp_leakage.models.layers import Layers

ATTACK = {
    "family": "membership",
    "label": "Shokri membership",
    "needs": "shadow",
    "reads": "probabilities",
    "learns": True,
    "roles": ["shadow_pool"],
    "settings": {
        "per_class": {
            "type": "boolean",
            "default": True,
            "description": "One attack network for each class, or a single one that also gets the class.",
        },
        "hidden": {
            "type": "array",
            "items": {"type": "integer", "minimum": 1},
            "default": [64, 64],
            "description": "Widths of the attack networks' hidden layers.",
        },
        "initialization": {
            "enum": ["torch", "glorot"],
            "default": "torch",
            "description": "Initialization of the attack networks, as PyTorch's or as Keras'.",
        },
        "learning_rate": {"type": "number", "exclusiveMinimum": 0, "default": 0.01, "description": "Of Adam."},
        "epochs": {
            "type": "integer",
            "minimum": 1,
            "default": 100,
            "description": "Epochs of the attack networks' training.",
        },
        "batch_size": {
            "type": "integer",
            "minimum": 1,
            "default": 100,
            "description": "Records in a batch of that training.",
        },
        "l2": {"type": "number", "minimum": 0, "default": 0.0, "description": "λ of a penalty λ·Σw² in that training."},
    },
}


def fit(models: Signals, settings: dict, seed: int) -> dict[str, np.ndarray]:
    """Train the attack networks on the shadow models' probabilities for their members and non-members.

    `shadows.shadow_examples` draws the records in and out of each shadow's training set. With ``per_class`` there is
    one network for each class, as in jayaraman2019's released code. All take the same number of steps, so records of a
    smaller class are used more often, and a class without shadow records learns from all of them. Without
    ``per_class``, a single network also gets the class, one-hot.

    Args:
        models: of the shadow models, with probabilities.
        settings: ``per_class``; ``hidden``, the widths of the ReLU layers, and their ``initialization``;
            ``learning_rate`` of Adam, ``epochs``, ``batch_size``; ``l2``, the weight λ of a penalty λ·Σw².
        seed: draws the out records, the networks' initial parameters and their batches.

    Returns:
        The networks' parameters, float32; the first axis is the class (or the one network).

    Raises:
        UserError: a shadow model was trained on the whole pool.
    """
    import torch

    from dp_leakage.training.settings import TrainingSettings
    from dp_leakage.training.trainer import train

    rng = np.random.default_rng(seed)
    parts = list(shadow_examples(models, rng))
    probabilities, label, inside = (np.concatenate(column) for column in zip(*parts, strict=True))
    n_classes = probabilities.shape[1]
    if settings["per_class"]:
        x, groups = probabilities, [np.flatnonzero(label == c) for c in range(n_classes)]
    else:
        x, groups = _with_class(probabilities, label), [np.arange(len(label))]
    longest = max(map(len, groups))
    groups = [group if len(group) else np.arange(len(label)) for group in groups]
    subsets = np.stack([np.resize(rng.permutation(group), longest) for group in groups])
    networks, _ = train(
        _layers(n_classes, settings),
        torch.from_numpy(x),
        torch.from_numpy(inside),
        torch.from_numpy(subsets),
        rng.integers(2**62, size=len(groups)).tolist(),
        TrainingSettings(
            optimizer="adam",
            learning_rate=settings["learning_rate"],
            epochs=settings["epochs"],
            batch_size=settings["batch_size"],
            evaluate_every=settings["epochs"],
            initialization=settings["initialization"],
            l2=settings["l2"],
        ),
        None,
    )
    return {name: value.cpu().numpy() for name, value in networks.parameters.items()}


def score(target: Signals, fitted: dict[str, np.ndarray], settings: dict, seed: int) -> Scores:
    """Score every queried record with the attack networks' log-odds of "member", flagged above 0 (P above ½).

    It uses log-odds, since probabilities round to 1 exactly where low false positive rates are decided.

    Args:
        target: of the R models under attack, with probabilities.
        fitted: result of `fit` for the same settings.
        settings: as in `fit`.
        seed: unused, nothing is drawn.
    """
    import torch

    from dp_leakage.models.ensemble import Ensemble

    asked = target.asked
    probability = asked.probability
    assert probability is not None  # the attack declares that it reads probabilities
    n_classes = probability.shape[2]
    tensors = {name: torch.from_numpy(value) for name, value in fitted.items()}
    count = len(next(iter(tensors.values())))
    networks = Ensemble.from_tensors(
        _layers(n_classes, settings), tensors | {"train_indices": torch.zeros((count, 0), dtype=torch.int64)}
    )
    member_logit = np.empty(asked.trained_on.shape)
    for network, rows in _rows_of_networks(asked.y, settings["per_class"]):
        x = probability[:, rows].reshape(-1, n_classes)
        if not settings["per_class"]:
            x = _with_class(x, np.tile(asked.y[rows], asked.size))
        out_in = networks.logits(torch.from_numpy(x), models=[network])[0].double().numpy()
        member_logit[:, rows] = (out_in[:, 1] - out_in[:, 0]).reshape(asked.size, -1)
    return Scores(member_logit, member_logit > 0)


def _rows_of_networks(label: np.ndarray, per_class: bool) -> list[tuple[int, np.ndarray]]:
    """Return the records that each network judges."""
    if not per_class:
        return [(0, np.arange(len(label)))]
    return [(int(c), np.flatnonzero(label == c)) for c in np.unique(label)]


def _with_class(probabilities: np.ndarray, label: np.ndarray) -> np.ndarray:
    """Return the probabilities followed by the one-hot class, (n, 2C)."""
    return np.hstack([probabilities, np.eye(probabilities.shape[1], dtype=np.float32)[label]])


def _layers(n_classes: int, settings: dict) -> "Layers":
    from dp_leakage.models.architectures import build

    width = n_classes if settings["per_class"] else 2 * n_classes
    return build("mlp", (width,), 2, hidden=settings["hidden"])
