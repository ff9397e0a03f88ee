"""The papers' printed numbers in our words: which cell, which metric, which setting each belongs to.

The files in ``workflow/published/`` keep the papers' own names. A print that has no counterpart here says why not.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from dp_leakage.figures import published_directional, published_zhang

DATASETS = {
    "CIFAR-10": "cifar10",
    "CIFAR-100": "cifar100",
    "Faces94": "faces94",
    "Fashion-MNIST": "fashion_mnist",
    "MNIST": "mnist",
    "Purchase-100": "purchase100",
    "mean_of_CIFAR-10_MNIST_Fashion-MNIST": "mean",
}
MODELS = {"logistic_regression": "softmax_regression", "neural_network": "mlp", "cnn_fig1": "cnn"}
# abadi2016 does not name its model for MNIST here, and for CIFAR-10 it says of lots only that 600 is too few.
MODELS_OF = {"abadi2016": {"not_stated": "mlp", "cnn_pca": "lot_2000"}}
ACCOUNTANTS = {
    "naive_composition": ("gaussian", "naive"),
    "advanced_composition": ("gaussian", "advanced"),
    "zcdp": ("gaussian", "zcdp"),
    "rdp": ("gaussian", "rdp"),
    "none": ("none", ""),
    "l2": ("l2", ""),
    "dropout": ("dropout", ""),
    "l2_dropout": ("l2_dropout", ""),
}
# Papers that have one way of accounting, the moments.
MOMENTS = {"gaussian": ("gaussian", "rdp")}
ACCOUNTANTS_OF = {"abadi2016": MOMENTS, "lomurno2022": MOMENTS}
METRICS = {"mi_auc": "membership_auc", "accuracy": "test_accuracy"}  # abadi2016 does not say which accuracy 73 % is
ATTACKS = {"tf_privacy_best_of(threshold,single_shadow)": "best_of_two", "decoder_inversion": "decoder"}
FRACTIONS = ("train_accuracy", "test_accuracy")  # which we give as fractions, whatever the unit of the print
# A rule that the paper leaves open: the print stands beside each of our readings, that of the authors' code first.
READINGS = {
    "members_exposed": ("counting", ("all_runs", "mean")),
    "attribute_advantage": ("definition", ("released", "gap")),
}
# Of the paper's experiments, on all data sets or each.
N_MEMBERS: dict[str, int | dict[str, int]] = {
    "jayaraman2019": 10_000,
    "abadi2016": {"mnist": 60_000, "cifar10": 50_000},
    "lomurno2022": {"cifar10": 50_000, "mnist": 60_000, "fashion_mnist": 60_000, "mean": 50_000},
    "zhang2020": {"mnist": 60_000, "faces94": 29_070},
}
KEPT = ("attack", "fpr", "layer")  # the keys of a printed setting that are part of ours
KEYS = ["dataset", "model", "mechanism", "accountant", "unit", "block", "epsilon", "metric", "setting"]
# Papers whose prints are placed by rules of their own.
PLACED = {"directional2023": published_directional.placed, "zhang2020": published_zhang.placed}
DERIVED = {
    "train_test_gap": "the difference of the two accuracies, which are compared themselves",
    "max_resistant_epsilon": "read off the counts of members exposed, which are compared themselves",
    "members_exposed_percent": "a count of the tables again, in percent",
    "accuracy_drop": "the difference of two accuracies, which are compared themselves",
    "training_time_factor": "the ratio of two times, which are compared themselves",
    "mi_auc_reduction": "the difference of the tables' means",
}


def map_published(published: pd.DataFrame) -> pd.DataFrame:
    """Every printed row in our words, in the order given; a print with two readings gives two rows.

    Args:
        published: rows as in ``workflow/published/jayaraman2019.csv``: paper, artefact, dataset, model, mechanism,
            epsilon, delta, setting, metric, value, stderr, note; numbers may be text.

    Returns:
        ``KEYS`` (epsilon NaN where there is none), ``n_members`` of the paper's experiments, ``published``, ``stderr``,
        ``artefact``, ``row`` (label of the printed row) and ``reason``: why it cannot be compared, "" if it can.
    """
    rows = [entry for label, row in published.iterrows() for entry in _map_row(label, row)]
    columns = [*KEYS, "n_members", "published", "stderr", "artefact", "row", "reason"]
    return pd.DataFrame(rows, columns=columns)


def comparable(published: pd.DataFrame) -> pd.DataFrame:
    """The printed rows that have a counterpart here, one for each of ``KEYS``.

    Of several, a table's print stands before the text's, and an exact one before an approximate one.
    """
    mapped = map_published(published)
    mapped = mapped[mapped["reason"] == ""]
    in_text = mapped["artefact"] == "text"
    approximate = published["setting"].loc[mapped["row"]].str.contains("qualifier=").to_numpy()
    ranked = mapped.assign(rank=2 * approximate + in_text.to_numpy()).sort_values("rank", kind="stable")
    return ranked.drop_duplicates(KEYS).drop(columns=["rank", "reason"]).sort_index().reset_index(drop=True)


def _map_row(label: Any, row: pd.Series) -> list[dict[str, Any]]:
    printed = dict(part.split("=", 1) for part in str(row["setting"]).split(";") if "=" in part)
    mechanism, accountant = _accountants(row["paper"]).get(row["mechanism"], ("", ""))
    dataset, metric = DATASETS.get(row["dataset"], ""), METRICS.get(row["metric"], row["metric"])
    percent = printed.get("unit") == "percent" and metric in FRACTIONS
    entry = {
        "dataset": dataset,
        "model": _models(row["paper"]).get(row["model"], ""),
        "mechanism": mechanism,
        "accountant": accountant,
        "unit": "example" if accountant else "",
        "block": "whole" if accountant else "",
        "epsilon": _budget(row["epsilon"]) if accountant else np.nan,
        "metric": metric,
        "published": float(row["value"]) / (100 if percent else 1),
        "stderr": float(row["stderr"]),
        "n_members": _n_members(row["paper"], dataset),
        "artefact": row["artefact"],
        "row": label,
        "reason": _reason(row, printed),
    }
    if row["paper"] in PLACED:
        found = entry | PLACED[row["paper"]](row, printed)
        return [found | {"epsilon": _budget(row["epsilon"]) if found["accountant"] else np.nan}]
    ours = {key: ATTACKS.get(printed[key], printed[key]) for key in KEPT if key in printed}
    key, readings = READINGS.get(row["metric"], ("", ("",)))
    if (row["metric"], mechanism) == ("members_exposed", "none"):
        readings = ("mean",)  # of the undefended model the authors' code counts one run
    return [{**entry, "setting": _spell({**ours, key: reading})} for reading in readings]


def _models(paper: str) -> dict[str, str]:
    return MODELS | MODELS_OF.get(paper, {})


def _accountants(paper: str) -> dict[str, tuple[str, str]]:
    return ACCOUNTANTS | ACCOUNTANTS_OF.get(paper, {})


def _n_members(paper: str, dataset: str) -> float:
    given = N_MEMBERS.get(paper, np.nan)
    return given.get(dataset, np.nan) if isinstance(given, dict) else given


def _budget(printed: Any) -> float:
    try:
        return float(printed)
    except ValueError:
        return np.nan


def _spell(setting: Mapping[str, str]) -> str:
    return ";".join(f"{key}={setting[key]}" for key in sorted(setting) if key)


def _reason(row: pd.Series, printed: Mapping[str, str]) -> str:
    """Why a printed row has no counterpart here; empty where it has one."""
    if row["metric"] in DERIVED:
        return DERIVED[row["metric"]]
    if "external" in printed:
        return f"quoted by the paper from {printed['external']}, on other data or another model"
    known: dict[str, Any] = {
        "dataset": DATASETS,
        "model": _models(row["paper"]),
        "mechanism": _accountants(row["paper"]),
    }
    for column, names in known.items():
        if row[column] not in names:
            return f"{column} '{row[column]}' is not part of this workflow"
    if "conflict" in printed:
        return f"the text contradicts {printed['conflict']}, whose number is compared"
    if "epsilon_range" in printed:
        return f"one value for all of ε {printed['epsilon_range']}"
    if row["mechanism"] != "none" and np.isnan(_budget(row["epsilon"])):
        return "the budget is not stated"
    return ""
