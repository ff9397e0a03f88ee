"""Every name and combination in a study that its schema cannot judge, before anything runs. Complaints name the key."""

import csv
import re
from collections.abc import Iterable
from itertools import product
from math import ceil
from pathlib import Path

from dp_leakage.attacks import ATTACKS, STRONGEST
from dp_leakage.common.config import Json, merged
from dp_leakage.common.errors import UserError, nearest
from dp_leakage.common.kinds import Kind
from dp_leakage.common.names import check_name
from dp_leakage.common.paths import is_file, user_path
from dp_leakage.data.roles import MEMBERS, POOL, REFERENCE_POOL, TUNING, population_role, trained_role
from dp_leakage.engines import ENGINES, GIVEN
from dp_leakage.engines import FILES as EXISTING
from dp_leakage.figures import COMMON, FIGURES
from dp_leakage.models.architectures import ARCHITECTURES, build, check_settings
from dp_leakage.privacy.accounting.case import check_projection
from dp_leakage.privacy.accounting.printed import authors_sigma
from dp_leakage.privacy.accounting.rules import ACCOUNTANTS, check_mechanism, check_noise
from dp_leakage.privacy.defenses import (
    BUDGETS,
    CLAIMED,
    UNITS,
    accountants,
    budgets,
    defenses,
    expanded,
    keys_of,
    needed_by,
)
from dp_leakage.privacy.mechanism import Mechanism, check_step, holds_groups
from dp_leakage.privacy.mechanisms import MECHANISMS
from dp_leakage.study import COINS, SPLIT, TIMING, TRAINING, TUNE, Cell, Study
from dp_leakage.study.jobs import AUXILIARY
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.tuning import FOLDS

PUBLISHED = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*\.csv")
# Of a table of printed results.
COLUMNS = (
    "paper", "artefact", "dataset", "model", "mechanism", "epsilon", "delta", "setting", "metric", "value", "stderr",
)  # fmt: skip
TARGETS = {MEMBERS, "target_nonmembers"}


def check_study(study: Study, whole: Iterable[Study] = ()) -> None:
    """Raises UserError with the first thing that is wrong with a study.

    Args:
        study: what the schema has approved.
        whole: the study before it was changed and before its reduction, whose cells a figure may name too.
    """
    _check_names(study.spec)
    _check_published(study.spec, study.folder)
    _check_design(study)
    _check_datasets(study)
    _check_models(study.spec)
    _check_defenses(study.spec)
    _check_attacks(study)
    _check_cells(study)
    _check_tuning(study)
    _check_audit(study)
    cells = [cell for one in (*whole, study) for cell in one.cells.values()]
    for name in study.spec["figures"]:
        _check_figure(study, name, cells)


def _require(holds: bool, complaint: str) -> None:
    if not holds:
        raise UserError(complaint)


def _known(value: object, valid: Iterable[object], key: str) -> None:
    names = list(valid)
    if value not in names:
        raise UserError(f"key '{key}' is {value!r}; {nearest(value, names)}")


def _check_kind(value: object, kind: Kind, key: str) -> None:
    _require(kind.holds(value), f"key '{key}' is {value!r}; {kind.valid(value)}")


def _check_names(spec: Json) -> None:
    check_name(spec["study"], "key 'study'")
    for key in ("datasets", "models", "figures"):
        for name in spec[key]:
            check_name(name, f"key '{key}'")


def _check_published(spec: Json, folder: Path) -> None:
    """The printed results are a table in the study's own folder, and of the columns that figures read."""
    name = spec.get("published")
    if name is None:
        return
    words = f"key 'published' is {name!r}; valid is the name of a file in {folder}"
    _require(PUBLISHED.fullmatch(name) is not None, words)
    files = [path.name for path in folder.glob("*.csv") if path.resolve().parent == folder.resolve()]
    _require(name in files, f"{words}; {nearest(name, files)}")
    with (folder / name).open(encoding="utf-8", errors="replace", newline="") as file:
        columns = next(csv.reader(file), [])
    missing = [column for column in COLUMNS if column not in columns]
    _require(not missing, f"key 'published': {folder / name} lacks the column {missing[0]!r}" if missing else "")


