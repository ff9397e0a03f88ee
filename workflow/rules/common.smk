"""The studies, checked, and what every rule asks of them."""

import gc
import os
import sys
from pathlib import Path

from snakemake.settings.types import DeploymentMethod
from snakemake.utils import update_config

from dp_leakage import plugins
from dp_leakage.attacks import ATTACKS, PICTURING
from dp_leakage.errors import UserError
from dp_leakage.identity import canonical
from dp_leakage.jobs.planning import plan_faster
from dp_leakage.jobs.remote import end_soon
from dp_leakage.jobs.start import start
from dp_leakage.resources import attack_minutes, has_gpu, memory_mb, training_minutes
from dp_leakage.shown import as_label, as_rst, one_line
from dp_leakage.study import CLASS_SCORES, READ_BY_ATTACKS, SIGNALS, TARGET
from dp_leakage.study_checks import AUXILIARY
from dp_leakage.study_file import QUOTING, load_studies, typed
from dp_leakage.targets import asked, asks_for, check_targets
from dp_leakage.training.launcher import ENVIRONMENT, path_with
from dp_leakage.user_code import FOLDERS
from dp_leakage.verify import check_whole
from dp_leakage.yaml_files import read_yaml

# Planning makes millions of objects that stay to its end: looking for garbage among them took a fifth of its time. Jobs
# begin with it on again (onstart).
gc.disable()
WORKFLOW = Path(workflow.basedir) / "workflow"
# What runs a job: `python` beside the interpreter that runs Snakemake; under --sdm conda the environment's own.
IN_CONDA = DeploymentMethod.CONDA in workflow.deployment_settings.deployment_method
if not IN_CONDA:
    os.environ.update(PATH=path_with(sys.executable))
# One thread per job, one job per core; and an allocator that keeps its pages between training steps.
os.environ.update(ENVIRONMENT)


def or_stop(made):
    """What a function makes; where it complains to the user, the sentence and the end of the run.

    Not an exception: Snakemake would wrap the sentence in a traceback.
    """
    try:
        return made()
    except UserError as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        os._exit(1)


def _left_out(called, error):
    """A study with a fault stops those who ask for it; to all others it is named and left out."""
    if any(asks_for(TARGETS, name) for name in called):
        raise error
    if workflow.is_main_process:
        print(f"left out: {error}", file=sys.stderr)


def _studies():
    # Read here, since Snakemake's `configfile` answers a faulty file with a traceback, and can run what it holds.
    given = {
        key: typed(value) if key in {*QUOTING, "preload"} else value
        for key, value in config.items()
    }
    config.clear()
    update_config(config, read_yaml(Path("config.yaml")))
    update_config(config, given)
    schemas = {
        name: read_yaml(WORKFLOW / "schemas" / f"{name}.schema.yaml")
        for name in ("config", "study")
    }
    own = sorted(Path("studies").glob("*.yaml"))
    files = [*sorted((WORKFLOW / "studies").glob("*.yaml")), *own]
    return load_studies(config, files, schemas, failed=_left_out)


TARGETS = asked(sys.argv)
STUDIES = or_stop(_studies)
# How a job runs, not what it computes: so in the environment, where a change reruns nothing.
os.environ.update(
    DP_LEAKAGE_DEVICE=str(config.get("device", "auto")),
    DP_LEAKAGE_CHECKPOINT_SECONDS=str(config.get("checkpoint_seconds", 60)),
    DP_LEAKAGE_DATA_DIR=str(config.get("data_dir", "data")),
)
# For `snakemake --report`, whose texts see the config and the rule's name.
config["captions"] = {
    f"{study.target}_{name}": as_rst(study.caption(name))
    for study in STUDIES.values()
    for name in study.spec["figures"]
}
# Where jobs find plugins; what the code of these does is in the settings of the steps that run it.
os.environ[plugins.ENVIRONMENT] = os.pathsep.join(map(str, FOLDERS))


wildcard_constraints:
    study="[a-z][a-z0-9_]*(-small|-smoke)?",
    dataset="[a-z][a-z0-9_]*",
    model="[a-z][a-z0-9_]*",
    defense="(?!(?:shadow|reference)/)[^/]+",
    attack="|".join(ATTACKS),
    role="shadow|reference",
    # A group of models that are asked together: of a cell, or auxiliary ones, shared or of one defense.
    group="[^/]+(/(shadow|reference))?",
    answers=f"{SIGNALS}|{CLASS_SCORES}",


def attacks_that(chosen):
    """Pattern of the attacks whose registry entry is as the function wants it."""
    return "|".join(name for name, entry in ATTACKS.items() if chosen(entry)) or "(?!)"


def settings_of(step):
    """A params function: the step's settings for a job's wildcards, as JSON (Snakemake compares params by value)."""
    return lambda wildcards: or_stop(
        lambda: canonical(step(STUDIES[wildcards.study], wildcards))
    )


def cell_of(study, wildcards):
    return study.cell(wildcards.dataset, wildcards.model, wildcards.defense)


def own_defense(wildcards):
    """The defense of auxiliary models that belong to one cell; None for shared ones."""
    return wildcards.get("defense", None)


