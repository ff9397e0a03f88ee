"""Training for a release: the study's cell, its records, and the map from raw rows to features."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from dp_leakage.common.config import Json, merged
from dp_leakage.common.errors import UserError, nearest
from dp_leakage.common.identity import identity
from dp_leakage.common.places import STUDIES
from dp_leakage.common.run_config import read_config
from dp_leakage.common.user_code import FILES
from dp_leakage.data.dataset import Dataset
from dp_leakage.data.projection import Fitted, fit_and_project
from dp_leakage.data.projection_settings import HIDDEN, LEARNED, ProjectionSettings
from dp_leakage.data.raw import Raw, sensitive_columns
from dp_leakage.data.roles import OUTSIDERS, TUNING, trained_role
from dp_leakage.metrics.utility import utility_for
from dp_leakage.models.architectures import is_import_path
from dp_leakage.models.layers import Layers
from dp_leakage.privacy.calibration import solved
from dp_leakage.privacy.mechanism import PERSON
from dp_leakage.privacy.mechanisms import with_amount
from dp_leakage.privacy.training import Training
from dp_leakage.release.outside import GAPS
from dp_leakage.release.statement import enough_noise, training_told
from dp_leakage.steps._features import Learned, read_features
from dp_leakage.steps._models import architecture_of, tuned_training
from dp_leakage.steps.prepare import records_of
from dp_leakage.study import Study
from dp_leakage.study.cells import Cell
from dp_leakage.study.file import load_studies, study_files
from dp_leakage.study.paths import learned_for, tuned_for
from dp_leakage.study.protocol import by_person, source_of
from dp_leakage.study.release_grid import rate_told, release_grid
from dp_leakage.study.steps import features_of, prepare_settings, project_settings, train_settings
from dp_leakage.training.released import check_released

DECLARED = ("data_subjects", "sensitive_fields", "decision", "owner", "expires")  # keys of `release` for the sheet


@dataclass(frozen=True)
class Plan:
    """One release, before it is trained.

    Attributes:
        study, cell: source of the release.
        grid: settings of step ``train``, with the learning rate that is used; more than one if the best is chosen.
        selection: choice of the best, see `statement.SELECTION`; None: no choice.
        raw: the source's records, for the names of columns and classes; none of its rows is released.
        data: the records as features.
        rows: int64 (n,): the records that are trained on.
        person: int64 (n,): the owner of each; None if the release hides single records.
        judged: int64 (m,): the records on which accuracy is measured; empty if all are trained on.
        fitted: map from a raw row to features.
        training: with its noise.
        told: the training as numbers, see `statement.training_told`.
        declared: the study's statements about the data and the decision, see `DECLARED`.
        outside: sentences about what ε does not cover, in addition to `outside.follows_from`.
    """

    study: Study
    cell: Cell
    grid: tuple[Json, ...]
    selection: Json | None
    raw: Raw
    data: Dataset
    rows: np.ndarray
    person: np.ndarray | None
    judged: np.ndarray
    fitted: Fitted
    training: Training
    told: Json
    declared: Json
    outside: tuple[str, ...]

    @property
    def measure(self) -> str:
        """The study's measure of use, a key of `utility.UTILITIES`."""
        return utility_for(self.study.spec.get("utility"), self.data.y[self.rows], self.data.y[self.judged])

    @property
    def identity(self) -> str:
        """Return the identity of the training: a checkpoint of other settings, data or code is refused."""
        return identity({"grid": list(self.grid), "told": self.told, "rows": len(self.rows), "choice": self.selection})

    def layers(self, settings: Json) -> Layers:
        """Return the architecture for one setting of the grid."""
        layers: Layers = architecture_of(settings, self.data.x.shape[1:], len(self.raw.class_names))
        return layers

    @property
    def records(self) -> tuple[torch.Tensor, torch.Tensor]:
        """x and y of the records that are trained on."""
        return torch.from_numpy(self.data.x[self.rows]), torch.from_numpy(self.data.y[self.rows])

    @property
    def owners(self) -> torch.Tensor | None:
        """Return the owner of each record, for a user-level release."""
        return None if self.person is None else torch.from_numpy(self.person)

    @property
    def units(self) -> int:
        """Return the number of units of privacy: records, or people."""
        return self.training.dataset_size


