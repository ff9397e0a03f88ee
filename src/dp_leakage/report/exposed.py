"""The records that an attacker singles out, and what they are."""

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from dp_leakage.data.raw import Raw
from dp_leakage.metrics.discoveries import after_selection, discoveries, more_often, unlike
from dp_leakage.metrics.runs import by_repeat
from dp_leakage.metrics.vulnerability import vulnerability

SHOWN = 4  # how many features of a record are named


def most_exposed(frame: pd.DataFrame, n: int = 10) -> pd.DataFrame:
    """The members that stand out most, of those that stand out by more than chance (`metrics.discoveries`).

    Args:
        frame: scores of one attack on one cell: repeat, record, member, score (higher = more likely member), flagged.
        n: how many.

    Returns:
        At most n rows, the most exposed first, and none if nobody stands out: ``record`` (row of data.npz),
        ``nonmembers_above`` (mean over the repeats of the share of non-members whose score is at least the record's, in
        [0, 1]: the false positive rate at which the record is named), ``flagged`` (repeats in which the attack itself
        named it), ``runs`` (repeats) and ``tied`` (how many members are exactly as exposed). With coins: the counts of
        `vulnerability`, with intervals that hold for those that are listed.
    """
    (score, record, flagged), member = by_repeat(frame, ["score", "record", "flagged"], ["record"])
    if member.ndim == 2:
        found = vulnerability(frame)
        counts = (found[name].to_numpy() for name in ("named_in", "runs_in", "named_out", "runs_out"))
        listed = found[discoveries(more_often(*counts))].head(n)
        low, high = after_selection(listed["named_in"].to_numpy(), listed["runs_in"].to_numpy(), len(found))
        return listed.assign(low=low, high=high).reset_index(drop=True)
    above = np.stack([1 - np.searchsorted(np.sort(run[~member]), run) / (~member).sum() for run in score]).mean(axis=0)
    # A rank among all records treats members and non-members alike, as a fair comparison needs.
    place = rankdata(score, axis=1).mean(axis=0)
    found = pd.DataFrame(
        {
            "record": record[0],
            "nonmembers_above": above,
            "flagged": flagged.astype(np.int64).sum(axis=0),
            "runs": len(score),
        }
    )[member]
    found = found[discoveries(unlike(place[member], place[~member]))]
    ordered = found.sort_values(["nonmembers_above", "flagged", "record"], ascending=[True, False, True])
    alike = ordered.groupby(["nonmembers_above", "flagged"])["record"].transform("size")
    return ordered.assign(tied=alike).head(n).reset_index(drop=True)


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