def gpus(wildcards):
    """`cuda` asks for one GPU; `auto` only where this machine has one (a cluster's login node seldom has)."""
    return int(config["device"] == "cuda" or (config["device"] == "auto" and has_gpu()))


def records_of(study, wildcards):
    return sum(study.spec["datasets"][wildcards.dataset]["roles"].values())


def models_of(study, wildcards):
    """How many models a job holds side by side."""
    if "role" in wildcards.keys():
        return study.auxiliary_spec(wildcards.dataset, wildcards.role)["count"]
    return cell_of(study, wildcards).training["repeats"]


def training_of(study, wildcards):
    """Settings of the training job of these wildcards."""
    if "role" in wildcards.keys():
        names = (wildcards.dataset, wildcards.model, wildcards.role)
        return study.auxiliary_settings(*names, own_defense(wildcards))
    return study.train_settings(cell_of(study, wildcards))


def job_memory(wildcards, attempt):
    study = STUDIES[wildcards.study]
    return memory_mb(records_of(study, wildcards), models_of(study, wildcards), attempt)


def training_time(wildcards, attempt):
    return training_minutes(training_of(STUDIES[wildcards.study], wildcards), attempt)


def attack_time(wildcards, attempt):
    study = STUDIES[wildcards.study]
    attack = wildcards.attack
    settings = ATTACKS[attack].settings | study.spec["attacks"][attack]
    return attack_minutes(
        records_of(study, wildcards), models_of(study, wildcards), attempt, settings
    )


def training_group(wildcards):
    """On a cluster a cell is one submission, but all cells wait for the undefended one: it is submitted on its own."""
    return "baseline" if wildcards.defense == "none" else "cell"


def group_of(wildcards):
    """Data set, model, role and defense of a group of models; shared ones have no defense, targets no folder of a role."""
    first, _, second = wildcards.group.partition("/")
    if first in AUXILIARY:
        role, defense = first, None
    else:
        role, defense = second or TARGET, first
    return wildcards.dataset, wildcards.model, role, defense


def group_models(study, wildcards):
    """How many models a group holds."""
    dataset, model, role, defense = group_of(wildcards)
    if role == TARGET:
        return study.cell(dataset, model, defense).training["repeats"]
    return study.auxiliary_spec(dataset, role)["count"]


def query_inputs(wildcards):
    study = STUDIES[wildcards.study]
    return {
        "data": study.data(wildcards.dataset),
        "models": study.models(*group_of(wildcards)),
    }


def query_memory(wildcards, attempt):
    study = STUDIES[wildcards.study]
    models = group_models(study, wildcards)
    return memory_mb(records_of(study, wildcards), models, attempt)


def query_time(wildcards, attempt):
    study = STUDIES[wildcards.study]
    models = group_models(study, wildcards)
    return attack_minutes(records_of(study, wildcards), models, attempt)


def query_group(wildcards):
    return "auxiliary" if wildcards.group in AUXILIARY else "cell"


def paths_of(inputs):
    """The file of every option that a step of attacks may have; none where this attack does not read it."""
    given = {option: path for option, (path, _) in inputs.items()}
    return dict.fromkeys(READ_BY_ATTACKS, []) | given


def attack_inputs(wildcards):
    study = STUDIES[wildcards.study]
    return paths_of(study.attack_inputs(cell_of(study, wildcards), wildcards.attack))


def fit_inputs(wildcards):
    study = STUDIES[wildcards.study]
    names = (wildcards.dataset, wildcards.model, wildcards.attack)
    return paths_of(study.fit_inputs(*names, own_defense(wildcards)))


def cell_parts(wildcards):
    study = STUDIES[wildcards.study]
    cell = cell_of(study, wildcards)
    return [study.part_file(cell, part) for part in cell.parts]


def published_file(study):
    """The paper's printed numbers, an input of every figure; none where the study has no paper."""
    name = study.spec.get("published")
    return [Path("workflow", "published", name)] if name else []


def title_of(study, figure):
    spec = study.spec["figures"][figure]
    return spec.get("title", spec["kind"])


def figure_outputs(study, figure):
    """A figure's files; the picture is in `snakemake --report` too."""
    files = study.figure_files(figure)
    picture = report(
        files["png"],
        caption="../report/figure.rst",
        category=as_label(study.spec["title"]),
        labels={"figure": as_label(title_of(study, figure))},
    )
    return files | {"png": picture}


def everything_of(study):
    """What a study's target asks for; what is there already ends as it should, or the run stops with its name."""
    files = study.everything()
    or_stop(lambda: check_whole(files))
    return files


def target_descriptions(study):
    """Target → one line for `snakemake --list-target-rules`."""
    figures = {
        f"{study.target}_{name}": one_line(title_of(study, name))
        for name in study.spec["figures"]
    }
    audit = {f"{study.target}_audit": "canaries of every cell, trained and scored"}
    return {
        **(audit if study.audited else {}),
        f"{study.target}_verify": "reads every file of the study and compares it with its digest",
        study.target: one_line(study.spec["title"]),
        f"{study.target}_report": "the page with everything",
        **figures,
    }
