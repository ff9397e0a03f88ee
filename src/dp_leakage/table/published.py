"""Papers' printed numbers with this package's names: the cell, metric and qualifiers of each.

A paper's numbers lie with its study, in ``NAME/NAME.csv``, and keep the paper's own names. ``NAME/NAME.py`` next to it
translates them by one function:

    placed(row, printed) -> list of mappings, one for each reading of the row

with ``PLACE`` (``bound`` only where it is not the mechanism's usual one) and the applicable `metrics.rows.QUALIFIERS`,
where ``row`` is a row of the file and ``printed`` its setting, key → value. `by_names` suffices for a paper whose names
need only a dictionary. A printed number without a counterpart here has a ``reason``.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dp_leakage.common.paths import explained_by
from dp_leakage.common.user_code import call
from dp_leakage.metrics.rows import QUALIFIERS, completed, told
from dp_leakage.table.looks import usual_bound

DATASETS = {
    "CIFAR-10": "cifar10",
    "CIFAR-100": "cifar100",
    "Faces94": "faces94",
    "Fashion-MNIST": "fashion_mnist",
    "MNIST": "mnist",
    "Purchase-100": "purchase100",
}
FRACTIONS = ("train_accuracy", "test_accuracy")  # which we give as fractions, whatever the unit of the print
KEPT = ("attack", "fpr", "layer")  # the keys of a printed setting that are qualifiers here
KEYS = ["dataset", "model", "mechanism", "accountant", "unit", "block", "bound", "epsilon", "metric"]
PLACE = [*KEYS, "n_members", "published", "reason"]
EXPLAINED_BY = "explained_by"  # column: the file that says what the names of a row are here, "" for none


@dataclass(frozen=True)
class Names:
    """Translation of a paper's names.

    Attributes:
        models: in print → here.
        series: mechanism in print → mechanism and accountant here.
        n_members: of its experiments, on all data sets or each.
        datasets: beside ``DATASETS``.
        metrics, attacks: the names that differ here.
        readings: metric → a qualifier and its values, if the paper does not say which value it means. The printed
            number is joined to each value, the one of the authors' code first.
        derived: metric → why it is not compared.
    """

    models: Mapping[str, str]
    series: Mapping[str, tuple[str, str]]
    n_members: float | Mapping[str, float]
    datasets: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, str] = field(default_factory=dict)
    attacks: Mapping[str, str] = field(default_factory=dict)
    readings: Mapping[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    derived: Mapping[str, str] = field(default_factory=dict)


def read_published(prints: Path) -> pd.DataFrame:
    """Read a paper's printed numbers from its csv file, with a column for the file that explains their names.

    ``value`` is the text of the printed number: its zeros say how finely it is rounded.
    """
    return pd.read_csv(prints, dtype={"value": "string"}).assign(**{EXPLAINED_BY: str(explained_by(prints) or "")})


def printed_setting(row: Mapping[str, Any]) -> dict[str, str]:
    """Return the column ``setting`` of a printed row, ``key=value;…`` in the paper's own names, as a mapping."""
    return dict(part.split("=", 1) for part in str(row["setting"]).split(";") if "=" in part)


def map_published(published: pd.DataFrame) -> pd.DataFrame:
    """Return every printed row with this package's names, in the given order; a printed number with two readings
    gives two rows.

    Args:
        published: as `read_published` gives them: paper, artefact, dataset, model, mechanism, epsilon, delta, setting,
            metric, value, stderr, note, explained_by; numbers may be text.

    Returns:
        ``KEYS`` (epsilon NaN where there is none), all qualifiers, ``n_members`` of the paper's experiments,
        ``published``, ``half_unit`` (half a unit of its last digit, in our unit), ``stderr``, ``artefact``,
        ``row`` (label of the printed row) and ``reason``: why it cannot be compared, "" if it can.
    """
    rows = [
        {
            "bound": _usual_bound(place),
            **place,
            "half_unit": half_unit(row) * _scale(row, place),
            "stderr": float(row["stderr"]),
            "artefact": row["artefact"],
            "row": label,
        }
        for label, row in published.iterrows()
        for place in _places(row)
    ]
    columns = [*KEYS, *QUALIFIERS, "n_members", "published", "half_unit", "stderr", "artefact", "row", "reason"]
    return completed(pd.DataFrame(rows).reindex(columns=columns))


