"""Tables of the page, formatted."""

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

import pandas as pd
from markupsafe import Markup

from dp_leakage.common.user_code import FILES
from dp_leakage.metrics import STRONGEST
from dp_leakage.metrics.measure import FPR_OF_TPR
from dp_leakage.metrics.rows import CELL
from dp_leakage.metrics.spent import POISSON, spent
from dp_leakage.privacy.defenses import CLAIMED
from dp_leakage.privacy.mechanisms import MECHANISMS
from dp_leakage.report.answer import Answer, Setting
from dp_leakage.report.exposed import MostExposed
from dp_leakage.report.guarantees import rounded_up
from dp_leakage.report.tuned import tuned_of
from dp_leakage.table.exposed import exposed_table
from dp_leakage.table.frames import chosen, drawn_numbers, each_budget, each_series, in_order, is_private, panels
from dp_leakage.table.looks import look
from dp_leakage.table.numbers import (
    at_least,
    at_most,
    budget,
    cell_budget,
    cell_label,
    cell_labels,
    fraction,
    interval,
    number,
)
from dp_leakage.table.tables import Table
from dp_leakage.table.words import name

RELATION = re.compile(r"\b(?:add_remove|replace_one|zero_out)\b")
RANKED = ("non-members with at least this score", "identified by the attack")
EVIDENCE = "evidence: score in minus out of training, in standard errors"
COUNTED = ("identified when in training", "identified when not in training")
PICTURE = "data:image/png;base64,"
ANSWERED = {"yes": "yes", "no": "no", "open": "undecided"}


def settings(found: list[Answer]) -> list[Table]:
    """Return for each data set a table of all settings: use, loss, measured leakage, proven limit."""
    leaks = [one.leak for answer in found for one in answer.settings if one.leak is not None]
    rates = [rate for rate in FPR_OF_TPR if any(rate in leak.tprs for leak in leaks)]
    heads = [
        "setting",
        "model",
        "keeps {use}",
        "protects",
        "front",
        "{use}",
        "loss to the best undefended",
        "loss to its own undefended",
        "strongest attack",
        "advantage",
        *(f"TPR at {100 * rate:g} % FPR" for rate in rates),
        "AUC",
        "any attack at most",
    ]
    return [
        Table(
            name(answer.dataset),
            [head.format(use=answer.use_label) for head in heads],
            [_setting_row(one, rates) for one in answer.settings],
            left=5,
        )
        for answer in found
    ]


def _setting_row(one: Setting, rates: Sequence[float]) -> list[str]:
    leak = one.leak
    return [
        cell_label(one.series, one.row),
        name(one.model),
        ANSWERED[one.keeps] if one.private else "",
        _protection(one) if one.private else "",
        "●" if one.front else "",
        interval(*one.accuracy),
        interval(*one.loss),
        interval(*one.twin_loss) if one.twin_loss else "–",
        name(leak.attack) if leak else "–",
        interval(*leak.advantage) if leak else "–",
        *(interval(*leak.tprs[rate]) if leak and rate in leak.tprs else "–" for rate in rates),
        interval(*leak.auc) if leak else "–",
        rounded_up(one.proven.advantage) if one.proven else "–",
    ]


def _protection(one: Setting) -> str:
    """Say whether the setting protects, and why; "no" only where an attack shows leakage."""
    if one.shown_to_leak:
        return "no (refuted)" if one.refuted else "no"
    if one.refuted:
        return "claim refuted"
    if one.by_proof:
        return "yes (proven)"
    if one.protects == "yes":
        return "yes (attacks tried)"
    return "not proven" if one.protects == "no" else ANSWERED[one.protects]


def attacks(metrics: pd.DataFrame, cells: Collection[tuple[str, str, str]]) -> list[Table]:
    """Return a table of every membership attack on each of these cells: (data set, model, defense)."""
    frame = chosen(metrics, {})
    frame = frame[[key in cells for key in frame[CELL].itertuples(index=False, name=None)]]
    frame = frame[frame["metric"].isin(["reached_advantage", "reached_tpr", "membership_auc"]) & frame["value"].notna()]
    rates = [rate for rate in FPR_OF_TPR if (frame["fpr"] == rate).any()]
    heads = ["attack", "advantage", *(f"TPR at {100 * rate:g} % FPR" for rate in rates), "AUC"]
    columns = [("reached_advantage", 0.0), *(("reached_tpr", rate) for rate in rates), ("membership_auc", 0.0)]
    found = []
    for heading, part in panels(frame[frame["attack"] != STRONGEST]):
        labels = cell_labels(part)
        for defense, of_cell in part.groupby("defense", sort=False):
            rows = []
            for attack, own in of_cell.groupby("attack", sort=False):
                shown = {
                    (row.metric, row.fpr): interval(row.value, row.low, row.high)
                    for row in own.fillna({"fpr": 0.0}).itertuples()
                }
                rows.append([name(str(attack)), *(shown.get(column, "–") for column in columns)])
            named = [heading, labels[defense]] if frame["defense"].nunique() > 1 else [heading]
            found.append(Table(" · ".join(filter(None, named)), heads, rows))
    return found


