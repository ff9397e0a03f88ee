"""The answer in sentences, each a `Claim` with its numbers."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from dp_leakage.common.rounding import two_digits
from dp_leakage.common.shown import capital
from dp_leakage.common.utilities import ACCURACY
from dp_leakage.metrics import STRONGEST
from dp_leakage.metrics.intervals import Estimate
from dp_leakage.metrics.thresholds import SHARES
from dp_leakage.metrics.utility import LOSS, METRIC
from dp_leakage.report.answer import Answer, Setting, candidates, is_within, shown_to_do_both
from dp_leakage.report.claims import Claim, Telling
from dp_leakage.report.decision import ALPHA, Look
from dp_leakage.report.forecast import WANTED
from dp_leakage.report.guarantees import (
    choice_words,
    proven_words,
    risk_words,
    rounded_up,
    too_few_words,
)
from dp_leakage.report.leak import Leak
from dp_leakage.report.sources import source_claims
from dp_leakage.report.trade import chain_of, trade_of
from dp_leakage.report.tuned import more_tuning, tuned_words
from dp_leakage.table.guesses import SAYS_LITTLE
from dp_leakage.table.looks import defense_label, look
from dp_leakage.table.numbers import at_most, at_most_beside, fraction, rounded
from dp_leakage.table.words import name

UNAWARE = (
    "No attack here uses reference models trained under the same defense. A weak result is no evidence of protection."
)
# Proofs are about records that chance put in or left out: of two sources they bound what training adds to a difference.
ONE_SOURCE = "that members and others come from one source"
DIFFERENCE = "a difference between members and others"
RARELY = 0.05  # a probability below which none is told


def claims_of(
    answers: Sequence[Answer],
    outside: Mapping[str, Sequence[str]],
    aware: bool = True,
    elsewhere: Callable[[Answer], list[Claim]] | None = None,
    persons: Mapping[str, int] | None = None,
    of_attacks: Mapping[str, Mapping[str, Mapping[str, str]]] | None = None,
    by_coins: bool = True,
    study: str = "",
) -> list[Claim]:
    """Everything that the page's sentences say of the answers, in the order of the page.

    Args:
        answers: of `answer.answers`.
        outside: data set → what no ε of the study covers, each in words such as "the PCA, fitted on 800 records".
        aware: whether an attack learns from models under the defense that it attacks.
        elsewhere: what is not folded of an answer on models that were trained elsewhere; needed if there is one.
        persons: data set → how many persons training draws from, where it is known whose each record is.
        of_attacks: data set → ``adaptive`` or ``access`` → attack → what it does about the defense that it knows
            (`attacks.Attack.adapts`), or must have beside answers (`attacks.Attack.access`).
        by_coins: whether coins put each person in or out of a training. Else all are in each.
        study: its name, for the command that would decide; "" for no command.
    """
    told = all(answer.kind == "elsewhere" for answer in answers)
    found = [] if aware or told else [Claim("unaware", "unaware", "", UNAWARE, screen=1)]
    found += [_of_persons(dataset, count, by_coins) for dataset, count in (persons or {}).items()]
    for answer in answers:
        if answer.kind == "elsewhere":
            assert elsewhere is not None  # whoever makes such answers knows what to say
            found += elsewhere(answer)
        else:
            prefix = f"{name(answer.dataset)}: " if len(answers) > 1 else ""
            units = "people" if answer.dataset in (persons or {}) else "records"
            found += _decision(answer, outside.get(answer.dataset, ()), prefix, study, units)
            found += [*_sources(answer), *_beside(answer)]
            for place, setting in enumerate(answer.told):
                found += tiles_of(answer, setting, place, outside.get(answer.dataset, ()))
        found += _of_attacks(answer.dataset, (of_attacks or {}).get(answer.dataset, {}))
        for place, setting in enumerate(answer.told):
            found += _more(answer, setting, place, outside.get(answer.dataset, ()))
        found += _choice(answer) + _unproven(answer)
    return found


def _of_persons(dataset: str, count: int, by_coins: bool) -> Claim:
    """What is protected, attacked and counted, where persons have several records."""
    tell = Telling({"dataset": dataset})
    some = tell.count(count)
    tossed, fixed = f"a coin puts each of {some} in or out of a training", f"the same {some} are in each training"
    chosen = tossed if by_coins else fixed
    words = (
        f"On {name(dataset)}, people are attacked, each with all records: {chosen}. Members and attacks' rates count "
        "people. An ε counts what its noise hides, a record or a person."
    )
    return tell.claim(f"{dataset}.persons", "persons", "", words, screen=1)


def _sources(answer: Answer) -> list[Claim]:
    """That members and others differ by themselves, or may, where that matters for what attacks find."""
    found = {}
    for one in (*answer.told, *([answer.best] if answer.best else [])):
        leak = one.leak
        if leak is None or leak.sources is None or not leak.explained:
            continue
        if leak.advantage.low > 0 or leak.shifted:
            found[one.model, one.defense] = leak.sources
    return source_claims(answer.dataset, found)


# ---------------------------------------------------------------------- the deciding sentences
def _decision(answer: Answer, outside: Sequence[str], prefix: str, study: str, units: str) -> list[Claim]:
    """The two sentences that decide, before them the trade where they do not, and below them what limits them."""
    cells = tuple((one.model, one.defense) for one in answer.told)
    dataset, found = answer.dataset, _trade(answer, prefix)
    limited = partial(_caveat, outside=outside, study=study, units=units)
    for kind, write in (("answer", DECIDING[answer.kind]), ("caveat", limited)):
        tell = Telling({"dataset": dataset})
        words = write(answer, tell)
        if words:
            words, verdict = (f"{prefix}{words}", answer.kind) if kind == "answer" else (words, "")
            found.append(tell.claim(f"{dataset}.{kind}", kind, dataset, words, verdict=verdict, cells=cells, screen=1))
    return found


def _trade(answer: Answer, prefix: str) -> list[Claim]:
    """State what a step of the budget costs and saves, where nothing is decided."""
    found = trade_of(answer)
    if found is None:
        return []
    old, new, tell = found.weaker, found.stronger, Telling({"among": found.among})
    accuracy = old.measure == ACCURACY
    cost = _stepped(tell, "step_cost", found.cost, 100 if accuracy else 1, of=old.measure, **_where(new))
    words = (
        f"{prefix}The step from {_budget(old, tell)} to {_budget(new, tell)} ({_series(new)}) costs {cost} "
        f"{'points of accuracy' if accuracy else f'in {old.use_label}'} and saves "
        f"{_stepped(tell, 'step_saved', found.saved, 1, **_where(new))} of the strongest attack's advantage."
    )
    cells = tuple((one.model, one.defense) for one in (old, new))
    return [tell.claim(f"{answer.dataset}.trade", "trade", answer.dataset, words, cells=cells, screen=1)]


def _stepped(tell: Telling, metric: str, found: Estimate, unit: int, **said: str) -> str:
    value, low, high = (rounded(unit * number, decimals=1 if unit > 1 else 2) for number in found)
    return tell(metric, found.value, f"{value} [{low}, {high}]", low=found.low, high=found.high, **said)


def _both(answer: Answer, tell: Telling) -> str:
    (chosen,) = answer.told
    sure = f"ith {tell('confidence', 1 - ALPHA, f'{100 * (1 - ALPHA):g}')} % confidence"
    numbers = f"it {_use(answer, chosen, tell)}, and {_risk(answer, chosen, tell)}."
    private = candidates(answer.settings)
    if len(private) > 1 and len(shown_to_do_both(private)) == len(private):
        return f"W{sure} every private setting tried meets both limits. Use {_cell(chosen, tell)}: {numbers}"
    return f"Use {_cell(chosen, tell)}. W{sure} it meets both limits: {numbers}"


def _open(answer: Answer, tell: Telling) -> str:
    (one,) = answer.told
    numbers = f"{_use(answer, one, tell)}, and {_risk(answer, one, tell)}."
    if answer.best is None:
        words = "The cost of privacy is unknown, since this study has no undefended model."
        return f"{words} {_cell(one, tell)} {numbers}"
    if is_within(one, answer.acceptable):
        return f"{_cell(one, tell)} may meet both limits, but these data cannot confirm it. It {numbers}"
    words = "These data cannot tell whether a private setting meets both limits. The closest"
    return f"{words}, {_cell(one, tell)}, {numbers}"


def _neither(answer: Answer, tell: Telling) -> str:
    keeping = [one for one in answer.told if one.keeps != "no"]
    protecting = [one for one in answer.told if one.protects != "no"]
    refuted = any(one.refuted for one in answer.settings)
    none = f"No private setting{' whose claim stands' if refuted else ''}"
    leaks = all(one.shown_to_leak for one in candidates(answer.settings))
    protects = "protects" if leaks else "is proven to protect"
    first = answer.told[0]
    numbers = f"{_cell(first, tell)} {_use(answer, first, tell)}"
    if not protecting:
        fails = f"{protects}" if keeping else f"keeps the {answer.use_label}, and none {protects}"
        return f"{none} {fails}. {numbers}, and {_risk(answer, first, tell)}."
    if not keeping:
        how = ", and protects" if first.protects == "yes" else ""
        return f"{none} keeps the {answer.use_label}. {numbers}{how}."
    (other,) = protecting
    but = f"but {'leaks' if first.shown_to_leak else 'is not proven to protect'}"
    how = "protects, but" if other.protects == "yes" else "may protect, but"
    return (
        f"{none} meets both limits. {numbers} {but}: {_risk(answer, first, tell)}; {_cell(other, tell)} {how} "
        f"{_use(answer, other, tell)}."
    )


def _guessing(answer: Answer, tell: Telling) -> str:
    assert answer.best is not None  # it was compared with guessing
    best = answer.best
    guess = "naming the most frequent class" if best.measure == ACCURACY else "saying the same of each record"
    return (
        "No undefended model is shown to beat guessing, so the cost of privacy cannot be measured. The best "
        f"({name(best.model)}) has {_a(best.use_label)} of {_reaches(best, tell)}; {guess} has "
        f"{_guessing_share(answer, tell)}."
    )


def _untried(answer: Answer, tell: Telling) -> str:
    one = answer.best or answer.settings[0]
    refuted = any(setting.refuted for setting in answer.settings)
    lacks = "Every privacy claim here is refuted or has no known ε" if refuted else "No model here has a known ε"
    called = f"{name(one.model)} ({look(one.series).label})"
    risk = f"No membership attack was run on {called}"
    if one.leak is not None:
        risk = f"On {called}, the strongest attack has an advantage of {_reached(answer, one, one.leak, tell)}"
    return f"{lacks}, so none can be recommended. {risk}."


DECIDING: dict[str, Callable[[Answer, Telling], str]] = {
    "both": _both,
    "open": _open,
    "neither": _neither,
    "guessing": _guessing,
    "untried": _untried,
}


def _caveat(answer: Answer, tell: Telling, outside: Sequence[str], study: str, units: str) -> str:
    """What would decide an open answer, what no proof rules out, and what no ε in the sentences covers."""
    if answer.kind in ("guessing", "untried"):
        return ""
    words = [_would_decide(answer, answer.told[0], tell, study, units)] if answer.kind == "open" else []
    words += _of_choice(answer, tell) if answer.kind == "both" else []
    words += _of_look(answer, tell)
    if answer.kind == "both" and answer.told[0].limit == 1:
        words.append("No proof rules out a stronger attack.")
    words += [
        f"{_cell(one, tell)} is not shown to beat guessing, which has {_a(one.use_label)} of "
        f"{_guessing_share(answer, tell)}."
        for one in answer.told
        if one.beats != "yes"
    ]
    outside = [*outside, *dict.fromkeys(one.grouping for one in answer.told if one.grouping)]
    if any(one.by_proof and one.leak is not None and one.leak.sources is not None for one in answer.told):
        outside.append(DIFFERENCE)
    _count(outside, tell)
    proof = " or proof" if any(one.by_proof for one in answer.told) else ""
    words += [f"No ε{proof} here covers {' or '.join(outside)}."] if outside else []
    return " ".join(words)


def _would_decide(answer: Answer, one: Setting, tell: Telling, study: str, units: str) -> str:
    if answer.best is None:
        return f"An undefended model would tell: a loss of {answer.use_label} is counted from it."
    if one.leak is None and not one.by_proof:
        return "A membership attack would tell."
    if not answer.aware and not one.by_proof:
        return "An attack whose references are trained under the same defense would tell."
    if one.conditions.hidden and not one.by_proof:
        return "Members and others from one source would tell."
    found = answer.forecast
    if found is None:
        return "More repeats or more records would tell."
    repeats = tell.count(found.repeats)
    if found.probability >= WANTED:
        probability = tell("decides", found.probability, f"{100 * found.probability:.0f}")
        command = f": dp-leakage run {study} --set repeats={found.repeats}" if study else ""
        words = f"{repeats} repeats would decide with a probability of about {probability} %{command}."
        if answer.look.later:
            return words
        error = tell("test_error", answer.look.level, f"{100 * answer.look.level:g}")
        which = "A further look, which was not planned," if answer.look.planned else "A second look"
        return f"{words} {which} may err in another {error} %."
    times = answer.times_records
    if is_within(one, answer.acceptable) and times is not None and times > 1:
        return f"No number of repeats would confirm it; about {_records(one, times, tell)} {units} could."
    likely = (
        f"about {tell('decides', found.probability, f'{100 * found.probability:.0f}')} %"
        if found.probability >= RARELY
        else f"less than {tell('decides', RARELY, f'{100 * RARELY:.0f}')} %"
    )
    return f"Even {repeats} repeats would decide with a probability of only {likely}."


def _of_choice(answer: Answer, tell: Telling) -> list[str]:
    """State which other settings meet both limits, and why the next larger budget is not recommended."""
    (chosen,) = answer.told
    private = candidates(answer.settings)
    others = [one for one in shown_to_do_both(private) if one is not chosen]
    if len(others) + 1 == len(private):
        return []  # the answer says so
    also = f"{_cell(others[0], tell)} meets" if len(others) == 1 else f"{tell.count(len(others))} other settings meet"
    weaker = ", with a weaker guarantee" if all(one.limit > chosen.limit for one in others) else ""
    words = [f"{also} both limits too{weaker}."] if others else []
    larger = next((one for one in chain_of(chosen, private) if one.spent > chosen.spent), None)
    if larger is None or larger.leak is None or larger.protects == "yes" or larger.loss.value >= chosen.loss.value:
        return words
    lost = _alone(tell, _lost(larger), larger.loss, _share(larger.loss.value), larger)
    reached = _reached(answer, larger, larger.leak, tell)
    exceeds = "exceeds the limit" if larger.shown_to_leak else "is not shown to be within the limit"
    if answer.acceptable.risk == "proven":
        exceeds = "has no proof to be within the limit"
    return [*words, f"{_budget(larger, tell)} loses less ({lost}), but its advantage, {reached}, {exceeds}."]


def _of_look(answer: Answer, tell: Telling) -> list[str]:
    """Say which of the planned looks this is; nothing for a single look."""
    count = len(answer.look.planned)
    if count < 2:
        return []
    error = tell("test_error", ALPHA, f"{100 * ALPHA:g}")
    return [f"Look {tell.count(answer.look.number)} of {tell.count(count)}; the {error} % error covers all looks."]


def _looks(look: Look, tell: Telling) -> str:
    """Say how the planned looks share the error; "" for a single look."""
    if len(look.planned) < 2:
        return ""
    *repeats, most = map(tell.count, look.planned)
    *levels, last = (tell("test_error", level, f"{100 * level:g}") for level in look.levels)
    return (
        f" Each of the planned looks, at {', '.join(repeats)} and {most} repeats, may use its part of the "
        f"{tell('test_error', ALPHA, f'{100 * ALPHA:g}')} % ({', '.join(levels)} and {last} %), so that looking again "
        "adds no error."
    )


def _records(one: Setting, times: float, tell: Telling) -> str:
    """Return so many times the records that a setting was measured on, in two digits, rounded up."""
    numbers = [number.asked or number.records for number in one.conditions.use[:1] + one.conditions.leak[:1]]
    wanted = times * sum(records for records in numbers if np.isfinite(records))
    return tell.count(two_digits(wanted))


def given(one: Setting, outside: Sequence[str], tell: Telling) -> str:
    """What a proof about a cell takes as known, since its ε does not cover it; "" for nothing."""
    if one.proven is None:
        return ""
    known = [*outside, *([one.grouping] if one.grouping else [])]
    known += [ONE_SOURCE] if one.leak is not None and one.leak.sources is not None else []
    _count(known, tell)
    return " and ".join(known)


def _count(phrases: Sequence[str], tell: Telling) -> None:
    """Tells of the numbers in such phrases."""
    for digits in (digits for words in phrases for digits in _digits(words)):
        tell("count", float(digits.replace(",", "")), digits)


def _digits(words: str) -> list[str]:
    return [word.strip(".,;()") for word in words.split() if word[:1].isdigit()]


def _cell(one: Setting, tell: Telling, accountant: bool = False) -> str:
    """``ε = 10 (DP-SGD, MLP)``; on request with the accountant that chose its noise, ``(DP-SGD, RDP, MLP)``."""
    claim = ""
    if np.isfinite(one.row["epsilon"]):
        claim = f"{name(one.holds_for)}; " if one.holds_for else ""
        if not one.holds:
            claim = f"claimed as {tell.plain('claimed_epsilon', one.row['epsilon'], **_where(one))}; "
    series = f"{look(one.series).label}, {name(one.model)}" if accountant else _series(one)
    return f"{_budget(one, tell)} ({claim}{series})"


def _series(one: Setting) -> str:
    """``DP-SGD, MLP``."""
    return f"{defense_label(one.series)}, {name(one.model)}"


def _budget(one: Setting, tell: Telling) -> str:
    """``ε = 10``; what was spent, where the ε that it is named by does not hold."""
    where = _where(one)
    if np.isfinite(one.row["epsilon"]):
        if one.holds:
            return f"ε = {tell.plain('claimed_epsilon', one.row['epsilon'], **where)}"
        said = {"accounted_by": one.accountant, "neighbors": one.neighbors}
        return f"ε = {tell('epsilon_spent', one.spent, at_most(one.spent), **said, **where)}"
    if np.isfinite(one.row["noise_multiplier"]):
        return f"σ = {tell.plain('noise_multiplier', one.row['noise_multiplier'], **where)}"
    budget = f"target {one.row['target']}"  # directional noise that was chosen by risk
    for digits in _digits(budget):
        tell("target", float(digits), digits, **where)
    return budget


def _use(answer: Answer, one: Setting, tell: Telling) -> str:
    """``loses 6.1 % of the accuracy (limit 10 %)``; a gain counts as one only if chance does not explain it."""
    if not np.isfinite(one.loss.value):
        reaches = _reaches(one, tell)
        if one.measure == ACCURACY:
            return f"is right on {reaches} of new records"
        return f"has {_a(one.use_label)} of {reaches} on new records"
    gains = _share(one.loss.value)[0] == "−"
    if gains and one.loss.high >= 0:
        return f"loses no {one.use_label} as measured (limit {_loss_limit(answer, tell)})"
    near = rounded(100 * abs(one.loss.value), 100 * answer.acceptable.accuracy_loss, 1)
    lost = _alone(tell, _lost(one), one.loss, f"{near} %", one)
    if gains:
        return f"is {lost} above the best undefended {one.use_label}"
    return f"loses {lost} of the {one.use_label} (limit {_loss_limit(answer, tell)})"


def _lost(one: Setting) -> str:
    """Return the metric's name of a loss against the best undefended model."""
    return "accuracy_loss_best" if one.measure == ACCURACY else "utility_loss_best"


