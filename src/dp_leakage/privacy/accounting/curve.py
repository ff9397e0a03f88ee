"""Trade-off curve proven for a training: the tightest known for its mechanism, between neighboring sets of records."""

from dataclasses import replace
from importlib import import_module
from math import log1p, sqrt

from scipy.special import ndtri

from dp_leakage.common.errors import UserError
from dp_leakage.common.user_code import FILES
from dp_leakage.privacy.accounting import allocation, library, losses, renyi, tradeoff, vmf
from dp_leakage.privacy.accounting.case import UNAMPLIFIED, Case, projection_cost
from dp_leakage.privacy.accounting.rules import ACCOUNTANTS, POISSON, Neighbors, is_covered, is_of
from dp_leakage.privacy.accounting.spend import epsilon_spent, least_noise
from dp_leakage.privacy.accounting.tradeoff import TradeOff
from dp_leakage.privacy.mechanism import BATCH, PERSON, Mechanism, holds_groups
from dp_leakage.privacy.mechanisms import amount_of, noise_module, with_amount
from dp_leakage.privacy.target import Target
from dp_leakage.privacy.training import ONCE_AN_EPOCH, Training

PRESENCE = ("add_remove", "zero_out")  # the same under Poisson sampling, where no unit's batches depend on another unit
DELTA = 0.5  # where δ has no effect
THINNED = 4  # one order in this many is enough for a curve, since each of its points picks its own order
TIGHT, LOOSE = 1e-6, 1e-3
"""How far below a target the risk may end (relative): if the curve is exact, and if it has a grid."""


def proven_curve(training: Training, neighbors: Neighbors, delta: float | None = None) -> TradeOff | None:
    """Return the curve of `_of_one`, extended to all units that change together (group privacy: Dong, Roth & Su 2022,
    theorem 2.14).

    Returns None also if the number of units differs between neighbors.
    """
    curve = None if training.moves else _of_one(training, neighbors, delta)
    return None if curve is None else tradeoff.several(curve, training.records)


def _of_one(training: Training, neighbors: Neighbors, delta: float | None) -> TradeOff | None:
    """Return the largest true positive rate of any test between neighboring trainings, at every false positive rate.

    For Gaussian noise the curve is exact if every record is used once an epoch, in batches that everybody may know.
    Otherwise it comes from the privacy loss distribution: `library.loss_profile` for Poisson batches,
    `allocation.profile` for balls in bins, `losses.profile` for batches of a fixed size and for directional noise,
    there lowered by the pure ε. Where a grid is impossible it comes from Rényi divergences. A (sub)class changes with
    one of its records, so two of them change if a record of one class replaces one of another.

    Args:
        training: see ``Training``; with noise.
        neighbors: of sets of *records*, also where units are classes.
        delta: in (0, 1); only for a plugin's own noise or sampler, for which only (ε, δ) is known.

    Returns:
        None if nothing is proven: no noise, batches that no accountant of the noise covers, neighbors that the
        mechanism does not protect, or a private projection beside noise or a sampler whose own accounting cannot add
        its cost.
    """
    mechanism = training.mechanism
    if mechanism.noise == "none" or mechanism.noise_multiplier == 0 or not is_covered(mechanism):
        return None
    if mechanism.noise == "gaussian" and mechanism.sampler not in FILES:
        return _group(training, neighbors) if holds_groups(mechanism.unit) else _gaussian(training, neighbors)
    if mechanism.noise == "vmf":
        return _directional(training, neighbors)
    if training.projection_noise is not None:  # whose cost such accounting does not know
        return None
    module = import_module(noise_module(mechanism.noise))
    if not hasattr(module, "proven"):
        return _own(training, neighbors, delta)
    # Their proofs are of single records; a whole batch moves twice as far.
    return None if mechanism.unit == BATCH else module.proven(training, neighbors)


def _gaussian(training: Training, neighbors: Neighbors) -> TradeOff | None:
    mechanism, beside = training.mechanism, projection_cost(training, neighbors)
    batch = mechanism.unit == "batch"  # one bounded vector, which moves by up to 2C whatever happens to a record
    relative = mechanism.sigma / (2 if batch or neighbors == "replace_one" else 1)
    if mechanism.sampler == "poisson":
        if batch and neighbors == "replace_one":  # without the record it may be equally far from both
            return _replaced(training, relative, beside)
        return poisson(training, relative, neighbors == "replace_one", beside)
    if mechanism.sampler == "balls_in_bins":
        return _allocated(training, neighbors == "replace_one")
    if neighbors == "add_remove":  # this also changes the batches of others
        return None
    if mechanism.sampler in UNAMPLIFIED:
        return tradeoff.gaussian(sqrt(training.epochs / relative**2 + 2 * beside))
    return _replaced(training, mechanism.sigma / 2, beside)  # another record may be in its place


