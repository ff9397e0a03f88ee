"""Train once, or choose among several trainings at a privacy cost, and write the folder."""

import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import numpy as np
import torch

from dp_leakage import __version__
from dp_leakage.common.config import Json
from dp_leakage.common.dates import this_day
from dp_leakage.common.errors import UserError
from dp_leakage.common.utilities import ACCURACY
from dp_leakage.metrics import utility
from dp_leakage.models.ensemble import class_probabilities
from dp_leakage.models.layers import Layers, Parameters, forward
from dp_leakage.release.accuracy import accuracy_of, use_of
from dp_leakage.release.card import pages
from dp_leakage.release.folder import (
    MODEL,
    PRIVACY,
    SHEET_PDF,
    WEIGHTS,
    alone,
    as_json,
    check_new,
    write_release,
)
from dp_leakage.release.network import check_onnx, columns_told, onnx_of
from dp_leakage.release.outside import follows_from
from dp_leakage.release.plan import Plan
from dp_leakage.release.selection import Best, select
from dp_leakage.release.sheet import pdf, sheet_of
from dp_leakage.release.statement import statement_of
from dp_leakage.training.checkpoint import Checkpoint
from dp_leakage.training.released import Release, normals
from dp_leakage.training.settings import TrainingSettings

ROWS = 1024  # records asked at once
SHARES = 2.0**20  # parts of 1 to which a person's share of right answers is rounded
Show = Callable[[int, int], None]


def silent(epoch: int, epochs: int) -> None:
    """Show nothing."""


def release(plan: Plan, folder: Path, interval: float, measured: Json, show: Show = silent) -> Json:
    """Train under the plan and write the release; return its privacy statement.

    A killed training continues from its last checkpoint, which holds noised parameters and no seed. Later steps were
    seen by nobody and are drawn again, so the released result has used the records once.

    Args:
        plan: of the release.
        folder: must not exist.
        interval: seconds between two checkpoints.
        measured: see `measured.measured_of`.
        show: called after each epoch with the number of finished and of all epochs.

    Raises:
        UserError: the folder exists or cannot be written, or the training diverged.
    """
    check_new(folder)
    with alone(folder) as working:
        best = chosen(plan, working, interval, show)
        if best.setting is None:
            shutil.rmtree(working)
            rates = ", ".join(dict.fromkeys(f"{settings['training']['learning_rate']:g}" for settings in plan.grid))
            noise = f"a noise multiplier of {plan.training.mechanism.sigma:.3g}"
            raise UserError(f"training diverged: learning_rate {rates} is too high for {noise}; try a tenth of it")
        statement = statement_of(
            plan.told,
            accountant=plan.cell.columns["accountant"],
            epsilon=plan.cell.columns["epsilon"],
            delta=plan.cell.columns["delta"],
            selection=plan.selection,
        )
        # A hash of the records would tell better which releases share them, and tell a guess at the members as well.
        statement |= {
            "made_by": f"dp-leakage {__version__}",
            "study": plan.study.target,
            "declared": plan.declared,
            "measured": measured,
        }
        files = contents(plan, plan.grid[best.setting], best.parameters, statement)
        write_release(folder, files)
    return statement


def chosen(plan: Plan, working: Path, interval: float, show: Show) -> Best:
    """Return the best of the plan's trainings; without a choice there is one. All others are erased with the
    folder.
    """
    made = plan.identity

    def train(run: int, setting: int) -> Parameters | None:
        path = working / f"training{run}.safetensors"
        return trained(plan, plan.grid[setting], Checkpoint(path, f"{made}-{run}", interval), show)

    def score(setting: int, parameters: Parameters) -> float:
        return scored(plan, plan.layers(plan.grid[setting]), parameters)

    def erase(run: int) -> None:
        (working / f"training{run}.safetensors").unlink(missing_ok=True)

    state = Checkpoint(working / "best.safetensors", made, 0.0)
    return select(plan.selection, len(plan.grid), state, train, score, erase)


