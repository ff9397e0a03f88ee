"""Engine ``opacus``: trains one model after the other by Opacus' `PrivacyEngine` and PyTorch's own loop.

It is the reference for tests of `trainer`: it shares no code of the step. It is many times slower.
"""

import warnings
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector
from torch.utils.data import DataLoader, TensorDataset

from dp_leakage.common.errors import UserError
from dp_leakage.models.ensemble import Ensemble, trained_rows
from dp_leakage.models.layers import Layers, initial_parameters
from dp_leakage.models.layers import module as module_of
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.training.averages import AVERAGE, move_average, start_average
from dp_leakage.training.loop import Diverged, History, divergence, evaluate
from dp_leakage.training.opacus_support import check_opacus
from dp_leakage.training.requests import check_request
from dp_leakage.training.samplers import HEADS
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.streams import stream


def train(
    layers: Layers,
    x: Tensor,
    y: Tensor,
    subsets: Tensor,
    seeds: Sequence[int],
    settings: TrainingSettings,
    mechanism: Mechanism | None = None,
    *,
    held: Tensor | None = None,
    evaluate_on: Tensor | None = None,
    trace: Tensor | None = None,
    device: str = "cpu",
    on_epoch: Callable[[int], None] | None = None,
) -> tuple[Ensemble, History]:
    """Train K models by Opacus. Arguments, results and errors are those of `trainer.train`.

    Batches are drawn from all rows of a model's subset, and excluded rows leave the batch afterwards. So the sampling
    rate, the number of steps and the divisor depend on the subset's length, never on inclusion.
    """
    check_request(layers, x, y, subsets, seeds, settings, mechanism, held)
    check_opacus(settings, mechanism)
    rows = trained_rows(subsets, held)
    runs = [
        _OneModel(layers, x, y, subsets[k], None if held is None else held[k], seed, settings, mechanism, device)
        for k, seed in enumerate(seeds)
    ]
    records, classes = x.to(device), y.to(device)
    history: History = []
    for epoch in range(1, settings.epochs + 1):
        for run in runs:
            run.run_epoch(epoch - 1)
        parameters = {name: torch.stack([run.tensors()[name] for run in runs]) for name in runs[0].tensors()}
        models = Ensemble(layers, parameters, rows.to(device), mechanism)
        if not all(bool(values.isfinite().all()) for values in models.parameters.values()):
            raise Diverged(divergence(epoch, settings, mechanism))
        if epoch % settings.evaluate_every == 0 or epoch == settings.epochs:
            history += evaluate(models, records, classes, evaluate_on, epoch, trace)
        if on_epoch is not None:
            on_epoch(epoch)
    parameters = {name: values.cpu().clone() for name, values in models.parameters.items()}
    return Ensemble(layers, parameters, rows, mechanism), history


