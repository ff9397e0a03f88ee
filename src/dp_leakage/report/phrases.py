"""Phrases about one setting, with their numbers: its name, its use, its leakage and its limits."""

from collections.abc import Sequence

import numpy as np

from dp_leakage.common.utilities import ACCURACY
from dp_leakage.metrics import STRONGEST
from dp_leakage.metrics.intervals import Estimate
from dp_leakage.metrics.utility import METRIC
from dp_leakage.report.answer import Answer
from dp_leakage.report.claims import ClaimWriter
from dp_leakage.report.guarantees import too_few_words
from dp_leakage.report.leak import Leak
from dp_leakage.report.setting import Setting
from dp_leakage.table.looks import defense_label, look
from dp_leakage.table.numbers import at_most, at_most_beside, fraction, rounded
from dp_leakage.table.words import name

ONE_SOURCE = "that members and others come from one source"  # else a proof bounds only what training adds


def name_setting(one: Setting, writer: ClaimWriter, accountant: bool = False) -> str:
    """Return ``ε = 10 (DP-SGD, MLP)``, or with the accountant that chose the noise, ``ε = 10 (DP-SGD, RDP, MLP)``."""
    claim = ""
    if np.isfinite(one.row["epsilon"]):
        claim = f"{name(one.holds_for)}; " if one.holds_for else ""
        if not one.holds:
            claim = f"claimed as {writer.plain('claimed_epsilon', one.row['epsilon'], **cell_fields(one))}; "
    series = f"{look(one.series).label}, {name(one.model)}" if accountant else name_series(one)
    return f"{name_budget(one, writer)} ({claim}{series})"


def name_series(one: Setting) -> str:
    """Return ``DP-SGD, MLP``."""
    return f"{defense_label(one.series)}, {name(one.model)}"


def name_budget(one: Setting, writer: ClaimWriter) -> str:
    """Return ``ε = 10``: the target ε if it is proven, otherwise the accounted ε. Without ε: ``σ = 2`` or a target."""
    where = cell_fields(one)
    if np.isfinite(one.row["epsilon"]):
        if one.holds:
            return f"ε = {writer.plain('claimed_epsilon', one.row['epsilon'], **where)}"
        said = {"accounted_by": one.accountant, "neighbors": one.neighbors}
        return f"ε = {writer('epsilon_spent', one.spent, at_most(one.spent), **said, **where)}"
    if np.isfinite(one.row["noise_multiplier"]):
        return f"σ = {writer.plain('noise_multiplier', one.row['noise_multiplier'], **where)}"
    budget = f"target {one.row['target']}"  # directional noise that was chosen by risk
    for digits in find_digits(budget):
        writer("target", float(digits), digits, **where)
    return budget


def write_epsilon(one: Setting, writer: ClaimWriter) -> tuple[str, str]:
    """Return the target ε of a private setting if it is proven, otherwise the accounted ε; and its neighbors."""
    if one.holds and np.isfinite(one.row["epsilon"]):
        neighbors = one.holds_for or one.neighbors
        return writer.plain("claimed_epsilon", one.row["epsilon"], neighbors=neighbors), neighbors
    said = {"accounted_by": one.accountant, "neighbors": one.neighbors}
    return writer("epsilon_spent", one.spent, at_most(one.spent), **said), one.neighbors


def label_budget(one: Setting) -> str:
    """Return ``ε = 4`` or ``no privacy``; "" for defenses without an ε."""
    if one.private:
        return f"ε = {write_epsilon(one, ClaimWriter())[0]}"
    return "no privacy" if one.defense == "none" else ""


def describe_epsilon(one: Setting) -> str:
    """Return ``ε = 4 at δ = 1e-05, for add/remove neighbors``."""
    figure, neighbors = write_epsilon(one, ClaimWriter())
    whose = f"{name(neighbors)} neighbors" if neighbors else "neighbors that are not known"
    return f"ε = {figure} at δ = {one.row['delta']:g}, for {whose}{describe_noise_choice(one)}"


