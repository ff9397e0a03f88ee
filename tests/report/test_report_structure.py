"""The sentence on structure counts models, and says nothing that was not checked."""

import pandas as pd

from dp_leakage.report.structure import structure_claims


def row(model: str, metric: str, cells: str, value: float) -> dict:
    cell = {"dataset": "tumors", "model": model, "defense": "none", "repeat": "all"}
    return {**cell, "metric": metric, "cells": cells, "value": value, "low": float("nan"), "high": float("nan")}


def checked(model: str, smallest: float, certain: float, freedom: float | None, small: float = 0.5) -> list[dict]:
    rows = [
        row(model, "smallest_cell", "answers", smallest),
        row(model, "smallest_cell", "leaves", 1),
        row(model, "in_small_cells", "answers", small),
        row(model, "class_disclosed", "answers", certain),
    ]
    return rows if freedom is None else [*rows, row(model, "residual_freedom", "", freedom)]


def test_models_with_small_cells_certain_classes_and_too_many_parameters_are_counted():
    rows = [*checked("tree", 3, 0.4, 12), *checked("forest", 1, 1.0, -900), *checked("stump", 40, 0.0, 180)]
    (claim,) = structure_claims(pd.DataFrame(rows))
    assert claim.words == (
        "Structure, checked without any attack: in 2 of 3 models, some training record gets the same answer as fewer "
        "than 9 others; in 2, the answer makes the class of some records certain, of 100 % of a model's records "
        "at most (forest, defense none); 1 of 3 took more numbers from the training records than there are records."
    )
    assert [one.value for one in claim.numbers] == [2, 3, 2, 1.0, 1, 3]


def test_a_model_that_answers_nearly_every_record_differently_is_not_said_to_make_classes_certain():
    network = checked("mlp", 1, 1.0, None, small=0.99)
    (claim,) = structure_claims(pd.DataFrame([*network, *checked("stump", 3, 0.4, 12)]))
    assert claim.words == (
        "Structure, checked without any attack: in 2 of 2 models, some training record gets the same answer as fewer "
        "than 9 others; in 1, this holds for nearly all records, as is usual for networks and alone no leak; in "
        "the other one, the answer makes the class of some records certain, of 40 % of a model's records at most "
        "(stump, defense none); the one model whose parameters are counted took no more numbers from the training "
        "records than there are records."
    )
    (alone,) = structure_claims(pd.DataFrame(network))
    assert alone.words == (
        "Structure, checked without any attack: in the one model, some training record gets the same answer as fewer "
        "than 9 others; this holds for nearly all records, as is usual for networks and alone no leak."
    )


def test_certain_classes_are_counted_among_the_models_that_are_not_set_apart():
    """One of three was said, where the third had been set apart and not counted."""
    network, stump = checked("mlp", 1, 1.0, None, small=0.99), checked("stump", 40, 0.0, 9)
    (claim,) = structure_claims(pd.DataFrame([*network, *checked("tree", 3, 0.4, 12), *stump]))
    assert "; in 1 of the other 2, the answer makes the class of some records certain, of 40 % of" in claim.words
    (none,) = structure_claims(pd.DataFrame([*network, *stump]))
    assert "; in the other one, no answer makes a class certain; " in none.words


def test_what_was_not_checked_is_not_said():
    (claim,) = structure_claims(pd.DataFrame(checked("tree", 12, 0.0, None)))
    assert claim.words == (
        "Structure, checked without any attack: in the one model, every training record gets the same answer as at "
        "least 9 others; no answer makes a class certain."
    )
    assert "took more numbers" not in claim.words
    assert structure_claims(pd.DataFrame(checked("tree", 12, 0.0, None))[:0]) == []


def test_models_that_store_training_records_are_counted_and_the_worst_is_named():
    rows = [
        *checked("tree", 3, 0.4, 12),
        row("tree", "stored_records", "", 0),
        row("neighbors", "stored_records", "", 800),
    ]
    (claim,) = structure_claims(pd.DataFrame(rows))
    assert claim.words.endswith(
        "; 1 of 2 models store training records as they are, up to 800 (neighbors, defense none), so whoever has such "
        "a model has them."
    )
    assert [number.value for number in claim.numbers] == [0.4, 1, 2, 800]
    (alone,) = structure_claims(pd.DataFrame([row("neighbors", "stored_records", "", 800)]))
    assert alone.words == (
        "Structure, checked without any attack: the model stores 800 of its training records as they are, so whoever "
        "has the model has these records."
    )
    (none,) = structure_claims(pd.DataFrame([*checked("tree", 3, 0.4, 12), row("tree", "stored_records", "", 0)]))
    assert "stores" not in none.words
