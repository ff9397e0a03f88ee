"""The report simulated: studies with planted scores go the real way, and every claim is checked against the truth.

`planted.draw` makes a study: scores by chance, then the package's own way to metric rows. `simulate` takes it on to the
answer, its claims and the listed records, and judges each by tables: `ROWS` by metric, `INTERVALS` and `FACTS` by what
a number of a sentence estimates, `WORDS` by the kind of claim. What has no entry fails.

`python tests/report/test_simulated.py 42` prints how often each kind is true.

A promise that holds in 95 of 100 studies may fail by chance. So a kind fails below the number of studies that chance
undercuts once in 100,000 times: of some 400 such numbers one fails in 250 seeds. Seeds are fixed.
"""

import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import ceil, log, log1p
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from planted import (
    DELTA,
    OWN,
    RATES,
    TUNED_ON,
    WORLDS,
    Cell,
    Study,
    draw,
    gained,
    is_false,
    keeps,
    loss,
    protects,
    spent_of,
    truth,
)
from planted import strongest as of_strongest
from scipy.special import ndtr
from scipy.stats import binom

from dp_leakage.privacy.accounting.tradeoff import gaussian
from dp_leakage.privacy.rates import precision
from dp_leakage.report import Acceptable, Answer, Claim, Number, answers, claims_of, most_exposed, singled_out
from dp_leakage.report.refuted import refuted_claims
from dp_leakage.table.words import name as words_of

ONCE_IN = 1e-5
FEW, MANY = 3, 42  # studies of each world
# What attackers lose who must choose their threshold by so few records, and what ties leave between two thresholds: by
# so much may a truth be above an interval, never below.
COST = defaultdict(float, {"reached_advantage": 0.03, "members_exposed": 1})


def within(one: Number | pd.Series, true: float, cost: float = 0.0) -> bool:
    return one.low - 1e-9 <= true <= one.high + cost + 1e-9


def cell_of(study: Study, number: Number) -> Cell:
    return study.world.cell(number.model, number.defense)


# ---------------------------------------------------------------------- metric rows
def reached(study: Study, cell: Cell, said: Mapping[str, Any], metric: str) -> float:
    fpr = said.get("fpr", np.nan)
    key = metric if np.isnan(fpr) else f"tpr {fpr:g}"
    if said["attack"] == "strongest":
        return of_strongest(study.world, cell, key)
    return truth(study.world, cell, int(said["attack"].removeprefix("attack_")))[key]


def a_rate(study: Study, cell: Cell, row: pd.Series) -> bool:
    return within(row, reached(study, cell, row, row["metric"]), COST[row["metric"]])


def a_count(study: Study, cell: Cell, row: pd.Series) -> bool:
    """Members exposed on average; in every run: never more than on average."""
    members = study.member.mean(axis=1).mean() * study.world.n
    if row["counting"] == "all_runs":
        return row["value"] <= members
    return within(row, members * reached(study, cell, row, ""), COST["members_exposed"])


def an_accuracy(study: Study, cell: Cell, row: pd.Series) -> bool:
    return within(row, cell.accuracy)


def a_loss(study: Study, cell: Cell, row: pd.Series) -> bool:
    return within(row, 1 - cell.accuracy / study.world.cell(cell.model, "none").accuracy)


def a_bound(study: Study, cell: Cell, row: pd.Series) -> bool:
    """A lower bound on ε from the study's own coins."""
    real = cell._replace(mu=max(cell.mu, gained(cell)))
    return row["value"] <= spent_of(study.world, real)[row["neighbors"]]


def planted_row(study: Study, cell: Cell, row: pd.Series) -> bool:
    return True  # drawn by nobody: the world itself gave it


def at_threshold(study: Study, cell: Cell, row: pd.Series) -> bool:
    """Within the interval, but for what ties and the coins' exact number of members move."""
    true = truth(study.world, cell, int(row["attack"].removeprefix("attack_")))[f"share {row['threshold']:g}"]
    return row["low"] - 0.003 <= true <= row["high"] + 0.003


