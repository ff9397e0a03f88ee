"""Every number on the first screen is in a claim, and every claim's number is the metrics' own."""

import json
import re
from dataclasses import replace
from html import unescape

import numpy as np
import pandas as pd
import pytest

from dp_leakage.metrics.intervals import Estimate
from dp_leakage.metrics.simultaneous import simultaneous
from dp_leakage.report import Claim, Number, ReportContext, as_json, headlines, render, told

TOKEN = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")
LIMITS = {"test_accuracy": (0.0, 1.0), "reached_advantage": (-1.0, 1.0), "reached_tpr": (0.0, 1.0)}
LIMITS |= {"membership_auc": (0.0, 1.0), "advantage_proven": (0.0, 1.0), "tpr_proven": (0.0, 1.0)}
LIMITS |= {"epsilon_spent": (0.0, np.inf), "accuracy_loss": (-np.inf, 1.0)}


@pytest.fixture(scope="module", params=["aware", "unaware", "unaccounted"])
def study(request: pytest.FixtureRequest, context: ReportContext) -> ReportContext:
    data = tuple(replace(one, outside=("the PCA, fitted on 1,797 records",)) for one in context.data)
    metrics = context.metrics
    if request.param == "unaccounted":
        metrics = metrics[metrics["metric"] != "epsilon_spent"]
    return replace(context, data=data, metrics=metrics, aware=request.param == "aware")


@pytest.fixture(scope="module")
def claims(study: ReportContext) -> list[Claim]:
    return told(study)


@pytest.fixture(scope="module")
def page(study: ReportContext) -> str:
    return render(study)


def numbers(claims: list[Claim]) -> list[Number]:
    return [number for claim in claims for number in claim.numbers]


def digits(text: str, names: str) -> set[str]:
    """The numbers in a text, without those in names of defenses and models."""
    return set(TOKEN.findall(text.replace("ℓ2", ""))) - set(TOKEN.findall(names))


def test_every_number_of_the_first_screen_is_a_claims(page: str, claims: list[Claim]) -> None:
    screens = re.findall(r'<div class="answer">(.*?)(?:<details>|<p class="note">|<figure)', page, re.S)
    assert screens
    text = unescape(re.sub(r"<[^>]+>", " ", " ".join(screens))).replace("\u00a0", " ")
    names = " ".join(f"{model} {defense}" for claim in claims for model, defense in claim.cells)
    shown = set(TOKEN.findall(" ".join(number.shown for number in numbers(claims))))
    assert digits(text, names) <= shown


def test_every_number_in_a_claims_words_is_among_its_numbers(claims: list[Claim]) -> None:
    for claim in claims:
        given = {"95"} | set(TOKEN.findall(" ".join(number.shown for number in claim.numbers)))
        assert digits(f"{claim.figure} {claim.words}", "") <= given, claim


def test_claims_equal_the_metrics_and_say_how_their_intervals_pay_for_the_choice(
    study: ReportContext, claims: list[Claim]
) -> None:
    checked = 0
    for number in numbers(claims):
        if number.estimates not in LIMITS:
            continue
        rows = study.metrics[study.metrics["metric"] == number.estimates]
        cell = [number.dataset, number.model, number.defense]
        rows = rows[(rows[["dataset", "model", "defense"]] == cell).all(axis=1)]
        said = number.qualifiers
        rows = rows[(rows[[*said]] == [*said.values()]).all(axis=1)]
        (row,) = rows[rows["repeat"] == "all"].to_dict("records")
        assert number.value == row["value"]
        if number.low is not None:
            own = (row["value"], row["low"], row["high"])
            repeats = study.metrics[(study.metrics["repeat"] != "all") & (study.metrics["metric"] == row["metric"])]
            assert number.low <= own[1]
            assert number.high >= own[2]
            if number.among == 1:
                assert (number.low, number.high) == own[1:]
            else:
                assert number.correction == "bonferroni"
                assert number.high - number.low >= own[2] - own[1]
                assert len(repeats)
        checked += 1
    assert checked > 0


def before_the_first_figure(page: str) -> tuple[list[str], list[str]]:
    """Words and numbers that a reader meets below the heading and before the first figure."""
    text = re.sub(r"<details>.*?</details>", " ", page[page.index("<main>") : page.index("<figure")], flags=re.S)
    text = unescape(re.sub(r"<[^>]+>", " ", text))
    return [word for word in text.split() if re.search(r"[^\W\d]", word)], TOKEN.findall(text)


