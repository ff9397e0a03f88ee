"""jayaraman2019's prints in our words."""

from collections.abc import Mapping
from typing import Any

from dp_leakage.table.published import Names, by_names

NAMES = Names(
    models={"logistic_regression": "softmax_regression", "neural_network": "mlp"},
    series={
        "naive_composition": ("gaussian", "naive"),
        "advanced_composition": ("gaussian", "advanced"),
        "zcdp": ("gaussian", "zcdp"),
        "rdp": ("gaussian", "rdp"),
        "none": ("none", ""),
    },
    n_members=10_000,
    readings={
        "members_exposed": ("counting", ("all_runs", "mean")),
        "attribute_advantage": ("definition", ("released", "gap")),
    },
    derived={
        "train_test_gap": "the difference of the two accuracies, which are compared themselves",
        "max_resistant_epsilon": "read off the counts of members exposed, which are compared themselves",
        "members_exposed_percent": "a count of the tables again, in percent",
    },
)


def placed(row: Mapping[str, Any], printed: Mapping[str, str]) -> list[dict[str, Any]]:
    """What a printed row is called here (`table.published`)."""
    found = by_names(row, printed, NAMES)
    one_run = (row["metric"], row["mechanism"]) == ("members_exposed", "none")  # is what the authors' code counts
    return [place for place in found if not (one_run and place.get("counting") == "all_runs")]
