"""The answer is computed, and says how sure it is."""

from math import isfinite

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from dp_leakage.metrics.intervals import Estimate
from dp_leakage.report import answers, most_exposed, singled_out, tables
from dp_leakage.report.answer import best_of
from dp_leakage.report.leak import Leak
from dp_leakage.report.proven import Proven, proven_words, risk_words
from dp_leakage.report.tuned import UNTUNED
from dp_leakage.report.words import sentences


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
        ("reached_advantage", "attack=yeom", leak),
        ("reached_advantage", "attack=lira", tuple(x / 2 for x in leak)),
        ("reached_advantage", "attack=strongest;of=yeom", leak),
        # The attack's own decision, at a threshold of its own, is not what leaks.
        ("membership_advantage", "attack=yeom", (0.99, 0.98, 1.0)),
        *(("membership_auc", f"attack={attack}", (0.6, 0.5, 0.7)) for attack in ("yeom", "lira")),
        *(
            ("reached_tpr", f"attack={attack};fpr=0.01", (0.02, 0.01, 0.03))
            for attack in ("yeom", "lira", "strongest;of=yeom")
        ),
        *(
            ("reached_tpr", f"attack={attack};fpr=0.001", (np.nan, 0, 1))
            for attack in ("yeom", "lira", "strongest;of=yeom")
        ),
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
    assert (answer.leak.attack, tuple(answer.leak.advantage)) == ("yeom", (0.12, 0.07, 0.17))
    assert tuple(answer.undefended_leak.advantage) == (0.4, 0.35, 0.45)
    first, second, third, *_ = sentences(answer, 0.1)
    assert first == (
        "On d, the smallest budget tried that keeps the accuracy loss below 10 % is ε = 1000 (DP-SGD, zCDP; a): it "
        "costs 5.0 % [3.0, 7.0] of the undefended accuracy, and its training really spent ε = 40 (zero-out neighbours)."
    )
    assert second == (
        "There an attacker reaches an advantage of 0.120 [0.070, 0.170] over guessing, more than chance explains, and "
        "names 2.0 % [1.0, 3.0] of the members at 1 % false alarms (Yeom membership, the strongest of 2 attacks, AUC "
        "0.600). Without any defence: an advantage of 0.400 [0.350, 0.450], names 2.0 % [1.0, 3.0] of the members at "
        "1 % false alarms (Yeom membership, the strongest of 2 attacks, AUC 0.600)."
    )
    assert third == "Nothing is proven there of attacks that were not tried."


def test_the_attack_is_the_strongest_of_the_cell_not_of_the_undefended_model(frame: pd.DataFrame) -> None:
    private = (frame["defense"] == "gaussian-zcdp-eps=1000") & frame["setting"].eq("attack=strongest;of=yeom")
    frame.loc[private, ["value", "low", "high"]] = (0.3, 0.2, 0.4)
    frame.loc[private, "setting"] = "attack=strongest;of=lira"
    answer = answers(frame, 0.1)[0]
    assert (answer.leak.attack, tuple(answer.leak.advantage)) == ("lira", (0.3, 0.2, 0.4))
    assert (answer.undefended_leak.attack, tuple(answer.undefended_leak.advantage)) == ("yeom", (0.4, 0.35, 0.45))
    told = sentences(answer, 0.1)[1]
    assert "0.300 [0.200, 0.400] over guessing" in told
    assert "(LiRA, the strongest of 2 attacks" in told


def test_it_says_so_where_only_the_estimate_is_accurate_enough(frame: pd.DataFrame) -> None:
    few = frame[~frame["defense"].isin(["gaussian-zcdp-eps=1000", "gaussian-rdp-eps=100"])]
    answer = answers(few, 0.1)[0]
    assert (answer.verdict, answer.claimed) == ("open", 10)
    assert sentences(answer, 0.1)[0] == (
        "On d, no budget tried surely keeps the accuracy loss below 10 % with these training settings. The smallest "
        "that may is ε = 10 (DP-SGD, RDP; a): it costs 9.0 % [7.0, 11.0] of the undefended accuracy, and its training "
        f"really spent ε = 9 (zero-out neighbours); more records or repeats would tell. {UNTUNED}"
    )


