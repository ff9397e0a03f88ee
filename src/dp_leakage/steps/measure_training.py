"""Compute a cell's accuracies, the accuracy lost to its defense, and the accounted ε of its training."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dp_leakage.common.errors import UserError
from dp_leakage.metrics import measure_training
from dp_leakage.metrics.intervals import Estimate, wilson
from dp_leakage.metrics.measure import FPR_OF_TPR, measure_use
from dp_leakage.metrics.people import ASKED, RIGHT
from dp_leakage.metrics.rows import OF_ONE_RECORD, row
from dp_leakage.metrics.runs import ALL
from dp_leakage.metrics.utility import INFLUENCES, VALUE
from dp_leakage.privacy.accounting.rules import Neighbors, relation_of_game
from dp_leakage.privacy.mechanisms import amount_of
from dp_leakage.privacy.protection import Protection
from dp_leakage.privacy.rates import FPR_OF_CURVE
from dp_leakage.privacy.training import Training
from dp_leakage.provenance.files import read_table, write_table
from dp_leakage.steps import Json, provenance
from dp_leakage.steps._models import training_of
from dp_leakage.steps._rows import write_rows

if TYPE_CHECKING:
    from dp_leakage.privacy.accounting.tradeoff import TradeOff

MOVES = "nothing is proven of a person, whose number of records decides the size of batches and the noise of their mean"
GROUP = "group_privacy"  # in place of an accountant
SAME_NOISE = 1e-4  # relative; solving for σ is no more exact than this, and library versions differ by less


def main(settings: Json, training: Path, baseline: Path, measured: Path, curve: Path, proven: Path) -> None:
    """Read the training histories of the cell and of the undefended cell; write the metrics, the metrics by epoch, and
    the ROC.

    ``proven`` holds the ROC that no attack can exceed (`privacy.rates`), and no rows if nothing is proven.
    """
    history, made = read_table(training, settings["training"])
    reference = history if baseline == training else read_table(baseline, settings["baseline"])[0]
    sizes = {"n_train": settings["columns"]["n_members"], "n_test": made["n_test"]}
    rows = measure_training(history, reference, **sizes, guessing=made["guessing"])
    if "utility" in made:
        rows += measure_use(history, reference, made["utility"])
    rows += _tuned(made)
    trained = _trained(training, made)
    limit: list[Json] = []
    if trained is not None:
        from dp_leakage.privacy.accounting.curve import proven_curve

        neighbors = relation_of_game(settings["design"], trained.sampler)
        nominal = _nominal(made)
        ceiling = None if nominal.delta is None else proven_curve(trained, neighbors, nominal.delta)
        rows += [*_spent(trained, made, neighbors, ceiling), *_limit(neighbors, ceiling, FPR_OF_TPR)]
        limit = _limit(neighbors, ceiling, FPR_OF_CURVE)
    write_rows(measured, rows, provenance(settings))
    write_rows(proven, limit, provenance(settings))
    by_epoch = history.drop(columns=["losses", RIGHT, ASKED, VALUE, INFLUENCES], errors="ignore")
    added = {"epsilon_spent": _by_epoch(history, trained, made), "guessing": made["guessing"]}
    write_table(curve, by_epoch.assign(**added), provenance(settings))


def _tuned(made: Json) -> list[Json]:
    """Return rows learning_rate for the chosen rate and tuning_accuracy for each tried one; none without tuning.

    In another measure of use, tuning_utility, which is known without an interval.
    """
    if "tried" not in made:
        return []
    if "tuned_by" in made:
        said = {"of": made["tuned_by"], "records": made["tuned_on"]}
        return [
            _row("learning_rate", made["learning_rate"]),
            *(_row("tuning_utility", reached, tried=rate, **said) for rate, reached in made["tried"]),
        ]
    tried = [(rate, wilson(right, made["tuned_on"])) for rate, right in made["tried"]]
    rows = [row("tuning_accuracy", ALL, found, tried=rate, records=made["tuned_on"]) for rate, found in tried]
    return [_row("learning_rate", made["learning_rate"]), *rows]


def _nominal(made: Json) -> Protection:
    """Return the protection of a training with a mechanism, as the study requests it."""
    found = Protection.read(made["settings"]["mechanism"])
    assert found is not None
    return found


def _trained(training: Path, made: Json) -> Training | None:
    """Return the training as run. Raises UserError if the accountant would now choose other noise."""
    from dp_leakage.privacy.calibration import solved

    trained = training_of(made)
    if trained is None or trained.mechanism.noise == "none":
        return trained
    nominal = _nominal(made)
    today = solved(
        nominal,
        epochs=trained.epochs,
        batch_size=trained.batch_size,
        dataset_size=trained.dataset_size,
        blocks=trained.blocks,
    )
    assert today is not None  # as there was a mechanism
    name = amount_of(trained.mechanism.noise)
    amount, wanted = getattr(trained.mechanism, name), getattr(today.mechanism, name)
    # The trainer's fingerprint excludes the accountants, so their edits retrain nothing whose noise stays the same.
    if abs(wanted - amount) > SAME_NOISE * wanted:
        raise UserError(
            f"{training}: its models were trained with {name}={amount!r}, but accountant '{nominal.accountant}' "
            f"now gives {wanted!r}; delete {training.with_name('target.safetensors')} and run the same command again"
        )
    return trained


def _spent(training: Training, made: Json, neighbors: Neighbors, ceiling: "TradeOff | None") -> list[Json]:
    """Return rows noise_multiplier (or kappa), and epsilon_spent under every accountant that applies.

    If people are included as a whole and the mechanism hides single records, those ε are no bounds for a person. A
    person's ε follows by group privacy from the maximum number of records per person. For fixed members with different
    numbers of records there is none, see `moves`.
    """
    from dp_leakage.privacy.accounting import epsilon_report

    nominal, most, mechanism = _nominal(made), training.records, training.mechanism
    rows = [_row(name, getattr(mechanism, name)) for name in ("noise_multiplier", "kappa") if getattr(mechanism, name)]
    if nominal.delta is None:  # without noise
        return rows
    for spent in epsilon_report(training, nominal.delta, nominal.accountant):
        valid, note = spent.valid and most == 1, spent.note if most == 1 else f"{OF_ONE_RECORD} {most} at most"
        note += f"; {MOVES}" if training.moves else ""
        said: Json = {"accounted_by": spent.accountant, "neighbors": spent.neighbors, "valid": valid, "note": note}
        if spent.sampling != "as_trained":
            said["sampling"] = spent.sampling
        rows.append(_row("epsilon_spent", spent.epsilon, **said))
    if most > 1 and ceiling is not None:
        said = {"accounted_by": GROUP, "neighbors": neighbors, "valid": True}
        rows.append(_row("epsilon_spent", ceiling.epsilon(nominal.delta), **said))
    return rows


def _limit(neighbors: Neighbors, ceiling: "TradeOff | None", rates: Iterable[float]) -> list[Json]:
    """Return rows of the proven limits for these neighbors, at these FPRs."""
    if ceiling is None:
        return []
    said = {"neighbors": neighbors, "source": ceiling.source}
    return [
        _row("advantage_proven", ceiling.advantage, **said),
        _row("mu", ceiling.mu, **said),
        _row("mu_bound", ceiling.mu_bound, **said),
        _row("mu_regret", ceiling.regret, **said),
        *(_row("tpr_proven", float(ceiling.tpr(fpr)), fpr=fpr, **said) for fpr in rates),
    ]


def _by_epoch(history: pd.DataFrame, training: Training | None, made: Json) -> "pd.Series[float]":
    """Return ε by the cell's own accountant after each epoch; NaN without noise, or where it would be record-level
    for people.

    It includes the cost of a private projection before the first epoch.
    """
    from dp_leakage.privacy.calibration import epsilon_after

    if training is None or training.mechanism.noise == "none" or training.records > 1:
        return history["epoch"] * np.nan
    nominal, epochs = _nominal(made), sorted(set(history["epoch"]))
    assert nominal.delta is not None  # with noise
    spent = {
        epoch: epsilon_after(replace(training, epochs=int(epoch)), nominal.accountant, nominal.delta)
        for epoch in epochs
    }
    return history["epoch"].map(spent)


def _row(metric: str, value: float, **qualifiers: Any) -> Json:
    return row(metric, ALL, Estimate(value, value, value), **qualifiers)