def claimed_and_spent(metrics: pd.DataFrame) -> list[Table]:
    """Return tables of target and accounted ε: one for data sets and models that agree, otherwise one for each."""
    frame = chosen(metrics, {})
    private = frame[is_private(frame) & (frame["metric"] == "epsilon_spent")]
    # Of another library's training, only the target ε is known.
    others = frame[(frame["accountant"] == CLAIMED) & (frame["metric"] == "test_accuracy")]
    if private.empty and others.empty:
        return []
    cells = pd.concat([private, others]).drop_duplicates(CELL).merge(spent(frame), how="left", on=CELL)
    cells = cells.merge(_hypothetical(private), how="left", on=CELL)
    cells = in_order(cells.merge(_proved(frame), how="left", on=CELL))
    columns: dict[str, tuple[str, Callable[[Any], str]]] = {
        "if batches were Poisson": ("if_poisson", at_most),
        "an audit proves at least": ("proved", str),
    }
    shown = {head: column for head, column in columns.items() if cells[column[0]].notna().any()}
    tables = [(heading, _spent_rows(part, list(shown.values()))) for heading, part in panels(cells)]
    if len({str(rows) for _, rows in tables}) == 1:
        tables = [("", tables[0][1])]
    heads = [
        "noise chosen by",
        "target ε",
        "noise σ",
        "accounted ε",
        "by accountant",
        "neighbors",
        *shown,
    ]
    return [Table(heading, heads, rows) for heading, rows in tables]


def _hypothetical(private: pd.DataFrame) -> pd.DataFrame:
    """Return the smallest ε of each cell as if its batches were Poisson samples."""
    would_be = private[private["sampling"] == POISSON]
    least = would_be.groupby(CELL)["value"].min()
    return least.rename("if_poisson").reset_index()


