"""lomurno2022's prints in our words."""

from collections.abc import Mapping
from typing import Any

from dp_leakage.table.published import Names, by_names

NAMES = Names(
    models={"cnn_fig1": "cnn"},
    series={
        "none": ("none", ""),
        "l2": ("l2", ""),
        "dropout": ("dropout", ""),
        "l2_dropout": ("l2_dropout", ""),
        "gaussian": ("gaussian", "rdp"),  # one way of accounting, the moments
    },
    n_members={"cifar10": 50_000, "mnist": 60_000, "fashion_mnist": 60_000, "mean": 50_000},
    datasets={"mean_of_CIFAR-10_MNIST_Fashion-MNIST": "mean"},
    metrics={"mi_auc": "membership_auc"},
    attacks={"tf_privacy_best_of(threshold,single_shadow)": "best_of_two", "decoder_inversion": "decoder"},
    derived={
        "accuracy_drop": "the difference of two accuracies, which are compared themselves",
        "training_time_factor": "the ratio of two times of table 2",
        "inversion_best_white_box_over_black_box_factor": "the ratio of two bars of figure 4, which has no numbers",
        "mi_auc_reduction": "the difference of the tables' means",
    },
)


def placed(row: Mapping[str, Any], printed: Mapping[str, str]) -> list[dict[str, Any]]:
    """What a printed row is called here (`table.published`)."""
    if row["artefact"] == "text" and row["metric"] == "inversion_mse_change_percent":
        return [
            place | {"reason": "repeats a number of table 4, where it is compared"}
            for place in by_names(row, printed, NAMES)
        ]
    return by_names(row, printed, NAMES)
