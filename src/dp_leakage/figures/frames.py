"""From all cells' metrics to the rows of one figure: choosing, joining with the prints, ordering. Pure.

Columns of a metrics frame: ``metric``, ``repeat`` ("0", "1", … or "all"), ``value``, ``low``, ``high``, ``setting``
(``key=value;…``), and of the cell: ``study``, ``dataset``, ``model``, ``defense``, ``mechanism``, ``accountant``,
``unit``, ``block`` ("" if none), ``epsilon`` (nominal), ``delta``, ``noise_multiplier`` (NaN if none), ``epochs``,
``n_members``, ``n_nonmembers``, ``accounting_note`` (what the study says of this ε; optional).
Figures draw the rows of repeat "all".
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np
import pandas as pd

from dp_leakage.common.errors import UserError, nearest
from dp_leakage.figures.published import KEYS, comparable
from dp_leakage.figures.style import Series, name, order
from dp_leakage.metrics.measure import STRONGEST
from dp_leakage.privacy.defenses import CLAIMED

NAMES = ["dataset", "model", "defense", "mechanism", "accountant", "unit", "block"]
CELL = [*NAMES, "epsilon", "delta", "noise_multiplier"]
NUMBERS = ["metric", "setting", "measured", "low", "high", "published", "inside"]
COLUMNS = [*CELL, *NUMBERS]
ADVANTAGES = {"best": "reached_advantage", "own": "membership_advantage"}  # by where the threshold comes from
WORDS = {
    "accuracy_loss": "accuracy loss (fraction of\nthe non-private accuracy)",
    "test_accuracy": "test accuracy (fraction right)",
    "train_accuracy": "training accuracy (fraction right)",
    "mia_distance": "MIA distance to the class's\nnearest training image",
    "membership_auc": "area under the attack's ROC\n(0.5 is guessing)",
    "reached_advantage": "advantage that an attacker reaches\n(true − false positive rate)",
    "reached_tpr": "members that an attacker names\n(true positive rate)",
    "membership_advantage": "advantage of the attack's own decision\n(true − false positive rate)",
    "attribute_advantage": "attack advantage\n(difference of rates)",
}


def parse_setting(setting: str) -> dict[str, str]:
    """``attack=yeom;fpr=0.01`` → {"attack": "yeom", "fpr": "0.01"}."""
    return dict(part.split("=", 1) for part in setting.split(";") if part)


def chosen(metrics: pd.DataFrame, settings: Mapping[str, Any]) -> pd.DataFrame:
    """The rows over all repeats of the data sets, models and units that the settings name (None: all).

    Training histories, which have no column ``metric``, keep their repeats. Non-private rows have no unit and are kept
    whatever the unit.

    Raises:
        UserError: a name that no cell has.
    """
    frame = metrics[metrics["repeat"] == "all"] if "metric" in metrics else metrics
    frame = frame.assign(**{column: frame[column].fillna("") for column in [*NAMES, "setting"] if column in frame})
    private = is_private(frame)
    frame = frame.assign(**{column: frame[column].where(private, "") for column in ("unit", "block")})
    for key in ("dataset", "model", "unit"):
        wanted = listed(settings.get(key))
        if not wanted:
            continue
        for value in wanted:
            if value not in set(frame[key]):
                known = nearest(value, set(frame[key]) - {""})
                raise UserError(f"figure setting '{key}': no cell has '{value}'; {known}")
        kept = {*wanted, ""} if key == "unit" else {*wanted}
        frame = frame[frame[key].isin(kept)]
    return frame


def listed(value: Any) -> list[Any]:
    """None → [], a name → [name], a list → itself."""
    return [] if value is None else [value] if isinstance(value, str | float | int) else list(value)


def require_scores(frame: pd.DataFrame, key: str, column: str, names: Iterable[str]) -> None:
    """Raises UserError, naming the figure's setting ``key``, for a name that no row of ``column`` has."""
    for value in names:
        if value not in set(frame[column]):
            known = nearest(value, set(frame[column]))
            raise UserError(f"figure setting '{key}': no scores of '{value}' among the figure's parts; {known}")


def metric_rows(frame: pd.DataFrame, metric: str, **conditions: Any) -> pd.DataFrame:
    """The rows of one metric whose setting has the given values; None, or a key that a row does not have, fits any.

    Raises:
        UserError: there is none, with what there is.
    """
    of_metric = frame[frame["metric"] == metric]
    wanted = {key: str(value) for key, value in conditions.items() if value is not None}
    fits = [
        all(setting.get(key, value) == value for key, value in wanted.items())
        for setting in map(parse_setting, of_metric["setting"])
    ]
    found = of_metric[np.array(fits, dtype=bool)]
    if found.empty:
        asked = f"{metric} ({', '.join(f'{k}={v}' for k, v in wanted.items())})" if wanted else metric
        there = sorted({f"{m} {s}".strip() for m, s in zip(frame["metric"], frame["setting"], strict=True)})
        raise UserError(f"figure: nothing measured for {asked}; there is: {', '.join(there[:12]) or 'nothing'}")
    return found