def _reaches(one: Setting, tell: Telling) -> str:
    """Return a setting's value in the measure of use, without its interval: accuracy in per cent."""
    if one.measure == ACCURACY:
        return _alone(tell, "test_accuracy", one.accuracy, _share(one.accuracy.value), one)
    return _alone(tell, METRIC, one.accuracy, fraction(one.accuracy.value), one, of=one.measure)


def _a(noun: str) -> str:
    """``an AUROC``, ``a balanced accuracy``; letters are read by their names."""
    return f"{'an' if noun[:1].lower() in 'aeiou' or noun[:2] in ('F1', 'MC') else 'a'} {noun}"


def _risk(answer: Answer, one: Setting, tell: Telling) -> str:
    """What is proven where that protects or alone counts, else what the strongest attack reaches; against the limit."""
    limit = f"(limit {_risk_limit(answer, tell)})"
    if one.by_proof and one.proven is not None:
        proven = one.proven.advantage
        shown = at_most_beside(proven, answer.acceptable.advantage)
        most = tell("advantage_proven", proven, shown, neighbors=one.proven.neighbors, **_where(one))
        return f"no attack can have an advantage above {most} {limit}"
    if one.leak is None:
        return "no membership attack was run on it"
    return f"the strongest attack's advantage is {_reached(answer, one, one.leak, tell)} {limit}"


