"""The question to an accountant, checked once."""

from dataclasses import dataclass
from math import ceil, erfc, exp, floor, log10, sqrt

from dp_leakage.common.errors import UserError, nearest
from dp_leakage.privacy.accounting.rules import accountant_named, check_sampler, claimed_neighbors

ONCE_AN_EPOCH = ("shuffle", "cyclic", "balls_in_bins")  # samplers that use each unit once an epoch
UNAMPLIFIED = ("shuffle", "cyclic")  # of these, those whose batches every proof takes as known
CONVERSIONS = ("tight", "classic")
COMPOSING = ("rdp", "pld")  # accountants that can add what a private projection spent before the training


@dataclass(frozen=True)
class Case:
    """How a training sampled and composed its steps, and under what terms ε is asked for.

    Attributes:
        accountant: a key of ``rules.ACCOUNTANTS``.
        delta: in (0, 1); for ``vmf_pure`` and ``per_step``, which do not use it, also 0.
        epochs: ≥ 1.
        batch_size: the (expected) number of units in a batch.
        dataset_size: number of units: records, or (sub)classes. Only the ratio of the two matters, so if units are
            classes, both may be counted in records.
        sampler: how units are drawn; None means the accountant's first.
        neighbors: the relation; None means the accountant's first, except for ``summed`` Poisson batches, where it
            means add_remove, the tighter one.
        conversion: from Rényi divergence to (ε, δ), ``tight`` or ``classic``.
        blocks: von Mises–Fisher only: the dimension of each unit vector that gets noise, in one step and for one unit:
            one for the whole gradient, one per layer, or one per row.
        summed: von Mises–Fisher only: the vectors are blocks of the batch's summed gradient, not of each example's; a
            sum of zero, or an empty sum, has some fixed direction.
        projection_noise: the noise multiplier (under add_remove) of a private PCA that was fitted on the same records
            before the training: one more Gaussian mechanism, in which every record takes part; None for none.
        turns: how many parts of the data take turns, `Mechanism.turns`.
    """

    accountant: str
    delta: float
    epochs: int
    batch_size: int
    dataset_size: int
    sampler: str | None = None
    neighbors: str | None = None
    conversion: str = "tight"
    blocks: tuple[int, ...] = ()
    summed: bool = False
    projection_noise: float | None = None
    turns: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "blocks", tuple(self.blocks or ()))
        self._check_relation()
        self._check_numbers()
        if accountant_named(self.accountant).noise == "vmf":
            self._check_blocks()
        if self.projection_noise is not None:
            check_projection(self.accountant, self.projection_noise)

    @property
    def relation(self) -> str:
        """``neighbors``, which a checked case always has."""
        assert self.neighbors is not None
        return self.neighbors

    @property
    def rate(self) -> float:
        """A unit's chance q of being in a batch, where it can be in it."""
        return min(1.0, self.turns * self.batch_size / self.dataset_size)

    @property
    def steps_per_epoch(self) -> int:
        """Number of steps t in an epoch."""
        return steps_per_epoch(self.batch_size, self.dataset_size)

    @property
    def steps(self) -> int:
        """Number of steps T in the whole training."""
        return self.epochs * self.steps_per_epoch

    @property
    def uses(self) -> int:
        """Number of steps that one unit can take part in: one in each epoch, one in each turn, or all."""
        return self.epochs if self.sampler in ONCE_AN_EPOCH else ceil(self.steps / self.turns)

    @property
    def apart(self) -> float:
        """How far neighboring data sets' clipped sums can lie apart, in clipping norms."""
        return 2.0 if self.neighbors == "replace_one" else 1.0

    @property
    def beside(self) -> float:
        """ρ of the private projection: Δ²/2σ², where Δ² is 1 for add_remove and 2 for replace_one.

        See ``data.projection.SENSITIVITY``.
        """
        if self.projection_noise is None:
            return 0.0
        return (2.0 if self.neighbors == "replace_one" else 1.0) / (2 * self.projection_noise**2)

    def _check_relation(self) -> None:
        rules = accountant_named(self.accountant)
        if self.sampler is None:
            object.__setattr__(self, "sampler", rules.samplers[0])
        sampler = str(self.sampler)
        check_sampler(self.accountant, sampler)
        known = rules.relations[sampler]
        if self.neighbors is None:
            claimed = claimed_neighbors(self.accountant, sampler, self.summed)
            object.__setattr__(self, "neighbors", claimed)
        if self.neighbors not in known:
            raise UserError(
                f"neighbors: the accountant {self.accountant!r} says nothing about {self.neighbors!r} "
                f"under the sampler {self.sampler!r}; {nearest(self.neighbors, known)}."
            )

    def _check_numbers(self) -> None:
        if self.conversion not in CONVERSIONS:
            raise UserError(f"conversion: {self.conversion!r} is unknown; {nearest(self.conversion, CONVERSIONS)}.")
        pure = self.accountant in ("vmf_pure", "per_step")
        if not (0 < self.delta < 1 or (pure and self.delta == 0)):
            least = "0 ≤ delta < 1" if pure else "0 < delta < 1"
            raise UserError(f"delta: {self.delta:g} is out of range; valid: {least}.")
        if self.epochs < 1 or self.epochs != int(self.epochs):
            raise UserError(f"epochs: {self.epochs} is not a positive whole number.")
        if not 0 < self.batch_size <= self.dataset_size:
            raise UserError(
                f"batch_size: {self.batch_size} does not lie between 1 and dataset_size, {self.dataset_size}."
            )

    def _check_blocks(self) -> None:
        if not self.blocks or min(self.blocks) < 2:
            raise UserError(
                f"blocks: {list(self.blocks)} does not give the dimension, at least 2, of each unit vector, "
                f"which the accountant {self.accountant!r} needs."
            )
        if self.neighbors == "add_remove" and not self.summed:
            raise UserError(
                "neighbors: 'add_remove' does not hold for noise around each example's gradient, whose "
                "presence adds a vector of length one and can show in the sum's support; valid: replace_one."
            )


