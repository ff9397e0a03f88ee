"""Work of one job on a cell after its training (``judge.smk``): steps that run one after another.

A cell is queried, attacked by its outputs, measured and joined in one process. Long work that few figures need has
separate jobs (`apart`): image reconstruction and audits. In a cell with such work, a last job joins the measurements.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from dp_leakage.attacks import ATTACKS, PICTURING, STRONGEST
from dp_leakage.common.config import Json
from dp_leakage.study import paths
from dp_leakage.study.cells import Cell
from dp_leakage.study.paths import CLASS_SCORES, SIGNALS, TARGET
from dp_leakage.study.protocol import AUDIT, COINS, GROUPS, STRUCTURE
from dp_leakage.study.resources import attack_minutes
from dp_leakage.study.steps.attack import ANSWERED_BY, answered, attack_inputs, attack_time, source_inputs
from dp_leakage.study.steps.entry import STEPS, Files, Job, Step, always, cell_of
from dp_leakage.study.steps.parts import figure_parts, figure_selects
from dp_leakage.study.steps.train import memory, models_of, records_of
from dp_leakage.study.study import Study

# Parts of a cell that a step of their own measures → that step; attacks have `measure_attack`.
MEASURED_BY = {COINS: "measure_coins", STRUCTURE: "measure_structure", GROUPS: "measure_groups"}


class Call(NamedTuple):
    """One step of a job: its settings, and the files that it reads and writes, by option."""

    step: str
    settings: Json
    reads: Files
    writes: dict[str, Path]

    def as_json(self) -> Json:
        """Return the call for the job's settings."""
        reads = {
            option: list(map(str, file)) if isinstance(file, list) else str(file) for option, file in self.reads.items()
        }
        writes = {option: str(path) for option, path in self.writes.items()}
        return {"step": self.step, "settings": self.settings, "reads": reads, "writes": writes}


def call_of(study: Study, step: str, job: Job, *options: str) -> Call:
    """Return a step of a job. ``options`` selects its outputs; by default all."""
    entry = STEPS[step]
    writes = {option: study.path(entry.writes[option], **job.names) for option in options or entry.writes}
    reads = {option: file for option, file in entry.reads(study, job).items() if file != []}
    return Call(step, entry.settings(study, job), reads, writes)


def apart(name: str) -> bool:
    """Return whether a part of a cell has a separate job."""
    return name == AUDIT or (name in ATTACKS and ATTACKS[name].family in PICTURING)


def joins(cell: Cell) -> bool:
    """Return whether the job that judges a cell also joins the measurements, since no part has a separate job."""
    return not any(map(apart, cell.parts))


# ---------------------------------------------------------------------- what the jobs do
def _judged(study: Study, job: Job) -> Iterator[Call]:
    cell = cell_of(study, job)
    job = Job(**cell.names)
    for what in (SIGNALS, CLASS_SCORES):
        if answered(study, cell.dataset, cell.model, TARGET, cell.defense, what)[0] in answers_read(study):
            asked = Job(cell.dataset, cell.model, group=cell.defense, answers=what)
            for step in dict.fromkeys(("query", ANSWERED_BY[what])):
                yield call_of(study, step, asked, what)
    attacks = [name for name in cell.parts if name in ATTACKS and not apart(name)]
    for name in attacks:
        step = "attack_models" if ATTACKS[name].reads == "models" else "attack"
        yield call_of(study, step, replace(job, attack=name), "scores")
        yield call_of(study, "measure_attack", replace(job, part=name))
    yield call_of(study, "measure_training", job)
    for name, step in MEASURED_BY.items():
        if name in cell.parts:
            yield call_of(study, step, job)
    for name in [*([STRONGEST] if STRONGEST in cell.parts else []), *_subsets(study, cell)]:
        yield call_of(study, "measure_attack", replace(job, part=name))
    if joins(cell):
        yield call_of(study, "measure", job)


def _reconstructed(study: Study, job: Job) -> Iterator[Call]:
    yield call_of(study, "attack_models", job)
    yield call_of(study, "measure_attack", replace(job, part=job.attack))


def _audited(study: Study, job: Job) -> Iterator[Call]:
    yield call_of(study, "audit", job)
    yield call_of(study, "measure_audit", job)


def _joined(study: Study, job: Job) -> Iterator[Call]:
    yield call_of(study, "measure", job)


