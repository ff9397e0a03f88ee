"""The answer is computed, and says how sure it is."""

from math import isnan, tanh

import numpy as np
import pandas as pd
import pytest

from dp_leakage.report import answers, most_exposed
from dp_leakage.report.answer import best_of, guaranteed
from dp_leakage.report.page import sentences


def cell(
    model: str, accountant: str, epsilon: float, loss: tuple, leak: tuple, spent: float | None = None
) -> list[dict]:
    """Rows of one cell: loss and leak as (value, low, high)."""
    columns = {"study": "s", "dataset": "d", "model": model, "epochs": 10, "n_members": 100, "n_nonmembers": 100}
    columns |= {"accountant": accountant, "noise_multiplier": 1.0, "repeat": "all"}
    if accountant:
        columns |= {"mechanism": "gaussian", "defense": f"gaussian-{accountant}-eps={epsilon:g}", "unit": "example"}
        columns |= {"block": "whole", "epsilon": epsilon, "delta": 1e-5}
    else:
        columns |= {"mechanism": "none", "defense": "none", "unit": "", "block": "", "epsilon": np.nan, "delta": np.nan}
    numbers = [
        ("accuracy_loss", "", loss),
        ("test_accuracy", "", tuple(0.8 * (1 - x) for x in (loss[0], loss[2], loss[1]))),
    ]
    numbers += [
        ("membership_advantage", "attack=yeom", leak),
        ("membership_advantage", "attack=lira", tuple(x / 2 for x in leak)),
    ]
    if spent is not None:
        numbers.append(("epsilon_spent", "accountant=gdp;neighbours=zero_out;valid=true", (spent,) * 3))
    return [
        columns | dict(zip(("metric", "setting", "value", "low", "high"), (m, s, *v), strict=True))
        for m, s, v in numbers
    ]


@pytest.fixture
def frame() -> pd.DataFrame:
    undefended = (0.0, 0.0, 0.0), (0.4, 0.35, 0.45)
    return pd.DataFrame(
        [
            *cell("a", "", 0, *undefended),
            *cell("a", "rdp", 1, (0.3, 0.28, 0.32), (0.0, -0.05, 0.05), 0.9),
            *cell("a", "rdp", 10, (0.09, 0.07, 0.11), (0.1, 0.05, 0.15), 9.0),
            *cell("a", "rdp", 100, (0.04, 0.02, 0.06), (0.2, 0.15, 0.25), 90.0),
            # Claims ten times as much and spends less: the budget that counts is the spent one.
            *cell("a", "zcdp", 1000, (0.05, 0.03, 0.07), (0.12, 0.07, 0.17), 40.0),
            *cell("b", "", 0, *undefended),
            *cell("b", "rdp", 10, (0.2, 0.18, 0.22), (0.1, 0.05, 0.15), 9.0),
            *cell("b", "rdp", 100, (0.15, 0.13, 0.17), (0.2, 0.15, 0.25), 90.0),
        ]
    )


def test_it_names_the_smallest_spent_budget_whose_whole_interval_is_accurate_enough(frame: pd.DataFrame) -> None:
    answer = answers(frame, 0.1)[0]
    assert (answer.verdict, answer.defense, answer.claimed, answer.spent) == ("met", "gaussian-zcdp-eps=1000", 1000, 40)
    assert tuple(answer.loss) == (0.05, 0.03, 0.07)
    assert (answer.attack, tuple(answer.leak), tuple(answer.undefended_leak)) == (
        "yeom",
        (0.12, 0.07, 0.17),
        (0.4, 0.35, 0.45),
    )
    first, second = sentences(answer, 0.1)
    assert first == (
        "On d, the smallest budget that keeps the accuracy loss below 10 % is ε = 1000 (zCDP, a): it costs 5.0 % "
        "[3.0, 7.0] of the undefended accuracy, and its training really spent ε = 40 (zero-out neighbours)."
    )
    assert second == (
        "There the strongest attack tried, Yeom membership, has an advantage of 0.120 [0.070, 0.170] over guessing, "
        "more than chance explains, against 0.400 [0.350, 0.450] without any defence."
    )


