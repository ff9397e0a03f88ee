"""Loading study files: schema, overrides, scale, then every name and combination that a schema cannot judge."""

from pathlib import Path
from typing import Any

from dp_leakage.attacks import ATTACKS
from dp_leakage.config import Json, check, merged, read_yaml
from dp_leakage.defenses import NON_PRIVATE
from dp_leakage.errors import UserError, nearest
from dp_leakage.figures import COMMON, FIGURES
from dp_leakage.models.architectures import ARCHITECTURES
from dp_leakage.privacy.accounting.case import check_projection
from dp_leakage.privacy.accounting.rules import ACCOUNTANTS, check_sampler
from dp_leakage.study import TIMING, TRAINING, Study, released_noise


def load_study(path: Path, schema: Json, *, scale: str, overrides: Json, only_datasets: list[str]) -> Study | None:
    """The study of a file at a scale; None where the file does not have that scale.

    Args:
        path: the study's YAML file.
        schema: the study schema.
        scale: ``paper``, ``small`` or ``smoke``.
        overrides: study name → changes to its file.
        only_datasets: data sets to keep; empty keeps all. Figures that select none of them are dropped.

    Raises:
        UserError: whatever is wrong with the file, in one sentence.
    """
    raw = read_yaml(path)
    where = f"study file {path}"
    check(raw, schema, where)
    if scale != "paper" and scale not in raw.get("scales", {}):
        return None
    reduced = merged(raw, raw["scales"][scale]) if scale != "paper" else raw
    spec = merged(reduced, overrides.get(raw["study"], {}))
    check(spec, schema, f"{where} with overrides and scale '{scale}'")
    kept = [name for name in spec["datasets"] if not only_datasets or name in only_datasets]
    if not kept:
        return None
    spec = spec | {"datasets": {name: spec["datasets"][name] for name in kept}}
    spec["figures"] = {
        name: figure
        for name, figure in spec["figures"].items()
        if set(figure.get("select", {}).get("dataset", kept)) & set(kept)
    }
    study = Study(raw["study"] if scale == "paper" else f"{raw['study']}-{scale}", spec)
    _check_names(study, where)
    return study


def load_studies(config: Json, files: list[Path], schemas: dict[str, Json]) -> dict[str, Study]:
    """Checks the config, then every study file: folder name → study. Raises UserError."""
    check(config, schemas["config"], "config.yaml")
    studies: dict[str, Study] = {}
    names: dict[str, Path] = {}
    for path in [*files, *map(Path, config.get("study_files", []))]:
        study = load_study(
            path,
            schemas["study"],
            scale=config["scale"],
            overrides=config.get("overrides") or {},
            only_datasets=config.get("only_datasets") or [],
        )
        if study is None:
            names.setdefault(read_yaml(path)["study"], path)
            continue
        if study.target in names:
            raise UserError(
                f"study files {names[study.target]} and {path} are both called '{study.target}'; rename one"
            )
        names[study.target] = path
        studies[study.name] = study
    for name in config.get("overrides") or {}:
        if name not in names:
            raise UserError(f"config.yaml: key 'overrides.{name}' names no study; {nearest(name, names)}")
    return studies


def _check_names(study: Study, where: str) -> None:
    spec = study.spec

    def known(value: object, valid: Any, key: str) -> None:
        if value not in valid:
            raise UserError(f"{where}: key '{key}' is {value!r}; {nearest(value, valid)}")

    for name, dataset in spec["datasets"].items():
        try:
            study.source(name)
        except UserError as error:
            raise UserError(f"{where}: key 'datasets.{name}.source': {error}") from None
        roles = dataset["roles"]
        for model in dataset.get("models", {}):
            known(model, spec["models"], f"datasets.{name}.models")
        projection = dataset.get("projection") or {}
        fit_on = projection.get("fit_on", "all")
        for role in fit_on if isinstance(fit_on, list) else []:
            known(role, roles, f"datasets.{name}.projection.fit_on")
        for method, needed in (("pca", ["components"]), ("private_pca", ["components", "noise"])):
            for key in needed if projection.get("method") == method else []:
                if key not in projection:
                    raise UserError(
                        f"{where}: key 'datasets.{name}.projection' lacks the key '{key}'; method {method} needs it"
                    )
        if spec["training"]["batch_size"] > roles["target_members"]:
            raise UserError(
                f"{where}: key 'training.batch_size' is {spec['training']['batch_size']}; valid is at most the "
                f"{roles['target_members']} members of data set {name}"
            )
        for attack in dataset.get("attacks", []):
            known(attack, spec["attacks"], f"datasets.{name}.attacks")
        for role in {ATTACKS[attack].needs for attack in study.attacks_on(name) if attack in ATTACKS} - {None}:
            auxiliary = study.auxiliary_spec(name, role)
            pool = auxiliary.get("pool", [f"{role}_pool"])
            for part in auxiliary.get("pool", []):
                known(part, roles, f"{role}.pool")
            records, needed = sum(roles.get(part, 0) for part in pool), auxiliary.get("size", 0)
            if needed > records:
                raise UserError(
                    f"{where}: key '{role}.size' is {needed}; valid is at most the {records} records of "
                    f"{' and '.join(pool)} in data set {name}"
                )
    for name, model in spec["models"].items():
        if model.get("engine", "ensemble") == "ensemble":
            known(model["architecture"]["name"], ARCHITECTURES, f"models.{name}.architecture.name")
    _check_defenses(study, where, known)
    for name, settings in spec["attacks"].items():
        known(name, ATTACKS, f"attacks.{name}")
        entry = ATTACKS[name]
        for key, value in settings.items():
            known(key, entry.settings, f"attacks.{name}.{key}")
            default = entry.settings[key]
            if default is not None and value is not None and not _same_type(value, default):
                raise UserError(f"{where}: key 'attacks.{name}.{key}' is {value!r}; valid is a value like {default!r}")
        if entry.needs and entry.needs not in spec:
            raise UserError(f"{where}: key '{entry.needs}' is missing; attack {name} needs {entry.needs} models")
    if study.audited and "delta" not in spec:
        raise UserError(f"{where}: key 'delta' is missing; an audit of the non-private cells needs one")
    for cell in study.cells.values():
        projection = spec["datasets"][cell.dataset].get("projection") or {}
        noise = released_noise(projection)
        if noise is not None and cell.columns["accountant"]:
            try:
                check_projection(cell.columns["accountant"], noise)
            except UserError as error:
                raise UserError(f"{where}: data set {cell.dataset}, defense {cell.defense}: {error}") from None
    for name, figure in spec["figures"].items():
        key = f"figures.{name}"
        known(figure["kind"], FIGURES, f"{key}.kind")
        if FIGURES[figure["kind"]].needs == TIMING and "timing" not in spec:
            raise UserError(f"{where}: key 'timing' is missing; figure {name} shows how long training takes")
        for part in figure.get("parts", []):
            known(part, [TRAINING, *spec["attacks"], *study.audited], f"{key}.parts")
        for setting in figure.get("settings", {}):
            known(setting, {**COMMON, **FIGURES[figure["kind"]].settings}, f"{key}.settings")
        for column in figure.get("select", {}):
            known(column, next(iter(study.cells.values())).columns, f"{key}.select")
        study.figure_cells(name)