def a_blind_auc(study: Study, cell: Cell, row: pd.Series) -> bool:
    """A guess without the model never exceeds the best of all: the likelihood ratio of the features that differ."""
    return row["low"] <= ndtr(study.world.apart / np.sqrt(2))


def a_blind_advantage(study: Study, cell: Cell, row: pd.Series) -> bool:
    return row["low"] <= 2 * ndtr(study.world.apart / 2) - 1


def beyond_a_guess(study: Study, cell: Cell, row: pd.Series) -> bool:
    """At least what an attack has beyond the best guess of all."""
    true = truth(study.world, cell, int(row["attack"].removeprefix("attack_")))["membership_auc"]
    return row["high"] >= true - ndtr(study.world.apart / np.sqrt(2))


RATES_OF = ("reached_advantage", "membership_advantage", "balanced_accuracy", "membership_auc", "reached_tpr")
GIVEN = ("learning_rate", "tuning_accuracy", "epsilon_spent", "advantage_proven", "tpr_proven")
ROWS: dict[str, Callable[[Study, Cell, pd.Series], bool]] = {
    **dict.fromkeys(RATES_OF, a_rate),
    "members_exposed": a_count,
    **dict.fromkeys(("test_accuracy", "train_accuracy"), an_accuracy),
    "threshold_advantage": at_threshold,
    "blind_auc": a_blind_auc,
    "blind_advantage": a_blind_advantage,
    "auc_beyond": beyond_a_guess,
    "train_test_gap": lambda study, cell, row: within(row, 0.0),
    "accuracy_loss": a_loss,
    "epsilon_lower_bound": a_bound,
    **dict.fromkeys((*GIVEN, "mu", "mu_bound", "mu_regret"), planted_row),
}


# ---------------------------------------------------------------------- numbers of sentences
def a_reached(study: Study, number: Number) -> bool:
    true = reached(study, cell_of(study, number), number.qualifiers, number.estimates)
    return within(number, true, COST[number.estimates])


def a_correct_share(study: Study, number: Number) -> bool:
    return within(number, cell_of(study, number).accuracy)


def a_best_loss(study: Study, number: Number) -> bool:
    return within(number, loss(study.world, cell_of(study, number)))


def a_twin_loss(study: Study, number: Number) -> bool:
    cell = cell_of(study, number)
    return within(number, 1 - cell.accuracy / study.world.cell(cell.model, "none").accuracy)


def accused(study: Study, number: Number) -> bool:
    """Of ten accused: at the strongest attack's true rate, and a little more if a threshold was hard to choose."""
    fpr, prior = number.qualifiers["fpr"], number.qualifiers["prior"]
    tpr = of_strongest(study.world, cell_of(study, number), f"tpr {fpr:g}")
    least = precision(prior, max(tpr - COST["reached_tpr"], 0.0), fpr)
    return number.low - 1e-9 <= 10 * precision(prior, tpr, fpr) and 10 * least <= number.high + 1e-9


def limit_of(number: Number, cell: Cell) -> float:
    """What is proven of a cell, from its noise."""
    curve, said = gaussian(cell.mu), number.qualifiers
    tpr = float(curve.tpr(said["fpr"])) if "fpr" in said else np.nan
    if number.estimates == "members_of_ten_accused_proven":
        return 10 * precision(said["prior"], tpr, said["fpr"])
    own = {"advantage_proven": curve.advantage, "tpr_proven": tpr, "mu": cell.mu}
    own |= {"mu_bound": curve.mu_bound, "mu_regret": curve.regret}
    return float(own[number.estimates])


def a_limit(study: Study, number: Number) -> bool:
    """As the noise says, for the neighbors of the game, shown no smaller than it is, and above what attacks reach."""
    cell, said = cell_of(study, number), number.qualifiers
    true = limit_of(number, cell)
    unit = 0.01 if number.estimates == "tpr_proven" else 1.0
    shown = float(number.shown) * unit >= true * (1 - 1e-6)
    game = said.get("neighbors", study.world.game(cell)) == study.world.game(cell)
    key = {"advantage_proven": "reached_advantage", "tpr_proven": f"tpr {said.get('fpr', 0):g}"}.get(number.estimates)
    above = key is None or of_strongest(study.world._replace(apart=None), cell, key) <= true + 1e-3
    return shown and game and above and number.value == pytest.approx(true, abs=1e-6)


