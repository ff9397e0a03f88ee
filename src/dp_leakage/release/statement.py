"""``privacy.json``: the guarantee of a release, and its check by dp-accounting alone.

The statement holds the mechanism as numbers (noise, rate, steps), so that anyone can recompute ε from it: `recomputed`
reads nothing else and calls nothing of this package's own accounting.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from math import ceil, inf
from typing import Any

import numpy as np

from dp_leakage.common.config import Json
from dp_leakage.common.errors import UserError, brief
from dp_leakage.common.rounding import rounded_up
from dp_leakage.common.schemas import Schema, check, enum
from dp_leakage.privacy.accounting import tradeoff
from dp_leakage.privacy.accounting.curve import proven_curve
from dp_leakage.privacy.accounting.rules import Neighbors
from dp_leakage.privacy.accounting.selection import SHAPES
from dp_leakage.privacy.accounting.spend import least_noise
from dp_leakage.privacy.accounting.tradeoff import TradeOff
from dp_leakage.privacy.mechanism import PERSON, Mechanism
from dp_leakage.privacy.rates import PRIORS
from dp_leakage.privacy.training import Training
from dp_leakage.release.outside import follows_from

FORMAT = "dp-leakage privacy statement 1"
DELTAS = (1e-5, 1e-6, 1e-8)  # of ε beside the study's own δ
DIGITS = 4  # of ε in sentences
RATES = (1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9)  # of the trade-off curve
AGREEMENT, LEAST = 1e-6, 1e-12  # how far a number may lie from what is stated, relative and at least
GRID = 1e-3  # of dp-accounting's loss distributions; it rounds up, by less than 1e-3 of ε where ε is about 1
MOST = 1e300  # of any number: a longer one is no float
POSITIVE: Schema = {"type": "number", "exclusiveMinimum": 0, "maximum": MOST}
COUNT: Schema = {"type": "integer", "minimum": 1, "maximum": 10**8}
WORTH = 1000.0  # ε at `AT` from which on, as from `LONGEST` steps on, the loss distribution is not worth its time
AT, LONGEST = 1e-5, 10**6
MECHANISM: dict[str, Schema] = {
    "noise": enum("gaussian"),
    "noise_multiplier": {"type": "number", "minimum": 1e-3, "maximum": 1e9},
    "bound": enum("clip", "normalize"),
    "clip_norm": {"type": "number", "exclusiveMinimum": 0, "maximum": 1e6},
    "sampler": enum("poisson", "shuffle"),
    "sampling_probability": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
    "steps": COUNT,
    "epochs": COUNT,
    "records": COUNT,
    "batch_size": POSITIVE,
}
RUNS = ("geometric", "logarithmic")  # at least one training in each
SELECTION: dict[str, Schema] = {
    "mean": {"type": "number", "minimum": 1, "maximum": 1e6},
    "runs": enum(*RUNS),
    "score_noise": {**POSITIVE, "type": ["null", "number"]},
}
ROW: dict[str, Schema] = {
    "delta": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    "epsilon": {"type": "number", "minimum": 0, "maximum": MOST},
}
COUNTED = {"one record": "records", "one person": "persons"}  # what is drawn, bounded and hidden → its number
UNITS = {"one record": "example", "one person": PERSON}  # the same → the unit of a mechanism
WITH_ALL = {"one record": "", "one person": ", with all of their records"}
MOST_ROWS = 100


def training_told(training: Training, records: int) -> Json:
    """Describe a training with Gaussian noise by numbers; ``records`` counts its units' records."""
    mechanism = training.mechanism
    told = {
        "noise": mechanism.noise,
        "noise_multiplier": mechanism.sigma,
        "bound": mechanism.bound,
        "clip_norm": mechanism.clip_norm,
        "sampler": mechanism.sampler,
        "sampling_probability": training.rate,
        "epochs": training.epochs,
        "steps": training.steps,
        "records": records,
        "batch_size": training.batch_size,
    }
    if mechanism.unit != PERSON:
        return told
    return told | {"persons": training.dataset_size, "contribution": dict(mechanism.settings)}


