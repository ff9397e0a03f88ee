"""Small images, and models to leak them."""

import numpy as np
import pytest
import torch

from dp_leakage.data.dataset import Dataset
from dp_leakage.models.architectures import build
from dp_leakage.models.ensemble import Ensemble
from dp_leakage.models.layers import initial_parameters

ROLES = {"target_members": np.arange(6), "target_nonmembers": np.arange(6, 8)}


@pytest.fixture
def pictures():
    """Eight smooth random images, 2 channels of 8×8 pixels in [0, 1], of three classes."""
    rng = np.random.default_rng(0)
    coarse = torch.from_numpy(rng.uniform(size=(8, 2, 3, 3)).astype(np.float32))
    x = torch.nn.functional.interpolate(coarse, size=(8, 8), mode="bilinear").numpy()
    return Dataset(x, rng.integers(3, size=8), ROLES, np.array([], dtype=np.int64))


@pytest.fixture
def models():
    """K models of an architecture at their start, as if trained under a mechanism."""

    def make(name, mechanism=None, count=1, **settings):
        layers = build(name, (2, 8, 8), 3, **settings)
        starts = [initial_parameters(layers, torch.Generator().manual_seed(7 + k)) for k in range(count)]
        parameters = {name: torch.stack([start[name] for start in starts]) for name in starts[0]}
        return Ensemble(layers, parameters, torch.arange(6).expand(count, -1), mechanism)

    return make