def an_epsilon(study: Study, number: Number) -> bool:
    """Spent for the neighbors of the study's game: those that all that is measured and proven is about."""
    cell, relation = cell_of(study, number), number.qualifiers["neighbors"]
    of_game = relation == study.world.game(cell) or not cell.proves
    return of_game and number.value == spent_of(study.world, cell)[relation]


def claimed(study: Study, number: Number) -> bool:
    return number.value in spent_of(study.world, cell_of(study, number)).values()


def equals(value: Callable[[Study], float]) -> Callable[[Study, Number], bool]:
    return lambda study, number: number.value == value(study)


def always(study: Study, number: Number) -> bool:
    return True  # a rate, a share or a count that the sentence's own check reads


def a_blind_number(study: Study, number: Number) -> bool:
    return number.low <= 2 * ndtr(study.world.apart / 2) - 1


def weaker(study: Study, number: Number) -> Cell:
    """The private cell of the next larger budget: planted ones of one model and sampler are one chain."""
    own = cell_of(study, number)
    chain = [one for one in study.world.private if (one.model, one.sampler) == (own.model, own.sampler)]
    return min((one for one in chain if one.mu > own.mu), key=lambda one: one.mu)


def a_cost(study: Study, number: Number) -> bool:
    return within(number, weaker(study, number).accuracy - cell_of(study, number).accuracy)


def a_saving(study: Study, number: Number) -> bool:
    """Within the interval, but for what choosing thresholds costs one more than the other."""
    own, other = (
        of_strongest(study.world, one, "reached_advantage") for one in (cell_of(study, number), weaker(study, number))
    )
    return number.low - COST["reached_advantage"] <= other - own <= number.high + COST["reached_advantage"]


INTERVALS: dict[str, Callable[[Study, Number], bool]] = {
    "step_cost": a_cost,
    "step_saved": a_saving,
    "test_accuracy": a_correct_share,
    "accuracy_loss_best": a_best_loss,
    "accuracy_loss": a_twin_loss,
    **dict.fromkeys(("reached_advantage", "reached_tpr", "membership_auc"), a_reached),
    "members_of_ten_accused": accused,
    "blind_advantage": a_blind_number,
}
LIMITS = ("advantage_proven", "tpr_proven", "mu", "mu_bound", "mu_regret", "members_of_ten_accused_proven")
FACTS: dict[str, Callable[[Study, Number], bool]] = {
    **dict.fromkeys(LIMITS, a_limit),
    "epsilon_spent": an_epsilon,
    "claimed_epsilon": claimed,
    "delta": equals(lambda study: DELTA),
    "guessing": equals(lambda study: study.world.guessing),
    "limit_accuracy_loss": equals(lambda study: study.world.acceptable.accuracy_loss),
    "limit_advantage": equals(lambda study: study.world.acceptable.advantage),
    "confidence": equals(lambda study: 0.95),
    "test_error": lambda study, number: 0.05 / max(len(study.world.private), 1) <= number.value <= 0.05,
    "members_of_ten_accused_at_random": lambda study, one: one.value == 10 * one.qualifiers["prior"],
    **dict.fromkeys(("fpr", "prior", "count"), always),
    "decides": lambda study, number: 0 < number.value <= 1,
    "nonmembers_needed": lambda study, one: one.value == ceil(log(0.05) / log1p(-one.qualifiers["fpr"])),
    "nonmembers_worth": lambda study, one: 0 < one.value < ceil(log(0.05) / log1p(-one.qualifiers["fpr"])),
    "lowest_fpr": lambda study, one: 0 < one.value < 1,
    "learning_rate_tried": lambda study, number: number.value in RATES,
}


# ---------------------------------------------------------------------- sentences
def told(study: Study, claim: Claim) -> list[Cell]:
    return [study.world.cell(*key) for key in claim.cells]


def counts(claim: Claim) -> list[int]:
    return [int(number.value) for number in claim.numbers if number.estimates == "count"]