# ---------------------------------------------------------------------- design, data sets, models
def _check_design(study: Study) -> None:
    """The roles are those of the study's design, and its attacks ask what the design can answer."""
    wanted, other = (POOL, MEMBERS) if study.design == COINS else (MEMBERS, POOL)
    for name, dataset in study.spec["datasets"].items():
        key = f"datasets.{name}"
        _require(wanted in dataset["roles"], f"key '{key}.roles' lacks the role '{wanted}', on which models train")
        words = f"valid in design {study.design} is {wanted}"
        _require(other not in dataset["roles"], f"key '{key}.roles' has the role '{other}'; {words}")
        words = "copies of one record would be in and out at once; valid is design split"
        _require(
            study.design == SPLIT or "augment" not in dataset, f"key '{key}.augment' is set in design coins: {words}"
        )
    if study.design == SPLIT:
        return
    for attack in study.spec["attacks"]:
        family = ATTACKS[attack].family if attack in ATTACKS else "membership"
        words = f"key 'attacks.{attack}' needs fixed members; valid in design coins is membership or attributes"
        _require(family in ("membership", "attribute"), words)
        learns = attack in ATTACKS and ATTACKS[attack].needs == "reference"
        words = f"key 'repeats' is 1, but attack {attack} learns from the other repeats; valid is 2 or more"
        _require(not learns or study.spec["repeats"] > 1, words)


def _check_datasets(study: Study) -> None:
    spec = study.spec
    for name, dataset in spec["datasets"].items():
        key = f"datasets.{name}"
        try:
            study.source(name)
        except UserError as error:
            raise UserError(f"key '{key}.source': {error}") from None
        for model in dataset.get("models", {}):
            _known(model, spec["models"], f"{key}.models")
        for attack in dataset.get("attacks", []):
            _known(attack, spec["attacks"], f"{key}.attacks")
        projection = dataset.get("projection") or {}
        fit_on = projection.get("fit_on", "all")
        for role in fit_on if isinstance(fit_on, list) else []:
            _known(role, dataset["roles"], f"{key}.projection.fit_on")
        fitted = sum(dataset["roles"].values())
        if projection.get("components", 1) > fitted:
            words = f"valid is up to the {fitted} records of its roles"
            raise UserError(f"key '{key}.projection.components' is {projection['components']}; {words}")
        needed = {"pca": ("components",), "private_pca": ("components", "noise")}
        for part in needed.get(projection.get("method"), ()):
            complaint = f"key '{key}.projection' lacks the key '{part}'; method {projection.get('method')} needs it"
            _require(part in projection, complaint)


def _check_models(spec: Json) -> None:
    for name, model in spec["models"].items():
        for key, changed in _as_changed(spec, name, model):
            _check_named(changed.get("engine", "ensemble"), changed["architecture"], key)
    for role in AUXILIARY:
        own = spec.get(role, {})
        if "engine" in own and "architecture" in own:
            _check_named(own["engine"], own["architecture"], f"{role}.architecture")


def _check_named(engine: str, architecture: Json, key: str) -> None:
    """An engine knows the architecture that it is given."""
    if engine == "opacus":
        module, _, what = str(architecture["name"]).partition(":")
        complaint = f"key '{key}.name' is {architecture['name']!r}; valid is a path such as 'my_models:Net'"
        _require(bool(module and what), complaint)
        return
    if engine in ENGINES:
        _check_engine(engine, architecture, key)
        return
    _known(architecture["name"], ARCHITECTURES, f"{key}.name")
    try:
        check_settings(architecture["name"], {k: v for k, v in architecture.items() if k != "name"})
    except UserError as error:
        raise UserError(f"key '{key}': {error}") from None


def _check_engine(engine: str, architecture: Json, key: str) -> None:
    """What an engine's architecture names is there, as far as that can be told without importing it."""
    valid = {"outputs": ("name", "of"), "onnx": ("name",)}.get(engine)
    for given in architecture:
        _require(valid is None or given in valid, f"key '{key}.{given}' does not apply to engine {engine}; valid: name")
    if engine in ("module", "estimator"):
        module, _, what = str(architecture["name"]).partition(":")
        complaint = f"key '{key}.name' is {architecture['name']!r}; valid is a path such as 'sklearn.svm:SVC'"
        _require(bool(module and what), complaint)
    for part in EXISTING[engine]:
        needed = part != "of"
        _require(part in architecture or not needed, f"key '{key}' lacks the key '{part}'; engine {engine} needs it")
        if part in architecture:
            file = user_path(str(architecture[part]))
            _require(is_file(file), f"key '{key}.{part}' is {architecture[part]!r}; valid is a file")


