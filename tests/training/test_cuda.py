"""Training on a GPU: the same bytes with and without graphs, and on the CPU the same numbers to rounding."""

import itertools
from dataclasses import replace

import pytest
import torch
from small import data_of, layers_of, subsets_of

from dp_leakage.common import captures
from dp_leakage.common.kernels import exact
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.training import trainer
from dp_leakage.training.checkpoint import Checkpoint
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.watch import WhiteBoxObserver

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")

# What the README promises: batched products round differently with other company and on other devices.
TOLERANCE = {"rtol": 1e-3, "atol": 1e-4}
SETTINGS = TrainingSettings("sgd", 0.1, epochs=3, batch_size=8)
OPTIMIZERS = {
    "sgd": SETTINGS,
    "momentum": TrainingSettings("sgd", 0.05, momentum=0.9, epochs=3, batch_size=8),
    "adam": TrainingSettings(
        "adam", 0.02, l2=0.01, final_learning_rate=0.001, average_decay=0.9, epochs=3, batch_size=8
    ),
}
NOISY = [
    *(Mechanism(sampler, noise_multiplier=0.5) for sampler in ("shuffle", "poisson", "wor")),
    Mechanism("poisson", bound="normalize", noise="vmf", kappa=50.0, block="row"),
]


def trained(name, mechanism, device="cuda", models=3, settings=SETTINGS, dtype=torch.float32, **arguments):
    x, y = data_of(name, dtype=dtype)
    subsets = subsets_of(40, 3, 30)[:models]
    layers = layers_of(name, **({} if name == "mixed" else {"dropout": 0.3 if mechanism in NOISY else 0.0}))
    return trainer.train(layers, x, y, subsets, range(models), settings, mechanism, device=device, **arguments)[0]


@pytest.mark.parametrize("mechanism", [None, *NOISY], ids=lambda m: f"{m.sampler} {m.noise}" if m else "plain")
@pytest.mark.parametrize("name", ["mlp", "lenet", "mixed", "residual", "table"])
def test_graphs_give_the_bytes_of_single_kernels(name, mechanism, monkeypatch):
    replayed = trained(name, mechanism)
    monkeypatch.setenv(captures.OFF, "1")
    single = trained(name, mechanism)
    for key, value in single.parameters.items():
        assert torch.equal(value, replayed.parameters[key]), key


@pytest.mark.parametrize("mechanism", [None, *NOISY], ids=lambda m: f"{m.sampler} {m.noise}" if m else "plain")
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_captured_optimizer_gives_the_bytes_of_single_kernels(optimizer, mechanism, monkeypatch):
    replayed = trained("mlp", mechanism, settings=OPTIMIZERS[optimizer])
    monkeypatch.setenv(captures.OFF, "1")
    single = trained("mlp", mechanism, settings=OPTIMIZERS[optimizer])
    for key, value in single.parameters.items():
        assert torch.equal(value, replayed.parameters[key]), key


def test_a_watched_step_whose_passes_are_replayed_gives_the_bytes_of_single_kernels(monkeypatch):
    def watched():
        watch = WhiteBoxObserver(39, torch.tensor([38]), torch.tensor([39]), torch.tensor([0]))
        return trained("mlp", NOISY[0], watch=watch), watch.scores

    (replayed, scores), _ = watched(), monkeypatch.setenv(captures.OFF, "1")
    single, expected = watched()
    assert torch.equal(scores, expected)
    for key, value in single.parameters.items():
        assert torch.equal(value, replayed.parameters[key]), key


@pytest.mark.parametrize("name", ["softmax_regression", "mlp", "lenet", "mixed", "residual", "table"])
def test_as_on_the_cpu(name):
    mechanism = Mechanism(noise="none")
    on_cpu, on_gpu = (trained(name, mechanism, device) for device in ("cpu", "cuda"))
    for key, value in on_cpu.parameters.items():
        torch.testing.assert_close(on_gpu.parameters[key], value, **TOLERANCE)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("name", ["softmax_regression", "mlp", "lenet", "cnn", "mixed", "residual", "table"])