def comparable(published: pd.DataFrame) -> pd.DataFrame:
    """Return the printed rows with a counterpart here, one for each of ``KEYS`` with their qualifiers.

    A table's printed number takes precedence over the text's, and an exact one over an approximate one.
    """
    mapped = map_published(published)
    mapped = mapped[mapped["reason"] == ""]
    in_text = mapped["artefact"] == "text"
    given = published.loc[mapped["row"]].to_dict("records")
    approximate = np.array(["qualifier" in printed_setting(row) for row in given], dtype=bool)
    ranked = mapped.assign(rank=2 * approximate + in_text.to_numpy()).sort_values("rank", kind="stable")
    return (
        ranked.drop_duplicates([*KEYS, *QUALIFIERS])
        .drop(columns=["rank", "reason"])
        .sort_index()
        .reset_index(drop=True)
    )


def without(published: pd.DataFrame, datasets: Collection[str]) -> pd.DataFrame:
    """Return the printed rows of other data sets than these, which are named as here."""
    mapped = map_published(published)
    return published.drop(index=mapped.loc[mapped["dataset"].isin(list(datasets)), "row"].unique())


def with_published(frame: pd.DataFrame, published: pd.DataFrame | None, any_size: bool = False) -> pd.DataFrame:
    """Add ``published`` (NaN if nothing is printed) and ``inside``: whether it lies in [low, high] (empty likewise).

    A printed number is inside if any value that rounds to it is. It is joined only to cells with as many members as the
    paper's: a reduced run is not compared. With ``any_size`` it is joined to cells of any size, and ``inside`` stays
    empty where the sizes differ.
    """
    printed = pd.Series(np.nan, index=frame.index)
    reach = pd.Series(0.0, index=frame.index)
    same_size = pd.Series(False, index=frame.index)
    if published is not None and len(published):
        found = comparable(published)
        prints = found[["published", "half_unit", "n_members"]].set_axis(pd.Index(keys_of(found), tupleize_cols=False))
        joined = prints.reindex(pd.Index(keys_of(frame), tupleize_cols=False)).set_axis(frame.index)
        printed, reach = joined["published"].astype("float64"), joined["half_unit"].astype("float64")
        same_size = frame["n_members"] == joined["n_members"].astype("float64")
    printed = printed if any_size else printed.where(same_size)
    inside = ((frame["low"] <= printed + reach) & (printed - reach <= frame["high"])).astype("boolean")
    return frame.assign(published=printed, inside=inside.where(same_size & printed.notna()))


def half_unit(row: Mapping[str, Any]) -> float:
    """Return half a unit of a print's last digit, in the print's own unit; trailing zeros count.

    A fraction has at least two digits, since papers leave out zeros there ("0.9" beside ".87").

    >>> [half_unit({"value": value, "setting": "unit=percent"}) for value in ("52.0", "52", "0.5")]
    [0.05, 0.5, 0.05]
    >>> [half_unit({"value": value, "setting": "unit=fraction"}) for value in ("0.900", "0.9")]
    [0.0005, 0.005]
    """
    printed = str(row["value"])
    digits = len(printed.partition(".")[2])
    fraction = abs(float(printed)) < 1 and not printed_setting(row).get("unit", "").startswith("percent")
    return 0.5 * 10 ** -max(digits, 2 if fraction else 0)


