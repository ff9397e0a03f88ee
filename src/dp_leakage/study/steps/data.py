"""Steps that make a data set: load and split, learn features, then project (``data.smk``)."""

from collections.abc import Callable
from pathlib import Path

from dp_leakage.common.config import Json
from dp_leakage.common.errors import UserError
from dp_leakage.common.identity import identity
from dp_leakage.common.paths import user_path
from dp_leakage.data import SOURCES, files_of
from dp_leakage.data.projection_settings import FEATURES, LEARNED, ProjectionSettings
from dp_leakage.data.trees import content_of, content_of_source
from dp_leakage.study import paths
from dp_leakage.study.contents import known
from dp_leakage.study.protocol import public_source, public_training, seed_of, source_of
from dp_leakage.study.resources import public_minutes
from dp_leakage.study.step_code import own_layers, step_code
from dp_leakage.study.steps.entry import STEPS, Step, always
from dp_leakage.study.study import Study

MEMBERS_LIST = ("dp_leakage.data.members",)  # the module that reads the key ``members`` of any source


def prepare_settings(study: Study, dataset: str) -> Json:
    """Return the settings of step ``prepare``."""
    spec, source = study.spec["datasets"][dataset], source_of(study.spec, dataset)
    return {
        "study": study.name,
        "dataset": dataset,
        "source": source,
        "content": source_content(study, f"datasets.{dataset}.source", source),
        "roles": spec["roles"],
        "stratified": spec.get("stratified", False),
        "official_split": spec.get("official_split", False),
        "augment": spec.get("augment"),
        "seed": seed_of(study.spec, dataset, "split"),
        "code": step_code("prepare", SOURCES[source["source"]].module, *(MEMBERS_LIST if "members" in source else ())),
    }


def source_content(study: Study, where: str, source: Json) -> str | None:
    """Return the digest of the user's own files, so that an edit reruns dependent steps; None for other sources.

    ``where`` is the source's key in the study.

    Raises:
        UserError: the file does not exist.
    """

    def content(key: str) -> str:
        try:
            return digest_of(study, source[key])
        except UserError as error:
            raise UserError(f"study {study.target}: key '{where}.{key}': {error}") from None

    return content_of_source(source, content)


def digest_of(study: Study, file: str, read: Callable[[Path], str] = content_of) -> str:
    """Return the digest of one of the user's files, so that an edit reruns dependent steps. Raises UserError if it
    is missing.
    """
    if file not in study.contents:
        study.contents[file] = known(file) or read(user_path(file))
    return study.contents[file]


def features_settings(study: Study, dataset: str) -> Json:
    """Return the settings of step ``learn_features``: the training on public records. Raises UserError if it is not
    needed.
    """
    projection = ProjectionSettings.read(study.spec["datasets"][dataset].get("projection"))
    if not projection.learns:
        where = f"key 'datasets.{dataset}.projection.features'"
        raise UserError(f"study {study.target}: {where} is not '{LEARNED}', so there is nothing to learn")
    learned, source = projection.learned_on, public_source(study.spec, dataset)
    return {
        "study": study.name,
        "dataset": dataset,
        "source": source,
        "content": source_content(study, f"datasets.{dataset}.projection.learned_on.source", source),
        "for": source_of(study.spec, dataset),  # whose content does not count
        "mean_std": projection.mean_std,
        "architecture": learned["architecture"],
        "training": public_training(learned),
        "seed": seed_of(study.spec, dataset, LEARNED),
        "code": step_code("learn_features", SOURCES[source["source"]].module, own=own_layers(learned["architecture"])),
    }


def _files_of_learning(settings: Json) -> list[str]:
    return [*files_of(settings["source"]), *files_of(settings["for"])]


def features_of(study: Study, dataset: str) -> Json:
    """Return the identity of the network that computes a data set's features, if they are learned."""
    if not paths.learned_for(study, dataset):
        return {}
    return {"features": study.remembered("features", dataset, lambda: identity(features_settings(study, dataset)))}


def project_settings(study: Study, dataset: str) -> Json:
    """Return the settings of step ``project``."""
    learned = features_of(study, dataset)
    return {
        "study": study.name,
        "dataset": dataset,
        "projection": study.spec["datasets"][dataset].get("projection") or {},
        "seed": seed_of(study.spec, dataset, "projection"),
        "prepared": identity(prepare_settings(study, dataset)),
        "code": step_code("project", *([FEATURES] if learned else [])),
        **learned,
    }


def data_identity(study: Study, dataset: str) -> str:
    """Return the identity of ``data.npz``."""
    return study.remembered("data", dataset, lambda: identity(project_settings(study, dataset)))


STEPS["prepare_dataset"] = Step(
    {"prepared": paths.PREPARED},
    lambda study, job: prepare_settings(study, job.dataset),
    own=lambda study, job: files_of(prepare_settings(study, job.dataset)["source"]),
    memory=always(4000),
    minutes=always(30),
)
STEPS["learn_features"] = Step(
    {"features": paths.FEATURES},
    lambda study, job: features_settings(study, job.dataset),
    own=lambda study, job: _files_of_learning(features_settings(study, job.dataset)),
    memory=always(6000),
    minutes=lambda study, job: public_minutes(features_settings(study, job.dataset)["training"]["epochs"]),
)
STEPS["project_pca"] = Step(
    {"data": paths.DATA},
    lambda study, job: project_settings(study, job.dataset),
    reads=lambda study, job: {"features": paths.learned_for(study, job.dataset)},
    memory=always(6000),
    minutes=always(10),
)
