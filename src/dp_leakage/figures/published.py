"""The papers' printed numbers in our words: which cell, which metric, which setting each belongs to.

The files in ``workflow/published/`` keep the papers' own names. A print that has no counterpart here says why not.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

DATASETS = {"CIFAR-100": "cifar100", "Purchase-100": "purchase100"}
MODELS = {"logistic_regression": "softmax_regression", "neural_network": "mlp"}
ACCOUNTANTS = {
    "naive_composition": ("gaussian", "naive"),
    "advanced_composition": ("gaussian", "advanced"),
    "zcdp": ("gaussian", "zcdp"),
    "rdp": ("gaussian", "rdp"),
    "none": ("none", ""),
}
# A rule that the paper leaves open: the print stands beside each of our readings of it.
READINGS = {
    "members_exposed": ("counting", ("all_runs", "mean")),
    "attribute_advantage": ("definition", ("gap", "released")),
}
N_MEMBERS = {"jayaraman2019": 10_000}  # of every experiment of the paper
KEPT = ("attack", "fpr")  # the keys of a printed setting that are part of ours
KEYS = ["dataset", "model", "mechanism", "accountant", "unit", "epsilon", "metric", "setting"]
DERIVED = {
    "train_test_gap": "the difference of the two accuracies, which are compared themselves",
    "max_resistant_epsilon": "read off the counts of members exposed, which are compared themselves",
    "members_exposed_percent": "a count of the tables again, in percent",
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
    mechanism, accountant = ACCOUNTANTS.get(row["mechanism"], ("", ""))
    entry = {
        "dataset": DATASETS.get(row["dataset"], ""),
        "model": MODELS.get(row["model"], ""),
        "mechanism": mechanism,
        "accountant": accountant,
        "unit": "example" if accountant else "",
        "epsilon": _budget(row["epsilon"]) if accountant else np.nan,
        "metric": row["metric"],
        "published": float(row["value"]),
        "stderr": float(row["stderr"]),
        "n_members": N_MEMBERS.get(row["paper"], np.nan),
        "artefact": row["artefact"],
        "row": label,
        "reason": _reason(row, printed),
    }
    ours = {key: printed[key] for key in KEPT if key in printed}
    key, readings = READINGS.get(row["metric"], ("", ("",)))
    if (row["metric"], mechanism) == ("members_exposed", "none"):
        readings = ("mean",)  # of the undefended model the authors' code counts one run
    return [{**entry, "setting": _spell({**ours, key: reading})} for reading in readings]


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
    for column, names in (("dataset", DATASETS), ("model", MODELS), ("mechanism", ACCOUNTANTS)):
        if row[column] not in names:
            return f"{column} '{row[column]}' is not part of this workflow"
    if "conflict" in printed:
        return f"the text contradicts {printed['conflict']}, whose number is compared"
    if "epsilon_range" in printed:
        return f"one value for all of ε {printed['epsilon_range']}"
    if row["mechanism"] != "none" and np.isnan(_budget(row["epsilon"])):
        return "the budget is not stated"
    return ""
