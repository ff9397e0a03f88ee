"""Training settings of a model other than its protection (the `Mechanism`)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from dp_leakage.common.errors import UserError, nearest

Optimizer = Literal["adam", "sgd"]
Schedule = Literal["linear", "cosine"]
Penalized = Literal["all", "last"]
Initialization = Literal["torch", "glorot"]
CHOICES = {"optimizer": Optimizer, "schedule": Schedule, "l2_on": Penalized, "initialization": Initialization}


@dataclass(frozen=True)
class TrainingSettings:
    """Optimizer, duration and batch size, shared by the whole ensemble.

    Attributes:
        optimizer: ``adam`` (β 0.9, 0.999; ε 1e-8) or ``sgd``.
        learning_rate: > 0.
        final_learning_rate: > 0. The rate changes, epoch by epoch, from ``learning_rate`` in the first epoch to this in
            the last; None keeps it constant. It depends on no data and costs no privacy.
        schedule: shape of that change: ``linear``, or ``cosine``, half a wave (Loshchilov & Hutter 2017).
        warmup_epochs: ≥ 0, below ``epochs``. Before that schedule, the rate rises linearly: in the first of k such
            epochs it is 1/(k + 1) of ``learning_rate``.
        momentum: of ``sgd``, in [0, 1); Adam must leave it at 0.
        l2: λ ≥ 0 of a penalty λ·Σw² (Keras' convention: its gradient is 2λw) on weights, not on biases. It does not
            depend on the data, so it is added after noising and costs no privacy.
        l2_on: penalize the weights of ``all`` layers, or only of the ``last``.
        epochs: passes over the model's records, ≥ 1.
        batch_size: records per step, ≥ 1; for ``poisson`` the expected number, so that the rate is batch_size/n; for
            ``class_poisson`` each (sub)class has that same rate, and batch_size may be a fraction.
        evaluate_every: epochs between rows of the history; the last epoch always has one.
        average_decay: in (0, 1). Evaluate and keep an exponential moving average of the parameters with this decay; at
            step t at most (1 + t)/(10 + t) (De et al. 2022). It costs no privacy. None: the last parameters.
        average_epochs: ≥ 1. As ``average_decay``, with the plain mean over the steps of this many last epochs.
        views: {count, shift, mirror}: each step sees that many augmented copies of each image, see `training.views`;
            None for the images as they are.
        initialization: of the built-in layers: ``torch``, as in PyTorch, or ``glorot``, as in Keras (see
            `layers.initial_parameters`).
    """

    optimizer: Optimizer = "adam"
    learning_rate: float = 0.01
    momentum: float = 0.0
    l2: float = 0.0
    l2_on: Penalized = "all"
    epochs: int = 100
    batch_size: float = 200
    evaluate_every: int = 1
    initialization: Initialization = "torch"
    final_learning_rate: float | None = None
    schedule: Schedule = "linear"
    warmup_epochs: int = 0
    average_decay: float | None = None
    average_epochs: int | None = None
    views: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        for key, choice in CHOICES.items():
            value, known = getattr(self, key), get_args(choice)
            if value not in known:
                raise UserError(f"{key} {value!r} is unknown; {nearest(value, known)}")
        valid = {
            "learning_rate": (self.learning_rate > 0, "above 0"),
            "final_learning_rate": (self.final_learning_rate is None or self.final_learning_rate > 0, "above 0"),
            "momentum": (0 <= self.momentum < 1, "in [0, 1)"),
            "l2": (self.l2 >= 0, "0 or more"),
            "epochs": (self.epochs >= 1, "at least 1"),
            "batch_size": (self.batch_size > 0, "above 0"),
            "evaluate_every": (self.evaluate_every >= 1, "at least 1"),
            "warmup_epochs": (0 <= self.warmup_epochs < max(self.epochs, 1), "0 or more and below epochs"),
            "average_decay": (self.average_decay is None or 0 < self.average_decay < 1, "between 0 and 1"),
            "average_epochs": (self.average_epochs is None or self.average_epochs >= 1, "at least 1"),
        }
        for key, (holds, rule) in valid.items():
            if not holds:
                raise UserError(f"{key} is {getattr(self, key)} but must be {rule}")
        if self.momentum and self.optimizer != "sgd":
            raise UserError(f"momentum {self.momentum} is for optimizer 'sgd', not {self.optimizer!r}")
        if self.average_decay is not None and self.average_epochs is not None:
            raise UserError("average_decay and average_epochs are both set; set one of them")

    @property
    def averages(self) -> bool:
        """Return whether an average of the parameters is recorded."""
        return self.average_decay is not None or self.average_epochs is not None

    def rate(self, epoch: int) -> float:
        """Return the learning rate in an epoch, counted from 0.

        >>> [TrainingSettings(learning_rate=1.0, final_learning_rate=0.5, epochs=3).rate(epoch) for epoch in range(3)]
        [1.0, 0.75, 0.5]
        """
        if epoch < self.warmup_epochs:
            return self.learning_rate * (epoch + 1) / (self.warmup_epochs + 1)
        last = self.epochs - 1 - self.warmup_epochs
        if self.final_learning_rate is None or last == 0:
            return self.learning_rate
        after: float = epoch - self.warmup_epochs
        if self.schedule == "cosine":
            after = last * (1 - math.cos(math.pi * after / last)) / 2
        return self.learning_rate + (self.final_learning_rate - self.learning_rate) * after / last