def _proved(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the largest lower bound of each cell, with its neighbors: ``1.6 (replace-one)``."""
    bounds = frame[(frame["metric"] == "epsilon_lower_bound") & (frame["neighbors"] != "presence")]
    best = bounds.sort_values("value", kind="stable").drop_duplicates(CELL, keep="last")
    told = [
        f"{at_least(value)}{f' ({name(neighbors)})' if neighbors else ''}"
        for value, neighbors in zip(best["value"], best["neighbors"], strict=True)
    ]
    return best[CELL].assign(proved=told)


def _spent_rows(part: pd.DataFrame, more: list[tuple[str, Callable[[Any], str]]]) -> list[list[str]]:
    return [
        [
            look(series).label,
            number(row.epsilon),
            number(row.noise_multiplier),
            at_most(row.epsilon_spent),
            _accounted(row),
            name(row.spent_neighbors) if isinstance(row.spent_neighbors, str) else "–",
            *(spell(value) if pd.notna(value := getattr(row, column)) else "" for column, spell in more),
        ]
        for series, rows in each_series(part)
        for row in rows.itertuples()
    ]


def learning_rates(metrics: pd.DataFrame) -> list[Table]:
    """Return for each data set and model the learning rate of each cell, and the result of every rate tried."""
    frame = chosen(metrics, {})
    tables = []
    for heading, part in panels(frame[frame["metric"] == "learning_rate"]) if len(frame) else []:
        rows = []
        for series, cells in each_series(part):
            for _, cell in each_budget(cells):
                here = frame[(frame[CELL] == cell[CELL].iloc[0]).all(axis=1)]
                if (tuned := tuned_of(here)) is not None:
                    own = [look(series).label, cell_budget(cell.iloc[0]), number(tuned.rate)]
                    rows.append((own, tuned.right))
        tried = sorted({rate for _, right in rows for rate in right})
        heads = ["defense", "ε", "rate chosen", *(f"right with {number(rate)}" for rate in tried)]
        lines = [[*own, *(fraction(right[rate]) if rate in right else "" for rate in tried)] for own, right in rows]
        tables.append(Table(heading, heads, lines))
    return tables


def _accounted(row: Any) -> str:
    """Name the accountant of the accounted ε."""
    if row.accountant == CLAIMED:
        return str(row.accounting_note).removeprefix("ε ")
    return name(row.spent_accountant) if isinstance(row.spent_accountant, str) else "–"


def members_exposed(metrics: pd.DataFrame) -> list[Table]:
    """Return for each data set, model and attack the members exposed at each FPR, counted in both ways."""
    frame = chosen(metrics, {})
    sizes = [column for column in ("n_members", "n_records") if column in frame]
    rows = drawn_numbers(frame[frame["metric"] == "members_exposed"], None, sizes)
    return [
        exposed_table(f"{heading} · {name(str(attack))}", by_attack)
        for heading, part in (panels(rows) if len(rows) else [])
        for attack, by_attack in part.groupby("attack", sort=True)
    ]


def most_exposed(exposed: Sequence[MostExposed], one: str = "record", many: str = "records") -> list[Table]:
    """Return a table for each cell with exposed records; ``one`` and ``many`` name them."""
    tables = []
    for found in exposed:
        rows = found.records
        if rows.empty:
            continue
        known = "shown" in rows and rows["shown"].notna().any()
        counted, tell = list(RANKED), _ranked
        if found.by_coins and "named_in" in rows:
            counted, tell = [EVIDENCE, *COUNTED], _counted
        elif found.by_coins:
            counted, tell = [EVIDENCE], _evidence
        heads = [one, *counted, *(["what it is"] if known else [])]
        lines = [[_called(row), *tell(row), *([_shown(row)] if known else [])] for row in rows.itertuples()]
        tables.append(Table(f"{_of_cell(found)}: {found.words(many)}{_tied(rows)}", heads, lines))
    return tables


def nobody_exposed(exposed: Sequence[MostExposed], many: str = "records") -> list[str]:
    """Return a sentence for the cells without exposed records; cells with too few repeats share one."""
    silent = [found for found in exposed if found.records.empty]
    said = [
        found.words(many) if found.too_few_repeats else f"{_of_cell(found)}: {found.words(many)}." for found in silent
    ]
    return list(dict.fromkeys(said))


def _of_cell(found: MostExposed) -> str:
    return " · ".join(map(name, found.cell))


def _tied(part: pd.DataFrame) -> str:
    """Note that more records are as exposed as the last one listed, if any are."""
    if "tied" not in part:
        return ""
    tied = int(part["tied"].iloc[-1])
    if tied <= int((part["tied"] == tied).sum()):
        return ""
    return f" ({tied:,} are exactly as exposed as the last one; listed are those with the lowest row numbers)"


def _called(row: Any) -> str:
    """Return a record's name if the data have names, otherwise its number."""
    called = getattr(row, "called", None)
    return called if isinstance(called, str) and called else str(row.record)


def _ranked(row: Any) -> list[str]:
    return [f"{100 * row.nonmembers_above:.1f} %", f"in {row.flagged} of {row.runs} runs"]


def _evidence(row: Any) -> list[str]:
    return [fraction(row.evidence, 1)]


def _counted(row: Any) -> list[str]:
    ends = f"[{100 * row.low:.0f} %, {100 * row.high:.0f} %]"
    return [*_evidence(row), f"{row.named_in} of {row.runs_in} runs, {ends}", f"{row.named_out} of {row.runs_out} runs"]


def _shown(row: Any) -> str:
    """Return a text, or the HTML of a picture that this package made."""
    words = row.shown if isinstance(row.shown, str) else ""
    if not words.startswith(PICTURE):
        return words
    return Markup('<img src="{}" alt="record {}" height="48">').format(words, row.record)


def defenses(metrics: pd.DataFrame) -> list[tuple[str, str, str]]:
    """Return (series, its budgets, what it hides) in words, for all cells of the study."""
    cells = in_order(chosen(metrics, {}).drop_duplicates(CELL))
    found = []
    for series, part in each_series(cells):
        budgets = dict.fromkeys(budget(*key) for key, _ in each_budget(part))
        promised = f"ε = {', '.join(budgets)}", _hides(series.mechanism)
        found.append((look(series).label, *(promised if series.accountant else ("", ""))))
    return found


def _hides(mechanism: str) -> str:
    """Describe what a mechanism hides, and its neighbors. A plugin's description is its author's statement."""
    if mechanism not in MECHANISMS:
        return ""
    said = RELATION.sub(lambda relation: name(relation[0]), MECHANISMS[mechanism].guarantee)
    if mechanism not in FILES:
        return said
    return f"{said or 'Its author does not say what it hides.'} A plugin's ε rests on its author's word."
