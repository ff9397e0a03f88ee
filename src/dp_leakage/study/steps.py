"""Every step of the workflow in one place: what it reads and writes, what sets it, which code counts, memory and time.

A new step is an entry of `STEPS`, a module of `dp_leakage.steps`, and a rule of ``workflow/rules`` with its files in
sight. The rule asks for the rest by its name. Paths, identities, fingerprints and resources follow from the entry.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from dp_leakage.attacks import ATTACKS, STRONGEST, Attack
from dp_leakage.common.config import Json
from dp_leakage.data import files_of as files_of_source
from dp_leakage.engines import files_of as files_of_training
from dp_leakage.privacy.accounting.rules import relation_of_game
from dp_leakage.privacy.mechanisms import MECHANISM_FILES
from dp_leakage.study import paths
from dp_leakage.study.cells import AUDIT, COINS, GROUPS, STRUCTURE, TUNE, Cell, adds_noise, attacks_in
from dp_leakage.study.paths import CLASS_SCORES, SIGNALS, TARGET
from dp_leakage.study.resources import attack_minutes, memory_mb, training_minutes
from dp_leakage.study.step_code import ACCOUNTING, noise_modules, own_files, step_code

if TYPE_CHECKING:
    from dp_leakage.study.settings import Settings

TIMING = "timing"  # the part that says how long training takes, and its key in a study
AUXILIARY = ("shadow", "reference")
# Options of the attack steps.
READ_BY_ATTACKS = (
    SIGNALS, CLASS_SCORES, f"reference_{SIGNALS}", f"reference_{CLASS_SCORES}", "fitted", "data", "target"
)  # fmt: skip
Job: TypeAlias = Mapping[str, str]  # its wildcards: ``dataset``, ``model``, ``defense``, ``role``, … → name
Files: TypeAlias = dict[str, Any]  # option of a step → its file, or files; [] if it has none


@dataclass(frozen=True)
class Step:
    """One step. Each function takes the study and a job.

    Attributes:
        writes: option of its command → pattern of the file.
        settings: what it is set by: values, the identities of what it reads, and the fingerprint of its code.
        reads: what other steps made for it, by option.
        own: the user's own files that it reads. Raises UserError if one is missing.
        memory: megabytes that a first attempt asks for. A second one asks for twice as much, and as much time.
        minutes: the same of time.
        key: the study's key without which there is nothing to do.
    """

    writes: dict[str, str]
    settings: "Callable[[Settings, Job], Json]"
    reads: "Callable[[Settings, Job], Files]" = lambda study, job: {}
    own: "Callable[[Settings, Job], list[str]]" = lambda study, job: []
    memory: "Callable[[Settings, Job], int]" = lambda study, job: 1000
    minutes: "Callable[[Settings, Job], int]" = lambda study, job: 5
    key: str | None = None


def attacks_that(chosen: Callable[[Attack], bool]) -> str:
    """A pattern for the names of the attacks that the function accepts. If it accepts none, the pattern matches
    nothing.
    """
    return "|".join(name for name, entry in ATTACKS.items() if chosen(entry)) or "(?!)"


# ---------------------------------------------------------------------- cells and models of a job
def cell_of(study: "Settings", job: Job) -> Cell:
    """The cell of a job. Raises UserError for names that the study does not have."""
    return study.cell(job["dataset"], job["model"], job["defense"])


def group_of(job: Job) -> tuple[str, str, str, str | None]:
    """Data set, model, role and defense of a job's group of models.

    Models that all cells share have no defense. A cell's targets have no role.
    """
    first, _, second = job["group"].partition("/")
    if first in AUXILIARY:
        return job["dataset"], job["model"], first, None
    return job["dataset"], job["model"], second or TARGET, first


def models_of(study: "Settings", job: Job) -> int:
    """How many models a job holds side by side."""
    if "group" in job:
        dataset, model, role, defense = group_of(job)
        job = {"dataset": dataset, "model": model, "defense": defense or "none"}
        job |= {} if role == TARGET else {"role": role}
    if "role" in job:
        return int(study.auxiliary_spec(job["dataset"], job["role"])["count"])
    return int(cell_of(study, job).training["repeats"])


def records_of(study: "Settings", job: Job) -> int:
    """How many records the job's data set has, in all roles."""
    return sum(study.spec["datasets"][job["dataset"]]["roles"].values())


# ---------------------------------------------------------------------- submissions, memory and time
def training_group(job: Job) -> str:
    """The group in which a training is submitted. All cells wait for the undefended one, so that is submitted alone."""
    return "baseline" if job["defense"] == "none" else "cell"


def query_group(job: Job) -> str:
    """The submission in which the query of a group of models runs."""
    return "auxiliary" if job["group"] in AUXILIARY else "cell"


def memory(study: "Settings", job: Job) -> int:
    """Megabytes of a job that holds the data set and models."""
    return memory_mb(records_of(study, job), models_of(study, job))


