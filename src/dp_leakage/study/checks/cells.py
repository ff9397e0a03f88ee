"""Checks of each cell: consistency of its model, defense, data set and training settings."""

from importlib import import_module
from math import ceil

from dp_leakage.attacks import ATTACKS
from dp_leakage.common.config import Json
from dp_leakage.common.errors import UserError
from dp_leakage.common.user_code import FILES
from dp_leakage.data.roles import POOL, TUNING
from dp_leakage.engines import ENGINES, GIVEN, OPACUS, TRAINERS
from dp_leakage.models.architectures import build, is_import_path
from dp_leakage.privacy.accounting.case import check_projection, check_share
from dp_leakage.privacy.accounting.printed import authors_sigma
from dp_leakage.privacy.defenses import (
    CLAIMED,
)
from dp_leakage.privacy.mechanism import holds_groups
from dp_leakage.privacy.mechanisms import MECHANISMS
from dp_leakage.privacy.training import steps_per_epoch
from dp_leakage.study import TUNE, Cell, Study
from dp_leakage.study.checks.complaints import require
from dp_leakage.study.protocol import traced, training_of
from dp_leakage.study.steps import AUXILIARY
from dp_leakage.training.opacus_support import check_opacus
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.tuning import FOLDS, same_steps


def check_cells(study: Study) -> None:
    """Check that each cell has a baseline, and that its model, engine and training settings fit together."""
    for cell in study.cells.values():
        place = f"{cell.dataset}/{cell.model}"
        complaint = f"key 'defenses': {place} has no defense 'none', so the loss of {cell.key} has no baseline"
        require(f"{place}/none" in study.cells, complaint)
        _check_architecture(study.spec, cell)
        _check_answers(cell)
        _check_training(study, cell)
        _check_opacus(study, cell)


def _check_architecture(spec: Json, cell: Cell) -> None:
    """Refuse a model that cannot process the projected features of its data set."""
    architecture, components = dict(cell.training["architecture"]), components_of(spec, cell.dataset)
    if components is None or cell.training["engine"] not in TRAINERS or is_import_path(architecture["name"]):
        return
    try:
        build(architecture.pop("name"), (components,), 2, **architecture)
    except UserError as error:
        place = (
            f"key 'models.{cell.model}.architecture' (data set {cell.dataset}, projected to {components} components)"
        )
        raise UserError(f"{place}: {error}") from None


def _check_answers(cell: Cell) -> None:
    """Refuse other attacks and mechanisms for engines that store only the models' outputs."""
    engine, mechanism = cell.training["engine"], cell.columns["mechanism"]
    if engine not in ENGINES:
        words = f"key 'defenses' has {CLAIMED} for model {cell.model}, which this package trains; use engine estimator"
        require(mechanism != CLAIMED, words)
        return
    for attack in cell.parts:
        reads = ATTACKS[attack].reads if attack in ATTACKS else "signals"
        asks = {
            "models": f"takes the models themselves; engine {engine} keeps only their outputs",
            "losses": f"reads the losses of every evaluated epoch; engine {engine} keeps only the end's outputs",
        }
        require(reads not in asks, f"key 'attacks.{attack}' {asks.get(reads)}")
    require("audit" not in cell.parts, f"key 'audit' trains models with canaries, which engine {engine} cannot")
    known = ("none", CLAIMED) if engine == "estimator" else ("none",)
    words = f"key 'defenses' has {mechanism} for model {cell.model}; engine {engine} knows {' and '.join(known)} alone"
    require(mechanism in known, words)
    words = f"key 'models.{cell.model}' lacks the key 'private', a class that takes epsilon; defense {CLAIMED} needs it"
    require(mechanism != CLAIMED or "name" in cell.training["architecture"], words)
    given = engine in GIVEN and engine != "outputs"
    require(
        not given or cell.training["repeats"] == 1, f"key 'repeats' is {cell.training['repeats']}; there is one model"
    )


