"""Protection of a cell, as its study asks for it: the step, and the question that its noise answers."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.privacy.mechanisms import amount_of, with_amount
from dp_leakage.privacy.mechanisms.base import Neighbors
from dp_leakage.privacy.target import Target

STEP = tuple(field.name for field in fields(Mechanism))
QUESTION = ("accountant", "epsilon", "delta", "rdp_sigma", "projection_noise")  # what fixes the noise


@dataclass(frozen=True)
class Protection:
    """A mechanism and what fixes its noise: an ε, a risk, or the noise itself, which ``step`` then has.

    Attributes:
        step: the mechanism.
        accountant: the accountant that solves for the noise; "" for a bound without noise.
        epsilon: the ε to keep; None if something else fixes the noise.
        delta: of that ε, and of every ε that is told; None without noise.
        rdp_sigma: source of σ for accountant rdp (`calibration.RDP_SIGMA`); None for other accountants.
        target: the risk to keep; None if something else fixes the noise.
        neighbors: between which the risk is kept; None without a target.
        projection_noise: see `Training`.
    """

    step: Mechanism
    accountant: str = ""
    epsilon: float | None = None
    delta: float | None = None
    rdp_sigma: str | None = None
    target: Target | None = None
    neighbors: Neighbors | None = None
    projection_noise: float | None = None

    @classmethod
    def read(cls, settings: Mapping[str, Any] | None) -> "Protection | None":
        """Return the protection with these `settings`; None for None."""
        if settings is None:
            return None
        wanted = dict(settings.get("target", {}))
        neighbors = wanted.pop("neighbors", None)
        return cls(
            Mechanism(**{name: settings[name] for name in STEP if name in settings}),
            neighbors=neighbors,
            target=Target.read(wanted) if wanted else None,
            **{name: settings[name] for name in QUESTION if name in settings},
        )

    @property
    def settings(self) -> dict[str, Any]:
        """Return all fields as plain data, for JSON."""
        told = asdict(self.step) | {name: getattr(self, name) for name in QUESTION}
        if self.projection_noise is None:
            del told["projection_noise"]
        if self.target is not None:
            told["target"] = {**self.target.settings, "neighbors": self.neighbors}
        return told

    @property
    def noisy(self) -> bool:
        """Return whether there is noise."""
        return self.step.noise != "none"

    @property
    def amount(self) -> float | None:
        """Return the noise (σ or κ) that the study gives; None if it is solved for."""
        found: float | None = getattr(self.step, amount_of(self.step.noise))
        return found

    def with_budget(self, key: str, value: "float | Target", neighbors: Neighbors) -> "Protection":
        """Return the same protection with a budget: an ``epsilon``, a ``noise_multiplier`` or a ``target``."""
        if isinstance(value, Target):
            return replace(self, target=value, neighbors=neighbors, rdp_sigma=None)
        if key == "epsilon":
            return replace(self, epsilon=value)
        return replace(self, step=with_amount(self.step, value))
