"""Interface of a mechanism's file, and the base class of its noise.

A file of this folder declares one or more mechanisms in ``MECHANISMS``, the accountants that know its noise in
``ACCOUNTANTS``, and defines

    epsilon(amount, case) → the ε of a training with this amount of noise, under ``case.accountant``;
    amount_for(epsilon, case) → the amount of noise for a budget where there is a formula, otherwise None; optional;
    bound(norms, clip_norm) → the factor of each unit's gradient, where a declaration's ``bound`` is the file's name; as
    a plugin's (`plugins`), it keeps every gradient within clip_norm, and sees one unit at a time; optional. A bound
    that changes from step to step is a ``Noise`` in the same file, whose ``scales`` then count;
    proven(training, neighbors) → the `tradeoff.TradeOff` that a training proves; optional;
    check(settings, steps), which refuses settings that do not fit the number of steps in an epoch (UserError);
    optional;
    Noise(mechanism, gradient, divisor, generators, steps), a subclass of the one below.

The workflow reads all of it while it plans, so PyTorch, SciPy and the accountants' modules are imported in functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from dp_leakage.common.declarations import DEFAULT
from dp_leakage.common.schemas import Schema
from dp_leakage.privacy.mechanism import Mechanism

if TYPE_CHECKING:
    from torch import Generator, Tensor

    from dp_leakage.models.layers import Parameters
    from dp_leakage.training.backward import BackwardPass

Neighbors = Literal["add_remove", "zero_out", "replace_one"]
"""Two data sets are neighbors if they differ in one unit's presence (``add_remove``); if one unit's contribution is
set to zero while everything else, including the batches, stays in place (``zero_out``); or if they differ in one unit's
value (``replace_one``).
"""
Relations = dict[str, tuple[Neighbors, ...]]
"""Sampler → neighbors, the default first."""
Claim = Literal["exact", "bound", "as_printed"]

AHEAD = 2**20  # the most normals of a model that a GPU draws at once, 4 MB

# Keys that an entry of any defense may have, and further ones of every private defense.
ANY = frozenset({"defense", "datasets", "models", "learning_rate", "repeats", "attacks", "audits"})
PRIVATE = ANY | {
    "accountant", "sampler", "bound", "clip_norm", "epsilon", "target", "delta", "rdp_sigma", "l2", "accounting_note",
    "training",
}  # fmt: skip


@dataclass(frozen=True)
class Accountant:
    """Trainings that an accountant covers, and the strength of its number.

    Attributes:
        noise: the noise it accounts for, a module of this folder or a plugin.
        relations: each sampler whose batches satisfy its assumptions, with the neighbors that it knows under that
            sampler; the first of each is the default.
        claim: ``exact`` where batches are known in advance, and a bound where they are drawn at random; ``bound``
            (never below the true ε); or ``as_printed``: a paper's formula, which may be wrong outside its conditions.
        module: dotted name of the module that computes it, in a function ``epsilon(amount, case)``.
        by_losses: whether ``epsilon`` computes the privacy loss distribution of sampled Gaussian noise, which takes a
            second, so that σ is searched from where ``rdp`` finds it.
    """

    noise: str
    relations: Mapping[str, tuple[Neighbors, ...]]
    claim: Claim
    module: str
    by_losses: bool = False

    @property
    def samplers(self) -> tuple[str, ...]:
        """The samplers that it supports, its default first."""
        return tuple(self.relations)

    def claim_under(self, sampler: str) -> Claim:
        """Return the claim under one sampler: an accountant may prove more for randomly drawn batches than for known
        ones.
        """
        return "bound" if self.claim == "exact" and sampler != "cyclic" else self.claim


@dataclass(frozen=True)
class Declaration:
    """A private defense as studies name it.

    Attributes:
        label: its name in figures and reports.
        guarantee: one sentence: what is hidden, and for which neighbors.
        module: dotted name of the module that defines its ``Noise``; "" if there is none.
        noise: the word for its noise in `Mechanism`.
        keys: keys that an entry may have besides `PRIVATE`; ``settings`` are always among them.
        schemas: of the mechanism's own settings, which are passed in `Mechanism.settings`. A setting without a default
            must be given.
        refused: keys of `PRIVATE` that do not apply to this mechanism.
        step: fields of `Mechanism` that are fixed, such as the unit.
        bound: the default bound of a unit.
        spelled: fields of `Mechanism` whose values are always part of a cell's name.
        amount: the name of its amount of noise: ``noise_multiplier``, or ``kappa``.
        private: whether it adds noise, and so has a budget and an accountant.
    """

    label: str
    guarantee: str
    module: str
    noise: str
    keys: frozenset[str] = frozenset({"noise_multiplier"})
    schemas: Mapping[str, Schema] = field(default_factory=dict)
    refused: frozenset[str] = frozenset()
    step: Mapping[str, str] = field(default_factory=dict)
    bound: str = "clip"
    spelled: tuple[str, ...] = ()
    amount: Literal["noise_multiplier", "kappa"] = "noise_multiplier"
    private: bool = True

    @property
    def settings(self) -> dict[str, Any]:
        """Return the mechanism's own settings with their defaults; None for a setting without default."""
        return {name: schema.get(DEFAULT) for name, schema in self.schemas.items()}

    @property
    def all_keys(self) -> frozenset[str]:
        """Return every key that an entry may have."""
        return ((PRIVATE if self.private else ANY) | self.keys | set(self.settings)) - self.refused

    @property
    def needed(self) -> tuple[str, ...]:
        """Keys that an entry must have."""
        given = tuple(key for key, default in self.settings.items() if default is None)
        return (*given, "accountant") if self.private else given


