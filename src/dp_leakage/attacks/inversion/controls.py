"""Controls that attacks must beat: images available to everybody, compared with the training images of each class.

A thin digit is close to a black image, so a small MIA distance means nothing without these controls (zhang2020 prints
none).
"""

import numpy as np
import pandas as pd
import torch

from dp_leakage.attacks.inversion.scores import Found, classes_of, judged
from dp_leakage.data.dataset import Dataset
from dp_leakage.data.subclasses import by_kmeans
from dp_leakage.models.ensemble import Ensemble
from dp_leakage.models.input_gradients import logits_and_pull_back

# Not an attack: the distances of pictures that one can make without a model.
ATTACK = {
    "family": "model_inversion",
    "settings": {
        "k_sub": {
            "type": "integer",
            "minimum": 0,
            "default": 0,
            "description": "Number of k-means subclasses in each class, for example images; 0 for none.",
        },
    },
    "variants": {"inversion_controls": {"label": "pictures without a model"}},
}

EXAMPLES = 9  # images shown of each subclass
SHOWN = 2  # subclasses shown of each class


def score(
    target: Ensemble, data: Dataset, fitted: dict[str, np.ndarray] | None, settings: dict, seed: int
) -> tuple[pd.DataFrame, dict[str, np.ndarray]]:
    """Score the black, the gray and the mean image, and for comparison the class means, which no attacker has.

    Args:
        target: the models; only their training records and the probabilities that they give these pictures are used.
        data: images.
        fitted: unused.
        settings: ``k_sub``: how many subclasses k-means finds in each class, for examples of them; 0 for none.
        seed: of k-means.

    Returns:
        The frame of `scores.judged` with a column ``variant`` (black, gray, mean, class_mean); and name → float32
        array: each variant's image for every class, (K, C, …), and, if asked for, ``subclasses`` (C, subclasses,
            images, …): members of the largest subclasses of each class.
    """

    classes, indices = classes_of(target, data), target.train_indices.numpy()
    shape = (target.size, len(classes), *data.x.shape[1:])
    whole = np.stack([data.x[rows].mean(0) for rows in indices])[:, None]
    by_class = [[data.x[rows[data.y[rows] == c]].mean(0) for c in classes] for rows in indices]
    variants = {
        "black": np.zeros(shape, np.float32),
        "gray": np.full(shape, 0.5, np.float32),
        "mean": np.broadcast_to(whole, shape).astype(np.float32),
        "class_mean": np.array(by_class, np.float32),
    }
    found = [_shown_to(target, classes, images) for images in variants.values()]
    frames = [frame for frame, _ in judged(data, indices, classes, found)]
    pictures = dict(variants)
    if settings["k_sub"]:
        pictures["subclasses"] = _examples(data, indices[0], classes, settings["k_sub"], seed)
    named = [frame.assign(variant=name) for name, frame in zip(variants, frames, strict=True)]
    return pd.concat(named, ignore_index=True), pictures


def _shown_to(target: Ensemble, classes: np.ndarray, images: np.ndarray) -> Found:
    """Return the images (K, C, …) with the models' probabilities for their classes."""
    logits, _ = logits_and_pull_back(target, torch.from_numpy(images.copy()))
    index = torch.from_numpy(classes).expand(target.size, -1)[..., None]
    confidence = logits.softmax(-1).gather(2, index)[..., 0].numpy()
    return Found(images, np.zeros(images.shape[:2], np.int64), confidence)


def _examples(data: Dataset, rows: np.ndarray, classes: np.ndarray, k_sub: int, seed: int) -> np.ndarray:
    """Return images of the largest subclasses, (C, SHOWN, EXAMPLES, …), padded with black."""
    shown = np.zeros((len(classes), SHOWN, EXAMPLES, *data.x.shape[1:]), np.float32)
    groups = by_kmeans(data.x[rows], data.y[rows], k_sub, seed)
    sizes = np.bincount(groups, minlength=data.n_classes * k_sub).reshape(-1, k_sub)
    for place, label in enumerate(classes):
        for rank, subclass in enumerate(np.argsort(-sizes[label], kind="stable")[:SHOWN]):
            own = data.x[rows[groups == label * k_sub + subclass]][:EXAMPLES]
            shown[place, rank, : len(own)] = own
    return shown