def _replaced(training: Training, relative: float, beside: float) -> TradeOff:
    """Return the curve for batches whose sums (with the unit, its replacement, or neither) differ by at most one, with
    noise ``relative``.
    """
    if training.rate == 1:
        return tradeoff.gaussian(sqrt(training.steps / relative**2 + 2 * beside))
    known = losses.profile(losses.gaussian(1 / relative), training.rate, "replaced", training.steps, beside)
    return tradeoff.profile(*known) if known else _divergences(training, relative, True, beside)


def _allocated(training: Training, replaced: bool) -> TradeOff:
    """Return the curve for balls in bins, which is at most the curve of an observer who knows every batch. The
    projection's unit is a record.
    """
    sigma, beside = training.mechanism.sigma, projection_cost(training, "add_remove")
    if training.mechanism.unit == "batch":
        sigma /= 2
    known = [tradeoff.gaussian(allocation.unamplified(sigma, training.epochs, replaced, beside))]
    if training.rate < 1:
        found = allocation.profile(sigma, training.steps_per_epoch, training.epochs, replaced, beside)
        known += [tradeoff.profile(*found)] if found else []
    return known[0] if len(known) == 1 else tradeoff.lowest(known)


def _group(training: Training, neighbors: Neighbors) -> TradeOff | None:
    """Return the curve for (sub)classes as units: adding or removing a record changes its class's bounded mean by up to
    2C.
    """
    if training.mechanism.sampler != "class_poisson":
        return None
    once = poisson(training, training.mechanism.sigma / 2, True, projection_cost(training, "zero_out"))
    return tradeoff.twice(once) if neighbors == "replace_one" else once


def poisson(training: Training, relative: float, replaced: bool, beside: float) -> TradeOff:
    """Return the curve for Poisson batches whose sums differ by up to one with the unit, with noise ``relative``.

    Without the unit the sum lies in the middle if the unit is ``replaced``, otherwise at one of the two ends.
    """
    if training.rate == 1:
        return tradeoff.gaussian(sqrt(training.uses / relative**2 + 2 * beside))
    known = library.loss_profile(training.rate, relative, replaced, training.uses, beside)
    return tradeoff.profile(*known) if known else _divergences(training, relative, replaced, beside)


def _divergences(training: Training, relative: float, replaced: bool, beside: float) -> TradeOff:
    """Return the curve from the Rényi divergences of the accountant ``rdp``; arguments as for ``poisson``."""
    orders, each = renyi.step_divergence(training.rate, relative, replaced)
    return tradeoff.renyi(orders, training.uses * each + beside * orders)


def _directional(training: Training, neighbors: Neighbors) -> TradeOff | None:
    mechanism = training.mechanism
    if neighbors in PRESENCE:
        if not mechanism.summed or mechanism.sampler != "poisson":
            return None
        neighbors = "add_remove"
    assert mechanism.kappa is not None  # directional noise has one
    if mechanism.kappa == 0:
        return tradeoff.gaussian(sqrt(2 * projection_cost(training, neighbors)))
    case = Case(replace(training, projection_noise=None), "vmf_rdp", DELTA, neighbors)
    beside = projection_cost(training, neighbors)
    known = vmf.loss_profile(mechanism.kappa, case, beside)
    curves = [tradeoff.profile(*known)] if known else _rates_by_renyi(mechanism.kappa, case, beside)
    if not beside:
        curves.append(tradeoff.epsilon_delta(vmf.pure_epsilon(mechanism.kappa, case), 0.0))
    return tradeoff.lowest(curves)


def _rates_by_renyi(kappa: float, case: Case, beside: float) -> list[TradeOff]:
    return [
        tradeoff.renyi(orders[::THINNED], (case.uses * each + beside * orders)[::THINNED])
        for orders, each in vmf.divergences(kappa, case)
    ]


