"""A whole model as one layer: the user's own `torch.nn.Module`, about which only the parameters are known.

Its per-example gradients are formed by Opacus' hooks, which use `torch.func` where they know no rule for a layer of it.
A sum whose weights are known beforehand, as in plain training, is one ordinary backward pass.

The module's own tensors are only a workplace. Before each pass the numbers of one model are copied there, so whatever a
forward pass writes into a parameter is lost; each model keeps its own buffers.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import groupby
from typing import TYPE_CHECKING, ClassVar

from dp_leakage.common.errors import UserError
from dp_leakage.models.layers.base import Kept, Layer, OnDemand, Parameters, Shape
from dp_leakage.models.layers.formed_gradients import FormedGradients

if TYPE_CHECKING:
    from opacus import GradSampleModule
    from torch import Generator, Tensor, nn

Factory = Callable[[], "nn.Module"]


@dataclass(frozen=True, eq=False)
class TorchModule(Layer):
    """A module from records to logits.

    Attributes:
        make: makes a new instance, with random parameters from PyTorch's global stream.
        inputs: shape of one record.
        outputs: number of logits.
    """

    make: Factory
    inputs: Shape
    outputs: int

    has_parameters: ClassVar[bool] = True
    draws: ClassVar[bool] = True  # it may
    foreign: ClassVar[bool] = True

    @cached_property
    def workplace(self) -> nn.Module:
        """Return the module that holds each model's numbers in turn, with Opacus' hooks if possible."""
        import torch

        with torch.random.fork_rng(devices=[]), torch.inference_mode(False):
            return self.make()

    @cached_property
    def hooks(self) -> GradSampleModule:
        """Opacus' hooks on `workplace`, attached at the first use. Raises UserError if Opacus cannot attach them."""
        from opacus import GradSampleModule
        from opacus.validators import ModuleValidator

        problems = ModuleValidator.validate(self.workplace.train(), strict=False)
        try:
            if not problems:
                warnings.filterwarnings("ignore", "Full backward hook is firing")  # as it should: x has no gradient
                return GradSampleModule(self.workplace, loss_reduction="sum")
        except NotImplementedError as error:
            problems = [error]
        raise UserError(f"{self.title} has no per-example gradients: {problems[0]}")

    @property
    def has_hooks(self) -> bool:
        """Return whether the hooks are attached; plain training has no hooks."""
        return "hooks" in vars(self)

    @property
    def title(self) -> str:
        """Return the name of the module's class."""
        return type(self.workplace).__name__

    def parameter_shapes(self) -> dict[str, Shape]:
        """As in `Layer`."""
        return {name: tuple(own.shape) for name, own in trained(self.workplace).items()}

    def fixed(self) -> Parameters:
        """As in `Layer`: buffers, and parameters that ask for no gradient."""
        known = trained(self.workplace)
        return {name: own.to(device="meta") for name, own in tensors_of(self.workplace) if name not in known}

    def initial(self, generator: Generator, scheme: str) -> Parameters:
        """As `Layer`: the module's own initial values, whatever the scheme."""
        import torch

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(generator.initial_seed())
            return {name: own.detach().clone() for name, own in tensors_of(self.make())}

    def output_shape(self, shape: Shape) -> Shape:
        """As in `Layer`."""
        return (self.outputs,)

    def activation_floats(self, shape: Shape) -> int:
        """As in `Layer`: three times the outputs of its modules for one record."""
        return self._activations

    @cached_property
    def _activations(self) -> int:
        import torch

        counts: list[int] = []

        def count(module: nn.Module, given: object, output: object) -> None:
            counts.append(output.numel() if isinstance(output, torch.Tensor) else 0)

        module = self.module().eval()
        for part in module.modules():
            part.register_forward_hook(count)
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            module(next(iter(trained(module).values())).new_zeros(2, *self.inputs))
        return math.ceil(3 * sum(counts) / 2)

    @property
    def formed_floats(self) -> int:
        """As in `Layer`."""
        return 2 * sum(math.prod(shape) for shape in self.parameter_shapes().values())

    def forward(
        self, name: str, parameters: Parameters, x: Tensor, dropout: list[Generator] | None
    ) -> tuple[Tensor, Traced | None]:
        """As in `Layer`. While training there is one model, and its output is kept with its graph."""
        import torch

        if dropout is not None:
            (generator,) = dropout
            seed = int(torch.randint(2**62, (), generator=generator, device=generator.device))
            again = partial(self._traced, name, parameters, 0, x[0], seed)
            output, hooked = again(), self.has_hooks
            for own, value in self.workplace.named_buffers():
                parameters[f"{name}.{own}"][0].copy_(value)
            return output.detach()[None], Traced(again, output, hooked)
        models = len(next(value for key, value in parameters.items() if key.startswith(f"{name}.")))
        outputs = []
        for model, own in enumerate(x.expand(models, *x.shape[1:])):
            self._load(name, parameters, model, x)
            with torch.no_grad(), _drawing(0, x):
                outputs.append(self.workplace.eval()(own))
        return torch.stack(outputs), None

    def pull_back(self, name: str, parameters: Parameters, kept: Kept, delta: Tensor) -> Tensor:
        """As in `Layer`, without dropout."""
        import torch

        back = []
        for model, own in enumerate(delta):
            self._load(name, parameters, model, delta)
            with torch.inference_mode(False), torch.enable_grad(), _drawing(0, delta):
                x = kept.input[model % len(kept.input)].clone().requires_grad_()
                back.append(torch.autograd.grad(self.workplace.eval()(x), x, own.clone())[0])
        return torch.stack(back)

    def gradients(self, name: str, parameters: Parameters, kept: Kept, delta: Tensor) -> list[PartGradients]:
        """As in `Layer`: a part for each module in this one that holds parameters."""
        traced = [kept.extra]
        if kept.extra is None:
            x = kept.input.expand(len(delta), *kept.input.shape[1:])
            traced = [Traced(partial(self._traced, name, parameters, k, own, None)) for k, own in enumerate(x)]
        passes = [Pass(self, name, *of_model) for of_model in zip(traced, delta, strict=True)]
        names = (f"{name}.{own}" for own in self.parameter_shapes())
        return [PartGradients(tuple(own), passes) for _, own in groupby(names, lambda full: full.rpartition(".")[0])]

    def module(self) -> nn.Module:
        """As in `Layer`: an instance of the user's class."""
        import torch

        with torch.random.fork_rng(devices=[]):
            return self.make()

    def _load(self, name: str, parameters: Parameters, model: int, like: Tensor) -> None:
        """Copy one model's numbers into the workplace, and clear the state of earlier passes."""
        import torch

        with torch.inference_mode(False), torch.no_grad():
            self.workplace.to(like)
            for own, into in tensors_of(self.workplace):
                into.copy_(parameters[f"{name}.{own}"][model])
                into.grad, into.grad_sample, into._forward_counter = None, None, 0
                vars(into).pop("_current_grad_sample", None)
        for part in self.workplace.modules():
            vars(part).pop("max_batch_len", None)
            vars(part).pop("activations", None)
        if self.has_hooks:
            self.hooks.enable_hooks()

    def _traced(self, name: str, parameters: Parameters, model: int, x: Tensor, seed: int | None) -> Tensor:
        """Return one model's logits of x (B, …), with their graph. Without a seed dropout does nothing."""
        import torch

        self._load(name, parameters, model, x)
        module = self._without_dropout() if seed is None else self.workplace.train()
        with torch.inference_mode(False), torch.enable_grad(), _drawing(seed or 0, x):
            return module(x.clone())

    def _without_dropout(self) -> nn.Module:
        """Return the workplace in evaluation mode, except for modules that hold parameters: Opacus' hooks need these in
        training mode.
        """
        self.workplace.eval()
        for part in self.workplace.modules():
            if any(own.requires_grad for own in part.parameters(recurse=False)):
                part.training = True
        return self.workplace


