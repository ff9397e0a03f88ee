"""Checks of measurements on the trained models: attacks, audits and figures."""

from itertools import product

from dp_leakage.attacks import ATTACKS, GRADIENTS, OF_PERSON, STRONGEST
from dp_leakage.common.config import Json
from dp_leakage.common.errors import UserError, nearest
from dp_leakage.data.audit_design import AuditDesign
from dp_leakage.data.canaries import PAIRED
from dp_leakage.data.groups import RECORDS
from dp_leakage.data.roles import MEMBERS, REFERENCE_POOL, population_role, trained_role
from dp_leakage.engines import ENGINES, GIVEN
from dp_leakage.figures import FIGURES
from dp_leakage.privacy.mechanism import PERSON
from dp_leakage.study import AUDIT, COINS, GROUPS, TIMING, Cell, Study
from dp_leakage.study.cells import audit_design
from dp_leakage.study.checks.cells import components_of
from dp_leakage.study.checks.complaints import check_known, require
from dp_leakage.study.protocol import (
    STRUCTURE,
    attacks_on,
    auxiliary_spec,
    bounded,
    by_coins,
    by_person,
    design_of,
    keyed,
    model_spec,
    settings_of_attack,
    source_of,
    training_of,
)
from dp_leakage.study.steps import AUXILIARY
from dp_leakage.study.steps.parts import drawable, figure_cells, figure_parts
from dp_leakage.training.settings import TrainingSettings

CELLS = {"bounded": "lower bounds on ε (audits, or design coins)", "private": "noise"}  # of a kind of figure, in words
TARGETS = {MEMBERS, "target_nonmembers"}


def check_attacks(study: Study) -> None:
    """Check that each attack is known, and has its settings, auxiliary models and records."""
    spec = study.spec
    for name, settings in spec["attacks"].items():
        entry = ATTACKS[name]
        of_persons = OF_PERSON not in settings or any(by_person(spec, name) for name in spec["datasets"])
        words = f"key 'attacks.{name}.{OF_PERSON}' is about persons with several records"
        require(of_persons, f"{words}; no data set has a source with the key 'person', leave it out")
        complaint = f"key '{entry.needs}' is missing; attack {name} needs {entry.needs} models"
        require(entry.needs is None or by_coins(spec, name) or entry.needs in spec, complaint)
        resolved = settings_of_attack(study.spec, name)
        roles = (*entry.roles, *([resolved["auxiliary"]] if "auxiliary" in resolved else []))
        for dataset, role in product(spec["datasets"], roles):
            if name not in attacks_on(study.spec, dataset):
                continue
            role = population_role(spec["datasets"][dataset]["roles"]) if role == REFERENCE_POOL else role
            complaint = f"key 'datasets.{dataset}.roles' lacks the role '{role}'; attack {name} needs its records"
            require(role in spec["datasets"][dataset]["roles"], complaint)
        for dataset in spec["datasets"] if entry.family == GRADIENTS else []:
            if name in attacks_on(study.spec, dataset):
                _check_images(name, resolved, dataset, spec["datasets"][dataset]["roles"])
        for dataset in spec["datasets"] if entry.family == "attribute" else []:
            components, features = components_of(spec, dataset), resolved.get("features", 0)
            if components is not None and name in attacks_on(study.spec, dataset):
                words = f"expected up to the {components} components of data set {dataset}"
                require(features <= components, f"key 'attacks.{name}.features' is {features}; {words}")
    for role, dataset in product(AUXILIARY, spec["datasets"]):
        if role in spec and ("attacks" not in spec["datasets"][dataset] or _needed(study, role, dataset)):
            _check_auxiliary(study, role, dataset)


