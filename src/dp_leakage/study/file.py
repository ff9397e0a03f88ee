"""Loading of study files: schema, overrides, scale, then checks of names and combinations beyond the schema."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeGuard

from dp_leakage import plugins
from dp_leakage.attacks import ATTACKS
from dp_leakage.common.config import Json, merged, spread
from dp_leakage.common.errors import UserError, nearest
from dp_leakage.common.names import RULES
from dp_leakage.common.run_config import CONFIG, Config
from dp_leakage.common.schemas import check
from dp_leakage.common.sections import schema_of
from dp_leakage.common.yaml_files import check_value, parse, read_yaml
from dp_leakage.data import is_at_hand
from dp_leakage.figures import enter
from dp_leakage.study import Study
from dp_leakage.study.checks import check_reach, check_study
from dp_leakage.study.protocol import source_of
from dp_leakage.study.schema import composed
from dp_leakage.study.sections import StudyFile
from dp_leakage.study.steps.parts import figure_cells

STUDY_FILE = "study.yaml"  # the file of a study that has a folder
STAND_IN = "stand_in"  # a data set's key: the source in place of one whose file is not there
QUOTING = {
    "overrides": "'overrides={quickstart: {repeats: 5}}'",
    "only_datasets": "'only_datasets=[digits]'",
    "study_files": "'study_files=[my_study.yaml]'",
}


COMMAND_LINE = "command line"


def _raise(called: set[str], error: UserError) -> None:
    raise error


def study_files(folder: Path) -> list[Path]:
    """List the study files of a folder: ``NAME.yaml``, or ``NAME/study.yaml`` with other files of that study."""
    return sorted([*folder.glob("*.yaml"), *folder.glob(f"*/{STUDY_FILE}")], key=_name_of)


def _name_of(path: Path) -> str:
    return path.parent.name if path.name == STUDY_FILE else path.stem


def _always(study: str) -> bool:
    return True


def load_study(
    path: Path,
    raw: Json,
    *,
    scale: str,
    overrides: Json,
    engine: str = "ensemble",
    asked: Callable[[str], bool] = _always,
    place: str = str(CONFIG),
    data_dir: Path = Path("data"),
) -> Study | None:
    """Load the study of a file at a scale; None if the file lacks that scale and the study was not requested.

    Args:
        path: the study's YAML file.
        raw: its contents.
        scale: ``paper``, ``small`` or ``smoke``.
        overrides: study name → changes to its file.
        engine: in place of ``ensemble`` wherever the file says that, or nothing.
        asked: whether a study was requested, by its name. Only then must it have the scale, and is it computed what its
            audits reach.
        place: source of the overrides, for the error message.
        data_dir: folder of published sets; a data set without its file is replaced by its ``stand_in``.

    Raises:
        UserError: whatever is wrong with the file, in one sentence.
    """
    where = f"study file {path}"

    def allow(spec: Json, where: str) -> None:
        check(spec, composed(spec), where)

    allow(raw, where)
    for name, changes in raw.get("scales", {}).items():
        if words := sorted({"study", "scales"} & changes.keys()):
            raise UserError(f"{where}: key 'scales.{name}.{words[0]}' cannot be changed there; leave it out")
        _check_changes(raw, changes, f"scales.{name}", where)
        if name != scale:  # its own check says more
            allow(merged(raw, changes), f"{where} at scale '{name}'")
    if scale not in (scales := ["paper", *raw.get("scales", {})]):
        if asked(raw["study"]):
            raise UserError(f"{where} has no scale {scale!r}; {nearest(scale, scales)}")
        return None
    changes = overrides.get(raw["study"], {})
    key = f"overrides.{raw['study']}"
    _check_changes(raw, changes, key, place)
    changed = spec = merged(raw, changes)
    check(changed, composed(changed), place, key)
    if scale != "paper":
        reduction = _without_attacks(raw["scales"][scale], raw)
        if "repeats" in reduction:  # looks are planned for the repeats of the whole study
            reduction = {"looks": None} | reduction
        spec = merged(changed, _left_to_scale(reduction, changes))
        allow(spec, f"{where} at scale '{scale}'{f' with {key}' if changes else ''}")
    parts = [raw["study"], *([scale] if scale != "paper" else []), *([engine] if engine != "ensemble" else [])]
    study = Study("-".join(parts), _by_engine(spec, engine), _from_here(path.parent), scale)
    whole = [replace(study, name=raw["study"], spec=given) for given in (raw, *([changed] if changes else []))]
    try:
        if spec != raw:
            check_study(whole[0])
        check_study(study, whole)
        study = _at_hand(study, data_dir)
        if asked(study.target):
            check_reach(study)
    except UserError as error:
        raise UserError(f"{where}{f' with {key} of {place}' if changes else ''}: {error}") from None
    return study


def _by_engine(spec: Json, engine: str) -> Json:
    """Return the study with its models of engine ``ensemble`` trained by another engine."""
    models = {
        name: model | {"engine": engine} if model.get("engine", "ensemble") == "ensemble" else model
        for name, model in spec["models"].items()
    }
    return spec if engine == "ensemble" else spec | {"models": models}


def _at_hand(study: Study, data_dir: Path) -> Study:
    """Replace the source of each data set whose files are missing by its ``stand_in``."""
    datasets = {}
    for name, given in study.spec["datasets"].items():
        own = {key: value for key, value in given.items() if key != STAND_IN}
        instead = own | {"source": given[STAND_IN]} if STAND_IN in given else own
        source_of({"datasets": {name: instead}}, name)  # refuses one that there is not, needed or not
        datasets[name] = own if is_at_hand(source_of(study.spec, name), data_dir) else instead
    return replace(study, spec=study.spec | {"datasets": datasets})


def _from_here(folder: Path) -> Path:
    """Return a folder, relative if possible, so that paths stay the same when the whole repository moves."""
    return folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder


def _without_attacks(reduction: Json, raw: Json) -> Json:
    """Return a scale's changes, without changes to attacks that the study does not run and that they would add."""
    own = {
        name: changes
        for name, changes in reduction.get("attacks", {}).items()
        if name in raw["attacks"] or name not in ATTACKS  # an unknown name is refused later
    }
    return reduction | ({"attacks": own} if "attacks" in reduction else {})


