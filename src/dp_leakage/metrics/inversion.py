"""Distance of inverted images from the training images of their class: from score files to metric rows."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from dp_leakage.metrics.intervals import FEWEST_REPEATS, Estimate, over_repeats
from dp_leakage.metrics.reconstruction import measure_reconstruction
from dp_leakage.metrics.rows import row
from dp_leakage.metrics.runs import ALL

KEYS = ("repeat", "target", "restart", "distance", "ssim", "confidence")


def measure_inversion(frame: pd.DataFrame, attack: str) -> list[dict]:
    """Return rows of one attack of the family ``model_inversion`` on one cell.

    Args:
        frame: repeat, target (the class), restart, distance (Euclidean), ssim, confidence, and the attack's own
            columns. Each of their values is measured separately.
        attack: its name.

    Returns:
        mia_distance with measure=euclidean and with measure=1-ssim (zhang2020's two, SSIM with the Gaussian window of
        `attacks.likeness`), and attack_confidence, the probability that the model gives the images for their classes.
        Each comes as mean and median over classes with intervals (`measure_reconstruction`). mia_distance also comes
        for every class (class=…), with Student's interval over the repeats (NaN with one repeat).
    """
    own = [column for column in frame if column not in KEYS]
    index = frame[["repeat", "target", "restart", *own]]
    distances = {"euclidean": frame["distance"], "1-ssim": 1 - frame["ssim"]}
    long = pd.concat([index.assign(measure=name, distance=values) for name, values in distances.items()])
    confident = index.assign(distance=frame["confidence"])
    rows = measure_reconstruction(long, attack)
    rows += [
        one | {"metric": "attack_confidence", "high": min(one["high"], 1.0)}
        for one in measure_reconstruction(confident, attack)
    ]
    return rows + list(_by_class(long, attack, [*own, "measure"]))


def _by_class(long: pd.DataFrame, attack: str, own: list[str]) -> Iterator[dict]:
    for key, part in long.groupby([*own, "target"], sort=True):
        *mine, label = key
        said = {"attack": attack, "class": label, **dict(zip(own, mine, strict=True))}
        values = part.groupby("repeat")["distance"].mean()
        for repeat, value in values.items():
            yield row("mia_distance", str(repeat), Estimate(float(value), np.nan, np.nan), **said)
        mean = float(values.mean())
        spread = over_repeats(Estimate(mean, mean, mean), values.to_numpy(), (0.0, np.inf))
        known = len(values) >= FEWEST_REPEATS
        yield row("mia_distance", ALL, spread if known else Estimate(mean, np.nan, np.nan), **said)
