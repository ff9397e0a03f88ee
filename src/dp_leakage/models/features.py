"""Selection of a network's layers that compute its learned features. Imports no PyTorch, so that planning can use
it.
"""

from dp_leakage.data.projection_settings import CONVOLUTIONS
from dp_leakage.models.layers import Layers, Linear, Shape, output_shape


def kept_layers(network: Layers, shape: Shape, layers: str) -> int:
    """Return the number of layers, from the first on, that compute the features.

    Args:
        network: a built-in architecture.
        shape: of the records.
        layers: the layers that compute the features: ``hidden``, all layers but the last, or ``convolutions``, the
            layers before images become vectors.

    Returns:
        The number of layers; 0 if none of the layers has parameters to learn.
    """
    kept = max(place for place, layer in enumerate(network) if isinstance(layer, Linear))
    if layers == CONVOLUTIONS:
        kept = next(place for place in range(len(network)) if len(output_shape(network[: place + 1], shape)) == 1)
    return kept if any(layer.has_parameters for layer in network[:kept]) else 0
