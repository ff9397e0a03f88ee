"""Which records an attacker singles out."""

import numpy as np
import pandas as pd


def most_exposed(frame: pd.DataFrame, n: int = 10) -> pd.DataFrame:
    """The members that stand out most from the non-members, over all repeats.

    Args:
        frame: scores of one attack on one cell: repeat, record, member, score (higher = more likely member), flagged.
        n: how many.

    Returns:
        n rows at most, the most exposed first: ``record`` (row of data.npz), ``outsiders_above`` (mean over the repeats
        of the share of non-members whose score is at least the record's, in [0, 1]: the false positive rate at which
        the record is named), ``flagged`` (repeats in which the attack itself named it) and ``runs`` (repeats).
    """
    parts = []
    for _, run in frame.groupby("repeat"):
        outsiders = np.sort(run.loc[~run["member"].astype(bool), "score"].to_numpy())
        members = run[run["member"].astype(bool)]
        above = 1 - np.searchsorted(outsiders, members["score"].to_numpy(), side="left") / max(len(outsiders), 1)
        parts.append(members[["record", "flagged"]].assign(outsiders_above=above))
    found = (
        pd.concat(parts)
        .groupby("record")
        .agg(outsiders_above=("outsiders_above", "mean"), flagged=("flagged", "sum"), runs=("flagged", "size"))
    )
    ordered = found.reset_index().sort_values(["outsiders_above", "flagged", "record"], ascending=[True, False, True])
    return ordered.head(n).reset_index(drop=True).astype({"flagged": "int64", "runs": "int64"})