def _left_to_scale(reduction: Json, changes: Json) -> Json:
    """Return the part of a scale's changes that applies besides a user's overrides.

    The smaller of two counts applies. A user's list of numbers, e.g. ε, is cut to the length of the scale's list.
    Removed entries stay removed. Otherwise the user's value applies.
    """
    left: Json = {}
    for key, value in reduction.items():
        given = changes.get(key)
        if key not in changes:
            left[key] = value
        elif isinstance(value, Mapping) and isinstance(given, Mapping):
            left[key] = _left_to_scale(dict(value), dict(given))
        elif _are_numbers(value) and _are_numbers(given):
            left[key] = spread(given, len(value))
        elif given is not None and (value is None or (type(value) is int and type(given) is int and value < given)):
            left[key] = value
    return left


def _are_numbers(value: object) -> TypeGuard[list[float]]:
    return isinstance(value, list) and bool(value) and all(isinstance(each, int | float) for each in value)


def on_datasets(study: Study, only: list[str]) -> Study | None:
    """Return the study on only these data sets, without figures that need others; None if it has no such data set."""
    kept = {name: dataset for name, dataset in study.spec["datasets"].items() if name in only}
    if not kept or len(kept) == len(study.spec["datasets"]):
        return study if kept else None
    figures = {
        name: figure
        for name, figure in study.spec["figures"].items()
        if any(cell.dataset in kept for cell in figure_cells(study, name))
    }
    return replace(study, spec=study.spec | {"datasets": kept, "figures": figures})


