"""Models of one ensemble that train on different numbers of records, as coins decide."""

import pytest
import torch
from small import data_of, layers_of, subsets_of
from test_company import ADAM, SEEDS

from dp_leakage.common.errors import UserError
from dp_leakage.data.splits import heads
from dp_leakage.models.ensemble import rows_of
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.training.checkpoint import Checkpoint
from dp_leakage.training.samplers import draw_epoch
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.trainer import start, train

MECHANISMS = [
    None,
    Mechanism("shuffle", noise_multiplier=0.5),
    Mechanism("poisson", noise_multiplier=0.5),
    Mechanism("wor", noise_multiplier=0.5),
    Mechanism("poisson", unit="batch", noise_multiplier=0.1),
    Mechanism("class_poisson", unit="class", noise_multiplier=0.1),
    Mechanism("wor", bound="normalize", noise="vmf", kappa=50.0, block="sum"),
]
NAMES = ["none" if m is None else f"{m.sampler} {m.unit} {m.noise}" for m in MECHANISMS]


def coins(models: int, n: int = 30) -> torch.Tensor:
    return torch.from_numpy(heads(n, models, seed=4))


def draw(sampler, held, unit="example", n=60, batch_size=8, seed=0):
    groups = torch.arange(n) % 5
    generator = torch.Generator().manual_seed(seed)
    batches = draw_epoch(sampler, unit, torch.arange(100, 100 + n), batch_size, groups, generator, held)
    return batches, generator.get_state()


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=NAMES)
@pytest.mark.parametrize("name", ["mlp", "lenet"])
def test_a_model_alone_and_in_company_has_the_same_bytes_whatever_its_coins(name, mechanism):
    x, y = data_of(name)
    layers, subsets, held = layers_of(name), subsets_of(40, 1, 30).expand(4, -1), coins(4)
    assert len(set(held.sum(1).tolist())) > 1
    together, history = train(layers, x, y, subsets, SEEDS, ADAM, mechanism, held=held)
    for k, seed in enumerate(SEEDS):
        own = slice(k, k + 1)
        alone, own_history = train(layers, x, y, subsets[own], [seed], ADAM, mechanism, held=held[own])
        for part, value in alone.parameters.items():
            assert torch.equal(value[0], together.parameters[part][k]), part
        assert torch.equal(alone.train_indices[0], together.train_indices[k])
        assert [row["loss"] for row in history if row["model"] == k] == [row["loss"] for row in own_history]


def test_the_files_rows_are_the_heads_of_the_pool():
    x, y = data_of("mlp")
    subsets, held = subsets_of(40, 1, 30).expand(2, -1), coins(2)
    models, _ = train(layers_of("mlp"), x, y, subsets, SEEDS[:2], ADAM, held=held)
    for k in range(2):
        assert rows_of(models.train_indices[k]).tolist() == subsets[k][held[k]].tolist()


@pytest.mark.parametrize("sampler", ["shuffle", "poisson", "wor", "class_poisson"])
@pytest.mark.parametrize("unit", ["example", "class"])
def test_taking_a_record_out_leaves_every_other_batch_entry_and_the_stream_as_they_were(sampler, unit):
    if sampler == "class_poisson" and unit == "example":
        return
    held = coins(1, 60)[0]
    held[17] = True
    without = held.clone()
    without[17] = False
    seen = 0
    for seed in range(5):
        (batches, state), (fewer, other) = draw(sampler, held, unit, seed=seed), draw(sampler, without, unit, seed=seed)
        assert torch.equal(state, other)
        assert len(batches) == len(fewer)
        for batch, less in zip(batches, fewer, strict=True):
            rows = [row for own in batch for row in own.tolist()]
            assert [row for row in rows if row != 117] == [row for own in less for row in own.tolist()]
            seen += 117 in rows
    assert seen


def test_steps_and_rate_come_from_the_pool_however_few_are_held():
    n, epochs = 400, 200
    few = torch.zeros(n, dtype=torch.bool)
    few[:20] = True
    generator = torch.Generator().manual_seed(0)
    drawn = [
        draw_epoch("poisson", "example", torch.arange(n), 40, torch.zeros(n, dtype=torch.long), generator, few)
        for _ in range(epochs)
    ]
    assert {len(batches) for batches in drawn} == {10}
    hits = sum(len(rows) for batches in drawn for (rows,) in batches)
    expected, trials = 20 * 10 * epochs * 0.1, 20 * 10 * epochs
    assert abs(hits - expected) < 6 * (trials * 0.1 * 0.9) ** 0.5  # false alarm 2e-9


def test_shuffled_each_held_record_comes_once_an_epoch():
    held = coins(1, 60)[0]
    batches, _ = draw("shuffle", held)
    assert len(batches) == 8
    assert sorted(row for (rows,) in batches for row in rows.tolist()) == (100 + held.nonzero()[:, 0]).tolist()


