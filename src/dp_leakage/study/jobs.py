"""What the rules ask about one job: its files, memory and time, from the study and the job's wildcards.

A *job* here means its wildcards: ``dataset``, ``model``, ``defense``, ``role``, ``group``, ``attack``, … → name.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from dp_leakage.attacks import ATTACKS, STRONGEST, Attack
from dp_leakage.common.config import Json
from dp_leakage.common.shown import one_line
from dp_leakage.data import files_of as files_of_source
from dp_leakage.engines import files_of as files_of_training
from dp_leakage.study.cells import Cell
from dp_leakage.study.paths import TARGET
from dp_leakage.study.plan import Study
from dp_leakage.study.resources import attack_minutes, memory_mb, training_minutes
from dp_leakage.study.settings import READ_BY_ATTACKS, Input

AUXILIARY = ("shadow", "reference")
Job: TypeAlias = Mapping[str, str]
Files: TypeAlias = dict[str, Any]  # option of a step → its file; [] if it has none


def attacks_that(chosen: Callable[[Attack], bool]) -> str:
    """A pattern for the names of the attacks that the function accepts. If it accepts none, the pattern matches
    nothing.
    """
    return "|".join(name for name, entry in ATTACKS.items() if chosen(entry)) or "(?!)"


# ---------------------------------------------------------------------- cells and models of a job
def cell_of(study: Study, job: Job) -> Cell:
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


def records_of(study: Study, job: Job) -> int:
    """How many records the job's data set has, in all roles."""
    return sum(study.spec["datasets"][job["dataset"]]["roles"].values())


def models_of(study: Study, job: Job) -> int:
    """How many models a job holds side by side."""
    if "group" in job:
        dataset, model, role, defense = group_of(job)
        job = {"dataset": dataset, "model": model, "defense": defense or "none"}
        job |= {} if role == TARGET else {"role": role}
    if "role" in job:
        return int(study.auxiliary_spec(job["dataset"], job["role"])["count"])
    return int(cell_of(study, job).training["repeats"])


def training_of(study: Study, job: Job) -> Json:
    """Settings of a training job."""
    if "role" in job:
        return study.auxiliary_settings(job["dataset"], job["model"], job["role"], job.get("defense"))
    return study.train_settings(cell_of(study, job))


# ---------------------------------------------------------------------- resources
def memory(study: Study, job: Job, attempt: int) -> int:
    """Megabytes of a job that holds the data set and models."""
    return memory_mb(records_of(study, job), models_of(study, job), attempt)


def training_time(study: Study, job: Job, attempt: int) -> int:
    """Minutes of a training job."""
    return training_minutes(training_of(study, job), attempt)


def tuning_time(study: Study, job: Job, attempt: int) -> int:
    """Minutes of a job that tries learning rates: for each rate, at most those of training the cell's models."""
    return training_time(study, job, attempt) * len(cell_of(study, job).rates)


def attack_time(study: Study, job: Job, attempt: int) -> int:
    """Minutes of a job that attacks, or asks models what they say."""
    own = study.settings_of_attack(job["attack"]) if "attack" in job else None
    return attack_minutes(records_of(study, job), models_of(study, job), attempt, own)


def training_group(job: Job) -> str:
    """The group in which a training is submitted. All cells wait for the undefended one, so that is submitted alone."""
    return "baseline" if job["defense"] == "none" else "cell"


def query_group(job: Job) -> str:
    """The submission in which the query of a group of models runs."""
    return "auxiliary" if job["group"] in AUXILIARY else "cell"


# ---------------------------------------------------------------------- inputs
def prepare_files(study: Study, job: Job) -> list[str]:
    """The user's files that a data set is read from. Raises UserError if one is missing."""
    return files_of_source(study.prepare_settings(job["dataset"])["source"])


def training_files(study: Study, job: Job) -> list[str]:
    """The user's files that a training reads: models that exist already. Raises UserError if one is missing."""
    return files_of_training(training_of(study, job))


def report_files(study: Study) -> list[str]:
    """The user's files in which the report looks up the records that it names."""
    return [name for dataset in study.spec["datasets"] for name in prepare_files(study, {"dataset": dataset})]


def query_inputs(study: Study, job: Job) -> Files:
    """The data, and the models that are asked."""
    return {"data": study.data(job["dataset"]), "models": study.models(*group_of(job))}


def tuned_inputs(study: Study, job: Job) -> list[Path]:
    """The file with the best learning rate. The attacker's shared models train like the undefended ones."""
    return study.tuned_for(study.cell(job["dataset"], job["model"], job.get("defense", "none")))


def attack_inputs(study: Study, job: Job) -> Files:
    """The file behind every option that an attack step may have."""
    return _options(study.attack_inputs(cell_of(study, job), job["attack"]))


def fit_inputs(study: Study, job: Job) -> Files:
    """The file behind every option that ``fit_attack`` may have."""
    return _options(study.fit_inputs(job["dataset"], job["model"], job["attack"], job.get("defense")))


def _options(inputs: dict[str, Input]) -> Files:
    none: Files = {option: [] for option in READ_BY_ATTACKS}
    return none | {option: path for option, (path, _) in inputs.items()}


def cell_parts(study: Study, job: Job) -> list[Path]:
    """One file for each part that measures the cell, in the order of its settings."""
    cell = cell_of(study, job)
    return [study.part_file(cell, name) for name in cell.parts]


def measured_inputs(study: Study, job: Job) -> list[Path]:
    """What an attack found, or several membership attacks, in the order of the settings."""
    part = job.get("part", STRONGEST)  # groups of records are measured from all membership attacks too
    return [path for path, _ in study.measure_attack_inputs(cell_of(study, job), part).values()]


def published_file(study: Study) -> list[Path]:
    """The paper's printed numbers, an input of every figure; nothing if the study has no paper."""
    name = study.spec.get("published")
    return [study.folder / name] if name else []


# ---------------------------------------------------------------------- labels
def title_of(study: Study, figure: str) -> str:
    """A figure's title, or its kind if it has none."""
    spec = study.spec["figures"][figure]
    return str(spec.get("title", spec["kind"]))


def before_release(study: Study) -> list[Path]:
    """What is made before a release: all that is measured of its cell, and with that its learning rate."""
    cell = study.cell_named(study.spec["release"]["cell"])
    return [study.metrics(cell.dataset, cell.model, cell.defense), *study.tuned_for(cell)]


def target_descriptions(study: Study) -> dict[str, str]:
    """Target → one line for ``snakemake --list-target-rules``."""
    audit = {f"{study.target}_audit": "canaries of every cell, trained and scored"}
    return {
        **(audit if study.audited else {}),
        **({f"{study.target}_release": "the model that is given away, trained once"} if study.releases else {}),
        f"{study.target}_verify": "reads every file of the study and compares it with its digest",
        study.target: one_line(study.spec["title"]),
        f"{study.target}_report": "the page with everything",
        **{f"{study.target}_{name}": one_line(title_of(study, name)) for name in study.spec["figures"]},
    }
