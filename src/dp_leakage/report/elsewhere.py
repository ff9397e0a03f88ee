"""Sentences on external models: their measured leakage. There is no budget to choose."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pandas as pd

from dp_leakage.attacks import ATTACKS, STRONGEST
from dp_leakage.common.shown import capital
from dp_leakage.metrics.intervals import Estimate
from dp_leakage.metrics.resemblance import Resemblance
from dp_leakage.metrics.simultaneous import simultaneous
from dp_leakage.report.answer import Answer, Setting
from dp_leakage.report.claims import Claim, ClaimWriter
from dp_leakage.report.leak import Leak
from dp_leakage.report.phrases import cell_fields, describe_identified, write_use
from dp_leakage.report.sources import UNKNOWN, beside_references, differ
from dp_leakage.table.frames import chosen
from dp_leakage.table.numbers import rounded
from dp_leakage.table.words import name

MORE = "So more may leak than was measured."
LEAKS = "the model leaks who was in its training data."
BY_GUESS = (
    "the model leaks who was in its training data, unless members and non-members differ in something that a guess "
    "without the model did not find."
)
NOT_SHOWN = "no attack tried is shown to tell this model's members from non-members."
IF_ALIKE = (
    "attacks tell this model's members from non-members. If both were drawn from one source, it leaks who was in its "
    "training data. That could not be checked: beside labels, nothing is known of the records themselves."
)


@dataclass(frozen=True)
class Others:
    """Reference or shadow models of the attacks.

    Attributes:
        count: their number.
        given: whether the user supplied them, so that their training is unknown; otherwise dp-leakage trains them.
    """

    count: int
    given: bool


@dataclass(frozen=True)
class Elsewhere:
    """External models of a study.

    Attributes:
        models: their names in the study.
        references, shadows: reference and shadow models; None if there are none.
        online: whether online attacks were run.
        draws: model → number of averaged answers per record, for models with random answers.
        resemblance: (data set, model) → the similarity of the references to the model.
    """

    models: tuple[str, ...] = ()
    references: Others | None = None
    shadows: Others | None = None
    online: bool = False
    draws: Mapping[str, int] = field(default_factory=dict)
    resemblance: Mapping[tuple[str, str], Resemblance] = field(default_factory=dict)


def claims_elsewhere(answer: Answer, elsewhere: Elsewhere, metrics: pd.DataFrame) -> list[Claim]:
    """Return the unfolded claims on one data set. ``metrics``: rows of all cells."""
    cells = tuple((one.model, one.defense) for one in answer.told)
    found = []
    for kind, write, verdict in (("answer", _decided, answer.kind), ("evidence", _measured, "")):
        writer = ClaimWriter({"dataset": answer.dataset})
        told = [(one, write(one, elsewhere, writer)) for one in answer.told]
        several = len(told) > 1
        words = " ".join(f"{name(one.model)}: {words}" if several else words for one, words in told if words)
        if words:
            words = f"On {name(answer.dataset)}, {words}" if kind == "answer" else words
            claim = f"{answer.dataset}.{kind}"
            found.append(writer.claim(claim, kind, answer.dataset, words, verdict=verdict, cells=cells, screen=1))
    found += [*_compared(answer, elsewhere), *_averaged(answer, elsewhere)]
    for place, one in enumerate(answer.told):
        if elsewhere.references is not None:
            found += _without_references(one, place, metrics)
        found += _tiles(one, place)
    return found


def told_from_none(leak: Leak) -> bool:
    """Return whether leakage is shown: by the advantage, or by a TPR corrected for the number of rates."""
    looked = 1 + len(leak.tprs)
    return leak.advantage.low > 0 or any(
        simultaneous(tpr, looked, (0.0, 1.0)).low > fpr for fpr, tpr in leak.tprs.items()
    )


def _decided(one: Setting, elsewhere: Elsewhere, writer: ClaimWriter) -> str:
    """Return the answer."""
    leak = one.leak
    if leak is None:
        return "no membership attack was run on the model, so nothing is known of its leakage."
    verdict = _verdict(leak, bool(_warned(one, elsewhere, ClaimWriter())), writer)
    whose = f"The strongest of {writer.count(leak.tried)} attacks" if leak.tried > 1 else "The attack"
    advantage = rounded(leak.advantage.value)
    said = {"attack": STRONGEST, "of": leak.attack, "low": leak.advantage.low, "high": leak.advantage.high}
    shown = writer("reached_advantage", leak.advantage.value, advantage, **said, **cell_fields(one))
    return f"{verdict} {whose} has an advantage of {shown}; guessing has {writer('guessing_advantage', 0.0, '0')}."


def _measured(one: Setting, elsewhere: Elsewhere, writer: ClaimWriter) -> str:
    """Return what the answer rests on; "" if nothing was measured."""
    leak, where = one.leak, cell_fields(one)
    if leak is None:
        return ""
    advantage = writer.fraction("reached_advantage", leak.advantage, attack=STRONGEST, of=leak.attack, **where)
    judged = "the interval excludes guessing" if leak.advantage.low > 0 else "chance alone could explain that"
    judged = "" if leak.shifted else f"; {judged}"
    whose = "The strongest attack" if leak.tried > 1 else "The attack"
    words = f"{whose}, {name(leak.attack)}, has an advantage of {advantage} over guessing{judged}."
    words += describe_identified(leak, writer, **where)
    members, others = (int(one.row[key]) for key in ("n_members", "n_nonmembers"))
    words += f" This rests on {writer.count(members)} members and {writer.count(others)} non-members."
    return f"{words}{_warned(one, elsewhere, writer)}"


def _warned(one: Setting, elsewhere: Elsewhere, writer: ClaimWriter) -> str:
    resemblance = elsewhere.resemblance.get((one.dataset, one.model))
    return "" if resemblance is None else unlike(resemblance, writer)


def _verdict(leak: Leak, unlike: bool, writer: ClaimWriter) -> str:
    """Return whether the model leaks. ``unlike`` references do not show the model's outputs without these records."""
    found, shown = leak.sources, told_from_none(leak)
    if found is None:  # chance drew members and others from one source
        return LEAKS if shown else NOT_SHOWN
    if found.beyond_references is not None and not unlike:
        beside = beside_references(found, writer)
        if found.beyond_references.low > 0:
            also = f" But {differ(found, writer)}, so attacks find more than was learned." if found.shifted else ""
            return f"{LEAKS[:-1]}: {beside}.{also}"
        if found.shifted or shown:
            return f"{differ(found, writer)}. That any of it was learned is not shown: {beside}."
        return NOT_SHOWN
    if found.shifted or (shown and not found.beyond[leak.attack].low > 0):
        return f"{differ(found, writer)}. {UNKNOWN}"
    if not shown:
        return NOT_SHOWN
    return BY_GUESS if found.compared else IF_ALIKE


