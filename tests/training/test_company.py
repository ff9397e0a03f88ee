"""A model's bits do not depend on the other models of its ensemble."""

from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given
from hypothesis import settings as checked
from hypothesis import strategies as st
from small import SETTINGS, SHAPES, data_of, layers_of, subsets_of

from dp_leakage.models.architectures import build
from dp_leakage.models.products import add_outer, takes_one_at_a_time
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.training import samplers
from dp_leakage.training.model_batches import pass_width
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.trainer import start, train

ADAM = TrainingSettings("adam", 0.01, epochs=2, batch_size=8)
SEEDS = [11, 7, 23, 5]


def alone_and_together(layers, x, y, subsets, mechanism, settings=ADAM, **arguments):
    together, history = train(layers, x, y, subsets, SEEDS, settings, mechanism, **arguments)
    for k, seed in enumerate(SEEDS):
        alone, own_history = train(layers, x, y, subsets[k : k + 1], [seed], settings, mechanism, **arguments)
        for name, value in alone.parameters.items():
            assert torch.equal(value[0], together.parameters[name][k]), name
        without_model = [{key: row[key] for key in row if key != "model"} for row in history if row["model"] == k]
        assert str(without_model) == str([{key: row[key] for key in row if key != "model"} for row in own_history])


@pytest.mark.parametrize("activation", ["relu", "tanh", "sigmoid", "silu"])
@pytest.mark.parametrize(
    ("features", "hidden", "classes", "batch_size"),
    [(13, (), 3, 50), (30, (), 2, 25), (561, (), 10, 50), (3, (5,), 10, 2), (101, (3,), 3, 8), (7, (1,), 3, 8)],
)
def test_at_sizes_that_fill_no_vector(features, hidden, classes, batch_size, activation):
    """Here kernels' remainders come in, and parts of memory that begin at odd places."""
    layers = build("mlp", (features,), classes, hidden=hidden, activation=activation)
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(88, features, generator=generator), torch.randint(0, classes, (88,), generator=generator)
    settings = TrainingSettings("adam", 0.05, epochs=2, batch_size=batch_size)
    alone_and_together(layers, x, y, subsets_of(88, 4, 83), Mechanism(noise_multiplier=0.5), settings)


@pytest.mark.parametrize("batch_size", [16, 24, 40])
@pytest.mark.parametrize(
    ("features", "hidden", "classes"),
    [(13, (), 3), (30, (), 2), (561, (), 10), (3, (5,), 10), (101, (3,), 3), (7, (1,), 3)],
)
def test_whole_batches_side_by_side_at_sizes_that_fill_no_vector(features, hidden, classes, batch_size):
    layers = build("mlp", (features,), classes, hidden=hidden)
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(88, features, generator=generator), torch.randint(0, classes, (88,), generator=generator)
    settings = TrainingSettings("adam", 0.05, epochs=2, batch_size=batch_size)
    alone_and_together(layers, x, y, subsets_of(88, 4, 83), Mechanism("wor", "batch", noise_multiplier=0.5), settings)


def test_a_whole_batch_whose_gradient_is_not_finite_leaves_the_others_of_its_model_batch_as_they_are():
    x, y = data_of("mlp")
    mechanism, batches = Mechanism(unit="batch", noise="none"), [[torch.arange(8)], [torch.arange(8, 16)]]
    both, alone = (
        start(layers_of("mlp"), x, y, subsets_of(40, 2)[:k], [1, 2][:k], SETTINGS, mechanism) for k in (2, 1)
    )
    assert len(both.program.model_batches) == 1
    both.parameters[1] *= 1e30
    with torch.inference_mode():
        both.fill_gradient(batches)
        alone.fill_gradient(batches[:1])
    assert torch.equal(both.program.gradient[0], alone.program.gradient[0])
    assert bool((both.program.gradient[1] == 0).all())


