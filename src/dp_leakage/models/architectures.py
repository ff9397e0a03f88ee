"""Built-in architectures. Each builder returns a tuple of layers; a new architecture is a function and a line here."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from dp_leakage.common.errors import UserError, nearest
from dp_leakage.common.schemas import ANY, Schema, check, enum, table
from dp_leakage.models.layers import (
    Conv2d,
    Dropout,
    Embedding,
    Flatten,
    GlobalAvgPool2d,
    GroupNorm,
    Layer,
    Layers,
    Linear,
    MaxPool2d,
    ReLU,
    Residual,
    Shape,
    Sigmoid,
    SiLU,
    Tanh,
    TemperedSigmoid,
    WeightStandardizedConv2d,
    output_shape,
)
from dp_leakage.models.layers.own import OWN, own_layer

ACTIVATIONS: dict[str, type[Layer]] = {
    "relu": ReLU,
    "tanh": Tanh,
    "sigmoid": Sigmoid,
    "silu": SiLU,
    "tempered_sigmoid": TemperedSigmoid,
}
# A name, or {scale: …, temperature: …, offset: …} of a tempered sigmoid, or {name: …} of a plugin and its settings.
Activation = str | Mapping[str, Any]
TEMPERED = tuple(field.name for field in fields(TemperedSigmoid))
Levels = Sequence[int] | None
Sides = list[int]  # of pixels, from 0 on
# What a setting of an architecture may hold, by its annotation in the builder.
# The widest layer; the weights between two of them fill 40 GB.
WIDTH: Schema = {"type": "integer", "minimum": 1, "maximum": 100_000}
MOST_LAYERS = 200  # most layers of one kind, since each is planned for and trained in turn
WIDTHS: Schema = {"type": "array", "items": WIDTH, "maxItems": MOST_LAYERS}
SCHEMAS: dict[Any, Schema] = {
    int: WIDTH,
    Sequence[int]: WIDTHS,
    tuple[int, int]: {"type": "array", "items": WIDTH, "minItems": 2, "maxItems": 2},
    Sides: {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 100}},
    Levels: {**WIDTHS, "type": ["null", "array"]},
}


def is_import_path(name: str) -> bool:
    """Return whether an architecture's name is the import path of a user's class, e.g. ``my_models:Net``."""
    return ":" in name


def build(name: str, input_shape: Shape, n_classes: int, *, dropout: float = 0.0, **settings: object) -> Layers:
    """Return the layers of architecture ``name`` for records of ``input_shape`` and ``n_classes`` logits.

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
    return _some(layers)


def check_settings(name: str, settings: Mapping[str, object]) -> None:
    """Refuse settings that the architecture ``name`` does not have or cannot be built with. Builds nothing.

    Raises:
        UserError: unknown name or setting, or a value of another kind than the setting's annotation says.
    """
    if name not in ARCHITECTURES:
        raise UserError(f"architecture {name!r} is unknown; {nearest(name, ARCHITECTURES)}")
    known = dict(list(inspect.signature(ARCHITECTURES[name]).parameters.items())[3:])
    for key, value in settings.items():
        if key not in known:
            raise UserError(f"architecture {name!r} has no setting {key!r}; {nearest(key, known)}")
        annotation = known[key].annotation
        schema = _activation(value) if annotation == Activation else SCHEMAS.get(annotation, ANY)
        check(value, schema, f"architecture {name!r}", key)


def activation_layer(activation: Activation) -> Layer:
    """Return the layer named by an architecture's setting ``activation``."""
    given = dict(activation) if isinstance(activation, Mapping) else {"name": activation}
    name = given.pop("name", "tempered_sigmoid")
    return own_layer(name, given) if name in OWN else ACTIVATIONS[name](**given)


def _activation(given: object) -> Schema:
    """Return the schema of the setting ``activation``: built-in or plugin names; the given name selects the one for
    error messages.
    """
    name = given.get("name") if isinstance(given, Mapping) else None
    if isinstance(name, str) and name in OWN:
        return table({"name": {"const": name}, **OWN[name].schemas}, required=["name"])
    tempered = table({field: {"type": "number"} for field in TEMPERED})
    own = [table({"name": {"const": name}, **layer.schemas}, required=["name"]) for name, layer in OWN.items()]
    return {"anyOf": [enum(*ACTIVATIONS, *OWN), tempered, *own]}


def softmax_regression(shape: Shape, n_classes: int, dropout: float) -> Layers:
    """One linear layer (jayaraman2019's logistic regression, zhang2020's model for faces)."""
    flat, width = _flatten(shape)
    return (*flat, Dropout(dropout), Linear(width, n_classes))


