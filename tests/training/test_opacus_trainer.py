"""Engine ``opacus`` against ours: the same accuracies and the same leakage, within chance.

Each comparison of 16 with 16 models is Welch's t test at 1e-3, so a correct pair of trainers fails one run in a
thousand a number; seeds are fixed.
"""

import pytest
import torch
from scipy.stats import ttest_ind
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from dp_leakage.common.errors import UserError
from dp_leakage.models.architectures import build
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.training import opacus_trainer, trainer
from dp_leakage.training.settings import TrainingSettings

REPEATS, LEVEL = 16, 1e-3
POISSON = Mechanism("poisson", noise_multiplier=0.6, clip_norm=0.5)
SHUFFLED = Mechanism("shuffle", noise_multiplier=0.6)


@pytest.fixture(scope="module")
def digits():
    found = load_digits()
    return torch.tensor(found.data / 16, dtype=torch.float32), torch.tensor(found.target)


def trained(train, digits, mechanism, settings, first=0, **more):
    """Accuracies and AUCs of the loss attack (Yeom et al. 2018) of 16 models, each in on another half of 300 rows."""
    x, y = digits
    layers = build("mlp", (64,), 10, hidden=[32])
    subsets = torch.arange(300).expand(REPEATS, -1)
    held = torch.rand(subsets.shape, generator=torch.Generator().manual_seed(7)) < 0.5
    seeds = range(first, first + REPEATS)
    models, history = train(
        layers, x, y, subsets, seeds, settings, mechanism, held=held, evaluate_on=torch.arange(300, 1797), **more
    )
    logits = models.logits(x[:300])
    losses = torch.nn.functional.cross_entropy(logits.flatten(0, 1), y[:300].repeat(REPEATS), reduction="none")
    aucs = [roc_auc_score(own, -loss) for own, loss in zip(held, losses.reshape(REPEATS, -1), strict=True)]
    return [row["test_accuracy"] for row in history if row["epoch"] == settings.epochs], aucs


@pytest.mark.parametrize("mechanism", [None, POISSON, SHUFFLED], ids=["plain", "poisson", "shuffle"])
def test_both_engines_reach_the_same_accuracy_and_leak_the_same(digits, mechanism):
    settings = TrainingSettings(epochs=20, batch_size=30, l2=1e-4, evaluate_every=20)
    ours, opacus = (
        trained(train, digits, mechanism, settings, first)
        for train, first in ((trainer.train, 0), (opacus_trainer.train, 100))
    )
    for name, own, other in zip(("accuracy", "AUC"), ours, opacus, strict=True):
        assert ttest_ind(own, other, equal_var=False).pvalue > LEVEL, name


def test_the_comparison_would_see_half_of_the_noise(digits):
    settings = TrainingSettings(epochs=20, batch_size=30, evaluate_every=20)
    half = Mechanism("poisson", noise_multiplier=0.3, clip_norm=0.5)
    accuracies, _ = trained(trainer.train, digits, POISSON, settings)
    better, _ = trained(opacus_trainer.train, digits, half, settings)
    assert ttest_ind(accuracies, better, equal_var=False).pvalue < LEVEL


def test_the_same_seeds_give_the_same_bytes(digits):
    settings = TrainingSettings(epochs=1, batch_size=30)
    assert trained(opacus_trainer.train, digits, POISSON, settings) == trained(
        opacus_trainer.train, digits, POISSON, settings
    )


@pytest.mark.parametrize("mechanism", [None, SHUFFLED], ids=["plain", "private"])
def test_an_average_is_the_mean_of_the_parameters_after_each_step_of_the_last_epochs(digits, mechanism):
    """With one step an epoch, a shorter training of the same seed ends at each of them."""
    x, y = digits
    layers, subsets = build("softmax_regression", (64,), 10), torch.arange(60).expand(2, -1)

    def parameters(epochs: int, **more: int) -> torch.Tensor:
        settings = TrainingSettings("sgd", learning_rate=1.0, epochs=epochs, batch_size=60, **more)
        models, _ = opacus_trainer.train(layers, x, y, subsets, [1, 2], settings, mechanism)
        return torch.cat([own.flatten() for own in models.parameters.values()])

    averaged = (parameters(2) + parameters(3) + parameters(4)) / 3
    torch.testing.assert_close(parameters(4, average_epochs=3), averaged)
    assert not torch.allclose(parameters(4), averaged)


@pytest.mark.parametrize(
    ("changes", "settings", "words"),
    [
        ({"sampler": "wor"}, {}, "sampler 'poisson' or 'shuffle'; got 'wor'"),
        ({"bound": "normalize"}, {}, "bound 'clip'; got 'normalize'"),
        ({}, {"views": {"count": 2}}, "needs views null; got {'count': 2}"),
    ],
)
def test_what_opacus_does_not_train_is_refused(digits, changes, settings, words):
    mechanism = Mechanism(**({"sampler": "poisson", "noise_multiplier": 1.0} | changes))
    with pytest.raises(UserError, match=words):
        trained(opacus_trainer.train, digits, mechanism, TrainingSettings(epochs=1, batch_size=30, **settings))


def test_a_module_that_opacus_refuses_is_refused_in_one_sentence(digits):
    from dp_leakage.models.user_module import module_layers

    x, y = digits
    layers = module_layers(lambda: torch.nn.Sequential(torch.nn.Linear(64, 10), torch.nn.BatchNorm1d(10)), (64,), 10)
    with pytest.raises(UserError, match=r"Opacus cannot train this model privately: .*BatchNorm"):
        opacus_trainer.train(layers, x, y, torch.arange(50)[None], [0], TrainingSettings(epochs=1), POISSON)
