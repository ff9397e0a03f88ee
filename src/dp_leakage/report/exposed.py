"""The records that an attacker singles out, and what they are."""

import numpy as np
import pandas as pd

from dp_leakage.data.raw import Raw
from dp_leakage.metrics.runs import by_repeat
from dp_leakage.metrics.vulnerability import vulnerability

SHOWN = 4  # how many features of a record are named


def most_exposed(frame: pd.DataFrame, n: int = 10) -> pd.DataFrame:
    """The members that stand out most from the non-members, over all repeats.

    Args:
        frame: scores of one attack on one cell: repeat, record, member, score (higher = more likely member), flagged.
        n: how many.

    Returns:
        At most n rows, the most exposed first: ``record`` (row of data.npz), ``outsiders_above`` (mean over the repeats
        of the share of non-members whose score is at least the record's, in [0, 1]: the false positive rate at which
        the record is named), ``flagged`` (repeats in which the attack itself named it), ``runs`` (repeats) and ``tied``
        (how many members are exactly as exposed). With coins: the counts of `vulnerability`.
    """
    _, member = by_repeat(frame, [], ["record"])
    if member.ndim == 2:
        return vulnerability(frame).head(n)
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
    alike = ordered.groupby(["outsiders_above", "flagged"])["record"].transform("size")
    ordered = ordered.assign(tied=alike).astype({"flagged": "int64", "runs": "int64"})
    return ordered.head(n).reset_index(drop=True)


def described(raw: Raw, records: list[int]) -> list[str]:
    """A description of each record: its class and its most unusual features, or its picture as a ``data:`` address.

    Args:
        raw: the user's own data, as loaded from their source.
        records: rows of it.
    """
    if raw.x.ndim == 4:
        return [_picture(raw.x[record]) for record in records]
    spread = raw.x.std(axis=0)
    unusual = np.abs(raw.x[records] - raw.x.mean(axis=0)) / np.where(spread > 0, spread, np.inf)
    return [
        ", ".join(
            [f"class {raw.class_names[raw.y[record]]}"]
            + [f"{_column(raw, c)} = {raw.x[record, c]:g}" for c in np.argsort(-own, kind="stable")[:SHOWN]]
        )
        for record, own in zip(records, unusual, strict=True)
    ]


def _column(raw: Raw, number: int) -> str:
    return raw.feature_names[number] if raw.feature_names else f"column {number}"


def _picture(pixels: np.ndarray) -> str:
    """An image (channels, height, width) in [0, 1] as a PNG in a ``data:`` address."""
    from base64 import b64encode
    from io import BytesIO

    from matplotlib.image import imsave

    out = BytesIO()
    rows = np.clip(pixels.transpose(1, 2, 0), 0, 1)
    imsave(out, np.repeat(rows, 3, axis=2) if rows.shape[2] == 1 else rows, format="png")
    return "data:image/png;base64," + b64encode(out.getvalue()).decode("ascii")