@pytest.mark.parametrize("sampler", ["shuffle", "poisson", "wor"])
@pytest.mark.parametrize("name", SHAPES)
def test_alone_and_in_an_ensemble_bit_for_bit(name, sampler):
    x, y = data_of(name)
    alone_and_together(layers_of(name), x, y, subsets_of(40, 4, 30), Mechanism(sampler, noise_multiplier=0.5))


@pytest.mark.parametrize(
    "mechanism",
    [
        None,
        Mechanism(unit="batch", noise_multiplier=0.1),
        Mechanism("class_poisson", unit="class", noise_multiplier=0.1),
        *(
            Mechanism("wor", bound="normalize", noise="vmf", kappa=50.0, block=block)
            for block in ("whole", "layer", "row", "sum")
        ),
    ],
    ids=lambda m: "none" if m is None else f"{m.unit} {m.noise} {m.block}",
)
def test_also_with_dropout_and_every_kind_of_step(mechanism):
    x, y = data_of("mlp")
    alone_and_together(layers_of("mlp", dropout=0.3), x, y, subsets_of(40, 4, 30), mechanism)


def uneven(plugin, function, count, batch_size, steps, generator):
    """Stands in for a plugin's sampler, whose batches may have any lengths."""
    sizes = torch.randint(0, 2 * round(batch_size) + 1, (steps,), generator=generator).tolist()
    return [torch.randperm(count, generator=generator)[:size] for size in sizes]


@checked(max_examples=70, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    block=st.sampled_from([None, None, "whole", "layer", "row", "sum"]),
    awkward=st.booleans(),
    sampler=st.sampled_from(["plain", "shuffle", "cyclic", "poisson", "wor", "balls_in_bins", "uneven"]),
    tossed=st.booleans(),
    batch_size=st.integers(1, 90),
    hidden=st.sampled_from([(), (5,), (64, 64), (7, 3)]),
    features=st.sampled_from([1, 5, 13, 30, 50]),
    classes=st.sampled_from([2, 3, 10, 17]),
    order=st.permutations(range(9)),
)
def test_whatever_the_batches_and_the_company(
    block, awkward, sampler, tossed, batch_size, hidden, features, classes, order
):
    """Alone, among three and among nine in another order. The batches' lengths differ, and some need more passes.

    Awkward records are equal, so that Gram matrices are singular, or so long that gradients vanish.
    """
    n, models = 90, 9
    generator = torch.Generator().manual_seed(batch_size)
    x, y = torch.randn(n, features, generator=generator), torch.randint(0, classes, (n,), generator=generator)
    held = torch.rand(models, n, generator=generator) < torch.linspace(0.2, 1, models)[:, None]
    if awkward:
        x[::7], x[1::9] = x[0], x[1::9] * 1e5
    layers = build("mlp", (features,), classes, hidden=hidden)
    settings = TrainingSettings("adam", 0.05, epochs=1, batch_size=batch_size)
    mechanism = None if sampler == "plain" else Mechanism(sampler, noise_multiplier=0.5)
    if mechanism is not None and block is not None:
        mechanism = Mechanism(sampler, bound="normalize", noise="vmf", kappa=50.0, block=block)

    def parameters(chosen):
        coins = held[chosen] if tossed else None
        subsets = torch.arange(n).expand(len(chosen), -1)
        with torch.inference_mode():
            training = start(layers, x, y, subsets, chosen, settings, mechanism, held=coins)
            training.run_epoch()
        return dict(zip(chosen, training.parameters, strict=True))

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(samplers.FILES, "uneven", Path("uneven.py"))
        patch.setattr(samplers, "call", uneven)
        together, alone, few = parameters(list(order)), parameters([order[4]]), parameters([*order[:2], order[4]])
    assert together[order[4]].isfinite().all()
    assert torch.equal(together[order[4]], alone[order[4]])
    for own in few:
        assert torch.equal(together[own], few[own])


