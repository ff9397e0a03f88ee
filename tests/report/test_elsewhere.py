"""The answer on models that were trained elsewhere is what was measured of them, and nothing about a budget."""

import re
from dataclasses import replace
from html import unescape

import numpy as np
import pytest
from test_claims import digits, numbers, told

from dp_leakage.attacks import STRONGEST
from dp_leakage.metrics.resemblance import Pair, Resemblance
from dp_leakage.report import as_json, headlines, render
from dp_leakage.report.elsewhere import Elsewhere, Others
from dp_leakage.table.words import name

UNLIKE = Resemblance(Pair(0.9, 0.89, 0.01, 16), Pair(0.1, 0.3, 0.02, 16))
ALIKE = Resemblance(Pair(0.9, 0.89, 0.01, 16), Pair(0.1, 0.11, 0.02, 16))
REFERENCES = Elsewhere(("mlp",), references=Others(16, given=False), online=True)


def study(context, elsewhere):
    frame = context.metrics
    own = frame[(frame["model"] == "mlp") & (frame["defense"] == "none")]
    return replace(context, metrics=own, elsewhere=elsewhere, exposed=())


@pytest.fixture(scope="module")
def plain(context):
    return study(context, Elsewhere(("mlp",)))


def answer(study, kind="answer"):
    (found,) = [claim for claim in told(study) if claim.kind == kind]
    return found


def test_it_is_said_that_answers_drawn_at_random_were_averaged(context):
    (found,) = [
        claim for claim in told(study(context, Elsewhere(("mlp",), draws={"mlp": 64}))) if claim.kind == "adaptive"
    ]
    assert found.words == (
        "The attacker asks MLP 64 times about each record and takes the mean of the answers, which are drawn at random."
    )
    assert [number.value for number in found.numbers] == [64]
    assert not [claim for claim in told(study(context, Elsewhere(("mlp",)))) if claim.kind == "adaptive"]


def test_the_deciding_sentence_is_the_measured_leakage(plain):
    found = answer(plain)
    rows = plain.metrics[(plain.metrics["metric"] == "reached_advantage") & (plain.metrics["repeat"] == "all")]
    (row,) = rows[rows["attack"] == STRONGEST].itertuples()
    (told_as,) = [number for number in found.numbers if number.estimates == "reached_advantage"]
    assert (told_as.value, told_as.low, told_as.high) == (row.value, row.low, row.high)
    assert found.verdict == "elsewhere"
    assert len(re.split(r"\. (?=[A-Z])", found.words)) == 2
    assert "[" not in found.words
    below = answer(plain, "evidence")
    assert {"reached_advantage", "reached_tpr", "count"} <= {number.estimates for number in below.numbers}
    counts = [number.value for number in below.numbers if number.estimates == "count"][-2:]
    assert counts == [plain.metrics["n_members"].iloc[0], plain.metrics["n_nonmembers"].iloc[0]]
    assert headlines(as_json("mine", "Mine", "paper", told(plain))) == [found.words]


def test_of_several_models_each_sentence_begins_with_its_models_name(context):
    frame = context.metrics[context.metrics["defense"] == "none"]
    assert set(frame["model"]) > {"mlp"}
    named = list(dict.fromkeys(frame["model"]))
    found = answer(replace(context, metrics=frame, elsewhere=Elsewhere(tuple(named)), exposed=()))
    first, *others = [name(model) for model, _ in found.cells]
    assert found.words.startswith(f"On digits, {first}: the model leaks who was in its training data.")
    assert others
    assert all(f"; guessing has 0. {other}: " in found.words for other in others)


def test_no_tile_has_a_mark_of_an_undefended_model(plain, context):
    mark = '<b style="left'
    assert mark in render(context)
    assert mark not in render(plain)


def test_whether_a_leak_is_told_apart_from_none_is_said(plain):
    assert "the model leaks who was in its training data" in answer(plain).words
    frame = plain.metrics
    flat = frame.assign(low=np.where(frame["metric"] == "reached_advantage", -0.1, 0.0))
    flat.loc[flat["metric"] == "reached_tpr", "value"] = 0.01
    flat = replace(plain, metrics=flat)
    assert "no attack tried is shown to tell this model's members from non-members" in answer(flat).words
    assert "chance alone could explain" in answer(flat, "evidence").words


def test_nothing_is_said_of_budgets_defenses_or_settings_that_nobody_knows(plain):
    page = render(replace(plain, training={}, figures=(), choices=(), question="How much leaks?")).partition("<main>")[
        2
    ]
    page = unescape(re.sub(r"<[^>]+>", " ", page))
    for word in ("recommend", "budget", "same defense", "No attack can exceed", "acceptable", "Epochs", "no defen"):
        assert word not in page, word
    labels = [claim.label for claim in told(plain) if claim.label]
    assert labels[0] == "The strongest attack tried"
    assert labels[-1] == "Accuracy on non-members"
    assert set(labels[1:-1]) <= {"Members identified"}


def test_every_number_of_the_sentences_is_a_claims(context):
    for elsewhere in (Elsewhere(("mlp",)), replace(REFERENCES, resemblance={("digits", "mlp"): UNLIKE})):
        claims = told(study(context, elsewhere))
        assert len({claim.id for claim in claims}) == len(claims)
        for claim in claims:
            shown = " ".join(number.shown for number in claim.numbers)
            assert digits(f"{claim.figure} {claim.words}", "") <= digits(shown, "") | {"95"}, claim
        assert numbers(claims)


def test_with_whom_attacks_compare_and_what_was_not_run_is_said(context, plain):
    def compared(elsewhere):
        (claim,) = [claim for claim in told(study(context, elsewhere)) if claim.kind == "compared"]
        return claim.words

    assert "Not run: attacks that compare with reference models (none were given)" in compared(Elsewhere(("mlp",)))
    words = compared(Elsewhere(("mlp",), Others(5, given=True), Others(3, given=True)))
    assert "compare with 5 reference models that were given" in words
    assert "online attacks" in words
    assert "shadow models (none" not in words
    assert "16 reference models trained here" in compared(REFERENCES)
    assert all(claim.kind != "unaware" for claim in told(plain))


def test_references_unlike_the_model_are_warned_of_below_the_headline(context):
    warned = answer(study(context, replace(REFERENCES, resemblance={("digits", "mlp"): UNLIKE})), "evidence").words
    assert "Beware: the reference models are unlike this model" in warned
    assert "gap between training and held-out records is 10.0 % where theirs is 30.0 %" in warned
    assert "accuracy on held-out" not in warned
    alike = study(context, replace(REFERENCES, resemblance={("digits", "mlp"): ALIKE}))
    assert "Beware" not in answer(alike, "evidence").words


def test_the_strongest_attack_without_references_is_told_beside(context, plain):
    claims = told(study(context, REFERENCES))
    (claim,) = [claim for claim in claims if claim.kind == "without_references"]
    (number,) = [one for one in claim.numbers if one.estimates == "reached_advantage"]
    frame = plain.metrics[(plain.metrics["metric"] == "reached_advantage") & (plain.metrics["repeat"] == "all")]
    free = frame[frame["attack"].isin(["yeom", "shokri"])]
    assert number.value == free["value"].max()
    assert number.among == len(free)
    assert not [claim for claim in told(plain) if claim.kind == "without_references"]
