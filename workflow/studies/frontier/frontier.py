"""The frontier's prints in our words."""

from collections.abc import Mapping
from typing import Any

from dp_leakage.table.published import Names, by_names

NAMES = Names(
    models={model: model for model in ("linear", "cnn_features", "cnn_tanh", "cnn_tutorial", "cnn_opacus")},
    series={"gaussian": ("gaussian", "rdp"), "none": ("none", "")},
    datasets={
        "MNIST scattering": "mnist_scattering",
        "Fashion-MNIST scattering": "fashion_mnist_scattering",
        "CIFAR-10 scattering": "cifar10_scattering",
        "MNIST standardized": "mnist_standardized",
    },
    n_members={
        "mnist": 60_000,
        "mnist_standardized": 60_000,
        "fashion_mnist": 60_000,
        "mnist_scattering": 60_000,
        "fashion_mnist_scattering": 60_000,
        "cifar10_scattering": 50_000,
    },
)


def placed(row: Mapping[str, Any], printed: Mapping[str, str]) -> list[dict[str, Any]]:
    """What a printed row is called here (`table.published`)."""
    return by_names(row, printed, NAMES)