def describe_noise_choice(one: Setting) -> str:
    """Name the accountant that chose the noise by an ε; "" if none did."""
    accountant = one.series.accountant
    chosen = np.isfinite(one.row["epsilon"]) and accountant not in ("", one.series.mechanism)
    return f"; noise chosen with {name(accountant)}" if chosen else ""


def write_use(one: Setting, writer: ClaimWriter) -> str:
    """Return a setting's value in the measure of use, with its interval: accuracy in per cent."""
    if one.measure == ACCURACY:
        return writer.percent("test_accuracy", one.accuracy, **cell_fields(one))
    return writer.fraction(METRIC, one.accuracy, of=one.measure, **cell_fields(one))


def describe_loss(answer: Answer, one: Setting, writer: ClaimWriter) -> str:
    """Return ``loses 6.1 % of the accuracy (limit 10 %)``. Only a significant gain is called a gain."""
    if not np.isfinite(one.loss.value):
        reaches = write_use_alone(one, writer)
        if one.measure == ACCURACY:
            return f"is right on {reaches} of new records"
        return f"has {add_article(one.use_label)} of {reaches} on new records"
    gains = format_share(one.loss.value)[0] == "−"
    if gains and one.loss.high >= 0:
        return f"loses no {one.use_label} as measured (limit {write_loss_limit(answer, writer)})"
    near = rounded(100 * abs(one.loss.value), 100 * answer.acceptable.accuracy_loss, 1)
    lost = write_alone(writer, name_loss(one), one.loss, f"{near} %", one)
    if gains:
        return f"is {lost} above the best undefended {one.use_label}"
    return f"loses {lost} of the {one.use_label} (limit {write_loss_limit(answer, writer)})"


def name_loss(one: Setting) -> str:
    """Return the metric's name of a loss against the best undefended model."""
    return "accuracy_loss_best" if one.measure == ACCURACY else "utility_loss_best"


def write_use_alone(one: Setting, writer: ClaimWriter) -> str:
    """Return a setting's value in the measure of use, without its interval: accuracy in per cent."""
    if one.measure == ACCURACY:
        return write_alone(writer, "test_accuracy", one.accuracy, format_share(one.accuracy.value), one)
    return write_alone(writer, METRIC, one.accuracy, fraction(one.accuracy.value), one, of=one.measure)


def write_guessing(answer: Answer, writer: ClaimWriter) -> str:
    """Return the value of guessing in the measure of use: accuracy in per cent."""
    if answer.measure == ACCURACY:
        return f"{writer('guessing', answer.guessing, f'{100 * answer.guessing:.1f}')} %"
    return writer("guessing", answer.guessing, fraction(answer.guessing), of=answer.measure)


def format_share(value: float) -> str:
    """Return ``12.3 %``."""
    return f"{round(100 * value, 1) + 0.0:.1f} %".replace("-", "−")


def add_article(noun: str) -> str:
    """Return ``an AUROC`` or ``a balanced accuracy``. Abbreviations take the article of their first letter's name."""
    return f"{'an' if noun[:1].lower() in 'aeiou' or noun[:2] in ('F1', 'MC') else 'a'} {noun}"


def describe_risk(answer: Answer, one: Setting, writer: ClaimWriter) -> str:
    """Return the proven limit if it protects, otherwise the strongest attack's advantage; with the acceptable limit."""
    limit = f"(limit {write_risk_limit(answer, writer)})"
    if one.by_proof and one.proven is not None:
        proven = one.proven.advantage
        shown = at_most_beside(proven, answer.acceptable.advantage)
        most = writer("advantage_proven", proven, shown, neighbors=one.proven.neighbors, **cell_fields(one))
        return f"no attack can have an advantage above {most} {limit}"
    if one.leak is None:
        return "no membership attack was run on it"
    return f"the strongest attack's advantage is {write_advantage(answer, one, one.leak, writer)} {limit}"