def _own(training: Training, neighbors: Neighbors, delta: float | None) -> TradeOff | None:
    """Return the curve of a plugin's noise or sampler, from its accountant's ε at the training's δ, for units.

    If these are groups, one of them changes with a record, as in `_group`. A whole batch moves twice as far.
    """
    assert delta is not None  # whoever asks about a plugin's mechanism has one
    mechanism, grouped = training.mechanism, holds_groups(training.mechanism.unit)
    wanted: Neighbors = "replace_one" if grouped else neighbors
    curves = []
    for name, rules in ACCOUNTANTS.items():
        known = rules.relations.get(mechanism.sampler, ())
        if rules.noise != mechanism.noise or rules.claim == "as_printed" or not is_of(name, mechanism):
            continue
        same = wanted if wanted not in PRESENCE or mechanism.sampler not in POISSON else "add_remove"
        relation = same if same in known else next((r for r in known if r in PRESENCE), None)
        if relation is None or (relation != same and wanted != "replace_one"):
            continue
        relative = mechanism.sigma / (2 if mechanism.unit == "batch" else 1)
        epsilon = epsilon_spent(Case(training, name, delta, relation), relative)
        curve = tradeoff.epsilon_delta(max(epsilon, 0.0), delta)
        curves.append(curve if relation == same else tradeoff.twice(curve))
    if not curves:
        return None
    curve = tradeoff.lowest(curves)
    return tradeoff.twice(curve) if grouped and neighbors == "replace_one" else curve


def proves(mechanism: Mechanism, neighbors: Neighbors) -> bool:
    """Return whether the mechanism, with enough noise, limits the distinguishability of such neighboring sets of
    *records*.
    """
    if mechanism.noise == "none":
        return False
    least = Training(with_amount(mechanism, 1.0), epochs=1, batch_size=1, dataset_size=1, blocks=(2,))
    return proven_curve(least, neighbors, DELTA) is not None


def noise_for(target: Target, training: Training, neighbors: Neighbors, delta: float | None = None) -> float:
    """Return the least noise with which no attack can reach more than the target: σ, or for directional noise the
    largest κ.

    Args:
        target: see ``Target``.
        training: a training whose ``mechanism`` lacks its noise.
        neighbors: the neighboring relation of the attacks, see ``rules.relation_of_game``.
        delta: as for ``proven_curve``.

    Raises:
        UserError: nothing is proven for these neighbors, or no noise is enough.
    """
    name = amount_of(training.mechanism.noise)
    if not proves(training.mechanism, neighbors):
        raise UserError(f"target: the mechanism proves nothing for {neighbors} neighbors, whatever its noise")
    falls = name == "kappa"  # the larger this amount, the less noise there is

    def with_noise(noise: float) -> TradeOff:
        mechanism = with_amount(training.mechanism, 1 / noise if falls else noise)
        curve = proven_curve(replace(training, mechanism=mechanism), neighbors, delta)
        assert curve is not None  # as `proves` says
        return curve

    def beyond_guessing(curve: TradeOff) -> float:
        return curve.advantage if target.fpr is None else float(curve.tpr(target.fpr)) - target.fpr

    allowed = target.limit - (target.fpr or 0.0)
    if beyond_guessing(tradeoff.gaussian(sqrt(2 * projection_cost(training, neighbors)))) >= allowed:
        raise UserError(f"target: the private PCA alone exceeds {target.words}; use more noise there")
    start = 1.0 if falls else _first_guess(target, training, neighbors)
    tolerance = TIGHT if with_noise(start).source == "gaussian" else LOOSE
    noise = least_noise(lambda x: beyond_guessing(with_noise(x)), allowed, start, 0.1, tolerance, what="target")
    return 1 / noise if falls else noise


def _first_guess(target: Target, training: Training, neighbors: Neighbors) -> float:
    """σ at which many small steps have the target's risk, by the central limit theorem (Bu, Dong, Long & Su 2020)."""
    mu = 2 * ndtri((1 + target.limit) / 2) if target.fpr is None else ndtri(target.limit) - ndtri(target.fpr)
    apart = 2 if neighbors == "replace_one" or training.mechanism.unit not in ("example", PERSON) else 1
    if training.mechanism.sampler in ONCE_AN_EPOCH:
        return float(apart * sqrt(training.epochs) / mu)
    return float(apart / sqrt(log1p((mu / training.rate) ** 2 / training.steps)))
