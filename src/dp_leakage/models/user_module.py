"""Models that a user brings: any `torch.nn.Module`, named by where Python finds it."""

import importlib
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from dp_leakage.errors import UserError, nearest
from dp_leakage.models.ensemble import LOGITS_BYTES

Factory = Callable[[], nn.Module]


def module_factory(path: str, input_shape: tuple[int, ...], n_classes: int, **settings: object) -> Factory:
    """A function that makes the user's module afresh, with random parameters.

    Args:
        path: ``package.module:name`` of a class or function that returns a `torch.nn.Module`.
        input_shape: of one record; handed over by name if the callable takes ``input_shape``.
        n_classes: number of logits; handed over by name if the callable takes ``n_classes``.
        settings: further keyword arguments.

    Raises:
        UserError: nothing is found there, or it does not take these arguments.
    """
    package, _, name = path.partition(":")
    if not package or not name:
        raise UserError(f"module {path!r} must be an import path such as 'my_models.nets:Net'")
    try:
        found = importlib.import_module(package)
    except ImportError as error:
        raise UserError(
            f"module {path!r} cannot be imported: {error}; is its folder among plugins or on PYTHONPATH?"
        ) from error
    if not hasattr(found, name):
        raise UserError(f"module {path!r}: {package} has no {name!r}; {nearest(name, vars(found))}")
    make = getattr(found, name)
    takes = inspect.signature(make).parameters
    given = {"input_shape": tuple(input_shape), "n_classes": n_classes}
    arguments = {key: value for key, value in given.items() if key in takes} | settings
    try:
        inspect.signature(make).bind(**arguments)
    except TypeError as error:
        raise UserError(f"module {path!r} does not take these settings: {error}") from error
    return lambda: make(**arguments)


@dataclass(frozen=True)
class ModuleEnsemble:
    """K trained modules of one factory; like `Ensemble` but for the layers.

    Attributes:
        factory: makes a module; its parameters are then replaced.
        parameters: name in the module's ``state_dict`` → (K, …), buffers included.
        train_indices: int64 (K, n), as `Ensemble.train_indices`.
    """

    factory: Factory
    parameters: dict[str, Tensor]
    train_indices: Tensor

    @property
    def size(self) -> int:
        """K."""
        return len(self.train_indices)

    @property
    def device(self) -> torch.device:
        """As `Ensemble.device`."""
        return next(iter(self.parameters.values())).device

    def to(self, device: str) -> "ModuleEnsemble":
        """As `Ensemble.to`."""
        return replace(self, parameters={name: value.to(device) for name, value in self.parameters.items()})

    @torch.no_grad()
    def logits(self, x: Tensor, models: Sequence[int] | None = None) -> Tensor:
        """As `Ensemble.logits`."""
        chosen = range(self.size) if models is None else models
        rows = max(1, LOGITS_BYTES // (64 * x[0].numel()))
        return torch.stack([torch.cat([self.module(int(m))(part) for part in x.split(rows)]) for m in chosen])

    def module(self, model: int) -> nn.Module:
        """Model number ``model`` in evaluation mode, its parameters copied."""
        with torch.random.fork_rng(devices=[]):  # the random start is thrown away
            module = self.factory()
        some = next(values for values in self.parameters.values() if values.is_floating_point())
        module.to(some).load_state_dict({name: values[model] for name, values in self.parameters.items()})
        return module.eval()

    def tensors(self) -> dict[str, Tensor]:
        """As `Ensemble.tensors`."""
        return {**self.parameters, "train_indices": self.train_indices}

    @classmethod
    def from_tensors(cls, factory: Factory, tensors: dict[str, Tensor]) -> "ModuleEnsemble":
        """The inverse of `tensors`."""
        parameters = {name: tensor for name, tensor in tensors.items() if name != "train_indices"}
        return cls(factory, parameters, tensors["train_indices"])
