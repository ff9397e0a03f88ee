"""Steps that query models and attack their outputs (``auxiliary.smk``, ``judge.smk``)."""

from math import prod
from pathlib import Path

from dp_leakage.attacks import ATTACKS, GRADIENTS, STRONGEST
from dp_leakage.common.config import Json
from dp_leakage.common.identity import identity
from dp_leakage.data import OUTPUTS
from dp_leakage.data.roles import asked_roles
from dp_leakage.study import paths
from dp_leakage.study.cells import Cell, attacks_in, auxiliary_defense
from dp_leakage.study.paths import CLASS_SCORES, SIGNALS, TARGET, training_files
from dp_leakage.study.protocol import (
    auxiliary_spec,
    by_coins,
    by_person,
    seed_of,
    sees_untrained,
    settings_of_attack,
    source_of,
    two_sources,
    way_of_person,
)
from dp_leakage.study.resources import attack_minutes
from dp_leakage.study.step_code import ACCOUNTING, noise_modules, own_files, step_code
from dp_leakage.study.steps.data import data_identity
from dp_leakage.study.steps.entry import STEPS, Files, Input, Job, Step, cell_of, identities, made, path_of
from dp_leakage.study.steps.train import (
    auxiliary_settings,
    group_of,
    memory,
    models_of,
    records_of,
    train_settings,
)
from dp_leakage.study.study import Study

# What attacks read of models → the step that makes it.
ANSWERED_BY = {SIGNALS: "query", CLASS_SCORES: "query"}


# ---------------------------------------------------------------------- answers
def query_settings(
    study: Study, dataset: str, model: str, role: str, defense: str | None = None, what: str = SIGNALS
) -> Json:
    """Return the settings of step ``query``."""
    cell = study.cell(dataset, model, defense or "none")
    if role == TARGET:
        trained = train_settings(study, cell)
    else:
        trained = auxiliary_settings(study, dataset, model, role, defense)
    asks = {"queries": _queries(study, role)} if what == SIGNALS else {"roles": _judged(study, dataset, role)}
    return {
        **{key: trained[key] for key in ("study", "dataset", "model", "defense", "role")},
        **asks,
        "models": identity(trained),
        "data": data_identity(study, dataset),
        "code": step_code("query", own=own_files(trained, cell.step)),
    }


def _queries(study: Study, role: str) -> int:
    """Return the number of queries per record to the models of a role: the maximum over the attacks on them."""
    used = {name: ATTACKS[name].settings | given for name, given in study.spec["attacks"].items()}
    return max(
        (given.get("queries", 1) for name, given in used.items() if role in (TARGET, ATTACKS[name].needs)),
        default=1,
    )


def _judged(study: Study, dataset: str, role: str) -> list[str]:
    """Return the roles whose class scores are stored: the attacked roles and the attacker's own."""
    pool = {f"{role}_pool", *auxiliary_spec(study.spec, dataset, role).get("pool", [])}
    asked = set(asked_roles(study.spec["datasets"][dataset]["roles"]))
    return sorted({"target": asked, "shadow": pool, "reference": pool | asked}[role])


def answered(study: Study, dataset: str, model: str, role: str, defense: str | None, what: str = SIGNALS) -> Input:
    """Return the stored outputs of a group of models."""
    step, names = ANSWERED_BY[what], {"dataset": dataset, "model": model, "group": paths.group_of(role, defense)}
    return path_of(step, what, study=study.name, **names), made(study, step, None, **names, answers=what)


def _asked(study: Study, dataset: str, model: str, role: str, defense: str | None, attack: str) -> dict[str, Input]:
    """Return the inputs of an attack from one group of models, and the data if it reads features."""
    reads, group = ATTACKS[attack].reads, (dataset, model, role, defense)
    inputs = {SIGNALS: answered(study, *group, SIGNALS)}
    if reads == "probabilities":
        inputs[CLASS_SCORES] = answered(study, *group, CLASS_SCORES)
    if reads == "features":
        inputs["data"] = _data(study, dataset)
    return inputs


def _data(study: Study, dataset: str) -> Input:
    return study.path(paths.DATA, dataset=dataset), data_identity(study, dataset)


# ---------------------------------------------------------------------- attacks
def fit_inputs(study: Study, dataset: str, model: str, attack: str, defense: str | None = None) -> dict[str, Input]:
    """Return the inputs of step ``fit_attack``: option → file and its identity."""
    return _asked(study, dataset, model, ATTACKS[attack].needs or "", defense, attack)


def fit_settings(study: Study, dataset: str, model: str, attack: str, defense: str | None = None) -> Json:
    """Return the settings of step ``fit_attack``."""
    entry = ATTACKS[attack]
    return {
        "study": study.name,
        "dataset": dataset,
        "model": model,
        "attack": attack,
        "module": entry.module,
        "settings": settings_of_attack(study.spec, attack),
        "seed": seed_of(study.spec, dataset, model, attack, "fit"),
        "inputs": identities(fit_inputs(study, dataset, model, attack, defense)),
        "code": step_code("fit_attack", entry.module),
    }


