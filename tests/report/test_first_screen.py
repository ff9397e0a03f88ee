"""The first screen: its verdict and its cards follow the test, and its numbers are those of the claims."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from markupsafe import Markup
from planted import Cell, World, draw

from dp_leakage.report import Answer, ReportContext, answers, claims_of, render
from dp_leakage.report.decision import Judgment
from dp_leakage.report.first_screen import cards_of, chip_of, guesses_of
from dp_leakage.table.words import name

LADDER = (
    Cell((0.9,), 0.9),
    Cell((0.05,), 0.5, mu=0.5),
    Cell((0.1,), 0.86, mu=1.5),
    Cell((0.6,), 0.89, mu=5.0),
)


@pytest.fixture(scope="module")
def answer() -> Answer:
    """Return the answer to a ladder whose middle setting is shown to meet both limits."""
    world = World(LADDER, repeats=16, n=600, n_test=600)
    drawn = draw(world, np.random.default_rng(0))
    (found,) = answers(drawn.metrics, world.acceptable, {"d": world.guessing}, tested=drawn.tested)
    assert found.kind == "both"
    return found


def judged(answer: Answer, kind: str = "open", **judgment: object) -> Answer:
    told = replace(answer.told[0], judgment=Judgment(**judgment))
    return replace(answer, kind=kind, told=(told,))


@pytest.mark.parametrize(
    ("kind", "word", "tone"),
    [
        ("both", "Recommended", "good"),
        ("open", "Cannot tell", "open"),
        ("neither", "None qualifies", "bad"),
        ("guessing", "Not measurable", "plain"),
        ("untried", "No budget", "plain"),
    ],
)
def test_each_kind_of_answer_has_a_sign_a_word_and_a_color(answer, kind, word, tone):
    chip = chip_of(replace(answer, kind=kind))
    assert (chip.word, chip.tone) == (word, tone)
    assert chip.sign
    cards = cards_of(replace(answer, kind=kind))
    assert bool(cards) == (kind in ("both", "open", "neither"))


def test_a_proof_and_that_all_qualify_are_said(answer):
    one = answer.told[0]
    proven = replace(one, conditions=replace(one.conditions, by_proof=True))
    assert chip_of(replace(answer, told=(proven,))).word == "Recommended, proven"
    assert cards_of(replace(answer, told=(proven,)))[1].state.word == "proof decides"
    good = Judgment("yes", "yes", "yes")
    every = tuple(replace(setting, judgment=good) for setting in answer.settings)
    assert chip_of(replace(answer, settings=every)).word == "All qualify"


@pytest.mark.parametrize(("keeps", "word"), [("yes", "within limit"), ("no", "beyond limit"), ("open", "undecided")])
def test_a_card_is_within_its_limit_by_the_test_whatever_its_interval_shows(answer, keeps, word):
    lost, *_ = cards_of(judged(answer, keeps=keeps))
    assert lost.state.word == word


@pytest.mark.parametrize(
    ("judgment", "word"),
    [
        ({"protects": "yes"}, "within limit"),
        ({"protects": "no", "leaks": True}, "beyond limit"),
        ({"protects": "no"}, "undecided"),
        ({"protects": "open"}, "undecided"),
    ],
)
def test_so_does_the_leakage(answer, judgment, word):
    _, leaked, _ = cards_of(judged(answer, **judgment))
    assert leaked.state.word == word


def test_every_number_of_the_cards_is_in_the_claims(answer):
    claims = claims_of([answer], {})
    known = {number for claim in claims for one in claim.numbers for number in re.findall(r"[\d.]+", one.shown)}
    for card in cards_of(answer):
        numbers = re.findall(r"\d+(?:\.\d+)?(?:e-\d+)?", card.figure + " " + card.words.replace("0 is guessing", ""))
        if card.label == "Accuracy lost":
            numbers.remove(f"{100 * answer.told[0].accuracy.value:.1f}")
            numbers.remove(f"{100 * answer.best.accuracy.value:.1f}")
            assert f"{100 * answer.told[0].accuracy.value:.1f}" in " ".join(known)
        shown = [number for number in numbers if number not in known and number not in ("1e-05",)]
        assert shown == [] or (card.label == "Measured leakage" and shown == ["0"]), card  # attack 0


def test_a_gauge_draws_limit_interval_and_value_where_they_are(answer):
    lost = cards_of(answer)[0]
    assert isinstance(lost.gauge, Markup)
    (at,) = re.findall(r'class="limit" x1="([\d.]+)"', lost.gauge)
    (value,) = re.findall(r'class="value" cx="([\d.]+)"', lost.gauge)
    ((low, width),) = re.findall(r'class="interval" x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', lost.gauge)
    found = answer.told[0].loss
    scale = (float(at) - 6) / answer.acceptable.accuracy_loss
    assert (float(value) - 6) / scale == pytest.approx(found.value, abs=1e-3)
    assert (float(low) - 6) / scale == pytest.approx(found.low, abs=1e-3)
    assert (float(low) + float(width) - 6) / scale == pytest.approx(found.high, abs=1e-3)


def test_a_proof_is_beside_a_limit_only_where_the_limit_is_one_of_proofs(answer):
    one = answer.told[0]
    assert not one.by_proof
    gauge = cards_of(answer)[2].gauge
    assert "limit" not in gauge
    assert "0 is guessing, 1 is certainty" in gauge
    proven = replace(one, conditions=replace(one.conditions, by_proof=True))
    strict = replace(answer, acceptable=replace(answer.acceptable, risk="proven"))
    for bound in (replace(answer, told=(proven,)), strict):
        assert 'class="limit"' in cards_of(bound)[2].gauge
        assert f">limit {answer.acceptable.advantage:g}<" in cards_of(bound)[2].gauge


def caveat(answer: Answer) -> str:
    return next((claim.words for claim in claims_of([answer], {}) if claim.kind == "caveat"), "")


def test_a_recommendation_says_which_others_qualify_and_why_not_the_next_larger_budget(answer):
    chosen = answer.told[0]
    private = [one for one in answer.settings if one.private]
    larger = next(one for one in private if one.spent > chosen.spent)
    assert larger.shown_to_leak
    value = f"{larger.leak.advantage.value:.2f}"
    budget = f"ε = {larger.row['epsilon']:.3g}"
    assert re.search(
        rf"{budget}\S* loses less \(.* %\), but its advantage, {value}\d*, exceeds the limit\.", caveat(answer)
    )

    def with_larger(**judgment: str) -> Answer:
        judged = replace(larger, judgment=Judgment(**judgment))
        return replace(answer, settings=tuple(judged if one is larger else one for one in answer.settings))

    assert f"{value}" in caveat(with_larger(keeps="yes"))
    assert "is not shown to be within the limit." in caveat(with_larger(keeps="yes"))
    also = caveat(with_larger(beats="yes", keeps="yes", protects="yes"))
    assert re.search(r"meets both limits too, with a weaker guarantee\.", also)
    assert "loses less" not in also
    strict = replace(with_larger(keeps="yes"), acceptable=replace(answer.acceptable, risk="proven"))
    assert "has no proof to be within the limit." in caveat(strict)


@pytest.mark.parametrize("model", ["mlp", "softmax_regression"])
def test_another_model_without_privacy_is_named(answer, model):
    alike = replace(answer.best, model=answer.told[0].model)
    lost, leaked, _ = cards_of(replace(answer, best=alike))
    assert "without privacy." in lost.words
    assert ">without privacy<" in leaked.gauge
    other = replace(answer.best, model=f"{model}_2")
    lost, leaked, _ = cards_of(replace(answer, best=other))
    assert f"without privacy ({name(other.model)})." in lost.words
    assert f">without privacy ({name(other.model)})<" in leaked.gauge


def test_of_100_guesses_an_advantage_adds_half_and_a_proof_rounds_up(answer):
    one = answer.told[0]
    found = guesses_of(answer)
    assert found.measured == round(50 + 50 * max(one.leak.advantage.value, 0))
    assert found.undefended == round(50 + 50 * answer.best.leak.advantage.value)
    assert found.most - 1 < 50 + 50 * one.proven.advantage <= found.most
    little = replace(one, proven=replace(one.proven, advantage=0.95))
    assert guesses_of(replace(answer, told=(little,))).most is None


def test_another_measure_of_use_is_what_the_first_card_loses(answer):
    settings = [replace(one, measure="auroc") for one in answer.settings]
    told, best = replace(answer.told[0], measure="auroc"), replace(answer.best, measure="auroc")
    lost = cards_of(replace(answer, settings=tuple(settings), told=(told,), best=best))[0]
    assert lost.label == "AUROC lost"
    assert f"AUROC {told.accuracy.value:.3f} on new records, {best.accuracy.value:.3f} without privacy." in lost.words


def test_the_page_leads_with_the_chip_and_hides_no_jargon_above_the_picture(context: ReportContext):
    page = render(context)
    first = page[page.index("<main>") : page.index('<section id="explore"')]
    assert first.index('class="chip') < first.index('class="decides') < first.index('class="cards"')
    words = re.sub(r"<figure.*?</figure>", "", first, flags=re.DOTALL)
    assert not re.search(r"\bluck|Pareto|μ|regret", re.sub(r"<[^>]+>", " ", words))
    drawn = json.loads(re.search(r'id="cells">(.*?)</script>', page, re.DOTALL)[1])
    assert set(drawn["limits"]) == set(drawn["groups"])
    least, most = drawn["limits"][drawn["groups"][0]]
    assert most == context.acceptable.advantage
    assert 0 < least < 1