def _check_opacus(study: Study, cell: Cell) -> None:
    """Refuse what engine ``opacus`` does not train."""
    roles = [role for role in AUXILIARY if study.spec.get(role, {}).get("engine") == OPACUS]
    if cell.training["engine"] != OPACUS and not roles:
        return
    place = f"key 'models.{cell.model}.engine' is 'opacus' (of {cell.key})" if not roles else f"key '{roles[0]}.engine'"
    require(not cell.audits, f"{place}, which trains no models with canaries. Remove key 'audit'")
    require(not cell.rates, f"{place}, for which step tune tries no learning rates. Remove key 'tune'")
    try:
        check_opacus(TrainingSettings(**cell.training["training"]), cell.step)
    except UserError as error:
        raise UserError(f"{place}: {error}") from None


def _check_training(study: Study, cell: Cell) -> None:
    spec, asked = study.spec, cell.protection
    own = cell.training["engine"]
    engines = {own, *(spec[role].get("engine", own) for role in AUXILIARY if role in spec)} - {*GIVEN, "estimator"}
    if not engines:
        return
    engine = own if own in engines else min(engines)
    require("training" in spec, f"key 'training' is missing; engine {engine} trains by it")
    training = cell.training["training"] or training_of(study.spec, cell.dataset, cell.model, engine)
    for attack in traced(study.spec, cell.dataset):
        epochs, every = training["epochs"], training["evaluate_every"]
        place = f"key 'training.evaluate_every' (of {cell.key}) is {every} of {epochs} epochs"
        words = f"attack {attack} reads the losses of two evaluated epochs or more; expected up to {epochs - 1}"
        require(every < epochs, f"{place}; {words}")
    members, size = cell.columns["n_records"], training["batch_size"]
    people = "members" if POOL not in spec["datasets"][cell.dataset]["roles"] else "records of the pool"
    try:
        TrainingSettings(**training)
    except UserError as error:
        raise UserError(f"key 'training' (of {cell.key}): {error}") from None
    words = f"key '{_origin(spec, cell, 'views', training.get('views'))}' cannot be used in a cell with an audit; "
    require(
        training.get("views") is None or not cell.audits,
        words + f"remove it, or give defense {cell.defense} the key audits: []",
    )
    if asked is not None and asked.projection_noise is not None and asked.accountant:
        words = (
            f"(of {cell.key}) has noise for one record, but unit {asked.step.unit!r} protects all records of a "
            "(sub)class together; use unit example, a method without noise, or fit_on with roles that no attack queries"
        )
        require(not holds_groups(asked.step.unit), f"key 'datasets.{cell.dataset}.projection' {words}")
        try:
            check_projection(asked.accountant, asked.projection_noise)
            if asked.epsilon is not None and asked.delta is not None:
                check_share(asked.projection_noise, asked.epsilon, asked.delta)
        except UserError as error:
            raise UserError(f"key 'datasets.{cell.dataset}.projection' (of {cell.key}): {error}") from None
    words = f"expected at most the {members} {people} of data set {cell.dataset}"
    require(size <= members, f"key '{_origin(spec, cell, 'batch_size', size)}' is {size}; {words}")
    k_sub = cell.columns["k_sub"]
    require(k_sub <= members, f"key 'defenses.k_sub' is {k_sub} (of {cell.defense}), subclasses of each class; {words}")
    _check_steps(cell, steps_per_epoch(size, members), "")
    delta = None if asked is None else asked.delta
    noted = cell.columns["accounting_note"]
    if asked is not None and delta is not None and not holds_groups(asked.step.unit) and not noted:
        words = f"expected below 1/{members}, the δ of publishing one of data set {cell.dataset}'s {members} {people}"
        why = "(or say in accounting_note why it is more)"
        require(delta < 1 / members, f"key 'delta' is {delta:g} (of {cell.key}); {words} {why}")
    if asked is not None and asked.rdp_sigma == "authors_table" and asked.epsilon is not None and delta is not None:
        try:
            authors_sigma(asked.epsilon, delta, training["epochs"], size, members)
        except UserError as error:
            reason = f"{str(error).rstrip('.')}; elsewhere calibrated_classic or calibrated_tight solve for σ"
            raise UserError(f"key 'rdp_sigma' is 'authors_table' ({cell.key}): {reason}") from None
    for role in AUXILIARY:
        if "size" in spec.get(role, {}) and spec[role].get("defense") == "same" and cell.noisy:
            words = f"defense: same trains its models in batches of {size}; use that many records or more"
            require(size <= spec[role]["size"], f"key '{role}.size' is {spec[role]['size']}, but {words}")
            _check_steps(cell, steps_per_epoch(size, spec[role]["size"]), f"{role} models of ")