def attack_time(study: "Settings", job: Job) -> int:
    """Minutes of a job that attacks, or asks models what they say."""
    own = study.settings_of_attack(job["attack"]) if "attack" in job else None
    return attack_minutes(records_of(study, job), models_of(study, job), own)


def _always(number: int) -> "Callable[[Settings, Job], int]":
    return lambda study, job: number


# ---------------------------------------------------------------------- training
def _target(study: "Settings", job: Job) -> Json:
    return study.train_settings(cell_of(study, job))


def _auxiliary(study: "Settings", job: Job) -> Json:
    return study.auxiliary_settings(job["dataset"], job["model"], job["role"], job.get("defense"))


def _tuned(study: "Settings", job: Job) -> Files:
    """The file with the best learning rate. The attacker's shared models train like the undefended ones."""
    return {"tuned": study.tuned_for(study.cell(job["dataset"], job["model"], job.get("defense", "none")))}


def _training(writes: dict[str, str], settings: "Callable[[Settings, Job], Json]") -> Step:
    return Step(
        writes,
        settings,
        reads=_tuned,
        own=lambda study, job: files_of_training(settings(study, job)),
        memory=memory,
        minutes=lambda study, job: training_minutes(settings(study, job)),
    )


def _timing(study: "Settings", job: Job) -> Json:
    dataset, model = job["dataset"], job["model"]
    cells = [cell for cell in study.cells.values() if (cell.dataset, cell.model) == (dataset, model)]
    return {
        "study": study.name,
        "dataset": dataset,
        "model": model,
        "n_records": cells[0].columns["n_records"],
        **study.spec[TIMING],
        "cells": [cell.training for cell in cells],
        "seed": study.seed_of(dataset, model, TIMING),
        "data": study.data_identity(dataset),
        "code": step_code("time_training", *noise_modules(*(cell.training for cell in cells)), exclude=ACCOUNTING),
    }


# ---------------------------------------------------------------------- attacks
def _options(inputs: dict[str, tuple[Path, str]]) -> Files:
    """The file behind every option that an attack step may have."""
    none: Files = {option: [] for option in READ_BY_ATTACKS}
    return none | {option: path for option, (path, _) in inputs.items()}


def _attacked(study: "Settings", job: Job) -> Json:
    """Of what an attack finds, and of what that reaches."""
    found = study.attack_settings(cell_of(study, job), job["attack"])
    return {"scores": found, "rows": _together(study, {**job, "part": job["attack"]})}


def _found(study: "Settings", job: Job) -> list[list[str]]:
    """Of each attack that a part measures, its name and the identity of what it found."""
    cell = cell_of(study, job)
    return [[name, study.attacked(cell, name)] for name in attacks_in(cell, job.get("part", STRONGEST))]


def _scores(study: "Settings", job: Job) -> Files:
    """What the attacks found that a part measures, in the order of the settings."""
    cell = cell_of(study, job)
    names = attacks_in(cell, job.get("part", STRONGEST))
    return {"found": [study.scores(cell.dataset, cell.model, cell.defense, name) for name in names]}


# ---------------------------------------------------------------------- measures
def _together(study: "Settings", job: Job) -> Json:
    """Of what one attack reaches, or several membership attacks together."""
    part = job["part"]
    family = {"family": ATTACKS[part].family} if part in ATTACKS else {}
    return {"part": part, "reads": _found(study, job), "code": step_code("measure_attack")} | family


def _measured_training(study: "Settings", job: Job) -> Json:
    cell = cell_of(study, job)
    return {
        "columns": cell.columns,
        "training": study.made("train_target", cell),
        "baseline": study.made("train_target", study.cell(cell.dataset, cell.model, "none")),
        "design": study.design,
        "code": step_code("measure_training", *MECHANISM_FILES, own=own_files(cell.training)),
    }


def _coins(study: "Settings", job: Job) -> Json:
    cell = cell_of(study, job)
    sampler = (cell.training["mechanism"] or {}).get("sampler", "poisson")
    return {
        "signals": study.answered(cell.dataset, cell.model, TARGET, cell.defense)[1],
        "training": study.made("train_target", cell),
        "claim": {"delta": study.delta_of(cell), "neighbours": relation_of_game(COINS, sampler)},
        "comparisons": study.bounds_together,
        "private": adds_noise(cell),
        "code": step_code("measure_coins", *MECHANISM_FILES, own=own_files(cell.training)),
    }


def _structure(study: "Settings", job: Job) -> Json:
    cell = cell_of(study, job)
    return {
        "models": study.made("train_target", cell),
        "data": study.data_identity(cell.dataset),
        "code": step_code("measure_structure"),
    }


def _groups(study: "Settings", job: Job) -> Json:
    return {
        "by": study.spec[GROUPS],
        "reads": _found(study, job),
        "data": study.data_identity(job["dataset"]),
        "code": step_code("measure_groups"),
    }