@checked(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    sampler=st.sampled_from(["shuffle", "poisson", "balls_in_bins"]),
    sizes=st.sampled_from([(5,) * 18, tuple(range(1, 13)), (1,) * 90, (70, 1, 1, 1, 1, 2, 3, 3, 8)]),
    tossed=st.booleans(),
    most=st.sampled_from(["all", 2, 4]),
    chosen=st.sampled_from(["each_step", "first"]),
    batch_size=st.integers(1, 9),
    hidden=st.sampled_from([(), (5,), (64, 64)]),
    features=st.sampled_from([1, 13, 30]),
    classes=st.sampled_from([2, 3, 10]),
    order=st.permutations(range(9)),
)
def test_persons_of_any_size_in_any_company(
    sampler, sizes, tossed, most, chosen, batch_size, hidden, features, classes, order
):
    generator = torch.Generator().manual_seed(batch_size)
    groups = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    n, models = len(groups), 9
    groups = groups[torch.randperm(n, generator=generator)]
    x, y = torch.randn(n, features, generator=generator), torch.randint(0, classes, (n,), generator=generator)
    coins = torch.rand(models, len(sizes), generator=generator) < torch.linspace(0.2, 1, models)[:, None]
    layers = build("mlp", (features,), classes, hidden=hidden)
    settings = TrainingSettings("adam", 0.05, epochs=1, batch_size=batch_size)
    mechanism = Mechanism(sampler, "person", noise_multiplier=0.5, settings={"most": most, "chosen": chosen})

    def parameters(own):
        held = coins[own][:, groups] if tossed else None
        with torch.inference_mode():
            subsets = torch.arange(n).expand(len(own), -1)
            training = start(layers, x, y, subsets, own, settings, mechanism, groups, held=held)
            training.run_epoch()
        return dict(zip(own, training.parameters, strict=True))

    together, alone, few = parameters(list(order)), parameters([order[4]]), parameters([*order[:2], order[4]])
    assert together[order[4]].isfinite().all()
    assert torch.equal(together[order[4]], alone[order[4]])
    for own in few:
        assert torch.equal(together[own], few[own])


def test_small_models_of_persons_share_a_pass():
    x, y = data_of("mlp")
    arguments = (x, y, subsets_of(40, 3).sort().values, SEEDS[:3], ADAM, Mechanism(unit="person", noise_multiplier=0.5))
    groups = torch.arange(40) // 2
    assert len(start(layers_of("mlp"), *arguments, groups=groups).program.model_batches) == 1
    assert len(start(layers_of("mlp", dropout=0.3), *arguments, groups=groups).program.model_batches) == 3


@pytest.mark.parametrize("block", [None, "row", "sum"])
@pytest.mark.parametrize("sampler", ["poisson", "shuffle"])
def test_small_models_with_ragged_batches_share_a_pass(sampler, block):
    x, y = data_of("mlp")
    held = torch.arange(40) < torch.tensor([[5], [40], [20]])
    how = {"bound": "normalize", "noise": "vmf", "kappa": 5.0, "block": block} if block else {"noise_multiplier": 0.5}
    mechanism = Mechanism(sampler, **how)
    training = start(layers_of("mlp"), x, y, subsets_of(40, 3), SEEDS[:3], ADAM, mechanism, held=held)
    assert len(training.program.model_batches) == 1
    # Dropout draws for a padded pass too, so that a stream would depend on the others' batches.
    dropping = start(layers_of("mlp", dropout=0.3), x, y, subsets_of(40, 3), SEEDS[:3], ADAM, mechanism, held=held)
    assert len(dropping.program.model_batches) == 3


def test_a_large_class_that_is_seldom_drawn_goes_in_one_pass():
    """Narrower passes would add its records in another order."""
    settings = TrainingSettings("adam", 0.01, epochs=1, batch_size=0.5)
    x, y = data_of("mlp")
    mechanism = Mechanism("class_poisson", "class", noise_multiplier=0.5)
    program = start(layers_of("mlp"), x, y % 2, subsets_of(40, 3), SEEDS[:3], settings, mechanism).program
    assert len(program.model_batches) == 3
    assert program.width == pass_width(layers_of("mlp"), x.shape[1:], x.device)


