"""Fingerprint of a step's code, so that an edit reruns only the affected steps."""

from functools import cache
from pathlib import Path
from typing import get_args

from dp_leakage.common.config import Json
from dp_leakage.common.places import located
from dp_leakage.common.user_code import FILES, module_file
from dp_leakage.engines import TRAINERS
from dp_leakage.models.architectures import is_import_path
from dp_leakage.models.layers.own import OWN
from dp_leakage.privacy.mechanism import Bound, Mechanism
from dp_leakage.privacy.mechanisms import noise_module
from dp_leakage.provenance.fingerprint import ROOT, code_fingerprint

# A registry does not count as code of the steps that read it, since a new entry would rerun its neighbors.
REGISTRIES = (
    "dp_leakage.attacks",
    "dp_leakage.data",
    "dp_leakage.figures",
    "dp_leakage.plugins",
    "dp_leakage.privacy.mechanisms",
)
BUILT_IN = ("none", *get_args(Bound))  # noise and bounds that are imported, not found by name
LAUNCHING = (
    "dp_leakage.jobs",
    "dp_leakage.jobs.handover",
    "dp_leakage.common.apart",
    "dp_leakage.common.places",
    "dp_leakage.engines.asking",
    "dp_leakage.provenance.fingerprint",
)  # decides in which process a step runs, or whether it does, not what it computes
REPORTING = (
    "dp_leakage.common.arguments",
    "dp_leakage.common.errors",
    "dp_leakage.common.interrupts",
    "dp_leakage.common.temporary",
    "dp_leakage.provenance.files",
    "dp_leakage.steps",
)  # words, the command line and log of a job, and how files are read and written, of which `FORMAT` is the version
FORMAT = "dp_leakage.provenance.format"
# σ is solved in the training job, yet an edit of an accountant that keeps σ must not retrain. `measure` checks σ.
ACCOUNTING = (
    "dp_leakage.privacy.calibration",
    "dp_leakage.privacy.accounting",
    *(f"dp_leakage.privacy.accounting.{file.stem}" for file in ROOT.glob("privacy/accounting/*.py")),
)


@cache
def step_code(step: str, *modules: str, exclude: tuple[str, ...] = (), own: tuple[Path, ...] = ()) -> str:
    """Fingerprint of a step's code and of the modules that it finds by name, a user's own ones included.

    Args:
        step: name of its module in ``dp_leakage.steps``.
        modules: the modules that it imports by name, or by the path of a file in a study's folder.
        exclude: modules whose edits leave the step's result as it is.
        own: further files of the user.
    """
    files = {name: FILES.get(name, located(Path(name))) for name in modules if name in FILES or name.endswith(".py")}
    ours = [name for name in modules if name not in files]
    own = (*own, *files.values())
    return code_fingerprint(
        f"dp_leakage.steps.{step}",
        FORMAT,
        *ours,
        exclude=(*REGISTRIES, *LAUNCHING, *REPORTING, *exclude),
        extra_files=own,
    )


def noise_modules(*steps: Mechanism | None) -> tuple[str, ...]:
    """Return the files of the noise and bounds of some steps. They are found by name, so no import shows them."""
    private = [step for step in steps if step is not None]
    named = dict.fromkeys([*(step.noise for step in private), *(step.bound for step in private)])
    return tuple(noise_module(name) for name in named if name not in (*BUILT_IN, *FILES))


def own_layers(architecture: Json) -> tuple[Path, ...]:
    """Return the files of the user's own layers in an architecture."""
    activation = architecture.get("activation")
    activation = activation.get("name") if isinstance(activation, dict) else activation
    return (FILES[OWN[activation].module],) if isinstance(activation, str) and activation in OWN else ()


def own_files(training: Json, step: Mechanism | None) -> tuple[Path, ...]:
    """Return the files of the user's own modules, layers, estimators and mechanisms, so that an edit of one
    retrains.
    """
    names = [] if step is None else dict.fromkeys((step.bound, step.noise, step.sampler, step.unit))
    files = [*(FILES[name] for name in names if name in FILES), *own_layers(training["architecture"])]
    name = training["architecture"]["name"]
    if training["engine"] in (*TRAINERS, "module", "estimator") and is_import_path(name):
        files += filter(None, [module_file(name.partition(":")[0])])
    return tuple(files)
