"""Trains once, and writes the folder."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from dp_leakage.common.config import Json
from dp_leakage.common.errors import UserError
from dp_leakage.common.identity import identity
from dp_leakage.models.layers import Parameters, forward
from dp_leakage.release.folder import PRIVACY, as_json, check_new, working_folder, write_release
from dp_leakage.release.plan import Plan
from dp_leakage.release.statement import statement_of
from dp_leakage.training.checkpoint import Checkpoint
from dp_leakage.training.released import Release

WEIGHTS = "weights.safetensors"
ROWS = 1024  # records asked at once


def release(plan: Plan, folder: Path, interval: float, on_epoch: Callable[[int], None] = lambda epoch: None) -> Json:
    """Trains under the plan and writes the release; returns its privacy statement.

    A killed training goes on from its last checkpoint, which holds noised parameters and no seed. What came after it
    was seen by nobody and is drawn anew, so what is released has looked at the records once.

    Args:
        plan: what is trained.
        folder: which must not exist.
        interval: seconds between two checkpoints.
        on_epoch: called after each epoch with the number of finished ones.

    Raises:
        UserError: the folder exists or cannot be written, or the training diverged.
    """
    check_new(folder)
    working = working_folder(folder)
    working.mkdir(parents=True, exist_ok=True)
    working.chmod(0o700)
    checkpoint = Checkpoint(working / "training.safetensors", _identity(plan), interval)
    parameters = trained(plan, checkpoint, on_epoch)
    statement = statement_of(
        plan.mechanism,
        plan.told,
        accountant=plan.cell.columns["accountant"],
        epsilon=plan.cell.columns["epsilon"],
        delta=plan.cell.columns["delta"],
        selection=None,
        outside=plan.outside,
    )
    write_release(folder, contents(plan, parameters, statement))
    return statement


def trained(plan: Plan, checkpoint: Checkpoint, on_epoch: Callable[[int], None]) -> Parameters:
    """The parameters of one training, from its checkpoint if there is one. Raises UserError if it diverged."""
    one = Release(plan.layers, *plan.records, plan.training, plan.mechanism)
    if (saved := checkpoint.load()) is not None:
        one.restore(saved[1]["epoch"], saved[0])
    while one.epoch < plan.training.epochs:
        if not one.run_epoch():
            raise UserError(
                f"training diverged: learning_rate {plan.training.learning_rate:g} is too high for a noise multiplier "
                f"of {plan.mechanism.sigma:.3g}; try a tenth of it"
            )
        if checkpoint.due():
            checkpoint.save(one.state(), {"epoch": one.epoch})
        on_epoch(one.epoch)
    return one.parameters()


def contents(plan: Plan, parameters: Parameters, statement: Json) -> dict[str, bytes]:
    """Every file of the release but the hashes: name → bytes."""
    from safetensors.torch import save

    return {
        WEIGHTS: save({name: tensor.contiguous() for name, tensor in sorted(parameters.items())}),
        PRIVACY: as_json(statement),
    }


@torch.no_grad()
def accuracy(plan: Plan, parameters: Parameters) -> float | None:
    """The share of right answers on the records that are judged; None if there are none."""
    if not len(plan.judged):
        return None
    one = {name: tensor[None] for name, tensor in parameters.items()}
    x, y = torch.from_numpy(plan.data.x[plan.judged]), plan.data.y[plan.judged]
    said = np.concatenate([forward(plan.layers, one, part[None])[0][0].argmax(1).numpy() for part in x.split(ROWS)])
    return float((said == y).mean())


def _identity(plan: Plan) -> str:
    """Of what is trained: a checkpoint of other settings, data or code is refused."""
    return identity({"settings": plan.settings, "told": plan.told, "rows": len(plan.rows)})
