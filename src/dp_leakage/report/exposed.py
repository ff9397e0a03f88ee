"""The most exposed records, and their descriptions."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from dp_leakage.data.raw import Raw
from dp_leakage.metrics.discoveries import after_selection, discoveries, unlike
from dp_leakage.metrics.exposure import REPEATS, exposed
from dp_leakage.metrics.runs import by_repeat
from dp_leakage.metrics.vulnerability import vulnerability

SHOWN = 4  # how many features of a record are named


@dataclass(frozen=True)
class MostExposed:
    """The records of one cell that stand out by more than chance.

    Attributes:
        records: the first ones, one per row: ``record`` (row of data.npz) and, with random inclusion, ``evidence``
            (`exposure.evidence`), and the counts of `vulnerability` with simultaneous intervals, if the non-members can
            measure that rate. With fixed members: ``nonmembers_above`` (mean over the repeats of the share of
            non-members whose score is at least the record's, in [0, 1]: the false positive rate at which the attack
            identifies the record), ``flagged`` (repeats in which the attack identifies it at its own threshold),
            ``runs`` (repeats) and ``tied`` (number of equally exposed members).
        count: number of records that stand out.
        among: number of records, or members, considered.
        repeats: number of models.
        at_least: with random inclusion, the number of records that are truly exposed, with 95 % confidence; None for
            fixed members.
        cell: data set, model, defense and attack.
    """

    records: pd.DataFrame
    count: int
    among: int
    repeats: int
    at_least: int | None = None
    cell: tuple[str, str, str, str] = ("", "", "", "")

    @property
    def by_coins(self) -> bool:
        """Return whether random inclusion decides in each repeat which records are members."""
        return self.at_least is not None

    @property
    def too_few_repeats(self) -> bool:
        """Return whether there are too few repeats to list any record, however much leaks."""
        return self.by_coins and self.repeats < REPEATS

    def words(self, many: str) -> str:
        """Say how many records stand out; ``many`` is the plural for records."""
        if self.too_few_repeats:
            return (
                f"With {self.repeats} models per setting none of the {many} can be told from chance, however much "
                f"leaks. It takes {REPEATS}."
            )
        if not self.count:
            return f"none of the {self.among:,} {many} stands out by more than chance"
        least = f", at least {self.at_least:,} with 95 % confidence" if self.by_coins else ""
        return f"{self.count:,} of {self.among:,} {many} stand out (at most 5 % of them by chance){least}"


def most_exposed(frame: pd.DataFrame, n: int = 10) -> MostExposed:
    """Return the records that stand out by more than chance, of which the first n are listed.

    Args:
        frame: scores of one attack on one cell: repeat, record, member, score (higher = more likely member), flagged.
        n: maximum number of listed records.
    """
    (score, record, flagged), member = by_repeat(frame, ["score", "record", "flagged"], ["record"])
    if member.ndim == 2:
        found = exposed(score, member)
        first = found.order[:n]
        records = pd.DataFrame({"record": record[0][first], "evidence": found.evidence[first]})
        counts = vulnerability(frame)
        if counts is not None:
            own = counts.iloc[first].reset_index(drop=True)
            low, high = after_selection(own["named_in"].to_numpy(), own["runs_in"].to_numpy(), len(counts))
            records = records.assign(**own.drop(columns="record"), low=low, high=high)
        return MostExposed(records, len(found.order), score.shape[1], len(score), found.at_least)
    above = np.stack([1 - np.searchsorted(np.sort(run[~member]), run) / (~member).sum() for run in score]).mean(axis=0)
    # A rank among all records treats members and non-members alike, as a fair comparison needs.
    place = rankdata(score, axis=1).mean(axis=0)
    members = pd.DataFrame(
        {
            "record": record[0],
            "nonmembers_above": above,
            "flagged": flagged.astype(np.int64).sum(axis=0),
            "runs": len(score),
        }
    )[member]
    listed = members[discoveries(unlike(place[member], place[~member]))]
    ordered = listed.sort_values(["nonmembers_above", "flagged", "record"], ascending=[True, False, True])
    alike = ordered.groupby(["nonmembers_above", "flagged"])["record"].transform("size")
    records = ordered.assign(tied=alike).head(n).reset_index(drop=True)
    return MostExposed(records, len(listed), len(members), len(score))


def described(raw: Raw, records: list[int]) -> list[str]:
    """Describe each record: its class and its most unusual features, or its picture as a ``data:`` address.

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
    """Return an image (channels, height, width) in [0, 1] as a PNG in a ``data:`` address."""
    from base64 import b64encode
    from io import BytesIO

    from matplotlib.image import imsave

    out = BytesIO()
    rows = np.clip(pixels.transpose(1, 2, 0), 0, 1)
    imsave(out, np.repeat(rows, 3, axis=2) if rows.shape[2] == 1 else rows, format="png")
    return "data:image/png;base64," + b64encode(out.getvalue()).decode("ascii")