def test_before_the_first_figure_there_are_at_most_65_words_and_12_numbers_beside_the_cards(
    study: ReportContext, page: str
) -> None:
    words, numbers = before_the_first_figure(re.sub(r'<div class="cards">.*?</div>\s*</div>', " ", page, flags=re.S))
    assert len(words) <= (65 if study.aware else 85)  # a warning where no attack knows the defense
    assert len(numbers) <= 12
    words, numbers = before_the_first_figure(re.sub(r"<svg.*?</svg>", " ", page, flags=re.S))
    assert len(words) <= (130 if study.aware else 150)  # with three cards of two lines each
    assert len(numbers) <= 32
    assert 'class="decides' in page[: page.index("<figure")]
    assert '"tiles"' not in page[: page.index("<figure")]


def test_the_answer_comes_first_and_names_what_no_epsilon_covers(study: ReportContext, claims: list[Claim]) -> None:
    answer = next(claim for claim in claims if claim.kind == "answer")
    below = " ".join(claim.words for claim in claims if claim.kind == "caveat" and claim.dataset == answer.dataset)
    assert answer.screen == 1
    assert ("covers the PCA, fitted on 1,797 records." in below) == (answer.verdict in ("both", "open", "neither"))
    if not study.aware:
        assert claims[0].kind == "unaware"


def test_the_file_has_the_same_is_plain_json_and_the_same_each_time(study: ReportContext, claims: list[Claim]) -> None:
    content = as_json("s", "t", "", claims)
    text = json.dumps(content, allow_nan=False, sort_keys=True)
    assert text == json.dumps(as_json("s", "t", "", told(study)), allow_nan=False, sort_keys=True)
    read = json.loads(text)
    assert [claim["words"] for claim in read["claims"]] == [claim.words for claim in claims]
    assert headlines(read) == [claim.words for claim in claims if claim.kind == "answer"]
    assert len({claim["id"] for claim in read["claims"]}) == len(claims)


@pytest.mark.parametrize(
    ("kind", "attack", "words"),
    [
        (
            "adaptive",
            "posterior_masked",
            "The adaptive attack posterior, masked takes the largest probability to be masked and reads how the others "
            "share the rest.",
        ),
        (
            "access",
            "loss_trace",
            "The attack loss trace sees each record's loss at every evaluated epoch, so it has the model at all of "
            "these epochs, not the finished one alone.",
        ),
    ],
)
def test_what_an_attack_knows_is_said_where_it_was_run(
    study: ReportContext, claims: list[Claim], kind: str, attack: str, words: str
) -> None:
    assert not [claim for claim in claims if claim.kind == kind]
    run = study.metrics[study.metrics["attack"] != ""].head(1).assign(attack=attack)
    (said,) = [c for c in told(replace(study, metrics=pd.concat([study.metrics, run]))) if c.kind == kind]
    assert said.words == words


def added(study: ReportContext, found: list[tuple[str, float, float, float]]) -> pd.DataFrame:
    """Rows of what attacks on attributes add, each (attack, value, low, high), of one cell."""
    row = study.metrics[study.metrics["repeat"] == "all"].iloc[0]
    rows = [
        {**row, "metric": "attribute_added", "attack": attack, "of": of, "value": v, "low": a, "high": b}
        for attack, v, a, b in found
        for of in ("members", "nonmembers")
    ]
    return pd.DataFrame(rows)


def test_what_the_model_adds_to_imputation_is_said_with_an_interval_for_all_that_was_looked_at(
    study: ReportContext, claims: list[Claim]
) -> None:
    assert not [claim for claim in claims if claim.kind == "added"]
    rows = added(study, [("csmia", 0.1, 0.06, 0.14), ("fredrikson", -0.2, -0.25, -0.15)])
    (said,) = [c for c in told(replace(study, metrics=pd.concat([study.metrics, rows]))) if c.kind == "added"]
    held = simultaneous(Estimate(0.1, 0.06, 0.14), 2, (-1.0, 1.0))
    assert held.low < 0.06
    shown = f"10.0 [{100 * held.low:.1f}, {100 * held.high:.1f}]"
    assert said.words.startswith(
        f"Attributes of members: the model adds {shown} points to the share of right guesses, beyond what the "
        "attacker's own data give. That is CSMIA on "
    )
    assert said.words.endswith("the most of 2 pairs of attack and cell, whose intervals hold together.")
    assert (said.numbers[0].low, said.numbers[0].high, said.numbers[0].among) == (*held[1:], 2)


def test_a_model_that_adds_nothing_that_shows_is_said_to(study: ReportContext) -> None:
    rows = added(study, [("csmia", 0.03, -0.01, 0.07)])
    (said,) = [c for c in told(replace(study, metrics=pd.concat([study.metrics, rows]))) if c.kind == "added"]
    assert "the model adds nothing that shows (3.0 [−1.0, 7.0] points)" in said.words
    assert "pairs" not in said.words