def an_answer(study: Study, answer: Answer, claim: Claim) -> bool:
    short = len([word for word in claim.words.split() if any(map(str.isalpha, word))]) <= 60
    return short and VERDICTS[claim.verdict](study, claim)


def a_trade(study: Study, answer: Answer, claim: Claim) -> bool:
    """It is said where nothing is decided, of a step to the next smaller budget."""
    old, new = told(study, claim)
    return answer.kind == "open" and old.mu > new.mu and (old.model, old.sampler) == (new.model, new.sampler)


def a_caveat(study: Study, answer: Answer, claim: Claim) -> bool:
    """What no ε covers is named, and that no proof protects where none does."""
    outside = list(study.world.outside)
    if study.world.apart is not None and "or proof" in claim.words:
        outside.append("a difference between members and others")
    covers = [re.search(rf"No ε (or proof )?here covers {re.escape(what)}", claim.words) for what in outside]
    alone = "No proof rules out a stronger attack." in claim.words
    proven = [2 * ndtr(one.mu / 2) - 1 if one.mu and one.proves else 1.0 for one in told(study, claim)]
    return all(covers) and (alone == (answer.kind == "both" and proven[0] >= 0.9))


def it_does_both(study: Study, claim: Claim) -> bool:
    (chosen,) = told(study, claim)
    both = [keeps(study.world, one) and protects(study.world, one) for one in study.world.private]
    proven = 2 * ndtr(chosen.mu / 2) - 1 if chosen.mu and chosen.proves else 1.0
    proof = "no attack can have" not in claim.words or proven <= limit(study)
    every = "every private setting tried meets both limits" not in claim.words or all(both)
    return keeps(study.world, chosen) and protects(study.world, chosen) and proof and every


def limit(study: Study) -> float:
    return study.world.acceptable.advantage


def it_may(study: Study, claim: Claim) -> bool:
    """That nothing is shown is a statement on this study; what may be was measured within the limits."""
    within = all(
        number.value <= LIMIT_OF[number.estimates](study) for number in claim.numbers if number.low is not None
    )
    proof = all(one.value <= limit(study) for one in claim.numbers if one.estimates == "advantage_proven")
    return (" may meet both limits" in claim.words) == (within and proof)


LIMIT_OF: dict[str, Callable[[Study], float]] = {
    "accuracy_loss_best": lambda study: study.world.acceptable.accuracy_loss,
    "reached_advantage": limit,
}


def none_does_both(study: Study, claim: Claim) -> bool:
    world, first = study.world, told(study, claim)[0]
    anywhere = {
        "keeps the accuracy": any(keeps(world, one) for one in world.private),
        "protects": any(protects(world, one) for one in world.private),
        "is proven to protect": any(protects(world, one) for one in world.private),
    }
    lead = claim.words.split(". ")[0]
    denied = all(not true for words, true in anywhere.items() if lead.endswith(words))
    leaks = "but leaks:" not in claim.words or of_strongest(world, first, "reached_advantage") > limit(study)
    last = told(study, claim)[-1]
    safe = not any(words in claim.words for words in ("protects, but", ", and protects.")) or protects(world, last)
    return denied and leaks and safe and not any(keeps(world, one) and protects(world, one) for one in world.private)


def not_shown_to_beat_guessing(study: Study, claim: Claim) -> bool:
    assert "No undefended model is shown to beat guessing" in claim.words  # nothing is said of what is true
    return all(cell.defense == "none" for cell in told(study, claim))


def nothing_private(study: Study, claim: Claim) -> bool:
    return all(is_false(cell) for cell in study.world.private)


VERDICTS: dict[str, Callable[[Study, Claim], bool]] = {
    "both": it_does_both,
    "open": it_may,
    "neither": none_does_both,
    "guessing": not_shown_to_beat_guessing,
    "untried": nothing_private,
}


def chance(study: Study, answer: Answer, claim: Claim) -> bool:
    """``chance alone could explain`` and ``the interval excludes 0`` say what an interval shows, and that is true."""
    lows = [n.low for n in claim.numbers if n.estimates == "reached_advantage"]
    could = ("chance alone could explain" in claim.words) == any(low <= 0 for low in lows)
    leaks = any(of_strongest(study.world, one, "reached_advantage") > 1e-9 for one in told(study, claim))
    return could and (leaks or "the interval excludes 0" not in claim.words)


