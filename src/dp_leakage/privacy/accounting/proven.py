"""What a training proves, as a curve: the tightest that is known of its mechanism, for neighbouring sets of records."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from math import sqrt

from dp_leakage.privacy.accounting import library, renyi, tradeoff, vmf
from dp_leakage.privacy.accounting.case import ONCE_AN_EPOCH, Case, steps_per_epoch
from dp_leakage.privacy.accounting.rules import ACCOUNTANTS, Neighbours
from dp_leakage.privacy.accounting.spend import epsilon_spent
from dp_leakage.privacy.accounting.tradeoff import TradeOff
from dp_leakage.privacy.mechanism import Mechanism, Sampler, holds_groups
from dp_leakage.privacy.mechanisms import noise_module
from dp_leakage.user_code import FILES

POISSON = ("poisson", "class_poisson")
PRESENCE = ("add_remove", "zero_out")  # the same under Poisson sampling, where nobody's batches depend on another's


@dataclass(frozen=True)
class Training:
    """A private training, as ``proven_curve`` needs to know it.

    Attributes:
        mechanism: with its noise.
        delta: in (0, 1); only for a plugin's own noise or sampler, of which no more than (ε, δ) is known.
        epochs, batch_size, dataset_size: as in ``case.Case``.
        blocks: the dimension of each unit vector, for von Mises–Fisher noise.
        projection_noise: of a private PCA of the same records that is composed with it; None for none.
    """

    mechanism: Mechanism
    delta: float
    epochs: int
    batch_size: int
    dataset_size: int
    blocks: Sequence[int] | None = None
    projection_noise: float | None = None

    @property
    def rate(self) -> float:
        """A unit's chance q of being in a batch."""
        return self.batch_size / self.dataset_size

    @property
    def steps(self) -> int:
        """Number of steps T."""
        return self.epochs * steps_per_epoch(self.batch_size, self.dataset_size)

    def projection_cost(self, neighbours: Neighbours) -> float:
        """ρ = Δ²/2σ² of the private PCA, 0 without one; Δ² is 1, and 2 for replace_one (``data.projection``)."""
        if self.projection_noise is None:
            return 0.0
        return (2.0 if neighbours == "replace_one" else 1.0) / (2 * self.projection_noise**2)


def relation_of_game(design: str, sampler: Sampler) -> Neighbours:
    """The neighbours between which a membership attack chooses.

    A fixed ``split``, of a member against a non-member: one record in place of another. ``coins``, one for each record:
    with a record or without it, all batches otherwise the same; under Poisson sampling that is ``add_remove``.
    """
    if design == "split":
        return "replace_one"
    return "add_remove" if sampler in POISSON else "zero_out"


def proven_curve(training: Training, neighbours: Neighbours) -> TradeOff | None:
    """The largest true positive rate at every false positive rate of whoever tells neighbouring trainings apart.

    Gaussian noise: exact where every record is used once an epoch; from the privacy loss distribution under Poisson
    sampling (``library.loss_profile``); from Rényi divergences where batches have a fixed size or a grid is
    impossible. Directional noise: from Rényi divergences and the pure ε, whichever is lower at each rate. A (sub)class
    changes with one record of it, and so two of them where a record of one class stands in place of one of another.

    Args:
        training: see ``Training``; with noise.
        neighbours: of sets of *records*, also where units are classes.

    Returns:
        None where nothing is proven: no noise, or neighbours that the mechanism does not protect.
    """
    mechanism = training.mechanism
    if mechanism.noise == "none" or mechanism.noise_multiplier == 0:
        return None
    if mechanism.noise == "gaussian" and mechanism.sampler not in FILES:
        return _group(training, neighbours) if holds_groups(mechanism.unit) else _gaussian(training, neighbours)
    if mechanism.noise == "vmf":
        return _directional(training, neighbours)
    module = import_module(noise_module(mechanism.noise))
    return module.proven(training, neighbours) if hasattr(module, "proven") else _own(training, neighbours)