def _audit(study: "Settings", job: Job) -> Json:
    cell = cell_of(study, job)
    return cell.training | {
        "role": AUDIT,
        "designs": {name: study.audit_design(cell, name) for name in cell.audits},
        "delta": study.delta_of(cell),
        "seed": study.seed_of(cell.dataset, cell.model, cell.defense, AUDIT),
        **study.rate_of(cell),
        "data": study.data_identity(cell.dataset),
        "code": step_code("audit", *noise_modules(cell.training), exclude=ACCOUNTING, own=own_files(cell.training)),
    }


def _bounds(study: "Settings", job: Job) -> Json:
    cell = cell_of(study, job)
    return {
        "scores": study.made(AUDIT, cell),
        "comparisons": study.bounds_together,
        "code": step_code("measure_audit", *MECHANISM_FILES, own=own_files(cell.training)),
    }


def _parts(study: "Settings", job: Job) -> Files:
    """One file for each part that measures the cell, in the order of the settings."""
    cell = cell_of(study, job)
    return {"parts": [study.part_file(cell, name) for name in cell.parts]}


# ---------------------------------------------------------------------- the steps, by the names of their rules
_TRAINED = {"models": paths.TRAINED, "history": paths.HISTORY, "timing": paths.TIMES}
_OWN = {"models": paths.AUXILIARY, "history": paths.AUXILIARY_HISTORY, "timing": paths.AUXILIARY_TIMES}
STEPS: dict[str, Step] = {
    "prepare_dataset": Step(
        {"prepared": paths.PREPARED},
        lambda study, job: study.prepare_settings(job["dataset"]),
        own=lambda study, job: files_of_source(study.prepare_settings(job["dataset"])["source"]),
        memory=_always(4000),
        minutes=_always(30),
    ),
    "project_pca": Step(
        {"data": paths.DATA},
        lambda study, job: study.project_settings(job["dataset"]),
        memory=_always(6000),
        minutes=_always(30),
    ),
    "tune": Step(
        {"tuned": paths.TUNED},
        lambda study, job: study.tune_settings(cell_of(study, job)),
        memory=memory,
        # For each rate, at most the time of training the cell's models.
        minutes=lambda study, job: training_minutes(_target(study, job)) * len(cell_of(study, job).rates),
        key=TUNE,
    ),
    "train_target": _training(_TRAINED, _target),
    "train_auxiliary": _training(_OWN, _auxiliary),
    "time_training": Step({"timed": paths.TIMED}, _timing, memory=_always(6000), minutes=_always(60), key=TIMING),
    "query": Step(
        {what: paths.ANSWERS.replace("{answers}", what) for what in (SIGNALS, CLASS_SCORES)},
        lambda study, job: study.query_settings(*group_of(job), job["answers"]),
        reads=lambda study, job: {"data": study.data(job["dataset"]), "models": study.models(*group_of(job))},
        memory=memory,
        minutes=attack_time,
    ),
    "fit_attack": Step(
        {"fitted": paths.FITTED},
        lambda study, job: study.fit_settings(job["dataset"], job["model"], job["attack"], job.get("defense")),
        reads=lambda study, job: _options(
            study.fit_inputs(job["dataset"], job["model"], job["attack"], job.get("defense"))
        ),
        memory=memory,
        minutes=attack_time,
    ),
    "attack": Step(
        {"scores": paths.SCORES, "images": paths.IMAGES, "rows": paths.ATTACKED},
        _attacked,
        reads=lambda study, job: _options(study.attack_inputs(cell_of(study, job), job["attack"])),
        memory=memory,
        minutes=attack_time,
    ),
    "audit": Step({"scores": paths.AUDIT}, _audit, reads=_tuned, memory=_always(3000), minutes=_always(120), key=AUDIT),
    "measure_audit": Step({"bounds": paths.BOUNDS}, _bounds, key=AUDIT),
    "measure_training": Step(
        {"measured": paths.MEASURED, "curve": paths.CURVE, "proven": paths.PROVEN}, _measured_training
    ),
    "measure_together": Step({"rows": paths.ROWS}, _together, reads=_scores),
    "measure_coins": Step({"rows": paths.COINS}, _coins),
    "measure_structure": Step({"rows": paths.STRUCTURE}, _structure, memory=memory, key=STRUCTURE),
    "measure_groups": Step({"rows": paths.GROUPS}, _groups, reads=_scores, memory=memory, key=GROUPS),
    "measure": Step(
        {"metrics": paths.METRICS}, lambda study, job: study.measure_settings(cell_of(study, job)), reads=_parts
    ),
}
# What attacks read of models → the step that makes it.
ANSWERED_BY = {SIGNALS: "query", CLASS_SCORES: "query"}


def path_of(step: str, option: str, **names: str) -> Path:
    """The file that a step writes for an option of its command."""
    return Path(STEPS[step].writes[option].format(**names))
