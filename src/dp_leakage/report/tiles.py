"""Tiles: the use, the measured and the proven leakage, and the ε of a setting, each with its interval."""

from collections.abc import Sequence

import numpy as np

from dp_leakage.common.shown import capital
from dp_leakage.report.answer import Answer
from dp_leakage.report.claims import Claim, ClaimWriter
from dp_leakage.report.guarantees import rounded_up
from dp_leakage.report.phrases import (
    cell_fields,
    describe_choice,
    describe_noise_choice,
    name_assumptions,
    name_loss,
    strongest_fields,
    write_epsilon,
    write_use,
)
from dp_leakage.report.setting import Setting
from dp_leakage.table.guesses import SAYS_LITTLE
from dp_leakage.table.words import name


def make_tiles(answer: Answer, one: Setting, place: int = 0, outside: Sequence[str] = ()) -> list[Claim]:
    """Return the tiles of a setting: use, measured leakage, proven limit, and ε. Each interval holds by itself.

    ``outside`` is preparation that no ε of the data set covers.
    """
    writer = ClaimWriter(cell_fields(one))
    right = write_use(one, writer)
    figure, _, ends = right.partition(" [")
    words = f"[{ends}"
    if np.isfinite(one.loss.value):
        words += f"; loses {writer.percent(name_loss(one), one.loss)}"
    words += _describe_training_size(one, writer)
    label = f"{capital(one.use_label)} on new records"
    found = [_make_tile(answer, one, place, "accuracy", label, figure, words, writer)]
    if one.leak is not None:
        writer = ClaimWriter(cell_fields(one))
        reached = writer.fraction("reached_advantage", one.leak.advantage, **strongest_fields(one.leak))
        figure, _, ends = reached.partition(" [")
        words = f"[{ends} advantage over guessing; {name(one.leak.attack)}{describe_choice(one.leak, writer)}"
        found.append(_make_tile(answer, one, place, "measured", "The strongest attack tried", figure, words, writer))
    writer = ClaimWriter(cell_fields(one))
    if one.proven is None:
        figure, words = "–", "nothing is proven of attacks that were not tried"
    else:
        limit = one.proven.advantage
        figure = writer("advantage_proven", limit, rounded_up(limit), neighbors=one.proven.neighbors)
        little = "; that rules out next to nothing" if one.proven.advantage >= SAYS_LITTLE else ""
        known = name_assumptions(one, outside, writer)
        words = f"advantage, proven for any attack{f' given {known}' if known else ''}{little}"
    found.append(_make_tile(answer, one, place, "proven", "No attack can exceed", figure, words, writer))
    if one.private:
        writer = ClaimWriter(cell_fields(one))
        figure, neighbors = write_epsilon(one, writer)
        whose = f"{name(neighbors)} neighbors" if neighbors else "neighbors not known"
        delta = one.row["delta"]
        words = f"{whose}, δ = {writer('delta', delta, f'{delta:g}')}{describe_noise_choice(one)}"
        note = one.row.get("accounting_note")
        words += f"; {note}" if isinstance(note, str) and note else ""
        found.append(_make_tile(answer, one, place, "epsilon", "ε", figure, words, writer))
    return found


def _describe_training_size(one: Setting, writer: ClaimWriter) -> str:
    """Say that each model trained on half of the records, as under random inclusion; otherwise ""."""
    members, records = (int(one.row.get(key, 0)) for key in ("n_members", "n_records"))
    if members >= records:
        return ""
    return f"; each model trained on about half of the records, {writer.count(members)} of {writer.count(records)}"


def _make_tile(
    answer: Answer, one: Setting, place: int, kind: str, label: str, figure: str, words: str, writer: ClaimWriter
) -> Claim:
    return writer.claim(
        f"{answer.dataset}.{kind}.{place}",
        kind,
        answer.dataset,
        words,
        label=label,
        figure=figure,
        cells=((one.model, one.defense),),
        screen=2,
    )
