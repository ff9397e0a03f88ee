"""One step of private training, without its accounting: sample → bound each unit → sum → noise."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from dp_leakage.common.errors import UserError, nearest

Sampler = Literal["shuffle", "poisson", "wor", "cyclic", "balls_in_bins", "cyclic_poisson", "class_poisson"]
Bound = Literal["clip", "normalize", "per_layer"]
Block = Literal["whole", "layer", "row", "sum"]
PERSON, BATCH = "person", "batch"
PER_LAYER, CYCLIC_POISSON = "per_layer", "cyclic_poisson"
SINGLE = ("example", PERSON, BATCH)  # units that come or go whole; all others are groups, which change with a record


UNITS = [*SINGLE, "class", "subclass"]  # plugins add theirs
SAMPLERS = list(get_args(Sampler))  # plugins add theirs


@dataclass(frozen=True)
class Mechanism:
    """Private (or merely bounded) gradient step: the only description that accountants and the trainer read.

    Attributes:
        sampler: ``shuffle`` each unit once an epoch; ``poisson`` each with rate batch_size/n; ``wor`` a fixed-size
            batch without replacement, drawn again at each step; ``cyclic`` each unit once an epoch, in the same order
            in every epoch; ``balls_in_bins`` each unit in one step of each epoch, drawn independently for each;
            ``cyclic_poisson``: `turns` random parts of the data take turns, and a step samples its part with a rate
            that keeps the batch size; ``class_poisson`` each (sub)class with rate q.
        unit: whose gradient is bounded: every example's, the mean gradient of each person's records, the whole batch's
            mean, or the mean gradient of each (sub)class in the batch. If it is ``person``, the sampler draws persons.
        bound: ``clip`` to ``clip_norm``, ``normalize`` to exactly that length, or clip ``per_layer``, each layer to an
            equal share of that length; or the name of a file of `privacy.mechanisms` or of a plugin.
        clip_norm: C > 0, the bound's ℓ2 length.
        noise: ``none``, or the module of `privacy.mechanisms` or the plugin that defines it: ``gaussian`` with standard
            deviation ``noise_multiplier``·C on the sum, ``vmf`` around the unit's direction with concentration
            ``kappa``, ….
        block: for ``vmf``, what forms one unit vector: an example's whole gradient, each layer, each row of each layer,
            or the batch's summed gradient.
        noise_multiplier: σ relative to C, ≥ 0; None for vmf.
        kappa: κ ≥ 0; None unless vmf.
        settings: further settings of the mechanism's own file, see `mechanisms.base.Declaration`.
    """

    sampler: Sampler | str = "shuffle"
    unit: str = "example"
    bound: Bound | str = "clip"
    clip_norm: float = 1.0
    noise: str = "gaussian"
    block: Block = "whole"
    noise_multiplier: float | None = None
    kappa: float | None = None
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def sigma(self) -> float:
        """σ of a mechanism with Gaussian noise whose amount is known."""
        assert self.noise_multiplier is not None
        return self.noise_multiplier

    @property
    def turns(self) -> int:
        """Return the number of cyclic Poisson subsets: the noise's bands under ``cyclic_poisson``, otherwise 1."""
        return int(self.settings.get("bands", 1)) if self.sampler == CYCLIC_POISSON else 1

    @property
    def summed(self) -> bool:
        """`is_summed` of this mechanism."""
        return is_summed(self.block, self.unit)


def is_summed(block: str, unit: str) -> bool:
    """Return whether directional noise is drawn around the sum of a batch, not around each unit's gradient."""
    return block == "sum" or unit == BATCH


def holds_groups(unit: str) -> bool:
    """Return whether a unit is a group that changes with a record: a class, a subclass, or a plugin's ``groups``.

    A person is not such a group: neighbors differ by a person with all records, as they otherwise differ by one record.
    """
    return unit not in SINGLE


def check_step(mechanism: Mechanism) -> None:
    """Refuse a step that is impossible with any amount of noise.

    It computes nothing and imports little, so that the workflow can ask while it builds the DAG.

    Raises:
        UserError: the parts of the step cannot be combined.
    """
    known = {"sampler": SAMPLERS, "unit": UNITS, "block": get_args(Block)}
    for key, values in known.items():
        if (value := getattr(mechanism, key)) not in values:
            raise UserError(f"{key} {value!r} is unknown; {nearest(value, values)}")
    if mechanism.sampler == "class_poisson" and not holds_groups(mechanism.unit):
        raise UserError(
            f"sampler 'class_poisson' draws whole (sub)classes, so unit {mechanism.unit!r} cannot be bounded; "
            "use unit class or subclass"
        )
    if mechanism.unit == PERSON and mechanism.turns > 1:
        raise UserError("sampler 'cyclic_poisson' deals single records to parts of the data; use unit example")
    if not mechanism.clip_norm > 0:
        raise UserError(f"clip_norm is {mechanism.clip_norm} but must be above 0")
    if mechanism.noise == "vmf" and mechanism.bound != "normalize":
        raise UserError(f"bound {mechanism.bound!r} leaves no unit vectors for noise 'vmf'; use bound normalize")
    if mechanism.bound == PER_LAYER and mechanism.unit != "example":
        raise UserError(f"bound 'per_layer' is for examples, not for unit {mechanism.unit!r}; use clip or normalize")
