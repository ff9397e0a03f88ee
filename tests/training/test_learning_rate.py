"""A falling learning rate against PyTorch's own schedule."""

import pytest
import torch
import torch.nn.functional as F
from small import data_of, layers_of, subsets_of

from dp_leakage.common.errors import UserError
from dp_leakage.models.layers import initial_parameters, module
from dp_leakage.models.user_module import module_layers
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.streams import stream
from dp_leakage.training.trainer import train

FALLING = {"learning_rate": 0.5, "final_learning_rate": 0.1, "epochs": 5, "batch_size": 40, "evaluate_every": 5}


def oracle(optimizer: str, momentum: float) -> dict[str, torch.Tensor]:
    """Five whole-batch steps of PyTorch under its linear schedule, from the same start."""
    layers, (x, y) = layers_of("mlp"), data_of("mlp", dtype=torch.float64)
    oracle_module = module(layers).double()
    start = initial_parameters(layers, stream(3, "init"), "torch")
    oracle_module.load_state_dict({name: value.double() for name, value in start.items()})
    kind = torch.optim.SGD(oracle_module.parameters(), lr=0.5, momentum=momentum)
    if optimizer == "adam":
        kind = torch.optim.Adam(oracle_module.parameters(), lr=0.5)
    schedule = torch.optim.lr_scheduler.LinearLR(kind, 1.0, 0.2, total_iters=4)
    for _ in range(5):
        kind.zero_grad()
        F.cross_entropy(oracle_module(x), y).backward()
        kind.step()
        schedule.step()
    return dict(oracle_module.state_dict())


@pytest.mark.parametrize(("optimizer", "momentum"), [("sgd", 0.0), ("sgd", 0.9), ("adam", 0.0)])
def test_the_ensembles_rate_falls_as_pytorchs_linear_schedule(optimizer, momentum):
    x, y = data_of("mlp", dtype=torch.float64)
    settings = TrainingSettings(optimizer=optimizer, momentum=momentum, **FALLING)
    models, _ = train(layers_of("mlp"), x, y, subsets_of(40, 1), [3], settings)
    for name, value in oracle(optimizer, momentum).items():
        torch.testing.assert_close(models.parameters[name][0], value, rtol=1e-6, atol=1e-8)


def test_a_users_modules_rate_falls_too():
    x, y = data_of("mlp", dtype=torch.float64)
    start = initial_parameters(layers_of("mlp"), stream(3, "init"), "torch")

    def factory():
        made = module(layers_of("mlp"))
        made.load_state_dict(start)
        return made

    models, _ = train(
        module_layers(factory, (12,), 5), x, y, subsets_of(40, 1), [3], TrainingSettings(optimizer="sgd", **FALLING)
    )
    for name, value in oracle("sgd", 0.0).items():
        torch.testing.assert_close(models.parameters[f"0.{name}"][0], value, rtol=1e-6, atol=1e-8)


def test_a_rate_that_is_not_positive_is_refused():
    with pytest.raises(UserError, match=r"final_learning_rate is 0\.0 but must be above 0"):
        TrainingSettings(final_learning_rate=0.0)
