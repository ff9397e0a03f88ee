"""The answer is computed, and says how sure it is."""

import re
from dataclasses import replace
from math import isfinite

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from dp_leakage.metrics.intervals import Estimate, Z, wilson
from dp_leakage.metrics.people import RightAnswers
from dp_leakage.metrics.rows import NUMBERS, QUALIFIERS
from dp_leakage.metrics.thresholds import PARTS
from dp_leakage.report import Acceptable, Answer, Setting, answers, claims_of, most_exposed, singled_out, tables
from dp_leakage.report.claims import ClaimWriter
from dp_leakage.report.guarantees import Proven, proven_words, risk_words
from dp_leakage.report.leak import Leak
from dp_leakage.report.refuted import refuted_claims
from dp_leakage.report.sentences import UNAWARE
from dp_leakage.report.verdicts import reach_words, verdicts

STRONGEST_IS_YEOM = {"attack": "strongest", "of": "yeom"}


def cell(
    model: str, accountant: str, epsilon: float, loss: tuple, leak: tuple, spent: float | None = None
) -> list[dict]:
    """Rows of one cell: loss and leak as (value, low, high)."""
    columns = {"study": "s", "dataset": "d", "model": model, "epochs": 10, "n_members": 100, "n_nonmembers": 100}
    columns |= {"accountant": accountant, "noise_multiplier": 1.0, "repeat": "all"}
    if accountant:
        columns |= {"mechanism": "gaussian", "defense": f"gaussian-{accountant}-eps={epsilon:g}", "unit": "example"}
        columns |= {"block": "whole", "bound": "clip", "epsilon": epsilon, "delta": 1e-5}
    else:
        columns |= {
            "mechanism": "none",
            "defense": "none",
            "unit": "",
            "block": "",
            "bound": "",
            "epsilon": np.nan,
            "delta": np.nan,
        }
    numbers = [
        ("accuracy_loss", {}, loss),
        ("test_accuracy", {}, tuple(0.8 * (1 - x) for x in (loss[0], loss[2], loss[1]))),
    ]
    numbers += [
        ("reached_advantage", {"attack": "yeom"}, leak),
        ("reached_advantage", {"attack": "lira"}, tuple(x / 2 for x in leak)),
        ("reached_advantage", STRONGEST_IS_YEOM, leak),
        # The attack's own decision, at a threshold of its own, is not what leaks.
        ("membership_advantage", {"attack": "yeom"}, (0.99, 0.98, 1.0)),
        *(("membership_auc", {"attack": attack}, (0.6, 0.5, 0.7)) for attack in ("yeom", "lira")),
        *(
            ("reached_tpr", said | {"fpr": fpr}, found)
            for said in ({"attack": "yeom"}, {"attack": "lira"}, STRONGEST_IS_YEOM)
            for fpr, found in ((0.01, (0.02, 0.01, 0.03)), (0.001, (np.nan, 0, 1)))
        ),
    ]
    error = (leak[2] - leak[1]) / 2 / Z
    parts = dict(zip(PARTS, (0.0, max(error**2, 1e-12), 0.0, 1.0, 1e6), strict=True))
    numbers.append(("threshold_advantage", {"attack": "yeom", "threshold": 0.5} | parts, leak))
    if spent is not None:
        numbers.append(("epsilon_spent", {"accounted_by": "gdp", "neighbors": "zero_out", "valid": True}, (spent,) * 3))
    columns |= {name: qualifier.empty for name, qualifier in QUALIFIERS.items()}
    return [columns | said | dict(zip(("metric", *NUMBERS), (m, *v), strict=True)) for m, said, v in numbers]


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


BEST = (0.0, 0.0, 0.0), (0.4, 0.35, 0.45)  # loss and leak of an undefended model


def decided(frame: pd.DataFrame, **limits: object) -> tuple[Answer, str]:
    """The answer for the only data set, and its deciding sentences with what limits them."""
    (answer,) = answers(frame, Acceptable(**{"advantage": 0.2} | limits))
    claim, *caveat = [claim for claim in claims_of([answer], {}) if claim.kind in ("answer", "caveat")]
    assert claim.verdict == answer.kind
    assert len(re.split(r"\. (?=[A-Zε])", claim.words)) <= 2
    return answer, " ".join([claim.words, *(one.words for one in caveat)])


def of(frame: pd.DataFrame, defense: str, model: str = "a") -> Setting:
    (answer,) = answers(frame)
    return next(one for one in answer.settings if (one.model, one.defense) == (model, defense))


def test_it_recommends_what_keeps_the_accuracy_and_protects_with_both_intervals(frame: pd.DataFrame) -> None:
    answer, told = decided(frame)
    assert [(one.model, one.defense) for one in answer.told] == [("a", "gaussian-zcdp-eps=1000")]
    assert answer.kind == "both"
    assert told == (
        "Use ε = 1000 (DP-SGD, a). With 95 % confidence it meets both limits: it loses 5 % of the accuracy "
        "(limit 10 %), and the strongest attack's advantage is 0.12 (limit 0.2). No proof rules out a stronger attack."
    )


@pytest.mark.parametrize(("limit", "alone"), [(0.5, False), (0.95, True), (None, True)])
def test_a_recommendation_says_where_attacks_alone_decide(limit: float | None, alone: bool) -> None:
    """ε = 1000 was named as if it were a guarantee."""
    rows = cell("a", "rdp", 1, (0.05, 0.04, 0.06), (0.0, -0.01, 0.01), 1.0)
    if limit is not None:
        proved = [("advantage_proven", {}, limit), ("mu", {}, 0.6), ("tpr_proven", {"fpr": 0.01}, 0.1)]
        of_game = {"neighbors": "zero_out", "source": "divergence"}
        rows += [rows[0] | {"metric": m, "value": v, "low": v, "high": v} | of_game | own for m, own, v in proved]
    answer, told = decided(pd.DataFrame([*cell("a", "", 0, *BEST), *rows]))
    assert answer.kind == "both"
    assert ("No proof rules out a stronger attack." in told) is alone