def a_baseline(study: Study, answer: Answer, claim: Claim) -> bool:
    """It was right most often in this study; it need not be the truly best."""
    right = study.metrics[(study.metrics["metric"] == "test_accuracy") & (study.metrics["repeat"] == "all")]
    first = right[right["defense"] == "none"].sort_values("value", ascending=False, kind="stable").iloc[0]
    return "was right most often" in claim.words and claim.cells == ((first["model"], "none"),)


def on_the_tile(study: Study, answer: Answer, claim: Claim) -> bool:
    return all(number.among == 1 for number in claim.numbers if number.low is not None)


def attacks_counted(study: Study, answer: Answer, claim: Claim) -> bool:
    (cell,) = told(study, claim)
    tried = [len(cell.shifts)] if len(cell.shifts) > 1 else []
    return counts(claim) == tried and chance(study, answer, claim)


def attacks_on_the_tile(study: Study, answer: Answer, claim: Claim) -> bool:
    (cell,) = told(study, claim)
    return on_the_tile(study, answer, claim) and counts(claim) == [len(cell.shifts)] * (len(cell.shifts) > 1)


def next_to_nothing(study: Study, answer: Answer, claim: Claim) -> bool:
    (cell,) = told(study, claim)
    if cell.mu is None or not cell.proves:
        return "othing is proven" in claim.words
    return ("rules out next to nothing" in claim.words) == (2 * ndtr(cell.mu / 2) - 1 >= 0.9)


def its_neighbors(study: Study, answer: Answer, claim: Claim) -> bool:
    (cell,) = told(study, claim)
    return not cell.proves or claim.words.startswith(f"{words_of(study.world.game(cell))} neighbors")


def all_together(study: Study, answer: Answer, claim: Claim) -> bool:
    """What is said to keep the accuracy and to protect does, and what surely fails does not do both."""
    world, found = study.world, [(one, study.world.cell(one.model, one.defense)) for one in answer.settings]
    private = [(one, keeps(world, cell) and protects(world, cell)) for one, cell in found if one.private]
    shown = [both for one, both in private if one.keeps == one.protects == "yes"]
    return all(shown) and not any(both for one, both in private if one.judgment.aside and not one.refuted)


def tuning(study: Study, answer: Answer, claim: Claim) -> bool:
    return study.world.tuned and counts(claim) == [TUNED_ON]


def untuned(study: Study, answer: Answer, claim: Claim) -> bool:
    return study.world.tuned == claim.words.startswith("Learning rates were tuned")


def unaware(study: Study, answer: Answer | None, claim: Claim) -> bool:
    return not study.world.aware


def numbers_only(study: Study, answer: Answer, claim: Claim) -> bool:
    return len(claim.numbers) > 0


def unproven(study: Study, answer: Answer, claim: Claim) -> bool:
    """Every defense that proves nothing is told of, once."""
    cells = [one.defense for one in study.world.cells if one.mu is None and one.defense != "none"]
    return sorted(n.defense for n in claim.numbers if n.estimates == "reached_advantage") == sorted(cells)


def two_sources(study: Study, answer: Answer | None, claim: Claim) -> bool:
    """Members and others differ by themselves, and nothing is said to be learned."""
    return bool(study.world.apart) and " differ: " in claim.words and "leaks" not in claim.words


WORDS: dict[str, Callable[[Study, Answer | None, Claim], bool]] = {
    "trade": a_trade,
    "answer": an_answer,
    "caveat": a_caveat,
    "unaware": unaware,
    "sources": two_sources,
    "baseline": a_baseline,
    "accuracy": on_the_tile,
    "measured": attacks_on_the_tile,
    "proven": next_to_nothing,
    "epsilon": its_neighbors,
    "rates": attacks_counted,
    "twin": numbers_only,
    "limits": next_to_nothing,
    "accusation": numbers_only,
    "tuning": tuning,
    "untuned": untuned,
    "choice": all_together,
    "unproven": unproven,
}


