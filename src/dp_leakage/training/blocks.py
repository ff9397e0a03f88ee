"""Dimensions of the unit vectors that get directional noise: the accountants' only information about a model."""

from math import prod

from dp_leakage.common.errors import UserError
from dp_leakage.models.layers import Layers, parameter_shapes
from dp_leakage.privacy.mechanism import Block, Mechanism


def block_dimensions(layers: Layers, block: Block) -> list[int]:
    """Return the dimension of each unit vector of one step and unit (see ``directional``): of the whole, each layer, or
    each row.

    A layer's weight and bias go together, and so do a row's weights and its bias.
    """
    by_name: dict[str, list[tuple[int, ...]]] = {}
    for name, shape in parameter_shapes(layers).items():
        by_name.setdefault(name.rpartition(".")[0], []).append(shape)
    if block == "row":
        for name, shapes in by_name.items():
            if len({shape[:1] for shape in shapes}) != 1 or sum(prod(shape[1:]) for shape in shapes) < 2:
                words = "does not have a row of two numbers or more for each of its neurons; expected layer or whole"
                raise UserError(f"block 'row': layer {name!r} {words}")
        return [sum(prod(shape[1:]) for shape in shapes) for shapes in by_name.values() for _ in range(shapes[0][0])]
    by_layer = [sum(map(prod, shapes)) for shapes in by_name.values()]
    return by_layer if block == "layer" else [sum(by_layer)]


def blocks_of(layers: Layers, step: Mechanism | None) -> list[int] | None:
    """Return these dimensions for a mechanism with directional noise, over which its accountants compose; else
    None.
    """
    return block_dimensions(layers, step.block) if step is not None and step.noise == "vmf" else None
