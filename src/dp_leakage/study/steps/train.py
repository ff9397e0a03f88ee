"""Steps that train (``train.smk``), and memory and time of jobs that hold models."""

import os
from collections.abc import Callable
from pathlib import Path

from dp_leakage.common.config import Json
from dp_leakage.common.utilities import plugin_files
from dp_leakage.data.roles import POOL
from dp_leakage.engines import ENGINES, GIVEN, TRAINERS, files_of
from dp_leakage.engines.onnx_files import content_of_model
from dp_leakage.study import paths
from dp_leakage.study.cells import Cell
from dp_leakage.study.paths import TARGET
from dp_leakage.study.protocol import (
    COINS,
    SPLIT,
    TUNE,
    auxiliary_spec,
    auxiliary_training,
    by_person,
    design_of,
    seed_of,
    traced,
    training_of,
)
from dp_leakage.study.resources import measured_pass, memory_mb, training_minutes
from dp_leakage.study.step_code import ACCOUNTING, noise_modules, own_files, step_code
from dp_leakage.study.steps.data import data_identity, digest_of
from dp_leakage.study.steps.entry import STEPS, Files, Job, Step, always, cell_of, made
from dp_leakage.study.study import Study

TIMING = "timing"  # the part that says how long training takes, and its key in a study
AUXILIARY = ("shadow", "reference")


def tune_settings(study: Study, cell: Cell) -> Json:
    """Return the settings of step ``tune``: the cell's training settings that may affect the best learning rate."""
    own = {key: value for key, value in of_any_repeats(cell).items() if key != "role"}
    return (
        own
        | _utility(study)
        | {
            "training": {key: value for key, value in own["training"].items() if key != "evaluate_every"},
            "rates": list(cell.rates),
            "n_records": cell.columns["n_records"],
            "n_members": cell.columns["n_members"],
            "seed": seed_of(study.spec, cell.dataset, cell.model, cell.defense, TUNE),
            "data": data_identity(study, cell.dataset),
            "code": step_code(
                "tune",
                *noise_modules(cell.step),
                exclude=ACCOUNTING,
                own=(*own_files(cell.training, cell.step), *plugin_files(study.spec.get("utility"))),
            ),
        }
    )


def of_any_repeats(cell: Cell) -> Json:
    """Return a cell's training without its number of repeats, for steps that do not read the trained models."""
    return {key: value for key, value in cell.training.items() if key != "repeats"}


def _utility(study: Study) -> Json:
    """Return the study's measure of use, if it names one."""
    return {"utility": study.spec["utility"]} if "utility" in study.spec else {}


def rate_of(study: Study, cell: Cell) -> Json:
    """Return the file with the cell's tuned learning rate, if there is one."""
    return {"tuned": made(study, "tune", cell)} if cell.rates else {}


def train_settings(study: Study, cell: Cell) -> Json:
    """Return the settings of step ``train`` for the cell's target models."""
    subset = _subset(study, cell.dataset, cell.columns["n_records"])
    kept = {"traced": True} if traced(study.spec, cell.dataset) else {}
    settings = cell.training | {"subset": subset} | kept | rate_of(study, cell) | _utility(study)
    return _trained(study, settings, cell, plugin_files(study.spec.get("utility")))


def _trained(study: Study, settings: Json, cell: Cell, own: tuple[Path, ...] = ()) -> Json:
    """Return the settings of step ``train`` and what identifies its inputs: data set, code, and the user's models."""
    engine, files = settings["engine"], files_of(settings)
    read = {"read": content_of_model} if engine == "onnx" else {}
    content = {"content": [digest_of(study, file, **read) for file in files]} if files else {}
    modules = [(ENGINES | TRAINERS)[engine], *noise_modules(cell.step)]
    code = step_code("train", *modules, exclude=ACCOUNTING, own=(*own_files(settings, cell.step), *own))
    return settings | content | {"data": data_identity(study, cell.dataset), "code": code}


def _subset(study: Study, dataset: str, records: int) -> Json:
    """Return the training records of target models. All cells of a data set share the random inclusion, for paired
    comparisons.
    """
    if design_of(study.spec) == SPLIT:
        return {"pool": ["target_members"], "size": records}
    return {"pool": [POOL], "size": records, "coins": seed_of(study.spec, dataset, COINS)}


def auxiliary_settings(study: Study, dataset: str, model: str, role: str, defense: str | None = None) -> Json:
    """Return the settings of step ``train`` for shadow or reference models."""
    cell = study.cell(dataset, model, defense or "none")
    spec = auxiliary_spec(study.spec, dataset, role)
    # Online attacks want each record inside as many references as outside. Shadow models follow their paper.
    dealt = {"dealt": True} if role == "reference" else {}
    own = {key: spec[key] for key in ("engine", "architecture") if key in spec}
    settings: Json = cell.training | own
    if cell.training["engine"] in GIVEN:
        settings["training"] = training_of(study.spec, dataset, model, settings["engine"])
    settings["training"] = auxiliary_training(
        study.spec, dataset, model, role, settings["engine"], settings["training"]
    )
    if by_person(study.spec, dataset):  # batches are drawn from the whole pool, and keep the persons of one half
        settings["training"] = settings["training"] | {"batch_size": 2 * settings["training"]["batch_size"]}
    settings |= {
        "role": role,
        "repeats": spec["count"],
        "subset": {"pool": spec.get("pool", [f"{role}_pool"]), "size": spec["size"]} | dealt,
        "seed": seed_of(study.spec, dataset, model, cell.defense, role),
        **({} if _has_own_rate(study, dataset, role) else rate_of(study, cell)),
    }
    return _trained(study, settings, cell)