def check_projection(accountant: str, noise: float) -> None:
    """Refuses an accountant that cannot compose a private projection with the training, and a projection without noise.

    Raises:
        UserError: either is the case.
    """
    if accountant not in COMPOSING:
        raise UserError(
            f"accountant: {accountant!r} cannot add what a private PCA of the same records spent; "
            f"valid: {' or '.join(COMPOSING)}."
        )
    if not noise > 0:
        raise UserError(f"projection_noise: {noise:g} is no amount of noise; valid: above 0.")


def check_share(noise: float, epsilon: float, delta: float) -> None:
    """Refuses a private projection that spends a whole budget, so that nothing is left for the training.

    Under add_remove, between whose neighbors it spends least, by the exact δ of a Gaussian (Balle & Wang 2018,
    theorem 8).

    Args:
        noise: the projection's noise multiplier, above 0.
        epsilon: above 0.
        delta: in (0, 1).

    Raises:
        UserError: it does.
    """
    if _gaussian_delta(epsilon, noise) < delta:
        return
    from dp_leakage.privacy.accounting.library import gaussian_sigma

    least = gaussian_sigma(epsilon, delta, 1)
    digits = 2 - floor(log10(least))  # three are said, rounded up
    least = ceil(least * 10**digits) / 10**digits
    raise UserError(
        f"noise {noise:g} of the projection alone spends ε = {epsilon:g} at δ = {delta:g} or more; valid is more than "
        f"{least:.3g}, so that something is left for the training, or a larger ε"
    )


def _gaussian_delta(epsilon: float, sigma: float) -> float:
    """The δ of one Gaussian mechanism at an ε, without the imports that `library` takes while a study is planned.

    For an ε whose exponential overflows it is 0.
    """

    def above(x: float) -> float:
        return erfc(x / sqrt(2)) / 2

    if epsilon > 700:
        return 0.0
    return above(epsilon * sigma - 0.5 / sigma) - exp(epsilon) * above(epsilon * sigma + 0.5 / sigma)


def steps_per_epoch(batch_size: int, dataset_size: int) -> int:
    """Steps in an epoch, ⌈n/b⌉, for every sampler. The last batch of a shuffled epoch may be short."""
    return ceil(dataset_size / batch_size)