def test_an_epsilon_that_does_not_hold_of_the_training_is_not_the_one_that_is_recommended() -> None:
    """Noise for Poisson batches beside shuffled ones: ε = 1 was recommended where 6.65 was spent."""
    claimed = cell("a", "rdp", 1, (0.05, 0.04, 0.06), (0.0, -0.01, 0.01), 6.65)
    hypothetical = claimed[-1] | {"accounted_by": "rdp", "valid": False, "sampling": "hypothetical_poisson"}
    rows = [*cell("a", "", 0, *BEST), *claimed, hypothetical | {"value": 0.9}]
    answer, told = decided(pd.DataFrame(rows))
    assert told.startswith("Use ε = 6.65 (claimed as 1; DP-SGD, a). With 95 % confidence it meets")
    number = next(one for one in claims_of([answer], {})[0].numbers if one.estimates == "epsilon_spent")
    assert (number.value, number.qualifiers["neighbors"]) == (6.65, "zero_out")


@pytest.mark.parametrize(("spent", "shown"), [(6.6501, "6.66"), (10.0000001, "10"), (1.0049, "1.01")])
def test_the_epsilon_that_was_spent_is_shown_no_smaller_than_it_is(spent: float, shown: str) -> None:
    """To nearest, 1.0049 was shown as 1: a limit that the training exceeds."""
    rows = [*cell("a", "", 0, *BEST), *cell("a", "rdp", 0.5, (0.05, 0.04, 0.06), (0.0, -0.01, 0.01), spent)]
    bound = rows[-1] | {"metric": "epsilon_lower_bound", "value": 0.2999, "low": 0.2999, "neighbors": "zero_out"}
    metrics = pd.DataFrame([*rows, bound])
    (answer,), told = answers(metrics), decided(metrics)[1]
    assert told.startswith(f"Use ε = {shown} (claimed as 0.5; ")
    (tile,) = [claim for claim in claims_of([answer], {}) if claim.kind == "epsilon"]
    assert (tile.figure, tile.numbers[0].shown, tile.numbers[0].value) == (shown, shown, spent)
    (table,) = tables.claimed_and_spent(metrics)
    (line,) = table.rows
    assert line[table.heads.index("target ε")] == "0.5"
    assert line[table.heads.index("accounted ε")] == shown
    assert line[table.heads.index("an audit proves at least")] == "0.299 (zero-out)"


def test_noise_that_is_known_by_its_risk_alone_is_called_by_it() -> None:
    """Two cells of directional noise were both called "VMF, RDP, –", and were recommended as "σ = –"."""
    told = {
        "mechanism": "vmf",
        "accountant": "vmf_rdp",
        "bound": "normalize",
        "epsilon": np.nan,
        "noise_multiplier": np.nan,
    }
    vmf = [
        row | told | {"defense": f"vmf-whole-vmf_rdp-advantage={risk}", "target": f"advantage ≤ {risk}"}
        for risk, loss in ((0.3, 0.05), (0.2, 0.07))
        for row in cell("a", "rdp", 1, (loss, loss - 0.01, loss + 0.01), (0.0, -0.01, 0.01), 3.26)
    ]
    frame = pd.DataFrame([*(row | {"target": ""} for row in cell("a", "", 0, *BEST)), *vmf])
    assert "Use target advantage ≤ 0.3 (VMF, a): it loses" in decided(frame)[1]
    labels = {line[0] for table in tables.settings(answers(frame)) for line in table.rows}
    assert labels >= {"VMF, RDP, advantage ≤ 0.3", "VMF, RDP, advantage ≤ 0.2"}
    assert any("classified correctly at advantage ≤ 0.3" in sentence for sentence in verdicts(frame))


def test_where_only_leaking_models_are_accurate_the_first_sentence_says_so() -> None:
    """A table of many classes: ε = 50 cost next to nothing and leaked .646, and was recommended in bold."""
    leaky = cell("a", "rdp", 50, (-0.01, -0.02, 0.0), (0.646, 0.62, 0.67), 50.0)
    tight = cell("a", "rdp", 1, (0.5, 0.48, 0.52), (0.03, 0.02, 0.04), 1.0)
    answer, told = decided(pd.DataFrame([*cell("a", "", 0, *BEST), *leaky, *tight]))
    assert answer.kind == "neither"
    assert told == (
        "No private setting meets both limits. ε = 50 (DP-SGD, a) is 1 % above the best undefended accuracy but leaks: "
        "the strongest attack's advantage is 0.65 (limit 0.2); ε = 1 (DP-SGD, a) protects, but loses "
        "50 % of the accuracy (limit 10 %)."
    )


def test_accuracy_is_lost_against_the_best_undefended_model_of_the_data_not_the_settings_own() -> None:
    """Softmax regression lost nothing against its own twin, which is a fifth worse than the best model."""
    weak = pd.DataFrame([*cell("a", "", 0, *BEST), *cell("a", "rdp", 10, (0.0, -0.01, 0.01), (0.0, -0.01, 0.01), 9.0)])
    accuracy = weak["metric"] == "test_accuracy"
    weak.loc[accuracy, ["value", "low", "high"]] *= 0.8
    frame = pd.concat([weak, pd.DataFrame(cell("b", "", 0, *BEST))])
    one = of(frame, "gaussian-rdp-eps=10")
    assert one.twin_loss.value == 0
    assert one.loss.value == pytest.approx(0.2)
    assert one.keeps == "no"
    answer, _ = decided(frame)
    assert (answer.best.model, answer.kind) == ("b", "neither")


def test_an_undefended_model_loses_nothing_against_itself() -> None:
    """It lost 0 [−.02, .02]. Against another undefended model, which may be better, its loss has an interval."""
    alone = pd.DataFrame(cell("a", "", 0, (0.0, -0.02, 0.02), BEST[1]))
    one = of(alone, "none")
    assert one.loss == (0, 0, 0)
    other = pd.DataFrame(cell("b", "", 0, (0.01, -0.01, 0.03), BEST[1]))
    one = of(pd.concat([alone, other]), "none")
    assert (one.loss.value, one.loss.low) == (0, 0)
    assert 0 < one.loss.high < 0.05


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ((-0.2, 0.2), "loses no accuracy as measured (limit 10 %)"),
        ((-0.05, -0.02), "is 3.3 % above the best undefended accuracy"),
    ],
)
def test_a_model_is_above_the_undefended_ones_only_if_chance_does_not_explain_it(ends: tuple, said: str) -> None:
    """``loses −3.3 %`` it said, and then that it is above them, of a difference that chance made."""
    better = cell("a", "rdp", 10, (-0.033, *ends), (0.2, 0.1, 0.3), 9.2)
    answer, told = decided(pd.DataFrame([*cell("a", "", 0, *BEST), *better]))
    assert answer.kind == "open"
    assert f"It {said}, and the strongest attack" in told


