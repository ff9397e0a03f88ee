"""Canaries that are no records, and what the results of all steps say of them: exact likelihood ratios."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from dp_leakage.models.architectures import build
from dp_leakage.privacy.clipping import allowance
from dp_leakage.privacy.correlated import optimal
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.training import flat
from dp_leakage.training.checkpoint import Checkpoint
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.trainer import train
from dp_leakage.training.watch import WhiteBoxObserver

RECORDS, ALONG = 12, 7
GENERATOR = torch.Generator().manual_seed(3)
X = torch.cat([torch.randn(RECORDS, 6, generator=GENERATOR), torch.zeros(2, 6)])
Y = torch.cat([torch.randint(3, (RECORDS,), generator=GENERATOR), torch.zeros(2, dtype=torch.int64)])
HELD, OTHER = torch.tensor([RECORDS]), torch.tensor([RECORDS + 1])
LAYERS = build("softmax_regression", (6,), 3)


def trained(present, mechanism, watch, epochs=1, batch_size=RECORDS + 1, x=X, **options):
    """One model for each of ``present``, on all records and the canary's row or the other."""
    rows = torch.where(torch.as_tensor(present), watch.held, watch.other)[:, None]
    subsets = torch.cat([torch.arange(int(watch.first)).expand(len(rows), -1), rows], 1)
    settings = TrainingSettings("sgd", 0.5, epochs=epochs, batch_size=batch_size, evaluate_every=epochs)
    models, _ = train(LAYERS, x, Y, subsets, range(len(rows)), settings, mechanism, watch=watch, **options)
    return models


LEFT = 1 / (1 + allowance(RECORDS + 1, torch.float32))  # of C, for a gradient


def gradient_canary(mechanism, **settings):
    return WhiteBoxObserver(RECORDS, HELD, OTHER, torch.tensor([ALONG]), claimed=mechanism, **settings)


def buffer(models):
    """The models' parameters as the trainer holds them: (K, P)."""
    buffer = torch.zeros(models.size, flat.size(LAYERS))
    for name, view in flat.views(LAYERS, buffer).items():
        view.copy_(models.parameters[name])
    return buffer


def clipped_sum(weight, bias, clip):
    """Σ over records of their clipped gradients, by autograd."""
    parameters, total = [weight.clone().requires_grad_(), bias.clone().requires_grad_()], 0
    for x, y in zip(X[:RECORDS], Y[:RECORDS], strict=True):
        loss = F.cross_entropy((parameters[0] @ x + parameters[1])[None], y[None])
        gradient = torch.cat([part.flatten() for part in torch.autograd.grad(loss, parameters)])
        total = total + gradient * min(1.0, clip / float(gradient.norm()))
    return total