@pytest.mark.parametrize("sampler", ["shuffle", "poisson", "wor"])
def test_the_divisor_is_that_of_the_pool_and_no_coin_moves_it(sampler):
    x, y = data_of("mlp")
    mechanism = Mechanism(sampler, noise_multiplier=1.0)
    divisors = {
        start(layers_of("mlp"), x, y, subsets_of(40, 1), [1], ADAM, mechanism, held=held).program.divisor
        for held in (coins(1, 40), torch.ones(1, 40, dtype=torch.bool), torch.arange(40)[None] < 1)
    }
    assert divisors == {ADAM.batch_size / 2}


@pytest.mark.parametrize("mechanism", [None, *(Mechanism(s, noise_multiplier=0.1) for s in ("shuffle", "poisson"))])
def test_batches_without_a_record_change_nothing_but_by_noise(mechanism):
    x, y = data_of("mlp")
    held = torch.arange(40)[None] < 1
    models, history = train(layers_of("mlp"), x, y, subsets_of(40, 1), [1], ADAM, mechanism, held=held)
    assert all(bool(value.isfinite().all()) for value in models.parameters.values())
    assert history[-1]["train_accuracy"] in (0.0, 1.0)


def test_all_heads_is_training_on_the_pool_but_for_the_divisor():
    x, y = data_of("mlp")
    settings = TrainingSettings("sgd", 0.1, epochs=2, batch_size=8)
    everybody = torch.ones(1, 40, dtype=torch.bool)
    for mechanism in (None, Mechanism("poisson", noise_multiplier=1e-9)):
        double = settings if mechanism is None else TrainingSettings("sgd", 0.05, epochs=2, batch_size=8)
        plain, _ = train(layers_of("mlp"), x, y, subsets_of(40, 1), [1], settings, mechanism)
        held, _ = train(layers_of("mlp"), x, y, subsets_of(40, 1), [1], double, mechanism, held=everybody)
        for name, value in plain.parameters.items():
            torch.testing.assert_close(value, held.parameters[name], atol=1e-5, rtol=1e-4)  # C is less with 8


def test_a_killed_training_goes_on_to_the_same_bytes(tmp_path):
    x, y = data_of("mlp")
    arguments = (layers_of("mlp", dropout=0.2), x, y, subsets_of(40, 1).expand(3, -1), SEEDS[:3])
    held, mechanism = coins(3, 40), Mechanism("poisson", noise_multiplier=0.5)
    undisturbed, _ = train(*arguments, TrainingSettings(epochs=6, batch_size=8), mechanism, held=held)

    class Stop(Exception):
        pass

    def stop(epoch):
        if epoch == 3:
            raise Stop

    settings, path = TrainingSettings(epochs=6, batch_size=8), tmp_path / "checkpoint"
    with pytest.raises(Stop):
        train(*arguments, settings, mechanism, held=held, checkpoint=Checkpoint(path, "cell", 0), on_epoch=stop)
    resumed, _ = train(*arguments, settings, mechanism, held=held, checkpoint=Checkpoint(path, "cell", 0))
    for name, value in undisturbed.parameters.items():
        assert torch.equal(value, resumed.parameters[name])


def test_coins_that_leave_nobody_and_coins_of_another_shape_are_refused():
    x, y = data_of("mlp")
    nobody = torch.zeros(1, 40, dtype=torch.bool)
    for held, words in ((nobody, "none of 40 records"), (coins(1, 39), "must have the shape of")):
        with pytest.raises(UserError, match=words):
            train(layers_of("mlp"), x, y, subsets_of(40, 1), [1], ADAM, held=held)


def test_what_a_record_adds_to_a_step_is_bounded_by_the_clip_norm_over_the_divisor():
    """The step's sum with and without one record, everything else equal: sensitivity C, whichever the sampler."""
    x, y = data_of("mlp")
    layers = layers_of("mlp")
    for sampler in ("shuffle", "poisson", "wor"):
        mechanism = Mechanism(sampler, clip_norm=0.5, noise_multiplier=0.0)
        held = coins(1, 40)
        held[0, 3] = True
        without = held.clone()
        without[0, 3] = False
        gradients = []
        for own in (held, without):
            training = start(layers, 50 * x, y, subsets_of(40, 1), [1], ADAM, mechanism, held=own)
            steps = []
            with torch.inference_mode():
                for batches in (batches for epoch in range(4) for batches in zip(*training.draw(epoch), strict=True)):
                    training.fill_gradient(batches)
                    steps.append(training.program.gradient.clone())
            gradients.append(torch.cat(steps))
        moved = (gradients[0] - gradients[1]).norm(dim=1)
        assert moved.max() <= 0.5 / 4 * (1 + 1e-5)
        assert moved.max() > 0.5 / 4 * 0.9  # records this long are clipped