def _reached(answer: Answer, one: Setting, leak: Leak, tell: Telling) -> str:
    near = rounded(leak.advantage.value, answer.acceptable.advantage)
    return _alone(tell, "reached_advantage", leak.advantage, near, one, **_strongest(leak))


def _alone(tell: Telling, metric: str, found: Estimate, shown: str, one: Setting, **said: str) -> str:
    """The value alone; its interval is in the claim, and on the tiles."""
    return tell(metric, found.value, shown, low=found.low, high=found.high, **said, **_where(one))


def _loss_limit(answer: Answer, tell: Telling) -> str:
    value = answer.acceptable.accuracy_loss
    return f"{tell('limit_accuracy_loss', value, f'{100 * value:g}')} %"


def _risk_limit(answer: Answer, tell: Telling) -> str:
    return tell("limit_advantage", answer.acceptable.advantage, f"{answer.acceptable.advantage:g}")


def _guessing_share(answer: Answer, tell: Telling) -> str:
    if answer.measure == ACCURACY:
        return f"{tell('guessing', answer.guessing, f'{100 * answer.guessing:.1f}')} %"
    return tell("guessing", answer.guessing, fraction(answer.guessing), of=answer.measure)


def _share(value: float) -> str:
    return f"{round(100 * value, 1) + 0.0:.1f} %".replace("-", "−")