def unlike(resemblance: Resemblance, writer: ClaimWriter) -> str:
    """Warn if the references differ from the model; otherwise return ""."""
    told = []
    for what, pair in resemblance.unlike().items():
        own = writer(f"{what}_of_target", pair.target, f"{100 * pair.target:.1f}")
        theirs = writer(f"{what}_of_references", pair.reference, f"{100 * pair.reference:.1f}")
        told.append(f"{WHAT[what]} is {own} % where theirs is {theirs} %")
    if not told:
        return ""
    return (
        f" Beware: the reference models are unlike this model: its {', its '.join(told)}. Attacks that compare with "
        "them may find less than with references of its own kind."
    )


WHAT = {"accuracy": "accuracy on held-out records", "gap": "accuracy gap between training and held-out records"}


def _compared(answer: Answer, elsewhere: Elsewhere) -> list[Claim]:
    """Name the models that attacks compare with, and the attacks that were not run."""
    writer = ClaimWriter({"dataset": answer.dataset})
    told, missing = [], []
    for role, others, verb in (
        ("reference", elsewhere.references, "compare with"),
        ("shadow", elsewhere.shadows, "learn from"),
    ):
        if others is None:
            missing.append(f"attacks that {verb} {role} models (none were given)")
        else:
            whose = "that were given" if others.given else "trained here, by this study's settings"
            told.append(f"Attacks {verb} {writer.count(others.count)} {role} models {whose}.")
    if elsewhere.references is not None and not elsewhere.online:
        missing.append("online attacks (no reference model was trained on any of these records)")
    words = [*told, *([f"Not run: {'; '.join(missing)}. {MORE}"] if missing else [])]
    claim = writer.claim(f"{answer.dataset}.compared", "compared", answer.dataset, " ".join(words), screen=2)
    return [claim]


