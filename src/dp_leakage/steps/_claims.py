"""The claim that a design of a cell's audit tests, from the provenance of its score file."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from dp_leakage.audits import Claim, approximate_dp, gaussian_dp, own_curves
from dp_leakage.common.errors import UserError
from dp_leakage.privacy.accounting.curve import proven_curve
from dp_leakage.privacy.accounting.rules import Neighbors
from dp_leakage.privacy.mechanism import PERSON, Mechanism
from dp_leakage.privacy.training import Training
from dp_leakage.steps import Json
from dp_leakage.steps._models import mechanism_of


def claim_of(design: Mapping[str, Any], made: Json) -> Claim:
    """The claim that a design tests. Raises UserError if nothing is proven for what its coins decide."""
    delta = made["settings"]["delta"]
    return approximate_dp(delta) if design["claim"] == "approximate" else own_claim(made, delta, design["neighbors"])


def own_claim(made: Json, delta: float, neighbors: Neighbors) -> Claim:
    """The claim of exactly the mechanism of a training, from the training's or its audit's provenance.

    Raises:
        UserError: once a curve is asked for, if nothing is proven for these neighbors.
    """
    mechanism = made["settings"]["mechanism"]
    step = tuple(mechanism[key] for key in ("noise", "sampler"))
    if step == ("gaussian", "shuffle") and mechanism["unit"] in ("example", PERSON) and "most_records" not in made:
        return gaussian_dp(delta)
    return _own(_training(made), made["settings"]["defense"], delta, neighbors)


def units_at_once(mechanism: Mechanism, made: Json) -> int:
    """How many units of a training come and go with a coin at most: a person's records, if each is a unit."""
    return 1 if mechanism.unit == PERSON else int(made.get("most_records", 1))


def moves(mechanism: Mechanism, made: Json) -> bool:
    """Whether batches and the noise of their mean differ between neighbors, which no curve accounts for.

    Rate and divisor follow from the number of training records. If single records are the units, that number changes
    when a person takes the place of one who has fewer.
    """
    return mechanism.unit != PERSON and bool(made.get("records_move", False))


def _training(made: Json) -> Training:
    settings, mechanism = made["settings"], mechanism_of(made)
    assert mechanism is not None  # only cells with a mechanism have a claim of their own
    return Training(
        mechanism,
        settings["training"]["epochs"],
        settings["training"]["batch_size"],
        made["n_train"],
        made["blocks"],
        settings["mechanism"].get("projection_noise"),
        units_at_once(mechanism, made),
    )


@lru_cache
def _own(training: Training, defense: str, delta: float, neighbors: Neighbors) -> Claim:
    """Computed once for all designs of a cell, since its curves take seconds."""
    mechanism = training.mechanism

    def tpr(strength: float) -> Callable[[np.ndarray], np.ndarray]:
        noise, kappa = (
            None if amount is None else amount * factor
            for amount, factor in ((mechanism.noise_multiplier, 1 / strength), (mechanism.kappa, strength))
        )
        scaled = replace(training, mechanism=replace(mechanism, noise_multiplier=noise, kappa=kappa))
        proven = proven_curve(scaled, neighbors, delta)
        if proven is None:
            raise UserError(f"audit claim 'own': nothing is proven of {defense} for {neighbors} neighbors")
        return proven.tpr

    return own_curves(f"this {mechanism.noise} mechanism", delta, tpr)
