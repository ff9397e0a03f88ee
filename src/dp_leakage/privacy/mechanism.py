"""What happens in one private training step, apart from its accounting: sample → bound each unit → sum → noise."""

from dataclasses import dataclass
from typing import Literal, get_args

from dp_leakage.errors import UserError, nearest

Sampler = Literal["shuffle", "poisson", "wor", "class_poisson"]
Unit = Literal["example", "batch", "class", "subclass"]
Bound = Literal["clip", "normalise"]
Noise = Literal["gaussian", "vmf", "none"]
Block = Literal["whole", "layer", "row", "sum"]
GROUPS = ("class", "subclass")  # units that hold many records
# (unit, bound, noise) that Opacus can carry out.
OPACUS = (("example", "clip", "gaussian"), ("example", "clip", "none"))


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


def check_step(mechanism: Mechanism, engine: str = "ensemble") -> None:
    """Refuse a step that the engine cannot carry out, whatever its amount of noise.

    Nothing is computed and little imported, so that the workflow can ask while it builds the DAG.

    Raises:
        UserError: its parts do not go together.
    """
    for key, kind in (("sampler", Sampler), ("unit", Unit), ("block", Block)):
        if (value := getattr(mechanism, key)) not in get_args(kind):
            raise UserError(f"{key} {value!r} is unknown; {nearest(value, get_args(kind))}")
    if mechanism.sampler == "class_poisson" and mechanism.unit not in GROUPS:
        raise UserError(
            f"sampler 'class_poisson' draws whole (sub)classes, so unit {mechanism.unit!r} cannot be bounded; "
            "valid units: class, subclass"
        )
    if not mechanism.clip_norm > 0:
        raise UserError(f"clip_norm is {mechanism.clip_norm} but must be above 0")
    if mechanism.noise == "vmf" and mechanism.bound != "normalise":
        raise UserError(f"bound {mechanism.bound!r} leaves no unit vectors for noise 'vmf'; valid: normalise")
    if engine == "opacus" and (mechanism.unit, mechanism.bound, mechanism.noise) not in OPACUS:
        raise UserError(
            f"engine 'opacus' cannot do unit {mechanism.unit!r}, bound {mechanism.bound!r} and noise "
            f"{mechanism.noise!r}; valid: unit example, bound clip, noise gaussian or none"
        )
