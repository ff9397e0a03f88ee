"""Scores of inverted images: their distance from the training images of their class."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from dp_leakage.attacks.likeness import Gallery
from dp_leakage.data.dataset import Dataset
from dp_leakage.models.ensemble import Models

Frames = Sequence[pd.DataFrame]
Pictures = dict[str, np.ndarray]


class Found(NamedTuple):
    """Inverted images, one for each of K models and C classes.

    Attributes:
        images: float32 (K, C, channels, height, width), in [0, 1].
        restart: (K, C): the number of the start that each comes from.
        confidence: (K, C): the probability that the model gives it for the class.
    """

    images: np.ndarray
    restart: np.ndarray
    confidence: np.ndarray


def classes_of(target: Models, data: Dataset) -> np.ndarray:
    """Return the classes of which every model has training records, int64 ascending, so that a comparison
    is possible.
    """
    held = [np.unique(data.y[rows]) for rows in target.train_indices.numpy()]
    return np.arange(data.n_classes)[[all(c in own for own in held) for c in range(data.n_classes)]]


def judged(
    data: Dataset, train_indices: np.ndarray, classes: np.ndarray, candidates: Sequence[Found]
) -> list[tuple[pd.DataFrame, Pictures]]:
    """Return the MIA distance of zhang2020 (section III): from the nearest of the class's training images.

    Args:
        data: the records.
        train_indices: int64 (K, n): the rows that each model was trained on.
        classes: int64 (C,).
        candidates: the images found by each of several searches.

    Returns:
        For each candidate the frame: repeat int64, target int64 (the class), restart int64, distance float64 (the least
        Euclidean one), ssim float64 (the largest), confidence float64; and, float32, ``reconstruction`` (the images),
        ``original`` (for each the training image nearest in the Euclidean sense), ``class_mean``, ``target``,
        ``distance``, ``ssim``, ``confidence``, (K, C, …) each.
    """
    shape = (len(candidates), len(train_indices), len(classes))
    distance, likeness = np.empty(shape), np.empty(shape)
    originals = np.empty((*shape, *data.x.shape[1:]), np.float32)
    means = np.empty(originals.shape[1:], np.float32)
    for k, rows in enumerate(train_indices):
        for c, label in enumerate(classes):
            own = data.x[rows[data.y[rows] == label]]
            gallery, means[k, c] = Gallery.of(own), own.mean(0)
            for number, found in enumerate(candidates):
                apart = gallery.distances(found.images[k, c])
                distance[number, k, c] = apart.min()
                likeness[number, k, c] = gallery.ssim(found.images[k, c]).max()
                originals[number, k, c] = own[apart.argmin()]
    return [
        _judged(found, classes, means, *own)
        for found, *own in zip(candidates, distance, likeness, originals, strict=True)
    ]


def _judged(
    found: Found,
    classes: np.ndarray,
    means: np.ndarray,
    distance: np.ndarray,
    likeness: np.ndarray,
    originals: np.ndarray,
) -> tuple[pd.DataFrame, Pictures]:
    models = len(distance)
    columns = {
        "repeat": np.repeat(np.arange(models), len(classes)),
        "target": np.tile(classes, models),
        "restart": found.restart.astype(np.int64).ravel(),
        "distance": distance.ravel(),
        "ssim": likeness.ravel(),
        "confidence": found.confidence.astype(np.float64).ravel(),
    }
    pictures = {
        "reconstruction": found.images,
        "original": originals,
        "class_mean": means,
        "target": columns["target"].reshape(distance.shape),
        "distance": distance,
        "ssim": likeness,
        "confidence": found.confidence,
    }
    return pd.DataFrame(columns), {name: np.asarray(array, np.float32) for name, array in pictures.items()}
