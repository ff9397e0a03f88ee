"""Layers, from which models are built: one file each. `sequence` chains them.

A new layer is one file with a frozen dataclass that derives from `Layer`, and a line here.
"""

from dp_leakage.models.layers.avg_pool2d import AvgPool2d
from dp_leakage.models.layers.base import Kept, Layer, Parameters, PerExample, Shape
from dp_leakage.models.layers.conv2d import Conv2d
from dp_leakage.models.layers.dropout import Dropout
from dp_leakage.models.layers.embedding import Embedding
from dp_leakage.models.layers.flatten import Flatten
from dp_leakage.models.layers.global_avg_pool2d import GlobalAvgPool2d
from dp_leakage.models.layers.group_norm import GroupNorm
from dp_leakage.models.layers.layer_norm import LayerNorm
from dp_leakage.models.layers.linear import Linear
from dp_leakage.models.layers.max_pool2d import MaxPool2d
from dp_leakage.models.layers.relu import ReLU
from dp_leakage.models.layers.residual import Residual
from dp_leakage.models.layers.sequence import (
    Layers,
    activation_floats,
    fixed,
    forward,
    gradients,
    initial_parameters,
    module,
    output_shape,
    parameter_shapes,
    pull_back,
)
from dp_leakage.models.layers.sigmoid import Sigmoid
from dp_leakage.models.layers.silu import SiLU
from dp_leakage.models.layers.tanh import Tanh
from dp_leakage.models.layers.tempered_sigmoid import TemperedSigmoid
from dp_leakage.models.layers.weight_standardized_conv2d import WeightStandardizedConv2d

__all__ = [
    "AvgPool2d",
    "Conv2d",
    "Dropout",
    "Embedding",
    "Flatten",
    "GlobalAvgPool2d",
    "GroupNorm",
    "Kept",
    "Layer",
    "LayerNorm",
    "Layers",
    "Linear",
    "MaxPool2d",
    "Parameters",
    "PerExample",
    "ReLU",
    "Residual",
    "Shape",
    "SiLU",
    "Sigmoid",
    "Tanh",
    "TemperedSigmoid",
    "WeightStandardizedConv2d",
    "activation_floats",
    "fixed",
    "forward",
    "gradients",
    "initial_parameters",
    "module",
    "output_shape",
    "parameter_shapes",
    "pull_back",
]
