"""Train the K models of one cell (targets, shadow or reference models) as one ensemble."""

import math
import time
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dp_leakage.common.errors import UserError
from dp_leakage.common.identity import derived_seed, identity
from dp_leakage.common.paths import use_copies
from dp_leakage.common.user_code import FILES, call
from dp_leakage.common.utilities import ACCURACY
from dp_leakage.data.dataset import Dataset
from dp_leakage.data.persons import numbers
from dp_leakage.data.splits import dealt, heads
from dp_leakage.data.subclasses import PARTITIONS
from dp_leakage.engines import ENGINES, OPACUS, TRAINERS, files_of
from dp_leakage.engines.answers import Answers, history_of
from dp_leakage.engines.asking import asked
from dp_leakage.metrics.majority import guessing
from dp_leakage.metrics.people import ASKED, RIGHT, RightAnswers, as_independent
from dp_leakage.metrics.utility import Use, columns_of, guessed_use, measured_use, utility_for
from dp_leakage.models.architectures import is_import_path
from dp_leakage.models.ensemble import Ensemble, Models, class_probabilities
from dp_leakage.privacy.mechanism import PERSON, Mechanism, holds_groups
from dp_leakage.privacy.protection import Protection
from dp_leakage.privacy.training import Training
from dp_leakage.provenance.files import read_arrays, write_json, write_table, write_tensors
from dp_leakage.provenance.versions import versions
from dp_leakage.steps import Json, log, provenance, run
from dp_leakage.steps._data import dataset_of
from dp_leakage.steps._kept import Kept, kept_models
from dp_leakage.steps._models import architecture_of, device_of, tuned_training
from dp_leakage.steps._noise import private_training
from dp_leakage.training.checkpoint import checkpoint_beside, forget_beside
from dp_leakage.training.loop import History
from dp_leakage.training.settings import TrainingSettings


def main(
    settings: Json,
    data: Path,
    models: Path,
    history: Path,
    timing: Path,
    device: str,
    checkpoint_seconds: float,
    tuned: Path | None = None,
    own: list[Path] | None = None,
) -> None:
    """Read ``data.npz``, the best learning rate and the user's ``own`` models; writes models, history, wall time.

    Models that an earlier run left are kept if only the number of repeats differs. The wall time is of all models.
    """
    started = time.perf_counter()
    use_copies(files_of(settings), own)
    arrays, _ = read_arrays(data, settings["data"])
    x, y = torch.from_numpy(arrays["x"]), torch.from_numpy(arrays["y"])
    seeds = [derived_seed(settings["seed"], repeat) for repeat in range(settings["repeats"])]
    person = arrays.get("person")
    subsets = _subsets(arrays, settings["subset"], seeds, settings["seed"])
    held = _held(settings["subset"], seeds, settings["seed"], None if person is None else person[subsets[0].numpy()])
    if settings["engine"] in ENGINES:
        made: Json = {"versions": versions(*_library(settings))}
        kept = kept_models(settings, models, history, timing, made)
        rows = [own if held is None else own[held[k]] for k, own in enumerate(subsets)][kept.count :]
        asked_about = dataset_of(arrays)
        further = _answers(settings, asked_about, [own.numpy() for own in rows], seeds[kept.count :]) if rows else {}
        found = Answers.from_tensors(kept.with_tensors(further))
        _write_answers(settings, asked_about, found, subsets[0].numpy(), models, history, made)
        write_json(timing, _timing(started, kept, settings, "cpu"))
        return
    architecture = architecture_of(settings, tuple(x.shape[1:]), int(y.max()) + 1)
    training, chosen = tuned_training(settings, tuned)
    protection = Protection.read(settings["mechanism"])
    step = None if protection is None else protection.step
    units = units_of(person, subsets[0].numpy())
    private = private_training(protection, architecture, training.epochs, training.batch_size, len(units))
    mechanism = None if private is None else private.mechanism
    if mechanism is not None:
        log.info("noise multiplier %s, kappa %s", mechanism.noise_multiplier, mechanism.kappa)
    groups = groups_of(step, x, y, _pool(arrays, settings["subset"]), settings["seed"], person)
    count = group_count(step, y, groups)
    used = device_of(device)  # noise and dropout are other draws on a GPU
    hooked = settings["engine"] == OPACUS or is_import_path(settings["architecture"]["name"])
    made = {"device": used, "versions": versions(*(["opacus"] if hooked else []))}
    kept = kept_models(settings, models, history, timing, made)
    behind = str(kept.count) if kept.count else ""
    resume = checkpoint_beside(models, identity(settings), checkpoint_seconds, behind)
    extra = {"groups": groups, "group_count": count, "checkpoint": resume} if settings["engine"] != OPACUS else {}
    trained: dict[str, np.ndarray] = {}
    epochs: History = []
    if kept.count < len(seeds):
        try:
            further, epochs = import_module(TRAINERS[settings["engine"]]).train(
                architecture,
                x,
                y,
                subsets[kept.count :],
                seeds[kept.count :],
                in_records(training, mechanism, units),
                mechanism,
                held=None if held is None else held[kept.count :],
                evaluate_on=torch.from_numpy(arrays["target_nonmembers"]),
                trace=torch.from_numpy(dataset_of(arrays).traced) if settings.get("traced") else None,
                device=used,
                on_epoch=lambda epoch: log.info("epoch %d of %d", epoch, training.epochs),
                **extra,
            )
        except UserError as error:
            raise UserError(f"{_cell(settings)}: {error}") from None
        trained = {name: tensor.cpu().numpy() for name, tensor in further.tensors().items()}
    tensors = kept.with_tensors(trained)
    ensemble = Ensemble.from_tensors(architecture, {name: torch.from_numpy(own) for name, own in tensors.items()})
    outside = arrays["target_nonmembers"]
    tested = _tested(ensemble.to(used), x, y, outside, person)
    use, judged = _use(settings, dataset_of(arrays), lambda: _said(ensemble.to(used), x, outside))
    chance = guessing(arrays["y"][subsets[0].numpy()], arrays["y"][outside])
    if private is not None:
        private = replace(private, groups=count)
    if private is not None and person is not None:
        others = None if held is not None else arrays["target_nonmembers"]
        private = with_players(private, person, subsets[0].numpy(), others)
    protected = {"training": None if private is None else private.settings}
    measured = {"n_test": as_independent(tested), "guessing": chance}
    # The only tensors that may be shared, see ``dp_leakage.share``.
    shared = sorted(ensemble.parameters)
    stamp = provenance(settings, **protected, **measured, **chosen, **judged, parameters=shared, **made)
    write_tensors(models, tensors, stamp)
    write_table(history, with_answers(_columns(kept.with_history(epochs)), tested, use), stamp)
    write_json(timing, _timing(started, kept, settings, used))
    forget_beside(models)