def _where(one: Setting) -> dict[str, str]:
    return {"dataset": one.dataset, "model": one.model, "defense": one.defense}


def _strongest(leak: Leak) -> dict[str, str]:
    """The qualifiers of what the strongest attack reaches."""
    return {"attack": STRONGEST, "of": leak.attack}


def use_words(one: Setting, tell: Telling) -> str:
    """Return a setting's value in the measure of use, with its interval: accuracy in per cent."""
    if one.measure == ACCURACY:
        return tell.percent("test_accuracy", one.accuracy, **_where(one))
    return tell.fraction(METRIC, one.accuracy, of=one.measure, **_where(one))


# ---------------------------------------------------------------------- below the first figure
def _beside(answer: Answer) -> list[Claim]:
    """What losses are counted from."""
    best = answer.best
    if best is None or answer.kind in ("guessing", "untried"):
        return []
    tell = Telling(_where(best))
    if best.measure == ACCURACY:
        words = (
            f"Losses are relative to the undefended model that was right most often, {name(best.model)}: on "
            f"{use_words(best, tell)} of new records."
        )
    else:
        words = (
            f"Losses are relative to the undefended model with the largest {best.use_label} on new records, "
            f"{name(best.model)}: {use_words(best, tell)}. Guessing has {_guessing_share(answer, tell)}."
        )
    if best.leak is not None:
        reached = tell.fraction("reached_advantage", best.leak.advantage, **_strongest(best.leak))
        words += f" On it the strongest attack has an advantage of {reached}."
    return [
        tell.claim(
            f"{answer.dataset}.baseline",
            "baseline",
            answer.dataset,
            words,
            cells=((best.model, best.defense),),
            screen=2,
        )
    ]


