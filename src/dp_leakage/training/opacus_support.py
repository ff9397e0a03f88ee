"""Trainings supported by engine ``opacus``. Imports no PyTorch, so that unsupported studies are refused during
planning.
"""

from dp_leakage.common.errors import UserError
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.training.settings import TrainingSettings

SAMPLERS = ("poisson", "shuffle")  # Opacus' own sampler, and the loader's as it is


def check_opacus(settings: TrainingSettings, mechanism: Mechanism | None) -> None:
    """Refuse what Opacus' engine does not train.

    Raises:
        UserError: a part of the mechanism or of the training that only engine ``ensemble`` has.
    """
    needed: dict[str, tuple[object, tuple[object, ...]]] = {
        "views": (settings.views, (None,)),
    }
    if mechanism is not None:
        needed |= {
            "sampler": (mechanism.sampler, SAMPLERS),
            "unit": (mechanism.unit, ("example",)),
            "bound": (mechanism.bound, ("clip",)),
            "noise": (mechanism.noise, ("gaussian", "none")),
        }
    for key, (value, valid) in needed.items():
        if value not in valid:
            words = " or ".join("null" if one is None else repr(one) for one in valid)
            raise UserError(f"engine 'opacus' needs {key} {words}; got {value!r}. Use engine 'ensemble'")