def _timing(started: float, kept: Kept, settings: Json, device: str) -> Json:
    """Return the time and resources of a training, over all its models, including those from an earlier run.

    A later run requests its time by the passes: how often a record went through a model.
    """
    seconds, models = kept.seconds + time.perf_counter() - started, settings["repeats"]
    passes = models * settings["subset"]["size"] * settings["training"].get("epochs", 1)
    return {"train_seconds": seconds, "models": models, "passes": passes, "device": device}


def _answers(settings: Json, data: Dataset, subsets: list[np.ndarray], seeds: list[int]) -> dict[str, np.ndarray]:
    try:
        return asked(settings["engine"], settings, data, subsets, seeds).tensors()
    except UserError as error:
        raise UserError(f"{_cell(settings)}: {error}") from None


def _write_answers(
    settings: Json, data: Dataset, found: Answers, trained: np.ndarray, models: Path, history: Path, made: Json
) -> None:
    """Write the outputs that an engine stores instead of a model's parameters, and the accuracies."""
    rows = data.roles["target_nonmembers"]
    told = {"n_test": len(rows), "guessing": guessing(data.y[trained], data.y[rows]), "training": None}
    unknown = found.log_probability is None and data.n_classes > 2 and "utility" not in settings
    use, judged = (None, {}) if unknown else _use(settings, data, lambda: found.test_probabilities(rows, data.y))
    stamp = provenance(settings, **told, **judged, **made)
    write_tensors(models, found.tensors(), stamp)
    tested = RightAnswers.of(found.correct(data.y)[:, rows])
    write_table(history, with_answers(history_of(found, data), tested, use), stamp)


def _library(settings: Json) -> list[str]:
    """Return the package whose estimators a cell trains, unless it is recorded anyway."""
    package = str(settings["architecture"]["name"]).partition(":")[0].partition(".")[0]
    return (
        [package] if settings["engine"] == "estimator" and package in ("lightgbm", "interpret", "diffprivlib") else []
    )


def _cell(settings: Json) -> str:
    cell = "/".join(settings[key] for key in ("study", "dataset", "model", "defense"))
    return f"{cell} ({settings['role']} models)"