@pytest.mark.parametrize("sampler", ["class_poisson", "poisson", "shuffle"])
def test_models_of_small_subclasses_share_a_pass_and_have_the_bytes_of_one_alone(sampler):
    x, y = data_of("mlp")
    groups = torch.repeat_interleave(torch.arange(8), torch.tensor([18, 5, 1, 1, 6, 3, 4, 2]))  # the first goes alone
    held = torch.arange(40) < torch.tensor([[40], [9], [23]])
    mechanism = Mechanism(sampler, "subclass", noise_multiplier=0.5)
    arguments = (layers_of("mlp"), x, y, subsets_of(40, 3))
    training = start(*arguments, SEEDS[:3], ADAM, mechanism, groups, held=held)
    assert len(training.program.model_batches) == 1
    together, _ = train(*arguments, SEEDS[:3], ADAM, mechanism, groups=groups, held=held)
    for model in range(3):
        own = slice(model, model + 1)
        alone, _ = train(*arguments[:3], arguments[3][own], SEEDS[own], ADAM, mechanism, groups=groups, held=held[own])
        for name, value in alone.parameters.items():
            assert torch.equal(value[0], together.parameters[name][model]), name


@pytest.mark.parametrize("records", [8, 56, 80])
def test_a_weights_gradient_has_the_same_bytes_wherever_it_lies(records):
    """MKL rounds otherwise where a product does not begin at a vector's edge."""
    generator = torch.Generator().manual_seed(0)
    for outputs, inputs in [(1, 5), (2, 13), (3, 30), (5, 5), (10, 5), (10, 50), (64, 30)]:
        delta, x = (torch.randn(7, records, width, generator=generator) for width in (outputs, inputs))
        together, alone = torch.zeros(7, outputs, inputs), torch.zeros(7, outputs, inputs)
        add_outer(together, delta, x)
        for model in range(7):
            add_outer(alone[model : model + 1], delta[model : model + 1].clone(), x[model : model + 1].clone())
        assert torch.equal(together, alone), (outputs, inputs)


@pytest.mark.parametrize(("features", "hidden", "classes"), [(50, (), 100), (50, (256, 256), 100), (600, (), 100)])
def test_at_the_sizes_of_the_studies(features, hidden, classes):
    """Batched products (model batches of several models) and oneDNN, which the tiny layers above never need."""
    layers = build("mlp", (features,), classes, hidden=hidden)
    assert takes_one_at_a_time(torch.empty(classes, features)) == (features == 600)
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(1100, features, generator=generator), torch.randint(0, classes, (1100,), generator=generator)
    settings = TrainingSettings("adam", 0.01, epochs=1, batch_size=200)
    for sampler in ("shuffle", "poisson"):
        alone_and_together(layers, x, y, subsets_of(1100, 4, 1010), Mechanism(sampler, noise_multiplier=0.5), settings)


def test_seeds_and_roles_have_streams_of_their_own():
    x, y = data_of("mlp")
    layers, subsets = layers_of("mlp"), subsets_of(40, 1)
    first, _ = train(layers, x, y, subsets, [1], SETTINGS, Mechanism(noise_multiplier=0.5))
    other, _ = train(layers, x, y, subsets, [2], SETTINGS, Mechanism(noise_multiplier=0.5))
    silent, _ = train(layers, x, y, subsets, [1], SETTINGS, Mechanism(noise="none"))
    assert not torch.equal(first.parameters["0.weight"], other.parameters["0.weight"])
    assert not torch.equal(first.parameters["0.weight"], silent.parameters["0.weight"])
    # With a step too short to matter what is left is the start: noise and batches do not disturb its stream.
    still = TrainingSettings("sgd", 1e-30, epochs=1, batch_size=8)
    starts = [
        train(layers, x, y, subsets, [1], still, mechanism)[0].parameters["0.weight"]
        for mechanism in (None, Mechanism("poisson", noise_multiplier=0.5))
    ]
    assert torch.equal(*starts)
