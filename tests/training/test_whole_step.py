"""A whole private step, from the drawn batch to the sum before its noise: no unit moves it by more than the bound.

Every architecture and every mechanism of the registries is driven, with records up to float32's largest numbers.
"""

from math import sqrt

import pytest
import torch
from small import data_of, layers_of

from dp_leakage.models.architectures import ARCHITECTURES, build
from dp_leakage.privacy.defenses import UNITS
from dp_leakage.privacy.mechanism import PERSON, Mechanism, check_step
from dp_leakage.privacy.mechanisms import ACCOUNTANTS, MECHANISMS
from dp_leakage.training.blocks import block_dimensions
from dp_leakage.training.samplers import draw_epoch
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.trainer import start, train

C = 0.5
RECORDS, BATCH, CLASSES = 12, 6, 5
HUGE = [0.0, 1e-42, 1e-20, 1e4, 1e10, 1e16, 1e19, 1e20, 1e25, 1e30, 3e38]
SMALLER = {"wide_resnet": {"depth": 10, "width": 1}, "resnet": {"channels": [8, 8], "groups": 4}}
OWN = ("mixed", "residual", "table")  # have the layers that no architecture has by itself
CONCENTRATED = 1e12  # κ at which a draw is its direction, to seven digits
ROUNDING = 1e-4  # float32 sums, relative to C; a unit too many, or too long, moves them by C


def case_of(name, **settings):
    """Layers, and ``RECORDS`` records with classes."""
    if name in OWN:
        return (layers_of(name), *data_of(name, RECORDS))
    generator = torch.Generator().manual_seed(5)
    x = torch.rand(RECORDS, 1, 28, 28, generator=generator)
    layers = build(name, (1, 28, 28), CLASSES, **SMALLER.get(name, {}), **settings)
    return layers, x, torch.randint(0, CLASSES, (RECORDS,), generator=generator)


def bounded_sum(layers, x, y, batch, mechanism, groups):
    """The sum that noise is to hide, float64 (P,); equal streams at each call, so equal dropout masks."""
    how = TrainingSettings("sgd", 0.1, epochs=1, batch_size=BATCH)
    with torch.inference_mode():
        training = start(layers, x, y, torch.arange(RECORDS)[None], [3], how, mechanism, groups)
        training.fill_gradient([batch], 0)
    total = training.program.gradient[0].double() * training.program.divisor
    assert bool(total.isfinite().all()), "one unit makes the sum infinite"
    return total


def changed(x, y, row, size):
    """The data with another record at ``row``: of both signs, of this size, and of the next class."""
    x, y = x.clone(), y.clone()
    signs = torch.where(torch.arange(x[row].numel()) % 3 == 0, -1.0, 1.0).view(x[row].shape)
    x[row], y[row] = size * signs, (y[row] + 1) % CLASSES
    return x, y


def without(batch, row, unit):
    """The batch without the unit that holds the row."""
    return [rows[rows != row] for rows in batch] if unit == "example" else [rows for rows in batch if row not in rows]


def drawn(mechanism, groups):
    rows, generator = torch.arange(RECORDS), torch.Generator().manual_seed(8)
    batches = draw_epoch(mechanism.sampler, mechanism.unit, rows, BATCH, groups, generator)
    return list(max(batches, key=lambda batch: sum(map(len, batch))))


def check(layers, x, y, mechanism, sizes=HUGE):
    """Replacing, removing and adding one unit, whatever its record, moves the sum by at most 2C, C and C."""
    groups = torch.arange(RECORDS) % 3
    batch = drawn(mechanism, groups)
    row = int(batch[-1][-1])
    directed = mechanism.noise == "vmf"
    longest = C * (sqrt(len(block_dimensions(layers, mechanism.block))) if directed else 1)
    limit = longest * (1 + ROUNDING)
    before = bounded_sum(layers, x, y, batch, mechanism, groups)
    holder = [unit for unit in batch if row in unit]
    for size in sizes:
        data = changed(x, y, row, size)
        after = bounded_sum(layers, *data, batch, mechanism, groups)
        assert (after - before).norm() <= 2 * limit, f"replacing by a record of {size:g}"
        alone = bounded_sum(layers, *data, holder if len(batch) > 1 else [torch.tensor([row])], mechanism, groups)
        assert alone.norm() <= limit, f"a record of {size:g} by itself"
        if any(layer.draws for layer in layers) or directed:
            continue  # the masks, or draws, of the other records are no longer the same
        rest = without(batch, row, mechanism.unit)
        assert (after - bounded_sum(layers, *data, rest, mechanism, groups)).norm() <= limit, f"removing {size:g}"
    empty = bounded_sum(layers, x, y, [torch.arange(0)], mechanism, groups)
    alone = mechanism.unit == "batch" or mechanism.block == "sum"  # one direction, whatever is in the batch
    assert empty.norm() <= limit * (directed and alone)


