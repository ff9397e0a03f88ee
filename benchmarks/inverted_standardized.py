"""Inverting gradients where a model sees standardized pixels: a control for tables 3 and 6 of directional2023.

    python benchmarks/inverted_standardized.py results/directional2023/cifar10/data.npz lenet_strided none gaussian=1

The study leaves pixels in [0, 1]. The method's released code standardizes them by channel, for the model and for the
attacker alike: the attack begins with standard normal pixels, its steps and its total variation count in standard
deviations, and pixels end inside the range that [0, 1] becomes. All else is as in the study. The file is the data set
that the study prepared. Each further argument is a cell: ``none``, ``gaussian=ε`` of a whole training, ``step=ε`` for
the Gaussian mechanism of textbooks on this one gradient (σ = √(2 ln(1.25 / δ)) / ε), or ``vmf=ε`` of one update and
row.
``--weights`` attacks the model in that file in place of an untrained one.

The table says the mean SSIM of the pictures in [0, 1], the mean SSIM as the released code takes it (of standardized
pixels, for a range of 2, nothing below 0), and the median squared error in units of a channel's variance, each with a
95 % interval.
"""

import argparse
from math import log, sqrt
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from scipy.stats import bootstrap
from skimage.metrics import structural_similarity

from dp_leakage.attacks import ATTACKS
from dp_leakage.attacks.likeness import similarity
from dp_leakage.attacks.reconstruction.iga import invert
from dp_leakage.attacks.reconstruction.released import released
from dp_leakage.common.kernels import exact
from dp_leakage.models.architectures import build
from dp_leakage.models.ensemble import Ensemble
from dp_leakage.models.layers import initial_parameters
from dp_leakage.privacy.accounting import Case, Training, noise_for_budget
from dp_leakage.privacy.mechanism import Mechanism

MODELS = {"lenet_strided": {"activation": "tanh"}, "mlp": {"hidden": [256]}}
BATCH, DELTA = 64, 1e-5
EPOCHS = {"lfw": 100}  # of the study; 30 on the other data sets


def mechanism(cell: str, records: int, epochs: int) -> Mechanism | None:
    """What protects a step of a cell, with its noise."""
    name, _, epsilon = cell.partition("=")
    if name == "none":
        return None
    if name == "vmf":
        noise = {"bound": "normalize", "noise": "vmf", "block": "row", "kappa": float(epsilon) / 2}
        return Mechanism("poisson", **noise)
    if name == "step":
        return Mechanism("poisson", noise_multiplier=sqrt(2 * log(1.25 / DELTA)) / float(epsilon))
    case = Case(Training(Mechanism("poisson"), epochs, BATCH, records), "rdp", DELTA)
    sigma = noise_for_budget(case, float(epsilon))
    return Mechanism("poisson", noise_multiplier=sigma)


def closeness(truth: np.ndarray, made: np.ndarray, mean: np.ndarray, spread: np.ndarray) -> list[str]:
    """SSIM, SSIM of standardized pixels and squared error of pictures (n, c, h, w) in [0, 1], with their intervals."""
    pairs = [((one - mean) / spread, (two - mean) / spread) for one, two in zip(truth, made, strict=True)]
    alike = [max(0.0, structural_similarity(*pair, data_range=2.0, channel_axis=0)) for pair in pairs]
    error = [((one - two) ** 2).mean() for one, two in pairs]
    told = []
    for values, statistic in ((similarity(truth, made), np.mean), (alike, np.mean), (error, np.median)):
        limits = bootstrap((values,), statistic, rng=np.random.default_rng(0)).confidence_interval
        told.append(f"{statistic(values):.4f},{limits.low:.4f},{limits.high:.4f}")
    return told


def main() -> None:
    """Prints a line for each cell, as csv."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("cells", nargs="+")
    parser.add_argument("--images", type=int, default=20)
    parser.add_argument("--steps", type=int, default=24000)
    parser.add_argument("--total-variation", type=float, default=0.2)
    parser.add_argument("--weights", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(1)
    dataset = given.data.parent.name
    with np.load(given.data) as arrays:
        x, y, members = arrays["x"], torch.from_numpy(arrays["y"]), arrays["target_members"]
    mean, spread = (getattr(x[members], name)(axis=(0, 2, 3))[:, None, None] for name in ("mean", "std"))
    truth, classes = x[members[: given.images]], int(y.max()) + 1
    label = y[members[: given.images]]
    layers = build(name=given.model, input_shape=x.shape[1:], n_classes=classes, dropout=0.0, **MODELS[given.model])
    start = initial_parameters(layers, torch.Generator().manual_seed(0))
    one = {name: value[None] for name, value in start.items()}
    attacked = "initial"
    if given.weights:
        stored, attacked = load_file(given.weights), "trained"
        one = {name: stored[name] for name in start}
    own = {"steps": given.steps, "total_variation": given.total_variation, "images": given.images}
    settings = ATTACKS["iga"].settings | own | {"weights": [attacked], "precision": "float32"}
    box = torch.from_numpy((0 - mean) / spread), torch.from_numpy((1 - mean) / spread)
    seen_images = torch.from_numpy((truth - mean) / spread)
    measured = (f"{name},{name}_low,{name}_high" for name in ("ssim", "ssim_standardized", "mse_standardized"))
    print("dataset,model,cell,weights,images,steps,total_variation", *measured, sep=",", flush=True)
    for cell in given.cells:
        protected = mechanism(cell, len(members), EPOCHS.get(dataset, 30))
        target = Ensemble(layers, one, torch.empty(1, 0, dtype=torch.int64), protected)
        with exact():
            (seen,) = released(target, seen_images, label, settings, 1, "iga")
            found = invert(seen, F.one_hot(label, classes), x.shape[1:], settings, torch.device("cpu"), box)
        told = closeness(truth, found.numpy() * spread + mean, mean, spread)
        numbers = map(str, (given.images, given.steps, given.total_variation))
        print(",".join([dataset, given.model, cell, attacked, *numbers, *told]), flush=True)


if __name__ == "__main__":
    main()