def _as_changed(spec: Json, name: str, model: Json) -> Iterable[tuple[str, Json]]:
    """A model as it stands and as each data set changes it, with the key of its architecture there."""
    yield f"models.{name}.architecture", model
    for dataset, found in spec["datasets"].items():
        if name in found.get("models", {}):
            yield f"datasets.{dataset}.models.{name}.architecture", merged(model, found["models"][name])


# ---------------------------------------------------------------------- defenses
def _check_defenses(spec: Json) -> None:
    complaint = "key 'defenses' lacks the entry '- defense: none', to which every loss is relative"
    _require(any(entry["defense"] == "none" for entry in spec["defenses"]), complaint)
    for position, entry in enumerate(spec["defenses"]):
        key = f"defenses.{position}"
        _known(entry["defense"], defenses(), f"{key}.defense")
        for field in ("datasets", "models", "attacks"):
            for name in entry.get(field, []):
                _known(name, spec[field], f"{key}.{field}")
        for accountant in accountants(entry):
            _known(accountant, ACCOUNTANTS, f"{key}.accountant")
        _check_keys(entry, key)
        if "accountant" in keys_of(entry["defense"]):
            _check_budgets(entry, spec, key)
        engines = {name: spec["models"][name].get("engine", "ensemble") for name in entry.get("models", spec["models"])}
        for name, engine in engines.items():
            complaint = (
                f"key '{key}.dropout' does not apply to model {name}: engine {engine} trains your module as it is"
            )
            _require(engine == "ensemble" or "dropout" not in entry, complaint)
        for _, mechanism, _ in expanded(entry, spec):
            if mechanism is not None:
                _check_mechanism(entry, mechanism, set(engines.values()), key)


def _check_keys(entry: Json, key: str) -> None:
    """Refuse a key that says nothing about this defense, and ask for those that it needs."""
    kind = entry["defense"]
    for given in entry:
        others = [name for name in defenses() if given in keys_of(name)]
        valid = f"valid is {', '.join(others)}" if others else nearest(given, sorted(keys_of(kind)))
        _require(given in keys_of(kind), f"key '{key}.{given}' does not apply to defense {kind}; {valid}")
    for name, known in (MECHANISMS[kind].kinds if kind in MECHANISMS else {}).items():
        if name in entry:
            _check_kind(entry[name], known, f"{key}.{name}")
    for needed in needed_by(kind):
        hint = nearest("", ACCOUNTANTS) if needed == "accountant" else f"defense {kind} needs it"
        _require(needed in entry, f"key '{key}' lacks the key '{needed}'; {hint}")
    if entry.get("unit", UNITS[0]) not in UNITS:
        words = f"{' or '.join(UNITS)}, or defense {entry['unit']}"
        raise UserError(f"key '{key}.unit' is {entry['unit']!r}; valid is {words}")
    if "accountant" in keys_of(kind) and isinstance(entry.get("l2"), list):
        raise UserError(f"key '{key}.l2' is {entry['l2']!r}; valid for defense {kind} is one number")
    if "rdp_sigma" in entry and ("rdp" not in accountants(entry) or {"noise_multiplier", "target"} & set(entry)):
        words = "says where accountant rdp takes σ from; valid is an epsilon under that accountant"
        raise UserError(f"key '{key}.rdp_sigma' {words}")


def _check_budgets(entry: Json, spec: Json, key: str) -> None:
    given = [name for name in BUDGETS if name in entry]
    if len(given) > 1:
        raise UserError(f"key '{key}' has both {' and '.join(given)}; valid is one of them")
    if not given and not {"epsilon", "target"} & set(spec):
        known = "epsilon, target or noise_multiplier, or the study's epsilon or target"
        raise UserError(f"key '{key}' has no budget; valid is {known}")
    if "delta" not in entry and "delta" not in spec:
        raise UserError(f"key '{key}' has no delta; valid is delta here or for the whole study")
    try:
        names = [name for name, _ in budgets(entry, spec)]
    except UserError as error:
        raise UserError(f"key '{key if given else 'target'}': {error}") from None
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        words = repeated[0].removeprefix("eps=").removeprefix("sigma=")
        raise UserError(f"key '{key}' has the budget {words} more than once; valid is each budget once")


