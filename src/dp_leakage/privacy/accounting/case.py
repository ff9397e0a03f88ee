"""Input of an accountant, checked once."""

from dataclasses import dataclass
from math import ceil, erfc, exp, floor, log10, sqrt

from dp_leakage.common.errors import UserError, nearest
from dp_leakage.privacy.accounting.rules import accountant_named, check_sampler, claimed_neighbors
from dp_leakage.privacy.training import Training

UNAMPLIFIED = ("shuffle", "cyclic")  # samplers that use each unit once an epoch, in batches every proof takes as known
CONVERSIONS = ("tight", "classic")
COMPOSING = ("rdp", "pld")  # accountants that can add what a private projection spent before the training


@dataclass(frozen=True)
class Case:
    """Input of an accountant: a training, δ, the neighbors, and the conversion from Rényi divergence.

    Attributes:
        training: as the accountant counts it, see `counted`.
        accountant: a key of ``rules.ACCOUNTANTS``.
        delta: in (0, 1); for ``vmf_pure`` and ``per_step``, which do not use it, also 0.
        neighbors: the relation. None at the making means the accountant's first, except for ``summed`` Poisson batches,
            where it means add_remove, the tighter one.
        conversion: from Rényi divergence to (ε, δ), ``tight`` or ``classic``.
    """

    training: Training
    accountant: str
    delta: float
    neighbors: str | None = None
    conversion: str = "tight"

    def __post_init__(self) -> None:
        self._check_relation()
        if self.conversion not in CONVERSIONS:
            raise UserError(f"conversion: {self.conversion!r} is unknown; {nearest(self.conversion, CONVERSIONS)}.")
        pure = self.accountant in ("vmf_pure", "per_step")
        if not (0 < self.delta < 1 or (pure and self.delta == 0)):
            least = "0 ≤ delta < 1" if pure else "0 < delta < 1"
            raise UserError(f"delta: {self.delta:g} is out of range; valid: {least}.")
        if accountant_named(self.accountant).noise == "vmf":
            self._check_blocks()
        if self.training.projection_noise is not None:
            check_projection(self.accountant, self.training.projection_noise)

    @classmethod
    def counted(cls, training: Training, accountant: str, delta: float, conversion: str = "tight") -> "Case":
        """Construct for an accountant that may not cover the training's sampler, as declared in ``accounting_note``: it
        then assumes batches of its own sampler.
        """
        samplers = accountant_named(accountant).samplers
        sampler = training.sampler if training.sampler in samplers else samplers[0]
        return cls(training.under(sampler), accountant, delta, conversion=conversion)

    @property
    def relation(self) -> str:
        """``neighbors``, which a checked case always has."""
        assert self.neighbors is not None
        return self.neighbors

    @property
    def sampler(self) -> str:
        """`Training.sampler`."""
        return self.training.sampler

    @property
    def epochs(self) -> int:
        """`Training.epochs`."""
        return self.training.epochs

    @property
    def blocks(self) -> tuple[int, ...]:
        """`Training.blocks`."""
        return self.training.blocks

    @property
    def summed(self) -> bool:
        """Return whether directional noise is drawn around the batch's sum, so that an empty sum also has a
        direction.
        """
        return self.training.mechanism.noise == "vmf" and self.training.mechanism.summed

    @property
    def rate(self) -> float:
        """`Training.rate`."""
        return self.training.rate

    @property
    def steps_per_epoch(self) -> int:
        """Return `Training.steps_per_epoch`."""
        return self.training.steps_per_epoch

    @property
    def steps(self) -> int:
        """`Training.steps`."""
        return self.training.steps

    @property
    def uses(self) -> int:
        """`Training.uses`."""
        return self.training.uses

    @property
    def apart(self) -> float:
        """Return the largest distance between clipped sums of neighboring data sets, in clipping norms."""
        return 2.0 if self.neighbors == "replace_one" else 1.0

    @property
    def beside(self) -> float:
        """ρ of the private projection (`projection_cost`)."""
        return projection_cost(self.training, self.relation)

    def _check_relation(self) -> None:
        check_sampler(self.accountant, self.sampler)
        known = accountant_named(self.accountant).relations[self.sampler]
        if self.neighbors is None:
            claimed = claimed_neighbors(self.accountant, self.sampler, self.summed)
            object.__setattr__(self, "neighbors", claimed)
        if self.neighbors not in known:
            raise UserError(
                f"neighbors: the accountant {self.accountant!r} does not cover {self.neighbors!r} "
                f"under the sampler {self.sampler!r}; {nearest(str(self.neighbors), known)}."
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


def projection_cost(training: Training, neighbors: str) -> float:
    """Return ρ = Δ²/2σ² of the private PCA, 0 without one; Δ² is 1, and 2 for replace_one (``data.projection``)."""
    if training.projection_noise is None:
        return 0.0
    return (2.0 if neighbors == "replace_one" else 1.0) / (2 * training.projection_noise**2)


def check_projection(accountant: str, noise: float) -> None:
    """Refuse an accountant that cannot compose a private projection with the training, and a projection without noise.

    Raises:
        UserError: either is the case.
    """
    if accountant not in COMPOSING:
        raise UserError(
            f"accountant: {accountant!r} cannot add what a private PCA of the same records spent; "
            f"valid: {' or '.join(COMPOSING)}."
        )
    if not noise > 0:
        raise UserError(f"projection_noise: {noise:g} is out of range; valid: above 0.")


def check_share(noise: float, epsilon: float, delta: float) -> None:
    """Refuse a private projection that spends the whole budget, leaving nothing for the training.

    Under add_remove, between whose neighbors it spends least, by the exact δ of a Gaussian (Balle & Wang 2018, theorem
    8).

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
        f"noise {noise:g} of the projection alone spends ε = {epsilon:g} at δ = {delta:g} or more; expected more than "
        f"{least:.3g}, so that something is left for the training, or a larger ε"
    )


def _gaussian_delta(epsilon: float, sigma: float) -> float:
    """Return δ of one Gaussian mechanism at an ε, without `library`'s imports, which are slow during planning.

    It is 0 if e^ε overflows.
    """

    def above(x: float) -> float:
        return erfc(x / sqrt(2)) / 2

    if epsilon > 700:
        return 0.0
    return above(epsilon * sigma - 0.5 / sigma) - exp(epsilon) * above(epsilon * sigma + 0.5 / sigma)
