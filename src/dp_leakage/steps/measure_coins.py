"""Compute lower bounds on ε from guesses of a cell's random inclusion."""

from pathlib import Path

from dp_leakage.attacks.signals import Signals
from dp_leakage.audits import Claim
from dp_leakage.common.errors import UserError
from dp_leakage.metrics.coin_audit import measure_coins
from dp_leakage.provenance.files import read_arrays, read_table
from dp_leakage.steps import Json, provenance
from dp_leakage.steps._claims import made_by, own_claim
from dp_leakage.steps._rows import write_rows


def main(settings: Json, signals: Path, training: Path, rows: Path) -> None:
    """Read the models' outputs and, for a private cell, its training; write the rows."""
    answers = Signals.held_by(read_arrays(signals, settings["signals"])[0], signals)
    claim, made = settings["claim"], read_table(training, settings["training"])[1]
    own = _own(made, claim) if settings["private"] else None
    found = measure_coins(answers, comparisons=settings["comparisons"], own=own, **claim)
    write_rows(rows, found, provenance(settings))


def _own(made: Json, claim: Json) -> Claim | None:
    """Return the claim of exactly a training's mechanism; None if nothing is proven for random inclusion."""
    own = own_claim(made_by(made), made["settings"]["defense"], claim["delta"], claim["neighbors"])
    try:
        own.curve(1.0)
    except UserError:
        return None
    return own
