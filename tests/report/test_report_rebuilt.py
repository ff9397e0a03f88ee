"""The sentence on images rebuilt from gradients names what recognizes most, beside a guess and what is proven."""

import pandas as pd

from dp_leakage.metrics.intervals import Estimate
from dp_leakage.metrics.rows import completed
from dp_leakage.metrics.simultaneous import simultaneous
from dp_leakage.report.rebuilt import rebuilt_claims
from dp_leakage.report.refuted import refuted_claims

CELL = {
    "dataset": "digits",
    "model": "mlp",
    "defense": "none",
    "accountant": "",
    **dict.fromkeys(("unit", "block", "bound"), ""),
}
PRIVATE = CELL | {"defense": "gaussian-rdp-eps=1", "accountant": "rdp"}


def rows(found: dict[int | None, tuple[float, float, float]], proven: float, cell: dict[str, str]) -> list[dict]:
    """Of batches, or of a step of no stated size, how often a record is recognized."""
    made = []
    for batch, (value, low, high) in found.items():
        own = {**cell, "attack": "dlg", "candidates": 10.0, "weights": "initial", "repeat": "all"}
        own |= {} if batch is None else {"batch": float(batch)}
        made.append({**own, "metric": "recognized", "value": value, "low": low, "high": high})
        made.append({**own, "metric": "recognized_proven", "value": proven})
    return made


def told(*parts: list[dict]) -> list:
    return rebuilt_claims(completed(pd.DataFrame([row for part in parts for row in part])))


def test_the_step_that_tells_most_is_named_beside_a_guess_and_what_is_proven():
    undefended, private = told(
        rows({1: (0.9, 0.8, 0.95), 8: (0.3, 0.2, 0.4)}, 1.0, CELL),
        rows({1: (0.12, 0.05, 0.2), 8: (0.15, 0.06, 0.3)}, 0.3782, PRIVATE),
    )
    held = simultaneous(Estimate(0.9, 0.8, 0.95), 2, (0.0, 1.0))
    assert undefended.words == (
        "Images rebuilt from gradients, undefended models: the image rebuilt from a step tells which of 10 equally "
        f"likely records was in it in 90.0 % [{100 * held.low:.1f}, {100 * held.high:.1f}] of the cases, where a guess "
        "is right in 10 %. That is DLG on MLP that has not trained, defense none, the most of 2 combinations of "
        "attack, step and model, whose intervals hold together."
    )
    assert "a step on 8 records tells" in private.words
    assert private.words.endswith("No attack on such a step is right in more than 37.9 %.")
    assert {number.estimates for number in private.numbers} >= {"recognized", "recognized_proven", "batch"}


def test_each_share_is_held_against_a_guess_among_its_own_candidates():
    """45 % among 100 came after 50 % among 2, which any guess reaches."""
    many = [row | {"candidates": 100.0} for row in rows({1: (0.45, 0.4, 0.5)}, 1.0, CELL)]
    two = [row | {"candidates": 2.0} for row in rows({8: (0.5, 0.45, 0.55)}, 1.0, CELL)]
    (claim,) = told(two, many)
    assert "tells which of 100 equally likely records was in it in 45.0 %" in claim.words
    assert "where a guess is right in 1 %" in claim.words
    assert claim.words.endswith(
        "defense none, the most above a guess of 2 combinations of attack, step and model, whose intervals hold "
        "together."
    )


def test_a_step_whose_size_is_no_list_is_told_too_and_without_any_nothing_is():
    (claim,) = told(rows({None: (0.4, 0.3, 0.5)}, 0.6, PRIVATE))
    assert "the image rebuilt from a step tells" in claim.words
    assert [one.value for one in claim.numbers if one.estimates == "recognized"] == [0.4]
    assert rebuilt_claims(completed(pd.DataFrame(rows({1: (0.1, 0.0, 0.2)}, 1.0, CELL))).iloc[:0]) == []


def test_a_record_that_is_surely_recognized_more_often_than_any_attack_can_refutes_the_claim():
    def refuted(found: tuple[float, float, float]) -> list[str]:
        of_list, of_none = rows({4: found}, 0.3, PRIVATE), rows({None: (0.2, 0.1, 0.3)}, 0.3, PRIVATE)
        metrics = completed(pd.DataFrame([*of_list, *of_none, *rows({4: (0.9, 0.8, 1.0)}, 0.3, CELL)]))
        return [claim.words for claim in refuted_claims(metrics)]

    (words,) = refuted((0.9, 0.85, 0.95))
    held = simultaneous(Estimate(0.9, 0.85, 0.95), 2, (0.0, 1.0)).low
    assert words == (
        "digits · MLP · gaussian-rdp-eps=1: DLG tells which of 10 equally likely records was in a step in at least "
        f"{int(1000 * held) / 10} % of the cases (with 95 % confidence for all 2 numbers at once that are compared "
        "with such a limit); the accounting allows 30.0 %."
    )
    assert refuted((0.4, 0.29, 0.5)) == []