def recomputed(statement: Mapping[str, Any], deltas: Sequence[float]) -> list[float]:
    """Recompute ε at each δ from the numbers of a statement, by dp-accounting alone: the smaller of its two bounds.

    Poisson batches: every step is a sampled Gaussian. Shuffled ones: each epoch is one Gaussian, since each unit comes
    once in it. Only the Rényi accountant has a bound with a selection, a very large ε or very many steps.
    """
    from dp_accounting import NeighboringRelation
    from dp_accounting.dp_event import (
        ComposedDpEvent,
        DpEvent,
        GaussianDpEvent,
        PoissonSampledDpEvent,
        RepeatAndSelectDpEvent,
        SelfComposedDpEvent,
    )
    from dp_accounting.pld import PLDAccountant
    from dp_accounting.rdp import RdpAccountant

    logging.getLogger("absl").setLevel(logging.ERROR)  # a warning for each order at which a series does not converge
    told, chosen = statement["mechanism"], statement.get("selection")
    event: DpEvent = GaussianDpEvent(told["noise_multiplier"])
    if told["sampler"] == "poisson":
        event = SelfComposedDpEvent(PoissonSampledDpEvent(told["sampling_probability"], event), told["steps"])
    else:
        event = SelfComposedDpEvent(event, told["epochs"])
    if chosen is not None:
        if chosen["score_noise"] is not None:
            event = ComposedDpEvent([event, GaussianDpEvent(chosen["score_noise"])])
        event = RepeatAndSelectDpEvent(event, chosen["mean"], SHAPES[chosen["runs"]])
    with np.errstate(all="ignore"):  # losses that are infinite, which the library handles
        accountants = [RdpAccountant().compose(event)]
        if chosen is None and told["steps"] <= LONGEST and accountants[0].get_epsilon(AT) <= WORTH:
            accountants.append(PLDAccountant(NeighboringRelation.ADD_OR_REMOVE_ONE, GRID).compose(event))
        return [min(float(accountant.get_epsilon(delta)) for accountant in accountants) for delta in deltas]


def enough_noise(told: Json, selection: Json | None, epsilon: float | None, delta: float) -> Json:
    """Return the mechanism with enough noise that dp-accounting, too, finds at most ``epsilon``, including the
    choice.

    Args:
        told: from `training_told`, with the noise of one training at ``epsilon``.
        selection: see `SELECTION`; None: no choice.
        epsilon: None if the study sets the noise itself, which is then not changed.
        delta: of ``epsilon``.

    Raises:
        UserError: no noise is enough.
    """
    if epsilon is None:
        return told

    def spent(sigma: float) -> float:
        return recomputed({"mechanism": told | {"noise_multiplier": sigma}, "selection": selection}, [delta])[0]

    sigma = told["noise_multiplier"]
    if spent(sigma) > epsilon:
        sigma = least_noise(spent, epsilon, sigma, 0.02, 1e-3, 12)
    return told | {"noise_multiplier": sigma}


def relation(sampler: str) -> Neighbors:
    """Describe the neighboring sets of records of the statement."""
    return "add_remove" if sampler == "poisson" else "zero_out"


def training_of(statement: Mapping[str, Any]) -> Training:
    """Return the training described by a statement, in the form that accountants read."""
    told, unit = statement["mechanism"], statement["unit"]
    mechanism = Mechanism(
        sampler=told["sampler"],
        unit=UNITS[unit],
        bound=told["bound"],
        clip_norm=told["clip_norm"],
        noise_multiplier=told["noise_multiplier"],
    )
    return Training(mechanism, told["epochs"], told["batch_size"], told[COUNTED[unit]])


