"""Random streams: each model has one per role, derived only from its own seed.

So a model's bytes do not depend on the other models in its program, and switching the noise off, for example, does not
change its initial parameters or its batches.
"""

import numpy as np
import torch

ROLES = ("init", "batches", "noise", "dropout", "views")


def stream(seed: int, role: str, device: torch.device | str = "cpu") -> torch.Generator:
    """Return a generator for one of `ROLES` of the model with ``seed`` (int ≥ 0).

    PyTorch's CPU generator keeps 32 bits of its seed, so among n streams two are equal with probability about n²/2³³.
    """
    (word,) = np.random.SeedSequence([seed, ROLES.index(role)]).generate_state(1, np.uint64)
    return torch.Generator(device).manual_seed(int(word) >> 1)
