"""What is refused of a user's module before and after a private training, and what a step does with huge records."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from opacus.layers import DPLSTM
from torch import nn

from dp_leakage.common.errors import UserError
from dp_leakage.models.user_module import module_layers
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.training.module_probe import check_module
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.trainer import start, train

INPUTS, CLASSES, WIDTH, BATCH = 8, 5, 6, 8
C = 0.5


class Net(nn.Module):
    """Harmless, with dropout; the others change what happens between its two layers."""

    def __init__(self, rate=0.0):
        super().__init__()
        self.enter, self.leave = nn.Linear(INPUTS, WIDTH), nn.Linear(WIDTH, CLASSES)
        self.dropout = nn.Dropout(rate)

    def forward(self, x):
        return self.leave(self.dropout(self.between(torch.tanh(self.enter(x)), x)))

    def between(self, h, x):
        return h


class WithFunctionalDropout(Net):
    def between(self, h, x):
        return F.dropout(h, 0.3, self.training)


class WithLayerNorm(Net):
    def __init__(self):
        super().__init__(0.3)
        self.norm = nn.LayerNorm(WIDTH)

    def between(self, h, x):
        return self.norm(h)


class OfCategories(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.leave = nn.Embedding(2, 3), nn.Linear(3, CLASSES)

    def forward(self, x):
        return self.leave(self.embed(x.long()).mean(1))


class Convolutional(nn.Sequential):
    def __init__(self):
        norm = nn.InstanceNorm1d(4)
        super().__init__(nn.Unflatten(1, (2, 4)), nn.Conv1d(2, 4, 3, padding=1), norm, nn.Flatten(), nn.Linear(16, 5))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter, self.leave = DPLSTM(2, WIDTH, batch_first=True), nn.Linear(WIDTH, CLASSES)

    def forward(self, x):
        return self.leave(self.enter(x.unflatten(1, (4, 2)))[0][:, -1])


class SometimesUnused(Net):
    """A layer that only some records go through."""

    def __init__(self):
        super().__init__()
        self.extra = nn.Linear(WIDTH, WIDTH)

    def between(self, h, x):
        large = x.abs().amax(1) > 100
        return h if not large.any() else torch.where(large[:, None], self.extra(h), h)


class Overflowing(Net):
    """Has gradients that are not finite, of the records of huge numbers alone."""

    def between(self, h, x):
        return h * x[:, :WIDTH].square()


def layers_of(module):
    return module_layers(module, (INPUTS,), CLASSES)


HARMLESS = [
    Net,
    Overflowing,
    WithFunctionalDropout,
    WithLayerNorm,
    OfCategories,
    Convolutional,
    Recurrent,
    SometimesUnused,
]


class RunningStatistics(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.InstanceNorm1d(2, track_running_stats=True)
        self.leave = nn.Linear(INPUTS, CLASSES)

    def forward(self, x):
        return self.leave(self.norm(x.unflatten(1, (2, 4))).flatten(1))


class MinusMean(Net):
    def between(self, h, x):
        return h - h.mean(0)


class Rolled(Net):
    def between(self, h, x):
        return h + h.roll(1, 0)


class HiddenBehindZero(Net):
    """What it mixes is multiplied by a parameter that begins at zero."""

    def __init__(self):
        super().__init__()
        self.scale = nn.LayerNorm(WIDTH)
        nn.init.zeros_(self.scale.weight)

    def between(self, h, x):
        return h + self.scale(h - h.mean(0))


class OnlyIfHuge(Net):
    def between(self, h, x):
        return h - h.mean(0) if bool((x.abs() > 50).any()) else h


class OnlyIfMany(Net):
    def between(self, h, x):
        return h - h.mean(0) if len(x) >= BATCH else h


class ByCountAndDraws(Net):
    """Draws by functions, where no dropout layer can be found."""

    def between(self, h, x):
        h = F.dropout(h, 0.1, self.training) + torch.randn_like(h) + torch.empty_like(h).uniform_()
        return h * len(x)


class ByCount(Net):
    def between(self, h, x):
        return h / len(x)


class MaskedAttention(Net):
    """Others have weight zero, and so no influence while they are finite."""

    def between(self, h, x):
        return torch.eye(len(x)) @ (2 * x[:, :WIDTH]) + h


class MixingBackward(Net):
    class Mixed(torch.autograd.Function):
        @staticmethod
        def forward(ctx, h):
            return h.clone()

        @staticmethod
        def backward(ctx, delta):
            return delta + delta.mean(0)

    def between(self, h, x):
        return self.Mixed.apply(h)


class Memory(Net):
    mean = 0.0

    def between(self, h, x):
        before, self.mean = self.mean, 0.5 * (self.mean + h.detach().mean(0))
        return h - before


class ListMemory(Net):
    """Keeps records, and shows none of them."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def between(self, h, x):
        self.seen.append(x.detach().sum().item())
        return h


