import pytest
import torch
from small import cut_and_resumed, data_of, layers_of, subsets_of

from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.training.samplers import draw_epoch, parts_of, poisson_batches
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.trainer import train


def draw(sampler, unit="example", n=50, batch_size=8, groups=None, seed=0, **options):
    rows = torch.arange(100, 100 + n)
    generator = torch.Generator().manual_seed(seed)
    groups = torch.zeros(n, dtype=torch.int64) if groups is None else groups
    return draw_epoch(sampler, unit, rows, batch_size, groups, generator, **options)


def test_shuffle_uses_each_record_once_an_epoch():
    batches = draw("shuffle")
    assert [len(rows) for (rows,) in batches] == [8] * 6 + [2]
    assert torch.cat([rows for (rows,) in batches]).sort().values.tolist() == list(range(100, 150))


def test_wor_draws_distinct_records_of_a_fixed_number_afresh_at_each_step():
    batches = [rows for (rows,) in draw("wor")]
    assert len(batches) == 7
    assert all(len(rows) == 8 and len(rows.unique()) == 8 for rows in batches)
    assert len(torch.cat(batches).unique()) < 50


def test_poisson_batches_are_independent_coins():
    n, rate, steps = 200, 0.05, 20_000
    batches = poisson_batches(n, rate, steps, torch.Generator().manual_seed(3))
    sizes = torch.tensor([len(rows) for rows in batches]).double()
    counts = torch.bincount(torch.cat(batches), minlength=n).double()
    assert len(batches) == steps
    assert all((rows.diff() > 0).all() for rows in batches[:100])
    # Each check by z-score; six standard deviations, false alarm 2e-9 each.
    expected = n * rate
    variance = expected * (1 - rate)
    assert abs(sizes.mean() - expected) < 6 * (variance / steps) ** 0.5
    assert abs(sizes.var() - variance) < 6 * variance * (2 / steps) ** 0.5
    chi_square = ((counts - steps * rate) ** 2 / (steps * rate * (1 - rate))).sum()
    assert abs(chi_square - n) < 6 * (2 * n) ** 0.5
    # Neighboring records, and the same record in neighboring steps, are together as often as chance says.
    table = torch.zeros(steps, n)
    for step, rows in enumerate(batches):
        table[step, rows] = 1
    for pairs in (table[:, :-1] * table[:, 1:], table[:-1] * table[1:]):
        assert abs(pairs.sum() - pairs.numel() * rate**2) < 6 * (pairs.numel() * rate**2) ** 0.5


@pytest.mark.parametrize("rate", [1e-9, 0.9999, 1.0])
def test_extreme_rates_do_not_fail(rate):
    batches = poisson_batches(10, rate, 5, torch.Generator().manual_seed(0))
    assert len(batches) == 5
    assert sum(map(len, batches)) == {1e-9: 0, 0.9999: 50, 1.0: 50}[rate]


def test_class_poisson_takes_whole_groups_each_with_the_rate():
    groups = torch.arange(50) % 10
    taken = torch.zeros(10)
    for seed in range(400):
        for batch in draw("class_poisson", "class", batch_size=15, groups=groups, seed=seed):
            for rows in batch:
                (group,) = set((rows - 100).remainder(10).tolist())
                assert len(rows) == 5
                taken[group] += 1
    steps = 400 * 4
    assert ((taken - 0.3 * steps).abs() < 6 * (steps * 0.3 * 0.7) ** 0.5).all()


def test_cyclic_batches_are_shuffled_once_and_the_same_in_every_epoch():
    rows, generator = torch.arange(50), torch.Generator().manual_seed(4)
    none = torch.zeros(50, dtype=torch.int64)
    first, second = (draw_epoch("cyclic", "example", rows, 8, none, generator) for _ in range(2))
    assert [batch.tolist() for (batch,) in first] == [batch.tolist() for (batch,) in second]
    assert torch.cat([batch for (batch,) in first]).sort().values.equal(rows)
    assert not torch.cat([batch for (batch,) in first]).equal(rows)
    # Also after a checkpoint, which brings the state of another moment.
    resumed = torch.Generator().manual_seed(4)
    resumed.set_state(generator.get_state())
    third = draw_epoch("cyclic", "example", rows, 8, none, resumed)
    assert [batch.tolist() for (batch,) in first] == [batch.tolist() for (batch,) in third]


def by_turns(turns, epochs, seed=6, held=None):
    """bool (steps, 50): who is in each step's batch of five, epoch after epoch, from one stream."""
    generator, none = torch.Generator().manual_seed(seed), torch.zeros(50, dtype=torch.int64)
    there = torch.zeros(10 * epochs, 50, dtype=torch.bool)
    for epoch in range(epochs):
        batches = draw_epoch(
            "cyclic_poisson", "example", torch.arange(50), 5, none, generator, held, turns=turns, epoch=epoch
        )
        for step, (batch,) in enumerate(batches, 10 * epoch):
            there[step, batch] = True
    return there


