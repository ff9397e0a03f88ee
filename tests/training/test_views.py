"""Several views of each image: what they are, that their mean gradient is bounded as one, and against autograd."""

import pytest
import torch
from small import cut_and_resumed

from dp_leakage.common.errors import UserError
from dp_leakage.models.architectures import build
from dp_leakage.models.layers import module
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.streams import stream
from dp_leakage.training.trainer import start, train
from dp_leakage.training.views import Views, varied
from dp_leakage.training.watch import WhiteBoxObserver

SHAPE, C = (2, 12, 10), 0.05
VIEWS = {"count": 3, "shift": 2}


def case(n=24, size=1.0):
    generator = torch.Generator().manual_seed(3)
    layers = build("convnet", SHAPE, 3, channels=[4, 6], dense=[8], activation="tanh")
    return layers, size * torch.rand(n, *SHAPE, generator=generator), torch.arange(n) % 3


def summed(x, y, batch, mechanism, width=None, views=VIEWS):
    """The bounded sum of one step of the model with seed 5."""
    how = TrainingSettings("sgd", 0.1, epochs=1, batch_size=8, views=views)
    with torch.inference_mode():
        training = start(case()[0], x, y, torch.arange(len(x))[None], [5], how, mechanism)
        training.fill_gradient([[batch]], 0)
        (model_batch,) = training.program.model_batches
        return model_batch, {name: view[0] * training.program.divisor for name, view in model_batch.gradient.items()}


@pytest.mark.parametrize("bound", ["clip", "normalize", "automatic"])
def test_the_sum_is_that_of_autograds_mean_gradients_each_bounded_once(bound):
    layers, x, y = case()
    batch = torch.tensor([4, 9, 0])
    model_batch, ours = summed(x, y, batch, Mechanism("poisson", bound=bound, clip_norm=C, noise_multiplier=0.0))
    oracle = module(layers)
    oracle.load_state_dict({name: view[0].clone() for name, view in model_batch.parameters.items()})
    seen = varied(x[batch], Views(**VIEWS), stream(5, "views"))
    total = {name: torch.zeros_like(value) for name, value in oracle.named_parameters()}
    for place, row in enumerate(batch):
        own = seen[3 * place : 3 * place + 3]
        loss = torch.nn.functional.cross_entropy(oracle(own), y[row].expand(3))  # the mean over the views
        found = dict(zip(total, torch.autograd.grad(loss, list(oracle.parameters())), strict=True))
        length = float(torch.cat([value.flatten() for value in found.values()]).norm())
        scale = {"clip": min(1, C / length), "normalize": C / length, "automatic": C / (length + 0.01)}[bound]
        for name, value in found.items():
            total[name] += scale * value
    for name, value in total.items():
        torch.testing.assert_close(ours[name].clone(), value, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("size", [1e-20, 1.0, 1e10, 1e20, 3e38])
def test_no_image_moves_the_sum_by_more_than_the_bound(size):
    _, x, y = case()
    x[7] = size
    mechanism = Mechanism("poisson", clip_norm=C, noise_multiplier=0.0)
    # The last of the batch, so that its removal leaves the others' views as they are.
    _, whole = summed(x, y, torch.tensor([1, 2, 7]), mechanism)
    _, rest = summed(x, y, torch.tensor([1, 2]), mechanism)
    moved = torch.cat([(whole[name] - rest[name]).double().flatten() for name in whole])
    if size == 1.0:
        assert moved.norm() > 0.9 * C  # the test can fail
    assert moved.norm() <= C * (1 + 1e-4)


def test_one_view_that_is_not_varied_is_the_image_itself():
    layers, x, y = case()
    how = {"optimizer": "sgd", "learning_rate": 0.5, "epochs": 2, "batch_size": 8}
    mechanism = Mechanism("poisson", clip_norm=C, noise_multiplier=0.7)
    for step in (None, mechanism):
        given = layers, x, y, torch.arange(24).expand(2, -1), [1, 2]
        plain, _ = train(*given, TrainingSettings(**how), step)
        same = {"count": 1, "shift": 0, "mirror": False}
        ours, _ = train(*given, TrainingSettings(**how, views=same), step)
        for name, value in plain.parameters.items():
            torch.testing.assert_close(ours.parameters[name], value, rtol=1e-4, atol=1e-5)


def test_views_are_moved_and_mirrored_evenly():
    x = torch.arange(100.0).view(1, 1, 10, 10)
    seen = varied(x, Views(4000, 2, True), torch.Generator().manual_seed(0))[:, 0]
    # A pixel in the middle: its 25 places and two directions are equally likely (chi-square, once in 10,000).
    counts = torch.zeros(50)
    for view in seen:
        row, column = ((view == 44).nonzero())[0].tolist()
        mirrored = bool(view[row, column + 1] < 44)
        place = 5 * (row - 2) + (column - (3 if mirrored else 2))
        counts[25 * mirrored + place] += 1
    expected = 4000 / 50
    assert float(((counts - expected) ** 2 / expected).sum()) < 93.4  # the 0.9999 quantile at 49 degrees of freedom


def test_passes_of_any_width_and_checkpoints_give_the_same(tmp_path):
    layers, x, y = case()
    how = TrainingSettings("sgd", 0.5, epochs=3, batch_size=8, views=VIEWS)
    given = layers, x, y, torch.arange(24).expand(2, -1), [1, 2], how, Mechanism("poisson", noise_multiplier=0.5)
    whole, _ = train(*given)
    resumed, _ = cut_and_resumed(tmp_path, 2, *given)
    alone, _ = train(layers, x, y, torch.arange(24)[None], [2], how, given[6])
    for name, value in whole.parameters.items():
        assert torch.equal(resumed.parameters[name], value)
        assert torch.equal(alone.parameters[name][0], value[1])


@pytest.mark.parametrize(
    ("views", "mechanism", "words"),
    [
        ({"shift": 2}, None, "expected e.g."),
        ({"count": 0}, None, "views.count is 0 but must be a whole number of at least 1"),
        ({"count": 2, "shift": 10}, None, "more than 10 pixels"),
        (VIEWS, Mechanism("poisson", unit="batch", noise_multiplier=1.0), "each example's whole gradient"),
        (VIEWS, Mechanism("poisson", bound="per_layer", noise_multiplier=1.0), "each example's whole gradient"),
        (VIEWS, Mechanism("poisson", bound="normalize", noise="vmf", kappa=1.0), "do not work with noise 'vmf'"),
    ],
)
def test_impossible_views_are_refused(views, mechanism, words):
    layers, x, y = case()
    how = TrainingSettings("sgd", 0.1, epochs=1, batch_size=8, views=views)
    with pytest.raises(UserError, match=words):
        train(layers, x, y, torch.arange(24)[None], [1], how, mechanism)


def test_an_audit_of_every_step_refuses_views():
    layers, x, y = case()
    watch = WhiteBoxObserver(23, torch.tensor([23]), torch.tensor([22]))
    how = TrainingSettings("sgd", 0.1, epochs=1, batch_size=8, views=VIEWS)
    with pytest.raises(UserError, match="cannot follow random views"):
        train(layers, x, y, torch.arange(24)[None], [1], how, Mechanism("poisson", noise_multiplier=1.0), watch=watch)