def tiles_of(answer: Answer, one: Setting, place: int = 0, outside: Sequence[str] = ()) -> list[Claim]:
    """The use, what was measured, what is proven, and the ε, with the interval of each number by itself.

    ``outside`` is what no ε of the data set covers.
    """
    tell = Telling(_where(one))
    right = use_words(one, tell)
    figure, _, ends = right.partition(" [")
    words = f"[{ends}"
    if np.isfinite(one.loss.value):
        words += f"; loses {tell.percent(_lost(one), one.loss)}"
    words += _on_half(one, tell)
    found = [_tile(answer, one, place, "accuracy", _heading(one), figure, words, tell)]
    if one.leak is not None:
        tell = Telling(_where(one))
        reached = tell.fraction("reached_advantage", one.leak.advantage, **_strongest(one.leak))
        figure, _, ends = reached.partition(" [")
        words = f"[{ends} advantage over guessing; {name(one.leak.attack)}{_of_tried(one.leak, tell)}"
        found.append(_tile(answer, one, place, "measured", "The strongest attack tried", figure, words, tell))
    tell = Telling(_where(one))
    if one.proven is None:
        figure, words = "–", "nothing is proven of attacks that were not tried"
    else:
        limit = one.proven.advantage
        figure = tell("advantage_proven", limit, rounded_up(limit), neighbors=one.proven.neighbors)
        little = "; that rules out next to nothing" if one.proven.advantage >= SAYS_LITTLE else ""
        known = given(one, outside, tell)
        words = f"advantage, proven for any attack{f' given {known}' if known else ''}{little}"
    found.append(_tile(answer, one, place, "proven", "No attack can exceed", figure, words, tell))
    if one.private:
        tell = Telling(_where(one))
        figure, neighbors = _epsilon(one, tell)
        whose = f"{name(neighbors)} neighbors" if neighbors else "neighbors not known"
        delta = one.row["delta"]
        words = f"{whose}, δ = {tell('delta', delta, f'{delta:g}')}{_chosen_with(one)}"
        note = one.row.get("accounting_note")
        words += f"; {note}" if isinstance(note, str) and note else ""
        found.append(_tile(answer, one, place, "epsilon", "ε", figure, words, tell))
    return found


