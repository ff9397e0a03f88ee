"""Checks of a study's inputs: names, printed results, design, data sets and models."""

import csv
import re
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

from dp_leakage.attacks import ATTACKS, LEARNED, OF_PERSON
from dp_leakage.common.config import Json, merged
from dp_leakage.common.dates import day
from dp_leakage.common.errors import UserError, nearest
from dp_leakage.common.identity import identity
from dp_leakage.common.names import check_name
from dp_leakage.common.paths import is_file, user_path
from dp_leakage.data import count
from dp_leakage.data.projection_settings import HIDDEN, ProjectionSettings
from dp_leakage.data.projection_settings import LEARNED as LEARNED_FEATURES
from dp_leakage.data.roles import MEMBERS, OUTSIDERS, POOL, SHADOW_POOL
from dp_leakage.engines import ENGINES, TRAINERS
from dp_leakage.engines import FILES as EXISTING
from dp_leakage.models.architectures import ARCHITECTURES, build, check_settings, is_import_path
from dp_leakage.models.features import kept_layers
from dp_leakage.privacy.accounting.rules import ACCOUNTANTS
from dp_leakage.privacy.mechanism import PERSON
from dp_leakage.privacy.protection import Protection
from dp_leakage.provenance.fingerprint import worked_out
from dp_leakage.study import COINS, SPLIT, TIMING, Study
from dp_leakage.study.checks.complaints import check_known, require
from dp_leakage.study.contents import known
from dp_leakage.study.protocol import (
    attacks_on,
    auxiliary_spec,
    by_person,
    design_of,
    public_source,
    public_training,
    source_of,
    way_of_person,
)
from dp_leakage.study.release_grid import release_grid
from dp_leakage.study.steps import AUXILIARY
from dp_leakage.study.steps.data import source_content
from dp_leakage.training.settings import TrainingSettings

PUBLISHED = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*\.csv")
# The columns of a table of printed results.
COLUMNS = (
    "paper", "artefact", "dataset", "model", "mechanism", "epsilon", "delta", "setting", "metric", "value", "stderr",
)  # fmt: skip

SHAPES = ((3, 64, 64), (64,))  # of an image, and of a row of numbers


def check_looks(spec: Json) -> None:
    """Check that planned looks ascend, and that the study is one of them."""
    looks, repeats = spec.get("looks", [spec["repeats"]]), spec["repeats"]
    planned = ", ".join(map(str, looks))
    complaint = f"key 'looks' is {planned}; expected numbers of repeats in ascending order"
    require(all(few < many for few, many in pairwise(looks)), complaint)
    words = f"key 'repeats' is {repeats}, which is not a planned look; expected one of 'looks', {planned}"
    require(repeats in looks, words)


def check_names(spec: Json) -> None:
    """Check that names of folders and targets are valid."""
    check_name(spec["study"], "key 'study'")
    for key in ("datasets", "models", "figures"):
        for name in spec[key]:
            check_name(name, f"key '{key}'")


def check_published(spec: Json, folder: Path) -> None:
    """Check that printed results are a table in the study's own folder with the columns that figures read."""
    name = spec.get("published")
    if name is None:
        return
    words = f"key 'published' is {name!r}; expected the name of a file in {folder}"
    require(PUBLISHED.fullmatch(name) is not None, words)
    files = [path.name for path in folder.glob("*.csv") if path.resolve().parent == folder.resolve()]
    require(name in files, f"{words}; {nearest(name, files)}")
    with (folder / name).open(encoding="utf-8", errors="replace", newline="") as file:
        columns = next(csv.reader(file), [])
    missing = [column for column in COLUMNS if column not in columns]
    require(not missing, f"key 'published': {folder / name} lacks the column {missing[0]!r}" if missing else "")


def check_release(study: Study) -> None:
    """Check that a release's expiry is a date, and that every training it may draw is possible.

    The release itself checks whether the date has passed, and a cell that only the command names.
    """
    wanted = study.spec.get("release", {})
    expires = wanted.get("expires")
    words = f"key 'release.expires' is {expires!r}; expected a day as YYYY-MM-DD, after the day of release"
    require(expires is None or day(expires) is not None, words)
    trained = [cell for cell in study.cells.values() if cell.training["engine"] in TRAINERS]
    private = [cell for cell in trained if cell.protection is not None]
    named = [cell for cell in private if wanted.get("cell") in (None, cell.key, f"{cell.model}/{cell.defense}")]
    for cell in named[:1]:
        release_grid(cell.training, wanted)