def test_a_claim_of_another_library_has_no_groups_that_a_plugin_made() -> None:
    """Its unit is not known; the first sentence spoke of groups of a plugin without a name."""
    claimed = cell("a", "rdp", 1, (0.05, 0.04, 0.06), (0.0, -0.01, 0.01), 1.0)
    rows = [*cell("a", "", 0, *BEST), *(row | {"unit": ""} for row in claimed)]
    answer, told = decided(pd.DataFrame(rows))
    assert answer.told[0].private
    assert "No ε here covers" not in told


def test_epsilon_ranks_nothing_where_less_is_proven_for_other_neighbors() -> None:
    """1.35 for add/remove neighbors and an advantage of .261; 2.04 for replace-one ones and .233, which is safer."""
    alike = (0.02, 0.0, 0.04), (0.05, 0.03, 0.07)
    poisson, wor = cell("a", "rdp", 1, *alike, 1.35), cell("a", "zcdp", 2, *alike, 2.04)
    for rows, relation, limit in ((poisson, "add_remove", 0.261), (wor, "replace_one", 0.233)):
        rows[-1] |= {"accounted_by": "rdp", "neighbors": relation}
        said = {"neighbors": relation, "source": "divergence"}
        proved = [("advantage_proven", said, limit), ("mu", said, 0.6), ("tpr_proven", said | {"fpr": 0.01}, 0.1)]
        rows += [rows[0] | {"metric": m, "value": v, "low": v, "high": v} | said for m, said, v in proved]
    answer, _ = decided(pd.DataFrame([*cell("a", "", 0, *BEST), *poisson, *wor]))
    assert answer.told[0].defense == "gaussian-zcdp-eps=2"


def test_a_loss_whose_interval_holds_the_limit_is_undecided_not_too_large(frame: pd.DataFrame) -> None:
    wide = cell("a", "rdp", 10, (0.128, 0.037, 0.213), (0.05, 0.03, 0.07), 9.0)
    frame = pd.DataFrame([*cell("a", "", 0, *BEST), *wide])
    assert of(frame, "gaussian-rdp-eps=10").keeps == "open"
    answer, told = decided(frame)
    assert answer.kind == "open"
    assert told == (
        "These data cannot tell whether a private setting meets both limits. The closest, ε = 10 (DP-SGD, a), "
        "loses 13 % of the accuracy (limit 10 %), and the strongest attack's advantage is 0.05 (limit 0.2). More "
        "repeats or more records would tell."
    )
    leaky = cell("a", "rdp", 10, (0.01, 0.0, 0.02), (0.23, 0.1, 0.36), 9.0)
    _, told = decided(pd.DataFrame([*cell("a", "", 0, *BEST), *leaky]))
    assert "cannot tell" in told
    assert " may " not in told
    assert "the strongest attack's advantage is 0.23 (limit 0.2)" in told


def test_of_undecided_settings_one_that_was_measured_within_the_limits_is_named() -> None:
    """The safest was named: ε = 0.1, which loses 90 %, as its interval was too wide to exclude a loss of 10 %."""
    wide, near = (0.9, 0.05, 0.99), (0.07, 0.02, 0.12)
    rows = [*cell("a", "", 0, *BEST), *cell("a", "rdp", 0.1, wide, (0.0, -0.3, 0.3), 0.1)]
    rows += cell("a", "rdp", 10, near, (0.05, -0.3, 0.3), 9.0)
    answer, told = decided(pd.DataFrame(rows))
    assert answer.kind == "open"
    assert told.startswith("ε = 10 (DP-SGD, a) may meet both limits, but these data cannot confirm it. It loses 7 %")
    only_wide, _ = decided(pd.DataFrame(rows[: -len(cell("a", "rdp", 10, near, near, 9.0))]))
    assert [one.defense for one in only_wide.told] == ["gaussian-rdp-eps=0.1"]


def test_an_undecided_loss_beyond_the_limit_is_told_also_of_a_model_that_may_guess() -> None:
    rows = [*cell("a", "", 0, *BEST), *cell("a", "rdp", 1, (0.3, 0.05, 0.5), (0.0, -0.3, 0.3), 0.9)]
    (answer,) = answers(pd.DataFrame(rows), Acceptable(advantage=0.2), {"d": 0.5})
    first, second = [claim.words for claim in claims_of([answer], {}) if claim.kind in ("answer", "caveat")]
    assert "loses 30 % of the accuracy (limit 10 %)" in first
    assert "ε = 1 (DP-SGD, a) is not shown to beat guessing, which has an accuracy of 50.0 %." in second


def test_an_attack_that_surely_beats_the_proof_breaks_the_claim_and_proves_nothing() -> None:
    proof = {"metric": "advantage_proven", "attack": "", "of": "", "source": "gaussian", "neighbors": "add_remove"}

    def page(low: float) -> tuple[list[str], list[str]]:
        leak = (0.3, low, 0.4)
        rows = [*cell("a", "", 0, *BEST), *cell("a", "rdp", 1, (0.3, 0.28, 0.32), leak, 0.9)]
        limits = [rows[-1] | proof | {"metric": what} | dict.fromkeys(("value", "low", "high"), value)
                  for what, value in (("advantage_proven", 0.09), ("mu", 0.2))]  # fmt: skip
        found = answers(pd.DataFrame([*rows, *limits]))
        (table,) = tables.settings(found)
        told = [claim.words for claim in refuted_claims(pd.DataFrame([*rows, *limits]))]
        return told, next(line for line in table.rows if "ε = 1" in line[0])

    broken, line = page(0.25)
    assert len(broken) == 1
    assert broken[0].startswith("d · a · gaussian-rdp-eps=1: Yeom membership has an advantage of at least 0.2")
    assert broken[0].endswith("0.250 (with 95 % confidence); the accounting allows 0.090.")
    assert (line[3], line[-1]) == ("no (refuted)", "–")
    broken, line = page(0.01)
    assert (broken, line[3]) == ([], "yes (proven)")