def _heading(one: Setting) -> str:
    """``Accuracy on new records``."""
    return f"{capital(one.use_label)} on new records"


def _epsilon(one: Setting, tell: Telling) -> tuple[str, str]:
    """The ε that the page names a private setting by, and its neighbors; the accounted one if that does not hold."""
    if one.holds and np.isfinite(one.row["epsilon"]):
        neighbors = one.holds_for or one.neighbors
        return tell.plain("claimed_epsilon", one.row["epsilon"], neighbors=neighbors), neighbors
    said = {"accounted_by": one.accountant, "neighbors": one.neighbors}
    return tell("epsilon_spent", one.spent, at_most(one.spent), **said), one.neighbors


def budget_words(one: Setting) -> str:
    """``ε = 4``, ``no privacy``; "" of other defenses."""
    if one.private:
        return f"ε = {_epsilon(one, Telling())[0]}"
    return "no privacy" if one.defense == "none" else ""


def epsilon_words(one: Setting) -> str:
    """``ε = 4 at δ = 1e-05 for add/remove neighbors``."""
    figure, neighbors = _epsilon(one, Telling())
    whose = f"{name(neighbors)} neighbors" if neighbors else "neighbors that are not known"
    return f"ε = {figure} at δ = {one.row['delta']:g}, for {whose}{_chosen_with(one)}"


