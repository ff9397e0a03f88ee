"""Targets of the command line. The error for an unknown target suggests the nearest one."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from snakemake_interface_executor_plugins.settings import ExecMode

from dp_leakage.common.errors import UserError, close, nearest
from dp_leakage.common.paths import is_there
from dp_leakage.common.places import profile_folder
from dp_leakage.study import Study, paths
from dp_leakage.study.cells import attacks_in, auxiliary_defense
from dp_leakage.study.protocol import auxiliary_spec
from dp_leakage.study.steps import ENTRIES, Job, group_of

DEFAULT = "quickstart"  # what a bare `snakemake` runs


def asked(command: list[str], otherwise: Sequence[str] = (DEFAULT,)) -> list[str]:
    """Return the targets on Snakemake's command line, which Snakemake does not reveal while it reads the rules.

    A cluster job is started with its jobs instead of targets. The result is then the folder of their study, or the
    name of a rule that belongs to one study.

    Args:
        command: the program and its arguments, as in `sys.argv`.
        otherwise: the target of a bare `snakemake`, which a list of targets does not use.
    """
    if not _is_snakemake(command):
        return [*otherwise]
    known = _parsed(tuple(command[1:]))
    jobs = [_place_of(job.rulename, job.wildcards_dict) for job in known.target_jobs or ()]
    last = command[command.index("--") + 1 :] if "--" in command else []
    return [*known.targets, *last, *jobs] or ([] if _lists(known) else [*otherwise])


def is_run(command: list[str]) -> bool:
    """Return whether this is a run, not a Snakemake that one has started for some of its jobs."""
    return not _is_snakemake(command) or _parsed(tuple(command[1:])).mode == ExecMode.DEFAULT


def check_command(command: list[str]) -> None:
    """Refuse --touch, and a missing workflow profile, without which Snakemake would silently run."""
    if not _is_snakemake(command):
        return
    known = _parsed(tuple(command[1:]))
    if known.touch:
        raise UserError(
            "--touch would call old results new, and the next job would refuse them; leave it out: what is current is "
            "kept"
        )
    if known.workflow_profile:
        profile_folder(known.workflow_profile)


@cache
def _parsed(words: tuple[str, ...]) -> Any:
    """Parse the words up to ``--`` with Snakemake's own parser."""
    from snakemake.cli import get_argument_parser

    end = words.index("--") if "--" in words else len(words)
    return get_argument_parser().parse_known_args(words[:end])[0]


def _lists(known: Any) -> bool:
    """Return whether Snakemake only lists its rules."""
    return bool(known.list_target_rules or known.list_rules)


def _is_snakemake(command: list[str]) -> bool:
    """Return whether this is Snakemake's own program rather than another that calls its functions."""
    return Path(command[0]).name in ("snakemake", "__main__.py")


def _place_of(rule: str, wildcards: Mapping[str, str]) -> str:
    return f"{paths.STUDY.format(study=wildcards['study'])}/" if "study" in wildcards else rule


def needed(command: list[str], targets: Iterable[str], studies: set[str]) -> set[str]:
    """Return the studies that a run must load: those of its targets.

    All studies are needed to list them, to suggest one for an unknown target, and if no target is given.

    Args:
        command: the program and its arguments, as in `sys.argv`.
        targets: result of `asked`.
        studies: names of all studies.
    """
    found = [_owners(target, studies) for target in targets]
    if not _is_snakemake(command) or not found or not all(found):
        return studies
    if _lists(known := _parsed(tuple(command[1:]))) or known.lint:
        return studies
    return set().union(*found)


def _owners(target: str, studies: set[str]) -> set[str]:
    """Return the studies that a target may belong to. A study's full name belongs to this study only."""
    return {target} if target in studies else {study for study in studies if asks_for([target], study)}


def asks_for(targets: Iterable[str], study: str) -> bool:
    """Return whether one of the targets belongs to the study, or is a file of its results."""
    folder = paths.STUDY.format(study=study)
    places = (f"{study}_", f"{folder}/", f"{folder}-")
    return any(target == study or target.startswith(places) for target in targets)


