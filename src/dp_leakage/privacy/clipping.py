"""Bounding: how much of each unit's gradient enters the sum.

Formal guarantee. With ``scales`` from `bound_scales`, adding or removing one unit moves Σ scaleᵢ·gᵢ by at most
``clip_norm`` (add/remove neighbors), and replacing one by at most 2·``clip_norm``. A unit with gradient 0 contributes
nothing. With ``per_layer`` each of L layers is clipped to ``layer_norm``, C/√L, so that the whole is at most C long.

The scales hold this for the sum as floating point adds it up: a unit is bounded to C/(1 + `allowance`), which leaves
room for all rounding. The noise stays at C, so accountants need not know.

1. A computed length is off by at most `norms.ROUNDING` units of precision. For norms from inner products, it includes
what rounding may remove from the sum of the unit's own terms; where these cancel, the gradient is formed.
2. A unit also shifts how the sum of the others rounds. Let a product add up m terms, one after the other. On the same
   grid, two sums that differ round alike. They part only while one is above a power of two, MC, and the other below,
   and then by at most the finer grid's step, u·MC with u = eps/2, at each of the m − M other terms: together m²uC/4.
   So B/m products move by at most mBuC/4, with m = `products.CHAIN`. Batches that are made for it reach this. The
   allowance is half as much again, since B is a mean and terms may tie.

This assumes that a unit's own gradient does not depend on the other units, and that a product adds its terms one after
the other. For the first, rows, positions and passes on a CPU have lengths with which kernels round alike
(`products.ROW`, `model_batches.ROWS_MULTIPLE`). A user's own module runs on PyTorch's kernels, which round by place
too, so with parameters made for it a record moves the sum by several C. If a sum has several terms of a unit
(positions, records), the second part is argued for terms that do not cancel, and searched for other terms.
"""

import math
from typing import get_args

import torch
from torch import Tensor

from dp_leakage.common.errors import UserError
from dp_leakage.common.user_code import FILES, blamed, function
from dp_leakage.models.norms import LEAST_NORM, ROUNDING
from dp_leakage.models.products import CHAIN
from dp_leakage.privacy.mechanism import PER_LAYER, Bound
from dp_leakage.privacy.mechanisms import noise_module

OPACUS_EPSILON = 1e-6  # Opacus divides by norm + this. So do we, so that both agree to the last digits
LEAST_LENGTH = 1e-12  # squares of much smaller numbers vanish in float32, so shorter gradients are not stretched to C
LENGTHS = 1000  # of gradients, on which a plugin's bound is tried before a training


def layer_norm(clip_norm: float, layers: int) -> float:
    """Return C/√L, the clipping norm of each of L layers under ``per_layer`` (McMahan et al. 2018, equal shares)."""
    return clip_norm / math.sqrt(layers)


def allowance(units: float, dtype: torch.dtype) -> float:
    """Return the share of C that rounding in ``dtype`` may add to a unit's effect on a sum of on average ``units``
    units.
    """
    return (ROUNDING + units * CHAIN * 3 / 16) * torch.finfo(dtype).eps


def bound_scales(norms: Tensor, clip_norm: float | Tensor, bound: Bound | str, divisor: float = 1.0) -> Tensor:
    """Return the factor for each unit's gradient, given its ℓ2 norm.

    ``clip``: min(1, C/‖g‖) (Abadi et al. 2016, algorithm 1); ``per_layer`` is the same for the gradient of one layer,
    whose C is `layer_norm`. ``normalize``: C/‖g‖; below a norm of about 1e-12 the result is shorter than C. Any other
    bound is the function ``bound(norms, C)`` of a file in ``privacy.mechanisms``, or of a plugin.

    Args:
        norms: ≥ 0 and finite, any shape, float32 or float64.
        clip_norm: C > 0; for ``clip`` also one for each of the norms, as a tensor that broadcasts with them.
        bound: ``clip``, ``normalize``, or the name of such a file.
        divisor: divisor of the bounded sum, > 0: the number of units in it, on average.

    Returns:
        A tensor like ``norms``: scale·norm ≤ C/(1 + `allowance`)/divisor. It is 0 where a file's own scale breaks the
        bound, since an error would reveal the record; `check_bound` raises it before a training.
    """
    length = clip_norm / (1 + allowance(divisor, norms.dtype))
    if bound == "normalize":
        return (norms + LEAST_LENGTH).reciprocal_().mul_(length / divisor)
    if bound in ("clip", PER_LAYER):
        return (norms + OPACUS_EPSILON).reciprocal_().mul_(length / divisor).clamp_(max=1 / divisor)
    scales = _own_scales(norms, length, bound)
    return scales.where(_within(scales, norms, length), 0.0) / divisor


def check_bound(bound: Bound | str, clip_norm: float) -> None:
    """Refuse with a UserError a plugin's bound that leaves a gradient of some length longer than ``clip_norm``."""
    if bound in get_args(Bound):
        return
    norms = torch.logspace(math.log10(LEAST_NORM), 38, LENGTHS)
    scales = _own_scales(norms, clip_norm, bound)
    if not bool((kept := _within(scales, norms, clip_norm)).all()):
        raise UserError(
            f"plugin {bound}: its function bound makes a gradient of length {norms[~kept][0]:g} one of "
            f"{abs(float(scales[~kept][0] * norms[~kept][0])):g}; every |scale · norm| must be at most clip_norm "
            f"{clip_norm:g}"
        )


def _within(scales: Tensor, norms: Tensor, clip_norm: float | Tensor) -> Tensor:
    rounded = clip_norm * (1 + ROUNDING * torch.finfo(norms.dtype).eps)  # as the function's own arithmetic may be
    return (scales * norms).abs() <= rounded  # NaN is not


def _own_scales(norms: Tensor, length: float | Tensor, plugin: str) -> Tensor:
    """Return a plugin's factor for each unit, computed one unit at a time, so that it cannot depend on other units'
    gradients.

    It is vectorized if the code allows that (`torch.vmap` shows the function only one unit's length).
    """
    one = function(noise_module(plugin), "bound")
    each = norms.clone().flatten()
    try:
        scales = torch.vmap(lambda norm: one(norm, length))(each)
    except Exception:  # it branches on the length, say; any fault shows below
        with blamed(f"plugin {plugin}", FILES.get(plugin)):
            given = [torch.as_tensor(one(norm, length), dtype=norms.dtype, device=norms.device) for norm in each]
            scales = torch.stack(given) if given else each
    if scales.shape != each.shape or scales.dtype != norms.dtype or scales.layout != torch.strided:
        words = f"{tuple(scales.shape[1:])} {scales.dtype} for one unit's length; expected one factor, {norms.dtype}"
        raise UserError(f"plugin {plugin}: bound returns {words}")
    lost = scales.abs() < torch.finfo(scales.dtype).tiny  # has too few digits left to keep to the bound
    return scales.where(~lost, 0.0).reshape(norms.shape)
