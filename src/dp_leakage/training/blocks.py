"""The unit vectors that directional noise is drawn around, by dimension: what accountants need of a model."""

from math import prod

from dp_leakage.models.layers import Layers, parameter_shapes
from dp_leakage.privacy.mechanism import Block


def block_dimensions(layers: Layers, block: Block) -> list[int]:
    """Dimension of each unit vector of one step and unit (see ``directional``): of the whole, each layer, or each row.

    A layer's weight and bias go together, and so do a row's weights and its bias.
    """
    weights = {name: shape for name, shape in parameter_shapes(layers).items() if name.endswith(".weight")}
    if block == "row":
        return [prod(shape[1:]) + 1 for shape in weights.values() for _ in range(shape[0])]
    by_layer = [prod(shape) + shape[0] for shape in weights.values()]
    return by_layer if block == "layer" else [sum(by_layer)]