def _chosen_with(one: Setting) -> str:
    """Name the accountant that chose the noise by an ε; "" if none did."""
    accountant = one.series.accountant
    chosen = np.isfinite(one.row["epsilon"]) and accountant not in ("", one.series.mechanism)
    return f"; noise chosen with {name(accountant)}" if chosen else ""


def _on_half(one: Setting, tell: Telling) -> str:
    """With coins, that each model trained on about half of the records: more records give a higher accuracy."""
    members, records = (int(one.row.get(key, 0)) for key in ("n_members", "n_records"))
    if members >= records:
        return ""
    return f"; each model trained on about half of the records, {tell.count(members)} of {tell.count(records)}"


def _tile(
    answer: Answer, one: Setting, place: int, kind: str, label: str, figure: str, words: str, tell: Telling
) -> Claim:
    return tell.claim(
        f"{answer.dataset}.{kind}.{place}",
        kind,
        answer.dataset,
        words,
        label=label,
        figure=figure,
        cells=((one.model, one.defense),),
        screen=2,
    )


def _of_tried(leak: Leak, tell: Telling) -> str:
    return f"; of {tell.count(leak.tried)} attacks, corrected for the choice" if leak.tried > 1 else ""


def _of_attacks(dataset: str, told: Mapping[str, Mapping[str, str]]) -> list[Claim]:
    """Which attacks know what a defense does to the answers, and which have more than answers."""
    called = {"adaptive": "The adaptive attack", "access": "The attack"}
    sentences = {
        kind: " ".join(f"{called[kind]} {name(attack)} {words}." for attack, words in attacks.items())
        for kind, attacks in told.items()
    }
    return [Claim(f"{dataset}.{kind}", kind, dataset, words, screen=2) for kind, words in sentences.items() if words]


# ---------------------------------------------------------------------- folded
def _more(answer: Answer, one: Setting, place: int, outside: Sequence[str]) -> list[Claim]:
    """Of one cell: its own undefended twin, small rates, what is proven, what an accusation is worth, its tuning."""
    twin = next((two for two in answer.settings if two.model == one.model and two.defense == "none"), None)
    if answer.kind == "elsewhere":
        told = {"accusation": lambda tell: risk_words(one.leak, None, tell)}
    else:
        told = {
            "rates": lambda tell: _rates_of(one, tell),
            "twin": lambda tell: _twin(one, twin, tell),
            "limits": lambda tell: proven_words(one.proven, tell, given(one, outside, tell)),
            "accusation": lambda tell: risk_words(one.leak, one.proven, tell, given(one, outside, tell)),
            "tuning": lambda tell: tuned_words(one.tuned, tell),
            "untuned": lambda tell: more_tuning(one.tuned) if answer.kind in ("open", "neither") else "",
        }
    found = []
    for kind, write in told.items():
        tell = Telling(_where(one))
        words = write(tell)
        if words:
            cells = ((one.model, one.defense),)
            claim = f"{answer.dataset}.{kind}.{place}"
            found.append(tell.claim(claim, kind, answer.dataset, words, cells=cells))
    return found


