"""Facts of one training, shared by everything that accounts for it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from math import ceil, inf
from typing import Any

from dp_leakage.common.errors import UserError
from dp_leakage.privacy.mechanism import Mechanism

ONCE_AN_EPOCH = ("shuffle", "cyclic", "balls_in_bins")  # samplers that use each unit once an epoch


@dataclass(frozen=True)
class Training:
    """A training, private or merely bounded. Accountants, curves, calibration, measures and releases read only this.

    δ, neighbors and accountant belong to a question about a training: `accounting.case.Case`.

    Attributes:
        mechanism: the step; its noise is None until it is solved for.
        epochs: ≥ 1, a whole number.
        batch_size: units per step (expected number for random batches), in (0, dataset_size].
        dataset_size: total units: records, people or (sub)classes, as ``mechanism.unit`` says. Only the ratio to
            batch_size matters, so if units are classes, both may be counted in records.
        blocks: for directional noise: the dimension, ≥ 2, of each unit vector that gets noise in one step.
        projection_noise: noise multiplier (under add_remove), above 0, of a private PCA that was fitted on the same
            records before the training: one more Gaussian mechanism that every record takes part in. None: no private
            PCA.
        records: ≥ 1: the largest number of units that are included together: a person's records, if each is a unit.
        groups: the number of (sub)classes, if these are the units. None otherwise.
        moves: whether the number of units differs between neighbors, and with it batches and the noise of their mean.
            Nothing is proven then.
    """

    mechanism: Mechanism
    epochs: int
    batch_size: float
    dataset_size: int
    blocks: tuple[int, ...] = ()
    projection_noise: float | None = None
    records: int = 1
    groups: int | None = None
    moves: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "blocks", tuple(self.blocks or ()))
        if self.epochs < 1 or self.epochs != int(self.epochs):
            raise UserError(f"epochs: {self.epochs} is not a positive whole number.")
        if not 0 < self.batch_size <= self.dataset_size:
            raise UserError(
                f"batch_size: {self.batch_size} does not lie between 1 and dataset_size, {self.dataset_size}."
            )
        noises = {name: getattr(self.mechanism, name) for name in ("noise_multiplier", "kappa")}
        for name, noise in (noises | {"projection_noise": self.projection_noise}).items():
            if noise is not None and not 0 <= noise < inf:
                raise UserError(f"{name}: {noise} is out of range; valid: 0 or more.")

    @classmethod
    def read(cls, settings: Mapping[str, Any]) -> "Training":
        """Return the training with these `settings`."""
        return cls(**{**settings, "mechanism": Mechanism(**settings["mechanism"])})

    @property
    def settings(self) -> dict[str, Any]:
        """Return all fields as plain data, for JSON."""
        return asdict(self)

    @property
    def sampler(self) -> str:
        """Return the sampler's name."""
        return str(self.mechanism.sampler)

    @property
    def rate(self) -> float:
        """Probability q that a unit is in a batch, for batches that can hold the unit."""
        return min(1.0, self.mechanism.turns * self.batch_size / self.dataset_size)

    @property
    def steps_per_epoch(self) -> int:
        """Number of steps t in an epoch."""
        return steps_per_epoch(self.batch_size, self.dataset_size)

    @property
    def steps(self) -> int:
        """Number of steps T."""
        return self.epochs * self.steps_per_epoch

    @property
    def uses(self) -> int:
        """Return the number of steps that one unit can take part in: one in each epoch, one in each cycle of subsets,
        or all.
        """
        return self.epochs if self.sampler in ONCE_AN_EPOCH else ceil(self.steps / self.mechanism.turns)

    def under(self, sampler: str) -> "Training":
        """Return the same training with another sampler."""
        return self if sampler == self.sampler else replace(self, mechanism=replace(self.mechanism, sampler=sampler))


def steps_per_epoch(batch_size: float, dataset_size: int) -> int:
    """Return the steps in an epoch, ⌈n/b⌉, for every sampler. The last batch of a shuffled epoch may be short."""
    return ceil(dataset_size / batch_size)