def test_no_budget_is_recommended_where_none_is_accurate_enough(frame: pd.DataFrame) -> None:
    answer = answers(frame, 0.1)[1]
    assert (answer.model, answer.verdict, answer.claimed) == ("b", "missed", 100)
    told = sentences(answer, 0.1)[0]
    assert "no budget tried keeps the accuracy loss below 10 % with these training settings, so none is recom" in told
    assert "The most accurate private model, ε = 100 (DP-SGD, RDP; b), costs 15.0 % [13.0, 17.0]" in told
    assert UNTUNED in told


def test_a_model_that_guesses_is_not_accurate_enough_and_its_loss_is_not_told(frame: pd.DataFrame) -> None:
    """Undefended .8, a class that makes up .78 of the records: the private model's .76 is no better than guessing."""
    answer = answers(frame, 0.1, {"d": 0.78})[0]
    assert answer.verdict == "missed"
    told = sentences(answer, 0.1)[0]
    assert "no better than guessing (78.0 % for always naming the most frequent class)" in told
    assert "of the undefended accuracy" not in told
    assert "none is recommended" in told


def test_an_undefended_model_that_guesses_has_nothing_to_lose_and_no_budget_is_recommended(frame: pd.DataFrame) -> None:
    answer = answers(frame, 0.1, {"d": 0.8})[0]
    assert answer.verdict == "guessing"
    told = " ".join(sentences(answer, 0.1))
    assert "no better than guessing" in told
    assert "no budget is recommended" in told
    assert "ε =" not in told
    assert "loss" not in told


def test_a_leak_whose_interval_holds_zero_may_be_chance(frame: pd.DataFrame) -> None:
    answer = answers(frame, 0.5)[0]
    assert answer.claimed == 1
    assert "which chance alone could explain" in sentences(answer, 0.5)[1]


def test_defences_that_prove_nothing_are_told_with_what_leaks_under_them(frame: pd.DataFrame) -> None:
    l2 = frame[(frame["model"] == "a") & (frame["defense"] == "none")].assign(mechanism="l2", defense="l2")
    answer = answers(pd.concat([frame, l2]), 0.1)[0]
    assert answer.defense == "gaussian-zcdp-eps=1000"  # and never ℓ2
    assert sentences(answer, 0.1)[-1] == (
        "Defences without differential privacy promise nothing. The advantage that an attacker reaches under them: ℓ2 "
        "penalty 0.400 [0.350, 0.450]."
    )


def test_the_lead_goes_to_a_model_that_is_accurate_enough(frame: pd.DataFrame) -> None:
    assert [answer.model for answer in best_of(answers(frame, 0.1))] == ["a"]
    two = pd.concat([frame, frame.assign(dataset="e")])
    assert [answer.dataset for answer in best_of(answers(two, 0.1))] == ["d", "e"]


def test_of_models_that_are_accurate_enough_at_one_budget_the_least_leaky_leads() -> None:
    undefended = (0.0, 0.0, 0.0), (0.4, 0.35, 0.45)
    leaky = cell("a", "rdp", 10, (0.03, 0.01, 0.05), (0.17, 0.15, 0.2), 9.2)
    tight = cell("b", "rdp", 10, (0.06, 0.03, 0.09), (0.11, 0.09, 0.13), 9.2)
    frame = pd.DataFrame([*cell("a", "", 0, *undefended), *leaky, *cell("b", "", 0, *undefended), *tight])
    (lead,) = best_of(answers(frame, 0.1))
    assert (lead.verdict, lead.model) == ("met", "b")