@dataclass(frozen=True)
class Traced:
    """A forward pass of one model.

    Attributes:
        again: does it once more, with the same draws.
        output: (B, C) with its graph, if the pass is done already.
        hooked: whether the hooks were there.
    """

    again: Callable[[], Tensor]
    output: Tensor | None = None
    hooked: bool = False


@dataclass(eq=False)
class Pass:
    """A forward and backward pass of one model. Nothing else may use the layer between the two.

    Attributes:
        layer, name: whose pass it is.
        traced: the pass.
        delta: (B, C), ∂loss/∂output.
    """

    layer: TorchModule
    name: str
    traced: Traced
    delta: Tensor
    sums: dict[str, Tensor] | None = field(default=None, init=False)

    @cached_property
    def formed(self) -> dict[str, Tensor]:
        """Return name → (B, …), every example's gradient.

        Raises:
            UserError: Opacus cannot form them, or the module does not keep records on the first axis.
        """
        import torch

        hooks, output = self.layer.hooks, self.traced.output
        if output is None or not self.traced.hooked:
            output = self.traced.again()
        hooks.enable_hooks()
        with torch.inference_mode(False), torch.enable_grad():
            output.backward(self.delta.clone())
        return {f"{self.name}.{own}": self._sampled(own, value) for own, value in trained(self.layer.workplace).items()}

    def _sampled(self, name: str, parameter: nn.Parameter) -> Tensor:
        """Return the gradients that the hooks stored at a parameter, (B, …)."""
        import torch

        count, found = len(self.delta), parameter.grad_sample
        if found is None:  # it had no part in the loss
            return parameter.detach().new_zeros(count, *parameter.shape)
        found = torch.cat(found) if isinstance(found, list) else found
        if len(found) != count:
            words = f"has {len(found)} rows for a batch of {count}; keep records on axis 0"
            raise UserError(f"the gradient of parameter '{name}' {words}")
        return found

    def summed(self, scales: Tensor) -> dict[str, Tensor]:
        """Name → (…), Σ scaleᵢ·gᵢ, for scales (B,). Parameters without a part in the loss are left out."""
        import torch

        if self.sums is None:
            output = self.traced.again() if self.traced.output is None else self.traced.output
            if self.layer.has_hooks:
                self.layer.hooks.disable_hooks()
            parameters = trained(self.layer.workplace)
            with torch.inference_mode(False), torch.enable_grad():
                weighted = self.delta.clone() * scales.clone().unsqueeze(1)
                found = torch.autograd.grad(output, list(parameters.values()), weighted, allow_unused=True)
            pairs = zip(parameters, found, strict=True)
            self.sums = {f"{self.name}.{own}": value for own, value in pairs if value is not None}
        return self.sums