class LastSum(Net):
    """The same after each pass of one batch, but not of two."""

    def __init__(self):
        super().__init__()
        self.last = 0.0

    def between(self, h, x):
        self.last = x.detach().sum().item()
        return h


CALLS = []


class OnlyFromTheFifthStep(Net):
    """Its counter stands outside the module."""

    def between(self, h, x):
        CALLS.append(0)
        return h - h.mean(0) if len(CALLS) > 5 else h


class OnlyIfLargest(Net):
    def between(self, h, x):
        return h - h.mean(0) if (x.abs() > 3.2e38).any() else h


class HiddenBuffer(Net):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(INPUTS), persistent=False)

    def between(self, h, x):
        self.seen += x.detach().sum(0)
        return h


class WritesParameter(Net):
    def __init__(self):
        super().__init__()
        self.kept = nn.Parameter(torch.zeros(INPUTS), requires_grad=False)

    def between(self, h, x):
        with torch.no_grad():
            self.kept.copy_(x.mean(0))
        return h


class Folded(nn.Module):
    """Every record becomes four, each of which Opacus would clip by itself."""

    def __init__(self):
        super().__init__()
        self.enter = nn.Linear(2, CLASSES)

    def forward(self, x):
        return self.enter(x.reshape(-1, 2)).view(len(x), -1, CLASSES).mean(1)


class OtherDraws(Net):
    def between(self, h, x):
        return h * torch.from_numpy(np.random.default_rng().random(h.shape)).float()


class FailsAlone(Net):
    def between(self, h, x):
        return h.squeeze(0)[: len(x)]


@pytest.mark.parametrize("module", HARMLESS)
def test_a_module_whose_records_stay_apart_passes(module):
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    check_module(*layers_of(module), BATCH)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (RunningStatistics, "changes the buffer 'norm.running_mean', which no noise protects"),
        (HiddenBuffer, "changes the buffer 'seen'"),
        (WritesParameter, "changes the parameter 'kept'"),
        (MinusMean, "its output for one record depends on the other records"),
        (Rolled, "depends on the other records"),
        (HiddenBehindZero, "depends on the other records"),
        (OnlyIfHuge, "depends on the other records"),
        (OnlyIfMany, "depends on the other records"),
        (MaskedAttention, "depends on the other records"),
        (MixingBackward, "gradient of parameter 'enter.weight' for one record depends on the other records"),
        (ByCount, "depends on the number of other records"),
        (ByCountAndDraws, "depends on the number of other records"),
        (Memory, "it must store nothing of earlier batches"),
        (ListMemory, "each forward pass changes its attribute 'seen'"),
        (LastSum, "each forward pass changes its attribute 'last'"),
        (OnlyFromTheFifthStep, "depends on the other records|a second pass of the same batch gives other numbers"),
        (OnlyIfLargest, "depends on the other records"),
        (OtherDraws, "random numbers from PyTorch's stream only"),
        (Folded, "has 4 rows for a batch of 1"),
        (FailsAlone, "fails on a batch of 1"),
    ],
)
def test_a_module_that_noise_cannot_protect_is_refused_before_anything_is_trained(module, message):
    x, y = torch.rand(20, INPUTS), torch.arange(20) % CLASSES
    how = TrainingSettings("sgd", 0.1, epochs=1, batch_size=BATCH)
    private = Mechanism("poisson", clip_norm=C, noise_multiplier=100.0)
    epochs = []
    with pytest.raises(UserError, match=message) as caught:
        train(layers_of(module), x, y, torch.arange(20)[None], [1], how, private, on_epoch=epochs.append)
    assert str(caught.value).startswith(f"{module.__name__} cannot be trained privately: ")
    assert not epochs


