"""Steps that measure a cell (``judge.smk``), and the audit, which trains models of its own."""

from pathlib import Path

from dp_leakage.common.config import Json
from dp_leakage.privacy.accounting.rules import relation_of_game
from dp_leakage.privacy.mechanisms import MECHANISM_FILES
from dp_leakage.study import paths
from dp_leakage.study.cells import Cell, audit_design
from dp_leakage.study.paths import TARGET
from dp_leakage.study.protocol import AUDIT, COINS, GROUPS, design_of, seed_of
from dp_leakage.study.step_code import ACCOUNTING, noise_modules, own_files, step_code
from dp_leakage.study.steps.attack import answered, found_by, scores_of
from dp_leakage.study.steps.data import data_identity
from dp_leakage.study.steps.entry import STEPS, Files, Job, Step, cell_of, made
from dp_leakage.study.steps.parts import part
from dp_leakage.study.steps.train import of_any_repeats, rate_of, tuned
from dp_leakage.study.study import Study


def measure_settings(study: Study, cell: Cell) -> Json:
    """Return the settings of step ``measure``."""
    return {
        "columns": cell.columns,
        "parts": [part(name).made(study, cell) for name in cell.parts],
        "code": step_code("measure"),
    }


def delta_of(study: Study, cell: Cell) -> float:
    """Return δ of a cell's bounds: its own, or the study's if its training claims no δ."""
    return study.spec["delta"] if cell.columns["delta"] is None else cell.columns["delta"]


def _measured_training(study: Study, job: Job) -> Json:
    cell = cell_of(study, job)
    return {
        "columns": cell.columns,
        "training": made(study, "train_target", cell),
        "baseline": made(study, "train_target", study.cell(cell.dataset, cell.model, "none")),
        "design": design_of(study.spec),
        "code": step_code("measure_training", *MECHANISM_FILES, own=own_files(cell.training, cell.step)),
    }


def _coins(study: Study, job: Job) -> Json:
    cell = cell_of(study, job)
    sampler = "poisson" if cell.step is None else cell.step.sampler
    return {
        "signals": answered(study, cell.dataset, cell.model, TARGET, cell.defense)[1],
        "training": made(study, "train_target", cell),
        "claim": {"delta": delta_of(study, cell), "neighbors": relation_of_game(COINS, sampler)},
        "comparisons": study.bounds_together,
        "private": cell.noisy,
        "code": step_code("measure_coins", *MECHANISM_FILES, own=own_files(cell.training, cell.step)),
    }


def _structure(study: Study, job: Job) -> Json:
    cell = cell_of(study, job)
    return {
        "models": made(study, "train_target", cell),
        "data": data_identity(study, cell.dataset),
        "code": step_code("measure_structure"),
    }


def _groups(study: Study, job: Job) -> Json:
    return {
        "by": study.spec[GROUPS],
        "reads": found_by(study, job),
        "data": data_identity(study, job.dataset),
        "code": step_code("measure_groups"),
    }


def _audit(study: Study, job: Job) -> Json:
    cell = cell_of(study, job)
    return of_any_repeats(cell) | {
        "role": AUDIT,
        "designs": {name: audit_design(study.spec, cell, name).settings for name in cell.audits},
        "delta": delta_of(study, cell),
        "seed": seed_of(study.spec, cell.dataset, cell.model, cell.defense, AUDIT),
        **rate_of(study, cell),
        "data": data_identity(study, cell.dataset),
        "code": step_code(
            "audit", *noise_modules(cell.step), exclude=ACCOUNTING, own=own_files(cell.training, cell.step)
        ),
    }


def _bounds(study: Study, job: Job) -> Json:
    cell = cell_of(study, job)
    return {
        "scores": made(study, AUDIT, cell),
        "comparisons": study.bounds_together,
        "code": step_code("measure_audit", *MECHANISM_FILES, own=own_files(cell.training, cell.step)),
    }


def _data(study: Study, job: Job) -> Files:
    return {"data": study.path(paths.DATA, dataset=job.dataset)}


def _models(study: Study, job: Job) -> Files:
    return {"models": study.path(paths.TRAINED, cell_of(study, job))} | _data(study, job)


def _history(study: Study, job: Job) -> Files:
    return {"training": study.path(paths.HISTORY, cell_of(study, job))}


def _baseline(study: Study, job: Job) -> Path:
    """Return the history of the undefended cell, against which accuracy is lost."""
    return study.path(paths.HISTORY, study.cell(job.dataset, job.model, "none"))


def _signals(study: Study, job: Job) -> Path:
    cell = cell_of(study, job)
    return answered(study, cell.dataset, cell.model, TARGET, cell.defense)[0]


def _parts(study: Study, job: Job) -> Files:
    """Return one file for each part that measures the cell, in the order of the settings."""
    cell = cell_of(study, job)
    return {"parts": [part(name).path(study, cell) for name in cell.parts]}


STEPS |= {
    "audit": Step(
        {"scores": paths.AUDIT},
        _audit,
        reads=lambda study, job: (
            _data(study, job) | {option: file for option, files in tuned(study, job).items() for file in files}
        ),
    ),
    "measure_audit": Step(
        {"bounds": paths.BOUNDS},
        _bounds,
        reads=lambda study, job: {"scores": study.path(paths.AUDIT, cell_of(study, job))},
    ),
    "measure_training": Step(
        {"measured": paths.MEASURED, "curve": paths.CURVE, "proven": paths.PROVEN},
        _measured_training,
        reads=lambda study, job: _history(study, job) | {"baseline": _baseline(study, job)},
    ),
    "measure_coins": Step(
        {"rows": paths.COINS}, _coins, reads=lambda study, job: {"signals": _signals(study, job)} | _history(study, job)
    ),
    "measure_structure": Step({"rows": paths.STRUCTURE}, _structure, reads=_models),
    "measure_groups": Step(
        {"rows": paths.GROUPS}, _groups, reads=lambda study, job: scores_of(study, job) | _data(study, job)
    ),
    "measure": Step(
        {"metrics": paths.METRICS}, lambda study, job: measure_settings(study, cell_of(study, job)), reads=_parts
    ),
}