def _check_images(attack: str, settings: Json, dataset: str, roles: Json) -> None:
    """Check that there are enough members for the reconstructed images and other candidates, and that images fill
    whole batches.
    """
    count, batch, candidates = (settings.get(key) for key in ("images", "batch", "candidates"))
    if not isinstance(count, int) or MEMBERS not in roles:  # a plugin's may be anything
        return
    words, members = f"of role {MEMBERS} of data set {dataset}", roles[MEMBERS]
    require(count <= members, f"key 'attacks.{attack}.images' is {count}; expected up to the {members} {words}")
    for size in batch if isinstance(batch, list) else [batch]:
        divides = not isinstance(size, int) or count % size == 0
        require(divides, f"key 'attacks.{attack}.batch' is {size}; expected a divisor of its images, {count}")
    if isinstance(candidates, int):
        most = members - count + 1
        told = f"key 'attacks.{attack}.candidates' is {candidates}; expected up to {most}, of the {members} {words}"
        require(candidates <= most, told)


def _needed(study: Study, role: str, dataset: str) -> bool:
    return any(ATTACKS[attack].needs == role for attack in attacks_on(study.spec, dataset))


def _check_auxiliary(study: Study, role: str, dataset: str) -> None:
    """Check that shadow or reference models have enough records, and leave some out for attacks that need them."""
    spec, auxiliary = study.spec, auxiliary_spec(study.spec, dataset, role)
    trained = [key for key in ("count", "size", "pool", "training") if key in auxiliary]
    if design_of(study.spec) == COINS and role == "reference":
        words = "does not apply to design coins, where the other repeats are the references; use the key defense alone"
        require(not trained, f"key 'reference.{''.join(trained[:1])}' {words}")
        return
    for key in ("count", "size"):
        require(key in auxiliary, f"key '{role}' lacks the key '{key}'; it is required")
    roles = spec["datasets"][dataset]["roles"]
    pool = auxiliary.get("pool", [f"{role}_pool"])
    for part in pool:
        words = f"which data set {dataset} does not have; {nearest(part, roles)}"
        require(
            part in roles, f"key '{role}{'.pool' if 'pool' in auxiliary else ''}' draws from role {part!r}, {words}"
        )
    records, size = sum(roles[part] for part in pool), auxiliary["size"]
    words = f"the {records} records of {' and '.join(pool)} in data set {dataset}"
    require(size <= records, f"key '{role}.size' is {size}; expected at most {words}")
    for model in spec["models"]:
        _check_auxiliary_training(spec, role, dataset, model)
    if by_person(study.spec, dataset):
        half = f"expected half of the {records} persons of {' and '.join(pool)} in data set {dataset}"
        require(2 * size == records, f"key '{role}.size' is {size}; {half}")
        require(
            "engine" not in auxiliary,
            f"key '{role}.engine' is set; leave it out: models of people train by the targets' engine",
        )
    attacks = {name: settings_of_attack(study.spec, name) for name in attacks_on(study.spec, dataset)}
    using = {name: settings for name, settings in attacks.items() if ATTACKS[name].needs == role}
    compared = TARGETS if role == "reference" else {"shadow_pool"}  # whose records some models must not have seen
    for name, settings in using.items():
        complaint = (
            f"key '{role}.size' is {size}, so that every model trains on all of {words}; attack {name} needs less"
        )
        require(size < records or not compared & set(pool), complaint)
        if settings.get("online"):
            words = "expected target_members and target_nonmembers among them"
            complaint = (
                f"key '{role}.pool' is {pool}, but attack {name} needs models trained with the target's records; "
            )
            require(set(pool) >= TARGETS, complaint + words)


def _check_auxiliary_training(spec: Json, role: str, dataset: str, model: str) -> None:
    """Check that models can train as ``shadow.training`` says, with batches no larger than their data."""
    auxiliary = auxiliary_spec(spec, dataset, role)
    changes, size = auxiliary.get("training", {}), auxiliary["size"]
    engine: str = auxiliary.get("engine") or model_spec(spec, dataset, model).get("engine", "ensemble")
    if not changes or engine in (*GIVEN, "estimator"):
        return
    key, training = f"key '{role}.training'", training_of(spec, dataset, model, engine, changes)
    try:
        TrainingSettings(**training)
    except UserError as error:
        raise UserError(f"{key} (of {dataset}/{model}): {error}") from None
    batch = changes.get("batch_size", 1)
    require(batch <= size, f"key '{role}.training.batch_size' is {batch}; expected at most '{role}.size', {size}")


