"""Sentences below the bold ones: what would decide an open answer, and the limits of a decided one."""

from collections.abc import Sequence

import numpy as np

from dp_leakage.common.rounding import two_digits
from dp_leakage.report.answer import Answer
from dp_leakage.report.claims import ClaimWriter
from dp_leakage.report.decision import ALPHA, Look
from dp_leakage.report.forecast import WANTED
from dp_leakage.report.phrases import add_article, name_setting, record_numbers, write_guessing
from dp_leakage.report.setting import Setting, is_within

DIFFERENCE = "a difference between members and others"
RARELY = 0.05  # a smaller probability is not stated


def write_caveat(answer: Answer, writer: ClaimWriter, outside: Sequence[str], study: str, units: str) -> str:
    """Return the caveat of an answer: the way to decide it, and the limits of its proofs; "" without one.

    Args:
        answer: of one data set.
        writer: writes numbers.
        outside: preparation that no ε covers.
        study: name of the study, for the command that would decide; "" for no command.
        units: ``records`` or ``people``.
    """
    if answer.kind in ("guessing", "untried"):
        return ""
    words = [_say_what_decides(answer, answer.told[0], writer, study, units)] if answer.kind == "open" else []
    words += _name_look(answer, writer)
    if answer.kind == "both" and answer.told[0].limit == 1:
        words.append("No proof rules out a stronger attack.")
    words += [
        f"{name_setting(one, writer)} is not shown to beat guessing, which has {add_article(one.use_label)} of "
        f"{write_guessing(answer, writer)}."
        for one in answer.told
        if one.beats != "yes"
    ]
    outside = [*outside, *dict.fromkeys(one.grouping for one in answer.told if one.grouping)]
    if any(one.by_proof and one.leak is not None and one.leak.sources is not None for one in answer.told):
        outside.append(DIFFERENCE)
    record_numbers(outside, writer)
    proof = " or proof" if any(one.by_proof for one in answer.told) else ""
    words += [f"No ε{proof} here covers {' or '.join(outside)}."] if outside else []
    return " ".join(words)


def _say_what_decides(answer: Answer, one: Setting, writer: ClaimWriter, study: str, units: str) -> str:
    """Name the missing model or attack, or the number of repeats or records that would decide."""
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
    repeats = writer.count(found.repeats)
    if found.probability >= WANTED:
        probability = writer("decides", found.probability, f"{100 * found.probability:.0f}")
        command = f": dp-leakage run {study} --set repeats={found.repeats}" if study else ""
        words = f"{repeats} repeats would decide with a probability of about {probability} %{command}."
        if answer.look.later:
            return words
        error = writer("test_error", answer.look.level, f"{100 * answer.look.level:g}")
        which = "A further look, which was not planned," if answer.look.planned else "A second look"
        return f"{words} {which} may err in another {error} %."
    times = answer.times_records
    if is_within(one, answer.acceptable) and times is not None and times > 1:
        return f"No number of repeats would confirm it; about {_write_records(one, times, writer)} {units} could."
    likely = (
        f"about {writer('decides', found.probability, f'{100 * found.probability:.0f}')} %"
        if found.probability >= RARELY
        else f"less than {writer('decides', RARELY, f'{100 * RARELY:.0f}')} %"
    )
    return f"Even {repeats} repeats would decide with a probability of only {likely}."


def _write_records(one: Setting, times: float, writer: ClaimWriter) -> str:
    """Return so many times the records that a setting was measured on, in two digits, rounded up."""
    numbers = [number.asked or number.records for number in one.conditions.use[:1] + one.conditions.leak[:1]]
    wanted = times * sum(records for records in numbers if np.isfinite(records))
    return writer.count(two_digits(wanted))


def _name_look(answer: Answer, writer: ClaimWriter) -> list[str]:
    """Say which of the planned looks this is; nothing for a single look."""
    count = len(answer.look.planned)
    if count < 2:
        return []
    error = writer("test_error", ALPHA, f"{100 * ALPHA:g}")
    return [f"Look {writer.count(answer.look.number)} of {writer.count(count)}; the {error} % error covers all looks."]


def describe_looks(look: Look, writer: ClaimWriter) -> str:
    """Say how the planned looks share the error; "" for a single look."""
    if len(look.planned) < 2:
        return ""
    *repeats, most = map(writer.count, look.planned)
    *levels, last = (writer("test_error", level, f"{100 * level:g}") for level in look.levels)
    return (
        f" Each of the planned looks, at {', '.join(repeats)} and {most} repeats, may use its part of the "
        f"{writer('test_error', ALPHA, f'{100 * ALPHA:g}')} % ({', '.join(levels)} and {last} %), so that looking "
        "again adds no error."
    )