def _gaussian(training: Training, neighbours: Neighbours) -> TradeOff | None:
    mechanism, beside = training.mechanism, training.projection_cost(neighbours)
    batch = mechanism.unit == "batch"  # one bounded vector, that moves by up to 2C whatever happens to a record
    relative = mechanism.noise_multiplier / (2 if batch or neighbours == "replace_one" else 1)
    if mechanism.sampler == "poisson":
        if batch and neighbours == "replace_one":  # without the record it may be as far from both as they are apart
            return _divergences(training, relative, True, beside)
        return _poisson(training, relative, neighbours == "replace_one", beside)
    if neighbours == "add_remove":  # changes the batches of others too
        return None
    if mechanism.sampler in ONCE_AN_EPOCH:
        return tradeoff.gaussian(sqrt(training.epochs / relative**2 + 2 * beside))
    return _divergences(training, mechanism.noise_multiplier / 2, True, beside)  # another record may be in its place


def _group(training: Training, neighbours: Neighbours) -> TradeOff | None:
    """Units are (sub)classes: a record that comes or goes changes its class's bounded mean, by up to 2C."""
    if training.mechanism.sampler != "class_poisson":
        return None
    once = _poisson(training, training.mechanism.noise_multiplier / 2, True, training.projection_cost("zero_out"))
    return tradeoff.twice(once) if neighbours == "replace_one" else once


def _poisson(training: Training, relative: float, replaced: bool, beside: float) -> TradeOff:
    """Poisson batches whose sums lie up to one apart with the unit, in units where the noise is ``relative``.

    Without the unit the sum lies in the middle if it is ``replaced``, else at one of the two ends.
    """
    if training.rate == 1:
        return tradeoff.gaussian(sqrt(training.steps / relative**2 + 2 * beside))
    known = library.loss_profile(training.rate, relative, replaced, training.steps, beside)
    return tradeoff.profile(*known) if known else _divergences(training, relative, replaced, beside)


def _divergences(training: Training, relative: float, replaced: bool, beside: float) -> TradeOff:
    """From the Rényi divergences that the accountant ``rdp`` takes; arguments as for ``_poisson``."""
    orders, each = renyi.step_divergence(training.rate, relative, replaced)
    return tradeoff.renyi(orders, training.steps * each + beside * orders)


def _directional(training: Training, neighbours: Neighbours) -> TradeOff | None:
    mechanism = training.mechanism
    summed = mechanism.block == "sum" or mechanism.unit == "batch"
    if neighbours in PRESENCE:
        if not summed or mechanism.sampler != "poisson":
            return None
        neighbours = "add_remove"
    if mechanism.kappa == 0:
        return tradeoff.gaussian(sqrt(2 * training.projection_cost(neighbours)))
    run = (training.epochs, training.batch_size, training.dataset_size, mechanism.sampler, neighbours)
    case = Case("vmf_rdp", 0.5, *run, blocks=tuple(training.blocks or ()), summed=summed)  # δ is of no effect here
    beside = training.projection_cost(neighbours)
    curves = [
        tradeoff.renyi(orders, case.uses * each + beside * orders)
        for orders, each in vmf.divergences(mechanism.kappa, case)
    ]
    if not beside:
        curves.append(tradeoff.epsilon_delta(vmf.pure_epsilon(mechanism.kappa, case), 0.0))
    return tradeoff.lowest(curves)


def _own(training: Training, neighbours: Neighbours) -> TradeOff | None:
    """A plugin's noise or sampler: its accountant knows an ε at the training's δ."""
    mechanism = training.mechanism
    curves = []
    for name, rules in ACCOUNTANTS.items():
        known = rules.relations.get(mechanism.sampler, ())
        if rules.noise != mechanism.noise or rules.claim == "as_printed":
            continue
        same = neighbours if neighbours not in PRESENCE or mechanism.sampler not in POISSON else "add_remove"
        relation = same if same in known else next((r for r in known if r in PRESENCE), None)
        if relation is None or (relation != same and neighbours != "replace_one"):
            continue
        terms = {
            "delta": training.delta,
            "epochs": training.epochs,
            "batch_size": training.batch_size,
            "dataset_size": training.dataset_size,
            "sampler": mechanism.sampler,
            "neighbours": relation,
        }
        epsilon = epsilon_spent(name, noise_multiplier=mechanism.noise_multiplier, **terms)
        curve = tradeoff.epsilon_delta(max(epsilon, 0.0), training.delta)
        curves.append(curve if relation == same else tradeoff.twice(curve))
    return tradeoff.lowest(curves) if curves else None