def _check_mechanism(entry: Json, mechanism: Json, engines: set[str], key: str) -> None:
    """Refuse what no accountant could speak for, or the trainer could not carry out.

    With ``accounting_note`` a study owns up to a sampler or unit that its accountant does not assume.
    """
    step = Mechanism(**{field: mechanism[field] for field in Mechanism.__dataclass_fields__})
    try:
        for engine in sorted(engines):
            check_step(step, engine)
        if step.noise != "none":
            check_noise(mechanism["accountant"], step)
    except UserError as error:
        raise UserError(f"key '{key}': {error}") from None
    if "target" in mechanism:
        _check_target(step, mechanism["target"]["neighbours"], key)
    if step.noise != "none" and "accounting_note" not in entry:
        try:
            check_mechanism(mechanism["accountant"], step)
        except UserError as error:
            reason = str(error).rstrip(".")
            raise UserError(f"key '{key}': {reason} (or say in accounting_note why it is done)") from None


def _check_target(step: Mechanism, neighbours: str, key: str) -> None:
    """Refuse a limit on what no noise limits."""
    from dp_leakage.privacy.accounting.proven import proves

    words = f"{neighbours} neighbours, between which attacks choose in this study"
    complaint = f"key '{key}.target' asks for a limit, but the mechanism proves none for {words}"
    _require(proves(step, neighbours), complaint)


# ---------------------------------------------------------------------- attacks
def _check_attacks(study: Study) -> None:
    spec = study.spec
    for name, settings in spec["attacks"].items():
        _known(name, ATTACKS, f"attacks.{name}")
        entry = ATTACKS[name]
        for key, value in settings.items():
            _known(key, entry.settings, f"attacks.{name}.{key}")
            _check_kind(value, entry.kinds[key], f"attacks.{name}.{key}")
        by_coins = study.design == COINS and entry.needs == "reference"
        complaint = f"key '{entry.needs}' is missing; attack {name} needs {entry.needs} models"
        _require(entry.needs is None or by_coins or entry.needs in spec, complaint)
        resolved = entry.settings | settings
        roles = (*entry.roles, *([resolved["auxiliary"]] if "auxiliary" in resolved else []))
        for dataset, role in product(spec["datasets"], roles):
            if name not in study.attacks_on(dataset):
                continue
            role = population_role(spec["datasets"][dataset]["roles"]) if role == REFERENCE_POOL else role
            complaint = f"key 'datasets.{dataset}.roles' lacks the role '{role}'; attack {name} needs its records"
            _require(role in spec["datasets"][dataset]["roles"], complaint)
        for dataset in spec["datasets"] if entry.family == "attribute" else []:
            components, features = _components(spec, dataset), resolved.get("features", 0)
            if components is not None and name in study.attacks_on(dataset):
                words = f"valid is up to the {components} components of data set {dataset}"
                _require(features <= components, f"key 'attacks.{name}.features' is {features}; {words}")
    for role, dataset in product(AUXILIARY, spec["datasets"]):
        if role in spec and ("attacks" not in spec["datasets"][dataset] or _needed(study, role, dataset)):
            _check_auxiliary(study, role, dataset)


def _needed(study: Study, role: str, dataset: str) -> bool:
    return any(ATTACKS[attack].needs == role for attack in study.attacks_on(dataset))


def _check_auxiliary(study: Study, role: str, dataset: str) -> None:
    """Shadow or reference models can draw their records, and leave some for the attacks that learn from them."""
    spec, auxiliary = study.spec, study.auxiliary_spec(dataset, role)
    trained = [key for key in ("count", "size", "pool") if key in auxiliary]
    if study.design == COINS and role == "reference":
        words = "does not apply to design coins, where the other repeats are the references; valid is defense"
        _require(not trained, f"key 'reference.{''.join(trained[:1])}' {words}")
        return
    for key in ("count", "size"):
        _require(key in auxiliary, f"key '{role}' lacks the key '{key}'; it is required")
    roles = spec["datasets"][dataset]["roles"]
    pool = auxiliary.get("pool", [f"{role}_pool"])
    for part in pool:
        words = f"which data set {dataset} does not have; {nearest(part, roles)}"
        _require(
            part in roles, f"key '{role}{'.pool' if 'pool' in auxiliary else ''}' draws from role {part!r}, {words}"
        )
    records, size = sum(roles[part] for part in pool), auxiliary["size"]
    words = f"the {records} records of {' and '.join(pool)} in data set {dataset}"
    _require(size <= records, f"key '{role}.size' is {size}; valid is at most {words}")
    attacks = {name: ATTACKS[name].settings | spec["attacks"][name] for name in study.attacks_on(dataset)}
    using = {name: settings for name, settings in attacks.items() if ATTACKS[name].needs == role}
    compared = TARGETS if role == "reference" else {"shadow_pool"}  # whose records some models must not have seen
    for name, settings in using.items():
        complaint = (
            f"key '{role}.size' is {size}, so that every model trains on all of {words}; attack {name} needs less"
        )
        _require(size < records or not compared & set(pool), complaint)
        if settings.get("online"):
            words = "valid is target_members and target_nonmembers among them"
            complaint = (
                f"key '{role}.pool' is {pool}, but attack {name} needs models trained with the target's records; "
            )
            _require(set(pool) >= TARGETS, complaint + words)