def check_structure(study: Study) -> None:
    """Check that at least one model has a structure to check."""
    checked = any(cell.training["engine"] in ENGINES for cell in study.cells.values())
    words = f"it needs a model of engine {', '.join(ENGINES)}; leave it out"
    require(not keyed(study.spec, STRUCTURE) or checked, f"key 'structure' is set; {words}")


def check_groups(study: Study) -> None:
    """Check that groups consist of single records, and that there is a membership attack."""
    if not keyed(study.spec, GROUPS):
        return
    persons = [name for name in study.spec["datasets"] if by_person(study.spec, name)]
    words = f"compares single records, but data set {''.join(persons[:1])} protects persons; leave it out"
    require(not persons, f"key 'groups' {words}")
    membership = any(ATTACKS[attack].family == "membership" for attack in study.spec["attacks"])
    require(membership, "key 'groups' compares what membership attacks find, and 'attacks' has none")
    sensitive = any(source_of(study.spec, name).get("sensitive") for name in study.spec["datasets"])
    words = "has 'sensitive', but no data set has a source with that key; name columns there, or leave it out"
    require("sensitive" not in study.spec[GROUPS] or sensitive, f"key 'groups' {words}")
    words = "has 'records', which compares models with and without a record; it needs design coins"
    require(RECORDS not in study.spec[GROUPS] or design_of(study.spec) == COINS, f"key 'groups' {words}")


def check_audit(study: Study) -> None:
    """Check that lower bounds have a δ, and that each audit design fits its cells."""
    if bounded(study.spec):
        require("delta" in study.spec, "key 'delta' is missing; lower bounds on the ε of non-private cells need one")
    if not keyed(study.spec, AUDIT):
        return
    designs = study.spec["audit"]["designs"]
    for entry in study.spec["defenses"]:
        for name in entry.get("audits", []):
            check_known(name, designs, "defenses.audits")
    for cell in study.cells.values():
        for name in cell.audits:
            _check_audit_design(study, cell, name)


def _check_audit_design(study: Study, cell: Cell, name: str) -> None:
    """Check that an audit design fits the cell, and can refute its claim."""
    design, key = audit_design(study.spec, cell, name), f"audit.designs.{name}"
    step, where = cell.step, f"for {cell.defense}"
    records = study.spec["datasets"][cell.dataset]["roles"]
    gradient, watched = design.canary == "gradient", design.score == "white_box"
    paired = ["target_nonmembers"] if design.canary in PAIRED else []
    most = min(records[role] for role in (trained_role(records), *paired))
    require(
        design.canaries <= most,
        f"key '{key}.canaries' is {design.canaries}; expected up to the {most} records of data set {cell.dataset}",
    )
    require(
        design.design == "one_run" or design.canaries == 1, f"key '{key}.canaries' must be 1 unless design is one_run"
    )
    require(
        design.coins >= 4,
        f"key '{key}' has {design.coins} coins (models × canaries); expected 4 or more",
    )
    noise, unit = ("none", "example") if step is None else (step.noise, step.unit)
    vmf, presence, own = noise == "vmf", design.relation == "presence", design.claim == "own"
    groups, feature = unit not in ("example", PERSON), design.canary == "feature"
    refused = {
        "canary' is gradient, which needs score: white_box": gradient and not watched,
        f"canary' is gradient, which needs one example as the unit, {where}": gradient and groups,
        f"canary' is feature, which directional noise cannot have, {where}": vmf and feature,
        f"relation' is presence, which noise around single directions does not protect, {where}": vmf
        and presence
        and step is not None
        and step.block != "sum",
        f"bug' plants a mistake in Gaussian noise on examples, {where} there is none": bool(design.bug)
        and (noise != "gaussian" or groups),
        f"bug' is batch_clipped, which draws single records, {where} the unit is a person": unit == PERSON
        and design.bug == "batch_clipped",
        f"claim' is own, which needs a mechanism with a curve; there is none {where}": own and step is None,
    }
    for complaint, wrong in refused.items():
        require(not wrong, f"key '{key}.{complaint}")


