"""Creation of a training's noise from the mechanism's own file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

import torch
from torch import Generator, Tensor

from dp_leakage.common.errors import UserError
from dp_leakage.common.user_code import DEFINED, FILES, blamed, function
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.privacy.mechanisms import BOUNDS, noise_module
from dp_leakage.privacy.mechanisms.base import Noise

if TYPE_CHECKING:
    from dp_leakage.models.layers import Parameters
    from dp_leakage.training.backward import BackwardPass


class FunctionNoise(Noise):
    """Noise of a plugin's function ``noise(row, scale, generator)``, independent between steps."""

    def add(self, step: int) -> None:
        """As in `Noise`."""
        plugin, scale = self.mechanism.noise, self.deviation
        own = function(plugin, "noise")
        for row, generator in zip(self.gradient, self.generators, strict=True):
            row.fill_(torch.nan)  # an entry that the plugin leaves unchanged would get no noise; NaN reveals it
            before = generator.get_state()
            with blamed(f"plugin {plugin}", FILES.get(plugin)):
                own(row, scale, generator)
            if not bool(row.isfinite().all()):
                raise UserError(f"plugin {plugin}: noise does not fill all of row, in place, with finite numbers")
            after = generator.get_state()
            if torch.equal(before, after):
                words = "noise draws nothing from generator, so that it may be the same in each step or model"
                raise UserError(f"plugin {plugin}: {words}; expected noise that is drawn from it alone")
            if step == 0 and scale > 0:
                louder = torch.empty_like(row)
                generator.set_state(before)
                with blamed(f"plugin {plugin}", FILES.get(plugin)):
                    own(louder, 2 * scale, generator)
                generator.set_state(after)
                if torch.equal(louder, row):
                    raise UserError(
                        f"plugin {plugin}: noise is the same at any scale; expected noise that grows with it"
                    )


class ClassNoise(Noise):
    """Noise of a plugin that defines a class ``Noise``. Its errors become sentences, and its results are checked."""

    def __init__(
        self, mechanism: Mechanism, gradient: Tensor, divisor: float, generators: list[Generator], steps: int
    ) -> None:
        super().__init__(mechanism, gradient, divisor, generators, steps)
        self.plugin, own = mechanism.noise, _own_class(mechanism.noise)
        self.directs = own.directs  # type: ignore[misc] # of this object only
        with self._blamed():
            self.own = own(mechanism, gradient, divisor, generators, steps)
            self.independent = tuple(map(float, self.own.independent))

    def add(self, step: int) -> None:
        """As in `Noise`."""
        self.gradient.fill_(torch.nan)  # an entry that the plugin leaves unchanged would get no noise; NaN reveals it
        with self._blamed():
            self.own.add(step)
        if not bool(self.gradient.isfinite().all()):
            self._refuse("add does not fill all of self.gradient, in place, with finite numbers")

    def finish(self) -> None:
        """As in `Noise`."""
        if not sees_sum(self):
            return
        with self._blamed():
            self.own.finish()
        if not bool(self.gradient.isfinite().all()):
            self._refuse("finish leaves numbers in self.gradient that are not finite")

    def add_examples(self, passed: BackwardPass, total: Parameters, model: int) -> None:
        """As in `Noise`."""
        with self._adding("add_examples", total):
            self.own.add_examples(passed, total, model)

    def add_unit(self, mean: Parameters, total: Parameters, model: int) -> None:
        """As in `Noise`."""
        with self._adding("add_unit", total):
            self.own.add_unit(mean, total, model)

    def tensors(self) -> dict[str, Tensor]:
        """As in `Noise`."""
        with self._blamed():
            found = self.own.tensors()
        if not isinstance(found, dict) or not all(
            isinstance(name, str) and isinstance(value, Tensor) for name, value in found.items()
        ):
            self._refuse(f"tensors returns {type(found).__name__}; expected a dict of names and tensors")
        if "generators" not in found:
            self._refuse(
                "tensors lacks 'generators', without which a resumed training draws other noise; begin with "
                "super().tensors()"
            )
        for name, value in found.items():
            if value.is_floating_point() and not bool(value.isfinite().all()):
                self._refuse(f"tensors has numbers in {name!r} that are not finite")
        return found

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """As in `Noise`."""
        kept = {name: value.clone() for name, value in tensors.items()}
        with self._blamed():
            self.own.restore(tensors)
        found = self.tensors()
        if found.keys() != kept.keys() or not all(torch.equal(found[name].cpu(), kept[name].cpu()) for name in kept):
            self._refuse("restore does not bring back what tensors gave; a resumed training would add other noise")

    @contextmanager
    def _adding(self, name: str, total: Parameters) -> Iterator[None]:
        before = dict(total)
        with self._blamed():
            yield
        if total.keys() != before.keys() or not all(total[key] is before[key] for key in before):
            self._refuse(f"{name} does not add to the tensors of total in place")
        if not all(bool(value.isfinite().all()) for value in total.values()):
            self._refuse(f"{name} adds numbers that are not finite")

    def _blamed(self) -> AbstractContextManager[None]:
        return blamed(f"plugin {self.plugin}", FILES.get(self.plugin))

    def _refuse(self, words: str) -> NoReturn:
        raise UserError(f"plugin {self.plugin}: {words}")


