"""Averages of the parameters over steps, and the shapes of learning rates, each against its formula."""

import math

import numpy as np
import pytest
import torch
from small import cut_and_resumed, data_of, layers_of, subsets_of

from dp_leakage.common.errors import UserError
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.trainer import start, steps, train

PLAIN = {"optimizer": "sgd", "learning_rate": 0.5, "epochs": 6, "batch_size": 10}
PRIVATE = Mechanism("poisson", noise_multiplier=0.5)


def trained(mechanism=PRIVATE, **settings):
    layers, (x, y) = layers_of("mlp"), data_of("mlp")
    models, _ = train(layers, x, y, subsets_of(40, 2), [3, 4], TrainingSettings(**PLAIN | settings), mechanism)
    return models.parameters


def iterates():
    """The flat parameters after every step, (steps, models, P), without any average."""
    layers, (x, y) = layers_of("mlp"), data_of("mlp")
    found = []
    with torch.inference_mode():
        training = start(layers, x, y, subsets_of(40, 2), [3, 4], TrainingSettings(**PLAIN), PRIVATE)
        for _ in range(PLAIN["epochs"]):
            found += [training.parameters.clone() for _ in steps(training)]
            training.epoch += 1
        return torch.stack(found)


def oracle(weigh):
    """Σ weights·iterates, as a model's parameters; ``weigh(T)`` gives the weights of the T steps."""
    layers, (x, y) = layers_of("mlp"), data_of("mlp")
    taken = iterates()
    weights = torch.tensor(weigh(len(taken)), dtype=torch.float64)
    with torch.inference_mode():
        training = start(layers, x, y, subsets_of(40, 2), [3, 4], TrainingSettings(**PLAIN), PRIVATE)
        training.parameters.copy_((weights[:, None, None] * taken.double()).sum(0))
        return {name: view.clone() for name, view in training.models().parameters.items()}


@pytest.mark.parametrize("epochs", [1, 2, 6, 9])
def test_the_mean_over_the_last_epochs_is_the_mean_of_their_steps(epochs):
    own = min(epochs, 6) * 4
    expected = oracle(lambda count: [0.0] * (count - own) + [1 / own] * own)
    for name, value in trained(average_epochs=epochs).items():
        torch.testing.assert_close(value, expected[name], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("decay", [0.5, 0.999])
def test_the_moving_average_is_that_of_de_et_al(decay):
    def weigh(count):
        weights = np.zeros(count)
        for step in range(count):
            kept = min(decay, (1 + step) / (10 + step))
            weights *= kept
            weights[step] = 1 - kept
        # The rest of the weight, of the start, is 0.1 in the first step and shrinks.
        start_weight[0] = 1 - weights.sum()
        return weights

    start_weight = [0.0]
    expected = oracle(weigh)
    layers, (x, y) = layers_of("mlp"), data_of("mlp")
    with torch.inference_mode():
        begun = start(layers, x, y, subsets_of(40, 2), [3, 4], TrainingSettings(**PLAIN), PRIVATE).models()
        begun = {name: view.clone() for name, view in begun.parameters.items()}
    for name, value in trained(average_decay=decay).items():
        torch.testing.assert_close(value, expected[name] + start_weight[0] * begun[name], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("average", [{"average_decay": 0.9}, {"average_epochs": 3}])
def test_the_training_itself_does_not_depend_on_the_average_and_goes_on_from_a_checkpoint(average, tmp_path):
    layers, (x, y) = layers_of("mlp"), data_of("mlp")
    given = layers, x, y, subsets_of(40, 2), [3, 4], TrainingSettings(**PLAIN | average), PRIVATE
    whole, history = train(*given)
    resumed, again = cut_and_resumed(tmp_path, 4, *given)
    assert str(history) == str(again)  # as text, since test accuracies are NaN
    assert all(torch.equal(resumed.parameters[name], value) for name, value in whole.parameters.items())
    taken = iterates()
    with torch.inference_mode():
        training = start(*given[:7])
        for _ in range(PLAIN["epochs"]):
            training.run_epoch()
            training.epoch += 1
        assert torch.equal(training.parameters, taken[-1])


def test_a_cosine_with_warmup_has_its_published_shape():
    settings = TrainingSettings(
        learning_rate=2.0, final_learning_rate=0.2, schedule="cosine", warmup_epochs=3, epochs=14, optimizer="sgd"
    )
    rates = [settings.rate(epoch) for epoch in range(14)]
    assert rates[:4] == [0.5, 1.0, 1.5, 2.0]
    assert rates[3:] == pytest.approx([0.2 + 1.8 * (1 + math.cos(math.pi * t / 10)) / 2 for t in range(11)])
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=2.0)
    theirs = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10, eta_min=0.2)
    for rate in rates[3:]:
        assert rate == pytest.approx(optimizer.param_groups[0]["lr"])
        optimizer.step()
        theirs.step()


def test_without_the_new_keys_the_rates_are_as_before():
    falling = TrainingSettings(learning_rate=1.0, final_learning_rate=0.5, epochs=3)
    assert [falling.rate(epoch) for epoch in range(3)] == [1.0, 0.75, 0.5]
    assert TrainingSettings(learning_rate=0.3, epochs=2).rate(1) == 0.3


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"schedule": "cosin"}, "did you mean 'cosine'"),
        ({"warmup_epochs": 100}, "warmup_epochs is 100 but must be 0 or more and below epochs"),
        ({"average_decay": 1.0}, "average_decay is 1.0 but must be between 0 and 1"),
        ({"average_epochs": 0}, "average_epochs is 0 but must be at least 1"),
        ({"average_decay": 0.9, "average_epochs": 2}, "both set"),
    ],
)
def test_impossible_settings_are_refused(given, words):
    with pytest.raises(UserError, match=words):
        TrainingSettings(**given)