def mlp(
    shape: Shape,
    n_classes: int,
    dropout: float,
    hidden: Sequence[int] = (256, 256),
    activation: Activation = "relu",
    levels: Levels = None,
    embedding_width: int = 8,
) -> Layers:
    """Fully connected hidden layers of the given widths, with dropout after each.

    If the first columns hold category numbers, ``levels`` says how many categories each has, and they are embedded.
    """
    flat, width = _flatten(shape)
    if levels:
        if len(levels) > width:
            raise UserError(f"{len(levels)} levels for {width} columns; expected at most one for each")
        flat += (Embedding(tuple(levels), embedding_width),)
        (width,) = output_shape(flat, shape)
    return (*flat, *_dense(width, hidden, n_classes, dropout, activation))


def lenet(
    shape: Shape,
    n_classes: int,
    dropout: float,
    channels: tuple[int, int] = (6, 16),
    dense: Sequence[int] = (120, 84),
    activation: Activation = "relu",
) -> Layers:
    """LeNet-5: two 5×5 convolutions with pooling, two dense layers; 28×28 images are padded to the sizes of 32×32."""
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
    activation: Activation = "sigmoid",
) -> Layers:
    """The LeNet of gradient attacks (Zhu et al. 2019): 5×5 convolutions with strides but no pooling, one dense layer.

    With a smooth activation it is twice differentiable, as DLG requires.
    """
    n = len(channels)
    return convnet(shape, n_classes, dropout, channels, [5] * n, strides, [2] * n, [0] * n, [], activation)


def cnn(
    shape: Shape,
    n_classes: int,
    dropout: float,
    channels: Sequence[int] = (32, 64, 64),
    dense: int = 64,
    activation: Activation = "relu",
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
    activation: Activation = "relu",
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
    activation: Activation = "relu",
) -> Layers:
    """An 8×8 and a 4×4 convolution of stride 2 and two dense layers: the MNIST model of TensorFlow Privacy's tutorial.

    The tutorial's poolings of stride 1 are left out. zhang2020 names no layer sizes, but its record-level ε and
    accuracies fit the tutorial's model.
    """
    if len(shape) != 3 or min(shape[1:]) < 12:
        raise UserError(
            f"architecture 'cnn_strided' needs images of at least 12×12 pixels, not records of shape {shape}"
        )
    return convnet(shape, n_classes, dropout, channels, (8, 4), (2, 2), [3, 0], [0, 0], [dense], activation)


def convnet(
    shape: Shape,
    n_classes: int,
    dropout: float,
    channels: Sequence[int] = (32, 64),
    kernels: Sequence[int] = (3, 3),
    strides: Sequence[int] = (1, 1),
    paddings: Sides = [1, 1],  # noqa: B006 (never changed)
    pools: Sides = [2, 2],  # noqa: B006
    dense: Sides = [],  # noqa: B006
    activation: Activation = "relu",
) -> Layers:
    """Convolutions, one for each of ``channels``, each followed by the activation and by a pooling of 2×2 pixels.

    ``pools`` holds the stride of each pooling, 0 for none; ``dense`` the widths of the dense layers. So the networks of
    Tramèr & Boneh (2021) can be written: for MNIST kernels 8 and 4, strides 2, paddings 2 and 0, pools 1, dense 32.
    """
    lists = {"kernels": kernels, "strides": strides, "paddings": paddings, "pools": pools}
    for key, values in lists.items():
        if len(values) != len(channels):
            raise UserError(f"{len(values)} {key} for {len(channels)} convolutions; expected one for each")
    layers: Layers = ()
    for width, kernel, stride, padding, pool in zip(channels, *lists.values(), strict=True):
        before = output_shape(layers, shape)
        if len(before) != 3:
            raise UserError(f"a convolution needs images (channels, height, width), not records of shape {shape}")
        layers += (Conv2d(before[0], width, kernel, stride, padding), Dropout(dropout), activation_layer(activation))
        layers += (MaxPool2d(2, pool),) if pool else ()
        if min(output_shape(layers, shape)) < 1:
            raise UserError(f"images of shape {shape} are too small for the convolutions {list(channels)}")
    return _finish(layers, shape, dense, n_classes, dropout, activation)


def resnet(
    shape: Shape,
    n_classes: int,
    dropout: float,
    channels: Sequence[int] = (16, 32, 64),
    blocks: int = 1,
    groups: int = 8,
    activation: Activation = "relu",
) -> Layers:
    """A small residual network (He et al. 2016) with group normalization in place of batch normalization.

    A 3×3 convolution comes first. Each of ``channels`` is a stage of ``blocks`` blocks with two 3×3 convolutions, and
    the first block of each later stage halves the sides. Then come the mean of each channel and the prediction.
    """
    _check_residual(shape, channels, groups)
    act = activation_layer(activation)
    layers: Layers = (Conv2d(shape[0], channels[0], 3, padding=1), GroupNorm(groups, channels[0]), act)
    inputs = channels[0]
    for stage, width in enumerate(channels):
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            body = (
                Conv2d(inputs, width, 3, stride, padding=1),
                GroupNorm(groups, width),
                act,
                Dropout(dropout),
                Conv2d(width, width, 3, padding=1),
                GroupNorm(groups, width),
            )
            shortcut = (Conv2d(inputs, width, 1, stride), GroupNorm(groups, width))
            layers += (Residual(_some(body), () if (inputs, stride) == (width, 1) else shortcut), act)
            inputs = width
    return (*layers, GlobalAvgPool2d(), Linear(inputs, n_classes))


