"""Folded sentences: details of each setting of an answer, of the choice, and of defenses without a guarantee."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from dp_leakage.common.utilities import ACCURACY
from dp_leakage.metrics.thresholds import SHARES
from dp_leakage.metrics.utility import LOSS
from dp_leakage.report.answer import Answer
from dp_leakage.report.caveats import describe_looks
from dp_leakage.report.claims import Claim, ClaimWriter
from dp_leakage.report.decision import ALPHA
from dp_leakage.report.guarantees import choice_words, proven_words, risk_words
from dp_leakage.report.phrases import (
    add_article,
    cell_fields,
    describe_choice,
    describe_identified,
    describe_strongest,
    name_assumptions,
    name_setting,
    strongest_fields,
    write_use,
)
from dp_leakage.report.setting import Setting, candidates
from dp_leakage.report.tuned import more_tuning, tuned_words
from dp_leakage.table.looks import look
from dp_leakage.table.words import name


def cell_claims(answer: Answer, one: Setting, place: int, outside: Sequence[str]) -> list[Claim]:
    """Return the folded claims on one setting: attacks, undefended model, proven limits, accusations and tuning."""
    settings = answer.settings
    twin = next((other for other in settings if other.model == one.model and other.defense == "none"), None)
    assume = partial(name_assumptions, one, outside)
    if answer.kind == "elsewhere":
        writers = {"accusation": lambda writer: risk_words(one.leak, None, writer)}
    else:
        writers = {
            "rates": lambda writer: _describe_leakage(one, writer),
            "twin": lambda writer: _compare_with_undefended(one, twin, writer),
            "limits": lambda writer: proven_words(one.proven, writer, assume(writer)),
            "accusation": lambda writer: risk_words(one.leak, one.proven, writer, assume(writer)),
            "tuning": lambda writer: tuned_words(one.tuned, writer),
            "untuned": lambda writer: more_tuning(one.tuned) if answer.kind in ("open", "neither") else "",
        }
    found = []
    for kind, write in writers.items():
        writer = ClaimWriter(cell_fields(one))
        words = write(writer)
        if words:
            cells = ((one.model, one.defense),)
            claim = f"{answer.dataset}.{kind}.{place}"
            found.append(writer.claim(claim, kind, answer.dataset, words, cells=cells))
    return found


def _describe_leakage(one: Setting, writer: ClaimWriter) -> str:
    """Name the setting, its strongest attack, and the members that this attack identifies."""
    cell = f"{name_setting(one, writer, accountant=True)}:"
    if one.leak is None:
        return f"{cell} no membership attack was run on it."
    judged = "the interval excludes 0" if one.leak.advantage.low > 0 else "chance alone could explain that"
    reached = writer.fraction("reached_advantage", one.leak.advantage, **strongest_fields(one.leak))
    identified = describe_identified(one.leak, writer)
    auc = writer.fraction("membership_auc", one.leak.auc, attack=one.leak.attack)
    whose = f"{name(one.leak.attack)}{describe_choice(one.leak, writer)}"
    return (
        f"{cell} the strongest attack ({whose}) has an advantage of {reached}; {judged}.{identified} The AUC of "
        f"{name(one.leak.attack)} is {auc}."
    )


def _compare_with_undefended(one: Setting, twin: Setting | None, writer: ClaimWriter) -> str:
    """Compare a setting with the undefended model of the same architecture; "" without one."""
    if twin is None or one.twin_loss is None or twin is one:
        return ""
    lost = writer.percent("accuracy_loss" if one.measure == ACCURACY else LOSS, one.twin_loss)
    words = f"Against the undefended {name(one.model)} itself it loses {lost}"
    if twin.leak is not None:
        words += f", where {describe_strongest(twin.leak, writer, **cell_fields(twin))}"
    return f"{words}."


def choice_claims(answer: Answer) -> list[Claim]:
    """Return the claim that the test accounts for the choice of a setting, and that ε does not."""
    if answer.tried < 2 or not answer.told:
        return []
    writer = ClaimWriter({"dataset": answer.dataset})
    fail = sum(one.judgment.aside for one in candidates(answer.settings))
    aside = (
        f" {writer.count(fail)} of {writer.count(answer.tried)} settings surely fail and were set aside."
        if fail
        else ""
    )
    error = answer.look.level / max(answer.sharers, 1)
    words = (
        "A setting is tested as a whole, one-sided: against each undefended model, against guessing, and for each "
        f"attack at each of {writer.count(len(SHARES))} thresholds.{aside} Each test may err with "
        f"{writer('test_error', error, f'{100 * error:.2g}')} %, so that with "
        f"{writer('confidence', 1 - ALPHA, f'{100 * (1 - ALPHA):g}')} % confidence every setting that passes meets "
        f"both limits.{describe_looks(answer.look, writer)} "
        f"{choice_words(answer.tried, writer, len(answer.told), answer.kind == 'both')}"
    ).rstrip()
    return [writer.claim(f"{answer.dataset}.choice", "choice", answer.dataset, words)]


def unproven_claims(answer: Answer) -> list[Claim]:
    """Return the claim on the measured leakage and use of defenses without a guarantee."""
    others = [one for one in answer.settings if not one.private and one.defense != "none" and one.leak is not None]
    if not others or answer.kind == "elsewhere":
        return []
    writer = ClaimWriter({"dataset": answer.dataset})
    told = []
    for one in others:
        assert one.leak is not None  # as selected above
        where = cell_fields(one) | strongest_fields(one.leak)
        told.append(
            f"{look(one.series).label}{_name_strength(one, writer)} ({name(one.model)}) "
            f"{writer.fraction('reached_advantage', one.leak.advantage, **where)} at {add_article(one.use_label)} of "
            f"{write_use(one, writer)}"
        )
    noisy = any(one.row["accountant"] for one in others)
    why = "Settings without a known ε for what attacks ask here" if noisy else "Defenses without differential privacy"
    words = f"{why} give no guarantee. Measured advantage: {'; '.join(told)}."
    return [writer.claim(f"{answer.dataset}.unproven", "unproven", answer.dataset, words)]


def _name_strength(one: Setting, writer: ClaimWriter) -> str:
    """Return ``, ε = 2`` or ``, σ = 1``, which tells apart the settings of one accountant."""
    if not one.row["accountant"]:
        return ""
    if np.isfinite(one.row["epsilon"]):
        return f", ε = {writer.plain('claimed_epsilon', one.row['epsilon'], **cell_fields(one))}"
    if np.isfinite(one.row["noise_multiplier"]):
        return f", σ = {writer.plain('noise_multiplier', one.row['noise_multiplier'], **cell_fields(one))}"
    return ""
