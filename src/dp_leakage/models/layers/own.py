"""The user's own layers: plugins with a literal ``LAYER``, which an architecture's setting ``activation`` can name.

Such a layer has no parameters and preserves the shape of records. Its class derives from `Layer`. Before a training,
its forward and backward pass are compared with those of its equivalent `torch.nn` module.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from dp_leakage.common.declarations import SHARED, settings_of, things_of
from dp_leakage.common.errors import UserError
from dp_leakage.common.schemas import TEXT, Schema, check, table
from dp_leakage.common.user_code import FILES, function, guarded
from dp_leakage.models.layers.base import Kept, Layer

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class OwnLayer:
    """Declaration of a plugin's layer.

    Attributes:
        module: the plugin.
        name: the name of its class.
        settings: the class's arguments, with their defaults.
        schemas: of each of them.
    """

    module: str
    name: str
    settings: Mapping[str, Any]
    schemas: Mapping[str, Schema]


OWN: dict[str, OwnLayer] = {}
WORD = "LAYER"
SCHEMA = table({"class": TEXT, **SHARED}, required=["class"])
SHAPES = ((4,), (2, 3, 3))  # shapes of records on which a layer is tried
NEAR = 1e-4  # relative tolerance in float32


def _layer(where: str, module: str, given: dict[str, Any]) -> OwnLayer:
    check(given, SCHEMA, where)
    return OwnLayer(module, given["class"], *settings_of(where, given))


layers_of = partial(things_of, WORD, _layer)  # the layers that one file declares, by name


def own_layer(name: str, settings: Mapping[str, Any]) -> Layer:
    """Create a plugin's layer with these settings over its defaults.

    Raises:
        UserError: the object is not a `Layer`, has parameters, or changes the shape of records.
    """
    entry = OWN[name]
    made_by = function(entry.module, entry.name)
    with guarded(entry.module):
        layer = made_by(**{**entry.settings, **settings})
        if not isinstance(layer, Layer):
            raise UserError(f"plugin {entry.module}: {entry.name} does not derive from dp_leakage.models.layers.Layer")
        if layer.has_parameters or layer.parameter_shapes():
            raise UserError(f"plugin {entry.module}: {entry.name} has parameters; a plugin's layer must have none")
        changed = [shape for shape in SHAPES if layer.output_shape(shape) != shape]
    if changed:
        raise UserError(f"plugin {entry.module}: {entry.name} changes the shape of records; an activation must keep it")
    return layer


def check_own(layers: tuple[Layer, ...]) -> None:
    """Compare every plugin's layer among these with its equivalent `torch.nn` module.

    Raises:
        UserError: its forward or backward pass differs, it changes its input, or one example's output depends on the
            others, which no accounting covers.
    """
    for layer in layers:
        if type(layer).__module__ in FILES:
            with guarded(type(layer).__module__):
                for shape in SHAPES:
                    _check(layer, shape, f"plugin {type(layer).__module__}: {type(layer).__name__}")


def _check(layer: Layer, shape: tuple[int, ...], where: str) -> None:
    import torch

    generator = torch.Generator().manual_seed(0)
    x, delta = (3 * torch.randn((2, 3, *shape), generator=generator) for _ in range(2))
    before, leaf = (x.clone(), delta.clone()), x.clone().requires_grad_()
    output, extra = layer.forward("0", {}, x, None)
    _same(x, before[0], f"{where}.forward changes its input")
    twin = layer.module()(leaf.flatten(0, 1)).unflatten(0, (2, 3))
    (expected,) = torch.autograd.grad(twin, leaf, delta)
    _same(output, twin.detach(), f"{where}.forward is not what its torch module does")
    alone, _ = layer.forward("0", {}, x[:, :1].clone(), None)
    _same(alone, output[:, :1], f"{where}.forward of one example depends on the others")
    back = layer.pull_back("0", {}, Kept(x, output, extra), delta)
    _same(back, expected, f"{where}.pull_back is not the way back of its torch module")
    _same(delta, before[1], f"{where}.pull_back changes delta")


def _same(ours: Tensor, theirs: Tensor, complaint: str) -> None:
    import torch

    if ours.shape != theirs.shape or not torch.allclose(ours, theirs, rtol=NEAR, atol=NEAR):
        raise UserError(complaint)
