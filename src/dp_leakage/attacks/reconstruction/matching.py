"""Agreement of images with observed gradients: one differentiable program for all images at once.

In a linear layer, the gradient of an image is never formed: with its input a and the output's gradient δ, its inner
product with the seen gradient G is δᵀGa. The inner product of two images' gradients is ⟨δ, δ'⟩(⟨a, a'⟩+1). So a hundred
images take little more time than reading their hundred seen gradients.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from dp_leakage.common.errors import UserError
from dp_leakage.models.layers import Conv2d, Layer, Layers, Linear, Parameters

KNOWN: tuple[type[Layer], ...] = (Linear, Conv2d)  # layers with parameters whose gradients are compared


class Overlap(NamedTuple):
    """Inner product ⟨g, G⟩ and squared norm ‖g‖², both (batches,), of each batch's gradient g and the observed gradient
    G.
    """

    inner: Tensor
    squared: Tensor


class Traced(NamedTuple):
    """Input and output of one layer with parameters."""

    name: str
    layer: Linear | Conv2d
    input: Tensor
    output: Tensor


def overlap(layers: Layers, parameters: Parameters, gradients: Parameters, x: Tensor, label: Tensor) -> Overlap:
    """Compare the cross-entropy gradients of n images with the observed gradients of their batches.

    The gradient of a batch is the sum of its images'; consecutive images are a batch.

    Args:
        layers: the architecture; dropout does nothing.
        parameters: name → (…) of the one model.
        gradients: name → (batches, …) seen; n is a multiple of ``batches``.
        x: (n, c, h, w) images, or other records that the model takes.
        label: (n, C) weights of the classes, such as probabilities.

    Returns:
        Differentiable in ``x`` and ``label``.
    """
    logits, traced = _forward(layers, parameters, x)
    delta = logits.softmax(1) * label.sum(1, keepdim=True) - label
    deltas = torch.autograd.grad(logits, [part.output for part in traced], delta, create_graph=True)
    parts = [_of_layer(part, delta, gradients) for part, delta in zip(traced, deltas, strict=True)]
    return Overlap(sum(part.inner for part in parts), sum(part.squared for part in parts))


def squared_norms(gradients: Parameters) -> Tensor:
    """Return ‖G‖² of each seen gradient, (batches,)."""
    return sum(value.flatten(1).square().sum(1) for value in gradients.values())


def check_layers(layers: Layers, attack: str) -> None:
    """Refuse with a UserError layers whose gradients cannot be compared here."""
    for layer in layers:
        if layer.has_parameters and type(layer) not in KNOWN:
            raise UserError(
                f"attack {attack} compares gradients of linear layers and plain convolutions; it cannot be run on a "
                f"model with {'a module of your own' if layer.foreign else type(layer).__name__}"
            )


def _forward(layers: Layers, parameters: Parameters, x: Tensor) -> tuple[Tensor, list[Traced]]:
    traced = []
    x = x if x.requires_grad else x.requires_grad_()
    for index, layer in enumerate(layers):
        before = x
        match layer:
            case Linear():
                x = F.linear(x, parameters[f"{index}.weight"], parameters[f"{index}.bias"])
            case Conv2d(stride=stride, padding=padding):
                x = F.conv2d(x, parameters[f"{index}.weight"], parameters[f"{index}.bias"], stride, padding)
            case _:
                x = layer.module().eval()(x)
        if isinstance(layer, Linear | Conv2d):
            traced.append(Traced(str(index), layer, before, x))
    return x, traced


def _of_layer(part: Traced, delta: Tensor, gradients: Parameters) -> Overlap:
    weight, bias = gradients[f"{part.name}.weight"], gradients[f"{part.name}.bias"]
    if isinstance(part.layer, Linear):
        # Rows times matrices, since columns, especially their derivatives, take 6 times as long (256 × 3,072, float64).
        inputs, deltas = part.input.unflatten(0, (len(bias), -1)), delta.unflatten(0, (len(bias), -1))
        along = torch.bmm(inputs, weight.mT) + bias[:, None]
        squared = (deltas.square().sum(2) * (inputs.square().sum(2) + 1)).sum(1)
        if inputs.shape[1] > 1:  # one image has no cross terms
            crossed = (deltas @ deltas.mT) * (inputs @ inputs.mT + 1)
            squared = squared + (crossed - crossed.diagonal(dim1=1, dim2=2).diag_embed()).sum((1, 2))
        return Overlap((along * deltas).sum(2).sum(1), squared)
    layer = part.layer
    patches = F.unfold(part.input, layer.kernel, padding=layer.padding, stride=layer.stride)
    kernels, biases = (
        of_image.unflatten(0, (len(bias), -1)).sum(1)
        for of_image in (torch.bmm(delta.flatten(2), patches.mT), delta.flatten(2).sum(2))
    )
    inner = (kernels * weight.flatten(2)).sum((1, 2)) + (biases * bias).sum(1)
    return Overlap(inner, kernels.square().sum((1, 2)) + biases.square().sum(1))
