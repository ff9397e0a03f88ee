"""Mechanism: noise of a uniform direction and Gamma length on the summed gradient: pure ε, no δ.

Its density falls with exp(-length / scale), so moving the sum by at most clip_norm changes it by exp(1 / multiplier) at
most. With shuffled batches a record is in one step per epoch, so a training of k epochs spends k / multiplier.
"""

import torch

MECHANISM = {"accountant": "pure", "relations": {"shuffle": ["zero_out"]}, "claim": "bound"}


def noise(row, scale, generator):
    """Fills ``row`` in place."""
    row.normal_(generator=generator)
    shape = torch.full((1,), float(len(row)), device=row.device, dtype=torch.float64)
    row.mul_(torch._standard_gamma(shape, generator).item() * scale / torch.linalg.vector_norm(row))


def epsilon(noise_multiplier, case):
    """ε of the whole training; ``case.uses`` is the number of steps that a record can take part in."""
    return case.uses / noise_multiplier
