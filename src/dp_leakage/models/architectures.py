"""The models that a study can name: each builder returns a tuple of layers. A new one is a function and a line."""

import inspect
from collections.abc import Callable, Mapping, Sequence

from dp_leakage.errors import UserError, nearest
from dp_leakage.kinds import ANY, COUNT, choice, listed
from dp_leakage.models.layers import (
    Conv2d,
    Dropout,
    Flatten,
    Layer,
    Layers,
    Linear,
    MaxPool2d,
    ReLU,
    Sigmoid,
    SiLU,
    Tanh,
    output_shape,
)

ACTIVATIONS: dict[str, type[Layer]] = {"relu": ReLU, "tanh": Tanh, "sigmoid": Sigmoid, "silu": SiLU}
Shape = tuple[int, ...]
# What a setting of an architecture may hold, by its annotation there; a text names an activation.
KINDS = {int: COUNT, Sequence[int]: listed(COUNT), tuple[int, int]: listed(COUNT, 2), str: choice(*ACTIVATIONS)}


def build(name: str, input_shape: Shape, n_classes: int, *, dropout: float = 0.0, **settings: object) -> Layers:
    """The layers of architecture ``name`` for records of ``input_shape`` and ``n_classes`` logits.

    Args:
        name: a key of `ARCHITECTURES`.
        input_shape: of one record: (features,) or (channels, height, width).
        n_classes: number of logits, ≥ 1.
        dropout: probability in [0, 1) of dropping a hidden feature while training; 0 leaves the layers out.
        settings: the architecture's own, e.g. ``hidden=[64, 64]`` for ``mlp``.

    Raises:
        UserError: unknown name or setting, or an input that the architecture cannot take.
    """
    check_settings(name, settings)
    if not 0 <= dropout < 1:
        raise UserError(f"dropout {dropout} is not a probability in [0, 1)")
    layers = ARCHITECTURES[name](tuple(input_shape), n_classes, dropout, **settings)
    return tuple(layer for layer in layers if layer != Dropout(0.0))


def check_settings(name: str, settings: Mapping[str, object]) -> None:
    """Refuse settings that the architecture ``name`` does not have or cannot be built with; builds nothing.

    Raises:
        UserError: unknown name or setting, or a value of another kind than the setting's annotation says.
    """
    if name not in ARCHITECTURES:
        raise UserError(f"architecture {name!r} is unknown; {nearest(name, ARCHITECTURES)}")
    known = dict(list(inspect.signature(ARCHITECTURES[name]).parameters.items())[3:])
    for key, value in settings.items():
        if key not in known:
            raise UserError(f"architecture {name!r} has no setting {key!r}; {nearest(key, known)}")
        kind = KINDS.get(known[key].annotation, ANY)
        if not kind.holds(value):
            raise UserError(f"architecture {name!r}: setting {key!r} is {value!r}; {kind.valid(value)}")


def softmax_regression(shape: Shape, n_classes: int, dropout: float) -> Layers:
    """One linear layer (jayaraman2019's logistic regression, zhang2020's model for faces)."""
    flat, width = _flatten(shape)
    return (*flat, Dropout(dropout), Linear(width, n_classes))


def mlp(
    shape: Shape, n_classes: int, dropout: float, hidden: Sequence[int] = (256, 256), activation: str = "relu"
) -> Layers:
    """Fully connected hidden layers of the given widths; dropout after each."""
    flat, width = _flatten(shape)
    return (*flat, *_dense(width, hidden, n_classes, dropout, activation))


def lenet(
    shape: Shape,
    n_classes: int,
    dropout: float,
    channels: tuple[int, int] = (6, 16),
    dense: Sequence[int] = (120, 84),
    activation: str = "relu",
) -> Layers:
    """LeNet-5: two 5×5 convolutions with pooling, two dense layers; 28×28 images are padded to 32×32's sizes."""
    padding = 2 if shape[-1] == 28 else 0
    block1 = _block(shape, channels[0], 5, padding, dropout, activation)
    block2 = _block(output_shape(block1, shape), channels[1], 5, 0, dropout, activation)
    return _finish((*block1, *block2), shape, dense, n_classes, dropout, activation)