def study_named(name: str, scale: str | None = None, release: Json | None = None) -> tuple[Study, Json]:
    """Return a study of this folder, and ``config.yaml``.

    Args:
        name: of the study.
        scale: in place of that of ``config.yaml``.
        release: changes to the study's key ``release``.

    Raises:
        UserError: there is no study of that name, or it or a change is not valid.
    """
    config = read_config() | ({"scale": scale} if scale else {})
    if release:
        config = merged(config, {"overrides": {name: {"release": release}}})
    files = [*study_files(STUDIES), *study_files(Path("studies"))]

    def failed(called: set[str], error: UserError) -> None:
        if name in called:
            raise error

    given = ["overrides"] if release else []
    studies = load_studies(config, files, failed, needed=lambda names: {name} & names, given=given)
    for study in studies.values():
        if study.target == name:
            return study, config
    raise UserError(
        f"STUDY: no study is called {name!r} at scale {config['scale']!r}; name one of studies/ or workflow/studies/"
    )


def plan_of(study: Study, cell: Cell, data_dir: Path, wanted: Json) -> Plan:
    """Read the records and solve for the noise.

    Args:
        study, cell: see `study_named`, `Study.cell_named`.
        data_dir: of published data sets.
        wanted: the study's key ``release``.

    Raises:
        UserError: the cell cannot be released, a role is unknown, or the study must run first.
    """
    settings = _settings(study, cell)
    roles, raw, data, fitted, outside = _records(study, cell, data_dir, wanted)
    rows = np.concatenate([data.roles[role] for role in roles])
    person = data.owners(rows)
    units = len(rows) if person is None else len(np.unique(person))
    judged = np.empty(0, np.int64) if OUTSIDERS in roles else data.roles[OUTSIDERS]
    training = settings["training"] | {"batch_size": min(settings["training"]["batch_size"], units)}
    settings |= {"training": training}
    grid, selection = _selection(settings, wanted, len(judged))
    schedule = {key: training[key] for key in ("epochs", "batch_size")}
    private = solved(cell.protection, dataset_size=units, **schedule)
    assert private is not None  # as `_settings` makes sure
    check_released(private.mechanism)
    told = enough_noise(training_told(private, len(rows)), selection, cell.columns["epsilon"], cell.columns["delta"])
    private = replace(private, mechanism=with_amount(private.mechanism, told["noise_multiplier"]))
    outside += _looked_at(study, cell, data)
    declared = {"question": study.spec.get("question", ""), "sensitive_fields": _sensitive(raw)}
    declared |= {key: wanted[key] for key in DECLARED if key in wanted}
    return Plan(
        study, cell, grid, selection, raw, data, rows, person, judged, fitted, private, told, declared, tuple(outside)
    )


def _selection(settings: Json, wanted: Json, judged: int) -> tuple[tuple[Json, ...], Json | None]:
    """Return the settings to choose from, and how: Papernot & Steinke (2022). UserError if one of them
    cannot be trained.
    """
    grid = release_grid(settings, wanted)
    if "choose" not in wanted:
        return grid, None
    if not judged and "score_noise" not in wanted:
        words = "all records are trained on, so the best is chosen among them by a noisy count of right answers"
        raise UserError(f"release.score_noise is missing; {words}, and this is the noise's standard deviation")
    told = {"mean": wanted.get("mean", 10), "runs": wanted.get("runs", "geometric"), "settings": len(grid)}
    return grid, told | {"score_noise": wanted.get("score_noise")}


def _looked_at(study: Study, cell: Cell, data: Dataset) -> tuple[str, ...]:
    """Return sentences about records that no noise protects."""
    said = []
    if TUNING in data.roles and cell.rates:
        said.append(
            f"The learning rate was chosen on {len(data.roles[TUNING]):,} records set apart, which no ε protects."
        )
    if study.scale != "paper":
        said.append(
            f"The settings are those of the study's scale {study.scale!r}, which is smaller than the study itself."
        )
    return tuple(said)


def _sensitive(raw: Raw) -> list[str]:
    """Return the names of the user's columns that the data set calls sensitive."""
    return [column.name for column in sensitive_columns(raw)[0]]


