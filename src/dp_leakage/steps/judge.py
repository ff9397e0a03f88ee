"""Run the steps of one job on a cell one after another: query its models, attack, measure and join.

Existing current files are kept, so that a new attack or an edited setting makes only its own files. If a step fails,
the other steps still run, and then the job fails.
"""

import inspect
import json
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from dp_leakage.common.errors import UserError
from dp_leakage.common.identity import identity
from dp_leakage.provenance.files import check_made, is_current
from dp_leakage.steps import Json, log, run


def main(settings: Json, outputs: list[Path], **options: object) -> None:
    """Run the steps whose files are missing or outdated.

    Args:
        settings: ``calls``, of each step its name, settings, and what it reads and writes by option.
        outputs: of the job. All files lie below their root: the working folder, or the local copy of a storage.
        options: of config.yaml, for the steps that take them.

    Raises:
        UserError: with the sentences of all steps that failed. Any other exception of a step is raised as it is.
    """
    calls = _below(settings["calls"], outputs[0])
    _check_inputs(calls)
    failed: list[Exception] = []
    missing: set[str] = set()
    for call in calls:
        writes = [*call["writes"].values()]
        if all(is_current(Path(path), identity(call["settings"])) for path in writes):
            log.info("kept: %s", " ".join(writes))
            continue
        if missing.isdisjoint(_files(call["reads"])):
            log.info("making: %s", " ".join(writes))
            try:
                _run(call, options)
                continue
            except Exception as error:  # raised below, once the other steps have run
                failed.append(error)
        missing.update(writes)
    for one in failed:
        if not isinstance(one, UserError):
            raise one
    if failed:
        raise UserError("; ".join(map(str, failed)))


def _below(calls: list[Json], output: Path) -> list[Json]:
    """Return the calls with their files below the root folder of ``output``, which one of them writes."""
    written = next(path for call in calls for path in call["writes"].values() if f"/{output}".endswith(f"/{path}"))
    root = str(output).removesuffix(written)

    def moved(files: Json) -> Json:
        return {
            option: [root + path for path in file] if isinstance(file, list) else root + file
            for option, file in files.items()
        }

    return [call | {"reads": moved(call["reads"]), "writes": moved(call["writes"])} for call in calls]


def _check_inputs(calls: list[Json]) -> None:
    """Refuse damaged or foreign files of other jobs, which a step with existing outputs would not read."""
    made_here = {path for call in calls for path in call["writes"].values()}
    checked: set[tuple[str, str]] = set()
    for call in calls:
        for option, files in call["reads"].items():
            # Settings name the identity of an input by its option; those of several inputs stand somewhere in them.
            named = call["settings"].get(option)
            known = named if isinstance(named, str) else json.dumps(call["settings"])
            for path in _each(files):
                if path not in made_here and (path, known) not in checked:
                    checked.add((path, known))
                    check_made(Path(path), known)


def _run(call: Json, options: dict[str, object]) -> None:
    step: Callable[..., None] = import_module(f"dp_leakage.steps.{call['step']}").main
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)
    taken = inspect.signature(step).parameters
    reads = {
        option: [*map(Path, file)] if isinstance(file, list) else Path(file) for option, file in call["reads"].items()
    }
    writes = {option: Path(path) for option, path in call["writes"].items()}
    step(call["settings"], **reads, **writes, **{name: value for name, value in options.items() if name in taken})


def _files(reads: Json) -> set[str]:
    return {path for files in reads.values() for path in _each(files)}


def _each(files: str | list[str]) -> list[str]:
    return files if isinstance(files, list) else [files]


if __name__ == "__main__":
    run(main, lists=("outputs",), options={"device": "auto", "checkpoint_seconds": 60.0})
