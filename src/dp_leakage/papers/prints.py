"""Outcome of each number that a paper prints: one row per number, as in ``papers.csv``."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from dp_leakage.common.errors import UserError
from dp_leakage.table.origin import MADE_UP
from dp_leakage.table.published import keys_of, map_published, printed_setting

PRINTED = ["paper", "artefact", "dataset", "model", "mechanism", "epsilon", "setting", "metric", "value"]
FOUND = ["measured", "low", "high", "file", "made_up"]
JUDGED = ["floor", "inside", "near", "wide"]
COLUMNS = [*PRINTED, "print", *FOUND[:-1], *JUDGED, "outcome", "apart", "why"]
INSIDE, OUTSIDE, SMALLER, CALIBRATED, OF_MADE_UP, NOT_RUN, ELSEWHERE = OUTCOMES = (
    "inside",
    "outside",
    "smaller run",
    "calibrated",
    "made-up data",
    "not run",
    "not a cell",
)
COMPARED = (INSIDE, OUTSIDE)  # those that count: at the paper's size in all that is known of it, and not fitted to it
NOT_KNOWN = "not known"
DIFFERENCES = ("delta_mi_auc", "delta_mse")  # of two printed numbers
FRACTIONS = (
    *("accuracy", "train_accuracy", "test_accuracy", "top10_accuracy", "accuracy_loss", "train_test_gap"),
    *("mi_accuracy", "mi_auc", "membership_advantage", "attribute_advantage", "ssim"),
)
OF_CHANCE = ("mi_accuracy", "mi_auc")  # which are ½ where an attack finds nothing

Explained = Sequence[Mapping[str, Any]]


def measured_at_scale(files: Mapping[str, pd.DataFrame], full: Sequence[str] = ()) -> pd.DataFrame:
    """Return measurements at a paper's scale: a row with the columns ``FOUND`` for each cell, indexed by `keys_of`.

    A figure's column ``inside`` tells whether the printed number lies in our interval, and is empty if a run has fewer
    members than the paper's. So rows with a value there are at the paper's scale. Rows of synthetic data, by
    ``data_source``, are returned with ``made_up``.

    Args:
        files: the csv files of one study's figures, by name.
        full: those of them whose undefended cells are at the paper's scale, though no printed number was joined to
            them.

    Raises:
        UserError: two files give one cell two values.
    """
    known: dict[tuple[str, ...], dict[str, Any]] = {}
    for name, frame in sorted(files.items()):
        made_up = _is_made_up(frame)
        compared = frame[frame["inside"].notna() | made_up | ((name in full) & (frame["mechanism"] == "none"))]
        compared = compared.assign(file=name, made_up=made_up)
        for key, row in zip(keys_of(compared), compared.to_dict("records"), strict=True):
            found = known.setdefault(key, {column: row[column] for column in FOUND})
            if abs(found["measured"] - row["measured"]) > 1e-9:
                cell = f"{row['dataset']}/{row['model']}/{row['defense']}"
                raise UserError(
                    f"{found['file']} and {name} measure {row['metric']} of {cell} "
                    f"differently ({found['measured']:g}, {row['measured']:g}); keep the files of one run"
                )
    return pd.DataFrame(known.values(), index=pd.Index(known, tupleize_cols=False), columns=FOUND)


def outcomes(
    published: pd.DataFrame,
    at_scale: pd.DataFrame,
    explained: Explained,
    smaller: Explained = (),
    calibrated: Explained = (),
) -> pd.DataFrame:
    """Return the outcome of each printed number: a row with ``COLUMNS`` for each, in print order.

    ``floor`` marks prints that show no effect: no member exposed, nine tenths of the accuracy lost, an attack at
    chance. ``apart`` is the reason why a measured number does not count. ``inside``: our interval contains a value
    that rounds to the printed number. ``near``: ours is within 0.03 (of a fraction) or 10 % (of another number).
    ``wide``: the interval is wider than the printed number.

    Args:
        published: one paper's rows, from `read_published`.
        at_scale: from `measured_at_scale`, for the paper's study.
        explained: explanations of numbers that are outside or were not run. Each entry selects rows by columns of
            ``papers.csv`` or keys of a printed setting, with a value or a list of values, and gives ``why``. The first
            matching entry counts.
        smaller, calibrated: in the same form, for runs that are smaller than the paper's except in members, and for
            settings chosen by the printed numbers themselves.
    """
    mapped = map_published(published).drop_duplicates("row").set_index("row")
    keys = dict(zip(mapped.index, keys_of(mapped), strict=True))
    seen: dict[tuple[str, ...], tuple[str, float, float]] = {}
    rows = []
    for label, printed in published.iterrows():
        ours, key = mapped.loc[label], keys[label]
        row = {**printed[PRINTED], "print": ours["published"], "outcome": NOT_RUN}
        row["floor"] = is_floor(row["metric"], row["print"])
        first, value, reach = seen.get(key, ("", 0.0, 0.0))
        if ours["reason"]:
            row |= {"outcome": ELSEWHERE, "why": ours["reason"]}
        elif row["metric"] in DIFFERENCES:
            row |= {"outcome": ELSEWHERE, "why": "the difference of two numbers, which are compared themselves"}
        elif first and abs(value - row["print"]) <= reach + ours["half_unit"]:
            row |= {"outcome": ELSEWHERE, "why": f"repeats a number of {first}, where it is compared"}
        elif key in at_scale.index and at_scale.loc[[key], "made_up"].iloc[0]:
            row |= {**at_scale.loc[[key]].iloc[0], "outcome": OF_MADE_UP, "apart": MADE_UP}
        elif key in at_scale.index:
            row |= _judged(row, at_scale.loc[[key]].iloc[0], ours["half_unit"])
            why_smaller, why_calibrated = _first(row, smaller), _first(row, calibrated)
            if why_calibrated or why_smaller:
                row |= {"outcome": CALIBRATED if why_calibrated else SMALLER, "apart": why_calibrated or why_smaller}
        if not ours["reason"]:
            seen.setdefault(key, (row["artefact"], row["print"], ours["half_unit"]))
        rows.append({"why": _why(row, explained)} | row)
    return pd.DataFrame(rows, columns=COLUMNS)


def _is_made_up(frame: pd.DataFrame) -> "pd.Series[bool]":
    if "data_source" not in frame:
        return pd.Series(False, index=frame.index)
    return frame["data_source"].str.contains(MADE_UP, regex=False)


def is_floor(metric: str, printed: float) -> bool:
    """Return whether a printed number shows no effect.

    >>> is_floor("members_exposed", 0), is_floor("accuracy_loss", 0.94), is_floor("mi_auc", 0.52)
    (True, True, True)
    >>> is_floor("mi_auc", 0.6), is_floor("test_accuracy", 0.94)
    (False, False)
    """
    return (
        (metric == "members_exposed" and printed == 0)
        or (metric == "accuracy_loss" and printed >= 0.9)
        or (metric in OF_CHANCE and abs(printed - 0.5) <= 0.03)
    )


def _judged(row: Mapping[str, Any], found: pd.Series, half_unit: float) -> dict[str, Any]:
    inside = bool(found["low"] <= row["print"] + half_unit and row["print"] - half_unit <= found["high"])
    allowed = 0.03 if row["metric"] in FRACTIONS else 0.1 * abs(row["print"])
    return {
        **found,
        "inside": inside,
        "near": bool(abs(found["measured"] - row["print"]) <= max(allowed, half_unit) + 1e-9),
        "wide": bool(found["high"] - found["low"] > abs(row["print"])),
        "outcome": INSIDE if inside else OUTSIDE,
    }


def _why(row: Mapping[str, Any], explained: Explained) -> str:
    if row.get("inside"):
        return ""
    outcome = OUTSIDE if "inside" in row else row["outcome"]  # a smaller run is explained as one that counts
    return _first({**row, "outcome": outcome}, explained) or NOT_KNOWN


def _first(row: Mapping[str, Any], entries: Explained) -> str:
    """Return the ``why`` of the first matching entry, or ""."""
    known = {**row, **printed_setting(row)}
    for entry in entries:
        fits = {key: value if isinstance(value, list) else [value] for key, value in entry.items() if key != "why"}
        if all(str(known.get(key, "")) in map(str, values) for key, values in fits.items()):
            return str(entry["why"])
    return ""
