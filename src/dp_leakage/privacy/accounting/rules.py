"""What each accountant assumes: the one place that says which sampler, noise and neighbours it can speak for.

Nothing here is computed, so that the workflow can refuse a configuration while it builds the DAG.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from dp_leakage.errors import UserError, nearest
from dp_leakage.privacy.mechanism import GROUPS, Mechanism, Noise, Sampler

Neighbours = Literal["add_remove", "zero_out", "replace_one"]
"""Two data sets are neighbours if they differ by one unit's presence (``add_remove``); by one unit's
contribution being set to zero with everything else, the batches too, left in place (``zero_out``); or by one
unit's value (``replace_one``)."""


@dataclass(frozen=True)
class Accountant:
    """What an accountant can speak for, and what its number is worth.

    Attributes:
        noise: the noise it accounts for.
        relations: each sampler whose batches satisfy its assumptions, and the neighbours that it knows under
            it; the first of each is its default.
        claim: ``exact``; ``bound`` (never below the true ε); or ``as_printed``: a paper's formula, which may
            be wrong outside its conditions.
        module: the user's plugin that computes it, in a function ``epsilon(noise_multiplier, case)``; None for ours.
    """

    noise: Noise | str
    relations: dict[Sampler, tuple[Neighbours, ...]]
    claim: Literal["exact", "bound", "as_printed"]
    module: str | None = None

    @property
    def samplers(self) -> tuple[Sampler, ...]:
        """The samplers that it supports, its default first."""
        return tuple(self.relations)


_EACH_EPOCH = {"shuffle": ("zero_out", "replace_one")}
_GROUPS = {"class_poisson": ("replace_one", "add_remove")}
_DIRECTIONS = {
    "poisson": ("replace_one", "add_remove"),  # add_remove for summed gradients only, see ``Case``
    "wor": ("replace_one",),
    "shuffle": ("replace_one",),
}
ACCOUNTANTS: dict[str, Accountant] = {
    "naive": Accountant("gaussian", {"shuffle": ("zero_out",)}, "as_printed"),
    "advanced": Accountant("gaussian", {"shuffle": ("zero_out",)}, "as_printed"),
    "zcdp": Accountant("gaussian", _EACH_EPOCH, "bound"),
    "gdp": Accountant("gaussian", _EACH_EPOCH, "exact"),
    "rdp": Accountant("gaussian", {"poisson": ("add_remove", "replace_one"), "wor": ("replace_one",)}, "bound"),
    "pld": Accountant("gaussian", {"poisson": ("add_remove", "replace_one")} | _GROUPS, "bound"),
    "class_moments": Accountant("gaussian", _GROUPS, "bound"),
    "theorem1": Accountant("gaussian", _GROUPS, "as_printed"),
    "vmf_pure": Accountant("vmf", _DIRECTIONS, "bound"),
    "vmf_rdp": Accountant("vmf", _DIRECTIONS, "bound"),
    "per_step": Accountant("vmf", dict.fromkeys(_DIRECTIONS, ("replace_one",)), "as_printed"),
}


def accountant_named(name: str) -> Accountant:
    """The accountant's assumptions.

    Raises:
        UserError: no such accountant.
    """
    if name not in ACCOUNTANTS:
        raise UserError(f"accountant: {name!r} is unknown; {nearest(name, ACCOUNTANTS)}.")
    return ACCOUNTANTS[name]


def claimed_neighbours(accountant: str, sampler: str, summed: bool = False) -> Neighbours:
    """The relation for which an accountant's ε is meant where none is asked for.

    Args:
        accountant: a key of ``ACCOUNTANTS``.
        sampler: one of its samplers.
        summed: directional noise around the batch's summed gradient, for which adding or removing a record has a
            bound of its own, the tighter one.
    """
    known = accountant_named(accountant).relations[sampler]
    return "add_remove" if summed and "add_remove" in known else known[0]


def own_sampler(accountant: str, unit: str) -> str:
    """The first of the accountant's samplers that draws such units, else the first."""
    samplers = accountant_named(accountant).samplers
    return "class_poisson" if unit in GROUPS and "class_poisson" in samplers else samplers[0]


def check_sampler(accountant: str, sampler: str) -> None:
    """Refuse a sampler whose batches do not satisfy the accountant's assumptions.

    Raises:
        UserError: unknown accountant or sampler, or the two do not match.
    """
    allowed = accountant_named(accountant).samplers
    if sampler not in get_args(Sampler):
        raise UserError(f"sampler: {sampler!r} is unknown; {nearest(sampler, get_args(Sampler))}.")
    if sampler not in allowed:
        raise UserError(
            f"sampler: {sampler!r} does not satisfy what the accountant {accountant!r} assumes, "
            f"it accounts for {_any_of(allowed)}."
        )


def check_noise(accountant: str, mechanism: Mechanism) -> None:
    """Refuse a mechanism with noise that the accountant has no formula for.

    Raises:
        UserError: unknown accountant, or it accounts for other noise.
    """
    noise = accountant_named(accountant).noise
    if mechanism.noise != noise:
        raise UserError(
            f"accountant: {accountant!r} accounts for {noise} noise, not for {mechanism.noise!r}; "
            f"valid: {_any_of(name for name, a in ACCOUNTANTS.items() if a.noise == mechanism.noise)}."
        )


def check_mechanism(accountant: str, mechanism: Mechanism) -> None:
    """Refuse a mechanism whose noise, sampler or unit the accountant cannot speak for.

    Raises:
        UserError: unknown accountant, or it does not account for the mechanism.
    """
    check_noise(accountant, mechanism)
    check_sampler(accountant, mechanism.sampler)
    if (mechanism.unit in GROUPS) != (mechanism.sampler == "class_poisson"):
        raise UserError(
            f"unit: {mechanism.unit!r} cannot be accounted for under the sampler {mechanism.sampler!r}, "
            "classes and subclasses are drawn by 'class_poisson', and nothing else is."
        )
    if mechanism.unit == "batch" and mechanism.noise == "gaussian":
        raise UserError(
            "unit: 'batch' moves by up to twice the clipping norm with one record, and the accountant "
            f"{accountant!r} counts it once; valid: 'example'."
        )


def _any_of(names: Iterable[str]) -> str:
    return " or ".join(repr(name) for name in names) or "none"
