"""abadi2016's prints in our words."""

from collections.abc import Mapping
from typing import Any

from dp_leakage.table.published import Names, by_names

NAMES = Names(
    # The paper does not name its model for MNIST here, and for CIFAR-10 it says of lots only that 600 is too few. Its
    # convolutions learned on CIFAR-100, as those under our dense layers did.
    models={"not_stated": "mlp", "cnn_pca": "dense"},
    series={"gaussian": ("gaussian", "rdp"), "none": ("none", "")},  # one way of accounting, the moments
    n_members={"mnist": 60_000, "cifar10_public": 50_000},
    datasets={"CIFAR-10": "cifar10_public"},
    metrics={"accuracy": "test_accuracy"},  # it does not say which accuracy 73 % is
    derived={"accuracy_drop": "the difference of two accuracies, which are compared themselves"},
)


def placed(row: Mapping[str, Any], printed: Mapping[str, str]) -> list[dict[str, Any]]:
    """What a printed row is called here (`table.published`)."""
    return by_names(row, printed, NAMES)
