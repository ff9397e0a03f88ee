"""directional2023's prints in our words: each attack has a split of its own, and so a data set of its own here."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from dp_leakage.table.published import budget_of, quoted

MODELS = {"LeNet": "lenet", "MLP": "mlp"}
SERIES = {"none": ("none", "", ""), "gaussian": ("gaussian", "rdp", "whole"), "vmf": ("vmf", "per_step", "row")}
# "CIFAR" without a number, of the reconstructions, is read as CIFAR-10.
FULL = {
    "Fashion-MNIST": ("fashion_mnist", 60_000),
    "CIFAR-10": ("cifar10", 50_000),
    "CIFAR": ("cifar10", 50_000),
    "CIFAR-100": ("cifar100", 50_000),
    "LFW": ("lfw", 1_113),
}
# data set in the print: (here, members)
SHOKRI = {"Fashion-MNIST": ("fashion_mnist_shokri", 15_000), "CIFAR-10": ("cifar10_shokri", 12_500)}
MIA_R = {"Fashion-MNIST": ("fashion_mnist_r", 5_000), "CIFAR-10": ("cifar10_r", 4_500)}
ATTACKS = {
    "mia_shokri": ("shokri_trees", SHOKRI),
    "mia_r": ("attack_r", MIA_R),
    "iga": ("iga", FULL),
}
# The mean squared error goes up to 1.8, which pixels in [0, 1] cannot: it is read as one of standardized pixels.
METRICS = {
    "mi_accuracy": "balanced_accuracy",
    "mi_auc": "membership_auc",
    "train_test_gap": "train_test_gap",
    "test_accuracy": "test_accuracy",
    "top10_accuracy": "top10_accuracy",
    "ssim": "ssim",
    "mse": "mse_standardized",
    "delta_mi_auc": "membership_auc_difference",
    "delta_mse": "mse_standardized_difference",
}
OF_NO_ATTACK = ("train_test_gap", "test_accuracy", "top10_accuracy")


def placed(row: Mapping[str, Any], printed: Mapping[str, str]) -> list[dict[str, Any]]:
    """What a printed row is called here (`table.published`)."""
    attack, datasets = ATTACKS.get(printed.get("attack", ""), ("", FULL))
    dataset, n_members = datasets.get(row["dataset"], ("", np.nan))
    mechanism, accountant, block = SERIES.get(row["mechanism"], ("", "", ""))
    metric = METRICS.get(row["metric"], "")
    model = MODELS.get(row["model"], "")
    own = {} if row["metric"] in OF_NO_ATTACK else {"attack": attack}
    if attack == "iga":
        statistic = printed.get("aggregate", "mean" if row["metric"] == "ssim" else "median")
        own |= {"statistic": statistic, "weights": "initial"}
    if metric.endswith("_difference"):
        own["against"] = "gaussian"
    place = {
        "dataset": dataset,
        "model": model,
        "mechanism": mechanism,
        "accountant": accountant,
        "unit": "example" if accountant else "",
        "block": block,
        "epsilon": budget_of(row) if accountant else np.nan,
        "metric": metric,
        "published": float(row["value"]) / (100 if printed.get("unit", "").startswith("percent") else 1),
        "n_members": n_members,
        "reason": _reason(row, printed, {"dataset": dataset, "model": model, "metric": metric}),
    }
    return [place | own]


def _reason(row: Mapping[str, Any], printed: Mapping[str, str], ours: Mapping[str, str]) -> str:
    if words := quoted(printed):
        return words
    if row["artefact"] == "text":
        return "read off the tables, whose numbers are compared"
    missing = [column for column, value in ours.items() if not value]
    return f"{missing[0]} '{row[missing[0]]}' is not part of this workflow" if missing else ""