def check_reach(study: Study) -> None:
    """Refuse a study with an audit that could not refute its cell's claim even with perfect scores.

    This takes SciPy and a second, so it is skipped for studies not requested.
    """
    for cell in study.cells.values():
        for name in cell.audits:
            design = audit_design(study.spec, cell, name)
            if design.beyond_reach == "refuse" and design.bug is None:
                _check_reach_of(study, cell, name, design)


def _check_reach_of(study: Study, cell: Cell, name: str, design: AuditDesign) -> None:
    claimed = cell.columns["epsilon"]
    unsampled = cell.step is not None and cell.step.sampler == "shuffle"
    if claimed is None or (design.claim == "own" and not unsampled):
        return  # an own curve takes an accountant: step ``measure`` says what it reaches
    from dp_leakage.audits import CONFIDENCE, approximate_dp, gaussian_dp
    from dp_leakage.audits.designs import shortfall

    claim = (approximate_dp if design.claim == "approximate" else gaussian_dp)(cell.columns["delta"])
    found = shortfall(claimed, design.design, design.coins, claim, study.bounds_together, design.share, CONFIDENCE)
    require(
        found is None,
        f"key 'audit.designs.{name}' {found} (defense {cell.defense}); key 'beyond_reach: mark' trains it all the same",
    )


def check_figure(study: Study, name: str, cells: list[Cell]) -> None:
    """Check that a figure's settings are known, and that it draws at least one cell.

    Args:
        study: the study.
        name: the figure's name.
        cells: cells whose values it may select.
    """
    spec, figure, key = study.spec, study.spec["figures"][name], f"figures.{name}"
    if FIGURES[figure["kind"]].needs == TIMING:
        require("timing" in spec, f"key 'timing' is missing; figure {name} shows how long training takes")
    parts, part = figure.get("parts", drawable(study)), FIGURES[figure["kind"]].part
    for given in parts:
        check_known(given, drawable(study), f"{key}.parts")
    if part:
        require(part in drawable(study), f"key '{part}' is missing; figure {name} draws what it asks for")
        words = f"kind {figure['kind']} draws {part}, so list that too, or no parts"
        require(part in parts, f"key '{key}.parts' lists {', '.join(parts)}; {words}")
    for column, values in figure.get("select", {}).items():
        check_known(column, cells[0].columns, f"{key}.select")
        for value in values:
            check_known(value, dict.fromkeys(cell.columns[column] for cell in cells), f"{key}.select.{column}")
    drawn = figure_cells(study, name)
    known = any(by_person(spec, cell.dataset) for cell in drawn)
    words = f"kind {figure['kind']} needs a data set whose source says whose each record is (key 'person')"
    require(known or not FIGURES[figure["kind"]].persons, f"key '{key}.kind': {words}")
    complaint = f"key '{key}.parts' leaves nothing to draw: no cell of the figure has any of {', '.join(parts) or 'it'}"
    shown = [set(figure_parts(study, name, cell)) for cell in drawn]
    require(any(shown), complaint)
    there = {
        part: any(part in own for own in shown),
        "bounded": any(own & {*bounded(spec)} for own in shown),
        "private": "select" not in figure or any(cell.columns["accountant"] for cell in drawn),
    }
    for needed in filter(None, (part, FIGURES[figure["kind"]].cells)):
        words = f"kind {figure['kind']} draws cells with {CELLS.get(needed, needed)}, and has none of them"
        require(there[needed], f"key '{key}': {words}")
    for setting, value in figure.get("settings", {}).items():
        for word in [value] if isinstance(value, str) else value or [] if isinstance(value, list) else []:
            if setting in ("attack", "attacks", "exposed_by"):
                attacked = list(spec["attacks"]) if part == GROUPS else [one for one in parts if one in spec["attacks"]]
                check_known(word, [*attacked, STRONGEST] if attacked else [], f"{key}.settings.{setting}")
            if setting in ("dataset", "model", "defense"):
                check_known(word, dict.fromkeys(cell.columns[setting] for cell in drawn), f"{key}.settings.{setting}")