@pytest.mark.parametrize("turns", [2, 3, 4, 10])
def test_cyclic_poisson_batches_hold_a_record_only_when_its_part_has_its_turn(turns):
    """Also where an epoch's ten steps are no multiple of the turns."""
    epochs = 1200
    there = by_turns(turns, epochs)
    steps = torch.arange(10 * epochs) % turns
    own = torch.stack([there[steps == part].any(0) for part in range(turns)])
    assert (own.sum(0) == 1).all()
    # Each coin falls alike and by itself; six standard deviations, false alarm 2e-9 each.
    rate, chances = turns / 10, 10 * epochs / turns
    counts = there.sum(0).double()
    assert (abs(counts - chances * rate) < 6 * (chances * rate * (1 - rate)) ** 0.5 + turns).all()
    for record in range(50):
        coins = there[steps == own[:, record].long().argmax(), record].double()
        again = (coins[1:] * coins[:-1]).mean()  # neighboring pairs share a coin: at most three times the variance
        assert abs(again - rate**2) < 6 * (3 * rate**2 * (1 - rate**2) / len(coins)) ** 0.5 + 1e-9
    # Parts are drawn independently: their sizes vary as chance says, over 200 streams.
    drawn = [parts_of(50, turns, torch.Generator().manual_seed(seed)) for seed in range(200)]
    sizes = torch.stack([torch.bincount(own, minlength=turns) for own in drawn]).double()
    spread = 50 * (1 / turns) * (1 - 1 / turns)
    assert abs(sizes[:, 0].var() / spread - 1) < 6 * (2 / 200) ** 0.5


def test_one_part_is_a_poisson_sample_and_a_record_that_is_out_changes_no_other():
    assert all(torch.equal(a, b) for (a,), (b,) in zip(draw("cyclic_poisson", turns=1), draw("poisson"), strict=True))
    held = torch.arange(50) != 7
    all_in, without = by_turns(3, 4), by_turns(3, 4, held=held)
    assert all_in[:, 7].any()
    assert not without[:, 7].any()
    assert torch.equal(all_in[:, held], without[:, held])


def test_turns_go_on_behind_a_checkpoint(tmp_path):
    """After two epochs of four steps it is the third part's turn."""
    x, y = data_of("mlp", 40)
    mechanism = Mechanism("cyclic_poisson", noise="banded", noise_multiplier=0.5, settings={"bands": 3})
    how = TrainingSettings("sgd", 0.1, epochs=4, batch_size=10)
    given = (layers_of("mlp"), x, y, subsets_of(40, 2), [1, 2], how, mechanism)
    whole, (resumed, _) = train(*given)[0], cut_and_resumed(tmp_path, 2, *given)
    for name, value in whole.parameters.items():
        assert torch.equal(resumed.parameters[name], value)


def test_balls_in_bins_put_each_record_into_one_step_uniformly_and_independently():
    rows, generator = torch.arange(20), torch.Generator().manual_seed(5)
    epochs, steps = 4000, 4
    place = torch.empty(epochs, 20)
    for epoch in range(epochs):
        batches = draw_epoch("balls_in_bins", "example", rows, 5, torch.zeros(20, dtype=torch.int64), generator)
        assert len(batches) == steps
        for step, (batch,) in enumerate(batches):
            place[epoch, batch] = step
        assert sum(len(batch) for (batch,) in batches) == 20
    counts = torch.stack([(place == step).sum(0) for step in range(steps)]).double()
    # Chi-square with 60 degrees of freedom: above 120.5 once in 250,000 times.
    assert ((counts - epochs / steps) ** 2 / (epochs / steps)).sum() < 120.5
    # Two records meet in a step as often as chance says: six standard deviations, false alarm 2e-9.
    met = (place[:, :-1] == place[:, 1:]).double().mean()
    assert abs(met - 1 / steps) < 6 * (0.25 * 0.75 / (epochs * 19)) ** 0.5


@pytest.mark.parametrize("sampler", ["shuffle", "poisson", "wor", "cyclic", "balls_in_bins", "cyclic_poisson"])
def test_class_units_split_a_batch_by_group(sampler):
    groups = torch.arange(50) % 3
    for batch in draw(sampler, "class", groups=groups):
        assert all(len(set((rows - 100).remainder(3).tolist())) == 1 for rows in batch)
        assert len(batch) <= 3


@pytest.mark.parametrize("sampler", ["shuffle", "poisson", "wor", "cyclic", "balls_in_bins", "cyclic_poisson"])
def test_the_stream_decides(sampler):
    first, again, other = (draw(sampler, seed=seed) for seed in (1, 1, 2))
    assert all(torch.equal(a, b) for (a,), (b,) in zip(first, again, strict=True))
    assert not all(torch.equal(a, b) for (a,), (b,) in zip(first, other, strict=True))
