"""The slow engine, which takes any `torch.nn.Module`: Opacus computes the per-example gradients, bounds and noise.

Samplers, streams, evaluation, checkpoints and files are those of the ensemble trainer, so everything else works as with
the built-in architectures. Models train one after the other.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from dp_leakage.common.errors import UserError
from dp_leakage.common.kernels import exact
from dp_leakage.models.ensemble import trained_rows
from dp_leakage.models.user_module import Factory, ModuleEnsemble
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.training.checkpoint import Checkpoint
from dp_leakage.training.loop import History, run
from dp_leakage.training.opacus_probe import check_module, per_example, wrapped
from dp_leakage.training.requests import check_data, check_private
from dp_leakage.training.samplers import HEADS, draw_epoch
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.streams import stream


def train_module(
    factory: Factory,
    x: Tensor,
    y: Tensor,
    subsets: Tensor,
    seeds: Sequence[int],
    settings: TrainingSettings,
    mechanism: Mechanism | None = None,
    *,
    held: Tensor | None = None,
    evaluate_on: Tensor | None = None,
    groups: Tensor | None = None,
    device: str = "cpu",
    checkpoint: Checkpoint | None = None,
    on_epoch: Callable[[int], None] | None = None,
) -> tuple[ModuleEnsemble, History]:
    """Trains K modules of ``factory`` (from `user_module.module_factory`); other arguments are as for `trainer.train`.

    ``groups`` belong to units that this engine refuses.

    Raises:
        UserError: as `trainer.train`, and if this module or mechanism cannot be trained privately.
    """
    check_data(x, y, subsets, seeds, held)
    if settings.averages:
        raise UserError("engine 'opacus' keeps no averages; remove average_decay and average_epochs")
    if mechanism is not None:
        check_private(mechanism, settings, engine="opacus")
        check_module(factory, tuple(x.shape[1:]), math.ceil(min(settings.batch_size, subsets.shape[1])), x.dtype)
    coins = [None] * len(seeds) if held is None else list(held.cpu())
    x, y = x.to(device), y.to(device)  # one copy for all models
    workers = [
        start_module(factory, x, y, rows, seed, settings, mechanism, heads)
        for rows, seed, heads in zip(subsets, seeds, coins, strict=True)
    ]
    training = OpacusTraining(factory, workers, trained_rows(subsets, held))
    with exact():
        run(training, x, y, settings, mechanism, evaluate_on, checkpoint, on_epoch)
    models = training.models()
    parameters = {name: values.cpu() for name, values in models.parameters.items()}
    return ModuleEnsemble(factory, parameters, training.trained_on.cpu()), training.history


@dataclass
class Worker:
    """One model and everything that its training needs and changes."""

    module: nn.Module
    optimizer: torch.optim.Optimizer
    private: bool
    x: Tensor
    y: Tensor
    rows: Tensor
    batches: Generator
    noise: Generator
    dropout: Tensor
    settings: TrainingSettings
    sampler: str
    held: Tensor | None = None

    def __post_init__(self) -> None:
        self.fixed = self._untrained()

    def run_epoch(self, epoch: int = 0) -> None:
        """Takes every step of this epoch. Epochs are counted from 0, and each has its learning rate.

        Raises:
            UserError: a private training changed what is released besides the trained parameters.
        """
        for group in self.optimizer.param_groups:
            group["lr"] = self.settings.rate(epoch)
        batch_size = min(self.settings.batch_size, len(self.rows))
        drawn = draw_epoch(self.sampler, "example", self.rows, batch_size, self.rows, self.batches, self.held)
        # Dropout layers draw from PyTorch's global stream, so this model's stream takes its place meanwhile.
        with torch.random.fork_rng(devices=_cuda_devices(self.x)):
            self._set_global_stream()
            for (rows,) in drawn:
                self._step(rows.to(self.x.device))
            self.dropout = torch.get_rng_state()
        if self.private:
            self._check_untrained()

    def _set_global_stream(self) -> None:
        torch.set_rng_state(self.dropout)
        if self.x.is_cuda:
            torch.cuda.manual_seed(int(torch.randint(2**62, ())))

    def _step(self, rows: Tensor) -> None:
        self.optimizer.zero_grad()
        if len(rows):
            F.cross_entropy(self.module(self.x[rows]), self.y[rows]).backward()
        if self.private:
            self._mask(len(rows))
            self.optimizer.pre_step()
        self._add_penalty()
        (self.optimizer.original_optimizer if self.private else self.optimizer).step()

    def _mask(self, count: int) -> None:
        """Zeros instead of each example's gradient that is not finite, as in `BackwardPass.finite`."""
        found = per_example(self.optimizer.params, count)
        sums = [own.reshape(count, own[0].numel() if count else 0).sum(1) for own in found]
        finite = torch.stack(sums).isfinite().all(0)  # an infinity or NaN stays one in its sum
        if not bool(finite.all()):
            found = [own.where(finite.view(-1, *[1] * (own.ndim - 1)), 0.0) for own in found]
        for parameter, own in zip(self.optimizer.params, found, strict=True):
            parameter.grad_sample = own

    def _untrained(self) -> dict[str, Tensor]:
        """All that is released besides the trained parameters, copied."""
        module = _plain(self.module)
        trained = {name for name, own in module.named_parameters() if own.requires_grad}
        return {name: own.clone() for name, own in module.state_dict().items() if name not in trained}

    def _check_untrained(self) -> None:
        for name, own in self._untrained().items():
            if not torch.allclose(own, self.fixed[name], rtol=0, atol=0, equal_nan=True):
                raise UserError(
                    f"engine 'opacus' cannot train {type(_plain(self.module)).__name__} privately: training changed "
                    f"'{name}', which no noise protects; remove what writes it"
                )

    def _add_penalty(self) -> None:
        """Added after the noise, since the penalty does not depend on the data."""
        weights = [p for p in self.module.parameters() if p.ndim > 1 and p.grad is not None]
        if self.settings.l2:
            for weight in weights if self.settings.l2_on == "all" else weights[-1:]:
                weight.grad.add_(weight.detach(), alpha=2 * self.settings.l2)

    def state(self) -> dict[str, Tensor]:
        """Module, optimiser and streams, for a checkpoint."""
        inner = self.optimizer.original_optimizer if self.private else self.optimizer
        slots = {
            f"optimizer.{index}.{key}": value
            for index, own in inner.state_dict()["state"].items()
            for key, value in own.items()
            if value is not None
        }
        streams = {"batches": self.batches.get_state(), "noise": self.noise.get_state(), "dropout": self.dropout}
        parameters = {f"module.{name}": value.detach() for name, value in _plain(self.module).state_dict().items()}
        return parameters | slots | streams

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """The inverse of `state`."""
        inner = self.optimizer.original_optimizer if self.private else self.optimizer
        own = {name.removeprefix("module."): value for name, value in tensors.items() if name.startswith("module.")}
        _plain(self.module).load_state_dict(own)
        self.fixed = self._untrained()
        slots: dict[int, dict[str, Tensor]] = {}
        for name, value in tensors.items():
            if name.startswith("optimizer."):
                _, index, key = name.split(".", 2)
                slots.setdefault(int(index), {})[key] = value
        inner.load_state_dict({**inner.state_dict(), "state": slots})
        # Clones are aligned; set_state crashes on unaligned memory from a file.
        self.batches.set_state(tensors["batches"].clone())
        self.noise.set_state(tensors["noise"].clone())
        self.dropout = tensors["dropout"].clone()