# Rule → the steps of its job.
CALLS: dict[str, Callable[[Study, Job], Iterator[Call]]] = {
    "judge": _judged, "reconstruct": _reconstructed, "audit": _audited, "measure": _joined
}  # fmt: skip


def calls(study: Study, rule: str, job: Job) -> list[Call]:
    """Return the steps of a job in order. A step's input may be an earlier step's output."""
    return study.remembered(f"calls of {rule}", job, lambda: list(CALLS[rule](study, job)))


def written(study: Study, rule: str, job: Job) -> list[Path]:
    """Return all output files of a job."""
    return [path for call in calls(study, rule, job) for path in call.writes.values()]


def read(study: Study, rule: str, job: Job) -> list[Path]:
    """Return all input files of a job that others write."""
    files = [file for call in calls(study, rule, job) for file in call.reads.values()]
    found = [path for file in files for path in (file if isinstance(file, list) else [file])]
    own = set(written(study, rule, job))
    return [path for path in dict.fromkeys(found) if path not in own]


def settings_of_job(study: Study, rule: str, job: Job) -> Json:
    """Return the settings of a job of several steps."""
    return {"calls": [call.as_json() for call in calls(study, rule, job)]}


def _entry(rule: str, minutes: Callable[[Study, Job], int], key: str | None = None) -> Step:
    return Step(
        {},
        lambda study, job: settings_of_job(study, rule, job),
        reads=lambda study, job: {"files": read(study, rule, job)},
        memory=memory,
        minutes=minutes,
        key=key,
    )


def _minutes(study: Study, job: Job) -> int:
    attacks = [name for name in cell_of(study, job).parts if name in ATTACKS and not apart(name)]
    return attack_minutes(records_of(study, job), models_of(study, job), len(attacks))


JOBS = {
    "judge": _entry("judge", _minutes),
    "reconstruct": _entry("reconstruct", attack_time),
    "audit": _entry("audit", always(120), key=AUDIT),
    "measure": _entry("measure", always(1)),
}


# ---------------------------------------------------------------------- which files
def answers_read(study: Study) -> set[Path]:
    """Return the files of target models' outputs that an attack, the random inclusion bound or the report reads."""
    return study.remembered("answers read", "", lambda: set(_answers_read(study)))


def _answers_read(study: Study) -> Iterator[Path]:
    for cell in study.cells.values():
        yield from (
            path for name in cell.parts if name in ATTACKS for path, _ in attack_inputs(study, cell, name).values()
        )
        if COINS in cell.parts:
            yield answered(study, cell.dataset, cell.model, TARGET, cell.defense)[0]
        if STRONGEST in cell.parts:
            yield from (path for path, _ in source_inputs(study, Job(**cell.names, part=STRONGEST)).values())


def _subsets(study: Study, cell: Cell) -> list[str]:
    """Return some of the membership attacks on a cell that figures measure together."""
    parts = [
        name
        for figure in study.spec["figures"]
        if figure_selects(study, figure, cell)
        for name in figure_parts(study, figure, cell)
    ]
    return [name for name in dict.fromkeys(parts) if name.startswith(f"{STRONGEST}=")]


def shapes(study: Study) -> list[tuple[str, list[str], str]]:
    """Return the judging rules of a study, one for all cells with the same output files: Snakemake needs a rule's
    outputs before it knows the cell.

    Returns:
        For each, its name, its files below the folder of the cell, and the pattern of its wildcard ``study``.
    """
    found: dict[tuple[str, ...], list[Cell]] = {}
    for cell in study.cells.values():
        folder = study.path(paths.CELL, cell)
        files = tuple(str(path.relative_to(folder)) for path in written(study, "judge", Job(**cell.names)))
        found.setdefault(files, []).append(cell)
    names = [f"judge_{study.target}", *(f"judge_{study.target}_{number}" for number in range(2, len(found) + 1))]
    return [(name, list(files), only(study, cells)) for name, (files, cells) in zip(names, found.items(), strict=False)]


def only(study: Study, cells: Iterable[Cell]) -> str:
    """Return a pattern for a wildcard ``study`` that is followed by one of these cells."""
    keys = "|".join(re.escape(cell.key) for cell in cells)
    return f"{re.escape(study.name)}(?=/(?:{keys})/)" if keys else "(?!)"


def joined_apart(studies: Iterable[Study]) -> str:
    """Return a pattern for ``study/cell`` of all cells whose parts are joined by a separate job."""
    return "|".join(only(study, [cell for cell in study.cells.values() if not joins(cell)]) for study in studies)