def attack_rows(frame: pd.DataFrame, attack: str | None, definition: str, threshold: str = "own") -> pd.DataFrame:
    """The advantage rows of one attack, with a column ``attack``; None: of every attack by itself.

    Args:
        frame: rows over all repeats.
        attack: its name; ``strongest``: of each cell the one that finds most, chosen on other records than judged.
        definition: of an attribute attack's advantage.
        threshold: of a membership attack: ``best`` (chosen on other records) or ``own``, which the attack brings along.

    Raises:
        UserError: no such attack was measured.
    """
    rows = frame[frame["metric"].isin([ADVANTAGES[threshold], "attribute_advantage"])]
    settings = [parse_setting(setting) for setting in rows["setting"]]
    rows = rows.assign(attack=[setting.get("attack", "") for setting in settings])
    rows = rows[[setting.get("definition", definition) == definition for setting in settings]]
    if attack is None:
        return rows[rows["attack"] != STRONGEST]
    if attack not in set(rows["attack"]):
        known = nearest(attack, set(rows["attack"]))
        raise UserError(f"figure setting 'attack': nothing was measured for '{attack}'; {known}")
    return rows[rows["attack"] == attack]


def rate_rows(frame: pd.DataFrame, attack: str | None, fpr: float) -> pd.DataFrame:
    """The TPR of one membership attack (None: of each) at a false positive rate, with a column ``attack``."""
    rows = metric_rows(frame, "reached_tpr", attack=attack, fpr=f"{fpr:g}")
    return rows.assign(attack=[parse_setting(setting)["attack"] for setting in rows["setting"]])


def reached(frame: pd.DataFrame) -> pd.DataFrame:
    """What membership attacks reach, with a column ``attack`` and, of the strongest, which it is, in ``of``."""
    rows = metric_rows(frame, "reached_advantage")
    said = [parse_setting(setting) for setting in rows["setting"]]
    return rows.assign(**{key: [setting.get(key, "") for setting in said] for key in ("attack", "of")})


def drawn_numbers(
    rows: pd.DataFrame, published: pd.DataFrame | None, extra: Sequence[str] = (), any_size: bool = False
) -> pd.DataFrame:
    """Rows as a figure's csv has them: ``value`` named ``measured``, the print and ``inside`` joined, ordered.

    Args:
        rows: metrics rows.
        published: the paper's rows as printed, or None.
        extra: further columns to keep, put after the cell's.
        any_size: as for `with_published`.
    """
    frame = with_published(rows.rename(columns={"value": "measured"}), published, any_size)
    frame = frame[[*CELL, *(column for column in extra if column not in COLUMNS), *NUMBERS]]
    return in_order(frame)


def own_row(cell: Mapping[str, Any], metric: str, setting: str, found: Sequence[float], **extra: Any) -> dict[str, Any]:
    """A row of a csv for what a figure measures itself, which nobody prints.

    Args:
        cell: the columns of the cell, or a row that has them.
        metric, setting: what is measured.
        found: value, low and high; of a value without an interval itself alone.
        extra: further columns, put after the cell's.
    """
    columns = {column: cell.get(column, np.nan) for column in CELL}
    value, low, high = found if len(found) == 3 else (*found, np.nan, np.nan)
    numbers = dict(zip(NUMBERS, (metric, setting, value, low, high, np.nan, pd.NA), strict=True))
    return {**columns, **extra, **numbers}