class _OneModel:
    """One model in training: a `torch.nn.Sequential` under Opacus' engine, or under PyTorch's optimizer alone."""

    def __init__(
        self,
        layers: Layers,
        x: Tensor,
        y: Tensor,
        subset: Tensor,
        held: Tensor | None,
        seed: int,
        settings: TrainingSettings,
        mechanism: Mechanism | None,
        device: str,
    ) -> None:
        self.settings, self.device = settings, device
        self.draws = stream(seed, "dropout").initial_seed()
        self.module = module_of(layers).to(x)
        first = initial_parameters(layers, stream(seed, "init"), settings.initialization)
        with torch.no_grad():
            for name, own in _tensors(self.module).items():
                own.copy_(first[name])
        self.module.to(device)
        weights = [own for own in self.module.parameters() if own.requires_grad]
        self.optimizer = _optimizer(settings, weights)
        self.penalized = _penalized(self.module, settings)
        inside = torch.ones(len(subset), dtype=torch.bool) if held is None else held.cpu()
        rows = subset.cpu()
        self.loader: DataLoader = DataLoader(
            TensorDataset(x[rows], y[rows], inside),
            batch_size=max(1, round(settings.batch_size)),
            shuffle=True,
            generator=stream(seed, "batches"),
        )
        self.memory = start_average(settings, parameters_to_vector(weights).detach())
        self.private = mechanism is not None
        if mechanism is not None:
            self._make_private(mechanism, seed, 1.0 if held is None else HEADS)

    def _make_private(self, mechanism: Mechanism, seed: int, share: float) -> None:
        """Hand module, optimizer and loader to `PrivacyEngine`; batches hold this share of the rows that are drawn."""
        from opacus import PrivacyEngine

        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Secure RNG turned off")  # a measured model's seed is known anyway
            engine = PrivacyEngine(accountant="rdp")
        try:
            self.module, self.optimizer, self.loader = engine.make_private(
                module=self.module.train(),
                optimizer=self.optimizer,
                data_loader=self.loader,
                noise_multiplier=mechanism.noise_multiplier or 0.0,
                max_grad_norm=mechanism.clip_norm,
                poisson_sampling=mechanism.sampler == "poisson",
                noise_generator=stream(seed, "noise", self.device),
            )
        except Exception as error:  # of many kinds: whatever Opacus cannot take
            raise UserError(f"Opacus cannot train this model privately: {error}") from error
        self.optimizer.expected_batch_size = self.settings.batch_size * share

    def run_epoch(self, epoch: int) -> None:
        """Take every step of an epoch, counted from 0."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.settings.rate(epoch)
        self.module.train()
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Full backward hook is firing")  # records need no gradient
            torch.manual_seed(self.draws + epoch)
            for step, (x, y, inside) in enumerate(self.loader, epoch * len(self.loader)):
                self._step(x[inside].to(self.device), y[inside].to(self.device))
                if self.memory:
                    flat = parameters_to_vector(self._weights().values()).detach()
                    move_average(self.settings, self.memory[AVERAGE], flat, step, len(self.loader))

    def _step(self, x: Tensor, y: Tensor) -> None:
        self.optimizer.zero_grad()
        F.cross_entropy(self.module(x), y, reduction="mean" if len(y) else "sum").backward()
        # The penalty depends on no record, so it is added behind the noise.
        if not self.private:
            self._penalize()
            self.optimizer.step()
        elif self.optimizer.pre_step():
            self._penalize()
            self.optimizer.original_optimizer.step()

    def _penalize(self) -> None:
        for weight in self.penalized:
            assert weight.grad is not None
            weight.grad.add_(weight.detach(), alpha=2 * self.settings.l2)

    def tensors(self) -> dict[str, Tensor]:
        """Return the parameters, or their average so far, and the buffers, named as `Ensemble.parameters` are."""
        now = {name: own.detach() for name, own in _tensors(self._inner).items()}
        if not self.memory:
            return now
        weights = self._weights()
        pieces = self.memory[AVERAGE].split([own.numel() for own in weights.values()])
        return now | {name: piece.view_as(own) for (name, own), piece in zip(weights.items(), pieces, strict=True)}

    @property
    def _inner(self) -> nn.Module:
        return self.module._module if self.private else self.module

    def _weights(self) -> dict[str, nn.Parameter]:
        return {name: own for name, own in self._inner.named_parameters() if own.requires_grad}


def _tensors(module: nn.Module) -> dict[str, Tensor]:
    return dict(module.named_parameters()) | dict(module.named_buffers())


def _optimizer(settings: TrainingSettings, weights: list[nn.Parameter]) -> torch.optim.Optimizer:
    if settings.optimizer == "adam":
        return torch.optim.Adam(weights, lr=settings.learning_rate)
    return torch.optim.SGD(weights, lr=settings.learning_rate, momentum=settings.momentum)


def _penalized(module: nn.Module, settings: TrainingSettings) -> list[nn.Parameter]:
    """Return the matrices and kernels, neither biases nor scales, that the ℓ2 penalty acts on."""
    weights = [own for own in module.parameters() if own.requires_grad and own.ndim > 1]
    if not settings.l2:
        return []
    return weights[-1:] if settings.l2_on == "last" else weights
