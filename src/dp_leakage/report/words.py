"""The answer in sentences, with names that need no explanation."""

import numpy as np

from dp_leakage.figures.numbers import fraction, interval
from dp_leakage.figures.style import Series, look, name, number
from dp_leakage.metrics.intervals import Estimate
from dp_leakage.report.answer import Answer
from dp_leakage.report.leak import Leak
from dp_leakage.report.proven import choice_words, proven_words, risk_words
from dp_leakage.report.tuned import more_tuning, tuned_words

UNAWARE = (
    "No attack here learns from models that were trained under the same defence. One that does may find far more, so a "
    "weak result below is no evidence of protection."
)


def sentences(answer: Answer, tolerance: float) -> list[str]:
    """The answer in paragraphs: which budget, what leaks there, what is proven, what that means, and the choice."""
    if answer.verdict == "guessing":
        return [_no_better(answer), *_unproven(answer)]
    risk = risk_words(answer.leak, answer.proven)
    choice = choice_words(answer.tried) if answer.verdict in ("met", "open") else ""
    found = [_budget(answer, tolerance), _leaking(answer), proven_words(answer.proven), risk]
    return [words for words in [*found, choice, tuned_words(answer.tuned), *_unproven(answer)] if words]


def look_of(answer: Answer) -> str:
    """The label of the answer's series."""
    row = answer.row
    return look(Series(row["mechanism"], row["accountant"], row["unit"], row["block"])).label


def percent(estimate: Estimate) -> str:
    """A fraction as ``12.3 % [10.1, 14.5]``."""
    value, low, high = (f"{round(100 * x, 1) + 0.0:.1f}".replace("-", "−") for x in estimate)
    return f"{value} % [{low}, {high}]"


def _budget(answer: Answer, tolerance: float) -> str:
    claim = (
        f"ε = {number(answer.claimed)}"
        if np.isfinite(answer.claimed)
        else f"σ = {number(answer.row['noise_multiplier'])}"
    )
    cell = f"{claim} ({look_of(answer)}; {name(answer.model)})"
    limit = f"keeps the accuracy loss below {100 * tolerance:g} %"
    lost = f"costs {percent(answer.loss)} of the undefended accuracy"
    on = f"On {name(answer.dataset)}, "
    if answer.verdict == "met":
        return f"{on}the smallest budget tried that {limit} is {cell}: it {lost}{_spent(answer)}."
    if answer.verdict == "open":
        return (
            f"{on}no budget tried surely {limit} with these training settings. The smallest that may is {cell}: it "
            f"{lost}{_spent(answer)}; more records or repeats would tell. {more_tuning(answer.tuned)}"
        )
    none = f"{on}no budget tried {limit} with these training settings, so none is recommended."
    if answer.at_chance:
        assert answer.accuracy is not None  # it was compared with guessing
        most = f"Even the most accurate private model, {cell}, is right on {percent(answer.accuracy)} of new records, "
        return f"{none} {most}no better than guessing ({_guessed(answer)}). {more_tuning(answer.tuned)}"
    return f"{none} The most accurate private model, {cell}, {lost}{_spent(answer)}. {more_tuning(answer.tuned)}"


def _no_better(answer: Answer) -> str:
    assert answer.undefended_accuracy is not None  # it was compared with guessing
    return (
        f"On {name(answer.dataset)}, the undefended model ({name(answer.model)}) is itself right on "
        f"{percent(answer.undefended_accuracy)} of new records, no better than guessing ({_guessed(answer)}). What "
        "privacy costs cannot be told from it, and no budget is recommended."
    )


def _guessed(answer: Answer) -> str:
    return f"{100 * answer.guessing:.1f} % for always naming the most frequent class"


def _spent(answer: Answer) -> str:
    if not np.isfinite(answer.spent):
        return ""
    neighbours = f" ({name(answer.neighbours)} neighbours)" if answer.neighbours else ""
    return f", and its training really spent ε = {number(answer.spent)}{neighbours}"


def _leaking(answer: Answer) -> str:
    leak = answer.leak
    if leak is None:
        return "No membership attack was run on it."
    judged = "more than chance explains" if leak.advantage.low > 0 else "which chance alone could explain"
    found = f"There an attacker reaches an advantage of {interval(*leak.advantage)} over guessing, {judged}"
    named = "".join(f", and names {words}" for words in [rates_words(leak)] if words)
    before = f" Without any defence: {reach_words(answer.undefended_leak)}." if answer.undefended_leak else ""
    return f"{found}{named} ({by_words(leak)}).{before}"


def reach_words(leak: Leak) -> str:
    """``an advantage of 0.4 [0.3, 0.5], names 12 % […] of the members at 1 % false alarms (ATTACK)``."""
    named = "".join(f", names {words}" for words in [rates_words(leak)] if words)
    return f"an advantage of {interval(*leak.advantage)}{named} ({by_words(leak)})"


def by_words(leak: Leak) -> str:
    """The attack, the number of attacks tried, and its AUC."""
    strongest = f", the strongest of {leak.tried} attacks" if leak.tried > 1 else ""
    return f"{name(leak.attack)}{strongest}, AUC {fraction(leak.auc.value)}"


def rates_words(leak: Leak) -> str:
    """How many members are named at small rates of false alarms; "" if there are too few records for any."""
    shares = [(percent(tpr), f" at {100 * fpr:g} % false alarms") for fpr, tpr in leak.tprs.items()]
    whom = [" of the members", *[""] * len(shares)]  # only in the first
    return " and ".join(f"{share}{of}{rate}" for (share, rate), of in zip(shares, whom, strict=False))


def _unproven(answer: Answer) -> list[str]:
    if not answer.unproven:
        return []
    found = [f"{look(series).label} {interval(*leak.advantage)}" for series, leak in answer.unproven.items()]
    return [
        "Defences without differential privacy promise nothing. The advantage that an attacker reaches under them: "
        f"{'; '.join(found)}."
    ]