def curve_of(statement: Json) -> TradeOff:
    """Return the proven limit of any attack on the release.

    With a selection it follows from dp-accounting's ε at many δ, otherwise from the training's own curve.
    """
    if statement["selection"] is None:
        curve = proven_curve(training_of(statement), relation(statement["mechanism"]["sampler"]))
        assert curve is not None  # as `check_released` says
        return curve
    deltas = np.geomspace(1e-12, 0.5, 60)
    return tradeoff.profile(recomputed(statement, deltas.tolist()), deltas)


def proven(statement: Json) -> Json:
    """Return the guarantees of the mechanism, the selection and the rows of ε, as further keys of the statement."""
    selection, curve = statement["selection"], curve_of(statement)
    mu = curve.mu_bound
    if selection is not None:
        (spent,) = [row["epsilon"] for row in statement["epsilon"] if row["delta"] == statement["delta"]]
        (alone,) = recomputed({**statement, "selection": None}, [statement["delta"]])
        selection = selection | {"epsilon_of_one_training": alone, "epsilon_of_choosing": spent - alone}
    return {
        "selection": selection,
        "trade_off": [{"fpr": fpr, "tpr_at_most": float(curve.tpr(fpr))} for fpr in RATES],
        "advantage_at_most": curve.advantage,
        "precision_at_fpr_0.001": [
            {"prior": prior, "precision_at_most": curve.precision(prior, 0.001)} for prior in PRIORS
        ],
        "mu": mu if mu < inf else None,
        "regret_of_mu": curve.regret if mu < inf else None,
    }


def statement_of(
    told: Json,
    *,
    accountant: str,
    epsilon: float | None,
    delta: float,
    selection: Json | None,
) -> Json:
    """Return the whole statement except for what ε does not cover, as JSON.

    Args:
        told: see `training_told`.
        accountant: of the study's cell.
        epsilon: requested ε; None if the study sets the noise.
        delta: the study's δ.
        selection: see `SELECTION`.
    """
    statement: Json = {
        "format": FORMAT,
        "unit": "one person" if "persons" in told else "one record",
        "neighbors": relation(told["sampler"]),
        "mechanism": told,
        "accountant": accountant,
        "epsilon_asked": epsilon,
        "selection": selection,
        "delta": delta,
    }
    deltas = sorted({delta, *DELTAS}, reverse=True)
    rows = zip(deltas, recomputed(statement, deltas), strict=True)
    statement["epsilon"] = [{"delta": each, "epsilon": spent} for each, spent in rows]
    return statement | proven(statement)


