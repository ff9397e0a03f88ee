"""The checked studies, and functions that give rules their inputs, settings and resources."""

import inspect
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
from dp_leakage.jobs import CODE, PLANNED
from dp_leakage.jobs.remote import improve
from dp_leakage.jobs.server import announce
from dp_leakage.provenance.fingerprint import keep_in
from dp_leakage.study.resources import drawing_minutes, has_gpu
from dp_leakage.common.run_config import CONFIG, read_config
from dp_leakage.common.shown import as_label, as_rst
from dp_leakage.provenance.notes import lost
from dp_leakage.study import CLASS_SCORES, SIGNALS, paths, plan
from dp_leakage.study.checks import check_sizes
from dp_leakage.study.contents import VARIABLE as CONTENTS
from dp_leakage.study.contents import tell
from dp_leakage.study.file import QUOTING, load_studies, study_files, typed
from dp_leakage.study.steps import (
    AUXILIARY,
    ENTRIES,
    STEPS,
    Job,
    joined_apart,
    shapes,
    training_group,
)
from dp_leakage.study.steps.judge import apart
from dp_leakage.study.targets import (
    DEFAULT,
    asked,
    asks_for,
    check_command,
    check_targets,
    is_run,
    needed,
)
from dp_leakage.training.launcher import ENVIRONMENT, path_with
from dp_leakage.common.user_code import FOLDERS
from dp_leakage.common.yaml_files import read_yaml

SAID = logging.getLogger("snakemake.logging")  # what Snakemake says, in its order
# The folder `workflow`; of a repository on a host, an address.
HERE = Path(inspect.getfile(lambda: None)).parents[1]
# Another Snakefile uses this one, with a config and targets of its own.
IN_MODULE = Path(workflow.main_snakefile) not in (
    HERE / "Snakefile",
    HERE.parent / "Snakefile",
)
IS_RUN = is_run(sys.argv)  # rather than a job that a run has submitted
# The interpreter of a job: `python` beside Snakemake's own; under --sdm conda and --sdm apptainer, the environment's or
# the image's.
JOBS = "../../envs/jobs.yaml"
DEPLOYED = workflow.deployment_settings.deployment_method
os.environ.update(PATH=path_with(sys.executable))
if DeploymentMethod.CONDA in DEPLOYED and not IN_MODULE:
    # The environment has the package's requirements, not the package. Snakemake unsets PYTHONPATH in it.
    shell.prefix(
        f"set -euo pipefail; export PYTHONPATH={quote(str(places.link_code(Path('.snakemake'))))}; "
    )
# Whether results are in a storage, e.g. a bucket.
IN_STORAGE = workflow.storage_settings.default_storage_provider is not None
# Facts about the user's files, passed to the jobs.
if IS_RUN:
    os.environ[CONTENTS] = "{}"
    os.environ.pop(PLANNED, None)  # left by a run that started this one as a job


envvars:
    CONTENTS,


# One thread per job, one job per core; and an allocator that keeps its pages between training steps.
os.environ.update(ENVIRONMENT)

# Known state of the code's files. Jobs compare their own files with it.
os.environ[CODE] = os.path.join(".snakemake", "dp_leakage_code.json")
keep_in(Path(os.environ[CODE]))


def or_stop(made):
    """Return a function's result. If it raises a UserError, end the run with its message.

    Snakemake would wrap an exception that it catches in a traceback.
    """
    try:
        return made()
    except UserError as error:
        sys.exit(f"error: {error}")


def _left_out(called, error):
    """Stop a run that asks for the faulty study; otherwise name the study and leave it out."""
    if any(asks_for(TARGETS, name) for name in called):
        raise error
    if IS_RUN:
        SAID.warning("left out: %s", error)


def _studies():
    # Read here, since Snakemake's `configfile` shows a traceback for a faulty file, and its YAML can run code.
    given = {
        key: typed(value) if key in {*QUOTING, "preload"} else value
        for key, value in config.items()
        if key != "captions"
    }
    config.clear()
    # A module's config comes from the other Snakefile, over the defaults here.
    update_config(
        config,
        read_yaml(REPOSITORY / CONFIG) if IN_MODULE else read_config(REPOSITORY),
    )
    update_config(config, given)
    files = [
        *study_files(REPOSITORY / "workflow" / "studies"),
        *study_files(Path("studies")),
    ]
    return load_studies(
        config,
        files,
        _left_out,
        lambda study: asks_for(TARGETS, study),
        lambda names: needed(sys.argv, TARGETS, names),
        given=() if IN_MODULE else given,
    )


# The folder of config.yaml, and of the studies below `workflow`. Of a repository on a host, Snakemake fetches
# only the files that are named: the studies are those of the installed package then.
REPOSITORY = HERE.parent.resolve() if HERE.is_dir() else places.REPOSITORY
if IS_RUN and not IN_MODULE:
    or_stop(lambda: check_command(sys.argv))
# Another Snakefile may ask its module for files that are not known yet.
TARGETS = asked(sys.argv, otherwise=() if IN_MODULE else (DEFAULT,))
STUDIES = or_stop(_studies)
announce(config.get("preload", True) and not DEPLOYED)
improve()
for study in STUDIES.values():
    if IS_RUN and asks_for(TARGETS, study.target):
        or_stop(lambda: check_sizes(study))