def test_the_strongest_attack_is_the_one_that_finds_most_there_not_in_the_undefended_model(frame: pd.DataFrame) -> None:
    private = frame["defense"] == "gaussian-zcdp-eps=1000"
    lira = private & (frame["setting"] == "attack=lira")
    frame.loc[lira, ["value", "low", "high"]] = (0.3, 0.2, 0.4)
    answer = answers(frame, 0.1)[0]
    assert (answer.attack, tuple(answer.leak)) == ("lira", (0.3, 0.2, 0.4))
    assert (answer.undefended_attack, tuple(answer.undefended_leak)) == ("yeom", (0.4, 0.35, 0.45))
    assert sentences(answer, 0.1)[1] == (
        "There the strongest attack tried, LiRA, has an advantage of 0.300 [0.200, 0.400] over guessing, "
        "more than chance explains, against 0.400 [0.350, 0.450] of Yeom membership without any defence."
    )


def test_it_says_so_where_only_the_estimate_is_accurate_enough(frame: pd.DataFrame) -> None:
    few = frame[~frame["defense"].isin(["gaussian-zcdp-eps=1000", "gaussian-rdp-eps=100"])]
    answer = answers(few, 0.1)[0]
    assert (answer.verdict, answer.claimed) == ("barely", 10)
    assert "so chance decides" in sentences(answer, 0.1)[0]


def test_it_says_so_where_no_budget_is_accurate_enough(frame: pd.DataFrame) -> None:
    answer = answers(frame, 0.1)[1]
    assert (answer.model, answer.verdict, answer.claimed) == ("b", "missed", 100)
    assert "no private model keeps the accuracy loss below 10 %" in sentences(answer, 0.1)[0]


def test_a_leak_whose_interval_holds_zero_may_be_chance(frame: pd.DataFrame) -> None:
    answer = answers(frame, 0.5)[0]
    assert answer.claimed == 1
    assert "which chance alone could explain" in sentences(answer, 0.5)[1]


def test_the_lead_goes_to_a_model_that_is_accurate_enough(frame: pd.DataFrame) -> None:
    assert [answer.model for answer in best_of(answers(frame, 0.1))] == ["a"]
    two = pd.concat([frame, frame.assign(dataset="e")])
    assert [answer.dataset for answer in best_of(answers(two, 0.1))] == ["d", "e"]


def test_it_works_without_spent_budgets_attacks_or_private_cells(frame: pd.DataFrame) -> None:
    plain = frame[frame["metric"].isin(["accuracy_loss"])]
    answer = answers(plain, 0.1)[0]
    assert (answer.claimed, answer.attack, answer.leak) == (100, "", None)
    assert isnan(answer.spent)
    assert sentences(answer, 0.1)[1] == "No membership attack was run on it."
    assert answers(frame[frame["accountant"] == ""], 0.1) == []


def test_the_guarantee_counts_two_steps_where_neighbours_differ_by_a_presence() -> None:
    unknown = np.nan
    assert guaranteed(0.2, "add_remove", unknown, 0.0) == pytest.approx(tanh(0.2))
    assert guaranteed(0.2, "zero_out", unknown, 0.0) == pytest.approx(tanh(0.2))
    assert guaranteed(0.2, "replace_one", 0.2, 0.0) == pytest.approx(tanh(0.1))
    assert guaranteed(0.2, "add_remove", 0.3, 0.0) == pytest.approx(tanh(0.15))  # what is known directly may be less
    assert guaranteed(np.inf, "add_remove", np.inf, 1e-5) == 1
    assert isnan(guaranteed(unknown, unknown, unknown, 1e-5))


def test_the_most_exposed_records_are_those_few_outsiders_surpass() -> None:
    rng = np.random.default_rng(3)
    runs = []
    for repeat in range(4):
        score = rng.standard_normal(60).round(1)  # ties
        runs.append(
            pd.DataFrame(
                {
                    "repeat": repeat,
                    "record": range(60),
                    "member": np.arange(60) < 30,
                    "score": score,
                    "flagged": score > 1,
                }
            )
        )
    frame = pd.concat(runs).sample(frac=1, random_state=0)
    found = most_exposed(frame, n=30).set_index("record")
    for record in range(30):
        shares = [
            (run.loc[~run["member"], "score"] >= run.loc[run["record"] == record, "score"].item()).mean()
            for _, run in frame.groupby("repeat")
        ]
        assert found.loc[record, "outsiders_above"] == pytest.approx(np.mean(shares))
        assert found.loc[record, "flagged"] == frame.loc[frame["record"] == record, "flagged"].sum()
    assert found["outsiders_above"].is_monotonic_increasing
    assert set(found["runs"]) == {4}
    assert len(most_exposed(frame, n=5)) == 5