def write_advantage(answer: Answer, one: Setting, leak: Leak, writer: ClaimWriter) -> str:
    """Return the strongest attack's advantage, in two digits."""
    near = rounded(leak.advantage.value, answer.acceptable.advantage)
    return write_alone(writer, "reached_advantage", leak.advantage, near, one, **strongest_fields(leak))


def write_alone(writer: ClaimWriter, metric: str, found: Estimate, shown: str, one: Setting, **fields: str) -> str:
    """Return the value without its interval, which stands in the claim and on the tiles."""
    return writer(metric, found.value, shown, low=found.low, high=found.high, **fields, **cell_fields(one))


def write_loss_limit(answer: Answer, writer: ClaimWriter) -> str:
    """Return the largest acceptable loss, ``10 %``."""
    value = answer.acceptable.accuracy_loss
    return f"{writer('limit_accuracy_loss', value, f'{100 * value:g}')} %"


def write_risk_limit(answer: Answer, writer: ClaimWriter) -> str:
    """Return the largest acceptable advantage, ``0.1``."""
    return writer("limit_advantage", answer.acceptable.advantage, f"{answer.acceptable.advantage:g}")


def name_assumptions(one: Setting, outside: Sequence[str], writer: ClaimWriter) -> str:
    """Name what a cell's privacy proof assumes beyond its ε; "" if it assumes nothing or nothing is proven."""
    if one.proven is None:
        return ""
    known = [*outside, *([one.grouping] if one.grouping else [])]
    known += [ONE_SOURCE] if one.leak is not None and one.leak.sources is not None else []
    record_numbers(known, writer)
    return " and ".join(known)


def record_numbers(phrases: Sequence[str], writer: ClaimWriter) -> None:
    """Record the numbers in phrases that are written already."""
    for digits in (digits for words in phrases for digits in find_digits(words)):
        writer("count", float(digits.replace(",", "")), digits)


def find_digits(words: str) -> list[str]:
    """Return the numbers in a phrase, as written."""
    return [word.strip(".,;()") for word in words.split() if word[:1].isdigit()]


def cell_fields(one: Setting) -> dict[str, str]:
    """Return the fields of `claims.Number` that name a setting's cell."""
    return {"dataset": one.dataset, "model": one.model, "defense": one.defense}


def strongest_fields(leak: Leak) -> dict[str, str]:
    """Return the qualifiers of a number of the strongest attack."""
    return {"attack": STRONGEST, "of": leak.attack}


def describe_choice(leak: Leak, writer: ClaimWriter) -> str:
    """Say from how many attacks the strongest was chosen; "" for a single attack."""
    return f"; of {writer.count(leak.tried)} attacks, corrected for the choice" if leak.tried > 1 else ""


def describe_strongest(leak: Leak, writer: ClaimWriter, **fields: str) -> str:
    """Return the strongest attack's advantage with its interval, as a clause."""
    reached = writer.fraction("reached_advantage", leak.advantage, **strongest_fields(leak), **fields)
    return f"the strongest attack has an advantage of {reached}"


def describe_identified(leak: Leak, writer: ClaimWriter, **fields: str) -> str:
    """Say which share of the members is identified at each measurable rate, and which rates cannot be measured."""
    shares = []
    for fpr, tpr in leak.tprs.items():
        share = writer.percent("reached_tpr", tpr, attack=STRONGEST, fpr=fpr, **fields)
        shares.append(f"{share} of the members at {writer('fpr', fpr, f'{100 * fpr:g}')} % false positives")
    rate = "each rate" if shares[1:] else "that rate"
    which = "It" if leak.tried == 1 else f"The attack that is strongest at {rate}"
    identified = f"{which} identifies {' and '.join(shares)}." if shares else ""
    return "".join(f" {words}" for words in (identified, too_few_words(leak, writer)) if words)
