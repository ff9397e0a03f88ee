"""The checked studies, and the functions by which rules ask them."""

import logging
import os
import sys
from pathlib import Path
from shlex import quote

from snakemake.settings.types import DeploymentMethod
from snakemake.utils import update_config

from dp_leakage import plugins
from dp_leakage.common import places
from dp_leakage.attacks import ATTACKS
from dp_leakage.common.errors import UserError
from dp_leakage.common.identity import canonical
from dp_leakage.common.surroundings import check_writable
from dp_leakage.common.paths import is_plain, user_path
from dp_leakage.jobs import CODE, PLANNED, RUN
from dp_leakage.jobs.remote import take_over
from dp_leakage.jobs.server import start
from dp_leakage.provenance.fingerprint import keep_in
from dp_leakage.study.resources import has_gpu
from dp_leakage.common.run_config import CONFIG, read_config
from dp_leakage.common.shown import as_label, as_rst
from dp_leakage.provenance.notes import lost
from dp_leakage.study import CLASS_SCORES, SIGNALS, paths, plan
from dp_leakage.study.checks import check_sizes
from dp_leakage.study.contents import VARIABLE as CONTENTS
from dp_leakage.study.contents import tell
from dp_leakage.study.file import QUOTING, load_studies, study_files, typed
from dp_leakage.study.steps import (
    ENTRIES,
    STEPS,
    joined_apart,
    query_group,
    shapes,
    training_group,
)
from dp_leakage.study.steps.judge import apart
from dp_leakage.study.targets import (
    DEFAULT,
    asked,
    asks_for,
    check_profile,
    check_targets,
    needed,
)
from dp_leakage.training.launcher import ENVIRONMENT, path_with
from dp_leakage.common.user_code import FOLDERS
from dp_leakage.common.yaml_files import read_yaml

SAID = logging.getLogger("snakemake.logging")  # what Snakemake says, in its order
# Another Snakefile uses this one, with a config and targets of its own.
IN_MODULE = not workflow.modifier.is_main_snakefile()
# What runs a job: `python` beside the interpreter that runs Snakemake; that of an environment under --sdm conda, and that
# of an image under --sdm apptainer.
JOBS = "../../envs/jobs.yaml"
DEPLOYED = workflow.deployment_settings.deployment_method
os.environ.update(PATH=path_with(sys.executable))
if DeploymentMethod.CONDA in DEPLOYED and not IN_MODULE:
    # The environment holds what the package needs, not the package. Snakemake unsets PYTHONPATH in it.
    shell.prefix(
        f"set -euo pipefail; export PYTHONPATH={quote(str(places.link_code(Path('.snakemake'))))}; "
    )
# Whether results are in a storage, such as a bucket, and not on a disk.
IN_STORAGE = workflow.storage_settings.default_storage_provider is not None
# What the jobs are told of the user's files.
if workflow.is_main_process:
    os.environ[CONTENTS] = "{}"
    os.environ.pop(PLANNED, None)  # of a run that this one is a job of


envvars:
    CONTENTS,


# One thread per job, one job per core; and an allocator that keeps its pages between training steps.
os.environ.update(ENVIRONMENT)

# A step that runs by itself ends with this process.
os.environ[RUN] = str(os.getpid())
# What is known of the code's files, beside Snakemake's own records of them. Jobs compare theirs with it.
os.environ[CODE] = os.path.join(".snakemake", "dp_leakage_code.json")
keep_in(Path(os.environ[CODE]))


def or_stop(made):
    """The result of a function. If it raises a UserError, ends the run with its sentence.

    Not by an exception that Snakemake catches: it would wrap the sentence in a traceback.
    """
    try:
        return made()
    except UserError as error:
        sys.exit(f"error: {error}")


def _left_out(called, error):
    """A faulty study stops runs that ask for it. All other runs name it and leave it out."""
    if any(asks_for(TARGETS, name) for name in called):
        raise error
    if workflow.is_main_process:
        SAID.warning("left out: %s", error)


def _studies():
    # Read here, since Snakemake's `configfile` answers a faulty file with a traceback, and can run what it holds.
    given = {
        key: typed(value) if key in {*QUOTING, "preload"} else value
        for key, value in config.items()
        if key != "captions"
    }
    config.clear()
    # A module's config is what the other Snakefile gives it, over what is written here.
    update_config(
        config,
        read_yaml(REPOSITORY / CONFIG) if IN_MODULE else read_config(REPOSITORY),
    )
    update_config(config, given)
    schemas = {
        name: read_yaml(REPOSITORY / "workflow" / "schemas" / f"{name}.schema.yaml")
        for name in ("config", "study")
    }
    files = [
        *study_files(REPOSITORY / "workflow" / "studies"),
        *study_files(Path("studies")),
    ]
    return load_studies(
        config,
        files,
        schemas,
        _left_out,
        lambda study: asks_for(TARGETS, study),
        lambda names: needed(sys.argv, TARGETS, names),
        given=() if IN_MODULE else given,
    )


# The folder of config.yaml, and of the studies and schemas below `workflow`. Of a repository on a host, Snakemake fetches
# the files that are named: the studies are those of the installed package then.
_root = Path(workflow.source_path("../../config.yaml")).resolve().parent
REPOSITORY = _root if (_root / "workflow" / "studies").is_dir() else places.REPOSITORY
if workflow.is_main_process and not IN_MODULE:
    or_stop(lambda: check_profile(sys.argv))
