"""Validates training inputs once, on entry."""

from collections.abc import Sequence

import torch
from torch import Tensor

from dp_leakage.common.errors import UserError
from dp_leakage.models.layers import Layers, output_shape
from dp_leakage.privacy.clipping import check_bound
from dp_leakage.privacy.mechanism import Mechanism, check_step
from dp_leakage.privacy.mechanisms import amount_of
from dp_leakage.training.backward import AT_ONCE
from dp_leakage.training.samplers import EVEN
from dp_leakage.training.settings import TrainingSettings


def check_request(
    layers: Layers,
    x: Tensor,
    y: Tensor,
    subsets: Tensor,
    seeds: Sequence[int],
    settings: TrainingSettings,
    mechanism: Mechanism | None,
    held: Tensor | None = None,
) -> None:
    """Refuse with a UserError what cannot be trained, or not privately."""
    check_data(x, y, subsets, seeds, held)
    (n_classes,) = output_shape(layers, tuple(x.shape[1:]))
    if int(y.max()) >= n_classes:
        raise UserError(f"classes go up to {int(y.max())}, but the model has 0 to {n_classes - 1}")
    if mechanism is not None:
        check_private(mechanism, settings)


def check_data(x: Tensor, y: Tensor, subsets: Tensor, seeds: Sequence[int], held: Tensor | None = None) -> None:
    """Refuse with a UserError data or subsets that no model can be trained on."""
    if subsets.ndim != 2 or not subsets.numel():
        raise UserError(f"subsets has shape {tuple(subsets.shape)}; it must be (models, records), neither of them 0")
    if len(seeds) != len(subsets):
        raise UserError(f"there are {len(seeds)} seeds for {len(subsets)} models; each model needs its own")
    if held is not None and held.shape != subsets.shape:
        raise UserError(
            f"held has shape {tuple(held.shape)}; it must have the shape of subsets, {tuple(subsets.shape)}"
        )
    if held is not None and not bool(held.any(1).all()):
        raise UserError(f"a model has none of {subsets.shape[1]} records to train on; enlarge the role pool")
    if int(subsets.min()) < 0 or int(subsets.max()) >= len(x):
        raise UserError(f"subsets names row {int(subsets.max())}; the data have rows 0 to {len(x) - 1}")
    if int(y.min()) < 0:
        raise UserError(f"class {int(y.min())} is negative; classes are counted from 0")
    if not all(bool(part.isfinite().all()) for part in x.split(AT_ONCE)):
        raise UserError("the features hold NaN or infinite values; training needs finite ones")


def check_private(mechanism: Mechanism, settings: TrainingSettings) -> None:
    """Refuse with a UserError a mechanism that cannot be carried out with these settings."""
    check_step(mechanism)
    if mechanism.sampler in EVEN and settings.batch_size != int(settings.batch_size):
        raise UserError(f"batch_size {settings.batch_size} must be whole for sampler {mechanism.sampler!r}")
    if mechanism.noise != "none":
        name = amount_of(mechanism.noise)
        if (amount := getattr(mechanism, name)) is None or not amount >= 0:
            raise UserError(f"{name} is {amount} but must be 0 or more for noise {mechanism.noise!r}")
    check_bound(mechanism.bound, mechanism.clip_norm)
    if torch.get_float32_matmul_precision() != "highest":
        raise UserError(
            "private training needs torch.set_float32_matmul_precision('highest'); "
            "a lower one breaks the clipping bound"
        )
