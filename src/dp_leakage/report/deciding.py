"""The bold sentences: a writer for each kind of answer, of at most two sentences."""

from collections.abc import Callable

from dp_leakage.common.utilities import ACCURACY
from dp_leakage.report.answer import Answer
from dp_leakage.report.claims import ClaimWriter
from dp_leakage.report.decision import ALPHA
from dp_leakage.report.phrases import (
    add_article,
    describe_loss,
    describe_risk,
    name_setting,
    write_advantage,
    write_guessing,
    write_use_alone,
)
from dp_leakage.report.setting import candidates, is_within, shown_to_do_both
from dp_leakage.table.looks import look
from dp_leakage.table.words import name


def _recommend(answer: Answer, writer: ClaimWriter) -> str:
    """Recommend a setting that is shown to meet both limits."""
    (chosen,) = answer.told
    sure = f"ith {writer('confidence', 1 - ALPHA, f'{100 * (1 - ALPHA):g}')} % confidence"
    numbers = f"it {describe_loss(answer, chosen, writer)}, and {describe_risk(answer, chosen, writer)}."
    private = candidates(answer.settings)
    if len(private) > 1 and len(shown_to_do_both(private)) == len(private):
        return f"W{sure} every private setting tried meets both limits. Use {name_setting(chosen, writer)}: {numbers}"
    return f"Use {name_setting(chosen, writer)}. W{sure} it meets both limits: {numbers}"


def _leave_open(answer: Answer, writer: ClaimWriter) -> str:
    """Say that the data do not decide, with the numbers of the setting that comes closest."""
    (one,) = answer.told
    numbers = f"{describe_loss(answer, one, writer)}, and {describe_risk(answer, one, writer)}."
    if answer.best is None:
        words = "The cost of privacy is unknown, since this study has no undefended model."
        return f"{words} {name_setting(one, writer)} {numbers}"
    if is_within(one, answer.acceptable):
        return f"{name_setting(one, writer)} may meet both limits, but these data cannot confirm it. It {numbers}"
    words = "These data cannot tell whether a private setting meets both limits. The closest"
    return f"{words}, {name_setting(one, writer)}, {numbers}"


def _reject_all(answer: Answer, writer: ClaimWriter) -> str:
    """Say which limits no private setting meets, by the settings that come closest to each."""
    keeping = [one for one in answer.told if one.keeps != "no"]
    protecting = [one for one in answer.told if one.protects != "no"]
    refuted = any(one.refuted for one in answer.settings)
    none = f"No private setting{' whose claim stands' if refuted else ''}"
    leaks = all(one.shown_to_leak for one in candidates(answer.settings))
    protects = "protects" if leaks else "is proven to protect"
    first = answer.told[0]
    numbers = f"{name_setting(first, writer)} {describe_loss(answer, first, writer)}"
    if not protecting:
        fails = f"{protects}" if keeping else f"keeps the {answer.use_label}, and none {protects}"
        return f"{none} {fails}. {numbers}, and {describe_risk(answer, first, writer)}."
    if not keeping:
        how = ", and protects" if first.protects == "yes" else ""
        return f"{none} keeps the {answer.use_label}. {numbers}{how}."
    (other,) = protecting
    but = f"but {'leaks' if first.shown_to_leak else 'is not proven to protect'}"
    how = "protects, but" if other.protects == "yes" else "may protect, but"
    risk = describe_risk(answer, first, writer)
    second = f"{name_setting(other, writer)} {how} {describe_loss(answer, other, writer)}"
    return f"{none} meets both limits. {numbers} {but}: {risk}; {second}."


def _compare_with_guessing(answer: Answer, writer: ClaimWriter) -> str:
    """Say that no model is shown to beat guessing, by the best undefended model."""
    assert answer.best is not None  # it was compared with guessing
    best = answer.best
    guess = "naming the most frequent class" if best.measure == ACCURACY else "saying the same of each record"
    return (
        "No undefended model is shown to beat guessing, so the cost of privacy cannot be measured. The best "
        f"({name(best.model)}) has {add_article(best.use_label)} of {write_use_alone(best, writer)}; {guess} has "
        f"{write_guessing(answer, writer)}."
    )


def _report_no_budget(answer: Answer, writer: ClaimWriter) -> str:
    """Say that no setting has a valid ε, with the leakage of the best undefended model."""
    one = answer.best or answer.settings[0]
    refuted = any(setting.refuted for setting in answer.settings)
    lacks = "Every privacy claim here is refuted or has no known ε" if refuted else "No model here has a known ε"
    called = f"{name(one.model)} ({look(one.series).label})"
    risk = f"No membership attack was run on {called}"
    if one.leak is not None:
        risk = f"On {called}, the strongest attack has an advantage of {write_advantage(answer, one, one.leak, writer)}"
    return f"{lacks}, so none can be recommended. {risk}."


DECIDING: dict[str, Callable[[Answer, ClaimWriter], str]] = {
    "both": _recommend,
    "open": _leave_open,
    "neither": _reject_all,
    "guessing": _compare_with_guessing,
    "untried": _report_no_budget,
}