def _settings(study: Study, cell: Cell) -> Json:
    if cell.training["engine"] != "ensemble":
        raise UserError(f"CELL {cell.key}: engine must be 'ensemble' for a release; got {cell.training['engine']!r}")
    if is_import_path(cell.training["architecture"]["name"]):
        raise UserError(f"CELL {cell.key}: only built-in architectures can be released; name a cell with one of them")
    if cell.step is None:
        raise UserError(f"CELL {cell.key} has no privacy budget; name a cell of defense `gaussian`")
    if by_person(study.spec, cell.dataset) and cell.step.unit != PERSON:
        words = "its data set has the key 'person', so a release must hide persons; name a cell of defense `person`"
        raise UserError(f"CELL {cell.key}: {words}")
    if cell.step.noise != "gaussian":
        words = f"a release must have Gaussian noise; got {cell.step.noise!r}, so name another cell"
        raise UserError(f"CELL {cell.key}: {words}")
    path = next(iter(tuned_for(study, cell)), None)
    if path is not None and not path.exists():
        raise UserError(f"{path} is missing: it holds the cell's learning rate; run `dp-leakage run {study.target}`")
    settings = train_settings(study, cell)
    training, _ = tuned_training(settings, path)
    return settings | {"training": settings["training"] | rate_told(settings["training"], training.learning_rate)}


def _records(
    study: Study, cell: Cell, data_dir: Path, wanted: Json
) -> tuple[list[str], Raw, Dataset, Fitted, tuple[str, ...]]:
    spec = study.spec["datasets"][cell.dataset]
    projection = ProjectionSettings.read(spec.get("projection"))
    if spec.get("augment"):
        raise UserError(
            f"datasets.{cell.dataset}.augment: a release cannot protect copies of one image; remove the key"
        )
    if projection.private:
        words = "draws its noise from the study's seed, so it cannot be released; remove `noise`"
        raise UserError(f"datasets.{cell.dataset}.projection {words}")
    for key in ("features", "groups", "mean_std"):
        if getattr(projection, key) not in (None, "none", LEARNED):
            raise UserError(f"datasets.{cell.dataset}.projection.{key}: a release cannot compute it yet; remove it")
    raw, rows = records_of(prepare_settings(study, cell.dataset), data_dir)
    roles = wanted.get("roles", [trained_role(rows)])
    for role in roles:
        if role not in rows:
            raise UserError(f"release.roles: {role!r} is not a role of {cell.dataset}; {nearest(role, rows)}")
    seed = project_settings(study, cell.dataset)["seed"]
    learned = _learned(study, cell.dataset, projection, raw)
    dataset = Dataset(raw.x, raw.y, rows, raw.sensitive, raw.person)
    data, _, fitted = fit_and_project(dataset, spec.get("projection"), seed, learned)
    outside = [*_outside(raw, source_of(study.spec, cell.dataset), projection, rows, roles)]
    outside += learned.notes if learned else ()
    return roles, raw, data, fitted, tuple(outside)


def _learned(study: Study, dataset: str, projection: ProjectionSettings, raw: Raw) -> Learned | None:
    """Return the network that computes the features, which the study has trained; None if they are not learned."""
    if not projection.learns:
        return None
    (path,) = learned_for(study, dataset)
    if not path.exists():
        raise UserError(f"{path} is missing: it computes the features; run `dp-leakage run {study.target}`")
    layers = projection.learned_on.get("layers", HIDDEN)
    learned = read_features(path, features_of(study, dataset)["features"], layers, raw.x)
    if learned.copies:  # no noise hides them, nor would their number in the statement
        words = "are among those that its features were learned from, which no noise hides; leave them out of either"
        raise UserError(f"datasets.{dataset}: {learned.copies:,} of its records {words}")
    return learned


def _outside(
    raw: Raw, source: Json, projection: ProjectionSettings, rows: Mapping[str, np.ndarray], roles: Sequence[str]
) -> list[str]:
    """Return the people outside the unit of ε, and the preparation that used records without noise."""
    said = [
        f"Column {name!r} seems to name persons, and ε is for one record: it promises less to a person with several."
        for name, _ in raw.persons
    ]
    if projection.fits:
        fitted = projection.fitted_on(rows)
        own = "some of which the model trains on" if set(fitted) & set(roles) else "none of which the model trains on"
        count = sum(len(rows[role]) for role in fitted)
        said.append(f"Scaling or principal components were computed from {count:,} records without noise, {own}.")
    if source.get("missing") == "impute" or source["source"] in FILES:  # also without a gap, which would say so
        said.append(GAPS)
    return said
