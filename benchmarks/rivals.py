"""The ways to take one training step that ours is compared with, each as the libraries' documentation shows it.

Every function returns a step: a function without arguments that draws a batch and updates one model. All start from
the same kind of module and data, and gather their batch from one tensor.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dp_leakage.models.architectures import build
from dp_leakage.models.layers import Layers
from dp_leakage.models.layers import module as module_of

BATCH = 200
CLIP, NOISE = 1.0, 1.0
Step = Callable[[], None]


@dataclass(frozen=True)
class Workload:
    """A model, its data's shape, its optimizer, and the device of all of it."""

    name: str
    architecture: str
    shape: tuple[int, ...]
    classes: int
    optimizer: str
    learning_rate: float
    device: str = "cpu"

    def layers(self) -> Layers:
        return build(self.architecture, self.shape, self.classes)

    def data(self, n: int) -> tuple[Tensor, Tensor]:
        generator = torch.Generator().manual_seed(1)
        x = torch.randn(n, *self.shape, generator=generator)
        y = torch.randint(0, self.classes, (n,), generator=generator)
        return x.to(self.device), y.to(self.device)

    def module(self) -> nn.Sequential:
        module = module_of(self.layers())
        for layer in module.modules():
            if hasattr(layer, "reset_parameters"):
                layer.reset_parameters()
        return module.to(self.device)

    def torch_optimizer(self, module: nn.Module, **options: bool) -> torch.optim.Optimizer:
        kind = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}[self.optimizer]
        return kind(module.parameters(), lr=self.learning_rate, **options)


WORKLOADS = (
    Workload("softmax_regression", "softmax_regression", (50,), 100, "adam", 0.01),
    Workload("mlp", "mlp", (50,), 100, "adam", 0.01),
    Workload("lenet28", "lenet", (1, 28, 28), 10, "sgd", 0.05),
    Workload("lenet32", "lenet", (3, 32, 32), 10, "sgd", 0.05),
    Workload("resnet32", "resnet", (3, 32, 32), 10, "sgd", 0.05),
)


def batches(x: Tensor, y: Tensor) -> Callable[[], tuple[Tensor, Tensor]]:
    """Shuffled batches for ever, a permutation per epoch."""

    def endless():
        while True:
            for rows in torch.randperm(len(x)).split(BATCH):
                yield x[rows], y[rows]

    return endless().__next__


def plain(workload: Workload, x: Tensor, y: Tensor, **options: bool) -> Step:
    """PyTorch's ordinary loop, not private."""
    module, draw = workload.module(), batches(x, y)
    optimizer = workload.torch_optimizer(module, **options)

    def step() -> None:
        inputs, classes = draw()
        optimizer.zero_grad()
        F.cross_entropy(module(inputs), classes).backward()
        optimizer.step()

    return step


def plain_fused(workload: Workload, x: Tensor, y: Tensor) -> Step:
    return plain(workload, x, y, fused=True)


def opacus_hooks(workload: Workload, x: Tensor, y: Tensor) -> Step:
    """Opacus' per-sample gradients from hooks, with its own optimizer; batches as for the others, not its loader."""
    from opacus import GradSampleModule
    from opacus.optimizers import DPOptimizer

    module, draw = GradSampleModule(workload.module()), batches(x, y)
    optimizer = DPOptimizer(
        workload.torch_optimizer(module), noise_multiplier=NOISE, max_grad_norm=CLIP, expected_batch_size=BATCH
    )

    def step() -> None:
        inputs, classes = draw()
        optimizer.zero_grad()
        F.cross_entropy(module(inputs), classes).backward()
        optimizer.step()

    return step


def opacus_poisson(workload: Workload, layers: Layers, records: int, batch: int) -> Step:
    """An epoch, not a step, of Opacus' documented loop: its hooks, its optimizer and its own Poisson loader."""
    from opacus import PrivacyEngine
    from torch.utils.data import DataLoader, TensorDataset

    module = module_of(layers)
    for layer in module.modules():
        if hasattr(layer, "reset_parameters"):
            layer.reset_parameters()
    module, optimizer, loader = PrivacyEngine().make_private(
        module=module,
        optimizer=workload.torch_optimizer(module),
        data_loader=DataLoader(TensorDataset(*workload.data(records)), batch_size=batch),
        noise_multiplier=NOISE,
        max_grad_norm=CLIP,
    )

    def epoch() -> None:
        for inputs, classes in loader:
            optimizer.zero_grad()
            F.cross_entropy(module(inputs), classes).backward()
            optimizer.step()

    return epoch


def opacus_ghost(workload: Workload, x: Tensor, y: Tensor) -> Step:
    """Opacus' fast gradient clipping: norms without per-sample gradients, then a second backward pass."""
    from opacus.grad_sample import GradSampleModuleFastGradientClipping
    from opacus.optimizers import DPOptimizerFastGradientClipping
    from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

    module = GradSampleModuleFastGradientClipping(
        workload.module(), max_grad_norm=CLIP, use_ghost_clipping=True, loss_reduction="mean"
    )
    optimizer = DPOptimizerFastGradientClipping(
        workload.torch_optimizer(module), noise_multiplier=NOISE, max_grad_norm=CLIP, expected_batch_size=BATCH
    )
    loss = DPLossFastGradientClipping(module, optimizer, nn.CrossEntropyLoss(), "mean")
    draw = batches(x, y)

    def step() -> None:
        inputs, classes = draw()
        optimizer.zero_grad()
        loss(module(inputs), classes).backward()
        optimizer.step()

    return step


def vmap_grad(workload: Workload, x: Tensor, y: Tensor) -> Step:
    """`torch.func`: the gradient of one example, mapped over the batch."""
    from torch.func import functional_call, grad, vmap

    module, draw = workload.module(), batches(x, y)
    optimizer = workload.torch_optimizer(module)
    parameters = dict(module.named_parameters())

    def loss(values: dict[str, Tensor], one: Tensor, label: Tensor) -> Tensor:
        return F.cross_entropy(functional_call(module, values, (one[None],)), label[None])

    per_example = vmap(grad(loss), in_dims=(None, 0, 0))

    def step() -> None:
        gradients = per_example({k: v.detach() for k, v in parameters.items()}, *draw())
        norms = torch.stack([g.flatten(1).norm(dim=1) for g in gradients.values()]).norm(dim=0)
        scales = (CLIP / (norms + 1e-6)).clamp(max=1.0)
        for name, parameter in parameters.items():
            total = torch.einsum("b,b...->...", scales, gradients[name])
            parameter.grad = (total + NOISE * CLIP * torch.randn_like(total)) / BATCH
        optimizer.step()

    return step
