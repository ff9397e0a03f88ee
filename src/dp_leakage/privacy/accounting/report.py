"""ε of one training under every accountant that covers it."""

from collections.abc import Iterator
from typing import NamedTuple

from dp_leakage.privacy.accounting import printed
from dp_leakage.privacy.accounting.case import COMPOSING, Case
from dp_leakage.privacy.accounting.rules import ACCOUNTANTS, check_noise, draws_its_units, is_of
from dp_leakage.privacy.accounting.spend import epsilon_spent
from dp_leakage.privacy.mechanism import Mechanism, holds_groups
from dp_leakage.privacy.training import Training

CLASSIC = "the classic Gaussian formula holds only while each epoch's epsilon is below 1"
BATCH = "a whole batch's clipped gradient can move by twice the clipping norm, the formula assumes once"
BATCH_DOUBLED = "a whole batch's clipped gradient can move by twice the clipping norm"
HYPOTHETICAL = "if the shuffled batches had been Poisson samples"
THEOREM = "an approximation, which can lie below the ε spent: the theorem's proof drops factors"
PER_STEP = "the budget of one step and one unit vector, not of the training"
UNASSUMED = "the accountant assumes another sampler or unit"
OF_GROUPS = "its neighbors are those of (sub)classes, of which a record more or fewer exchanges one"
MANY_GROUPS = "delta is not below one over the number of (sub)classes"

HALFWAY = ("poisson", "balls_in_bins")
"""Samplers under which ``pld`` takes the batch without the record to be one clipping norm away from that with it."""


class Spent(NamedTuple):
    """ε of a training by one accountant.

    Attributes:
        accountant: a key of ``rules.ACCOUNTANTS``.
        epsilon: ε at the training's δ (at δ = 0 for ``vmf_pure`` and ``per_step``).
        neighbors: the neighboring relation of ε.
        valid: whether it is an upper bound for this training.
        sampling: ``as_trained``, or ``hypothetical_SAMPLER``: the ε of the same noise with batches of that sampler.
        note: the reason if it is not valid, or a further remark; may be empty.
    """

    accountant: str
    epsilon: float
    neighbors: str
    valid: bool
    sampling: str
    note: str


def epsilon_report(training: Training, delta: float, accountant: str | None = None) -> list[Spent]:
    """Compute ε under every accountant that supports the mechanism, the nominal accountant's first.

    Shuffled Gaussian trainings also get the ε of ``rdp`` and ``pld`` for Poisson batches, as ``hypothetical_poisson``.
    A nominal accountant that assumes another sampler or unit gives its number for those, marked as not valid. Without
    noise there are no rows. Accountants that cannot add the cost of a private projection are left out.

    Args:
        training: the training.
        delta: in (0, 1).
        accountant: the nominal one; its rows come first.

    Raises:
        UserError: a value is out of range, ``blocks`` is missing, or the nominal accountant is unknown or for other
            noise.
    """
    mechanism = training.mechanism
    if mechanism.noise == "none" or mechanism.noise_multiplier == 0:
        return []
    if training.projection_noise is not None and mechanism.noise != "gaussian":
        rows: list[Spent] = []
    else:
        kinds = {"vmf": _directional, "gaussian": _gaussian}
        rows = list(kinds.get(mechanism.noise, _own)(training, delta))
    if accountant is not None and accountant not in {row.accountant for row in rows}:
        rows.append(_as_claimed(accountant, training, delta))
    more = [OF_GROUPS] if holds_groups(mechanism.unit) else []
    more += [MANY_GROUPS] if training.groups is not None and delta >= 1 / training.groups else []
    rows = [row._replace(note=", and ".join(filter(None, (row.note, *more)))) for row in rows]
    return sorted(rows, key=lambda row: row.accountant != accountant)


def _as_claimed(accountant: str, training: Training, delta: float) -> Spent:
    """Return the nominal accountant's ε for a training that violates its assumptions."""
    check_noise(accountant, training.mechanism)
    case = Case.counted(training, accountant, delta)
    sampling = "as_trained" if case.sampler == training.sampler else f"hypothetical_{case.sampler}"
    return Spent(accountant, epsilon_spent(case), case.relation, False, sampling, UNASSUMED)


def _gaussian(training: Training, delta: float) -> Iterator[Spent]:
    mechanism = training.mechanism
    batch = mechanism.unit == "batch"
    # Whatever happens to a record, a batch's one bounded vector moves by up to twice the clipping norm.
    sigma = mechanism.sigma
    relative = sigma / (2 if batch else 1)
    for name, neighbors in _supported(mechanism):
        if training.projection_noise is not None and name not in COMPOSING:
            continue
        case = Case(training, name, delta, neighbors)
        if ACCOUNTANTS[name].claim == "as_printed":
            used = sigma
            valid, note = printed_validity(case, used)
            if batch:
                valid, note = False, BATCH
        else:
            if batch and (name, neighbors) == ("pld", "replace_one") and mechanism.sampler in HALFWAY:
                continue
            used = sigma if neighbors == "replace_one" else relative
            valid, note = True, BATCH_DOUBLED if batch else ""
        yield Spent(name, epsilon_spent(case, used), neighbors, valid, "as_trained", note)
    if mechanism.sampler == "shuffle":
        for name in ("rdp", "pld"):
            epsilon = epsilon_spent(Case.counted(training, name, delta), relative)
            yield Spent(name, epsilon, "add_remove", False, "hypothetical_poisson", HYPOTHETICAL)


def _own(training: Training, delta: float) -> Iterator[Spent]:
    """Yield the ε of noise with its own file or plugin, which only that file can compute."""
    for name, neighbors in _supported(training.mechanism):
        epsilon = epsilon_spent(Case(training, name, delta, neighbors))
        yield Spent(name, epsilon, neighbors, ACCOUNTANTS[name].claim != "as_printed", "as_trained", "")


def printed_validity(case: Case, sigma: float) -> tuple[bool, str]:
    """Return whether the formula of an ``as_printed`` Gaussian accountant is a bound here, and the reason if not."""
    match case.accountant:
        case "naive":
            valid, note = printed.naive_is_valid(sigma, case.delta, case.epochs), CLASSIC
        case "advanced":
            valid, note = printed.advanced_is_valid(sigma, case.delta, case.epochs), CLASSIC
        case "theorem1":
            valid, note = False, THEOREM
        case _:  # a plugin's, of whose conditions nothing is known
            valid, note = False, ""
    return valid, "" if valid else note


def _directional(training: Training, delta: float) -> Iterator[Spent]:
    for name, neighbors in _supported(training.mechanism):
        if neighbors == "add_remove" and not training.mechanism.summed:
            continue
        case = Case(training, name, delta, neighbors)
        valid = name != "per_step" or (len(training.blocks) == 1 and training.uses == 1)
        yield Spent(name, epsilon_spent(case), neighbors, valid, "as_trained", "" if valid else PER_STEP)


def _supported(mechanism: Mechanism) -> Iterator[tuple[str, str]]:
    """Yield accountant and neighbors, for each that supports the mechanism's noise, sampler and unit.

    A plugin's accountant counts only for what the plugin does, however many other trainings it would have a number for.
    """
    if not draws_its_units(mechanism):
        return
    for name, rules in ACCOUNTANTS.items():
        if rules.noise == mechanism.noise and is_of(name, mechanism):
            for neighbors in rules.relations.get(mechanism.sampler, ()):
                yield name, neighbors