def start_noise(
    mechanism: Mechanism | None, gradient: Tensor, divisor: float, generators: list[Generator], steps: int
) -> Noise:
    """Create the noise of K models' trainings. Arguments as in `Noise`. Without an amount, the noise is zero."""
    kind = _kind(mechanism)
    own = mechanism is not None and mechanism.noise in FILES and kind not in (Noise, FunctionNoise)
    step = mechanism or Mechanism(noise="none")
    return (ClassNoise if own else kind)(step, gradient, divisor, generators, steps)


def sees_sum(noise: Noise) -> bool:
    """Return whether the noise processes a step's complete sum (`Noise.finish`)."""
    kind = type(noise.own if isinstance(noise, ClassNoise) else noise)
    return kind.finish is not Noise.finish


def directs(mechanism: Mechanism | None) -> bool:
    """Return whether the noise turns each unit's gradient into a noisy one (`Noise.directs`)."""
    return _kind(mechanism).directs


def waits(mechanism: Mechanism | None) -> bool:
    """Return whether a noise step synchronizes with the GPU (`Noise.waits`). Plugin noise with `directs`
    always does.
    """
    kind = _kind(mechanism)
    return kind.directs and (mechanism is None or mechanism.noise in FILES or kind.waits(mechanism))


def goes_alone(mechanism: Mechanism | None) -> bool:
    """Return whether the noise processes the gradients of one model at a time. A plugin's always does."""
    kind = _kind(mechanism)
    return kind.directs and not (kind.shares and mechanism is not None and mechanism.noise not in FILES)


def _kind(mechanism: Mechanism | None) -> type[Noise]:
    if mechanism is None or not (mechanism.noise_multiplier or mechanism.kappa is not None):
        return Noise
    if "noise" in DEFINED.get(mechanism.noise, ()):
        return FunctionNoise
    if mechanism.noise in FILES:
        return _own_class(mechanism.noise)
    if mechanism.bound in BOUNDS and hasattr(module := import_module(noise_module(mechanism.bound)), "Noise"):
        return module.Noise  # a bound that moves from step to step
    kind: type[Noise] = function(noise_module(mechanism.noise), "Noise")  # type: ignore[assignment]
    return kind


def _own_class(plugin: str) -> type[Noise]:
    own = function(plugin, "Noise")
    if not (isinstance(own, type) and issubclass(own, Noise)):
        raise UserError(f"plugin {plugin}: Noise does not derive from {Noise.__module__}.Noise")
    if not isinstance(own.directs, bool):
        raise UserError(f"plugin {plugin}: Noise.directs is {own.directs!r}; expected True or False")
    if own.bounds is not False:
        words = "expected False, since gradients are bounded by the key 'bound' or a plugin's function `bound`"
        raise UserError(f"plugin {plugin}: Noise.bounds is {own.bounds!r}; {words}")
    return own
