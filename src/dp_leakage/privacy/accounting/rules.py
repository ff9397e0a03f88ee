"""Assumptions of each accountant: the only place that states the samplers, noise and neighbors it covers.

These functions compute nothing, so that the workflow can refuse a configuration while it builds the DAG.
"""

from collections.abc import Iterable

from dp_leakage.common.errors import UserError, nearest
from dp_leakage.common.user_code import DEFINED, FILES
from dp_leakage.privacy.mechanism import CYCLIC_POISSON, SAMPLERS, Mechanism, holds_groups
from dp_leakage.privacy.mechanisms import ACCOUNTANTS
from dp_leakage.privacy.mechanisms.base import Accountant, Neighbors

__all__ = [
    "ACCOUNTANTS",
    "Accountant",
    "Neighbors",
    "accountant_named",
    "check_mechanism",
    "check_noise",
    "check_sampler",
]


POISSON = ("poisson", "class_poisson", CYCLIC_POISSON)


def relation_of_game(design: str, sampler: str) -> Neighbors:
    """Return the neighbors that a membership attack distinguishes.

    With fixed members (``split``), a member is compared with a non-member, so one record replaces another. With random
    inclusion (``coins``), a training with the record is compared with one without it, in otherwise equal batches; under
    Poisson sampling that is ``add_remove``.
    """
    if design == "split":
        return "replace_one"
    return "add_remove" if sampler in POISSON else "zero_out"


def accountant_named(name: str) -> Accountant:
    """Return an accountant's assumptions.

    Raises:
        UserError: the accountant does not exist.
    """
    if name not in ACCOUNTANTS:
        raise UserError(f"accountant: {name!r} is unknown; {nearest(name, ACCOUNTANTS)}.")
    return ACCOUNTANTS[name]


def claimed_neighbors(accountant: str, sampler: str, summed: bool = False) -> Neighbors:
    """Return the default neighboring relation of an accountant's ε.

    Args:
        accountant: a key of ``ACCOUNTANTS``.
        sampler: one of its samplers.
        summed: directional noise around the batch's summed gradient, for which adding or removing a record has a
            separate, tighter bound.
    """
    known = accountant_named(accountant).relations[sampler]
    return "add_remove" if summed and "add_remove" in known else known[0]


def own_sampler(accountant: str, unit: str) -> str:
    """Return the first of the accountant's samplers that draws such units, or else its first sampler."""
    samplers = accountant_named(accountant).samplers
    return "class_poisson" if holds_groups(unit) and "class_poisson" in samplers else samplers[0]


def check_sampler(accountant: str, sampler: str) -> None:
    """Refuse a sampler whose batches do not satisfy the accountant's assumptions.

    Raises:
        UserError: unknown accountant or sampler, or the two do not match.
    """
    allowed = accountant_named(accountant).samplers
    if sampler not in SAMPLERS:
        raise UserError(f"sampler: {sampler!r} is unknown; {nearest(sampler, SAMPLERS)}.")
    if sampler not in allowed:
        raise UserError(
            f"sampler: {sampler!r} violates what accountant {accountant!r} assumes; use {_any_of(allowed)}."
        )


def check_noise(accountant: str, mechanism: Mechanism) -> None:
    """Refuse a mechanism whose noise the accountant has no formula for.

    Raises:
        UserError: unknown accountant, or it accounts for other noise.
    """
    noise = accountant_named(accountant).noise
    if mechanism.noise != noise:
        raise UserError(
            f"accountant: {accountant!r} accounts for {noise} noise, not for {mechanism.noise!r}; "
            f"valid: {_any_of(name for name, a in ACCOUNTANTS.items() if a.noise == mechanism.noise)}."
        )


def is_of(accountant: str, mechanism: Mechanism) -> bool:
    """Return whether the accountant may be used for the mechanism; True for every accountant of this package.

    A plugin's accountant applies only to the plugin's mechanism: its ε relies on the plugin's bound, groups and noise,
    or on its batches.
    """
    plugin = accountant_named(accountant).module
    if plugin not in FILES:
        return True
    parts = {"bound": mechanism.bound, "groups": mechanism.unit, "noise": mechanism.noise, "Noise": mechanism.noise}
    used = [own for part, own in parts.items() if part in DEFINED[plugin]] or [mechanism.sampler]
    return all(own == plugin for own in used)


def draws_its_units(mechanism: Mechanism) -> bool:
    """Return whether the sampler draws units of this type, as accountants assume: groups, or single units.

    A plugin's sampler draws single units, unless the plugin also defines groups.
    """
    sampler, unit = mechanism.sampler, mechanism.unit
    draws_groups = sampler == "class_poisson" or (sampler in FILES and sampler == unit)
    return holds_groups(unit) == draws_groups


def is_covered(mechanism: Mechanism) -> bool:
    """Return whether a valid accountant covers the noise under this sampler."""
    return draws_its_units(mechanism) and any(
        rules.noise == mechanism.noise
        and rules.claim != "as_printed"
        and mechanism.sampler in rules.relations
        and is_of(name, mechanism)
        for name, rules in ACCOUNTANTS.items()
    )


def check_mechanism(accountant: str, mechanism: Mechanism) -> None:
    """Refuse a mechanism whose noise, sampler or unit the accountant does not cover, or whose plugin is another.

    Raises:
        UserError: unknown accountant, or it does not account for the mechanism.
    """
    check_noise(accountant, mechanism)
    if not is_of(accountant, mechanism):
        raise UserError(
            f"accountant: {accountant!r} is for the mechanism of plugin "
            f"{accountant_named(accountant).module}; use an accountant of the package, or the plugin's own defense"
        )
    check_sampler(accountant, mechanism.sampler)
    if not draws_its_units(mechanism):
        raise UserError(
            f"unit: {mechanism.unit!r} has no accountant under sampler {mechanism.sampler!r}; 'class_poisson' draws "
            "classes and subclasses, the other samplers draw records."
        )
    if mechanism.unit == "batch" and mechanism.noise != "vmf":  # which is drawn around the batch's sum
        raise UserError(
            "unit: 'batch' lets one record change the gradient by twice the clipping norm, and accountant "
            f"{accountant!r} assumes once; use unit 'example'."
        )


def _any_of(names: Iterable[str]) -> str:
    return " or ".join(repr(name) for name in names) or "none"