# A module is asked by its Snakefile too, for files that are not known yet.
TARGETS = asked(sys.argv, otherwise=() if IN_MODULE else (DEFAULT,))
STUDIES = or_stop(_studies)
for study in STUDIES.values():
    if workflow.is_main_process and asks_for(TARGETS, study.target):
        or_stop(lambda: check_sizes(study))
for study in STUDIES.values():
    if workflow.is_main_process and not IN_MODULE and not IN_STORAGE:
        if asks_for(TARGETS, study.target) and lost(study.path(paths.REPORT)):
            words = (
                "was made elsewhere: Snakemake's notes on it, .snakemake/metadata, are not here, so Snakemake may not see "
                "what was changed since; copy these notes too, or move the folder away"
            )
            SAID.warning("beware: results/%s %s", study.name, words)
# This decides how a job runs, not what it computes, so it is in the environment, where a change reruns nothing.
os.environ.update(
    DP_LEAKAGE_DEVICE=str(config.get("device", "auto")),
    DP_LEAKAGE_CHECKPOINT_SECONDS=str(config.get("checkpoint_seconds", 60)),
    DP_LEAKAGE_DATA_DIR=str(config.get("data_dir", "data")),
)
# For `snakemake --report`, whose texts can use the config and the job's files.
config["captions"] = {
    str(next(iter(paths.figure_files(study, name).values()))): as_rst(
        plan.caption(study, name)
    )
    for study in STUDIES.values()
    for name in study.spec["figures"]
}
# Where jobs find plugins. The plugins' code is part of the settings of the steps that run it.
os.environ[plugins.ENVIRONMENT] = os.pathsep.join(map(str, FOLDERS))


wildcard_constraints:
    study="[a-z][a-z0-9_]*(-small|-smoke)?(-opacus)?",
    dataset="[a-z][a-z0-9_]*",
    model="[a-z][a-z0-9_]*",
    defense="(?!(?:shadow|reference)/)[^/]+",
    attack="|".join(ATTACKS),
    role="shadow|reference",
    # A group of models that are asked together: a cell's targets, or auxiliary models, shared or of one defense.
    group="[^/]+(/(shadow|reference))?",
    answers=f"{SIGNALS}|{CLASS_SCORES}",


def of_job(asked):
    """A function of wildcards: what `asked(study, job)` says, where a job is its wildcards by name."""
    return lambda wildcards: or_stop(
        lambda: asked(STUDIES[wildcards.study], dict(wildcards.items()))
    )


# What a rule asks its entry, by the name of its step or of its job of several steps.
def inputs_of(step):
    """Its inputs by option."""
    return of_job(ENTRIES[step].reads)


def input_of(step, option):
    """Its input for one option."""
    return of_job(lambda study, job: STEPS[step].reads(study, job)[option])


def settings_of(step):
    """Its settings, as JSON (Snakemake compares params by value)."""
    return of_job(lambda study, job: canonical(ENTRIES[step].settings(study, job)))


def memory_of(step):
    """The megabytes that an attempt asks for."""
    asked = of_job(ENTRIES[step].memory)
    return lambda wildcards, attempt: attempt * asked(wildcards)


def minutes_of(step):
    """The minutes that an attempt asks for."""
    asked = of_job(ENTRIES[step].minutes)
    return lambda wildcards, attempt: attempt * asked(wildcards)


def own_files(step):
    """The user's own files that it reads."""
    return lambda wildcards: given_by_user(
        STUDIES[wildcards.study],
        lambda study: STEPS[step].own(study, dict(wildcards.items())),
    )


def given_by_user(study, asked):
    """The user's own files that `asked(study)` names, as inputs.

    Their content is in the settings, so an edit counts and a new date does not.
    """
    names = or_stop(lambda: asked(study))
    tell(study.contents)
    plain = [os.path.normpath(user_path(name)) for name in names if is_plain(name)]
    return [ancient(path) for path in plain]


def in_group(named):
    """A function of a job's group: the name that `named(job)` gives it."""
    return lambda wildcards: or_stop(lambda: named(dict(wildcards.items())))


def by_file(step, arguments):
    """A step's command with its arguments in a file, one per line, since those of many cells outgrow a command line.

    The shell itself writes the file, beside the log, without any limit of length.
    """
    return (
        f"(printf '%s\\n' {arguments} > {{log:q}}.arguments"
        f" && python -m dp_leakage.steps.{step} @{{log:q}}.arguments) 2> {{log:q}}"
    )


# `cuda` asks for one GPU; `auto` only where this machine has one (a cluster's login node seldom has).
GPUS = int(config["device"] == "cuda" or (config["device"] == "auto" and has_gpu()))


def figure_outputs(study, figure):
    """A figure's files, which a job keeps where they are current; the picture, or the page of tables, is in `snakemake
    --report` too.
    """
    files = paths.figure_files(study, figure)
    first = next(iter(files))
    shown = report(
        files[first],
        caption="../report/figure.rst",
        category=as_label(study.spec["title"]),
        labels={"figure": as_label(plan.title_of(study, figure))},
    )
    kept = {form: update(path) for form, path in files.items()}
    return kept | {first: update(shown)}


def asked_by(study):
    """The files that a study's target names: everything, so that what got lost is made again.

    While a study has no results there is nothing to lose. All its jobs lead to the report then, and each further name
    would only take time to plan.
    """
    if IN_STORAGE or study.path(paths.STUDY).exists():
        return or_stop(lambda: plan.everything(study))
    return [study.path(paths.REPORT), study.path(paths.CLAIMS)]