def check_design(study: Study) -> None:
    """Check that roles and attacks fit the study's design."""
    wanted, other = (POOL, MEMBERS) if design_of(study.spec) == COINS else (MEMBERS, POOL)
    for name, dataset in study.spec["datasets"].items():
        key = f"datasets.{name}"
        require(wanted in dataset["roles"], f"key '{key}.roles' lacks the role '{wanted}', on which models train")
        words = f"valid in design {design_of(study.spec)} is {wanted}"
        require(other not in dataset["roles"], f"key '{key}.roles' has the role '{other}'; {words}")
        words = "copies of one record would be in and out at once; use design split"
        require(
            design_of(study.spec) == SPLIT or "augment" not in dataset,
            f"key '{key}.augment' is set in design coins: {words}",
        )
    if design_of(study.spec) == SPLIT:
        return
    words = "each record needs repeats that it is in and others that it is out of; use 2 or more"
    require(study.spec["repeats"] > 1, f"key 'repeats' is 1, but {words}")
    _check_shadow_pool(study)
    for attack in study.spec["attacks"]:
        family = ATTACKS[attack].family if attack in ATTACKS else "membership"
        words = f"key 'attacks.{attack}' needs fixed members; design coins has attacks on membership and attributes"
        require(family in ("membership", "attribute"), words)


def _check_shadow_pool(study: Study) -> None:
    """Check that records of shadow models are not withheld from the pool without any shadow model."""
    for name, dataset in study.spec["datasets"].items():
        fit_on = ProjectionSettings.read(dataset.get("projection")).fit_on
        attacks = [ATTACKS[attack] for attack in attacks_on(study.spec, name) if attack in ATTACKS]
        used = any(entry.needs == "shadow" or SHADOW_POOL in entry.roles for entry in attacks) or SHADOW_POOL in fit_on
        require(
            used or SHADOW_POOL not in dataset["roles"],
            f"key 'datasets.{name}.roles' has the role '{SHADOW_POOL}', which no attack uses; in design "
            f"coins, give its records to '{POOL}' or '{OUTSIDERS}'",
        )


def check_datasets(study: Study) -> None:
    """Check that each data set has a source, and that its models, attacks, roles and projection are known."""
    spec = study.spec
    for name, dataset in spec["datasets"].items():
        key = f"datasets.{name}"
        try:
            source_of(study.spec, name)
        except UserError as error:
            raise UserError(f"key '{key}.source': {error}") from None
        for model in dataset.get("models", {}):
            check_known(model, spec["models"], f"{key}.models")
        for attack in dataset.get("attacks", []):
            check_known(attack, spec["attacks"], f"{key}.attacks")
        projection = ProjectionSettings.read(dataset.get("projection"))
        fit_on = projection.fit_on
        for role in fit_on if isinstance(fit_on, list) else []:
            check_known(role, dataset["roles"], f"{key}.projection.fit_on")
        if fit_on != "all" and POOL not in dataset["roles"] and OUTSIDERS in fit_on and MEMBERS not in fit_on:
            words = "leave it out, or name target_members too"
            told = f"has target_nonmembers without target_members, so the projection reveals the members; {words}"
            raise UserError(f"key '{key}.projection.fit_on' {told}")
        fitted = sum(dataset["roles"].values())
        if (projection.components or 0) > fitted:
            words = f"expected up to the {fitted} records of its roles"
            raise UserError(f"key '{key}.projection.components' is {projection.components}; {words}")
        for chosen, part in projection.missing:
            raise UserError(f"key '{key}.projection' lacks the key '{part}'; {chosen} needs it")
        if projection.learned_on is not None:
            _check_learning(spec, name, projection)


def _keeps(architecture: Json, layers: str) -> bool:
    """Return whether a network has layers that compute features, as far as known before the records' shape."""
    found = []
    for shape in SHAPES:
        try:
            found.append(kept_layers(build(input_shape=shape, n_classes=2, **architecture), shape, layers) > 0)
        except UserError:  # a network of other records
            continue
    return any(found) or not found


