"""Claim tested by an audit design of a cell, from the provenance of its score file."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import numpy as np

from dp_leakage.audits import Claim, approximate_dp, gaussian_dp, own_curves
from dp_leakage.common.errors import UserError
from dp_leakage.data.audit_design import AuditDesign
from dp_leakage.privacy.accounting.curve import proven_curve
from dp_leakage.privacy.accounting.rules import Neighbors
from dp_leakage.privacy.mechanism import PERSON
from dp_leakage.privacy.training import Training
from dp_leakage.steps import Json
from dp_leakage.steps._models import training_of


def claim_of(design: AuditDesign, made: Json) -> Claim:
    """Return the claim that a design tests. Raises UserError if nothing is proven for its random inclusion."""
    delta = made["settings"]["delta"]
    if design.claim == "approximate":
        return approximate_dp(delta)
    return own_claim(made_by(made), made["settings"]["defense"], delta, design.neighbors)


def made_by(made: Json) -> Training:
    """Return the training of an audit or of a cell's attacks, which has a claim of its own."""
    training = training_of(made)
    assert training is not None  # only cells with a mechanism have one
    return training


def own_claim(training: Training, defense: str, delta: float, neighbors: Neighbors) -> Claim:
    """Return the claim of exactly a training's mechanism; error messages name its ``defense``.

    Raises:
        UserError: once a curve is asked for, if nothing is proven for these neighbors.
    """
    mechanism = training.mechanism
    plain = (mechanism.noise, mechanism.sampler) == ("gaussian", "shuffle") and mechanism.unit in ("example", PERSON)
    if plain and training.records == 1 and not training.moves:
        return gaussian_dp(delta)
    return _own(training, defense, delta, neighbors)


@lru_cache
def _own(training: Training, defense: str, delta: float, neighbors: Neighbors) -> Claim:
    """Return the claim, cached for all designs of a cell, since its curves take seconds."""
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