def test_an_attack_that_surely_names_more_members_than_is_proven_breaks_the_claim_whatever_its_advantage() -> None:
    """Where few records leak fully, small rates show it and the advantage does not. An end of 3.5 % is above 3.3 %
    alone, and not among eight.
    """
    proof = {"attack": "", "of": "", "source": "gaussian", "neighbors": "add_remove"}

    def broken(found: tuple[float, float, float], settings: int) -> tuple[list[str], list[str]]:
        rows = cell("a", "", 0, *BEST)
        for epsilon in range(1, settings + 1):
            own = cell("a", "rdp", epsilon, (0.05, 0.04, 0.06), (0.05, 0.03, 0.07), 0.9)
            for row in own if epsilon == 1 else []:
                if row["metric"] == "reached_tpr" and row["fpr"] == 0.01:
                    row |= dict(zip(("value", "low", "high"), found, strict=True))
            limits = (("advantage_proven", np.nan, 0.09), ("mu", np.nan, 0.2), ("tpr_proven", 0.01, 0.033))
            rows += own
            rows += [own[-1] | proof | {"metric": what, "fpr": fpr} | dict.fromkeys(("value", "low", "high"), value)
                     for what, fpr, value in limits]  # fmt: skip
        (found,) = answers(pd.DataFrame(rows))
        told = [claim.words for claim in refuted_claims(pd.DataFrame(rows))]
        return told, [one.defense for one in found.settings if one.refuted]

    (said,), cells = broken((0.1, 0.08, 0.12), 1)
    assert cells == ["gaussian-rdp-eps=1"]
    assert said.endswith(
        "identifies at least 8.0 % of the members at 1 % false positives (with 95 % confidence); the accounting allows "
        "3.3 %."
    )
    assert broken((0.05, 0.035, 0.071), 1)[1] == ["gaussian-rdp-eps=1"]
    assert broken((0.05, 0.035, 0.071), 8) == ([], [])
    (said,), _ = broken((0.1, 0.08, 0.12), 8)
    assert "(with 95 % confidence for all 8 numbers at once that are compared with such a limit)" in said


def test_an_epsilon_that_holds_for_other_neighbors_than_those_that_are_attacked_is_named_with_its_own() -> None:
    spent = {"metric": "epsilon_spent", "accounted_by": "gdp", "valid": True, "sampling": "as_trained", "attack": ""}
    proof = {"metric": "advantage_proven", "attack": "", "of": "", "source": "gaussian", "neighbors": "replace_one"}
    rows = cell("a", "rdp", 2, (0.05, 0.04, 0.06), (0.05, 0.03, 0.07))
    both = [rows[-1] | spent | {"neighbors": to} | dict.fromkeys(("value", "low", "high"), value)
            for to, value in (("zero_out", 1.95), ("replace_one", 3.9))]  # fmt: skip
    limits = [rows[-1] | proof | {"metric": what} | dict.fromkeys(("value", "low", "high"), value)
              for what, value in (("advantage_proven", 0.09), ("mu", 0.2))]  # fmt: skip
    _, told = decided(pd.DataFrame([*cell("a", "", 0, *BEST), *rows, *both, *limits]))
    assert told.startswith("Use ε = 2 (zero-out; DP-SGD, a). With 95 % confidence")
    _, told = decided(pd.DataFrame([*cell("a", "", 0, *BEST), *rows, both[0], *limits]))
    assert told.startswith("Use ε = 2 (DP-SGD, a). ")


def test_without_an_undefended_model_nothing_else_is_said_to_decide_the_loss() -> None:
    cells = [cell("a", "rdp", epsilon, (0.05, 0.04, 0.06), (0.0, -0.01, 0.01), 0.9) for epsilon in (1, 2)]
    rows = [row for rows in cells for row in rows if row["metric"] != "accuracy_loss"]
    (found,) = answers(pd.DataFrame(rows))
    told = {claim.kind: claim.words for claim in claims_of([found], {})}
    assert told["answer"].startswith("The cost of privacy is unknown, since this study has no undefended model. ")
    assert "An undefended model would tell" in told["caveat"]


def test_defenses_without_privacy_are_told_also_where_there_is_no_other() -> None:
    dropout = [row | {"defense": "dropout", "mechanism": "dropout"} for row in cell("a", "", 0, *BEST)]
    (found,) = answers(pd.DataFrame([*cell("a", "", 0, *BEST), *dropout]))
    told = {claim.kind: claim.words for claim in claims_of([found], {})}
    assert found.kind == "untried"
    assert "has an advantage of" in told["answer"]
    assert told["unproven"].startswith("Defenses without differential privacy give no guarantee. Measured advantage: ")


@pytest.mark.parametrize(("partition", "clustered"), [("kmeans", True), ("random", False)])
def test_subclasses_that_k_means_found_are_outside_the_answer_that_names_them(partition: str, clustered: bool) -> None:
    named = {"mechanism": "subclass", "unit": "subclass", "defense": "subclass-k_sub=5-rdp-eps=1"}
    named["partition"] = partition
    proof = {"metric": "advantage_proven", "attack": "", "of": "", "source": "gaussian", "neighbors": "add_remove"}
    own = [row | named for row in cell("a", "rdp", 1, (0.01, 0.0, 0.02), (0.01, -0.01, 0.03), 0.9)]
    own = [row | ({"neighbors": "replace_one"} if row["metric"] == "epsilon_spent" else {}) for row in own]
    limits = [own[-1] | proof | {"metric": what, "value": value, "low": value, "high": value}
              for what, value in (("advantage_proven", 0.09), ("mu", 0.2))]  # fmt: skip
    other = cell("a", "rdp", 10, (0.3, 0.28, 0.32), (0.3, 0.28, 0.32), 9.0)
    for rows, told in (([*own, *limits, *other], clustered), (other, False)):
        found = answers(pd.DataFrame([*cell("a", "", 0, *BEST), *rows]))
        claims = claims_of(found, {})
        words = " ".join(claim.words for claim in claims if claim.kind == "caveat")
        assert ("No ε or proof here covers the k-means subclasses" in words) is told
        tiles = [claim.words for claim in claims if claim.label == "No attack can exceed"]
        known = "given the k-means subclasses, fitted on each model's training records"
        assert any(f"proven for any attack {known}" in words for words in tiles) is told
        limits_said = [claim.words for claim in claims if claim.kind == "limits"]
        assert any(words.startswith(f"G{known[1:]}, no attack can have an advantage") for words in limits_said) is told
        risks = [claim.words for claim in claims if claim.kind == "accusation"]
        assert not any("no attack exceeds" in words for words in risks)  # no rate is proven here