def keys_of(frame: pd.DataFrame) -> list[tuple[str, ...]]:
    """Return each row's key for joining prints with cells: the text of ``KEYS`` and of the applicable qualifiers.

    So 0.1 is 0.1, and no budget is as empty as no qualifier.
    """
    columns = [*KEYS, *told(frame)]
    rows = frame[columns].itertuples(index=False, name=None)
    return [
        tuple(f"{key}={_text(part)}" for key, part in zip(columns, row, strict=True) if _text(part)) for row in rows
    ]


def _text(part: Any) -> str:
    if pd.isna(part):
        return ""
    return f"{part:g}" if isinstance(part, float | int) else str(part)


def _places(row: pd.Series) -> list[dict[str, Any]]:
    if not row[EXPLAINED_BY]:
        return [{"reason": f"no file beside the prints of {row['paper']} says what their names are here"}]
    return call(row[EXPLAINED_BY], "placed", row, printed_setting(row))


def _scale(row: Mapping[str, Any], place: Mapping[str, Any]) -> float:
    """Return the factor from the printed number's unit to ours: a hundredth for a percentage."""
    printed = float(row["value"])
    if printed == 0:
        return 0.01 if printed_setting(row).get("unit", "").startswith("percent") else 1.0
    return place.get("published", np.nan) / printed


def _usual_bound(place: Mapping[str, Any]) -> str:
    return usual_bound(place["mechanism"]) if place.get("accountant") else ""


def by_names(row: Mapping[str, Any], printed: Mapping[str, str], names: Names) -> list[dict[str, Any]]:
    """Return all readings of a printed row if only names differ.

    Args:
        row: one row of the paper's csv file.
        printed: its setting, key → value.
        names: the paper's.
    """
    mechanism, accountant = names.series.get(row["mechanism"], ("", ""))
    dataset = (DATASETS | dict(names.datasets)).get(row["dataset"], "")
    metric = names.metrics.get(row["metric"], row["metric"])
    percent = printed.get("unit") == "percent" and metric in FRACTIONS
    size = names.n_members
    place = {
        "dataset": dataset,
        "model": names.models.get(row["model"], ""),
        "mechanism": mechanism,
        "accountant": accountant,
        "unit": "example" if accountant else "",
        "block": "whole" if accountant else "",
        "epsilon": budget_of(row) if accountant else np.nan,
        "metric": metric,
        "published": float(row["value"]) / (100 if percent else 1),
        "n_members": size.get(dataset, np.nan) if isinstance(size, Mapping) else size,
        "reason": _reason(row, printed, names),
    }
    ours = {key: names.attacks.get(printed[key], printed[key]) for key in KEPT if key in printed}
    key, readings = names.readings.get(row["metric"], ("", ("",)))
    return [place | ours | ({key: reading} if key else {}) for reading in readings]


def budget_of(row: Mapping[str, Any]) -> float:
    """Return the ε of a printed row; NaN if it states no ε."""
    try:
        return float(row["epsilon"])
    except ValueError:
        return np.nan


def quoted(printed: Mapping[str, str]) -> str:
    """Return why a number is not compared: the paper quotes it or contradicts itself; "" for any other."""
    if "external" in printed:
        return f"quoted by the paper from {printed['external']}, on other data or another model"
    if "conflict" in printed:
        return f"the text contradicts {printed['conflict']}, whose number is compared"
    return ""


def _reason(row: Mapping[str, Any], printed: Mapping[str, str], names: Names) -> str:
    """Return why a printed row has no counterpart here; empty if it has a counterpart."""
    if row["metric"] in names.derived:
        return names.derived[row["metric"]]
    if "external" in printed:
        return quoted(printed)
    known = {"dataset": DATASETS | dict(names.datasets), "model": names.models, "mechanism": names.series}
    for column, here in known.items():
        if row[column] not in here:
            return f"{column} '{row[column]}' is not part of this workflow"
    if "conflict" in printed:
        return quoted(printed)
    if "epsilon_range" in printed:
        return f"one value for all of ε {printed['epsilon_range']}"
    if row["mechanism"] != "none" and np.isnan(budget_of(row)):
        return "the budget is not stated"
    return ""