def a_record(study: Study, cell: Cell, attack: int, row: pd.Series) -> bool:
    """A record that is listed really leaks; with coins its interval holds how often it is named where it was in."""
    leaks, record = cell.shifts[attack] > 0, int(row["record"])
    leaks = leaks and bool(study.leaks[record])
    if "low" not in row or cell.rescaled or study.world.digits is not None:
        return leaks
    outside = study.scores[cell.key][f"attack_{attack}"].query("~member")["score"].to_numpy()
    threshold = np.sort(outside)[::-1][int(0.01 * len(outside))]
    mean = study.owns[cell.key][attack][record] + cell.shifts[attack]
    return leaks and within(row, float(ndtr((mean - threshold) / np.sqrt(1 - OWN))), 0.01)


# ---------------------------------------------------------------------- simulation
def judged(study: Study) -> Iterator[tuple[str, bool]]:
    """Every claim of a study: its kind and whether it is true."""
    world = study.world
    single = study.metrics[(study.metrics["repeat"] == "all") & study.metrics["value"].notna()]
    single = single[single["metric"] != "nonmembers_worth"]  # a count that has no interval
    for _, row in single.iterrows():
        strong = " of the strongest" if row["attack"] == "strongest" else ""
        cell = world.cell(row["model"], row["defense"])
        yield f"row {row['metric']}{strong}", ROWS[row["metric"]](study, cell, row)
    (answer,) = answers(study.metrics, world.acceptable, {"d": world.guessing}, world.aware, (), study.tested)
    for claim in claims_of([answer], {"d": world.outside}, world.aware):
        kind = f"{claim.kind} {claim.verdict}".strip()
        yield f"words {kind}", WORDS[claim.kind](study, answer, claim)
        for number in claim.numbers:
            if number.low is None:
                yield f"fact {kind} {number.estimates}", FACTS[number.estimates](study, number)
            else:
                large = " of all at once" if number.among > 1 else ""
                yield f"interval {kind} {number.estimates}{large}", INTERVALS[number.estimates](study, number)
    refuted = {cell for claim in refuted_claims(study.metrics) for cell in claim.cells}
    false = {cell.key for cell in world.private if is_false(cell)}
    yield "no true claim refuted", refuted <= false
    if false:  # by far
        yield "fact: false claims refuted", false <= refuted
    for _, model, defense, attack in singled_out([answer]):
        cell = world.cell(model, defense)
        found = most_exposed(study.scores[model, defense][attack])
        listed = [a_record(study, cell, int(attack[-1]), row) for _, row in found.records.iterrows()]
        yield "exposed", np.mean(listed) if listed else True
    chosen = [world.cell(one.model, one.defense) for one in answer.told if answer.kind == "both"]
    yield "recommended", all(keeps(world, cell) and protects(world, cell) for cell in chosen)


def simulate(name: str, studies: int) -> dict[str, list[float]]:
    """Of each kind, the share of true claims in each study that makes some."""
    rng, found = np.random.default_rng(list(WORLDS).index(name)), defaultdict(list)
    for _ in range(studies):
        own = defaultdict(list)
        for kind, true in judged(draw(WORLDS[name], rng)):
            own[kind].append(true)
        for kind, true in own.items():
            found[kind].append(float(np.mean(true)))
    return dict(found)


def failing(found: Mapping[str, Sequence[float]]) -> dict[str, str]:
    """The kinds that are true less often than promised: facts always, all else in 95 of 100 studies."""
    fewest = {kind: len(shares) if kind.startswith("fact") else least(len(shares)) for kind, shares in found.items()}
    return {
        kind: f"{np.mean(shares):.3f} of {len(shares)} studies"
        for kind, shares in found.items()
        if np.sum(shares) < fewest[kind]
    }


def pooled(found: Iterable[Mapping[str, list[float]]]) -> dict[str, list[float]]:
    """The studies of all worlds."""
    together = defaultdict(list)
    for kinds in found:
        for kind, shares in kinds.items():
            together[kind] += shares
    return dict(together)


def least(studies: int) -> int:
    """Of so many studies at .95, the number that chance undercuts once in 100,000 times."""
    return int(binom.ppf(ONCE_IN, studies, 0.95))