def lenet_strided(
    shape: Shape,
    n_classes: int,
    dropout: float,
    channels: Sequence[int] = (12, 12, 12),
    strides: Sequence[int] = (2, 2, 1),
    activation: str = "sigmoid",
) -> Layers:
    """The LeNet of gradient attacks (Zhu et al. 2019): 5×5 convolutions that stride and never pool, one dense layer.

    With a smooth activation it is twice differentiable, which DLG asks for.
    """
    if len(strides) != len(channels):
        raise UserError(f"{len(strides)} strides for {len(channels)} convolutions; valid is one for each")
    layers: Layers = ()
    for width, stride in zip(channels, strides, strict=True):
        sides = output_shape(layers, shape)
        if len(sides) != 3:
            raise UserError(f"a convolution needs images (channels, height, width), not records of shape {shape}")
        layers += (Conv2d(sides[0], width, 5, stride, padding=2), Dropout(dropout), ACTIVATIONS[activation]())
    return _finish(layers, shape, (), n_classes, dropout, activation)


def cnn(
    shape: Shape,
    n_classes: int,
    dropout: float,
    channels: Sequence[int] = (32, 64, 64),
    dense: int = 64,
    activation: str = "relu",
) -> Layers:
    """Three blocks of 3×3 convolution and pooling, a dense layer, the prediction (lomurno2022, figure 1)."""
    layers: Layers = ()
    for width in channels:
        layers += _block(output_shape(layers, shape), width, 3, 1, dropout, activation)
    before_dense = (Dropout(dropout),)
    return _finish(layers, shape, (dense,), n_classes, dropout, activation, before_dense)


def cnn_small(
    shape: Shape,
    n_classes: int,
    dropout: float,
    channels: tuple[int, int] = (16, 32),
    dense: int = 128,
    activation: str = "relu",
) -> Layers:
    """Two 5×5 convolutions with pooling and two dense layers (zhang2020's model for digits)."""
    block1 = _block(shape, channels[0], 5, 2, dropout, activation)
    block2 = _block(output_shape(block1, shape), channels[1], 5, 2, dropout, activation)
    return _finish((*block1, *block2), shape, (dense,), n_classes, dropout, activation)


def cnn_strided(
    shape: Shape,
    n_classes: int,
    dropout: float,
    channels: Sequence[int] = (16, 32),
    dense: int = 32,
    activation: str = "relu",
) -> Layers:
    """An 8×8 and a 4×4 convolution of stride 2 and two dense layers: the MNIST model of TensorFlow Privacy's tutorial.

    Without its poolings of stride 1. zhang2020 names no layer sizes; record-level ε and accuracies fit the tutorial's.
    """
    if len(shape) != 3 or min(shape[1:]) < 12:
        raise UserError(
            f"architecture 'cnn_strided' needs images of at least 12×12 pixels, not records of shape {shape}"
        )
    first = (Conv2d(shape[0], channels[0], 8, 2, 3), Dropout(dropout), ACTIVATIONS[activation]())
    second = (Conv2d(channels[0], channels[1], 4, 2), Dropout(dropout), ACTIVATIONS[activation]())
    return _finish((*first, *second), shape, (dense,), n_classes, dropout, activation)


ARCHITECTURES: dict[str, Callable[..., Layers]] = {
    "softmax_regression": softmax_regression,
    "mlp": mlp,
    "lenet": lenet,
    "lenet_strided": lenet_strided,
    "cnn": cnn,
    "cnn_small": cnn_small,
    "cnn_strided": cnn_strided,
}


def _flatten(shape: Shape) -> tuple[Layers, int]:
    layers = (Flatten(),) if len(shape) > 1 else ()
    return layers, output_shape(layers, shape)[0]


def _dense(width: int, hidden: Sequence[int], n_classes: int, dropout: float, activation: str) -> Layers:
    layers: Layers = ()
    for outputs in hidden:
        layers += (Linear(width, outputs), ACTIVATIONS[activation](), Dropout(dropout))
        width = outputs
    return (*layers, Linear(width, n_classes))


def _block(shape: Shape, outputs: int, kernel: int, padding: int, dropout: float, activation: str) -> Layers:
    if len(shape) != 3:
        raise UserError(f"a convolution needs images (channels, height, width), not records of shape {shape}")
    convolution = Conv2d(shape[0], outputs, kernel, padding=padding)
    if min(output_shape((convolution,), shape)[1:]) < 2:
        raise UserError(f"images of shape {shape} are too small for a {kernel}×{kernel} convolution and pooling")
    # Pooling before the activation gives the same as after it (all are monotone but SiLU) on a quarter of the numbers.
    return (convolution, Dropout(dropout), MaxPool2d(2), ACTIVATIONS[activation]())


def _finish(
    layers: Layers,
    shape: Shape,
    dense: Sequence[int],
    n_classes: int,
    dropout: float,
    activation: str,
    before_dense: Layers = (),
) -> Layers:
    layers = (*layers, Flatten(), *before_dense)
    (width,) = output_shape(layers, shape)
    return (*layers, *_dense(width, dense, n_classes, dropout, activation))