@pytest.mark.parametrize(("leak", "lead"), [((0.112, 0.095, 0.13), "a"), ((0.17, 0.15, 0.2), "b")])
def test_of_models_that_may_as_well_leak_the_same_the_surely_more_accurate_one_leads(leak: tuple, lead: str) -> None:
    """An advantage of .102 led before one of .102 with four percent more accuracy, by its fourth digit."""
    undefended = (0.0, 0.0, 0.0), (0.4, 0.35, 0.45)
    accurate = cell("a", "rdp", 10, (0.01, 0.00, 0.02), leak, 9.2)
    tight = cell("b", "rdp", 10, (0.06, 0.03, 0.09), (0.11, 0.09, 0.13), 9.2)
    frame = pd.DataFrame([*cell("a", "", 0, *undefended), *accurate, *cell("b", "", 0, *undefended), *tight])
    assert [answer.model for answer in best_of(answers(frame, 0.1))] == [lead]


def test_it_works_without_spent_budgets_attacks_or_private_cells(frame: pd.DataFrame) -> None:
    plain = frame[frame["metric"].isin(["accuracy_loss"])]
    assert answers(plain, 0.1) == []  # no ε is known
    known = frame[frame["metric"].isin(["accuracy_loss", "epsilon_spent"])]
    answer = answers(known, 0.1)[0]
    assert answer.leak is None
    assert sentences(answer, 0.1)[1] == "No membership attack was run on it."
    assert answers(frame[frame["accountant"] == ""], 0.1) == []


def test_a_cell_whose_epsilon_is_not_known_is_never_recommended(frame: pd.DataFrame) -> None:
    chosen = answers(frame, 0.1)[0]
    lost = (frame["metric"] == "epsilon_spent") & (frame["defense"] == chosen.defense)
    unknown = frame.assign(value=frame["value"].mask(lost))
    assert all(isfinite(answer.spent) and answer.defense != chosen.defense for answer in answers(unknown, 0.1)[:1])
    assert answers(frame.assign(value=frame["value"].mask(frame["metric"] == "epsilon_spent")), 0.1) == []


def proven(advantage: float, **more: object) -> Proven:
    return Proven(advantage, **{"tprs": {0.01: 0.12, 0.001: 0.021}, "mu": 0.5, "exact": True, "neighbours": "x"} | more)


def test_what_is_proven_is_said_rounded_up() -> None:
    assert proven_words(proven(0.2112)) == (
        "Proven is that no attack at all reaches an advantage above 0.212 or names more than 12.0 % of the members at "
        "1 % false alarms or 2.1 % of the members at 0.1 % false alarms (μ = 0.50)."
    )
    assert "rules out next to nothing" in proven_words(proven(0.95))
    assert "μ" not in proven_words(proven(0.3, exact=False))
    assert proven_words(None) == "Nothing is proven there of attacks that were not tried."


def test_the_risk_is_said_in_people_by_bayes_rule_measured_and_proven() -> None:
    leak = Leak("yeom", 1, Estimate(0.1, 0.0, 0.2), {0.01: Estimate(0.06, 0.03, 0.09)}, Estimate(0.6, 0.5, 0.7))
    words = risk_words(leak, proven(0.3))
    assert "wrong about one in 100 people who were not in the training data" in words
    # 0.01 · 0.06 against 0.99 · 0.01, of ten: 0.57; proven 0.12 in place of 0.06: 1.08.
    assert "one in a hundred of those asked about was in the training data, 0.6 [0.3, 0.8] (at random 0.1)" in words
    assert "no attack can be right about more than 1.1" in words
    assert "one in ten of those asked about was in the training data, 4.0 [2.5, 5.0] (at random 1)" in words
    assert "half of those asked about were in the training data, 8.6 [7.5, 9.0] (at random 5)" in words
    assert "no attack can" not in risk_words(leak, None)
    assert risk_words(None, None) == ""


