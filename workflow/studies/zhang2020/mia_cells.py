"""Every cell in numbers: accuracy, ε under each way of accounting, and how far each attack gets."""

from typing import Any

import pandas as pd
from mia import (
    ATTACKS,
    CONTROLS,
    MEASURES,
    cell_words,
    control_rows,
    drawn,
    inversion_rows,
    window_notes,
)

from dp_leakage.metrics.rows import CELL, qualifiers
from dp_leakage.table.frames import chosen, each_series, metric_rows, panels
from dp_leakage.table.notes import accounting_notes
from dp_leakage.table.numbers import fraction, interval, number
from dp_leakage.table.tables import Table, Tables

FIGURE = {
    "table": True,
    "caption": "Every defense in numbers: what it costs, what it proves, how far the attacks get, and whether "
    "they found at least something that the model takes for the class.",
    "settings": {
        "attacks": {
            "type": "array",
            "items": {"type": "string", "minLength": 1},
            "default": ["inversion_l1"],
            "description": "The attacks that are shown.",
        },
        "measure": {"$ref": "#/$defs/measure"},
    },
}


def draw(
    metrics: pd.DataFrame, settings: dict[str, Any], published: pd.DataFrame | None
) -> tuple[Tables, pd.DataFrame]:
    """A row for each cell; below them the controls.

    Settings:
        attacks: whose distances and confidences, in this order; those that a cell lacks stay empty.
        measure: ``euclidean`` or ``1-ssim``.
    """
    frame, measure = chosen(metrics, settings), settings["measure"]
    tables, numbers = [], []
    for heading, part in panels(frame):
        parts = [metric_rows(part, "test_accuracy")]
        attacks = [attack for attack in settings["attacks"] if attack in set(part["attack"])]
        for attack in attacks:
            parts += [inversion_rows(part, attack, measure), metric_rows(part, "attack_confidence", **_mean(attack))]
        private = part[(part["metric"] == "epsilon_spent")]
        columns = _accountants(private)
        parts.append(private)
        heads = ["cell", "accuracy", *columns.values()]
        for attack in attacks:
            heads += [f"{ATTACKS.get(attack, attack)}: distance", "confidence"]
        lines = []
        for _, rows in each_series(part):
            for _, cell in rows.sort_values(["noise_multiplier", "defense"]).groupby("defense", sort=False):
                lines.append(_line(cell, columns, attacks, measure))
        controls = control_rows(part, measure)
        for variant, rows in controls.items():
            parts.append(rows)
            confident = metric_rows(part, "attack_confidence", variant=variant, **_mean("inversion_controls"))
            parts.append(confident)
            row = rows.iloc[0]
            text = [interval(row["value"], row["low"], row["high"]), fraction(confident["value"].iloc[0], 2)]
            blank = [""] * (len(heads) - 4)
            lines.append([CONTROLS[variant], "", *blank, *text] if attacks else [CONTROLS[variant], "", *blank])
        tables.append(Table(heading, heads, lines))
        numbers.append(pd.concat(parts))
    notes = [
        f"Distance: {MEASURES[measure]}, to the class's nearest training image, mean over classes [95 % interval]. "
        "Confidence: the probability that the model gives the pictures for their classes; near 1 the attack found what "
        "it looked for, near 1 over the number of classes it did not. Controls are in the last two columns. "
        "A ✗ after an ε: printed formula outside its conditions.",
        *window_notes(measure),
        *accounting_notes(frame, settings),
    ]
    found = drawn(pd.concat(numbers))
    found = found.drop_duplicates([*CELL, "metric", *qualifiers(found)])
    return Tables(tables, notes, settings.get("title")), found.reset_index(drop=True)


def _mean(attack: str) -> dict[str, str]:
    return {"attack": attack, "statistic": "mean"}


def _accountants(private: pd.DataFrame) -> dict[tuple[str, str], str]:
    """(accountant, neighbors) → head of its column."""
    words = {"add_remove": "+/−", "replace_one": "replace", "zero_out": "zero-out"}
    keys = {}
    for key in zip(private["accounted_by"], private["neighbors"], strict=True):
        keys[key] = f"ε {'Theorem 1' if key[0] == 'theorem1' else key[0].replace('_', ' ')}, {words[key[1]]}"
    return dict(sorted(keys.items(), key=lambda item: (item[0][0] == "theorem1", item[0])))


def _line(cell: pd.DataFrame, columns: dict[tuple[str, str], str], attacks: list[str], measure: str) -> list[str]:
    first = cell.iloc[0]
    words = cell_words(first, first["noise_multiplier"])
    words += f", k_sub = {first['k_sub']:g}" if first["k_sub"] > 0 else ""
    accuracy = cell[cell["metric"] == "test_accuracy"].iloc[0]
    line = [words, interval(accuracy["value"], accuracy["low"], accuracy["high"])]
    spent = {}
    for row in cell[cell["metric"] == "epsilon_spent"].itertuples():
        spent[row.accounted_by, row.neighbors] = number(row.value) + ("" if pd.isna(row.valid) or row.valid else " ✗")
    line += [spent.get(key, "") for key in columns]
    for attack in attacks:
        if attack not in set(cell["attack"]):
            line += ["", ""]
            continue
        row = inversion_rows(cell, attack, measure).iloc[0]
        confident = metric_rows(cell, "attack_confidence", **_mean(attack))["value"].iloc[0]
        line += [interval(row["value"], row["low"], row["high"]), fraction(confident, 2)]
    return line