def load_studies(
    config: Json,
    files: list[Path],
    failed: Callable[[set[str], UserError], None] = _raise,
    asked: Callable[[str], bool] = _always,
    needed: Callable[[set[str]], set[str]] = set,
    given: Collection[str] = (),
) -> dict[str, Study]:
    """Check the config, then the study files: folder name → study.

    Args:
        config: keys and values of config.yaml, with the command line's over them.
        files: study files; where two clash, the later one is wrong.
        failed: called with an invalid file's possible study names that the run needs, and with the error. If it
            returns, the study is left out. By default it raises.
        asked: as for `load_study`.
        needed: selects the names that the run needs from all possible study names; by default all. Other studies are
            left out after a check of their schema and names.
        given: keys of the config that the command line set, for the error message.

    Raises:
        UserError: what is wrong with the config.
    """
    places = {key: COMMAND_LINE if key in given else str(CONFIG) for key in config}
    config = config | {key: _unquoted(key, config[key], places[key]) for key in QUOTING if key in config}
    for place, part in ((COMMAND_LINE, {key: config[key] for key in given}), (str(CONFIG), config)):
        check_value(part, place)
        check(part, {**schema_of(Config), **({"required": []} if place == COMMAND_LINE else {})}, place)
    plugins.load(config.get("plugins") or [])
    overrides, only = config.get("overrides") or {}, config.get("only_datasets") or []
    studies: dict[str, Study] = {}
    names: dict[str, Path] = {}
    taken = dict.fromkeys(RULES, "a rule of the workflow")
    datasets: set[str] = set()
    emptied: dict[str, Study] = {}
    read = [_read(path) for path in [*files, *map(Path, config.get("study_files") or [])]]
    wanted = needed({name for _, _, called in read for name in called})
    for path, raw, called in read:
        whole = not called.isdisjoint(wanted)
        try:
            if isinstance(raw, UserError):
                raise raw
            if path.name == STUDY_FILE and whole:
                enter(path.parent)
            study = (
                load_study(
                    path,
                    raw,
                    scale=config["scale"],
                    overrides=overrides,
                    engine=config.get("engine", "ensemble"),
                    asked=asked,
                    place=places.get("overrides", str(CONFIG)),
                    data_dir=Path(config.get("data_dir", "data")),
                )
                if whole
                else _names_of(path, raw)
            )
            if study is not None:
                _check_targets(study, path, names, taken)
        except UserError as error:
            failed(called & wanted, error)
            names |= {name: path for name in called if name not in names}
            continue
        names.setdefault(raw["study"], path)
        if study is not None:
            taken |= dict.fromkeys(study.targets, f"a target of study {study.target}")
            datasets |= set(study.spec["datasets"])
            kept = on_datasets(study, only) if only and whole else study
            emptied |= {study.target: study} if kept is None and asked(study.target) else {}
            studies |= {kept.name: kept} if kept is not None and whole else {}
    for name in overrides:
        if name not in names:
            raise UserError(f"{places['overrides']}: key 'overrides.{name}' names no study; {nearest(name, names)}")
    for name in only:
        if name not in datasets:
            raise UserError(
                f"{places['only_datasets']}: key 'only_datasets' has {name!r}, but no study has this data set; "
                f"{nearest(name, datasets)}"
            )
    for name, study in emptied.items():
        words = f"none of study {name}; valid: {', '.join(study.spec['datasets'])}"
        words = f"key 'only_datasets' is [{', '.join(only)}], {words}"
        failed({study.name}, UserError(f"{places['only_datasets']}: {words}"))
    return studies


def _read(path: Path) -> tuple[Path, Any, set[str]]:
    """Return a study file, its contents or its error, and the possible names of its study."""
    called = {_name_of(path)}
    try:
        raw = read_yaml(path)
    except UserError as error:
        return path, error, called
    return path, raw, called | {name for name in [raw.get("study")] if isinstance(name, str)}


def _names_of(path: Path, raw: Json) -> Study:
    """Return a study for its names only. Raises UserError if the schema refuses it."""
    check(raw, schema_of(StudyFile), f"study file {path}")
    return Study(raw["study"], raw, path.parent)


def _check_targets(study: Study, path: Path, names: Mapping[str, Path], taken: Mapping[str, str]) -> None:
    """Refuse a study with another study's name, and a target with the name of another target or of a rule."""
    if study.target in names:
        raise UserError(f"study files {names[study.target]} and {path} are both called '{study.target}'; rename one")
    for number, target in enumerate(study.targets):
        if target in study.targets[:number]:
            raise UserError(f"study file {path}: two of its targets are called '{target}'; rename the figure")
        if target in taken:
            raise UserError(
                f"study file {path}: its target '{target}' is also {taken[target]}; rename the study or the figure"
            )


def typed(value: object) -> object:
    """Return a value from the command line, where Snakemake reads every number, truth value and null as text."""
    if isinstance(value, Mapping):
        return {key: typed(child) for key, child in value.items()}
    if isinstance(value, list):
        return [typed(child) for child in value]
    try:
        read = parse(value, "") if isinstance(value, str) else value
    except UserError:
        return value
    return read if read is None or isinstance(read, int | float | bool) else value


def _unquoted(key: str, value: object, place: str) -> object:
    """Return the list or mapping that a text spells. Raises UserError if it spells neither."""
    if not isinstance(value, str):
        return value
    try:
        read = parse(value, f"key '{key}'")
    except UserError:
        read = value
    if not isinstance(read, dict if key == "overrides" else list):
        raise UserError(
            f"{place}: key '{key}' is {value!r}; on the command line write it in quotes, with a space after each "
            f"colon: --config {QUOTING[key]}"
        )
    return read


def _check_changes(base: Mapping, changes: Mapping, key: str, where: str) -> None:
    """Refuse changes that would change nothing: a null for a key that does not exist, or a key that names the study
    itself.
    """
    for name, value in changes.items():
        if key.count(".") == 1 and name in ("study", "scales"):
            raise UserError(f"{where}: key '{key}.{name}' cannot be changed there; edit the study's file")
        if value is None and ":" in name:
            raise UserError(f"{where}: key '{key}' has '{name}'; write a space after the colon: {QUOTING['overrides']}")
        if value is None and name not in base:
            raise UserError(f"{where}: key '{key}.{name}' is null, but it does not exist; {nearest(name, base)}")
        if isinstance(value, Mapping):
            below = base.get(name)
            _check_changes(below if isinstance(below, Mapping) else {}, value, f"{key}.{name}", where)
