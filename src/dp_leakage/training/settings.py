"""How a model is trained, apart from its protection (the `Mechanism`)."""

import math
from dataclasses import dataclass
from typing import Literal

from dp_leakage.common.errors import UserError, nearest

OPTIMIZERS = ("adam", "sgd")
INITIALISATIONS = ("torch", "glorot")


@dataclass(frozen=True)
class TrainingSettings:
    """Optimiser, duration and batch size, shared by the whole ensemble.

    Attributes:
        optimizer: ``adam`` (β 0.9, 0.999; ε 1e-8) or ``sgd``.
        learning_rate: > 0.
        final_learning_rate: > 0. The rate changes linearly, epoch by epoch, from ``learning_rate`` in the first epoch
            to this in the last; None keeps it constant. It depends on no data and costs no privacy.
        momentum: of ``sgd``, in [0, 1); Adam must leave it at 0.
        l2: λ ≥ 0 of a penalty λ·Σw² (Keras' convention: its gradient is 2λw) on weights, not on biases. It does not
            depend on the data, so it is added after noising and costs no privacy.
        l2_on: penalise the weights of ``all`` layers, or only of the ``last``.
        epochs: passes over the model's records, ≥ 1.
        batch_size: records per step, ≥ 1; for ``poisson`` the expected number, so that the rate is batch_size/n; for
            ``class_poisson`` each (sub)class has that same rate, and batch_size may be a fraction.
        evaluate_every: epochs between rows of the history; the last epoch always has one.
        initialisation: of the built-in layers: ``torch``, as in PyTorch, or ``glorot``, as in Keras (see
            `layers.initial_parameters`).
    """

    optimizer: Literal["adam", "sgd"] = "adam"
    learning_rate: float = 0.01
    momentum: float = 0.0
    l2: float = 0.0
    l2_on: Literal["all", "last"] = "all"
    epochs: int = 100
    batch_size: float = 200
    evaluate_every: int = 1
    initialisation: Literal["torch", "glorot"] = "torch"
    final_learning_rate: float | None = None

    def __post_init__(self) -> None:
        if self.optimizer not in OPTIMIZERS:
            raise UserError(f"optimizer {self.optimizer!r} is unknown; {nearest(self.optimizer, OPTIMIZERS)}")
        if self.l2_on not in ("all", "last"):
            raise UserError(f"l2_on {self.l2_on!r} is unknown; {nearest(self.l2_on, ('all', 'last'))}")
        if self.initialisation not in INITIALISATIONS:
            raise UserError(
                f"initialisation {self.initialisation!r} is unknown; {nearest(self.initialisation, INITIALISATIONS)}"
            )
        valid = {
            "learning_rate": (self.learning_rate > 0, "above 0"),
            "final_learning_rate": (self.final_learning_rate is None or self.final_learning_rate > 0, "above 0"),
            "momentum": (0 <= self.momentum < 1, "in [0, 1)"),
            "l2": (self.l2 >= 0, "0 or more"),
            "epochs": (self.epochs >= 1, "at least 1"),
            "batch_size": (self.batch_size > 0, "above 0"),
            "evaluate_every": (self.evaluate_every >= 1, "at least 1"),
        }
        for key, (holds, rule) in valid.items():
            if not holds:
                raise UserError(f"{key} is {getattr(self, key)} but must be {rule}")
        if self.momentum and self.optimizer != "sgd":
            raise UserError(f"momentum {self.momentum} is for optimizer 'sgd', not {self.optimizer!r}")

    def rate(self, epoch: int) -> float:
        """The learning rate in an epoch, counted from 0.

        >>> [TrainingSettings(learning_rate=1.0, final_learning_rate=0.5, epochs=3).rate(epoch) for epoch in range(3)]
        [1.0, 0.75, 0.5]
        """
        if self.final_learning_rate is None or self.epochs == 1:
            return self.learning_rate
        return self.learning_rate + (self.final_learning_rate - self.learning_rate) * epoch / (self.epochs - 1)

    def steps_per_epoch(self, n: int) -> int:
        """Steps in one pass over ``n`` records: ⌈n / batch_size⌉."""
        return math.ceil(n / self.batch_size)
