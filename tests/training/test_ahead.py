"""Batches that are drawn an epoch ahead, as on a GPU: the same bytes, also from a checkpoint in between."""

import pytest
import torch
from small import cut_and_resumed, data_of, layers_of, subsets_of

from dp_leakage.privacy.mechanism import PERSON, Mechanism
from dp_leakage.training import trainer
from dp_leakage.training.ahead import Ahead
from dp_leakage.training.settings import TrainingSettings

SETTINGS = TrainingSettings("adam", 0.01, epochs=4, batch_size=8, evaluate_every=2)
SAMPLERS = ("shuffle", "cyclic", "wor", "poisson", "balls_in_bins")
MECHANISMS = {
    "plain": None,
    **{name: Mechanism(name, noise_multiplier=0.5) for name in SAMPLERS},
    "turns": Mechanism("cyclic_poisson", noise="banded", noise_multiplier=0.5, settings={"bands": 3}),
    "classes": Mechanism("class_poisson", "class", noise_multiplier=0.5),
}


def given(mechanism):
    return layers_of("mlp"), *data_of("mlp"), subsets_of(40, 2, 30), [3, 4], SETTINGS, mechanism


@pytest.fixture
def drawn(monkeypatch):
    """All trainings draw ahead; the epochs that they drew, in order."""
    epochs, start = [], trainer.start

    def ahead(*arguments):
        training = start(*arguments)
        draw = training.draw
        own = Ahead(lambda epoch: epochs.append(epoch) or draw(epoch), training.generators["batches"], SETTINGS.epochs)
        training.draw, training.prepare = own, own.prepare
        return training

    def switch(on):
        monkeypatch.setattr(trainer, "start", ahead if on else start)
        return epochs

    return switch


def same(one, other):
    return all(torch.equal(value, other.parameters[name]) for name, value in one.parameters.items())


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)
def test_an_epoch_drawn_ahead_has_the_same_batches(mechanism, drawn, tmp_path):
    expected, _ = trainer.train(*given(mechanism))
    epochs = drawn(True)
    made, _ = trainer.train(*given(mechanism))
    assert same(made, expected)
    assert epochs == [0, 1, 2, 3]
    resumed, _ = cut_and_resumed(tmp_path, 2, *given(mechanism))
    assert same(resumed, expected)


def test_persons_too(drawn):
    arguments = {"groups": torch.arange(40) // 2}
    mechanism = Mechanism("poisson", PERSON, noise_multiplier=0.5, settings={"most": 1, "chosen": "random"})
    layers, x, y, _, seeds, settings, _ = given(None)
    everybody = torch.arange(40).expand(2, -1)
    made = []
    for on in (False, True):
        drawn(on)
        made.append(trainer.train(layers, x, y, everybody, seeds, settings, mechanism, **arguments)[0])
    assert same(*made)


def test_the_next_epoch_is_drawn_before_this_one_is_checked(drawn):
    epochs, seen = drawn(True), []
    trainer.train(*given(None), on_epoch=lambda _: seen.append(len(epochs)))
    assert seen == [2, 3, 4, 4]


def test_what_was_drawn_ahead_is_forgotten_if_the_streams_have_moved():
    generator = torch.Generator().manual_seed(1)
    ahead = Ahead(lambda epoch: [[[torch.randperm(9, generator=generator)]]], [generator], 3)
    ahead.prepare(1)
    generator.manual_seed(2)
    (((found,),),) = ahead(1)
    assert torch.equal(found, torch.randperm(9, generator=torch.Generator().manual_seed(2)))
