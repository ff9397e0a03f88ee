"""The fingerprint of the code that a step runs: an edit reruns the steps that it reaches and no other."""

from functools import cache
from pathlib import Path

from dp_leakage.common.config import Json
from dp_leakage.common.user_code import FILES, module_files
from dp_leakage.models.layers.own import OWN
from dp_leakage.privacy.mechanisms import noise_module
from dp_leakage.provenance.fingerprint import ROOT, code_fingerprint

# A registry must not count as code of the steps that look things up in it: a new line would rerun its neighbours.
REGISTRIES = (
    "dp_leakage.attacks",
    "dp_leakage.data",
    "dp_leakage.figures",
    "dp_leakage.plugins",
    "dp_leakage.privacy.mechanisms",
)
BUILT_IN = ("none", "clip", "normalise")  # noise and bounds that are not found by name
LAUNCHING = ("dp_leakage.jobs", "dp_leakage.jobs.handover")  # which process a step runs in, not what it computes
# σ is solved in the training job, but an accountant's edit must not retrain what keeps its σ: `measure` checks that.
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
        modules: that it imports by name, or by the path of a file that lies with a study.
        exclude: modules whose edits leave the step's result as it is.
        own: further files of the user's.
    """
    files = {name: FILES.get(name, Path(name)) for name in modules if name in FILES or name.endswith(".py")}
    ours = [name for name in modules if name not in files]
    own = (*own, *files.values())
    return code_fingerprint(
        f"dp_leakage.steps.{step}", *ours, exclude=(*REGISTRIES, *LAUNCHING, *exclude), extra_files=own
    )


def noise_modules(*trainings: Json) -> tuple[str, ...]:
    """The files of the noise and the bound of some trainings: their code is found by name, so no import shows it."""
    private = [training["mechanism"] for training in trainings if training["mechanism"]]
    named = dict.fromkeys(mechanism[part] for part in ("noise", "bound") for mechanism in private)
    return tuple(noise_module(name) for name in named if name not in (*BUILT_IN, *FILES))


def own_files(training: Json) -> tuple[Path, ...]:
    """The files of a user's own module, layer, estimator and mechanism, so that an edit to them retrains."""
    mechanism = training["mechanism"] or {}
    names = dict.fromkeys(mechanism.get(part) for part in ("bound", "noise", "sampler", "unit"))
    activation = training["architecture"].get("activation")
    activation = activation.get("name") if isinstance(activation, dict) else activation
    names |= {OWN[activation].module: None} if isinstance(activation, str) and activation in OWN else {}
    files = [FILES[name] for name in names if name in FILES]
    if training["engine"] in ("opacus", "module", "estimator"):
        files += module_files(training["architecture"]["name"].partition(":")[0])
    return tuple(files)
