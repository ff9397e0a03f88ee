"""Result of a reconstruction attack: the images and their distance from the originals."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from torch import Tensor

from dp_leakage.attacks.likeness import similarity
from dp_leakage.attacks.reconstruction.recognition import most_recognized, others_among, recognized
from dp_leakage.attacks.reconstruction.released import Released
from dp_leakage.data.dataset import Dataset
from dp_leakage.privacy.mechanism import Mechanism


def outcome(
    data: Dataset,
    originals: Tensor,
    rebuilt: Sequence[tuple[Released, Tensor]],
    settings: dict,
    mechanism: Mechanism | None,
) -> tuple[pd.DataFrame, dict[str, np.ndarray]]:
    """Return the score table and the images of an attack.

    Args:
        data: for the spread of its pixels.
        originals: float32 (n, c, h, w) in [0, 1].
        reconstructed: the images that the attack made for each model and kind of weights, of the same shape. Pixels are
            clipped to [0, 1], since the attacker knows this range. Images of a batch come in any order; each stands for
            the original that it is assigned to (`matched`).
        settings: of the attack; ``batch``, how many images a step takes, or a list; ``candidates``, among how many each
            reconstructed one is to be recognized, or None.
        mechanism: protection of the step.

    Returns:
        A frame with repeat, target (number of the image), restart (0), gradient (number of the step that the image was
        in, for each repeat another gradient), ``weights``, for a list also ``batch``, ssim,
        mse (pixels in [0, 1]) and mse_standardized (pixels in units of their channel's standard deviation over the
        members); with ``candidates`` also these, recognized and recognized_proven, see `recognition`; and the pictures:
        ``original`` (n, c, h, w), and for each kind of weights ``weights=…`` (R, n, c, h, w), for a list
        ``batch=…;weights=…``.
    """
    truth = originals.numpy()
    spread = data.x[data.roles["target_members"]].std(axis=(0, 2, 3))
    candidates, several = settings["candidates"], isinstance(settings["batch"], list)
    others = None if candidates is None else others_among(data, len(truth), candidates)
    frames: list[pd.DataFrame] = []
    pictures: dict[str, list[np.ndarray]] = {}
    for seen, images in rebuilt:
        made = matched(images.detach().clamp(0, 1).nan_to_num(0.5).numpy(), truth, seen.batch)
        step = {"batch": seen.batch, "weights": seen.weights} if several else {"weights": seen.weights}
        asked = (
            {}
            if others is None
            else {
                "candidates": candidates,
                "recognized": recognized(made, truth, others, seen.batch, candidates),
                "recognized_proven": most_recognized(mechanism, candidates, seen.weights),
            }
        )
        error = ((made - truth) ** 2).mean(axis=(2, 3))
        frames.append(
            pd.DataFrame(
                {
                    "repeat": seen.repeat,
                    "target": np.arange(len(truth)),
                    "restart": 0,
                    "gradient": np.arange(len(truth)) // seen.batch,
                    **step,
                    "ssim": similarity(truth, made),
                    "mse": error.mean(axis=1).astype(np.float64),
                    "mse_standardized": (error / spread**2).mean(axis=1).astype(np.float64),
                    **asked,
                }
            )
        )
        pictures.setdefault(";".join(f"{key}={value}" for key, value in step.items()), []).append(made)
    stacked = {name: np.stack(images) for name, images in pictures.items()}
    return pd.concat(frames, ignore_index=True), {"original": truth, **stacked}


def matched(made: np.ndarray, truth: np.ndarray, batch: int) -> np.ndarray:
    """Return the reconstructed images of each batch in the order of the originals, by the assignment with the least
    squared error.

    Args:
        made, truth: (n, …), in consecutive batches.
        batch: batch size.
    """
    order = []
    for start in range(0, len(truth), batch):
        rows = slice(start, start + batch)
        errors = cdist(truth[rows].reshape(batch, -1), made[rows].reshape(batch, -1), "sqeuclidean")
        order.append(start + linear_sum_assignment(errors)[1])
    return made[np.concatenate(order)]