def test_the_page_says_that_the_choice_among_cells_is_not_covered_by_epsilon(frame: pd.DataFrame) -> None:
    found = answers(frame, 0.1)[0]
    assert found.tried == 6
    assert "chosen among 6 private cells" in sentences(found, 0.1)[-1]
    assert "which its ε does not cover" in sentences(found, 0.1)[-1]


def test_what_is_proven_of_a_cell_is_read_from_its_metrics(metrics: pd.DataFrame) -> None:
    found = answers(metrics, 0.5)[0]
    mu = 2 * np.sqrt(100) / found.row["noise_multiplier"]
    assert found.proven.mu == pytest.approx(mu)
    assert found.proven.advantage == pytest.approx(2 * norm.cdf(mu / 2) - 1)
    assert found.proven.exact
    assert found.proven.neighbours == "replace_one"


def fixed(score: np.ndarray, member: np.ndarray) -> pd.DataFrame:
    runs = [
        pd.DataFrame({"repeat": r, "record": range(len(one)), "member": member, "score": one, "flagged": one > 1})
        for r, one in enumerate(score)
    ]
    return pd.concat(runs).sample(frac=1, random_state=0)


def test_the_most_exposed_records_are_those_few_outsiders_surpass() -> None:
    rng, member = np.random.default_rng(3), np.arange(600) < 300
    score = rng.standard_normal((4, 600)).round(1) + 2.5 * (np.arange(600) < 30)  # ties
    frame = fixed(score, member)
    found = most_exposed(frame, n=30).set_index("record")
    assert len(found) > 15
    assert (found.index < 30).mean() > 0.9
    for record in found.index:
        shares = [(run[~member] >= run[record]).mean() for run in score]
        assert found.loc[record, "outsiders_above"] == pytest.approx(np.mean(shares))
        assert found.loc[record, "flagged"] == frame.loc[frame["record"] == record, "flagged"].sum()
    assert found["outsiders_above"].is_monotonic_increasing
    assert set(found["runs"]) == {4}
    assert len(most_exposed(frame, n=5)) == 5


@pytest.mark.parametrize("score", [np.zeros((2, 100)), np.random.default_rng(1).normal(size=(2, 100))])
def test_nobody_is_exposed_where_members_are_like_outsiders_or_all_alike(score: np.ndarray) -> None:
    assert most_exposed(fixed(score, np.arange(100) < 60)).empty


def test_members_that_are_equally_exposed_are_counted_and_listed_by_their_numbers() -> None:
    score = np.random.default_rng(0).random((2, 400))
    score[:, 399], score[:, 40], score[:, 45:60] = 4.0, 5.0, 3.0  # 399 is an outsider
    found = most_exposed(fixed(score, np.arange(400) < 60))
    assert found["record"].tolist() == [40, *range(45, 54)]
    assert found["tied"].tolist() == [1, *[15] * 9]
    (table,) = tables.most_exposed(found.assign(dataset="d", model="a", defense="none", attack="yeom"))
    assert "(15 are exactly as exposed as the last one; listed are those with the lowest row numbers)" in table.heading
    (table,) = tables.most_exposed(
        found.head(1).assign(dataset="d", model="a", defense="none", attack="yeom", called="cat/7.png", shown="")
    )
    assert "exactly" not in table.heading
    assert table.rows[0][0] == "cat/7.png"


def test_the_exposed_are_told_of_the_undefended_and_the_answers_models_by_the_strongest_attack(
    frame: pd.DataFrame,
) -> None:
    private = (frame["defense"] == "gaussian-zcdp-eps=1000") & frame["setting"].eq("attack=strongest;of=yeom")
    frame.loc[private, "setting"] = "attack=strongest;of=lira"
    assert singled_out(frame, {}) == {
        ("d", "a", "none", "yeom"),
        ("d", "a", "gaussian-zcdp-eps=1000", "lira"),
        ("d", "b", "none", "yeom"),
        ("d", "b", "gaussian-rdp-eps=100", "yeom"),
    }
