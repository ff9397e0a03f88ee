"""Run one attack on the outputs of one cell's target models. Needs neither a model nor a GPU."""

from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from dp_leakage.attacks import ATTACKS, LEARNED
from dp_leakage.attacks.checks import check_said
from dp_leakage.attacks.membership.references import leave_one_out
from dp_leakage.attacks.person_odds import learned_odds, odds
from dp_leakage.attacks.persons import person_columns
from dp_leakage.attacks.signals import score_columns
from dp_leakage.common.user_code import FILES, guarded, whose
from dp_leakage.provenance.files import read_tensors, write_table
from dp_leakage.steps import Json, provenance
from dp_leakage.steps._signals import read_signals


def main(
    settings: Json,
    signals: Path,
    class_scores: Path | None = None,
    reference_signals: Path | None = None,
    reference_class_scores: Path | None = None,
    fitted: Path | None = None,
    data: Path | None = None,
    history: Path | None = None,
    *,
    scores: Path,
) -> None:
    """Read the signals of the target models and of the models that the attack compares them with; write the attack's
    scores.
    """
    inputs = settings["inputs"]
    target = read_signals(inputs, signals, class_scores, data, history=history)
    known: Any = None
    if reference_signals:
        known = read_signals(inputs, reference_signals, reference_class_scores, data, "reference_")
    elif fitted:
        known = read_tensors(fitted, inputs["fitted"])[0]
    module, arguments = settings["module"], (target, known, settings["settings"], settings["seed"])
    how, weighed = settings.get("of_person"), None
    with guarded(module, settings["attack"]):
        attack = import_module(module)
        said = leave_one_out(attack, *arguments) if settings["leave_one_out"] else attack.score(*arguments)
        if how == LEARNED:
            weighed = partial(odds, learned_odds(attack, *arguments, settings["leave_one_out"]))
    if module in FILES:
        who = whose(module, settings["attack"])
        check_said(said, who, ATTACKS[settings["attack"]].family, target.asked.trained_on.shape)
    asked = target.asked
    columns = person_columns(asked, said._asdict(), how, weighed) if how else score_columns(asked, said._asdict())
    write_table(scores, columns, provenance(settings))