def test_the_choice_among_many_settings_is_paid_for_except_where_they_surely_fail() -> None:
    """The same setting surely keeps the accuracy alone, and not as the luckiest of forty near the limits."""
    lucky = cell("a", "rdp", 10, (0.08, 0.065, 0.095), (0.05, 0.03, 0.07), 9.0)

    def with_others(loss: tuple) -> Answer:
        others = [row for k in range(40) for row in cell("a", "rdp", 100 + k, loss, (0.0, 0, 0.1), 9.0)]
        return decided(pd.DataFrame([*cell("a", "", 0, *BEST), *lucky, *others]))[0]

    far, near = with_others((0.3, 0.28, 0.32)), with_others((0.11, 0.09, 0.13))
    assert (far.kind, far.sharers, near.kind, near.sharers) == ("both", 1, "open", 41)
    assert (far.told[0].defense, near.told[0].defense) == ("gaussian-rdp-eps=10",) * 2


def test_guessing_is_compared_with_a_model_record_by_record() -> None:
    """The model is right wherever naming one class is, and on 8 of 225 records more."""
    rows = [*cell("a", "", 0, *BEST), *cell("a", "rdp", 1, (0.02, 0.01, 0.03), (0.0, -0.02, 0.02), 1.0)]
    frame = pd.DataFrame(rows)
    accuracy = frame["metric"] == "test_accuracy"
    frame.loc[accuracy, list(NUMBERS)] = tuple(wilson(150 / 225, 225))
    right = np.arange(225) < 150
    constant = RightAnswers.of((right & (np.arange(225) >= 8))[None])
    tested = {("d", "a", name): RightAnswers.of(right[None]) for name in ("none", "gaussian-rdp-eps=1")}
    share = float(constant.accuracies[0])
    assert wilson(150 / 225, 225).low < share < 150 / 225

    def of_both(**given: object) -> Answer:
        return answers(frame, None, {"d": share}, tested=tested, **given)[0]

    assert of_both().kind == "guessing"
    (private,) = [one for one in of_both(constant={"d": constant}).settings if one.private]
    assert (of_both(constant={"d": constant}).kind, private.beats) == ("both", "yes")
    same = answers(frame, None, {"d": 150 / 225}, tested=tested, constant={"d": tested["d", "a", "none"]})[0]
    assert same.kind == "guessing"
    assert {one.beats for one in same.settings} == {"open"}


def test_a_setting_that_a_proof_protects_is_not_passed_over_for_what_was_measured() -> None:
    """A model that is hardly better than guessing was named, since its attack measured .05 and not .106."""
    proof = {"metric": "advantage_proven", "attack": "", "of": "", "source": "gaussian", "neighbors": "add_remove"}

    def proven(model: str, loss: tuple, leak: tuple) -> list[dict]:
        rows = cell(model, "rdp", 1, loss, leak, 0.9)
        limits = [rows[-1] | proof | {"metric": what} | dict.fromkeys(NUMBERS, value)
                  for what, value in (("advantage_proven", 0.097), ("mu", 0.25))]  # fmt: skip
        return [*rows, *limits]

    useless = proven("a", (0.198, 0.05, 0.3), (0.049, -0.01, 0.06))
    good = proven("b", (0.071, -0.05, 0.18), (0.106, 0.065, 0.15))
    rows = [*cell("a", "", 0, *BEST), *cell("b", "", 0, *BEST), *useless, *good]
    answer, told = decided(pd.DataFrame(rows), advantage=0.1)
    assert [one.model for one in answer.told] == ["b"]
    assert told.endswith("More repeats or more records would tell.")


def test_of_settings_whose_proof_is_the_same_the_most_accurate_is_named() -> None:
    proof = {"metric": "advantage_proven", "attack": "", "of": "", "source": "gaussian", "neighbors": "add_remove"}

    def proved(epsilon: float, loss: float, limit: float) -> list[dict]:
        rows = cell("a", "rdp", epsilon, (loss, loss - 0.01, loss + 0.01), (0.01, 0.0, 0.02), epsilon)
        limits = [rows[-1] | proof | {"metric": what} | dict.fromkeys(NUMBERS, value)
                  for what, value in (("advantage_proven", limit), ("mu", 0.25))]  # fmt: skip
        return [*rows, *limits]

    best, alike, worse = cell("a", "", 0, *BEST), proved(1, 0.05, 0.09) + proved(2, 0.03, 0.09), proved(3, 0.01, 0.1)
    for rows in ([*best, *alike], [*best, *alike, *worse]):
        told = decided(pd.DataFrame(rows))[1]
        assert told.startswith("With 95 % confidence every private setting tried meets both limits. Use ε = 2 (DP-SGD")
        assert told.endswith("no attack can have an advantage above 0.09 (limit 0.2).")


def test_each_number_is_credited_to_its_own_attack() -> None:
    """The AUC is that of the attack with the best advantage; who is named at a small rate, that of another."""
    rates = {0.01: Estimate(0.12, 0.1, 0.14), 0.001: Estimate(0.02, 0.01, 0.03)}
    leak = Leak("yeom", 2, Estimate(0.4, 0.3, 0.5), rates, Estimate(0.6, 0.5, 0.7))
    one = {0.01: rates[0.01]}
    own = "an advantage of 0.400 [0.300, 0.500] (Yeom membership, the strongest of 2 attacks, AUC 0.600)"
    assert reach_words(replace(leak, tprs=one)) == (
        f"{own}, and the attack that is strongest at 1 % FPR identifies 12.0 % [10.0, 14.0] of the members"
    )
    assert reach_words(leak) == (
        f"{own}, and the attack that is strongest at each rate identifies 12.0 % [10.0, 14.0] of the members at 1 % "
        "FPR and 2.0 % [1.0, 3.0] at 0.1 % FPR"
    )
    assert reach_words(replace(leak, tprs={})) == own
    assert reach_words(replace(leak, tried=1, tprs=one)) == (
        "an advantage of 0.400 [0.300, 0.500] (Yeom membership, AUC 0.600), and identifies 12.0 % [10.0, 14.0] of the "
        "members at 1 % FPR"
    )


def test_the_auc_in_the_details_names_its_attack(frame: pd.DataFrame) -> None:
    told = [claim.words for claim in claims_of([decided(frame)[0]], {}) if claim.kind == "rates"]
    assert told
    assert all("The AUC of Yeom membership is 0.600 [0.500, 0.700]." in words for words in told)