# ---------------------------------------------------------------------- cells
def _check_cells(study: Study) -> None:
    for cell in study.cells.values():
        place = f"{cell.dataset}/{cell.model}"
        complaint = f"key 'defenses': 'none' does not cover {place}, so that the loss of {cell.key} has no baseline"
        _require(f"{place}/none" in study.cells, complaint)
        _check_architecture(study.spec, cell)
        _check_answers(cell)
        _check_training(study.spec, cell)


def _check_tuning(study: Study) -> None:
    """The records set apart are there, and enough for the batches of every cell that is tuned."""
    if TUNE not in study.spec:
        return
    for cell in study.cells.values():
        roles = study.spec["datasets"][cell.dataset]["roles"]
        key = f"key 'datasets.{cell.dataset}.roles"
        _require(TUNING in roles, f"{key}' lacks the role '{TUNING}', on which key 'tune' tries learning rates")
        batch = cell.columns["batch_size"] * cell.columns["n_members"] / cell.columns["n_records"]
        words = f"valid is {ceil(FOLDS * batch)} or more, since half of them must fill a batch of {cell.model}"
        complaint = f"{key}.{TUNING}' is {roles[TUNING]}; {words}"
        _require(not cell.rates or roles[TUNING] // FOLDS >= batch, complaint)
    reached = any(cell.rates for cell in study.cells.values())
    _require(reached, "key 'tune' reaches no cell: each has a learning rate of its own, or is not trained here")


def _components(spec: Json, dataset: str) -> int | None:
    """How many features a data set has after its projection; None where the data alone tell."""
    return (spec["datasets"][dataset].get("projection") or {}).get("components")


def _check_architecture(spec: Json, cell: Cell) -> None:
    """Refuse a model that cannot take what its data set is projected to."""
    architecture, components = dict(cell.training["architecture"]), _components(spec, cell.dataset)
    if components is None or cell.training["engine"] != "ensemble":
        return
    try:
        build(architecture.pop("name"), (components,), 2, **architecture)
    except UserError as error:
        place = (
            f"key 'models.{cell.model}.architecture' (data set {cell.dataset}, projected to {components} components)"
        )
        raise UserError(f"{place}: {error}") from None


def _check_answers(cell: Cell) -> None:
    """Of engines that keep what models say nothing else can be asked, and no mechanism protects their training."""
    engine, mechanism = cell.training["engine"], cell.columns["mechanism"]
    if engine not in ENGINES:
        words = (
            f"key 'defenses' has {CLAIMED} for model {cell.model}, which this package trains; valid is engine estimator"
        )
        _require(mechanism != CLAIMED, words)
        return
    for attack in cell.parts:
        takes = attack in ATTACKS and ATTACKS[attack].reads == "models"
        _require(
            not takes, f"key 'attacks.{attack}' takes the models themselves; engine {engine} keeps what they say alone"
        )
    _require("audit" not in cell.parts, f"key 'audit' trains models with canaries, which engine {engine} cannot")
    known = ("none", CLAIMED) if engine == "estimator" else ("none",)
    words = f"key 'defenses' has {mechanism} for model {cell.model}; engine {engine} knows {' and '.join(known)} alone"
    _require(mechanism in known, words)
    words = f"key 'models.{cell.model}' lacks the key 'private', a class that takes epsilon; defense {CLAIMED} needs it"
    _require(mechanism != CLAIMED or "name" in cell.training["architecture"], words)
    given = engine in GIVEN and engine != "outputs"
    _require(
        not given or cell.training["repeats"] == 1, f"key 'repeats' is {cell.training['repeats']}; there is one model"
    )


def _check_training(spec: Json, cell: Cell) -> None:
    training, mechanism = cell.training["training"], cell.training["mechanism"] or {}
    members, size = cell.columns["n_records"], training["batch_size"]
    people = "members" if POOL not in spec["datasets"][cell.dataset]["roles"] else "records of the pool"
    try:
        TrainingSettings(**training)
    except UserError as error:
        raise UserError(f"key 'training' (of {cell.key}): {error}") from None
    if "projection_noise" in mechanism and mechanism["accountant"]:
        words = (
            f"(of {cell.key}) has noise for one record, but unit {mechanism['unit']!r} protects all records of a "
            "(sub)class together; valid is unit example, another method, or fit_on roles that no model trains on"
        )
        _require(not holds_groups(mechanism["unit"]), f"key 'datasets.{cell.dataset}.projection' {words}")
        try:
            check_projection(mechanism["accountant"], mechanism["projection_noise"])
        except UserError as error:
            raise UserError(f"key 'datasets.{cell.dataset}.projection' (of {cell.key}): {error}") from None
    words = f"valid is at most the {members} {people} of data set {cell.dataset}"
    _require(size <= members, f"key '{_origin(spec, cell, 'batch_size')}' is {size}; {words}")
    delta = mechanism.get("delta")
    if delta is not None and not holds_groups(mechanism["unit"]) and not cell.columns["accounting_note"]:
        words = f"valid is below 1/{members}, the δ of publishing one of data set {cell.dataset}'s {members} {people}"
        why = "(or say in accounting_note why it is more)"
        _require(delta < 1 / members, f"key 'delta' is {delta:g} (of {cell.key}); {words} {why}")
    if mechanism.get("rdp_sigma") == "authors_table" and mechanism["epsilon"] is not None:
        try:
            authors_sigma(mechanism["epsilon"], mechanism["delta"], training["epochs"], size, members)
        except UserError as error:
            reason = f"{str(error).rstrip('.')}; elsewhere calibrated_classic or calibrated_tight solve for σ"
            raise UserError(f"key 'rdp_sigma' is 'authors_table' ({cell.key}): {reason}") from None
    for role in AUXILIARY:
        if "size" in spec.get(role, {}) and spec[role].get("defense") == "same" and mechanism.get("accountant"):
            words = f"defense: same trains its models in batches of {size}; valid is that many records or more"
            _require(size <= spec[role]["size"], f"key '{role}.size' is {spec[role]['size']}, but {words}")


def _origin(spec: Json, cell: Cell, name: str) -> str:
    """The key that a cell has a value of its training from."""
    model, dataset = spec["models"][cell.model], spec["datasets"][cell.dataset].get("models", {}).get(cell.model, {})
    places = {
        f"datasets.{cell.dataset}.models.{cell.model}.training": dataset.get("training", {}),
        f"models.{cell.model}.training": model.get("training", {}),
        "training": spec["training"],
    }
    value, own = cell.training["training"][name], f"defenses.training.{name} (of {cell.defense})"
    return next((f"{key}.{name}" for key, place in places.items() if place.get(name) == value), own)


def _check_audit(study: Study) -> None:
    if study.bounded:
        _require("delta" in study.spec, "key 'delta' is missing; lower bounds on the ε of non-private cells need one")
    if not study.audited:
        return
    designs = study.spec["audit"]["designs"]
    for entry in study.spec["defenses"]:
        for name in entry.get("audits", []):
            _known(name, designs, "defenses.audits")
    for cell in study.cells.values():
        for name in cell.audits:
            _check_audit_design(study, cell, name)


def _check_audit_design(study: Study, cell: Cell, name: str) -> None:
    """A design of audit fits the cell, and can show what the cell claims."""
    design, key = study.audit_design(cell, name), f"audit.designs.{name}"
    mechanism, where = cell.training["mechanism"] or {}, f"for {cell.defense}"
    records = study.spec["datasets"][cell.dataset]["roles"]
    gradient, watched = design["canary"] == "gradient", design["score"] == "white_box"
    paired = ["target_nonmembers"] if design["canary"] in ("natural", "mislabelled") else []
    most = min(records[role] for role in (trained_role(records), *paired))
    _require(
        design["canaries"] <= most,
        f"key '{key}.canaries' is {design['canaries']}; valid is up to the {most} records of data set {cell.dataset}",
    )
    _require(
        design["design"] == "one_run" or design["canaries"] == 1, f"key '{key}.canaries' must be 1 but for one_run"
    )
    coins = design["models"] * design["canaries"]
    _require(coins >= 4, f"key '{key}' has {coins} coins; valid is 4 or more, of all models and canaries together")
    vmf, presence, own = mechanism.get("noise") == "vmf", design["relation"] == "presence", design["claim"] == "own"
    groups, feature = mechanism.get("unit", "example") != "example", design["canary"] == "feature"
    special = watched or presence or design["start"] == "trained"
    refused = {
        "canary' is gradient, which only a score of white_box sees": gradient and not watched,
        f"canary' is gradient, which needs one example as the unit, {where}": gradient and groups,
        f"canary' is feature, which directional noise cannot have, {where}": vmf and feature,
        f"relation' is presence, which noise around single directions does not protect, {where}": vmf
        and presence
        and mechanism["block"] != "sum",
        "score', presence or a trained start needs engine ensemble": cell.training["engine"] != "ensemble" and special,
        f"bug' plants a mistake in Gaussian noise on examples, {where} there is none": bool(design["bug"])
        and (mechanism.get("noise") != "gaussian" or groups),
        f"claim' is own, but {where} no mechanism claims a curve": own and not mechanism,
    }
    for complaint, wrong in refused.items():
        _require(not wrong, f"key '{key}.{complaint}")
    if design["beyond_reach"] == "refuse" and design["bug"] is None:
        _check_reach(study, cell, name, design, coins)


def _check_reach(study: Study, cell: Cell, name: str, design: Json, coins: int) -> None:
    """Refuses a design that could not show the cell's claim even with perfect scores."""
    claimed = cell.columns["epsilon"]
    unsampled = (cell.training["mechanism"] or {}).get("sampler") == "shuffle"
    if claimed is None or (design["claim"] == "own" and not unsampled):
        return  # an own curve takes an accountant: step ``measure`` says what it reaches
    from dp_leakage.audits import CONFIDENCE, approximate_dp, gaussian_dp
    from dp_leakage.audits.designs import shortfall

    claim = (approximate_dp if design["claim"] == "approximate" else gaussian_dp)(cell.columns["delta"])
    found = shortfall(claimed, design["design"], coins, claim, study.bounds_together, design["share"], CONFIDENCE)
    _require(
        found is None,
        f"key 'audit.designs.{name}' {found} (defense {cell.defense}); key 'beyond_reach: mark' trains it all the same",
    )


# ---------------------------------------------------------------------- figures
def _check_figure(study: Study, name: str, cells: list[Cell]) -> None:
    """A figure's words are known, and it draws something.

    Args:
        study: the study.
        name: of the figure.
        cells: those whose values it may select.
    """
    spec, figure, key = study.spec, study.spec["figures"][name], f"figures.{name}"
    _known(figure["kind"], FIGURES, f"{key}.kind")
    if FIGURES[figure["kind"]].needs == TIMING:
        _require("timing" in spec, f"key 'timing' is missing; figure {name} shows how long training takes")
    parts = figure.get("parts", [TRAINING, *spec["attacks"], *study.bounded])
    for part in parts:
        _known(part, [TRAINING, *spec["attacks"], *study.bounded], f"{key}.parts")
    for column, values in figure.get("select", {}).items():
        _known(column, cells[0].columns, f"{key}.select")
        for value in values:
            _known(value, dict.fromkeys(cell.columns[column] for cell in cells), f"{key}.select.{column}")
    drawn = study.figure_cells(name)
    complaint = f"key '{key}.parts' leaves nothing to draw: no cell of the figure has any of {', '.join(parts) or 'it'}"
    _require(any(study.figure_parts(name, cell) for cell in drawn), complaint)
    defaults = {**COMMON, **FIGURES[figure["kind"]].settings}
    for setting, value in figure.get("settings", {}).items():
        _known(setting, defaults, f"{key}.settings")
        _check_kind(value, FIGURES[figure["kind"]].kinds[setting], f"{key}.settings.{setting}")
        for word in [value] if isinstance(value, str) else value or [] if isinstance(value, list) else []:
            if setting in ("attack", "attacks", "exposed_by"):
                attacked = [part for part in parts if part in spec["attacks"]]
                _known(word, [*attacked, STRONGEST] if attacked else [], f"{key}.settings.{setting}")
            if setting in ("dataset", "model", "defense"):
                _known(word, dict.fromkeys(cell.columns[setting] for cell in drawn), f"{key}.settings.{setting}")