class Noise:
    """Noise of K models' trainings, with its state between steps. This base class adds nothing.

    Args:
        mechanism: protection of each step.
        gradient: flat buffer (K, P), in which each step begins.
        divisor: divisor of a bounded sum.
        generators: each model's stream of noise, on the buffer's device.
        steps: number of steps in an epoch.
    """

    # Whether it turns each unit's gradient into a noisy one, by `add_examples` and `add_unit`, instead of adding noise
    # to the sum.
    directs: ClassVar[bool] = False

    # Whether noise that directs takes the examples of several models at once, by `add_all_examples`, or their units,
    # by `add_all_units`. Otherwise, and for all noise of plugins, models are processed one at a time.
    shares: ClassVar[bool] = False

    # Whether its bound changes from step to step, and so is its own, by `scales`, instead of the mechanism's.
    bounds: ClassVar[bool] = False

    # Coefficients c that make Σ_j c_j ζ_{t−j}, a sum over the noise ζ of this step and the last ones, independent from
    # step to step and Gaussian with `deviation`; empty if there are none. An audit that sees all steps weights them
    # with c.
    independent: Sequence[float] = ()

    # Names of its tensors that `add` needs to continue, besides the generators.
    remembered: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def waits(cls, mechanism: Mechanism) -> bool:
        """Return whether a step of noise that ``directs`` waits for results on a GPU, which then cannot replay it from
        a graph.
        """
        return True

    def __init__(
        self, mechanism: Mechanism, gradient: Tensor, divisor: float, generators: list[Generator], steps: int
    ) -> None:
        self.mechanism, self.gradient, self.divisor = mechanism, gradient, divisor
        self.generators, self.steps = generators, steps
        # Steps whose normals are drawn together. On a GPU a draw for each model and step takes longer to start than to
        # do. The number depends on nothing but the model and its epoch, so that a seed draws the same in any company.
        self.ahead = 1 if gradient.device.type == "cpu" else max(1, min(steps, AHEAD // gradient.shape[1]))

    def add(self, step: int) -> None:
        """Overwrite the gradient with the noise of a step, counted from 0 over the training.

        The noise is already divided, and so are the step's bounded gradients, which are added to it later. Called once
        for each step, in order, so that no noise is used twice.
        """
        self.gradient.zero_()

    def add_normals(self, step: int, deviation: float) -> None:
        """Overwrites the gradient with independent N(0, deviation²). For `add`; ``deviation`` never changes."""
        if self.ahead == 1:
            for row, generator in zip(self.gradient, self.generators, strict=True):
                row.normal_(0.0, deviation, generator=generator)
            return
        taken = step % self.steps
        place = taken % self.ahead  # an epoch begins with a new draw, since a resumed training does
        if place == 0:
            count, size = self.gradient.shape
            self.drawn = self.gradient.new_empty(count, min(self.ahead, self.steps - taken), size)
            for own, generator in zip(self.drawn, self.generators, strict=True):
                own.normal_(0.0, deviation, generator=generator)
        self.gradient.copy_(self.drawn[:, place])

    def finish(self) -> None:
        """Process the complete sum of a step's bounded gradients, before the optimizer reads it; by default
        nothing.

        For noise that must see the whole sum.
        """

    def scales(self, norms: Tensor, models: range, weights: Tensor | None = None) -> Tensor:
        """Return, for noise that ``bounds``, the factor that bounds and divides each gradient of norms (k, B).

        ``weights`` (k, B) are 0 for missing gradients; None if no gradient is missing. Called for every gradient of a
        step, between `add` and `finish`.
        """
        raise NotImplementedError

    def clip_norm_of(self, models: range) -> float | Tensor:
        """Return C of this step: one for all, or (k, 1)."""
        return self.mechanism.clip_norm

    def silent(self, gradient: Tensor) -> Noise:
        """Return the current bounds, without noise, for another buffer like `gradient`."""
        return Noise(replace(self.mechanism, noise="none"), gradient, self.divisor, [], self.steps)

    def add_examples(self, passed: BackwardPass, total: Parameters, model: int) -> None:
        """Add, for noise that ``directs``, a noisy vector for each example of one model to ``total``, name → (1, …)."""
        raise NotImplementedError

    def add_all_examples(self, passed: BackwardPass, weights: Tensor | None, total: Parameters, models: range) -> None:
        """Add `add_examples` for all models of a batch, total name → (k, …).

        ``weights`` (k, B) are 1 for a model's examples and 0 for the padding behind them; None: there is no padding. A
        model must add the same bytes whichever models share its batch.
        """
        self.add_examples(passed, total, models.start)

    def add_unit(self, mean: Parameters, total: Parameters, model: int) -> None:
        """Add, for noise that ``directs``, a noisy vector for the gradient ``mean`` of one unit, name → (1, …)."""
        raise NotImplementedError

    def add_all_units(self, means: Parameters, total: Parameters, models: range) -> None:
        """Add `add_unit` for one unit of each model of a batch, name → (k, …), with the same bytes whichever models
        share it.
        """
        self.add_unit(means, total, models.start)

    def tensors(self) -> dict[str, Tensor]:
        """Return everything that `add` needs to continue, for a checkpoint."""
        import torch

        generators = torch.stack([generator.get_state() for generator in self.generators])
        return {"generators": generators} | {name: getattr(self, name) for name in self.remembered}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Restore the state from the tensors of `tensors`."""
        for generator, state in zip(self.generators, tensors["generators"], strict=True):
            generator.set_state(state.clone())  # aligned, since set_state crashes on unaligned memory from a file
        for name in self.remembered:
            getattr(self, name).copy_(tensors[name])

    @property
    def deviation(self) -> float:
        """σC over the divisor: the standard deviation of Gaussian noise on the divided sum."""
        return self.mechanism.sigma * self.mechanism.clip_norm / self.divisor