def check_statement(statement: Any, where: str) -> list[str]:
    """Recompute all guarantees; return a sentence for each ε.

    Raises:
        UserError: a number is missing or of another kind, dp-accounting finds another ε or a larger one than asked, a
            limit is not what the mechanism proves, or a sentence is missing on what ε leaves out.
    """
    if not isinstance(statement, dict) or statement.get("format") != FORMAT:
        raise UserError(f"{where}: key 'format' must be {FORMAT!r}; this is not a release's privacy statement")
    told: Any = statement.get("mechanism")
    rows, asked, unit = (statement.get(key) for key in ("epsilon", "epsilon_asked", "unit"))
    if unit not in list(COUNTED):
        raise UserError(f"{where}: key 'unit' must be {' or '.join(map(repr, COUNTED))}; got {unit!r}")
    counted = COUNTED[unit]
    check(told, _with(MECHANISM | {counted: COUNT}), where, "mechanism")
    steps = ceil(told[counted] / told["batch_size"]) * told["epochs"]
    rate = min(1.0, told["batch_size"] / told[counted])
    if told["steps"] != steps or told["sampling_probability"] != rate:
        words = f"must be {steps} and {rate:g}, which follow from {counted}, batch_size and epochs"
        raise UserError(f"{where}: mechanism: steps and sampling_probability {words}")
    if "selection" not in statement:
        raise UserError(f"{where}: key 'selection' is missing; it must be null if nothing was chosen")
    if (chosen := statement["selection"]) is not None:
        check(chosen, _with(SELECTION), where, "selection")
    wanted = relation(told["sampler"])
    if statement.get("neighbors") != wanted:
        raise UserError(f"{where}: neighbors must be {wanted!r} for this sampler; got {statement.get('neighbors')!r}")
    if not isinstance(rows, list) or not 0 < len(rows) <= MOST_ROWS:
        raise UserError(f"{where}: epsilon must be a list with a row for each delta, up to {MOST_ROWS}")
    for place, row in enumerate(rows):
        check(row, _with(ROW), where, f"epsilon.{place}")
    if len({row["delta"] for row in rows}) < len(rows):
        raise UserError(f"{where}: epsilon must have one row for each delta")
    check(asked, {**POSITIVE, "type": ["null", "number"]}, where, "epsilon_asked")
    if statement.get("delta") not in [row["delta"] for row in rows]:
        raise UserError(f"{where}: key 'delta' must be that of a row of epsilon; got {statement.get('delta')!r}")
    said = []
    for row, found in zip(rows, recomputed(statement, [row["delta"] for row in rows]), strict=True):
        if not _agree(row["epsilon"], found):
            words = f"must be {found:.6g} at delta {row['delta']:g}, as dp-accounting finds; got {row['epsilon']:.6g}"
            raise UserError(f"{where}: epsilon {words}")
        if asked is not None and row["delta"] == statement["delta"] and found > asked:
            raise UserError(f"{where}: epsilon is {found:.6g}, above the {asked:g} requested")
        said.append(f"ε = {rounded_up(found, DIGITS)} at δ = {row['delta']:g}, for {in_words(statement)}")
    for key, found in proven(statement).items():
        if not _agree(statement.get(key), found):
            words = f"must be {brief(json.dumps(found))}, which the mechanism proves"
            raise UserError(f"{where}: {key} {words}; got {brief(json.dumps(statement.get(key)))}")
    _check_outside(statement, where)
    return said


def _agree(stated: Any, found: Any) -> bool:
    """Return whether a value of the statement equals the recomputed one; numbers may differ by rounding."""
    if isinstance(found, dict):
        return isinstance(stated, dict) and all(_agree(stated.get(key), value) for key, value in found.items())
    if isinstance(found, list):
        return isinstance(stated, list) and len(stated) == len(found) and all(map(_agree, stated, found))
    if isinstance(found, float):
        is_number = isinstance(stated, float | int) and not isinstance(stated, bool) and abs(stated) <= MOST
        return is_number and abs(stated - found) <= max(AGREEMENT * abs(found), LEAST)
    return bool(stated == found)


def _check_outside(statement: Json, where: str) -> None:
    """Refuse a statement without a sentence that `follows_from` its other keys, or with keys that do not allow the
    derivation.
    """
    try:
        sentences = follows_from(statement)
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"{where}: keys 'model' and 'measured' must be as a release writes them; {error!r}") from None
    listed = statement.get("outside")
    for sentence in sentences:
        if not isinstance(listed, list) or sentence not in listed:
            raise UserError(
                f"{where}: key 'outside' must hold the sentence {sentence!r}, which follows from the others"
            )


def spent_in_words(statement: Mapping[str, Any]) -> str:
    """Return ``ε = 0.9023 at δ = 1e-05``: at the δ of the study."""
    (spent,) = [row["epsilon"] for row in statement["epsilon"] if row["delta"] == statement["delta"]]
    return f"ε = {rounded_up(spent, DIGITS)} at δ = {statement['delta']:g}"


def in_words(statement: Mapping[str, Any]) -> str:
    """Describe the neighbors of the statement's ε."""
    unit = statement["unit"]
    if statement["neighbors"] == "zero_out":
        return f"{unit}'s contribution set to zero"
    return f"{unit} added or removed{WITH_ALL[unit]}"


def _with(properties: dict[str, Schema]) -> Schema:
    """Return the schema of a mapping with at least these keys."""
    return {"type": "object", "properties": properties, "required": list(properties)}