def _check_learning(spec: Json, dataset: str, projection: ProjectionSettings) -> None:
    """Check that the network of learned features can be trained, on records outside the study."""
    key, learned = f"datasets.{dataset}.projection.learned_on", projection.learned_on
    words = f"key '{key}' is given, but 'features' is not '{LEARNED_FEATURES}'; use both or neither"
    require(projection.learns, words)
    try:
        public = public_source(spec, dataset)
    except UserError as error:
        raise UserError(f"key '{key}.source': {error}") from None
    complaint = f"key '{key}.source' is the study's own data set; use another, whose records are public"
    require(public != source_of(spec, dataset), complaint)
    name = learned["architecture"]["name"]
    require(not is_import_path(name), f"key '{key}.architecture.name' is {name!r}; expected a built-in architecture")
    _check_named("ensemble", learned["architecture"], f"{key}.architecture")
    layers = learned.get("layers", HIDDEN)
    words = f"key '{key}.layers' is '{layers}', of which the architecture {name} has none"
    require(_keeps(learned["architecture"], layers), words)
    try:
        TrainingSettings(**public_training(learned))
    except UserError as error:
        raise UserError(f"key '{key}.training': {error}") from None


def check_sizes(study: Study) -> None:
    """Check that the user's files, or a bundled set, have enough records or people for the roles.

    This reads a column of each new file, so it is only done for runs of the study.
    """
    for name, dataset in study.spec["datasets"].items():
        source, key = source_of(study.spec, name), f"study {study.target}: key 'datasets.{name}"
        if dataset.get("augment"):
            continue
        content = source_content(study, f"datasets.{name}.source", source)
        try:
            there = _counted(source, content)
        except UserError as error:
            raise UserError(f"{key}.source': {error}") from None
        wanted, what = sum(dataset["roles"].values()), "persons" if by_person(study.spec, name) else "records"
        if there is not None and wanted > there:
            raise UserError(
                f"{key}.roles' asks for {wanted:,} {what} in all; expected up to {there:,}, all that there are"
            )


def _counted(source: Json, content: str | None) -> int | None:
    """Return `count` of a source, cached by content. Raises UserError as `count` does."""
    found: int | None = worked_out(f"count {identity({**source, 'content': content})}", lambda: count(source))
    return found


def check_persons(study: Study) -> None:
    """Restrict studies of people to membership attacks, and to steps that can count people."""
    for name, dataset in study.spec["datasets"].items():
        if not by_person(study.spec, name):
            continue
        given = "person" if "person" in dataset["source"] else "copies"
        key = f"key 'datasets.{name}.source.{given}'"
        words = f"{key} says whose each record is; valid"
        for other in ("stratified", "official_split", "augment"):
            complaint = f"{words} is no {other}, since a person's records stay together in one role"
            require(not dataset.get(other), complaint)
        for attack in attacks_on(study.spec, name):
            entry = ATTACKS.get(attack)
            membership = entry is None or (
                entry.family == "membership" and entry.needs != "shadow" and entry.reads != "models"
            )
            require(
                membership,
                f"{words} are membership attacks without shadow models and on answers alone; leave out attack {attack}",
            )
            if entry is not None and way_of_person(study.spec, attack) == LEARNED:
                _check_learned(study, name, attack)
        timed = any(figure["kind"] == TIMING for figure in study.spec["figures"].values())
        require(not timed, f"{words} are figures of another kind than {TIMING}, which times single records")
        require(
            not ProjectionSettings.read(dataset.get("projection")).private,
            f"{words} is a projection without noise of its own, which hides one record",
        )
    for cell in study.cells.values():
        asked, step = cell.protection, cell.step
        known, person = by_person(study.spec, cell.dataset), step is not None and step.unit == PERSON
        words = f"key 'datasets.{cell.dataset}.source' lacks the key 'person', which says whose each record is"
        require(known or not person, f"{words}; defense {cell.columns['mechanism']} needs it")
        if not known:
            continue
        place = f"key 'defenses' has {cell.defense} for data set {cell.dataset}, whose units are persons"
        single = not person and cell.noisy
        target = single and asked is not None and asked.target is not None
        require(not target, f"{place}; a target needs defense person")
        sampled = step is None or step.sampler in ("poisson", "shuffle")
        require(not single or sampled, f"{place}; single records need sampler poisson or shuffle")
        require(step is None or step.unit in ("example", PERSON), f"{place}; use unit example or person")
        words = f"key 'models.{cell.model}.engine' is {cell.training['engine']}; people need ensemble"
        require(cell.training["engine"] == "ensemble", words)
        if asked is not None and person:
            _check_person_unit(asked, design_of(study.spec), place)
        complaint = f"{place}, and audits it; an audit, whose canaries are people, needs defense person or none"
        require(not (single and cell.audits), complaint)