def test_in_double_precision_as_on_the_cpu_to_more_digits(name, optimizer):
    """A unit that two roundings put on different sides of 0, and a long step of Adam, need differences this small."""
    mechanism, settings = Mechanism(noise="none"), OPTIMIZERS[optimizer]
    on_cpu, on_gpu = (
        trained(name, mechanism, device, settings=settings, dtype=torch.float64) for device in ("cpu", "cuda")
    )
    for key, value in on_cpu.parameters.items():
        torch.testing.assert_close(on_gpu.parameters[key], value, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["mlp", "lenet", "mixed", "residual", "table"])
def test_subclasses_of_many_records_as_on_the_cpu_where_they_go_one_after_the_other(name):
    mechanism, groups = Mechanism("class_poisson", "subclass", noise="none"), (torch.arange(40) > 16).long()
    settings = replace(SETTINGS, batch_size=20)
    on_cpu, on_gpu = (
        trained(name, mechanism, device, settings=settings, dtype=torch.float64, groups=groups, models=1)
        for device in ("cpu", "cuda")
    )
    for key, value in on_cpu.parameters.items():
        torch.testing.assert_close(on_gpu.parameters[key], value, rtol=1e-5, atol=1e-6)


def test_convolutions_answer_in_full_precision():
    """TF32 would differ by about 1e-3."""
    models, (x, _) = trained("lenet", None, "cpu"), data_of("lenet")
    with exact():
        answers = models.to("cuda").logits(x.to("cuda")).cpu()
    torch.testing.assert_close(answers, models.to("cpu").logits(x), rtol=0, atol=5e-5)


@pytest.mark.parametrize("unit", ["example", "batch", "person"])
@pytest.mark.parametrize("name", ["mlp", "residual", "table"])
def test_one_seed_gives_the_same_bytes_twice(name, unit):
    mechanism = Mechanism("shuffle", unit, noise_multiplier=0.5)
    groups = {"groups": torch.arange(40)} if unit == "person" else {}
    first, again = (trained(name, mechanism, **groups) for _ in range(2))
    for key, value in first.parameters.items():
        assert torch.equal(value, again.parameters[key]), key


@pytest.mark.parametrize("mechanism", [NOISY[0], NOISY[-1]], ids=lambda m: m.noise)
@pytest.mark.parametrize("name", ["mlp", "lenet"])
def test_alone_as_in_company(name, mechanism):
    together, alone = trained(name, mechanism), trained(name, mechanism, models=1)
    for key, value in alone.parameters.items():
        torch.testing.assert_close(together.parameters[key][:1], value, **TOLERANCE)


@pytest.mark.parametrize("mechanism", [NOISY[1], NOISY[-1]], ids=lambda m: m.noise)
def test_a_training_that_was_cut_goes_on_to_the_same_bytes(mechanism, tmp_path):
    def cut(epoch):
        if epoch == 2:
            raise KeyboardInterrupt

    whole = trained("mlp", mechanism)
    checkpoint = Checkpoint(tmp_path / "checkpoint", "this cell", interval=0)
    with pytest.raises(KeyboardInterrupt):
        trained("mlp", mechanism, checkpoint=checkpoint, on_epoch=cut)
    resumed = trained("mlp", mechanism, checkpoint=checkpoint)
    for key, value in whole.parameters.items():
        assert torch.equal(value, resumed.parameters[key]), key


def test_noise_has_its_deviation_and_no_step_repeats_that_of_another():
    """Four steps that differ in noise alone; ten checks at 5 standard errors: false positives in 1 of 100,000 runs."""
    x, y = data_of("mlp")
    x = torch.zeros_like(x)
    layers, subsets = layers_of("mlp", hidden=(400, 400)), subsets_of(40, 1)
    mechanism = Mechanism(clip_norm=1e-6, noise_multiplier=1e6)  # noise of deviation 1, gradients of none
    drawn = []
    with torch.inference_mode():
        training = trainer.start(layers, x, y, subsets, [1], SETTINGS, mechanism, device="cuda")
        for _ in trainer.steps(training):
            drawn.append(training.program.gradient[0].cpu().double() * training.program.divisor)
    count = len(drawn[0])
    for one, other in itertools.combinations(drawn, 2):
        assert abs(one.square().mean() - 1) < 5 * (2 / count) ** 0.5
        assert abs((one * other).mean()) < 5 / count**0.5
