"""The sentence on structure counts models, and says nothing that was not checked."""

import pandas as pd

from dp_leakage.report.structure import structure_claims


def row(model: str, metric: str, cells: str, value: float) -> dict:
    cell = {"dataset": "tumors", "model": model, "defense": "none", "repeat": "all"}
    return {**cell, "metric": metric, "cells": cells, "value": value, "low": float("nan"), "high": float("nan")}


def checked(model: str, smallest: float, certain: float, freedom: float | None) -> list[dict]:
    rows = [
        row(model, "smallest_cell", "answers", smallest),
        row(model, "smallest_cell", "leaves", 1),
        row(model, "class_disclosed", "answers", certain),
    ]
    return rows if freedom is None else [*rows, row(model, "residual_freedom", "", freedom)]


def test_models_with_small_cells_certain_classes_and_too_many_parameters_are_counted():
    rows = [*checked("tree", 3, 0.4, 12), *checked("forest", 1, 1.0, -900), *checked("stump", 40, 0.0, 180)]
    (claim,) = structure_claims(pd.DataFrame(rows))
    assert claim.words == (
        "Structure, checked without any attack: 2 of 3 models answer some training record as they answer fewer than 9 "
        "others; 2 make the class of some of them certain, of 100 % of its records at most (forest, defense none); 1 "
        "of 3 took more numbers from the training records than there are records."
    )
    assert [one.value for one in claim.numbers] == [2, 3, 2, 1.0, 1, 3]


def test_what_was_not_checked_is_not_said():
    (claim,) = structure_claims(pd.DataFrame(checked("tree", 12, 0.0, None)))
    assert "0 of 1 models" in claim.words
    assert "took more numbers" not in claim.words
    assert structure_claims(pd.DataFrame(checked("tree", 12, 0.0, None))[:0]) == []
