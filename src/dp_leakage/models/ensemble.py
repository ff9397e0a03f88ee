"""Trained models: K of one architecture, side by side."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from dp_leakage.common.errors import UserError
from dp_leakage.models.layers import Layers, activation_floats, fixed, forward, parameter_shapes
from dp_leakage.models.layers import module as module_of

if TYPE_CHECKING:
    from dp_leakage.privacy.mechanism import Mechanism


class Models(Protocol):
    """The interface of K trained models of any origin. Most are an `Ensemble`; see there."""

    @property
    def parameters(self) -> dict[str, Tensor]:
        """Name → (K, …)."""

    @property
    def train_indices(self) -> Tensor:
        """As `Ensemble` has them."""

    @property
    def size(self) -> int:
        """K."""

    @property
    def device(self) -> torch.device:
        """Return the device of the models."""

    def to(self, device: str) -> "Models":
        """Return the same models on another device."""

    def logits(self, x: Tensor, models: Sequence[int] | None = None, rows: Tensor | None = None) -> Tensor:
        """Return logits (K, n, C) on the records x (n, …), or only on the records in ``rows``."""

    def module(self, model: int) -> nn.Module:
        """Return one model as a PyTorch module in evaluation mode."""

    def tensors(self) -> dict[str, Tensor]:
        """Return everything that a file of these models holds."""


def class_probabilities(logits: Tensor) -> np.ndarray:
    """Return the probabilities, float64 (n, classes), of a model's outputs (n, classes) on any device."""
    return np.asarray(logits.double().softmax(1).cpu().numpy())


def trained_rows(subsets: Tensor, held: Tensor | None) -> Tensor:
    """Return ``train_indices`` of models trained on the included (``held``, (K, m)) rows of ``subsets`` (K, m), or
    on all.
    """
    return subsets if held is None else subsets.where(held.to(subsets.device), NO_ROW)


def rows_of(train_indices: Tensor) -> Tensor:
    """Return the rows, int64 (m,), that one model was trained on, from its row of ``train_indices``."""
    return train_indices[train_indices != NO_ROW]


NO_ROW = -1
LOGITS_BYTES = 1 << 24  # bytes of activations that `Ensemble.logits` holds at a time, about a CPU's caches
ON_A_GPU = 32  # times as many there, where few records leave most of it idle


def check_parameters(parameters: Mapping[str, Tensor], one: Mapping[str, Tensor], models: int) -> None:
    """Refuse parameters, name → (K, …), that do not fit K models.

    Args:
        parameters: the parameters.
        one: the parameters of one such model; only their shapes and types count.
        models: K.

    Raises:
        UserError: one is missing, unknown, of another shape or type, or not finite.
    """
    for name in [*one, *parameters]:
        if (name in one) != (name in parameters):
            found = "is missing" if name in one else "is not one of this architecture"
            raise UserError(f"parameter {name!r} {found}; the file is not of these models")
    for name, wanted in one.items():
        shape, found = (models, *wanted.shape), parameters[name]
        if tuple(found.shape) != shape or found.dtype != wanted.dtype:
            words = f"must have the shape {shape} and type {wanted.dtype}; got {tuple(found.shape)} and {found.dtype}"
            raise UserError(f"parameter {name!r} {words}")
        if not found.isfinite().all():
            raise UserError(f"parameter {name!r} must hold finite numbers")


@dataclass(frozen=True)
class Ensemble:
    """K trained models of the same layers.

    Attributes:
        layers: the architecture.
        parameters: name → (K, …); the names are the exported `nn.Sequential`'s (``0.weight``). A user's own module also
            has its buffers and its parameters without a gradient here.
        train_indices: int64 (K, n): the rows of the data set that each model was trained on; `NO_ROW` replaces an
            excluded record under random inclusion, see `rows_of`.
        mechanism: protection of each training step; None: plain training.
    """

    layers: Layers
    parameters: dict[str, Tensor]
    train_indices: Tensor
    mechanism: "Mechanism | None" = None

    @property
    def size(self) -> int:
        """K."""
        return len(self.train_indices)

    @property
    def device(self) -> torch.device:
        """Return the device of the models."""
        return next(iter(self.parameters.values())).device

    def to(self, device: str) -> "Ensemble":
        """Return the same models on another device."""
        return replace(self, parameters={name: value.to(device) for name, value in self.parameters.items()})

    @torch.no_grad()
    def logits(self, x: Tensor, models: Sequence[int] | None = None, rows: Tensor | None = None) -> Tensor:
        """Compute logits (K, n, C) of records x (n, …) without dropout, by all models or those numbered in
        ``models``.

        With ``rows``, int64 (m,), only for these rows of x, copied a few at a time.
        """
        chosen = list(range(self.size)) if models is None else [int(m) for m in models]
        found = [self._logits_of_one(x, model, rows) for model in chosen]
        return found[0][None] if len(found) == 1 else torch.stack(found)

    def _logits_of_one(self, x: Tensor, model: int, rows: Tensor | None) -> Tensor:
        parameters = {name: value[model : model + 1] for name, value in self.parameters.items()}
        most = LOGITS_BYTES * (1 if self.device.type == "cpu" else ON_A_GPU)
        size = max(1, most // (4 * activation_floats(self.layers, x.shape[1:])))
        records = x.split(size) if rows is None else (x[some] for some in rows.split(size))
        parts = [forward(self.layers, parameters, part[None])[0][0] for part in records]
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def module(self, model: int) -> nn.Sequential:
        """Return model number ``model`` as a plain PyTorch module in evaluation mode, its parameters copied."""
        some = next(own for own in self.parameters.values() if own.is_floating_point())
        module = module_of(self.layers).to(some)
        with torch.no_grad():
            for name, into in (*module.named_parameters(), *module.named_buffers()):
                into.copy_(self.parameters[name][model])
        return module.eval()

    def tensors(self) -> dict[str, Tensor]:
        """Return everything that a file of this ensemble holds: the parameters and ``train_indices``."""
        return {**self.parameters, "train_indices": self.train_indices}

    @classmethod
    def from_tensors(cls, layers: Layers, tensors: dict[str, Tensor]) -> "Ensemble":
        """Return the inverse of `tensors`. Raises UserError if they are not K times the layers' parameters."""
        parameters = {name: tensor for name, tensor in tensors.items() if name != "train_indices"}
        one = {name: torch.empty(shape, device="meta") for name, shape in parameter_shapes(layers).items()}
        check_parameters(parameters, one | fixed(layers), len(tensors["train_indices"]))
        return cls(layers, parameters, tensors["train_indices"])
