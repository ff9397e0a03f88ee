"""Augmentation multiplicity: several augmented copies of each image in every step (Hoffer et al. 2020; De et al. 2022).

An example's gradient is the mean over its copies, and is bounded as one. So an example counts as one unit whatever
their number, and they cost no privacy. The augmentation of other examples does not depend on this example.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from dp_leakage.common.errors import UserError
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.training.noise import directs


@dataclass(frozen=True)
class Views:
    """Augmentation of examples.

    Attributes:
        count: views of each example, ≥ 1.
        shift: the most pixels by which a view is moved, in each direction, ≥ 0; the border is reflected.
        mirror: whether every other view, by chance, is mirrored left to right.
    """

    count: int
    shift: int = 4
    mirror: bool = True


class Viewing(NamedTuple):
    """Augmentation for K models' trainings, with each model's random stream."""

    views: Views
    generators: list[Generator]


def read_views(given: Mapping[str, Any]) -> Views:
    """Read a study's ``views``. Raises UserError for unknown or impossible values."""
    if set(given) - {field.name for field in fields(Views)} or "count" not in given:
        raise UserError(f"views is {dict(given)}; expected e.g. {{count: 8, shift: 4, mirror: true}}")
    views = Views(**given)
    for key, least in (("count", 1), ("shift", 0)):
        value = getattr(views, key)
        if type(value) is not int or value < least:
            raise UserError(f"views.{key} is {value!r} but must be a whole number of at least {least}")
    return views


def check_views(views: Views, shape: tuple[int, ...], mechanism: Mechanism | None) -> None:
    """Refuse augmentation of records that are not images, are too small, or are not bounded one by one.

    Args:
        views: the requested augmentation.
        shape: of a record.
        mechanism: protection of each step.

    Raises:
        UserError: the records, or the mechanism, do not allow the augmentation.
    """
    if len(shape) != 3 or min(shape[1:]) <= views.shift:
        raise UserError(f"views need images of more than {views.shift} pixels a side, not records of shape {shape}")
    if mechanism is not None and (mechanism.unit, mechanism.bound == "per_layer") != ("example", False):
        raise UserError("views need a mechanism that bounds each example's whole gradient; remove views")
    if mechanism is not None and directs(mechanism):  # such noise turns each record's own gradient, not a mean
        raise UserError(f"views do not work with noise {mechanism.noise!r}; remove views")


def varied(x: Tensor, views: Views, generator: Generator) -> Tensor:
    """Return augmented copies of images, those of one image side by side: x (n, channels, height, width) → (n·count,
    …).
    """
    height, width = x.shape[2:]
    size, shift = len(x) * views.count, views.shift
    drawn = torch.rand(size, 3, generator=generator, device=x.device)  # in one draw, image by image
    moved = (drawn[:, :2] * (2 * shift + 1)).long().clamp_(max=2 * shift)
    down = moved[:, :1] + torch.arange(height, device=x.device)
    right = moved[:, 1:] + torch.arange(width, device=x.device)
    if views.mirror:
        right = right.flip(1).where(drawn[:, 2:] < 0.5, right)
    border = F.pad(x, [shift] * 4, mode="reflect") if shift else x
    image = torch.arange(len(x), device=x.device).repeat_interleave(views.count)
    channel = torch.arange(x.shape[1], device=x.device)
    return border[
        image[:, None, None, None], channel[None, :, None, None], down[:, None, :, None], right[:, None, None, :]
    ]
