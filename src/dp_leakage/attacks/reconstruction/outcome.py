"""The result of a reconstruction attack: how close its images come, and the images."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from torch import Tensor

from dp_leakage.attacks.likeness import similarity
from dp_leakage.attacks.reconstruction.released import Released
from dp_leakage.data.dataset import Dataset


def outcome(
    data: Dataset, originals: Tensor, rebuilt: Sequence[tuple[Released, Tensor]]
) -> tuple[pd.DataFrame, dict[str, np.ndarray]]:
    """The score file and the pictures of an attack.

    Args:
        data: for the spread of its pixels.
        originals: float32 (n, c, h, w) in [0, 1].
        rebuilt: the images that the attack made for each model and kind of weights, of the same shape. Pixels are
            clipped to [0, 1], since the attacker knows this range.

    Returns:
        A frame with repeat, target (number of the image), restart (0), ``weights``, ssim, mse (pixels in [0, 1]) and
        mse_standardised (pixels in units of their channel's standard deviation over the members); and the pictures:
        ``original`` (n, c, h, w), and for each kind of weights ``weights=…`` (R, n, c, h, w).
    """
    truth = originals.numpy()
    spread = data.x[data.roles["target_members"]].std(axis=(0, 2, 3))
    frames: list[pd.DataFrame] = []
    pictures: dict[str, list[np.ndarray]] = {}
    for seen, images in rebuilt:
        made = images.detach().clamp(0, 1).nan_to_num(0.5).numpy()
        error = ((made - truth) ** 2).mean(axis=(2, 3))
        frames.append(
            pd.DataFrame(
                {
                    "repeat": seen.repeat,
                    "target": np.arange(len(truth)),
                    "restart": 0,
                    "weights": seen.weights,
                    "ssim": similarity(truth, made),
                    "mse": error.mean(axis=1).astype(np.float64),
                    "mse_standardised": (error / spread**2).mean(axis=1).astype(np.float64),
                }
            )
        )
        pictures.setdefault(f"weights={seen.weights}", []).append(made)
    stacked = {name: np.stack(images) for name, images in pictures.items()}
    return pd.concat(frames, ignore_index=True), {"original": truth, **stacked}
