"""Mechanism: noise of a uniform direction and Gamma length on the summed gradient: pure ε, no δ.

Its density falls with exp(-length / scale), so moving the sum by at most clip_norm changes the density by a factor of
at most exp(1 / multiplier). With shuffled batches a record is in one step per epoch, so k epochs spend k / multiplier.
"""

import torch

MECHANISM = {"accountant": "pure", "relations": {"shuffle": ["zero_out"]}, "claim": "bound"}


def noise(row, scale, generator):
    """Fills ``row`` in place. The sum of as many exponential draws as ``row`` has numbers is its Gamma length."""
    row.normal_(generator=generator)
    length = torch.empty_like(row, dtype=torch.float64).exponential_(generator=generator).sum().item()
    row.mul_(length * scale / torch.linalg.vector_norm(row))


def epsilon(noise_multiplier, case):
    """ε of the whole training; ``case.uses`` is the number of steps that a record can take part in."""
    return case.uses / noise_multiplier
