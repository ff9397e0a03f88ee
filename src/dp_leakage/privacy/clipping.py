"""Bounding: how much of each unit's gradient enters the sum.

Formal guarantee. With ``scales`` from `bound_scales`, adding or removing one unit moves Σ scaleᵢ·gᵢ by at most
``clip_norm`` (add/remove neighbours), and replacing one by at most 2·``clip_norm``. The scales hold this in the
floating point of ``norms``, whose rounding they allow for. A unit with gradient 0 contributes nothing.
"""

import torch
from torch import Tensor

from dp_leakage.common.errors import UserError
from dp_leakage.common.user_code import FILES, blamed, function
from dp_leakage.models.norms import ROUNDING
from dp_leakage.privacy.mechanism import Bound
from dp_leakage.privacy.mechanisms import noise_module

OPACUS_EPSILON = 1e-6  # Opacus divides by norm + this. So do we, so that both agree to the last digits
LEAST_LENGTH = 1e-12  # squares of much smaller numbers vanish in float32, so shorter gradients are not stretched to C


def bound_scales(norms: Tensor, clip_norm: float, bound: Bound | str, divisor: float = 1.0) -> Tensor:
    """The factor for each unit's gradient, given its ℓ2 norm.

    ``clip``: min(1, C/‖g‖) (Abadi et al. 2016, algorithm 1). ``normalise``: C/‖g‖; below a norm of about 1e-12 the
    result is shorter than C. Any other bound is the function ``bound(norms, C)`` of a file in ``privacy.mechanisms``,
    or of a plugin.

    Args:
        norms: ≥ 0, any shape, float32 or float64.
        clip_norm: C > 0.
        bound: ``clip``, ``normalise``, or the name of such a file.
        divisor: what the bounded sum is to be divided by, > 0.

    Returns:
        A tensor like ``norms``: scale·norm ≤ C/divisor.

    Raises:
        UserError: the file's scales do not keep to the bound.
    """
    length = clip_norm * (1 - ROUNDING * torch.finfo(norms.dtype).eps)
    if bound == "normalise":
        return (norms + LEAST_LENGTH).reciprocal_().mul_(length / divisor)
    if bound == "clip":
        return (norms + OPACUS_EPSILON).reciprocal_().mul_(length / divisor).clamp_(max=1 / divisor)
    scales = _own_scales(norms, length, bound)
    if not bool(((scales * norms).abs() <= clip_norm).all()):  # also refuses NaN
        raise UserError(
            f"plugin {bound}: its function bound leaves a gradient longer than clip_norm {clip_norm:g}; every "
            "|scale · norm| must be at most that"
        )
    return scales / divisor


def _own_scales(norms: Tensor, length: float, plugin: str) -> Tensor:
    """A file's own factor for each unit, computed from one unit at a time, so that none can depend on another's
    gradient.

    It is vectorised if the code allows that (`torch.vmap` shows the function only one unit's length).
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
        words = f"{tuple(scales.shape[1:])} {scales.dtype} for one unit's length; valid is one factor, {norms.dtype}"
        raise UserError(f"plugin {plugin}: bound returns {words}")
    return scales.reshape(norms.shape)
