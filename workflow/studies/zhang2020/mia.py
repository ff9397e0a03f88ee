"""What the figures of model inversion share: which rows they draw, how cells are called, and zhang2020's prints."""

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from dp_leakage.common.errors import UserError, nearest
from dp_leakage.table.frames import csv_columns, in_order, unprinted
from dp_leakage.table.notes import claimed_relations
from dp_leakage.table.numbers import number
from dp_leakage.table.published import printed_setting

MEASURES = {"euclidean": "Euclidean", "1-ssim": "1 − SSIM"}
CONTROLS = {
    "black": "black image",
    "gray": "gray image",
    "mean": "mean of all images",
    "class_mean": "mean of the class",
}
ATTACKS = {
    "inversion_original": "original",
    "inversion_original_slow": "original, small steps",
    "inversion_unpenalized": "without penalty",
    "inversion_l1": "enhanced (ℓ1)",
    "inversion_l1_sum": "enhanced (ℓ1 as a sum)",
    "inversion_btv": "enhanced (BTV)",
    "inversion_tuned_euclidean": "tuned, restarts",
    "inversion_tuned_ssim": "tuned, restarts",
}
UNITS = {"gaussian": "record-DP", "class": "class-DP", "subclass": "subclass-DP", "none": "no defense"}
PRINTED_ATTACKS = {
    "inversion_original": "original_mia",
    "inversion_l1": "enhanced_mia",
    "inversion_btv": "enhanced_mia",
}
PRINTED_DATASETS = {"mnist": "MNIST", "faces94": "Faces94"}
PRINTED_MECHANISMS = {"gaussian": "record_dp", "class": "class_dp", "subclass": "subclass_dp", "none": "none"}
PRINTED_MEMBERS = {"mnist": 60_000, "faces94": 29_070}


def cell_words(cell: Mapping[str, Any], noise_multiplier: float | None = None) -> str:
    """A cell as zhang2020 calls it: record-DP σ = 1; without its ε and k_sub. The noise is what the study gave, unless
    it is said.
    """
    words = UNITS.get(cell["mechanism"], cell["mechanism"]) + (", random" if cell.get("partition") == "random" else "")
    given = cell.get("sigma") if noise_multiplier is None else noise_multiplier
    return words if given is None or given != given else f"{words} σ = {number(given)}"


def inversion_rows(
    frame: pd.DataFrame, attack: str, measure: str, variant: str = "", *, by_class: bool = False
) -> pd.DataFrame:
    """Rows mia_distance of an attack by one measure: the mean over classes, or one for each ``class``.

    Raises:
        UserError: there is none, with the attacks that there are.
    """
    of_metric = frame[frame["metric"] == "mia_distance"]
    wanted = {"attack": attack, "measure": measure, "statistic": "" if by_class else "mean", "variant": variant}
    fits = (of_metric[[*wanted]] == [*wanted.values()]).all(axis=1) & (of_metric["class"].notna() == by_class)
    if not fits.any():
        there = set(of_metric["attack"])
        raise UserError(f"figure setting 'attack': no distances of '{attack}' by '{measure}'; {nearest(attack, there)}")
    return of_metric[fits]


def control_rows(frame: pd.DataFrame, measure: str, *, by_class: bool = False) -> dict[str, pd.DataFrame]:
    """Control's name → its rows, of those that were measured."""
    found = {}
    for variant in CONTROLS:
        try:
            found[variant] = inversion_rows(frame, "inversion_controls", measure, variant, by_class=by_class)
        except UserError:
            continue
    return found


def own_spent(frame: pd.DataFrame) -> pd.DataFrame:
    """The ε of each private cell's own accountant for the neighbors that it speaks of: dataset, model, defense, ε."""
    rows = frame[frame["metric"] == "epsilon_spent"]
    own = (rows["accounted_by"] == rows["accountant"]) & (rows["neighbors"] == claimed_relations(rows))
    return rows[own].rename(columns={"value": "epsilon_spent"})[["dataset", "model", "defense", "epsilon_spent"]]


def printed_distances(published: pd.DataFrame | None, dataset: str, attack: str) -> dict[int, float]:
    """Column's place in the paper's table, from 0 → the distance that it prints for the undefended model."""
    if published is None or attack not in PRINTED_ATTACKS:
        return {}
    table = published[
        (published["metric"] == "mia_distance") & (published["dataset"] == PRINTED_DATASETS.get(dataset))
    ].to_dict("records")
    of_attack = [row for row in table if printed_setting(row).get("attack") == PRINTED_ATTACKS[attack]]
    return {place: float(row["value"]) for place, row in enumerate(of_attack)}


def printed_accuracies(published: pd.DataFrame | None, dataset: str, mechanism: str) -> pd.DataFrame:
    """The test accuracies that the paper states: noise_multiplier, epsilon, published (a fraction)."""
    columns = ["noise_multiplier", "epsilon", "published"]
    if published is None:
        return pd.DataFrame(columns=columns, dtype=float)
    rows = published[
        (published["metric"] == "test_accuracy")
        & (published["dataset"] == PRINTED_DATASETS.get(dataset))
        & (published["mechanism"] == PRINTED_MECHANISMS.get(mechanism))
    ]
    sigma = [float(printed_setting(row).get("sigma", "nan")) for row in rows.to_dict("records")]
    epsilon = pd.to_numeric(rows["epsilon"])
    return pd.DataFrame(
        dict(zip(columns, (sigma, epsilon, rows["value"].astype(float) / 100), strict=True)), columns=columns
    )


def drawn(rows: pd.DataFrame, extra: Iterable[str] = ()) -> pd.DataFrame:
    """Metric rows as a figure's csv has them, without prints."""
    return in_order(unprinted(rows.rename(columns={"value": "measured"}))[csv_columns(rows, extra)])


def window_notes(measure: str) -> list[str]:
    """Which window the SSIM of a measure has; nothing for the other measure."""
    return ["SSIM: with a Gaussian 11×11 window."] if measure == "1-ssim" else []


def one(frame: pd.DataFrame, kind: str) -> pd.Series:
    """The (data set, model) of a figure that has room for one.

    Raises:
        UserError: there are several.
    """
    pairs = frame[["dataset", "model"]].drop_duplicates()
    if len(pairs) != 1:
        raise UserError(f"figure of kind '{kind}': its cells are of several data sets or models; select one")
    return pairs.iloc[0]