def _check_steps(cell: Cell, steps: int, whose: str) -> None:
    """Refuse settings of a mechanism's own noise that do not suit this number of steps per epoch.

    A plugin's file is not run while planning.
    """
    step = cell.step
    module = "" if step is None else MECHANISMS[cell.columns["mechanism"]].module
    if step is None or not module or module in FILES or not hasattr(own := import_module(module), "check"):
        return
    try:
        own.check(step.settings, steps)
    except UserError as error:
        raise UserError(f"key 'defenses' ({whose}{cell.key}): {error}") from None


def _origin(spec: Json, cell: Cell, name: str, value: object) -> str:
    """Return the key that sets one value of a cell's training."""
    model, dataset = spec["models"][cell.model], spec["datasets"][cell.dataset].get("models", {}).get(cell.model, {})
    places = {
        f"datasets.{cell.dataset}.models.{cell.model}.training": dataset.get("training", {}),
        f"models.{cell.model}.training": model.get("training", {}),
        "training": spec["training"],
    }
    own = f"defenses.training.{name} (of {cell.defense})"
    return next((f"{key}.{name}" for key, place in places.items() if place.get(name) == value), own)


def check_tuning(study: Study) -> None:
    """Check that records are set apart for tuning, enough for the batches of every tuned cell."""
    if TUNE not in study.spec:
        for name, dataset in study.spec["datasets"].items():
            words = f"key 'datasets.{name}.roles' has the role '{TUNING}', which the missing key 'tune' would use"
            require(TUNING not in dataset["roles"], f"{words}; add that key, or leave out the role")
        return
    for cell in study.cells.values():
        roles = study.spec["datasets"][cell.dataset]["roles"]
        key = f"key 'datasets.{cell.dataset}.roles"
        require(TUNING in roles, f"{key}' lacks the role '{TUNING}', on which key 'tune' tries learning rates")
        if not cell.rates:
            continue
        batch = cell.columns["batch_size"] * cell.columns["n_members"] / cell.columns["n_records"]
        words = f"expected {ceil(FOLDS * batch)} or more, since half of them must fill a batch of {cell.model}"
        complaint = f"{key}.{TUNING}' is {roles[TUNING]}; {words}"
        available = roles[TUNING] // FOLDS
        require(available >= batch, complaint)
        sizes = {"records": cell.columns["n_records"], "members": cell.columns["n_members"]}
        tried = same_steps(TrainingSettings(**cell.training["training"]), **sizes, available=available)
        steps = steps_per_epoch(tried.batch_size, available)
        _check_steps(cell, steps, f"trials on {available} records of role '{TUNING}' for ")
    reached = any(cell.rates for cell in study.cells.values())
    require(reached, "key 'tune' reaches no cell: each has a learning rate of its own, or is not trained here")


def components_of(spec: Json, dataset: str) -> int | None:
    """Return the number of features after a data set's projection; None if it depends on the data."""
    return (spec["datasets"][dataset].get("projection") or {}).get("components")