def test_an_absent_canary_is_drawn_and_counted_but_adds_nothing():
    mechanism = Mechanism("shuffle", noise_multiplier=0.0, clip_norm=0.3)
    weight, bias = torch.full((3, 6), 0.1), torch.zeros(3)
    start = {"0.weight": weight, "0.bias": bias}
    models = trained([False], mechanism, gradient_canary(mechanism), initial=start)
    moved = torch.cat([weight.flatten(), bias]) - buffer(models)[0, :21]
    torch.testing.assert_close(moved, 0.5 / (RECORDS + 1) * clipped_sum(weight, bias, LEFT * 0.3), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("replaced", [True, False])
def test_a_present_gradient_moves_one_parameter_by_the_clipping_bound(replaced):
    mechanism = Mechanism("shuffle", noise_multiplier=0.0, clip_norm=0.3)
    start = {"0.weight": torch.zeros(3, 6), "0.bias": torch.zeros(3)}
    found = buffer(trained([True, False], mechanism, gradient_canary(mechanism, replaced=replaced), initial=start))
    expected = torch.zeros_like(found[0])
    expected[ALONG] = -0.5 * LEFT * 0.3 / (RECORDS + 1) * (2 if replaced else 1)
    torch.testing.assert_close(found[0] - found[1], expected, rtol=1e-4, atol=1e-8)


PRESENT = np.arange(3000) % 2 == 0


@pytest.mark.parametrize("canary", ["gradient", "record"])
def test_without_sampling_the_score_is_a_normal_log_likelihood_ratio(canary):
    """T steps at σ: N(±T/2σ², T/σ²); six checks, each wrong by chance once in 15,000 runs."""
    sigma, steps = 2.0, 3
    mechanism = Mechanism("shuffle", noise_multiplier=sigma, clip_norm=0.01)
    x = X.clone()
    x[RECORDS] = 1.0  # a record whose gradient is longer than C
    watch = gradient_canary(mechanism)
    if canary == "record":
        watch = WhiteBoxObserver(RECORDS + 1, HELD, OTHER, claimed=mechanism)
        subset = {"x": x}
        rows = torch.where(torch.as_tensor(PRESENT), HELD, OTHER)[:, None]
        subsets = torch.cat([torch.arange(RECORDS).expand(len(rows), -1), rows], 1)
        settings = TrainingSettings("sgd", 0.5, epochs=steps, batch_size=RECORDS + 1, evaluate_every=steps)
        train(LAYERS, subset["x"], Y, subsets, range(len(rows)), settings, mechanism, watch=watch)
    else:
        trained(PRESENT, mechanism, watch, epochs=steps)
    scores, variance = watch.scores[:, 0].numpy(), steps / sigma**2
    for own, mean in ((scores[PRESENT], variance / 2), (scores[~PRESENT], -variance / 2)):
        assert own.mean() == pytest.approx(mean, abs=4 * math.sqrt(variance / len(own)))
        assert own.var() == pytest.approx(variance, rel=4 * math.sqrt(2 / len(own)))


FOUR = {"epochs": 2, "batch_size": 4}  # steps an epoch
TIMES = {
    "shuffled": Mechanism("shuffle", noise_multiplier=1.2, clip_norm=0.01),
    "correlated": Mechanism("cyclic", noise="banded", noise_multiplier=1.2, clip_norm=0.01, settings={"bands": 3}),
}


@pytest.mark.parametrize("kind", TIMES)
def test_a_canary_that_is_in_one_step_of_an_epoch_is_looked_for_there(kind):
    """Twice in all: N(±1/σ², 2/σ²), also where noise is correlated over steps, and the score undoes that."""
    mechanism = TIMES[kind]
    watch = gradient_canary(mechanism)
    trained(PRESENT, mechanism, watch, **FOUR)
    scores, variance = watch.scores[:, 0].numpy(), 2 / mechanism.noise_multiplier**2
    for own, mean in ((scores[PRESENT], variance / 2), (scores[~PRESENT], -variance / 2)):
        assert own.mean() == pytest.approx(mean, abs=4 * math.sqrt(variance / len(own)))
        assert own.var() == pytest.approx(variance, rel=4 * math.sqrt(2 / len(own)))


def test_under_poisson_sampling_scores_are_log_likelihood_ratios():
    """E[e^score] without and E[e^-score] with the canary are 1, whatever the batches were."""
    mechanism = Mechanism("poisson", noise_multiplier=1.0, clip_norm=0.01)
    watch = gradient_canary(mechanism, rate=3 / (RECORDS + 1))
    trained(PRESENT, mechanism, watch, epochs=2, batch_size=3)
    scores = watch.scores[:, 0].numpy()
    for ratio in (np.exp(scores[~PRESENT]), np.exp(-scores[PRESENT])):
        assert ratio.mean() == pytest.approx(1, abs=4 * ratio.std() / math.sqrt(len(ratio)))
    assert scores[PRESENT].mean() > scores[~PRESENT].mean() + 0.2


@pytest.mark.parametrize("bound", ["clip", "normalize", "adaptive", "per_layer"])
def test_what_the_other_records_add_is_known_from_the_steps_own_pass_as_from_a_second_one(bound, monkeypatch):
    settings = {"quantile": 0.5, "rate": 0.2, "share": 0.1} if bound == "adaptive" else {}
    mechanism = Mechanism("poisson", bound=bound, noise_multiplier=1.0, clip_norm=0.5, settings=settings)
    scores = []
    for _ in range(2):
        watch = WhiteBoxObserver(RECORDS + 1, HELD, OTHER, claimed=mechanism, rate=3 / (RECORDS + 1))
        x = X.clone()
        x[RECORDS] = 1.0
        rows = torch.tensor([[RECORDS], [RECORDS + 1], [RECORDS]])
        subsets = torch.cat([torch.arange(RECORDS).expand(3, -1), rows], 1)
        how = TrainingSettings("sgd", 0.5, epochs=4, batch_size=3, evaluate_every=4)
        train(LAYERS, x, Y, subsets, range(3), how, mechanism, watch=watch)
        scores.append(watch.scores)
        monkeypatch.setattr("dp_leakage.training.watch.adds_apart", lambda program: False)
    torch.testing.assert_close(*scores, rtol=1e-4, atol=1e-5)


def test_a_canary_in_one_secret_step_of_each_epoch_is_looked_for_in_all_of_them():
    """As above, and E[score] with the canary is the divergence of the mixture, not that of one known step."""
    mechanism = Mechanism("balls_in_bins", noise_multiplier=1.0, clip_norm=0.01)
    watch = gradient_canary(mechanism, rate=4 / (RECORDS + 1))
    trained(PRESENT, mechanism, watch, **FOUR)
    scores = watch.scores[:, 0].numpy()
    for ratio in (np.exp(scores[~PRESENT]), np.exp(-scores[PRESENT])):
        assert ratio.mean() == pytest.approx(1, abs=4 * ratio.std() / math.sqrt(len(ratio)))
    z = np.random.default_rng(0).standard_normal((100_000, 2, 4))
    z[:, :, 0] += 1
    exact = np.log(np.exp(z - 0.5).mean(axis=2)).sum(axis=1)
    own = scores[PRESENT]
    assert own.mean() == pytest.approx(exact.mean(), abs=4 * own.std() / math.sqrt(len(own)))
    assert own.std() == pytest.approx(exact.std(), rel=0.1)


def test_a_canary_whose_part_takes_turns_is_looked_for_with_all_noise_of_a_turn():
    """As above: in 6 steps each of two parts has three turns, and a turn's two steps share their noise and one coin."""
    mechanism = Mechanism(
        "cyclic_poisson", noise="banded", noise_multiplier=0.7, clip_norm=0.01, settings={"bands": 2, "horizon": 6}
    )
    watch = gradient_canary(mechanism, rate=2 * 5 / (RECORDS + 1))
    trained(PRESENT, mechanism, watch, epochs=2, batch_size=5)
    scores = watch.scores[:, 0].numpy()
    for ratio in (np.exp(scores[~PRESENT]), np.exp(-scores[PRESENT])):
        assert ratio.mean() == pytest.approx(1, abs=4 * ratio.std() / math.sqrt(len(ratio)))
    # A turn is one sampled Gaussian of the claimed noise; that of the last step lacks its second row.
    rng = np.random.default_rng(0)
    first = optimal(2, 6)[0]
    lengths = np.where(rng.random((200_000, 1)) < 0.5, [[1.0, 1.0, 1.0]], [[1.0, 1.0, first]]) / 0.7
    drawn = rng.random(lengths.shape) < watch.rate
    exponent = lengths * rng.standard_normal(lengths.shape) + lengths**2 * (drawn - 0.5)
    exact = np.log(1 - watch.rate + watch.rate * np.exp(exponent)).sum(axis=1)
    own = scores[PRESENT]
    assert own.mean() == pytest.approx(exact.mean(), abs=4 * own.std() / math.sqrt(len(own)))
    assert own.std() == pytest.approx(exact.std(), rel=0.1)


def test_a_canary_in_a_class_is_looked_for_in_its_class_as_a_whole():
    """As above; the score knows what the other classes add, and what the canary's own would be without it."""
    mechanism = Mechanism("class_poisson", unit="class", noise_multiplier=1.0, clip_norm=0.01)
    x = X.clone()
    x[RECORDS] = 30.0
    company = (Y[:RECORDS] == Y[RECORDS]).nonzero()[:, 0]
    units = ([torch.cat([company, HELD])], [torch.cat([company, OTHER])])
    watch = WhiteBoxObserver(RECORDS + 1, HELD, OTHER, units=units, claimed=mechanism, rate=0.5)
    present = PRESENT[:800]
    rows = torch.where(torch.as_tensor(present), HELD, OTHER)[:, None]
    subsets = torch.cat([torch.arange(RECORDS).expand(len(rows), -1), rows], 1)
    settings = TrainingSettings("sgd", 0.5, epochs=2, batch_size=(RECORDS + 1) / 2, evaluate_every=2)
    train(LAYERS, x, Y, subsets, range(len(rows)), settings, mechanism, watch=watch)
    scores = watch.scores[:, 0].numpy()
    for ratio in (np.exp(scores[~present]), np.exp(-scores[present])):
        assert ratio.mean() == pytest.approx(1, abs=4 * ratio.std() / math.sqrt(len(ratio)))
    assert scores[present].mean() > scores[~present].mean() + 0.2


def test_noise_around_directions_shows_a_gradient_canary_on_either_side():
    mechanism = Mechanism("shuffle", bound="normalize", noise="vmf", kappa=40.0)
    watch = gradient_canary(mechanism, replaced=True)
    trained(PRESENT[:200], mechanism, watch)
    scores = watch.scores[:, 0].numpy()
    apart = scores[::2].mean() - scores[1::2].mean()
    assert apart > 5 * math.hypot(scores[::2].std(), scores[1::2].std()) / 10


@pytest.mark.parametrize("kind", TIMES)
def test_a_killed_training_goes_on_to_the_same_scores(kind, tmp_path):
    mechanism, steps = TIMES[kind], FOUR | {"epochs": 4}
    undisturbed = gradient_canary(mechanism)
    trained([True, False, True], mechanism, undisturbed, **steps)

    class Killed(Exception):
        pass

    def kill(epoch):
        if epoch == 2:
            raise Killed

    checkpoint = Checkpoint(tmp_path / "c", "same", interval=0)
    with pytest.raises(Killed):
        trained(
            [True, False, True], mechanism, gradient_canary(mechanism), **steps, checkpoint=checkpoint, on_epoch=kill
        )
    resumed = gradient_canary(mechanism)
    trained([True, False, True], mechanism, resumed, **steps, checkpoint=checkpoint)
    assert torch.equal(resumed.scores, undisturbed.scores)