def test_a_proof_protects_where_one_is_asked_for_and_a_measurement_does_not(frame: pd.DataFrame) -> None:
    answer, told = decided(frame, risk="proven")
    assert answer.kind == "neither"
    assert told.startswith("No private setting is proven to protect. ")


def test_a_setting_that_is_not_proven_to_protect_is_not_said_to_leak() -> None:
    """An advantage of .01 [−.02, .03] was told as a leak, where a proof was asked for and there is none."""
    little = cell("a", "rdp", 10, (0.05, 0.04, 0.06), (0.01, -0.02, 0.03), 9.0)
    much = cell("a", "rdp", 10, (0.05, 0.04, 0.06), (0.5, 0.48, 0.52), 9.0)
    _, told = decided(pd.DataFrame([*cell("a", "", 0, *BEST), *little]), risk="proven")
    assert told.startswith("No private setting is proven to protect. ε = 10 (DP-SGD, a) loses 5 %")
    _, told = decided(pd.DataFrame([*cell("a", "", 0, *BEST), *much]), risk="proven")
    assert told.startswith("No private setting protects. ε = 10 (DP-SGD, a) loses 5 %")


def protecting(leak: tuple | None, limit: float | None, refuted: bool) -> pd.DataFrame:
    """An undefended model and a private one that keeps the accuracy, with what attacks measure and what is proven."""
    proof = {"metric": "advantage_proven", "attack": "", "of": "", "source": "gaussian", "neighbors": "add_remove"}
    rows = cell("a", "rdp", 10, (0.05, 0.04, 0.06), leak or (0.0, 0.0, 0.0), 9.0)
    if leak is None:
        rows = [row for row in rows if not row["metric"].startswith(("reached", "membership", "threshold"))]
    first = rows[0]
    if limit is not None:
        limits = ("advantage_proven", limit), ("mu", 1.0)
        rows += [first | proof | {"metric": m} | dict.fromkeys(("value", "low", "high"), v) for m, v in limits]
    if refuted:
        rows.append(first | {"metric": "epsilon_lower_bound", "value": 1e6})
    return pd.DataFrame([*cell("a", "", 0, *BEST), *rows])


MEASURED = {"none": None, "within": (0.01, -0.02, 0.03), "open": (0.2, 0.1, 0.3), "above": (0.5, 0.48, 0.52)}
SAYS = {  # of the only private setting: what the table says, and the sentences that decide
    "yes (attacks tried)": ["Use ε = 10", "the strongest attack's advantage is 0.01 (limit 0.2)"],
    "yes (proven)": ["Use ε = 10", "no attack can have an advantage above 0.15 (limit 0.2)"],
    "undecided": ["these data cannot "],
    "not proven": ["No private setting is proven to protect. ε = 10"],
    "no": ["No private setting protects. ε = 10"],
    "no (refuted)": ["Every privacy claim here is refuted"],
    "claim refuted": ["Every privacy claim here is refuted"],
}


@pytest.mark.parametrize("risk", ["measured", "proven"])
@pytest.mark.parametrize("aware", [True, False])
@pytest.mark.parametrize("measured", MEASURED)
@pytest.mark.parametrize("limit", [None, 0.15, 0.6])
@pytest.mark.parametrize("refuted", [True, False])
def test_the_table_says_of_protection_what_the_answer_says(
    risk: str, aware: bool, measured: str, limit: float | None, refuted: bool
) -> None:
    """Where only a proof counts and there is none, the table said "no", as of a setting that is shown to leak."""
    found = answers(protecting(MEASURED[measured], limit, refuted), Acceptable(advantage=0.2, risk=risk), aware=aware)
    (table,) = tables.settings(found)
    (shown,) = [line[table.heads.index("protects")] for line in table.rows if "ε = 10" in line[0]]
    leaks, within = measured == "above", limit == 0.15
    if refuted or (leaks and within):  # an attack that surely exceeds what is proven refutes it, too
        expected = "no (refuted)" if leaks else "claim refuted"
    elif leaks:
        expected = "no"
    elif within:
        expected = "yes (proven)"
    elif risk == "proven":
        expected = "not proven"
    else:
        expected = "yes (attacks tried)" if measured == "within" and aware else "undecided"
    assert shown == expected
    (decision,) = [claim.words for claim in claims_of(found, {}, aware) if claim.kind == "answer"]
    assert all(words.lower() in decision.lower() for words in SAYS[shown])


def test_an_undecided_setting_is_held_against_a_proof_where_one_is_asked_for() -> None:
    proof = {"metric": "advantage_proven", "attack": "", "of": "", "source": "gaussian", "neighbors": "add_remove"}
    rows = cell("a", "rdp", 1, (0.07, -0.05, 0.18), (0.05, 0.0, 0.1), 0.9)
    rows += [rows[-1] | proof | {"metric": what} | dict.fromkeys(NUMBERS, value)
             for what, value in (("advantage_proven", 0.097), ("mu", 0.25))]  # fmt: skip
    answer, told = decided(pd.DataFrame([*cell("a", "", 0, *BEST), *rows]), risk="proven")
    assert answer.kind == "open"
    assert "no attack can have an advantage above 0.097 (limit 0.2)" in told


def test_little_measured_by_attacks_that_do_not_know_the_defense_is_no_protection(frame: pd.DataFrame) -> None:
    (answer,) = answers(frame, Acceptable(advantage=0.2), aware=False)
    assert answer.kind == "open"
    first, *_ = claims_of([answer], {}, aware=False)
    assert first.words == UNAWARE
    assert first.screen == 1


def test_the_attack_is_the_strongest_of_the_cell_not_of_the_undefended_model(frame: pd.DataFrame) -> None:
    private = (frame["defense"] == "gaussian-zcdp-eps=1000") & frame["of"].eq("yeom") & frame["fpr"].isna()
    frame.loc[private, ["value", "low", "high"]] = (0.3, 0.2, 0.4)
    frame.loc[private, "of"] = "lira"
    one, undefended = of(frame, "gaussian-zcdp-eps=1000"), of(frame, "none")
    assert (one.leak.attack, tuple(one.leak.advantage)) == ("lira", (0.3, 0.2, 0.4))
    assert (undefended.leak.attack, tuple(undefended.leak.advantage)) == ("yeom", (0.4, 0.35, 0.45))


