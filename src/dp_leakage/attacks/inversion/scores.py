"""Judging inverted images: how near they come to the training images of their class."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from dp_leakage.attacks.similarity import euclidean, ssim
from dp_leakage.data.dataset import Dataset
from dp_leakage.models.ensemble import Models

Frames = Sequence[pd.DataFrame]
Pictures = dict[str, np.ndarray]


def classes_of(target: Models, data: Dataset) -> np.ndarray:
    """The classes that every model has training records of, int64 ascending: those with an answer to judge by."""
    held = [np.unique(data.y[rows]) for rows in target.train_indices.numpy()]
    return np.arange(data.n_classes)[[all(c in own for own in held) for c in range(data.n_classes)]]


def judged(
    data: Dataset,
    train_indices: np.ndarray,
    classes: np.ndarray,
    images: np.ndarray,
    restart: np.ndarray,
    confidence: np.ndarray,
) -> tuple[pd.DataFrame, Pictures]:
    """The MIA distance of zhang2020 (section III): from the nearest of the class's training images.

    Args:
        data: the records.
        train_indices: int64 (K, n): the rows that each model was trained on.
        classes: int64 (C,).
        images: float32 (K, C, channels, height, width), one for each model and class, in [0, 1].
        restart: (K, C): which start an image comes from.
        confidence: (K, C): the probability that the model gives its image for the class.

    Returns:
        The frame: repeat int64, target int64 (the class), restart int64, distance float64 (the least Euclidean one), ssim
        float64 (the largest), confidence float64; and, float32, ``reconstruction`` (the images), ``original`` (for
        each the training image nearest in the Euclidean sense), ``class_mean``, ``target``, ``distance``, ``ssim``,
        ``confidence``, (K, C, …) each.
    """
    shape = images.shape[:2]
    distance, likeness = np.empty(shape), np.empty(shape)
    originals, means = np.empty_like(images), np.empty_like(images)
    for k, rows in enumerate(train_indices):
        for c, label in enumerate(classes):
            own = data.x[rows[data.y[rows] == label]]
            apart = euclidean(images[k, c], own)
            distance[k, c], likeness[k, c] = apart.min(), ssim(images[k, c], own).max()
            originals[k, c], means[k, c] = own[apart.argmin()], own.mean(0)
    target = np.broadcast_to(classes, shape)
    columns = {"restart": restart, "distance": distance, "ssim": likeness, "confidence": confidence}
    frame = pd.DataFrame(
        {
            "repeat": np.repeat(np.arange(shape[0]), shape[1]),
            "target": target.ravel(),
            **{name: np.asarray(values).ravel() for name, values in columns.items()},
        }
    ).astype({"restart": np.int64, "confidence": np.float64})
    pictures = {
        "reconstruction": images,
        "original": originals,
        "class_mean": means,
        "target": target,
        "distance": distance,
        "ssim": likeness,
        "confidence": confidence,
    }
    return frame, {name: np.asarray(array, np.float32) for name, array in pictures.items()}