def _tested(
    models: Models, x: torch.Tensor, y: torch.Tensor, rows: np.ndarray, person: np.ndarray | None
) -> RightAnswers:
    """Count each model's right answers on these rows, per person."""
    asked, true = x[torch.from_numpy(rows)].to(models.device), y[torch.from_numpy(rows)]
    named = [models.logits(asked, [model])[0].argmax(1).cpu() for model in range(models.size)]
    return RightAnswers.of((torch.stack(named) == true).numpy(), None if person is None else person[rows])


def _said(models: Models, x: torch.Tensor, rows: np.ndarray) -> np.ndarray:
    """Return each model's probabilities for these rows, float64 (K, n, classes)."""
    asked = x[torch.from_numpy(rows)].to(models.device)
    return np.stack([class_probabilities(models.logits(asked, [model])[0]) for model in range(models.size)])


def measure_of(settings: Json, data: Dataset) -> tuple[str, np.ndarray]:
    """Return the study's measure of use, and the classes of all records that models may train on, int64 (m,)."""
    trained = data.y[data.trainable]
    return utility_for(settings.get("utility"), trained, data.y[data.roles["target_nonmembers"]]), trained


def _use(settings: Json, data: Dataset, probabilities: Callable[[], np.ndarray]) -> tuple[Use | None, dict[str, Json]]:
    """Return the use of target models on new records, and the use of guessing; empty if the measure is accuracy."""
    measure, trained = measure_of(settings, data)
    if measure == ACCURACY or settings["role"] != "target":
        return None, {}
    rows, told = data.roles["target_nonmembers"], probabilities()
    y, person = data.y[rows], data.owners(rows)
    guess = guessed_use(measure, y, trained, told.shape[2], person)
    said = {"name": measure, "guessing": guess.value, "influences": guess.influences[0].tolist()}
    return measured_use(measure, y, told, trained, person), {"utility": said}


def with_answers(columns: dict[str, list[Any]], tested: RightAnswers, use: Use | None = None) -> dict[str, list[Any]]:
    """Return the columns of a history, one row per model and epoch, and the last epoch's right answers (`RIGHT`).

    ``use`` adds the models' scores in a measure of use other than accuracy.
    """
    last = max(columns["epoch"])
    final = [epoch == last for epoch in columns["epoch"]]
    if use is not None:
        columns = columns | columns_of(
            use, [k if here else None for k, here in zip(columns["repeat"], final, strict=True)]
        )
    right = [tested.right[k] if here else None for k, here in zip(columns["repeat"], final, strict=True)]
    return columns | {RIGHT: right, ASKED: [tested.asked if here else None for here in final]}


def units_of(person: np.ndarray | None, rows: np.ndarray) -> np.ndarray:
    """Return each person's number of rows among these, int64; ones if every record has its own owner."""
    return np.ones(len(rows), np.int64) if person is None else np.unique(person[rows], return_counts=True)[1]


def with_players(private: Training, person: np.ndarray, trained: np.ndarray, others: np.ndarray | None) -> Training:
    """Return a training with the effect of an attack's neighbors on its number of records.

    If people are the units, there is no effect. If single records are the units, ``records`` is the maximum number of
    records that a person adds or removes. The training ``moves`` if the number of records from which batches are drawn
    differs between neighbors. With random inclusion it does not, since the pool has a fixed number of records.

    Args:
        private: the training without this effect.
        person: owner of each row.
        trained: rows that the models train on or randomly include.
        others: rows of the non-members, one of whom, with all records, replaces a fixed member in the attack's
            neighbors; None for random inclusion.
    """
    if private.mechanism.unit == PERSON:
        return private
    units = units_of(person, trained if others is None else np.concatenate([trained, others]))
    return replace(private, records=int(units.max()), moves=others is not None and bool(units.min() < units.max()))


def in_records(training: TrainingSettings, mechanism: Mechanism | None, units: np.ndarray) -> TrainingSettings:
    """Return the settings of a training on people, converted to single records.

    It takes as many steps, with each record at a person's sampling probability: in batches with the mean number of
    records of that many people. ``units`` are the people's numbers of records.
    """
    if (mechanism is not None and mechanism.unit == PERSON) or len(units) == units.sum():
        return training
    size, records = training.batch_size, int(units.sum())
    steps, scaled = math.ceil(len(units) / size), size * records / len(units)
    if mechanism is None or mechanism.sampler != "poisson":
        scaled = math.ceil(records / steps)
    while math.ceil(records / scaled) > steps:  # by rounding
        scaled = math.nextafter(scaled, math.inf)
    return replace(training, batch_size=scaled)


