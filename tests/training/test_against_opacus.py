"""The oracle: same start, same batches, no noise, five steps, same parameters as Opacus."""

import pytest
import torch
import torch.nn.functional as F
from opacus import GradSampleModule
from opacus.optimizers import DPOptimizer
from small import SHAPES, data_of, layers_of, started, subsets_of, take

from dp_leakage.models.ensemble import Ensemble
from dp_leakage.privacy.clipping import allowance
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.training import model_batches

MODELS, STEPS, BATCH, CLIP = 3, 5, 8, 0.7
OPTIMIZERS = {  # Adam in float64: it turns float32 rounding of gradients near 0 into steps of the learning rate
    "adam": (torch.float64, {"learning_rate": 0.01}, 1e-12),
    "sgd": (torch.float32, {"learning_rate": 0.1}, 2e-6),
    "momentum": (torch.float64, {"learning_rate": 0.1, "momentum": 0.9}, 1e-12),
}

pytestmark = pytest.mark.filterwarnings("ignore:Full backward hook is firing")


def torch_optimizer(name, module, settings):
    if name == "adam":
        return torch.optim.Adam(module.parameters(), lr=settings["learning_rate"])
    return torch.optim.SGD(module.parameters(), lr=settings["learning_rate"], momentum=settings.get("momentum", 0))


def opacus_steps(module, optimizer, x, y, batches):
    module = GradSampleModule(module)
    clip_norm = CLIP / (1 + allowance(BATCH, x.dtype))
    optimizer = DPOptimizer(optimizer, noise_multiplier=0.0, max_grad_norm=clip_norm, expected_batch_size=BATCH)
    for rows in batches:
        optimizer.zero_grad()
        F.cross_entropy(module(x[rows]), y[rows]).backward()
        optimizer.step()


def batch_clipping_steps(module, optimizer, x, y, batches):
    """Opacus does not bound whole batches; PyTorch's clipping of an ordinary gradient does."""
    for rows in batches:
        optimizer.zero_grad()
        F.cross_entropy(module(x[rows]), y[rows]).backward()
        torch.nn.utils.clip_grad_norm_(module.parameters(), CLIP / (1 + allowance(1, x.dtype)))
        optimizer.step()


def plain_steps(module, optimizer, x, y, batches):
    for rows in batches:
        optimizer.zero_grad()
        F.cross_entropy(module(x[rows]), y[rows]).backward()
        optimizer.step()


def compare(name, optimizer, mechanism, batches, oracle, tolerance=None):
    """Five steps of ours and of the oracle; ``batches`` is steps × models lists of rows."""
    dtype, settings, default = OPTIMIZERS[optimizer]
    x, y = data_of(name, dtype=dtype)
    layers = layers_of(name)
    kind = "adam" if optimizer == "adam" else "sgd"
    training = started(
        layers, x, y, subsets_of(len(x), MODELS), range(MODELS), mechanism, optimizer=kind, batch_size=BATCH, **settings
    )
    begin = Ensemble(
        layers, {key: value.clone() for key, value in training.models().parameters.items()}, torch.zeros(3, 1)
    )
    take(training, batches)
    ours = training.models()
    for k in range(MODELS):
        module = begin.module(k).to(dtype).train()
        oracle(module, torch_optimizer(optimizer, module, settings), x, y, [step[k] for step in batches])
        for key, value in module.state_dict().items():
            difference = (ours.parameters[key][k] - value).abs().max().item()
            assert difference <= (tolerance or default), (key, difference)


def equal_batches(n=40):
    generator = torch.Generator().manual_seed(1)
    return [[torch.randperm(n, generator=generator)[:BATCH] for _ in range(MODELS)] for _ in range(STEPS)]


def ragged_batches(n=40):
    """As Poisson sampling gives them: none of the models' batches are equally long."""
    generator = torch.Generator().manual_seed(2)
    sizes = [[3, 9, 6], [8, 1, 11], [5, 12, 2], [7, 10, 4], [1, 6, 14]]
    return [[torch.randperm(n, generator=generator)[:size] for size in step] for step in sizes]


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("name", SHAPES)
def test_clipping_every_example(name, optimizer):
    compare(name, optimizer, Mechanism(clip_norm=CLIP, noise="none"), equal_batches(), opacus_steps)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("name", SHAPES)
def test_clipping_whole_batches(name, optimizer):
    mechanism = Mechanism(unit="batch", clip_norm=CLIP, noise="none")
    compare(name, optimizer, mechanism, equal_batches(), batch_clipping_steps)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("name", SHAPES)
def test_plain_training(name, optimizer):
    compare(name, optimizer, None, equal_batches(), plain_steps)


@pytest.mark.parametrize("name", SHAPES)
def test_poisson_batches(name):
    compare(name, "adam", Mechanism("poisson", clip_norm=CLIP, noise="none"), ragged_batches(), opacus_steps)


@pytest.mark.parametrize("name", ["softmax_regression", "mlp", "lenet", "mixed"])
@pytest.mark.parametrize("private", [True, False])
def test_models_with_ragged_batches_in_one_padded_pass(name, private, monkeypatch):
    monkeypatch.setattr(model_batches, "model_batch_size", lambda *_: MODELS)
    mechanism = Mechanism("poisson", clip_norm=CLIP, noise="none") if private else None
    compare(name, "adam", mechanism, ragged_batches(), opacus_steps if private else plain_steps)


@pytest.mark.parametrize("name", ["lenet", "mlp"])
def test_batches_wider_than_a_pass_are_summed_piece_by_piece(name, monkeypatch):
    monkeypatch.setattr(model_batches, "pass_width", lambda *_: 3)
    compare(name, "adam", Mechanism(clip_norm=CLIP, noise="none"), equal_batches(), opacus_steps)
    compare(name, "adam", Mechanism(unit="batch", clip_norm=CLIP, noise="none"), equal_batches(), batch_clipping_steps)
    compare(name, "adam", None, equal_batches(), plain_steps)


def test_normalizing_gives_every_example_the_same_length():
    x, y = data_of("mlp", dtype=torch.float64)
    layers = layers_of("mlp")
    mechanism = Mechanism(bound="normalize", clip_norm=3.0, noise="none")
    training = started(layers, x, y, subsets_of(len(x), 1), [0], mechanism, learning_rate=1.0, batch_size=4)
    before = training.parameters.clone()
    take(training, [[torch.tensor([7])]])
    # One record in a batch of nominally four: a step of exactly C/4.
    assert (training.parameters - before).norm().item() == pytest.approx(3.0 / 4, rel=1e-9)


@pytest.mark.parametrize("l2_on", ["all", "last"])
def test_the_penalty_is_kerass_on_weights_only_and_comes_after_bounding(l2_on):
    x, y = data_of("mlp", dtype=torch.float64)
    layers = layers_of("mlp")
    rows = torch.arange(8)
    moved = {}
    for l2 in (0.0, 0.05):
        training = started(
            layers, x, y, subsets_of(len(x), 1), [0], Mechanism(noise="none"), learning_rate=1.0, l2=l2, l2_on=l2_on
        )
        start = {key: value.clone() for key, value in training.models().parameters.items()}
        take(training, [[rows]])
        moved[l2] = training.models().parameters
    last = f"{len(layers) - 1}.weight"
    for key, value in start.items():
        penalized = key.endswith("weight") and (l2_on == "all" or key == last)
        expected = moved[0.0][key] - (2 * 0.05 * value if penalized else 0)
        torch.testing.assert_close(moved[0.05][key], expected, rtol=1e-12, atol=1e-14)
