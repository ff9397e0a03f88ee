"""What a mechanism's file declares, and what its noise is.

A file of this folder declares one or more mechanisms in ``MECHANISMS``, the accountants that know its noise in
``ACCOUNTANTS``, and defines

    epsilon(amount, case) → the ε of a training with this amount of noise, under ``case.accountant``;
    amount_for(epsilon, case) → the amount of noise for a budget where there is a formula, else None; optional;
    bound(norms, clip_norm) → the factor of each unit's gradient, where a declaration's ``bound`` is the file's name; as
        a plugin's (`plugins`), it keeps every gradient within clip_norm, and sees one unit at a time; optional;
    proven(training, neighbours) → the `tradeoff.TradeOff` that a training proves; optional;
    Noise(mechanism, gradient, divisor, generators, steps), a subclass of the one below.

The workflow reads all of it while it plans, so PyTorch, SciPy and the accountants' modules are imported in functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from dp_leakage.common.kinds import Kind
from dp_leakage.privacy.mechanism import Mechanism, Sampler

if TYPE_CHECKING:
    from torch import Generator, Tensor

    from dp_leakage.models.layers import Parameters
    from dp_leakage.training.record import Record

Neighbours = Literal["add_remove", "zero_out", "replace_one"]
"""Two data sets are neighbours if they differ by one unit's presence (``add_remove``); by one unit's
contribution being set to zero with everything else, the batches too, left in place (``zero_out``); or by one
unit's value (``replace_one``)."""
Claim = Literal["exact", "bound", "as_printed"]

# Keys that an entry of any defense may have, and those of every private one besides.
ANY = frozenset({"defense", "datasets", "models", "learning_rate", "repeats", "attacks", "audits"})
PRIVATE = ANY | {
    "accountant", "sampler", "bound", "clip_norm", "epsilon", "target", "delta", "rdp_sigma", "l2", "accounting_note",
    "training",
}  # fmt: skip


@dataclass(frozen=True)
class Accountant:
    """What an accountant can speak for, and what its number is worth.

    Attributes:
        noise: the noise it accounts for, a module of this folder or a plugin.
        relations: each sampler whose batches satisfy its assumptions, and the neighbours that it knows under
            it; the first of each is its default.
        claim: ``exact``; ``bound`` (never below the true ε); or ``as_printed``: a paper's formula, which may
            be wrong outside its conditions.
        module: dotted name of the module that computes it, in a function ``epsilon(amount, case)``.
    """

    noise: str
    relations: Mapping[Sampler | str, tuple[Neighbours, ...]]
    claim: Claim
    module: str

    @property
    def samplers(self) -> tuple[Sampler | str, ...]:
        """The samplers that it supports, its default first."""
        return tuple(self.relations)


@dataclass(frozen=True)
class Declaration:
    """A defense with noise, as studies name it.

    Attributes:
        label: what figures and reports call it.
        guarantee: one sentence: what is hidden, and for which neighbours.
        module: dotted name of the module that defines its ``Noise``; "" where there is none.
        noise: the word for its noise in `Mechanism`.
        keys: keys that an entry may have besides `PRIVATE`; ``settings`` are among them by themselves.
        settings: the mechanism's own settings with their defaults, which it finds in `Mechanism.settings`; a default of
            None says that an entry must give it.
        kinds: what each of them may hold.
        refused: keys of `PRIVATE` that say nothing about this mechanism.
        step: fields of `Mechanism` that are fixed, such as the unit.
        bound: what bounds a unit where the entry does not say.
        spelled: fields of `Mechanism` that are always part of a cell's name, by their value.
        amount: what its amount of noise is called: ``noise_multiplier``, or ``kappa``.
        private: whether it adds noise, and so has a budget and an accountant.
    """

    label: str
    guarantee: str
    module: str
    noise: str
    keys: frozenset[str] = frozenset({"noise_multiplier"})
    settings: Mapping[str, Any] = field(default_factory=dict)
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    refused: frozenset[str] = frozenset()
    step: Mapping[str, str] = field(default_factory=dict)
    bound: str = "clip"
    spelled: tuple[str, ...] = ()
    amount: Literal["noise_multiplier", "kappa"] = "noise_multiplier"
    private: bool = True

    @property
    def all_keys(self) -> frozenset[str]:
        """Every key that an entry may have."""
        return ((PRIVATE if self.private else ANY) | self.keys | set(self.settings)) - self.refused

    @property
    def needed(self) -> tuple[str, ...]:
        """Keys that an entry must have."""
        given = tuple(key for key, default in self.settings.items() if default is None)
        return (*given, "accountant") if self.private else given


class Noise:
    """The noise of K models' trainings, with all that it remembers between steps. This one adds nothing.

    Args:
        mechanism: what protects each step.
        gradient: flat buffer (K, P), which each step begins in.
        divisor: what a bounded sum is divided by.
        generators: each model's stream of noise, on the buffer's device.
        steps: number of steps in an epoch.
    """

    # Whether it turns each unit's gradient into a noisy one, by `add_examples` and `add_unit`, in place of adding to
    # the sum. Models then pass one at a time.
    directs: ClassVar[bool] = False

    # Coefficients c with which Σ_j c_j ζ_{t−j}, of the noise ζ of this and the last steps, is independent from step to
    # step, Gaussian with `deviation`; empty where there are none. An audit that sees all steps weighs them so.
    independent: Sequence[float] = ()

    def __init__(
        self, mechanism: Mechanism, gradient: Tensor, divisor: float, generators: list[Generator], steps: int
    ) -> None:
        self.mechanism, self.gradient, self.divisor = mechanism, gradient, divisor
        self.generators, self.steps = generators, steps

    def add(self, step: int) -> None:
        """Puts the noise of a step, counted from 0 over the training, into the gradient; nothing is there before.

        It is divided already: the step's bounded gradients, divided too, are added to it. Called once for each step, in
        order, so nothing is ever used twice.
        """
        self.gradient.zero_()

    def add_examples(self, record: Record, total: Parameters, model: int) -> None:
        """Where it ``directs``: adds a noisy vector for each example of one model to ``total``, name → (1, …)."""
        raise NotImplementedError

    def add_unit(self, mean: Parameters, total: Parameters, model: int) -> None:
        """Where it ``directs``: adds a noisy vector for the gradient ``mean`` of one unit, name → (1, …)."""
        raise NotImplementedError

    def tensors(self) -> dict[str, Tensor]:
        """All that `add` goes on from, for a checkpoint."""
        import torch

        return {"generators": torch.stack([generator.get_state() for generator in self.generators])}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """The inverse of `tensors`."""
        for generator, state in zip(self.generators, tensors["generators"], strict=True):
            generator.set_state(state.clone())  # aligned: set_state crashes on what a file left in between

    @property
    def deviation(self) -> float:
        """σC over the divisor: the standard deviation of Gaussian noise on the divided sum."""
        return self.mechanism.sigma * self.mechanism.clip_norm / self.divisor
