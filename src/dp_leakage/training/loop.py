"""Loop over the epochs: evaluation, checkpoints, divergence. It is the same for every engine."""

import math
from collections.abc import Callable
from typing import Any, Protocol

import torch.nn.functional as F
from torch import Tensor

from dp_leakage.common.errors import UserError
from dp_leakage.models.ensemble import Models, rows_of
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.training.checkpoint import Checkpoint
from dp_leakage.training.settings import TrainingSettings

History = list[dict[str, Any]]


class Training(Protocol):
    """Interface of an engine to the loop: the state that changes while K models train."""

    epoch: int
    history: History

    def run_epoch(self) -> None:
        """Take every step of one epoch, for all models."""

    def models(self) -> Models:
        """Return the models as they are now."""

    def tensors(self) -> dict[str, Tensor]:
        """Return all state except ``epoch`` and ``history``, for a checkpoint."""

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Restore the state from the tensors of `tensors`."""


class Diverged(UserError):
    """A training whose numbers became infinite."""


def run(
    training: Training,
    x: Tensor,
    y: Tensor,
    settings: TrainingSettings,
    mechanism: Mechanism | None,
    evaluate_on: Tensor | None,
    trace: Tensor | None,
    checkpoint: Checkpoint | None,
    on_epoch: Callable[[int], None] | None,
) -> None:
    """Train to the last epoch, from the checkpoint if there is one. Arguments as in `trainer.train`."""
    saved = checkpoint.load() if checkpoint is not None else None
    if checkpoint is not None and saved is not None:
        tensors, facts = saved
        if (other := facts["device"]) != x.device.type:
            raise UserError(
                f"checkpoint {checkpoint.path} is of a training on {other}, this one runs on {x.device.type} and would "
                f"draw other numbers; set key 'device' to {other}, or delete the checkpoint"
            )
        for place, row in enumerate(facts["history"]):
            if (losses := tensors.pop(_losses_of(place), None)) is not None:
                row["losses"] = losses
        training.restore(tensors)
        training.epoch, training.history = facts["epoch"], facts["history"]
    good = None
    while training.epoch < settings.epochs:
        training.run_epoch()
        training.epoch += 1
        models = training.models()
        if not all(bool(values.isfinite().all()) for values in models.parameters.values()):
            if checkpoint is not None and good is not None:
                checkpoint.save(*good)
            # Under a mechanism the parameters are already noised, so that their overflow reveals nothing more.
            raise Diverged(divergence(training.epoch, settings, mechanism))
        if training.epoch % settings.evaluate_every == 0 or training.epoch == settings.epochs:
            training.history += evaluate(models, x, y, evaluate_on, training.epoch, trace)
        if checkpoint is not None:
            good = _snapshot(training, x.device.type)
            if checkpoint.due():
                checkpoint.save(*good)
        if on_epoch is not None:
            on_epoch(training.epoch)


def _snapshot(training: Training, device: str) -> tuple[dict[str, Tensor], dict]:
    # On its own device: most snapshots are never saved, and a copy to the CPU waits for all work.
    tensors = {name: tensor.clone() for name, tensor in training.tensors().items()}
    rows = [{name: value for name, value in row.items() if name != "losses"} for row in training.history]
    # Not as text: there are as many as records, models and epochs together.
    traced = {_losses_of(place): row["losses"] for place, row in enumerate(training.history) if "losses" in row}
    return tensors | traced, {"epoch": training.epoch, "history": rows, "device": device}


def _losses_of(place: int) -> str:
    """Return the name in a checkpoint of the losses of a row of the history."""
    return f"history.{place}.losses"


def divergence(epoch: int, settings: TrainingSettings, mechanism: Mechanism | None) -> str:
    """Return the error message for a training that diverged in this epoch, counted from 1."""
    cause = f"learning_rate {settings.learning_rate:g} is likely too high"
    if mechanism is not None and mechanism.noise == "gaussian" and mechanism.noise_multiplier:
        cause += f" for a noise multiplier of {mechanism.noise_multiplier:g}"
    return f"training diverged in epoch {epoch} of {settings.epochs}: {cause}; try a tenth of it"


def evaluate(
    models: Models, x: Tensor, y: Tensor, evaluate_on: Tensor | None, epoch: int, trace: Tensor | None = None
) -> History:
    """Return the history's rows of this epoch, one for each model."""
    rows: History = []
    for model in range(models.size):
        own = rows_of(models.train_indices[model])
        logits = models.logits(x, [model], own)[0]
        test_accuracy = math.nan
        if evaluate_on is not None:
            other = evaluate_on.expand(models.size, -1)[model].to(x.device)
            test_accuracy = _accuracy(models.logits(x, [model], other)[0], y[other])
        rows.append(
            {
                "model": model,
                "epoch": epoch,
                "loss": F.cross_entropy(logits, y[own], reduction="none").double().mean().item(),
                "train_accuracy": _accuracy(logits, y[own]),
                "test_accuracy": test_accuracy,
            }
        )
        if trace is not None:
            asked = trace.to(x.device)
            said = models.logits(x, [model], asked)[0]
            rows[-1]["losses"] = F.cross_entropy(said, y[asked], reduction="none").cpu()
    return rows


def _accuracy(logits: Tensor, y: Tensor) -> float:
    return (logits.argmax(1) == y).double().mean().item()