@dataclass
class OpacusTraining:
    """K workers; see `loop.Training`."""

    factory: Factory
    workers: list[Worker]
    trained_on: Tensor
    epoch: int = 0
    history: History = field(default_factory=list)

    def run_epoch(self) -> None:
        """Every step of one epoch, model after model."""
        for worker in self.workers:
            worker.run_epoch(self.epoch)

    def models(self) -> ModuleEnsemble:
        """The models as they are now, copied."""
        states = [_plain(worker.module).state_dict() for worker in self.workers]
        parameters = {name: torch.stack([state[name].detach() for state in states]) for name in states[0]}
        return ModuleEnsemble(self.factory, parameters, self.trained_on)

    def tensors(self) -> dict[str, Tensor]:
        """All state except ``epoch`` and ``history``."""
        return {
            f"{number}/{name}": value
            for number, worker in enumerate(self.workers)
            for name, value in worker.state().items()
        }

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """The inverse of `tensors`."""
        for number, worker in enumerate(self.workers):
            prefix = f"{number}/"
            worker.restore({n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)})


def start_module(
    factory: Factory,
    x: Tensor,
    y: Tensor,
    rows: Tensor,
    seed: int,
    settings: TrainingSettings,
    mechanism: Mechanism | None,
    held: Tensor | None = None,
) -> Worker:
    """One module at epoch 0, in plain PyTorch if there is no mechanism. The arguments are those of `train_module`."""
    with torch.random.fork_rng(devices=_cuda_devices(x)):
        torch.manual_seed(stream(seed, "init").initial_seed())
        module = factory().to(x.device, x.dtype).train()
        torch.manual_seed(stream(seed, "dropout").initial_seed())
        dropout = torch.get_rng_state()
    noise = stream(seed, "noise", x.device)
    if settings.optimizer == "adam":
        optimizer = torch.optim.Adam(module.parameters(), lr=settings.learning_rate)
    else:
        optimizer = torch.optim.SGD(module.parameters(), lr=settings.learning_rate, momentum=settings.momentum)
    if mechanism is not None:
        expected = min(settings.batch_size, len(rows)) * (1.0 if held is None else HEADS)
        module, optimizer = _private(module, optimizer, mechanism, expected, noise)
    sampler = "shuffle" if mechanism is None else mechanism.sampler
    batches = stream(seed, "batches")
    return Worker(
        module, optimizer, mechanism is not None, x, y, rows.cpu(), batches, noise, dropout, settings, sampler, held
    )


def _private(
    module: nn.Module, optimizer: torch.optim.Optimizer, mechanism: Mechanism, batch_size: float, noise: Generator
) -> tuple[nn.Module, torch.optim.Optimizer]:
    from opacus.optimizers import DPOptimizer

    optimizer = DPOptimizer(
        optimizer,
        noise_multiplier=(mechanism.noise_multiplier or 0.0) if mechanism.noise == "gaussian" else 0.0,
        max_grad_norm=mechanism.clip_norm,
        expected_batch_size=batch_size,
        generator=noise,
    )
    return wrapped(module), optimizer


def _plain(module: nn.Module) -> nn.Module:
    return getattr(module, "_module", module)


def _cuda_devices(x: Tensor) -> list[torch.device]:
    return [x.device] if x.is_cuda else []