def test_a_model_that_guesses_is_not_accurate_enough_and_its_loss_is_not_told(frame: pd.DataFrame) -> None:
    """Undefended .8, a class that makes up .78 of the records: the private model's .76 is no better than guessing."""
    (answer,) = answers(frame, Acceptable(advantage=0.2), {"d": 0.78})
    assert "yes" not in {one.keeps for one in answer.settings if one.private}
    told = {claim.kind: claim.words for claim in claims_of([answer], {})}
    assert "not shown to beat guessing, which has an accuracy of 78.0 %" in told["caveat"]


def test_an_undefended_model_that_guesses_has_nothing_to_lose_and_no_budget_is_recommended(frame: pd.DataFrame) -> None:
    (answer,) = answers(frame, None, {"d": 0.8})
    assert answer.kind == "guessing"
    told = " ".join(claim.words for claim in claims_of([answer], {}))
    assert "No undefended model is shown to beat guessing, so the cost of privacy cannot be measured" in told
    assert "ε =" not in told
    assert "loss" not in told


def test_defenses_that_prove_nothing_are_told_with_their_accuracy_and_never_recommended(frame: pd.DataFrame) -> None:
    l2 = frame[(frame["model"] == "a") & (frame["defense"] == "none")].assign(mechanism="l2", defense="l2")
    answer, _ = decided(pd.concat([frame, l2]))
    assert answer.told[0].defense == "gaussian-zcdp-eps=1000"
    told = {claim.kind: claim.words for claim in claims_of([answer], {})}
    assert told["unproven"] == (
        "Defenses without differential privacy give no guarantee. Measured advantage: ℓ2 penalty (a) 0.400 "
        "[0.350, 0.450] at an accuracy of 80.0 % [80.0, 80.0]."
    )


def test_settings_without_a_known_epsilon_are_told_apart_by_what_their_noise_was_chosen_for(frame) -> None:
    noisy = [pd.DataFrame(cell("a", "rdp", eps, (0.1, 0.0, 0.2), (0.1, 0.0, 0.2))) for eps in (2, 5)]
    noisy = [one[one["metric"] != "epsilon_spent"] for one in noisy]
    answer, _ = decided(pd.concat([frame, *noisy]))
    (told,) = [claim.words for claim in claims_of([answer], {}) if claim.kind == "unproven"]
    assert "DP-SGD, RDP, ε = 2 (a) 0.100" in told
    assert "DP-SGD, RDP, ε = 5 (a) 0.100" in told


def test_every_data_set_has_its_answer(frame: pd.DataFrame) -> None:
    two = pd.concat([frame, frame.assign(dataset="e")])
    assert [answer.dataset for answer in answers(two)] == ["d", "e"]


@pytest.mark.parametrize(("leak", "lead"), [((0.112, 0.095, 0.13), "a"), ((0.17, 0.15, 0.18), "b")])
def test_of_models_that_may_as_well_leak_the_same_the_more_accurate_one_leads(leak: tuple, lead: str) -> None:
    """An advantage of .102 led before one of .102 with four percent more accuracy, by its fourth digit."""
    accurate = cell("a", "rdp", 10, (0.01, 0.00, 0.02), leak, 9.2)
    tight = cell("b", "rdp", 10, (0.06, 0.05, 0.07), (0.11, 0.09, 0.13), 9.2)
    frame = pd.DataFrame([*cell("a", "", 0, *BEST), *accurate, *cell("b", "", 0, *BEST), *tight])
    answer, _ = decided(frame)
    assert (answer.kind, answer.told[0].model) == ("both", lead)


def test_it_works_without_spent_budgets_attacks_or_private_cells(frame: pd.DataFrame) -> None:
    assert answers(frame[frame["metric"] == "accuracy_loss"]) == []  # no accuracy is known
    answer, told = decided(frame[frame["metric"].isin(["test_accuracy"])])
    assert answer.kind == "untried"  # no ε is known
    assert told.endswith("so none can be recommended. No membership attack was run on a (no defense).")
    answer, told = decided(frame[frame["metric"].isin(["test_accuracy", "epsilon_spent"])])
    assert answer.kind == "open"
    assert "no membership attack was run on it" in told
    answer, told = decided(frame[frame["accountant"] == ""])
    assert told.startswith("No model here has a known ε, so none can be recommended. On a (no defense), the strongest")
    assert told.endswith("has an advantage of 0.4.")


def test_a_cell_whose_epsilon_is_not_known_is_never_recommended(frame: pd.DataFrame) -> None:
    chosen = decided(frame)[0].told[0]
    lost = (frame["metric"] == "epsilon_spent") & (frame["defense"] == chosen.defense)
    answer, _ = decided(frame.assign(value=frame["value"].mask(lost)))
    assert all(isfinite(one.spent) and one.defense != chosen.defense for one in answer.told)


def test_what_no_epsilon_covers_stands_right_below_the_answer(frame: pd.DataFrame) -> None:
    (answer,) = answers(frame)
    claims = claims_of([answer], {"d": ("the scaling of features, fitted on 900 records", "the PCA")})
    assert [claim.kind for claim in claims[:3]] == ["trade", "answer", "caveat"]
    assert claims[2].words.endswith("No ε here covers the scaling of features, fitted on 900 records or the PCA.")


def test_the_front_holds_what_no_other_setting_beats(frame: pd.DataFrame) -> None:
    (answer,) = answers(frame)
    front = {(one.model, one.defense) for one in answer.settings if one.front}
    points = {(one.model, one.defense): (one.accuracy.value, -one.advantage) for one in answer.settings}
    for key, own in points.items():
        beaten = any(all(np.greater_equal(other, own)) and other != own for other in points.values())
        assert (key in front) == (not beaten)


def proven(advantage: float, **more: object) -> Proven:
    return Proven(advantage, **{"tprs": {0.01: 0.12, 0.001: 0.021}, "mu": 0.5, "exact": True, "neighbors": "x"} | more)


def test_what_is_proven_is_said_rounded_up() -> None:
    assert proven_words(proven(0.2112), ClaimWriter()) == (
        "No attack can have an advantage above 0.212 (proven) or identify more than 12.0 % of the members at 1 % false "
        "positives or 2.1 % of the members at 0.1 % false positives (μ = 0.50)."
    )
    assert "rules out next to nothing" in proven_words(proven(0.95), ClaimWriter())
    assert "μ" not in proven_words(proven(0.3, exact=False), ClaimWriter())
    assert proven_words(None, ClaimWriter()) == "Nothing is proven of attacks that were not tried."


