"""Steps of the workflow, one module each. Only steps read and write files.

A job runs one as ``python -m dp_leakage.steps.NAME``, or ``judge``, which runs those of a cell in turn. It takes
``--settings`` (the JSON that the rule prints) and named input and output files. ``@FILE`` stands for the arguments in
a file, one per line.
"""

# Before any import that takes time: a job that is handed over needs none.
from dp_leakage.jobs.handover import hand_over

hand_over()

from dp_leakage.common.interrupts import end_quietly

end_quietly()

import json
import logging
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dp_leakage import jobs, plugins
from dp_leakage.common.arguments import Parser
from dp_leakage.common.errors import UserError
from dp_leakage.common.identity import identity, portable
from dp_leakage.common.paths import user_path
from dp_leakage.common.user_code import notice_reads
from dp_leakage.data import FILED
from dp_leakage.provenance.files import is_current
from dp_leakage.provenance.fingerprint import is_unchanged, own_files
from dp_leakage.provenance.versions import imported

Json = dict[str, Any]
log = logging.getLogger("dp_leakage")
AGAIN = "run the same command again, which plans with what is there now: what is finished stays"
# What to do where memory does not suffice.
ON_MACHINE = "give the job more (mem_mb) or run fewer at a time"
ON_DEVICE = "let one job at a time use the GPU (--resources gpu=1), or set device: cpu in config.yaml"


def run(
    step: Callable[..., None],
    *paths: str,
    lists: tuple[str, ...] = (),
    options: dict[str, Any] | None = None,
    kept: tuple[str, ...] = (),
) -> None:
    """Parse the command line of a step and call it with keywords; only this function ends a step's process.

    Args:
        step: called as ``step(settings, **paths, **lists, **options)``.
        paths: names of options with one path each; a trailing ``?`` makes one optional: None if it is missing or empty.
        lists: names of options with any number of paths.
        options: name → default of the other options, whose type converts the value. The environment variable
            ``DP_LEAKAGE_NAME`` overrides the default, so the rules need not write config.yaml's values into shell
            commands.
        kept: names of the paths that the step writes. If all of them are current, the step is not called: a second
            attempt of a cluster's submission runs all of its jobs, also the finished ones.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S", stream=sys.stderr)
    logging.getLogger("fontTools").setLevel(logging.WARNING)  # a line for every table of every font of a pdf
    parser = Parser(
        prog=f"python -m {step.__module__}", description=sys.modules["__main__"].__doc__, fromfile_prefix_chars="@"
    )
    parser.add_argument("--settings", required=True, type=json.loads, help="JSON, as the rule prints it")
    for name in paths:
        parser.add_argument(
            f"--{name.rstrip('?')}", type=Path, **({"nargs": "?"} if name.endswith("?") else {"required": True})
        )
    for name in lists:
        parser.add_argument(f"--{name}", nargs="*", type=Path, default=[])
    for name, default in (options or {}).items():
        said = os.environ.get(f"DP_LEAKAGE_{name.upper()}", default)
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(default), default=said)
    arguments = vars(parser.parse_args())
    settings = arguments.pop("settings")
    began = time.perf_counter()
    try:
        plugins.load(filter(None, os.environ.get(plugins.ENVIRONMENT, "").split(os.pathsep)))
        _refuse_edited(settings, os.environ.get(jobs.CODE), os.environ.get(jobs.PLANNED))
        _notice_reads(settings, arguments.get("data_dir", Path("data")))
        files = [path for name in kept if (path := arguments[name])]
        if files and all(is_current(path, identity(settings)) for path in files):
            log.info("kept: %s", " ".join(map(str, files)))
            return
        step(settings, **arguments)
        log.info("%s", _spent(time.perf_counter() - began))
    except UserError as error:
        log.error("error: %s", error)
        sys.exit(1)
    except (MemoryError, RuntimeError) as error:
        of_device = type(error).__name__ == "OutOfMemoryError"  # PyTorch's
        if not isinstance(error, MemoryError) and not of_device:
            raise
        log.error("error: not enough memory for %s; %s", step.__module__, ON_DEVICE if of_device else ON_MACHINE)
        sys.exit(1)


def _spent(seconds: float) -> str:
    """Return a job's resource use: time, memory, device, and the imported packages with their versions."""
    used, torch = resource.getrusage(resource.RUSAGE_SELF), sys.modules.get("torch")
    device = torch.cuda.get_device_name() if torch is not None and torch.cuda.is_initialized() else "CPU"
    packages = ", ".join(f"{name} {version}" for name, version in imported().items())
    return (
        f"done in {seconds:.1f} s ({used.ru_utime + used.ru_stime:.1f} s of processor time, "
        f"at most {used.ru_maxrss // 1024:,} MiB) on {device} with {packages}"
    )


def _refuse_edited(settings: Json, known: str | None, planned: str | None) -> None:
    """Raise UserError if code or settings changed after planning: the results would be recorded under the planned
    ones.

    Args:
        settings: with the fingerprint of the run, if the step has one.
        known: the file with the run's code fingerprints; None if no run started this step.
        planned: all identities planned for its cluster submission; None outside a submission.
    """
    step = Path(sys.argv[0]).stem
    if planned and identity(settings) not in planned.split(":"):
        raise UserError(f"the code or a setting of the step {step} was edited after its job was submitted; {AGAIN}")
    codes = {own.get("code", "") for own in (settings, *(call["settings"] for call in settings.get("calls", ())))}
    if known and not all(is_unchanged(code, Path(known), jobs.served) for code in codes):
        raise UserError(f"the code of the step {step} was edited while this run was on; {AGAIN}")


def _notice_reads(settings: Json, data_dir: Path) -> None:
    """Log files that the user's code reads and that no fingerprint or setting covers."""
    own = own_files(_values(settings, "code"))
    if not own:
        return
    known = own | {user_path(text).resolve() for key in FILED for text in _values(settings, key)}
    notice_reads(known, [Path(name).resolve() for name in ("results", "logs", data_dir)])


def _values(settings: object, key: str) -> list[str]:
    """Return the texts under a key, at whatever depth."""
    if isinstance(settings, list):
        return [text for part in settings for text in _values(part, key)]
    if not isinstance(settings, dict):
        return []
    own = [settings[key]] if isinstance(settings.get(key), str) else []
    return own + [text for part in settings.values() for text in _values(part, key)]


def provenance(settings: Json, **more: Any) -> Json:
    """Return the provenance of a file: identity, `portable` settings, and ``more``."""
    return portable({"identity": identity(settings), "settings": settings, **more})
