"""An audit as its study designs it: which canaries, in how many models, and what their scores are held against."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

Neighbors = Literal["add_remove", "zero_out", "replace_one"]


@dataclass(frozen=True)
class AuditDesign:
    """A design of a study's key ``audit``, for one cell.

    Attributes:
        design: its bound, one of `audits.designs.DESIGNS`.
        models: number of trained models.
        share: share of the canaries that are guessed.
        neighbors: the relation of the two data sets of its game.
        canaries: random inclusions in each model.
        canary: their kind, one of `data.canaries.DESIGNS`.
        score: access of the auditor to a model.
        relation: ``replace_one`` (a canary or another record) or ``presence`` (a canary or nothing).
        start: initial parameters: ``random``, or ``trained`` without privacy for ``start_epochs``.
        bug: a planted mistake, one of `training.planted.BUGS`; None for a correct mechanism.
        beyond_reach: ``refuse`` or ``mark`` an audit that could not refute its claim.
        claim: the tested claim: an ``approximate`` (ε, δ), a ``gaussian`` curve, or the mechanism's ``own`` curve.
    """

    design: str
    models: int
    share: float
    neighbors: Neighbors
    canaries: int = 1
    canary: str = "mislabeled"
    score: str = "loss"
    relation: str = "replace_one"
    start: str = "random"
    start_epochs: int = 30
    bug: str | None = None
    beyond_reach: str = "refuse"
    claim: str = "approximate"

    @classmethod
    def of(cls, given: Mapping[str, Any], poisson: bool) -> "AuditDesign":
        """Return a study's design for a cell. ``poisson``: its batches are drawn at random, each record by itself."""
        # All canaries are guessed where many runs claim a curve, else the surest quarter.
        curve = given["design"] == "many_runs" and given.get("claim", cls.claim) != cls.claim
        neighbors: Neighbors = "add_remove" if poisson else "zero_out"
        if given.get("relation", cls.relation) == "replace_one":
            neighbors = "replace_one"
        return cls(**{"share": 1.0 if curve else 0.25, **given}, neighbors=neighbors)

    @property
    def settings(self) -> dict[str, Any]:
        """Return all fields as plain data, for JSON."""
        return asdict(self)

    @property
    def coins(self) -> int:
        """Return the number of random inclusions in all models together."""
        return self.models * self.canaries