def attack_inputs(study: Study, cell: Cell, attack: str) -> dict[str, Input]:
    """Return the inputs of an attack on a cell: option of its step → file and its identity."""
    entry, names = ATTACKS[attack], (cell.dataset, cell.model)
    if entry.reads == "models":
        data = {"data": _data(study, cell.dataset)}
        if sees_untrained(study.spec, attack):
            return data
        return data | {"target": (study.path(paths.TRAINED, cell), made(study, "train_target", cell))}
    inputs = _asked(study, *names, TARGET, cell.defense, attack)
    if entry.reads == "losses":
        return inputs | {"history": (study.path(paths.HISTORY, cell), made(study, "train_target", cell))}
    if by_coins(study.spec, attack):
        return inputs | _references(_asked(study, *names, TARGET, _reference_cell(study, cell, attack), attack))
    if not entry.needs:
        return inputs
    own = auxiliary_defense(study.spec, cell, entry.needs, attack)
    if not entry.learns:
        return inputs | _references(_asked(study, *names, entry.needs, own, attack))
    same = {} if own is None else {"defense": own}
    fitted = made(study, "fit_attack", None, dataset=cell.dataset, model=cell.model, attack=attack, **same)
    return inputs | {"fitted": (paths.fitted(study, *names, attack, own), fitted)}


def _untrained(cell: Cell) -> Json:
    """Return the settings that determine a cell's untrained models, and the noise of their steps."""
    own = {key: cell.training[key] for key in ("architecture", "dropout", "mechanism", "repeats")}
    return own | {key: cell.columns[key] for key in ("epochs", "batch_size", "n_records")}


def _references(inputs: dict[str, Input]) -> dict[str, Input]:
    """Return the inputs from the models that an attack compares with, by option."""
    return {f"reference_{option}": file for option, file in inputs.items() if option != "data"}


def _reference_cell(study: Study, cell: Cell, attack: str) -> str:
    """Return the defense whose repeats are an attack's references: the cell's own; empty without references."""
    known = auxiliary_spec(study.spec, cell.dataset, "reference").get("defense", "same") == "same"
    return cell.defense if known and ATTACKS[attack].aware else "none"


def attack_settings(study: Study, cell: Cell, attack: str) -> Json:
    """Return the settings of an attack's results on a cell: its scores, and images if it makes any."""
    entry, spec = ATTACKS[attack], study.spec
    return {
        "study": study.name,
        "dataset": cell.dataset,
        "model": cell.model,
        "defense": cell.defense,
        "attack": attack,
        "module": entry.module,
        "settings": settings_of_attack(spec, attack),
        # The seed is not the cell's: what an attack draws at random (features, say) is the same in all cells.
        "seed": seed_of(spec, cell.dataset, entry.draws_as or attack),
        "inputs": identities(attack_inputs(study, cell, attack)),
        "leave_one_out": by_coins(spec, attack),
        **({"of_person": way_of_person(spec, attack)} if by_person(spec, cell.dataset) else {}),
        **({"untrained": _untrained(cell)} if sees_untrained(spec, attack) else {}),
        "code": _attack_code(study, cell, attack),
    }


def _attack_code(study: Study, cell: Cell, attack: str) -> str:
    entry = ATTACKS[attack]
    if sees_untrained(study.spec, attack):  # the noise is solved for in this step, by the accountants
        own = own_files(cell.training, cell.step)
        return step_code("attack_models", entry.module, *noise_modules(cell.step), own=own)
    if entry.reads == "models":
        return step_code("attack_models", entry.module, exclude=ACCOUNTING)
    return step_code("attack", entry.module)


def attacked(study: Study, cell: Cell, attack: str) -> str:
    """Return the identity of an attack's results on a cell: its scores, and images if it makes any."""
    return study.remembered(attack, cell.key, lambda: identity(attack_settings(study, cell, attack)))


def before_attack(study: Study, cell: Cell, attack: str) -> list[Path]:
    """Return the files of the auxiliary models, of their and the targets' outputs, and of the trained attack."""
    entry, names, files = ATTACKS[attack], (cell.dataset, cell.model), []
    if entry.needs and not by_coins(study.spec, attack):
        own = auxiliary_defense(study.spec, cell, entry.needs, attack)
        files += training_files(study, *names, entry.needs, own)
        if entry.learns:
            files += [path for path, _ in fit_inputs(study, *names, attack, own).values()]
    return [*files, *(path for path, _ in attack_inputs(study, cell, attack).values())]