def trained(plan: Plan, settings: Json, checkpoint: Checkpoint, show: Show) -> Parameters | None:
    """Return the parameters of one training, from its checkpoint if there is one; None if it diverged."""
    training = TrainingSettings(**settings["training"])
    one = Release(plan.layers(settings), *plan.records, training, plan.training.mechanism, person=plan.owners)
    if (saved := checkpoint.load()) is not None:
        one.restore(saved[1]["epoch"], saved[0])
    while one.epoch < training.epochs:
        if not one.run_epoch():
            return None
        if checkpoint.due():
            checkpoint.save(one.state(), {"epoch": one.epoch})
        show(one.epoch, training.epochs)
    return one.parameters()


def scored(plan: Plan, layers: Layers, parameters: Parameters) -> float:
    """Score a training for the choice: its use on the test records; or, with noise, the right answers on its own.

    The noise hides one record's answer, or all answers of one person.
    """
    if plan.selection is None:
        return 0.0
    noise = plan.selection["score_noise"]
    rows, data = plan.judged if noise is None else plan.rows, plan.data
    if noise is None and plan.measure != ACCURACY:
        told = class_probabilities(logits(layers, parameters, data.x[rows]))
        return utility.scored(plan.measure, data.y[rows], told, data.y[plan.rows])
    right = answers(layers, parameters, data.x[rows]) == data.y[rows]
    if noise is None:
        return float(right.sum())
    own = right if plan.person is None else shares(right, plan.person)
    return float(own.sum() + noise * normals(1)[0])


def shares(right: np.ndarray, person: np.ndarray) -> np.ndarray:
    """Return the share of each person's answers that are right, float64: a person changes their sum by at most 1.

    Rounded to multiples of 2⁻²⁰, so that the sum is exact.
    """
    _, own, counts = np.unique(person, return_inverse=True, return_counts=True)
    return np.rint(np.bincount(own, right) / counts * SHARES) / SHARES


def contents(plan: Plan, settings: Json, parameters: Parameters, statement: Json) -> dict[str, bytes]:
    """Return every file of the release except the hashes: name → bytes. Raises UserError if the ONNX file gives other
    outputs.
    """
    from safetensors.torch import save

    layers = plan.layers(settings)
    model = onnx_of(plan.raw, plan.fitted, layers, parameters)
    check_onnx(model, plan.raw, plan.data.x, layers, parameters)
    files = {
        WEIGHTS: save({name: tensor.contiguous() for name, tensor in sorted(parameters.items())}),
        MODEL: model,
    }
    statement |= {
        "files": {name: sha256(content).hexdigest() for name, content in files.items()},
        "released": f"{this_day()}",
        "model": {
            "architecture": settings["architecture"],
            "training": {key: value for key, value in settings["training"].items() if key != "evaluate_every"},
            "input": list(plan.raw.x.shape[1:]),
            "columns": columns_told(plan.raw),
            "numbers_divided_by": plan.raw.divisor,
            "classes": list(plan.raw.class_names),
            **accuracy(plan, layers, parameters),
        },
    }
    statement["outside"] = list(dict.fromkeys([*plan.outside, *follows_from(statement)]))
    return files | {PRIVACY: as_json(statement), **pages(statement), SHEET_PDF: pdf(sheet_of(statement))}


def answers(layers: Layers, parameters: Parameters, x: np.ndarray) -> np.ndarray:
    """Return the class that the model names for each record, int64 (n,)."""
    return np.asarray(logits(layers, parameters, x).argmax(1).numpy())


@torch.no_grad()
def logits(layers: Layers, parameters: Parameters, x: np.ndarray) -> torch.Tensor:
    """Return the model's outputs for each record, (n, classes)."""
    one = {name: tensor[None] for name, tensor in parameters.items()}
    return torch.cat([forward(layers, one, part[None])[0][0] for part in torch.from_numpy(x).split(ROWS)])


def accuracy(plan: Plan, layers: Layers, parameters: Parameters) -> Json:
    """Return the statement on accuracy and use, see `accuracy_of` and `use_of`; empty if all records are used for
    training.
    """
    rows, data = plan.judged, plan.data
    if not len(rows):
        return {"accuracy": None, "accuracy_on": 0}
    outputs, y, owners = logits(layers, parameters, data.x[rows]), data.y[rows], data.owners(rows)
    right = outputs.argmax(1).numpy() == y
    return accuracy_of(right, y, owners) | use_of(
        plan.measure, y, class_probabilities(outputs), data.y[plan.rows], owners
    )