def _rates_of(one: Setting, tell: Telling) -> str:
    """The cell, and whom its strongest attack identifies."""
    cell = f"{_cell(one, tell, accountant=True)}:"
    if one.leak is None:
        return f"{cell} no membership attack was run on it."
    judged = "the interval excludes 0" if one.leak.advantage.low > 0 else "chance alone could explain that"
    reached = tell.fraction("reached_advantage", one.leak.advantage, **_strongest(one.leak))
    identified = _identified(one.leak, tell)
    auc = tell.fraction("membership_auc", one.leak.auc, attack=one.leak.attack)
    whose = f"{name(one.leak.attack)}{_of_tried(one.leak, tell)}"
    return (
        f"{cell} the strongest attack ({whose}) has an advantage of {reached}; {judged}.{identified} The AUC of "
        f"{name(one.leak.attack)} is {auc}."
    )


def _identified(leak: Leak, tell: Telling) -> str:
    shares = []
    for fpr, tpr in leak.tprs.items():
        share = tell.percent("reached_tpr", tpr, attack=STRONGEST, fpr=fpr)
        shares.append(f"{share} of the members at {tell('fpr', fpr, f'{100 * fpr:g}')} % false positives")
    rate = "each rate" if shares[1:] else "that rate"
    which = "It" if leak.tried == 1 else f"The attack that is strongest at {rate}"
    identified = f"{which} identifies {' and '.join(shares)}." if shares else ""
    return "".join(f" {words}" for words in (identified, too_few_words(leak, tell)) if words)


def _twin(one: Setting, twin: Setting | None, tell: Telling) -> str:
    """Against the undefended model of the same architecture."""
    if twin is None or one.twin_loss is None or twin is one:
        return ""
    lost = tell.percent("accuracy_loss" if one.measure == ACCURACY else LOSS, one.twin_loss)
    words = f"Against the undefended {name(one.model)} itself it loses {lost}"
    if twin.leak is not None:
        reached = tell.fraction("reached_advantage", twin.leak.advantage, **_strongest(twin.leak), **_where(twin))
        words += f", where the strongest attack has an advantage of {reached}"
    return f"{words}."


def _choice(answer: Answer) -> list[Claim]:
    """How the test pays for the choice, and that ε does not."""
    if answer.tried < 2 or not answer.told:
        return []
    tell = Telling({"dataset": answer.dataset})
    fail = sum(one.judgment.aside for one in candidates(answer.settings))
    aside = (
        f" {tell.count(fail)} of {tell.count(answer.tried)} settings surely fail and were set aside." if fail else ""
    )
    error = answer.look.level / max(answer.sharers, 1)
    words = (
        "A setting is tested as a whole, one-sided: against each undefended model, against guessing, and for each "
        f"attack at each of {tell.count(len(SHARES))} thresholds.{aside} Each test may err with "
        f"{tell('test_error', error, f'{100 * error:.2g}')} %, so that with "
        f"{tell('confidence', 1 - ALPHA, f'{100 * (1 - ALPHA):g}')} % confidence every setting that passes meets both "
        f"limits.{_looks(answer.look, tell)} "
        f"{choice_words(answer.tried, tell, len(answer.told), answer.kind == 'both')}"
    ).rstrip()
    return [tell.claim(f"{answer.dataset}.choice", "choice", answer.dataset, words)]


def _unproven(answer: Answer) -> list[Claim]:
    """Defenses that prove nothing: what was measured under them, with their use."""
    others = [one for one in answer.settings if not one.private and one.defense != "none" and one.leak is not None]
    if not others or answer.kind == "elsewhere":
        return []
    tell = Telling({"dataset": answer.dataset})
    told = []
    for one in others:
        assert one.leak is not None  # only such were kept
        where = _where(one) | _strongest(one.leak)
        told.append(
            f"{look(one.series).label}{_strength(one, tell)} ({name(one.model)}) "
            f"{tell.fraction('reached_advantage', one.leak.advantage, **where)} at {_a(one.use_label)} of "
            f"{use_words(one, tell)}"
        )
    noisy = any(one.row["accountant"] for one in others)
    why = "Settings without a known ε for what attacks ask here" if noisy else "Defenses without differential privacy"
    words = f"{why} give no guarantee. Measured advantage: {'; '.join(told)}."
    return [tell.claim(f"{answer.dataset}.unproven", "unproven", answer.dataset, words)]


def _strength(one: Setting, tell: Telling) -> str:
    """``, ε = 2``: what tells settings apart whose noise has one accountant."""
    if not one.row["accountant"]:
        return ""
    if np.isfinite(one.row["epsilon"]):
        return f", ε = {tell.plain('claimed_epsilon', one.row['epsilon'], **_where(one))}"
    if np.isfinite(one.row["noise_multiplier"]):
        return f", σ = {tell.plain('noise_multiplier', one.row['noise_multiplier'], **_where(one))}"
    return ""