MAIN = {
    "clip": Mechanism("poisson", clip_norm=C, noise_multiplier=0.0),
    "normalize": Mechanism("poisson", bound="normalize", clip_norm=C, noise_multiplier=0.0),
    "per_layer": Mechanism("poisson", bound="per_layer", clip_norm=C, noise_multiplier=0.0),
    "batch": Mechanism("poisson", unit="batch", clip_norm=C, noise_multiplier=0.0),
    "vmf": Mechanism("poisson", bound="normalize", clip_norm=C, noise="vmf", kappa=CONCENTRATED),
}


@pytest.mark.parametrize("mechanism", MAIN.values(), ids=MAIN)
@pytest.mark.parametrize("name", [*ARCHITECTURES, *OWN])
def test_no_record_moves_the_step_of_any_architecture_by_more_than_the_bound(name, mechanism):
    check(*case_of(name), mechanism)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_nor_with_dropout(name):
    check(*case_of(name, dropout=0.4), MAIN["clip"], [0.0, 1e4, 1e30])


def mechanisms():
    """Every private mechanism of the registry, with each sampler that an accountant has for it, unit and block."""
    for name, declared in MECHANISMS.items():
        known = [own.samplers for own in ACCOUNTANTS.values() if own.noise == declared.noise]
        for sampler in sorted({sampler for samplers in known for sampler in samplers}):
            usual = UNITS if "unit" in declared.keys else ("example",)
            units = ("class",) if sampler == "class_poisson" else usual
            if sampler == "class_poisson" and declared.step.get("unit") in (PERSON, "example"):
                continue  # it draws whole classes
            for unit in [declared.step["unit"]] if "unit" in declared.step else units:
                for block in ("whole", "layer", "row", "sum") if "block" in declared.keys else ("whole",):
                    amount = {"kappa": CONCENTRATED} if declared.amount == "kappa" else {"noise_multiplier": 0.0}
                    settings = {key: value or 1 for key, value in declared.settings.items()}
                    own = Mechanism(
                        sampler, unit, declared.bound, C, declared.noise, block, **amount, settings=settings
                    )
                    yield pytest.param(own, id=f"{name}-{sampler}-{unit}-{block}")


@pytest.mark.parametrize("mechanism", list(mechanisms()))
@pytest.mark.parametrize("name", ["mlp", "residual"])
def test_nor_of_any_mechanism_with_any_of_its_samplers(name, mechanism):
    check_step(mechanism)
    # A ReLU would give some rows no direction, so that their draws were uniform, and others in every run.
    layers = layers_of(name, activation="tanh") if name == "mlp" else layers_of(name)
    check(layers, *data_of(name, RECORDS), mechanism, [0.0, 1e-42, 1e16, 1e20, 1e30])


@pytest.mark.parametrize(("name", "size"), [("wide_resnet", 1e20), ("resnet", 1e30)])
@pytest.mark.parametrize("kind", MAIN)
def test_a_huge_record_does_not_stop_a_private_training(name, size, kind):
    """A training that stops when one record is there tells, with certainty, that it is there."""
    layers = build(name, (3, 32, 32), CLASSES, **SMALLER[name])
    x, y = torch.rand(RECORDS, 3, 32, 32), torch.arange(RECORDS) % CLASSES
    x[7] = size
    mechanism = MAIN[kind]
    noisy = {"kappa": 50.0} if kind == "vmf" else {"noise_multiplier": 1.0}
    private = Mechanism("poisson", mechanism.unit, mechanism.bound, C, mechanism.noise, **noisy)
    how = TrainingSettings("adam", 0.01, epochs=2, batch_size=BATCH)
    models, history = train(layers, x, y, torch.arange(RECORDS)[None], [3], how, private)
    assert all(bool(value.isfinite().all()) for value in models.parameters.values())
    assert len(history) == 2