for study in STUDIES.values():
    if IS_RUN and not IN_MODULE and not IN_STORAGE:
        if asks_for(TARGETS, study.target) and lost(study.path(paths.REPORT)):
            words = (
                "was made elsewhere: Snakemake's notes on it, .snakemake/metadata, are not here, so Snakemake may not see "
                "what was changed since; copy these notes too, or move the folder away"
            )
            SAID.warning("beware: results/%s %s", study.name, words)
# These settings do not change results, so they are in the environment, where a change reruns nothing.
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
# Folders of plugins. Their code is part of the settings of the steps that run it.
os.environ[plugins.ENVIRONMENT] = os.pathsep.join(map(str, FOLDERS))


wildcard_constraints:
    study="[a-z][a-z0-9_]*(-small|-smoke)?(-opacus)?",
    dataset="[a-z][a-z0-9_]*",
    model="[a-z][a-z0-9_]*",
    defense="(?!(?:shadow|reference)/)[^/]+",
    attack="|".join(ATTACKS),
    role="shadow|reference",
    # Models that are queried together: a cell's targets, or auxiliary models, shared or of one defense.
    group="[^/]+(/(shadow|reference))?",
    answers=f"{SIGNALS}|{CLASS_SCORES}",


def of_job(asked):
    """Return a function of wildcards that calls `asked(study, job)`; the job is a `Job`."""
    return lambda wildcards: or_stop(
        lambda: asked(STUDIES[wildcards.study], Job.read(wildcards))
    )


def inputs_of(step):
    """Return the inputs of a step (or job of several steps) by option."""
    return of_job(ENTRIES[step].reads)


def input_of(step, option):
    """Return the input of a step for one option."""
    return of_job(lambda study, job: STEPS[step].reads(study, job)[option])


def settings_of(step):
    """Return the settings of a step as JSON (Snakemake compares params by value)."""
    return of_job(lambda study, job: canonical(ENTRIES[step].settings(study, job)))


def memory_of(step):
    """Return the megabytes that an attempt requests."""
    asked = of_job(ENTRIES[step].memory)
    return lambda wildcards, attempt: attempt * asked(wildcards)


def minutes_of(step):
    """Return the minutes that an attempt requests."""
    asked = of_job(ENTRIES[step].minutes)
    return lambda wildcards, attempt: attempt * asked(wildcards)


def drawing_time(study):
    """Return the minutes that an attempt to draw or write about a study's cells requests."""
    return lambda wildcards, attempt: attempt * drawing_minutes(len(study.cells))


def own_files(step):
    """Return the user's own files that a step reads."""
    return lambda wildcards: given_by_user(
        STUDIES[wildcards.study],
        lambda study: STEPS[step].own(study, Job.read(wildcards)),
    )


def given_by_user(study, asked):
    """Return the user's own files that `asked(study)` names, as inputs.

    The settings contain a hash of their content. So an edit reruns the step, and a new date does not.
    """
    names = or_stop(lambda: asked(study))
    tell(study.contents)
    plain = [os.path.normpath(user_path(name)) for name in names if is_plain(name)]
    return [ancient(path) for path in plain]


def in_group(named):
    """Return a function of wildcards that gives the job's group, `named(job)`."""
    return lambda wildcards: or_stop(lambda: named(Job.read(wildcards)))


def query_group(job):
    """Return the group in which models are queried: shared ones with the attacks that train on them."""
    return FITTED if job.group in AUXILIARY else JUDGED


def judging_gpus(wildcards):
    """Return the GPUs of a job that uses one if there is one: submissions of a cluster that judge request none."""
    executor = workflow.executor_plugin
    local = executor is None or executor.common_settings.local_exec
    return GPUS if local else 0


def by_file(step, arguments):
    """Return a step's command with its arguments in a file, one per line: many cells exceed a command line's length.

    The shell's own printf writes the file, beside the log, without a limit of length.
    """
    return (
        f"(printf '%s\\n' {arguments} > {{log:q}}.arguments"
        f" && python -m dp_leakage.steps.{step} @{{log:q}}.arguments) 2> {{log:q}}"
    )


# `cuda` requests one GPU; `auto` only if this machine has one (login nodes rarely do).
GPUS = int(config["device"] == "cuda" or (config["device"] == "auto" and has_gpu()))
# Groups of the jobs after a training. They are submitted apart from trainings that hold a GPU.
JUDGED, FITTED = ("judged", "fitted") if GPUS else ("cell", "auxiliary")


def figure_outputs(study, figure):
    """Return a figure's files, with the picture or tables marked for `snakemake --report`.

    `update` keeps files that are current.
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
    """Return the files of a study's target: everything, so that lost files are made again.

    A study without results has nothing to lose, so the report suffices: more names would only slow planning.
    """
    if IN_STORAGE or study.path(paths.STUDY).exists():
        return or_stop(lambda: plan.everything(study))
    return [study.path(paths.REPORT), study.path(paths.CLAIMS)]