def check_targets(targets: Iterable[str], named: Mapping[str, Any], studies: Mapping[str, Study]) -> None:
    """Refuse targets that are neither a rule nor a file that a rule could make for a study.

    Args:
        targets: of the command line.
        named: Snakemake's rules, by name.
        studies: loaded studies, by folder.

    Raises:
        UserError: names the target, and the nearest that exists.
    """
    known = [target for study in studies.values() for target in study.targets]
    for target in targets:
        if target in named:
            if named[target].has_wildcards():
                raise UserError(f"target '{target}' makes many files; name one of them, or a study or figure")
        elif Path(target).parts[:1] == (paths.ROOT,) or not is_there(Path(target)):
            _check_file(target, named.values(), known, studies)


def _check_file(target: str, rules: Iterable[Any], known: list[str], studies: Mapping[str, Study]) -> None:
    producer = next((rule for rule in rules if rule.is_producer(target)), None)
    if producer is None:
        parts = Path(target).parts
        if len(parts) > 1 and parts[0] == paths.ROOT:
            study = _study_of(target, parts[1], studies)
            if len(parts) > 5:  # a file of a cell
                cell = dict(zip(("dataset", "model", "defense"), parts[2:5], strict=True))
                _refusing(target, lambda: check_names(study, **cell, attack=_attack(parts)))
            raise UserError(
                f"target {target!r} is not a file that the workflow makes; `dp-leakage run STUDY -n` lists those"
            )
        raise UserError(f"target {target!r} does not exist; {_near(target, known)}")
    wildcards = dict(producer.get_wildcards(target))
    if "study" in wildcards:
        study = _study_of(target, wildcards.pop("study"), studies)
        _refusing(target, lambda: _check_job(study, producer.name, wildcards))


def _check_job(study: Study, rule: str, wildcards: dict[str, str]) -> None:
    key = ENTRIES[rule].key if rule in ENTRIES else None
    if key and key not in study.spec:
        raise UserError(f"study {study.target} has no '{key}'")
    check_names(study, **_names(wildcards))


def _attack(parts: tuple[str, ...]) -> str | None:
    """Return the attack whose scores a file of a cell holds by its name."""
    return Path(parts[6]).stem if len(parts) == 7 and parts[5] == "attack" else None


def _refusing(target: str, check: Callable[[], None]) -> None:
    try:
        check()
    except UserError as error:
        raise UserError(f"target {target!r}: {error}") from None


def check_names(
    study: Study,
    dataset: str | None = None,
    model: str | None = None,
    defense: str | None = None,
    role: str | None = None,
    attack: str | None = None,
    part: str | None = None,
) -> None:
    """Raise UserError if the wildcards of a path hold a name that the study does not have."""
    for name, valid, what in (
        (dataset, study.spec["datasets"], "data set"),
        (model, study.spec["models"], "model"),
        (attack, study.spec["attacks"], "attack"),
    ):
        if name is not None and name not in valid:
            raise UserError(f"study {study.target} has no {what} '{name}'; {nearest(name, valid)}")
    if dataset and model and defense:
        cell = study.cell(dataset, model, defense)
        for name in ([attack] if attack and role is None else []) + (attacks_in(cell, part) if part else []):
            if name not in cell.parts:
                raise UserError(f"cell '{cell.key}' is not attacked by '{name}'; {nearest(name, cell.parts)}")
        if role is not None and auxiliary_defense(study.spec, cell, role) != defense:
            raise UserError(f"cell '{cell.key}' has no {role} models of its own")
    if dataset and role is not None and not auxiliary_spec(study.spec, dataset, role):
        raise UserError(f"study {study.target} has no {role} models")


def _names(wildcards: dict[str, str]) -> dict[str, str | None]:
    """Return the names in a file's wildcards. Outputs belong to a group of models: a cell's own, or the attacker's."""
    if "group" not in wildcards:
        return dict(wildcards)
    dataset, model, role, defense = group_of(Job.read(wildcards))
    return {"dataset": dataset, "model": model, "defense": defense, "role": None if role == paths.TARGET else role}


def _study_of(target: str, name: str, studies: Mapping[str, Study]) -> Study:
    if name not in studies:
        base, _, scale = name.rpartition("-")
        if base and any(study.target == base and scale in study.spec.get("scales", {}) for study in studies.values()):
            raise UserError(f"target {target!r}: is of scale {scale}; add --config scale={scale}")
        raise UserError(f"target {target!r}: no study at this scale is called '{name}'; {_near(name, studies)}")
    return studies[name]


def _near(name: str, known: Iterable[str]) -> str:
    """Return a suggestion, and the command that lists all targets, which are too many for a sentence."""
    return f"{close(name, known)}`snakemake --list-target-rules` lists all"