@dataclass(frozen=True, eq=False)
class PartGradients(OnDemand):
    """Per-example gradients of a part of a module.

    Attributes:
        names: the parameters.
        passes: of the K models; all parts of the module share them.
    """

    names: tuple[str, ...]
    passes: list[Pass]

    @property
    def examples(self) -> int:
        """B."""
        return len(self.passes[0].delta)

    @cached_property
    def formed(self) -> FormedGradients:
        """Return the gradients themselves."""
        import torch

        found = (torch.stack([own.formed[name] for own in self.passes]) for name in self.names)
        return FormedGradients(self.names, tuple(found))

    def add_weighted_sum(self, scales: Tensor, total: Parameters) -> None:
        """As in `PerExample`. Until the gradients are formed, all parts must get the same scales."""
        if "formed" in vars(self.passes[0]):
            self.formed.add_weighted_sum(scales, total)
            return
        for model, own in enumerate(self.passes):
            sums = own.summed(scales[model])
            for name in self.names:
                if name in sums:
                    total[name][model] += sums[name]


def trained(module: nn.Module) -> dict[str, nn.Parameter]:
    """Return the parameters that require a gradient, by name."""
    return {name: own for name, own in module.named_parameters() if own.requires_grad}


def tensors_of(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Yield all parameters, then all buffers, including those outside ``state_dict``."""
    yield from module.named_parameters()
    yield from module.named_buffers()


@contextmanager
def _drawing(seed: int, like: Tensor) -> Iterator[None]:
    """Context in which PyTorch's global random streams start at a seed; afterwards they are restored."""
    import torch

    with torch.random.fork_rng(devices=[like.device] if like.is_cuda else []):
        torch.manual_seed(seed)
        yield