def wide_resnet(
    shape: Shape,
    n_classes: int,
    dropout: float,
    depth: int = 16,
    width: int = 4,
    groups: int = 16,
    activation: Activation = "relu",
) -> Layers:
    """A wide residual network (Zagoruyko & Komodakis 2016) as used in private training (De et al. 2022).

    ``depth`` is 6n + 4 for n blocks in each of three stages with 16, 32 and 64 times ``width`` channels. Each
    convolution comes after its normalization and activation, group normalization replaces batch normalization, and
    kernels are standardized.
    """
    blocks, rest = divmod(depth - 4, 6)
    if blocks < 1 or rest:
        raise UserError(f"architecture 'wide_resnet': depth is {depth}; expected 6n + 4: 10, 16, 22, 28, …")
    channels = [16 * width, 32 * width, 64 * width]
    _check_residual(shape, [16, *channels], groups)
    act = activation_layer(activation)
    layers: Layers = (WeightStandardizedConv2d(shape[0], 16, 3, padding=1),)
    inputs = 16
    for stage, outputs in enumerate(channels):
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            before = (GroupNorm(groups, inputs), act)
            body = (
                WeightStandardizedConv2d(inputs, outputs, 3, stride, padding=1),
                GroupNorm(groups, outputs),
                act,
                Dropout(dropout),
                WeightStandardizedConv2d(outputs, outputs, 3, padding=1),
            )
            if (inputs, stride) == (outputs, 1):
                layers += (Residual((*before, *_some(body))),)
            else:  # the shortcut also begins after the activation
                layers += (*before, Residual(_some(body), (WeightStandardizedConv2d(inputs, outputs, 1, stride),)))
            inputs = outputs
    return (*layers, GroupNorm(groups, inputs), act, GlobalAvgPool2d(), Linear(inputs, n_classes))


ARCHITECTURES: dict[str, Callable[..., Layers]] = {
    "softmax_regression": softmax_regression,
    "mlp": mlp,
    "lenet": lenet,
    "lenet_strided": lenet_strided,
    "cnn": cnn,
    "cnn_small": cnn_small,
    "cnn_strided": cnn_strided,
    "convnet": convnet,
    "resnet": resnet,
    "wide_resnet": wide_resnet,
}


def _some(layers: Layers) -> Layers:
    """Return the layers without dropout layers of rate 0."""
    return tuple(layer for layer in layers if layer != Dropout(0.0))


def _check_residual(shape: Shape, channels: Sequence[int], groups: int) -> None:
    if len(shape) != 3 or min(shape[1:]) < 8:
        raise UserError(f"a residual network needs images of at least 8×8 pixels, not records of shape {shape}")
    if not channels:
        raise UserError("a residual network needs at least one stage; 'channels' is empty")
    for width in channels:
        if width % groups:
            raise UserError(f"{width} channels do not fall into {groups} groups of one size; expected a divisor")


def _flatten(shape: Shape) -> tuple[Layers, int]:
    layers = (Flatten(),) if len(shape) > 1 else ()
    return layers, output_shape(layers, shape)[0]


def _dense(width: int, hidden: Sequence[int], n_classes: int, dropout: float, activation: Activation) -> Layers:
    layers: Layers = ()
    for outputs in hidden:
        layers += (Linear(width, outputs), activation_layer(activation), Dropout(dropout))
        width = outputs
    return (*layers, Linear(width, n_classes))


def _block(shape: Shape, outputs: int, kernel: int, padding: int, dropout: float, activation: Activation) -> Layers:
    if len(shape) != 3:
        raise UserError(f"a convolution needs images (channels, height, width), not records of shape {shape}")
    convolution = Conv2d(shape[0], outputs, kernel, padding=padding)
    if min(output_shape((convolution,), shape)[1:]) < 2:
        raise UserError(f"images of shape {shape} are too small for a {kernel}×{kernel} convolution and pooling")
    # Pooling first gives the same as activating first (all but SiLU are monotone), and activates a quarter of the
    # numbers.
    return (convolution, Dropout(dropout), MaxPool2d(2), activation_layer(activation))


def _finish(
    layers: Layers,
    shape: Shape,
    dense: Sequence[int],
    n_classes: int,
    dropout: float,
    activation: Activation,
    before_dense: Layers = (),
) -> Layers:
    layers = (*layers, Flatten(), *before_dense)
    (width,) = output_shape(layers, shape)
    return (*layers, *_dense(width, dense, n_classes, dropout, activation))