def _check_defenses(study: Study, where: str, known: Any) -> None:
    spec = study.spec
    if not any(entry["defense"] == "none" for entry in spec["defenses"]):
        raise UserError(f"{where}: key 'defenses' lacks the entry '- defense: none', to which every loss is relative")
    for position, entry in enumerate(spec["defenses"]):
        key = f"defenses.{position}"
        kind = entry["defense"]
        for field, valid in (("datasets", spec["datasets"]), ("models", spec["models"])):
            for name in entry.get(field, []):
                if field == "models" or name in spec["datasets"]:
                    known(name, valid, f"{key}.{field}")
        for attack in entry.get("attacks", []):
            known(attack, spec["attacks"], f"{key}.attacks")
        for needed in {"l2": ("l2",), "dropout": ("dropout",), "l2_dropout": ("l2", "dropout")}.get(kind, ()):
            if needed not in entry:
                raise UserError(f"{where}: key '{key}' lacks the key '{needed}'; defense {kind} needs it")
        if kind == "subclass" and "k_sub" not in entry:
            raise UserError(f"{where}: key '{key}' lacks the key 'k_sub'; defense subclass needs it")
        for field in ("k_sub", "partition"):
            if field in entry and kind != "subclass":
                raise UserError(f"{where}: key '{key}.{field}' does not apply to defense {kind}; valid is subclass")
        if kind in NON_PRIVATE:
            own = {"defense", "datasets", "models", "l2", "dropout", "learning_rate", "repeats", "attacks"}
            extra = sorted(set(entry) - own)
            if extra:
                raise UserError(
                    f"{where}: key '{key}.{extra[0]}' does not apply to defense {kind}, which adds no noise"
                )
            continue
        if "accountant" not in entry:
            raise UserError(f"{where}: key '{key}' lacks the key 'accountant'; {nearest('', ACCOUNTANTS)}")
        for accountant in entry["accountant"] if isinstance(entry["accountant"], list) else [entry["accountant"]]:
            known(accountant, ACCOUNTANTS, f"{key}.accountant")
            if "sampler" in entry and "accounting_note" not in entry:
                try:
                    check_sampler(accountant, entry["sampler"])
                except UserError as error:
                    raise UserError(
                        f"{where}: key '{key}': {error} (or say in accounting_note why it is done)"
                    ) from None
        if kind == "vmf" and "noise_multiplier" in entry:
            raise UserError(f"{where}: key '{key}.noise_multiplier' does not apply to defense vmf; valid is epsilon")
        if "epsilon" in entry and "noise_multiplier" in entry:
            raise UserError(f"{where}: key '{key}' has both epsilon and noise_multiplier; valid is one of them")
        if "noise_multiplier" not in entry and "epsilon" not in entry and "epsilon" not in spec:
            raise UserError(
                f"{where}: key '{key}' has no budget; valid is epsilon or noise_multiplier, or the study's epsilon"
            )
        if "delta" not in entry and "delta" not in spec:
            raise UserError(f"{where}: key '{key}' has no delta; valid is delta here or for the whole study")
        budgets = entry.get("noise_multiplier") or entry.get("epsilon") or spec["epsilon"]
        repeated = sorted({b for b in budgets if budgets.count(b) > 1})
        if repeated:
            raise UserError(
                f"{where}: key '{key}' has the budget {repeated[0]:g} more than once; valid is each budget once"
            )


def _same_type(value: object, default: object) -> bool:
    if isinstance(default, bool) or isinstance(value, bool):
        return isinstance(value, bool) and isinstance(default, bool)
    if isinstance(default, int | float):
        return isinstance(value, int | float)
    return isinstance(value, type(default))