def test_the_risk_is_said_in_people_by_bayes_rule_measured_and_proven() -> None:
    leak = Leak("yeom", 1, Estimate(0.1, 0.0, 0.2), {0.01: Estimate(0.06, 0.03, 0.09)}, Estimate(0.6, 0.5, 0.7))
    words = risk_words(leak, proven(0.3), ClaimWriter())
    assert "wrongly accuses one in 100 people who were not in the training data" in words
    # 0.01 · 0.06 against 0.99 · 0.01, of ten: 0.57; proven 0.12 in place of 0.06: 1.08.
    assert "one in a hundred of the people tested was in the training data, 0.6 [0.3, 0.8] (at random 0.1)" in words
    assert "no attack exceeds 1.1" in words
    assert "one in ten of the people tested was in the training data, 4.0 [2.5, 5.0] (at random 1)" in words
    assert "half of the people tested were in the training data, 8.6 [7.5, 9.0] (at random 5)" in words
    assert "no attack exceeds" not in risk_words(leak, None, ClaimWriter())
    assert risk_words(None, None, ClaimWriter()) == ""


def test_the_page_says_that_the_choice_among_cells_is_not_covered_by_epsilon(frame: pd.DataFrame) -> None:
    answer, _ = decided(frame)
    assert answer.tried == 6
    told = {claim.kind: claim.words for claim in claims_of([answer], {})}
    assert (
        "It was chosen among 6 private settings by looking at the data 6 times; its ε does not cover that"
        in told["choice"]
    )
    assert "3 of 6 settings surely fail and were set aside. Each test may err with 1.7 %" in told["choice"]


@pytest.mark.parametrize(
    ("limits", "kind", "said"),
    [
        ({"advantage": 0.01}, "neither", "The settings named above were picked among 6 private settings by looking"),
        ({"risk": "proven"}, "neither", "The setting named above was picked among 6 private settings by looking"),
        ({"advantage": 0.1}, "open", "The setting named above was picked among 6 private settings by looking"),
    ],
)
def test_where_no_setting_is_recommended_none_is_said_to_be_chosen(
    frame: pd.DataFrame, limits: dict[str, float], kind: str, said: str
) -> None:
    answer, _ = decided(frame, **limits)
    (choice,) = [claim.words for claim in claims_of([answer], {}) if claim.kind == "choice"]
    assert answer.kind == kind
    assert said in choice
    assert "chosen" not in choice


def test_what_is_proven_of_a_cell_is_read_from_its_metrics(metrics: pd.DataFrame) -> None:
    found = next(one for one in answers(metrics)[0].settings if one.private)
    mu = 2 * np.sqrt(100) / found.row["noise_multiplier"]
    assert found.proven.mu == pytest.approx(mu)
    assert found.proven.advantage == pytest.approx(2 * norm.cdf(mu / 2) - 1)
    assert found.proven.exact
    assert found.proven.neighbors == "replace_one"


def fixed(score: np.ndarray, member: np.ndarray) -> pd.DataFrame:
    runs = [
        pd.DataFrame({"repeat": r, "record": range(len(one)), "member": member, "score": one, "flagged": one > 1})
        for r, one in enumerate(score)
    ]
    return pd.concat(runs).sample(frac=1, random_state=0)


def test_the_most_exposed_records_are_those_few_nonmembers_surpass() -> None:
    rng, member = np.random.default_rng(3), np.arange(600) < 300
    score = rng.standard_normal((4, 600)).round(1) + 2.5 * (np.arange(600) < 30)  # ties
    frame = fixed(score, member)
    exposed = most_exposed(frame, n=30)
    found = exposed.records.set_index("record")
    assert 15 < len(found) <= exposed.count < exposed.among == 300
    assert (found.index < 30).mean() > 0.9
    for record in found.index:
        shares = [(run[~member] >= run[record]).mean() for run in score]
        assert found.loc[record, "nonmembers_above"] == pytest.approx(np.mean(shares))
        assert found.loc[record, "flagged"] == frame.loc[frame["record"] == record, "flagged"].sum()
    assert found["nonmembers_above"].is_monotonic_increasing
    assert set(found["runs"]) == {4}
    assert len(most_exposed(frame, n=5).records) == 5
    assert exposed.words("records") == f"{exposed.count} of 300 records stand out (at most 5 % of them by chance)"


@pytest.mark.parametrize("score", [np.zeros((2, 100)), np.random.default_rng(1).normal(size=(2, 100))])
def test_nobody_is_exposed_where_members_are_like_nonmembers_or_all_alike(score: np.ndarray) -> None:
    found = most_exposed(fixed(score, np.arange(100) < 60))
    assert found.records.empty
    assert found.words("members") == "none of the 60 members stands out by more than chance"


def test_members_that_are_equally_exposed_are_counted_and_listed_by_their_numbers() -> None:
    score = np.random.default_rng(0).random((2, 400))
    score[:, 399], score[:, 40], score[:, 45:60] = 4.0, 5.0, 3.0  # 399 is an non-member
    exposed = replace(most_exposed(fixed(score, np.arange(400) < 60)), cell=("d", "a", "none", "yeom"))
    found = exposed.records
    assert found["record"].tolist() == [40, *range(45, 54)]
    assert found["tied"].tolist() == [1, *[15] * 9]
    (table,) = tables.most_exposed([exposed])
    assert "(15 are exactly as exposed as the last one; listed are those with the lowest row numbers)" in table.heading
    (table,) = tables.most_exposed([replace(exposed, records=found.head(1).assign(called="cat/7.png", shown=""))])
    assert "exactly" not in table.heading
    assert table.rows[0][0] == "cat/7.png"


def test_the_exposed_are_told_of_the_undefended_and_the_answers_models_by_the_strongest_attack(
    frame: pd.DataFrame,
) -> None:
    private = (frame["defense"] == "gaussian-zcdp-eps=1000") & frame["of"].eq("yeom") & frame["fpr"].isna()
    frame.loc[private, "of"] = "lira"
    assert singled_out(answers(frame, Acceptable(advantage=0.2))) == {
        ("d", "a", "none", "yeom"),
        ("d", "a", "gaussian-zcdp-eps=1000", "lira"),
        ("d", "b", "none", "yeom"),
    }