def _subsets(arrays: dict[str, Any], subset: Json, seeds: list[int], seed: int) -> torch.Tensor:
    """Return rows that each model trains on, (K, size): the whole pool of roles, or ``size`` records of it.

    Each model draws them by its own seed; if ``dealt``, the pool in the order of its rows is dealt to all models.
    """
    pool = _pool(arrays, subset)
    if subset["size"] == len(pool) or "person" in arrays:  # a part of the persons has as many records as chance gives
        return pool.expand(len(seeds), -1)
    if subset.get("dealt"):
        return pool.sort().values[torch.from_numpy(dealt(len(pool), subset["size"], len(seeds), seed))]
    generators = (torch.Generator().manual_seed(derived_seed(own, "subset")) for own in seeds)
    drawn = [torch.randperm(len(pool), generator=generator)[: subset["size"]] for generator in generators]
    return torch.stack([pool[rows].sort().values for rows in drawn])


def _pool(arrays: dict[str, Any], subset: Json) -> torch.Tensor:
    """Return all rows that models may train on, int64 (n,)."""
    return torch.cat([torch.from_numpy(arrays[role]) for role in subset["pool"]])


def _held(subset: Json, seeds: list[int], seed: int, person: np.ndarray | None) -> torch.Tensor | None:
    """Return which records of its subset each model trains on, bool (K, records); None if all.

    They are set by the random inclusion of design ``coins``, or by the people ``dealt`` to the model. ``person`` is
    the owner of each record: a person's records are included together.
    """
    own = None if person is None else numbers(person, np.arange(len(person)))
    if "coins" in subset:
        tossed = heads(subset["size"], len(seeds), subset["coins"])
    elif own is not None and subset.get("dealt"):
        count = int(own.max()) + 1
        chosen = dealt(count, subset["size"], len(seeds), seed)
        tossed = np.stack([np.isin(np.arange(count), some) for some in chosen])
    else:
        return None
    return torch.from_numpy(tossed if own is None else tossed[:, own])


def groups_of(
    mechanism: Mechanism | None,
    x: torch.Tensor,
    y: torch.Tensor,
    trainable: torch.Tensor,
    seed: int,
    person: np.ndarray | None = None,
) -> torch.Tensor | None:
    """Return the person or the (sub)class of each record, int64 (n,), if those are the mechanism's units.

    ``trainable`` are the rows that models may train on: subclasses are found among these, and not among the records
    that some models happened to draw, so that more models do not move them.
    """
    if mechanism is not None and mechanism.unit == PERSON:
        assert person is not None  # as `study.checks` makes sure
        return torch.from_numpy(person)
    if mechanism is None or not holds_groups(mechanism.unit):
        return None
    if mechanism.unit == "class":
        return y
    rows = trainable.unique()
    if mechanism.unit in FILES:
        own = call(mechanism.unit, "groups", x.numpy(), y.numpy(), derived_seed(seed, "groups"))
        if (
            not isinstance(own, np.ndarray)
            or own.shape != tuple(y.shape)
            or own.dtype.kind not in "iu"
            or own.min() < 0
        ):
            words = f"expected an array of whole numbers, counted from 0, one for each of {len(y)} records"
            found = getattr(own, "dtype", type(own).__name__)
            raise UserError(f"plugin {mechanism.unit}: groups returns {found}; {words}")
        return torch.as_tensor(own, dtype=torch.int64)
    split = PARTITIONS[mechanism.settings["partition"]]
    groups = torch.zeros_like(y)
    found = split(x[rows].numpy(), y[rows].numpy(), mechanism.settings["k_sub"], derived_seed(seed, "subclasses"))
    groups[rows] = torch.from_numpy(found)
    return groups


def group_count(mechanism: Mechanism | None, y: torch.Tensor, groups: torch.Tensor | None) -> int | None:
    """Return the number of (sub)classes, including empty ones; None if they are not the units.

    For subclasses it must not depend on which of them occur: a single record could decide that.
    """
    if mechanism is None or groups is None or not holds_groups(mechanism.unit):
        return None
    if mechanism.unit in FILES:
        return int(groups.max()) + 1
    return (int(y.max()) + 1) * int(mechanism.settings.get("k_sub", 1))


def _columns(epochs: History) -> dict[str, list[Any]]:
    names = ("epoch", "loss", "train_accuracy", "test_accuracy")
    columns = {"repeat": [row["model"] for row in epochs], **{name: [row[name] for row in epochs] for name in names}}
    if "losses" in epochs[0]:
        columns["losses"] = [row["losses"].tolist() for row in epochs]
    return columns


if __name__ == "__main__":
    torch.set_num_threads(1)
    options = {"device": "auto", "checkpoint_seconds": 60.0}
    written = ("models", "history", "timing")
    run(main, "data", *written, "tuned?", lists=("own",), options=options, kept=written)