def check(studies: int) -> None:
    """Each world by itself, then all together; and whether the worlds make every kind of claim that has a check."""
    found = {name: simulate(name, studies) for name in WORLDS}
    assert {name: failed for name, kinds in found.items() if (failed := failing(kinds))} == {}
    together = pooled(found.values())
    assert failing(together) == {}
    made = {kind.split()[0]: set() for kind in together}
    for kind in together:
        made[kind.split()[0]].update(kind.split()[1:])
    assert set(ROWS) <= made["row"]
    assert set(WORDS) | set(VERDICTS) <= made["words"]
    assert set(INTERVALS) <= made["interval"]
    assert set(FACTS) - {"epsilon_spent"} <= made["fact"]  # that is told where a claim does not hold


def test_all_that_a_hundred_studies_claim_is_true():
    """Of 96 studies: what is true in 75 of 100 instead of 95 is found 96 times in 100; the long test finds less."""
    check(FEW)


@pytest.mark.slow
def test_all_that_a_thousand_studies_claim_is_true():
    check(MANY)


def test_the_page_counts_worlds_and_studies_as_they_are():
    page = " ".join((Path(__file__).parents[2] / "docs" / "results" / "intervals.md").read_text("utf-8").split())
    few, many = FEW * len(WORLDS), MANY * len(WORLDS)
    assert f"from {len(WORLDS)} worlds" in page
    assert f"{few:,} studies by default, {many:,} with the marker `slow`" in page
    limits = f"{least(few):,} of {few:,} studies, {least(many):,} of {many:,}, and {least(MANY)} of one world's {MANY}"
    assert limits in page
    assert f"({COST['reached_advantage']:.2f} of an advantage)".replace("0.", ".") in page


def test_comparing_record_by_record_narrows_every_loss_and_moves_none():
    """Where few trainings decide how wide an interval is (four, in "models alike"), it hardly matters."""
    for name in ("weak", "one model", "people with several new records", "accurate and protected"):
        study = draw(WORLDS[name], np.random.default_rng(0))
        paired, alone = (
            answers(study.metrics, study.world.acceptable, tested=tested)[0].settings for tested in (study.tested, {})
        )
        for one, other in zip(paired, alone, strict=True):
            assert one.loss.value == pytest.approx(other.loss.value, abs=1e-12)
            assert one.loss.high - one.loss.low < other.loss.high - other.loss.low or one.defense == "none"


def test_a_claim_of_a_kind_that_nobody_checks_fails(monkeypatch):
    monkeypatch.setattr("test_simulated.claims_of", lambda *given: [Claim("d.new", "new", "d", "Nothing leaks.")])
    with pytest.raises(KeyError, match="new"):
        simulate("no private model", 1)


def test_a_sentence_that_recommends_what_fails_is_found(monkeypatch):
    """An answer by other limits than the world's: what loses 12 % is said to lose at most 10 %."""
    lax, real = Acceptable(accuracy_loss=0.2, advantage=0.3), answers
    monkeypatch.setattr("test_simulated.answers", lambda metrics, limits, *more: real(metrics, lax, *more))
    found = failing(simulate("just beyond the limits", 4))
    assert {"recommended", "words answer both"} <= set(found)


def test_an_interval_that_is_too_narrow_is_found(monkeypatch):
    def narrow(claim: Claim) -> Claim:
        numbers = [n if n.low is None else replace(n, low=n.value, high=n.value) for n in claim.numbers]
        return replace(claim, numbers=tuple(numbers))

    real = claims_of
    monkeypatch.setattr("test_simulated.claims_of", lambda *given: [narrow(claim) for claim in real(*given)])
    assert "interval baseline test_accuracy" in failing(simulate("weak", 4))


def main(studies: int) -> None:
    """Prints a line for each kind of interval and sentence: in how many studies of all worlds it is true."""
    print("| claim | true | studies |\n| --- | ---: | ---: |")
    for kind, shares in sorted(pooled(simulate(name, studies) for name in WORLDS).items()):
        if not kind.startswith("fact"):
            print(f"| {kind} | {np.mean(shares):.3f} | {len(shares):,} |")


if __name__ == "__main__":
    main(int(sys.argv[1]))