def _has_own_rate(study: Study, dataset: str, role: str) -> bool:
    """Return whether ``shadow.training`` sets the learning rate, so that step ``tune`` does not."""
    return "learning_rate" in auxiliary_spec(study.spec, dataset, role).get("training", {})


def _timing(study: Study, job: Job) -> Json:
    dataset, model = job.dataset, job.model
    cells = [cell for cell in study.cells.values() if (cell.dataset, cell.model) == (dataset, model)]
    own = tuple(dict.fromkeys(file for cell in cells for file in own_files(cell.training, cell.step)))
    noises = noise_modules(*(cell.step for cell in cells))
    return {
        "study": study.name,
        "dataset": dataset,
        "model": model,
        "n_records": cells[0].columns["n_records"],
        **study.spec[TIMING],
        "cells": [of_any_repeats(cell) for cell in cells],
        "seed": seed_of(study.spec, dataset, model, TIMING),
        "data": data_identity(study, dataset),
        "code": step_code("time_training", *noises, exclude=ACCOUNTING, own=own),
    }


# ---------------------------------------------------------------------- models, memory, time and submissions of a job
def group_of(job: Job) -> tuple[str, str, str, str | None]:
    """Return the data set, model, role and defense of a job's group of models.

    Models that all cells share have no defense. A cell's targets have no role.
    """
    first, _, second = job.group.partition("/")
    if first in AUXILIARY:
        return job.dataset, job.model, first, None
    return job.dataset, job.model, second or TARGET, first


def models_of(study: Study, job: Job) -> int:
    """Return the number of models that a job holds at once."""
    if job.group:
        dataset, model, role, defense = group_of(job)
        job = Job(dataset, model, defense or "none", "" if role == TARGET else role)
    if job.role:
        return int(auxiliary_spec(study.spec, job.dataset, job.role)["count"])
    return int(cell_of(study, job).training["repeats"])


def records_of(study: Study, job: Job) -> int:
    """Return the number of records of the job's data set, in all roles."""
    return sum(study.spec["datasets"][job.dataset]["roles"].values())


def memory(study: Study, job: Job) -> int:
    """Return the memory in MB of a job that holds the data set and models."""
    return memory_mb(records_of(study, job), models_of(study, job))


def _minutes(study: Study, job: Job, settings: Json) -> int:
    """Return the time limit of a training, by what this model's trainings took in an earlier run, if there was one."""
    device = "cuda" if os.environ.get("DP_LEAKAGE_DEVICE") == "cuda" else "cpu"
    folder = study.path(paths.MODEL, dataset=job.dataset, model=job.model)
    measured = study.remembered("seconds of a pass", str(folder), lambda: measured_pass(folder, device))
    return training_minutes(settings, measured)


def training_group(job: Job) -> str:
    """Return the group in which a training is submitted. All cells wait for the undefended one, so that
    is submitted alone.
    """
    return "baseline" if job.defense == "none" else "cell"


# ---------------------------------------------------------------------- entries
def _target(study: Study, job: Job) -> Json:
    return train_settings(study, cell_of(study, job))


def _auxiliary(study: Study, job: Job) -> Json:
    return auxiliary_settings(study, job.dataset, job.model, job.role, job.defense or None)


def tuned(study: Study, job: Job) -> Files:
    """Return the file with the best learning rate. The attacker's shared models train like the undefended ones."""
    cell = study.cell(job.dataset, job.model, job.defense or "none")
    given = job.role and _has_own_rate(study, job.dataset, job.role)
    return {"tuned": [] if given else paths.tuned_for(study, cell)}


def _training(writes: dict[str, str], settings: Callable[[Study, Job], Json]) -> Step:
    return Step(
        writes,
        settings,
        reads=tuned,
        own=lambda study, job: files_of(settings(study, job)),
        memory=memory,
        minutes=lambda study, job: _minutes(study, job, settings(study, job)),
    )


_TRAINED = {"models": paths.TRAINED, "history": paths.HISTORY, "timing": paths.TIMES}
_OWN = {"models": paths.AUXILIARY, "history": paths.AUXILIARY_HISTORY, "timing": paths.AUXILIARY_TIMES}
STEPS["tune"] = Step(
    {"tuned": paths.TUNED},
    lambda study, job: tune_settings(study, cell_of(study, job)),
    memory=memory,
    # For each rate, at most the time of training the cell's models.
    minutes=lambda study, job: len(cell_of(study, job).rates) * _minutes(study, job, _target(study, job)),
    key=TUNE,
)
STEPS["train_target"] = _training(_TRAINED, _target)
STEPS["train_auxiliary"] = _training(_OWN, _auxiliary)
STEPS["time_training"] = Step({"timed": paths.TIMED}, _timing, memory=always(6000), minutes=always(60), key=TIMING)