# ---------------------------------------------------------------------- entries
def _files(inputs: dict[str, Input]) -> Files:
    """Return the file of each input, by option."""
    return {option: path for option, (path, _) in inputs.items()}


def _attacks(study: Study, job: Job) -> Json:
    return attack_settings(study, cell_of(study, job), job.attack)


def _attack_reads(study: Study, job: Job) -> Files:
    return _files(attack_inputs(study, cell_of(study, job), job.attack))


def _together(study: Study, job: Job) -> Json:
    """Return the settings for the metrics of one attack, or of several membership attacks together."""
    part = job.part
    own = {"family": ATTACKS[part].family} if part in ATTACKS else _from_two_sources(study, job)
    return {"part": part, "reads": found_by(study, job), "code": step_code("measure_attack")} | own


def _from_two_sources(study: Study, job: Job) -> Json:
    """Return the settings of the test for differences between members and non-members from two sources; empty for a
    random split.

    Only the user's references count as trained in the same way: references trained here draw from the rest of both
    sources, or from these records.
    """
    inputs, dataset = source_inputs(study, job), job.dataset
    if not inputs:
        return {}
    known = source_of(study.spec, dataset)["source"] != OUTPUTS  # else a record's only feature is its number
    alike = auxiliary_spec(study.spec, dataset, "reference").get("engine") == OUTPUTS
    return {"sources": identities(inputs) | {"features": known, "alike": alike}}


def source_inputs(study: Study, job: Job) -> dict[str, Input]:
    """Return the inputs of this test, for all attacks together: option → file and its identity."""
    cell = cell_of(study, job)
    if job.part != STRONGEST or not two_sources(study.spec, cell.dataset):
        return {}
    names = cell.dataset, cell.model
    inputs = {"data": _data(study, cell.dataset), SIGNALS: answered(study, *names, TARGET, cell.defense)}
    # Rather references that know the defense.
    comparing = [attack for attack in cell.membership if ATTACKS[attack].needs == "reference"]
    if comparing:
        attack = max(comparing, key=lambda attack: ATTACKS[attack].aware)
        own = auxiliary_defense(study.spec, cell, "reference", attack)
        inputs["references"] = answered(study, *names, "reference", own)
    return inputs


def found_by(study: Study, job: Job) -> list[list[str]]:
    """Return name and result identity of each attack that a part measures."""
    cell = cell_of(study, job)
    return [[name, attacked(study, cell, name)] for name in attacks_in(cell, job.part or STRONGEST)]


def scores_of(study: Study, job: Job) -> Files:
    """Return the results of the attacks that a part measures, in the order of the settings."""
    cell = cell_of(study, job)
    names = attacks_in(cell, job.part or STRONGEST)
    return {"found": [study.path(paths.SCORES, cell, attack=name) for name in names]}


def attack_time(study: Study, job: Job) -> int:
    """Return the time limit, in minutes, of a job that attacks or queries models."""
    return attack_minutes(records_of(study, job), models_of(study, job), steps=_steps(study, job.attack))


def _steps(study: Study, attack: str) -> int:
    """Return the total number of steps in which a gradient attack reconstructs its images."""
    if not attack or ATTACKS[attack].family != GRADIENTS:
        return 0
    own = settings_of_attack(study.spec, attack)
    numbers = [own.get(key) for key in ("images", "steps")]
    counts = [number if isinstance(number, int) else 0 for number in numbers]  # a plugin's may be anything
    return prod(counts) * len(own.get("weights", [0]))


def _fit(study: Study, job: Job) -> tuple[Study, str, str, str, str | None]:
    return study, job.dataset, job.model, job.attack, job.defense or None


STEPS["query"] = Step(
    {what: paths.ANSWERS.replace("{answers}", what) for what in (SIGNALS, CLASS_SCORES)},
    lambda study, job: query_settings(study, *group_of(job), job.answers),
    reads=lambda study, job: {
        "data": study.path(paths.DATA, dataset=job.dataset),
        "models": training_files(study, *group_of(job))[0],
    },
    memory=memory,
    minutes=attack_time,
)
STEPS["fit_attack"] = Step(
    {"fitted": paths.FITTED},
    lambda study, job: fit_settings(*_fit(study, job)),
    reads=lambda study, job: {"class_scores": [], "data": []} | _files(fit_inputs(*_fit(study, job))),
    memory=memory,
    minutes=attack_time,
)
STEPS["attack"] = Step({"scores": paths.SCORES}, _attacks, reads=_attack_reads)
STEPS["attack_models"] = Step({"scores": paths.SCORES, "images": paths.IMAGES}, _attacks, reads=_attack_reads)
STEPS["measure_attack"] = Step(
    {"rows": paths.ROWS},
    _together,
    reads=lambda study, job: scores_of(study, job) | _files(source_inputs(study, job)),
)