def _check_person_unit(protection: Protection, design: str, place: str) -> None:
    """Refuse accountants that papers define for single records, and an ε for other units than the included ones."""
    proving = [name for name, rules in ACCOUNTANTS.items() if rules.claim != "as_printed" and rules.noise == "gaussian"]
    words = f"accountant {protection.accountant} is only for single records; use {', '.join(proving)}"
    require(protection.accountant in ("", *proving), f"{place}; {words}")
    words = "sampler wor has an ε for one person in place of another, and coins leave persons out"
    require(design == SPLIT or protection.step.sampler != "wor", f"{place}; {words}; use poisson or shuffle")


def _check_learned(study: Study, dataset: str, attack: str) -> None:
    """Check that the attacker has models with known members."""
    key, compares = f"key 'attacks.{attack}.{OF_PERSON}' is '{LEARNED}'", ATTACKS[attack].needs == "reference"
    if design_of(study.spec) == SPLIT:
        pool = set(auxiliary_spec(study.spec, dataset, "reference").get("pool", []))
        words = "use an attack with reference models of target_members and target_nonmembers"
        require(compares and not ATTACKS[attack].learns and pool >= {MEMBERS, OUTSIDERS}, f"{key}; {words}")
        return
    repeats = min(cell.training["repeats"] for cell in study.cells.values() if cell.dataset == dataset)
    least = 3 if compares else 2
    words = f"which needs at least {least} repeats; a cell has {repeats}"
    require(repeats >= least, f"{key}, {words}")


def check_models(spec: Json) -> None:
    """Check that each architecture is known to its engine."""
    for name, model in spec["models"].items():
        for key, changed in _as_changed(spec, name, model):
            _check_named(changed.get("engine", "ensemble"), changed["architecture"], key)
    for role in AUXILIARY:
        own = spec.get(role, {})
        if "engine" in own and "architecture" in own:
            _check_named(own["engine"], own["architecture"], f"{role}.architecture")


def _check_named(engine: str, architecture: Json, key: str) -> None:
    """Check that the engine knows the architecture."""
    if engine in ENGINES:
        _check_engine(engine, architecture, key)
        return
    if is_import_path(architecture["name"]):
        module, _, what = str(architecture["name"]).partition(":")
        complaint = f"key '{key}.name' is {architecture['name']!r}; expected a path such as 'my_models:Net'"
        require(bool(module and what), complaint)
        return
    check_known(architecture["name"], ARCHITECTURES, f"{key}.name")
    try:
        check_settings(architecture["name"], {k: v for k, v in architecture.items() if k != "name"})
    except UserError as error:
        raise UserError(f"key '{key}': {error}") from None


def _check_engine(engine: str, architecture: Json, key: str) -> None:
    """Check that everything named by an engine's architecture exists, as far as possible without importing it."""
    valid = {"outputs": ("name", "of"), "onnx": ("name",)}.get(engine)
    for given in architecture:
        require(valid is None or given in valid, f"key '{key}.{given}' does not apply to engine {engine}; valid: name")
    if engine in ("module", "estimator"):
        module, _, what = str(architecture["name"]).partition(":")
        complaint = f"key '{key}.name' is {architecture['name']!r}; expected a path such as 'sklearn.svm:SVC'"
        require(bool(module and what), complaint)
    for part in EXISTING[engine]:
        needed = part != "of"
        require(part in architecture or not needed, f"key '{key}' lacks the key '{part}'; engine {engine} needs it")
        if part in architecture:
            file = user_path(str(architecture[part]))
            require(
                is_file(file) or known(str(architecture[part])) is not None,
                f"key '{key}.{part}' is {architecture[part]!r}; expected a file",
            )


def _as_changed(spec: Json, name: str, model: Json) -> Iterable[tuple[str, Json]]:
    """Return a model, and its changed form on each data set, with the key of each architecture."""
    yield f"models.{name}.architecture", model
    for dataset, found in spec["datasets"].items():
        if name in found.get("models", {}):
            yield f"datasets.{dataset}.models.{name}.architecture", merged(model, found["models"][name])
