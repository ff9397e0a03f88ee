"""Entries of steps, the table of all entries, and the derived files and identities."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeAlias

from dp_leakage.common.config import Json
from dp_leakage.common.identity import identity
from dp_leakage.study.cells import Cell
from dp_leakage.study.study import Study

Files: TypeAlias = dict[str, Any]  # option of a step → its file, or files; [] if it has none
Input: TypeAlias = tuple[Path, str]  # a file that a step reads, and its identity


@dataclass(frozen=True)
class Job:
    """A job of a study, by its wildcards; "" if it has no such wildcard."""

    dataset: str
    model: str = ""
    defense: str = ""
    role: str = ""
    group: str = ""
    attack: str = ""
    part: str = ""
    answers: str = ""

    @classmethod
    def read(cls, wildcards: Mapping[str, str]) -> Self:
        """Read a job's wildcards, of which one is the study."""
        return cls(**{name: value for name, value in wildcards.items() if name != "study"})

    @property
    def names(self) -> dict[str, str]:
        """Its names by wildcard."""
        return {name: value for name, value in vars(self).items() if value}


@dataclass(frozen=True)
class Step:
    """One step. Each function takes the study and a job.

    Attributes:
        writes: option of its command → pattern of the file.
        settings: values, identities of its inputs, and the fingerprint of its code. Their hash is the identity of its
            outputs.
        reads: outputs of other steps that it reads, by option.
        own: the user's own files that it reads. Raises UserError if one is missing.
        memory: megabytes of a first attempt. A second attempt requests twice the memory and time.
        minutes: time limit of a first attempt.
        key: key of the study that requests the step.
    """

    writes: dict[str, str]
    settings: Callable[[Study, Job], Json]
    reads: Callable[[Study, Job], Files] = lambda study, job: {}
    own: Callable[[Study, Job], list[str]] = lambda study, job: []
    memory: Callable[[Study, Job], int] = lambda study, job: 1000
    minutes: Callable[[Study, Job], int] = lambda study, job: 5
    key: str | None = None


STEPS: dict[str, Step] = {}  # the steps by the names of their rules; each module of this package adds its own


def path_of(step: str, option: str, **names: str) -> Path:
    """Return the file that a step writes for an option of its command."""
    return Path(STEPS[step].writes[option].format(**names))


def settings_of(study: Study, step: str, cell: Cell | None = None, **names: str) -> Json:
    """Return the settings of a step's job, by cell or by names."""
    return STEPS[step].settings(study, Job(**(cell.names if cell else {}), **names))


def made(study: Study, step: str, cell: Cell | None = None, **names: str) -> str:
    """Return the identity of a step's outputs in a job."""
    job = "/".join((cell.key if cell else "", *(f"{key}={name}" for key, name in sorted(names.items()))))
    return study.remembered(step, job, lambda: identity(settings_of(study, step, cell, **names)))


def identities(inputs: dict[str, Input]) -> dict[str, str]:
    """Return the identities of some inputs, by option."""
    return {option: identity for option, (_, identity) in inputs.items()}


def cell_of(study: Study, job: Job) -> Cell:
    """Return the cell of a job. Raises UserError for names that the study does not have."""
    return study.cell(job.dataset, job.model, job.defense)


def always(number: int) -> Callable[[Study, Job], int]:
    """Return a function that requests the same resource for every job of a step."""
    return lambda study, job: number