def _averaged(answer: Answer, elsewhere: Elsewhere) -> list[Claim]:
    """Describe how attacks treat random answers."""
    writer = ClaimWriter({"dataset": answer.dataset})
    words = [
        f"The attacker asks {name(model)} {writer.count(draws)} times about each record and takes the mean of the "
        "answers, which are drawn at random."
        for model, draws in elsewhere.draws.items()
        if any(one.model == model for one in answer.told)
    ]
    return (
        [writer.claim(f"{answer.dataset}.draws", "adaptive", answer.dataset, " ".join(words), screen=2)]
        if words
        else []
    )


def _without_references(one: Setting, place: int, metrics: pd.DataFrame) -> list[Claim]:
    """Report the strongest attack without references, which is valid even if the references differ from the model.

    Its interval is simultaneous for all such attacks, since the largest is selected.
    """
    frame = chosen(metrics, {})
    frame = frame[(frame["dataset"] == one.dataset) & (frame["model"] == one.model) & frame["value"].notna()]
    frame = frame[~frame["attack"].isin([STRONGEST, *_COMPARING])]
    advantages = frame[frame["metric"] == "reached_advantage"]
    if advantages.empty:
        return []
    writer = ClaimWriter(cell_fields(one))
    attack, found = _largest(advantages, (-1.0, 1.0))
    shown = writer.fraction("reached_advantage", found, among=len(advantages), attack=attack)
    words = f"Without reference models, the strongest attack ({name(attack)}) has an advantage of {shown}."
    for fpr, rates in frame[frame["metric"] == "reached_tpr"].groupby("fpr", sort=False):
        attack, found = _largest(rates, (0.0, 1.0))
        shown = writer.percent("reached_tpr", found, among=len(rates), attack=attack, fpr=float(fpr))
        words += (
            f" At {writer('fpr', float(fpr), f'{100 * fpr:g}')} % false positives, {name(attack)} identifies {shown}."
        )
    if len(advantages) > 1:
        words += f" These intervals hold for all {writer.count(len(advantages))} such attacks at once."
    cells = ((one.model, one.defense),)
    dataset = one.dataset
    kind = "without_references"
    return [writer.claim(f"{dataset}.{kind}.{place}", kind, dataset, words, cells=cells, screen=2)]


def _largest(rows: pd.DataFrame, limits: tuple[float, float]) -> tuple[str, Estimate]:
    """Return the attack with the largest value, with an interval that is simultaneous for all attacks."""
    best = rows.loc[rows["value"].idxmax()]
    alone = Estimate.from_row(best)
    return str(best["attack"]), simultaneous(alone, len(rows), limits)


_COMPARING = [attack for attack, entry in ATTACKS.items() if entry.needs == "reference"]


def _tiles(one: Setting, place: int) -> list[Claim]:
    """Return tiles with the advantage, each TPR at a low FPR, and the accuracy."""
    found: list[Claim] = []

    def add(kind: str, label: str, shown: str, words: str, writer: ClaimWriter) -> None:
        figure, _, ends = shown.partition(" [")
        claim, cells = f"{one.dataset}.{kind}.{place}", ((one.model, one.defense),)
        more = {"label": label, "figure": figure, "cells": cells, "screen": 2}
        found.append(writer.claim(claim, kind, one.dataset, f"[{ends}{words}", **more))

    if one.leak is not None:
        writer = ClaimWriter(cell_fields(one))
        shown = writer.fraction("reached_advantage", one.leak.advantage, attack=STRONGEST, of=one.leak.attack)
        words = f" advantage over guessing; {name(one.leak.attack)}"
        add("measured", "The strongest attack tried", shown, words, writer)
        for fpr, tpr in one.leak.tprs.items():
            writer = ClaimWriter(cell_fields(one))
            shown = writer.percent("reached_tpr", tpr, attack=STRONGEST, fpr=fpr)
            rate = writer("fpr", fpr, f"{100 * fpr:g}")
            add(f"tpr_{fpr:g}", "Members identified", shown, f" at {rate} % false positives", writer)
    writer = ClaimWriter(cell_fields(one))
    label = f"{capital(one.use_label)} on non-members"
    add("accuracy", label, write_use(one, writer), "", writer)
    return found
