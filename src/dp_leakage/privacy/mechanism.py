"""What happens in one private training step, apart from its accounting: sample → bound each unit → sum → noise."""

from dataclasses import dataclass
from typing import Literal

Sampler = Literal["shuffle", "poisson", "wor", "class_poisson"]
Unit = Literal["example", "batch", "class", "subclass"]
Bound = Literal["clip", "normalise"]
Noise = Literal["gaussian", "vmf", "none"]
Block = Literal["whole", "layer", "row", "sum"]


@dataclass(frozen=True)
class Mechanism:
    """A private (or merely bounded) gradient step; the accountants and the trainer both read this and nothing else.

    Attributes:
        sampler: ``shuffle`` each record once an epoch; ``poisson`` each record with rate batch_size/n;
            ``wor`` a fixed-size batch without replacement, afresh at each step; ``class_poisson`` each
            (sub)class with rate q.
        unit: whose gradient is bounded: every example's, the whole batch's mean, or the mean gradient
            of each (sub)class in the batch.
        bound: ``clip`` to ``clip_norm``, or ``normalise`` to exactly that length; or a plugin's name.
        clip_norm: C > 0, the bound's ℓ2 length.
        noise: ``gaussian`` with standard deviation ``noise_multiplier``·C on the sum; ``vmf`` around the
            unit's direction with concentration ``kappa``; ``none``; or a plugin's name.
        block: for ``vmf``: what is one unit vector: an example's whole gradient, each layer, each row of
            each layer, or the batch's summed gradient.
        noise_multiplier: σ relative to C, ≥ 0; None for vmf.
        kappa: κ ≥ 0; None unless vmf.
    """

    sampler: Sampler = "shuffle"
    unit: Unit = "example"
    bound: Bound | str = "clip"
    clip_norm: float = 1.0
    noise: Noise | str = "gaussian"
    block: Block = "whole"
    noise_multiplier: float | None = None
    kappa: float | None = None