class SeesOneRecord(Net):
    """Behaves until a certain record comes."""

    def __init__(self):
        super().__init__()
        self.register_buffer("found", torch.zeros(()))

    def between(self, h, x):
        self.found += (x[:, 0] == 0.123).sum()
        return h


def test_a_buffer_that_the_training_changed_all_the_same_is_not_released():
    x, y = torch.rand(20, INPUTS), torch.arange(20) % CLASSES
    how = TrainingSettings("sgd", 0.1, epochs=1, batch_size=BATCH)
    arguments = (y, torch.arange(20)[None], [1], how, Mechanism(clip_norm=C, noise_multiplier=1.0))
    train(layers_of(SeesOneRecord), x, *arguments)
    x[4, 0] = 0.123
    with pytest.raises(UserError, match=r"training changed '0\.found', which no noise protects"):
        train(layers_of(SeesOneRecord), x, *arguments)


def bounded_sums(module, x, y, batches):
    """Each batch's sum of bounded gradients, which noise is to hide, float64; equal dropout masks for each."""
    how = TrainingSettings("sgd", 0.1, epochs=1, batch_size=BATCH)
    mechanism = Mechanism("poisson", clip_norm=C, noise="none")
    with torch.inference_mode():
        training = start(module, x, y, torch.arange(len(x))[None], [3], how, mechanism)
        begun, found = {name: tensor.clone() for name, tensor in training.tensors().items()}, []
        for rows in batches:
            training.restore(begun)
            training.fill_gradient([[rows]])
            found.append(training.program.gradient[0].double() * BATCH)
    assert bool(training.parameters.isfinite().all())
    return found


@pytest.mark.parametrize("size", [0.0, 1e-42, 1e4, 1e16, 1e19, 1e20, 1e30, 3e38])
@pytest.mark.parametrize("module", HARMLESS)
def test_no_record_moves_the_sum_by_more_than_the_bound(module, size):
    generator = torch.Generator().manual_seed(5)
    x = torch.randint(2, (12, INPUTS), generator=generator).float()
    if module is OfCategories and size > 1:
        pytest.skip("its categories are 0 and 1")
    y = torch.arange(12) % CLASSES
    row, other, limit = 8, 12, C * (1 + 1e-4)
    changed = size * torch.where(torch.arange(INPUTS) % 3 == 0, -1.0, 1.0)
    if module is OfCategories:
        changed = torch.full((INPUTS,), size)
    x, y = torch.cat([x, changed[None]]), torch.cat([y, torch.tensor([0])])
    without = [*range(3, row)]
    batches = [[*without, row], [*without, other], without, [other], []]
    before, after, less, alone, nothing = bounded_sums(
        layers_of(module), x, y, [torch.tensor(b, dtype=torch.long) for b in batches]
    )
    assert before.any()
    assert (after - before).norm() <= 2 * limit
    assert alone.norm() <= limit
    if module in (Net, Overflowing, Convolutional, Recurrent, SometimesUnused, OfCategories):  # without dropout
        assert (after - less).norm() <= limit
    assert not nothing.any()


def test_a_huge_record_does_not_stop_a_private_training():
    x, y = torch.rand(20, INPUTS), torch.arange(20) % CLASSES
    x[4] = 3e38
    how = TrainingSettings("sgd", 0.1, epochs=2, batch_size=BATCH)
    models, history = train(
        layers_of(Overflowing), x, y, torch.arange(20)[None], [1], how, Mechanism(clip_norm=C, noise_multiplier=1.0)
    )
    assert all(bool(value.isfinite().all()) for value in models.parameters.values())
    assert len(history) == 2


class TakesNothing(Net):
    def between(self, h, x):
        if bool(x.any()):
            raise ValueError("only zeros")
        return h


def test_a_module_that_cannot_be_tried_is_refused():
    with pytest.raises(UserError, match="fails on random records of shape \\(8,\\)"):
        check_module(*layers_of(TakesNothing), BATCH)