def unprinted(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows with empty columns ``published`` and ``inside``: they have no print, or none that they are compared with."""
    return rows.assign(published=np.nan, inside=pd.array([pd.NA] * len(rows), dtype="boolean"))


def with_published(frame: pd.DataFrame, published: pd.DataFrame | None, any_size: bool = False) -> pd.DataFrame:
    """Adds ``published`` (NaN where nothing is printed) and ``inside``: does it lie in [low, high] (empty likewise).

    A print stands for every value that rounds to it, so it is inside where one of those is. It is joined only to cells
    with as many members as the paper's: a reduced run is not compared. With ``any_size`` it is joined to cells of any
    size, and ``inside`` stays empty where the sizes differ.
    """
    prints: dict[tuple[str, ...], tuple[float, str]] = {}
    if published is not None and len(published):
        found = comparable(published)
        values = zip(found["published"], map(key_of, _rows(found[["n_members"]])), strict=True)
        prints = dict(zip(map(key_of, _rows(found[KEYS])), values, strict=True))
    nothing: tuple[float, Any] = (np.nan, None)
    joined = [prints.get(key_of(key), nothing) for key in _rows(frame[KEYS])]
    sizes = zip(joined, _rows(frame[["n_members"]]), strict=True)
    same_size = pd.Series([size == key_of(own) for (_, size), own in sizes], index=frame.index, dtype=bool)
    printed = pd.Series([value for value, _ in joined], index=frame.index, dtype="float64")
    printed = printed if any_size else printed.where(same_size)
    reach = printed.map(half_unit)
    inside = ((frame["low"] <= printed + reach) & (printed - reach <= frame["high"])).astype("boolean")
    return frame.assign(published=printed, inside=inside.where(same_size & printed.notna()))


def half_unit(printed: float) -> float:
    """Half a unit of a print's last digit; fractions are printed with two digits at least, and lose the zeros.

    >>> half_unit(0.9), half_unit(0.165), half_unit(52.9)
    (0.005, 0.0005, 0.05)
    """
    if not isfinite(printed):
        return 0.0
    digits = len(f"{printed:.6f}".rstrip("0").partition(".")[2])
    return 0.5 * 10 ** -max(digits, 2 if abs(printed) < 1 else 0)


def _rows(frame: pd.DataFrame) -> Iterator[tuple[Any, ...]]:
    return frame.itertuples(index=False, name=None)


def key_of(parts: Iterable[Any]) -> tuple[str, ...]:
    """Prints and cells meet on text, so that 0.1 is 0.1 and no budget is "nan"."""
    return tuple(f"{part:g}" if isinstance(part, float | int) else str(part) for part in parts)


def in_order(frame: pd.DataFrame) -> pd.DataFrame:
    """Sorted by data set, model, series (in the order of legends), budget, metric and epoch; a fresh index."""
    ranks = [order(series) for series in series_of(frame)]
    places = {rank: place for place, rank in enumerate(sorted(set(ranks)))}
    keyed = frame.assign(_series=[places[rank] for rank in ranks])
    by = ["dataset", "model", "_series", "epsilon", "noise_multiplier", "metric", "setting", "epoch"]
    present = [column for column in by if column in keyed]
    return keyed.sort_values(present, kind="stable").drop(columns="_series").reset_index(drop=True)


def series_of(frame: pd.DataFrame) -> list[Series]:
    """The series of each row."""
    return [Series(*parts) for parts in _rows(frame[["mechanism", "accountant", "unit", "block"]])]


def each_series(frame: pd.DataFrame) -> Iterator[tuple[Series, pd.DataFrame]]:
    """The series of a frame in the order of legends, each with its rows."""
    keys = pd.Series(series_of(frame), index=frame.index, dtype=object)
    for series in sorted(set(keys), key=order):
        yield series, frame[[key == series for key in keys]]


def each_budget(rows: pd.DataFrame) -> Iterator[tuple[tuple[float, float], pd.DataFrame]]:
    """The cells of a series as ((ε, σ), rows), in the order of the budget."""
    yield from rows.groupby(["epsilon", "noise_multiplier"], dropna=False)


def each_cell(rows: pd.DataFrame) -> Iterator[tuple[Series, pd.DataFrame]]:
    """The cells of one data set and model, each with its series, in the order of legends and then of the budget."""
    for series, of_series in each_series(rows):
        for _, of_budget in each_budget(of_series):
            for _, cell in of_budget.groupby("defense", sort=False):
                yield series, cell


def is_private(frame: pd.DataFrame) -> pd.Series:
    """Which rows belong to a differentially private defence."""
    return frame["accountant"] != ""


def claims_epsilon(rows: pd.DataFrame) -> pd.DataFrame:
    """Without private cells that were given by their noise and so claim no ε."""
    return rows[rows["epsilon"].notna() | ~is_private(rows)]


def metric_words(metric: str) -> str:
    """What the axis of a metric says: its name and its unit."""
    return WORDS.get(metric, name(metric))


def panels(
    frame: pd.DataFrame, by: Sequence[str] = ("dataset", "model"), named: Sequence[str] | None = None
) -> list[tuple[str, pd.DataFrame]]:
    """One (heading, rows) per combination of the columns ``by``.

    The heading has the values of ``named`` (None: of all), without those that are the same everywhere, unless all are.
    """
    naming = [*(by if named is None else named)]
    varying = [column for column in naming if frame[column].nunique() > 1] or naming
    return [
        (" · ".join(name(str(rows[column].iloc[0])) for column in varying if rows[column].iloc[0] != ""), rows)
        for _, rows in frame.groupby([*by], sort=True)
    ]


def is_hypothetical(setting: Mapping[str, str]) -> bool:
    """Whether an ε is that of other batches than those of the training."""
    return setting.get("sampling", "").startswith("hypothetical")


def spent(frame: pd.DataFrame, neighbours: str | None = None) -> pd.DataFrame:
    """The ε really spent by each private cell: the smallest that a valid accountant proves for what was done.

    Rows marked ``valid=false`` (printed formulas outside their conditions) or ``sampling=hypothetical_…`` (what it
    would be with other batches) do not count.

    Args:
        frame: rows over all repeats.
        neighbours: count this neighbouring relation only (None: any).

    Returns:
        A row a cell: dataset, model, defense, epsilon_spent, spent_accountant, spent_neighbours.
    """
    rows = frame[frame["metric"] == "epsilon_spent"]
    settings = [parse_setting(setting) for setting in rows["setting"]]
    rows = rows.assign(
        spent_accountant=[s.get("accountant", "") for s in settings],
        spent_neighbours=[s.get("neighbours", "") for s in settings],
        counts=[s.get("valid", "true") == "true" and not is_hypothetical(s) for s in settings],
    ).rename(columns={"value": "epsilon_spent"})
    rows = rows[rows["counts"] & rows["epsilon_spent"].notna()]
    if neighbours is not None:
        rows = rows[rows["spent_neighbours"] == neighbours]
    cell = ["dataset", "model", "defense"]
    best = rows.sort_values([*cell, "epsilon_spent", "spent_accountant"], kind="stable").drop_duplicates(cell)
    return best[[*cell, "epsilon_spent", "spent_accountant", "spent_neighbours"]].reset_index(drop=True)


# What an audit's bound is compared with, by the neighbours that it is for.
COMPARED = {"replace_one": ("replace_one",), "presence": ("add_remove", "zero_out")}
OF_A_CLAIM = dict.fromkeys(("presence", "add_remove", "zero_out"), ("",))  # the same where another library claims ε


def contradicted(frame: pd.DataFrame) -> pd.DataFrame:
    """The lower bounds on ε that are above what was spent: something there is wrong.

    A bound that says for which ``neighbours`` it holds is compared with the ε spent for those; where none is known for
    replace_one, its twin for a ``presence`` is, with that for add/remove and for zero-out ones. Any other bound is
    compared with the smallest ε spent, else with the claim. What another library claims does not say for which
    neighbours: a ``presence`` is compared with the claim, replace_one with twice that, which it allows in any case.

    Args:
        frame: rows over all repeats.

    Returns:
        Those rows, with ``allowed``, the ε that was spent, and ``relation``, for which neighbours ("" if not known).
    """
    bounds = frame[frame["metric"] == "epsilon_lower_bound"]
    if bounds.empty:
        return bounds.assign(relation="", allowed=np.nan)
    said = [parse_setting(setting).get("neighbours", "") for setting in bounds["setting"]]
    theirs = (bounds["accountant"] == CLAIMED).tolist()
    pairs = [
        (i, neighbours)
        for i, (said_, claim) in enumerate(zip(said, theirs, strict=True))
        for neighbours in (OF_A_CLAIM if claim else COMPARED).get(said_, (said_,))
    ]
    rows = bounds.iloc[[i for i, _ in pairs]]
    rows = rows.assign(relation=[neighbours for _, neighbours in pairs], neighbours=[said[i] for i, _ in pairs])
    cell = ["dataset", "model", "defense"]
    known = pd.concat(
        [spent(frame, relation or None).assign(relation=relation) for relation in sorted(set(rows["relation"]))]
    )
    rows = rows.merge(known[[*cell, "relation", "epsilon_spent"]], how="left", on=[*cell, "relation"])
    exchanged = spent(frame, "replace_one")[cell].assign(exchanged=True)
    converted = rows["relation"].isin(COMPARED["presence"]) & (rows["neighbours"] == "presence")
    rows = rows[~converted | rows[cell].merge(exchanged, how="left", on=cell)["exchanged"].isna()]
    allowed = rows["epsilon_spent"].where(rows["epsilon_spent"].notna() | (rows["relation"] != ""), rows["epsilon"])
    exchange = (rows["accountant"] == CLAIMED) & (rows["relation"] == "replace_one")
    allowed = allowed.where(~exchange, 2 * rows["epsilon"])
    return rows.assign(allowed=allowed)[rows["value"] > allowed]
