"""Von Mises-Fisher noise in the step: the right vectors, scaled, with the right concentration."""

import pytest
import torch
from scipy.special import ive
from scipy.stats import ks_2samp
from small import SHAPES, data_of, layers_of, started, subsets_of, take

from dp_leakage.models.layers import initial_parameters
from dp_leakage.models.layers.linear import LinearGradients
from dp_leakage.privacy.directional import Drawing, add_directed, add_directed_examples
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.privacy.noise import sample_vmf
from dp_leakage.training.backward import BackwardPass, backpropagate

BATCH, CLIP = 6, 0.8
BLOCKS = ("whole", "layer", "row")
NO_NOISE = 1e18  # concentration at which a draw is its mean to float64's precision


def example_gradients(name, n=BATCH):
    """A backward pass of one model in float64 and its per-example gradients as blocks: name → (n, rows, d)."""
    layers = layers_of(name)
    start = initial_parameters(layers, torch.Generator().manual_seed(0))
    parameters = {key: value[None].double() for key, value in start.items()}
    x, y = data_of(name, n, torch.float64)
    passed = backpropagate(layers, parameters, x[None], y[None])
    return passed, parameters, {part.names: part.rows()[0] for part in passed.parts}


def add_draws(passed, block, kappa, scale, total, generator):
    add_directed_examples(passed, Drawing(block, kappa, scale, [passed.parts[0].examples], [generator]), total)


def unit_sum(rows, block):
    """Σ over examples of the unit vectors, from the formed gradients; name → (rows, d)."""
    if block == "row":
        return {key: torch.nan_to_num(value / value.norm(dim=2, keepdim=True)).sum(0) for key, value in rows.items()}
    lengths = {key: value.flatten(1).norm(dim=1) for key, value in rows.items()}
    if block == "whole":
        whole = torch.stack(list(lengths.values())).norm(dim=0)
        lengths = dict.fromkeys(lengths, whole)
    return {key: (value / lengths[key][:, None, None]).sum(0) for key, value in rows.items()}


def as_rows(parameters, names):
    return torch.cat([parameters[name][0].unflatten(0, (-1, 1)).flatten(1) for name in names], 1)


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("name", SHAPES)
def test_without_noise_it_is_the_sum_of_the_examples_unit_vectors(name, block):
    passed, parameters, rows = example_gradients(name)
    total = {key: torch.zeros_like(value) for key, value in parameters.items()}
    add_draws(passed, block, NO_NOISE, 0.5, total, torch.Generator().manual_seed(1))
    for layer, expected in unit_sum(rows, block).items():
        directed = rows[layer].norm(dim=2).min(0).values > 0  # rows with a dead ReLU get a random direction
        chosen = directed if block == "row" else slice(None)
        torch.testing.assert_close(as_rows(total, layer)[chosen], 0.5 * expected[chosen], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("name", ["mlp", "mixed", "residual", "table"])
def test_without_noise_a_formed_gradient_becomes_its_own_unit_vectors(name, block):
    _, parameters, rows = example_gradients(name, 1)
    vector, total = {}, {key: torch.zeros_like(value) for key, value in parameters.items()}
    for layer, value in rows.items():
        widths = [parameters[key].numel() // value.shape[1] for key in layer]
        parts = zip(layer, value[0].split(widths, 1), strict=True)
        vector |= {key: part.reshape(parameters[key].shape) for key, part in parts}
    add_directed(vector, block, NO_NOISE, 0.5, total, [torch.Generator().manual_seed(1)])
    for layer, expected in unit_sum(rows, block).items():
        chosen = rows[layer][0].norm(dim=1) > 0 if block == "row" else slice(None)
        torch.testing.assert_close(as_rows(total, layer)[chosen], 0.5 * expected[chosen], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("block", BLOCKS)
def test_draws_keep_the_share_of_the_mean_that_the_concentration_says(block):
    """E X = A_d(κ) μ with the Bessel ratio A_d, so the draws' projection on Σμ averages A_d(κ)‖Σμ‖² per block."""
    kappa, draws = 300.0, 300
    passed, parameters, rows = example_gradients("mlp")
    means = unit_sum(rows, block)
    blocks = {
        "whole": lambda: [torch.cat([mean.flatten() for mean in means.values()])],
        "layer": lambda: [mean.flatten() for mean in means.values()],
        "row": lambda: [row for mean in means.values() for row in mean],
    }[block]()
    expected = sum(float(m @ m) * ive(len(m) / 2, kappa) / ive(len(m) / 2 - 1, kappa) for m in blocks)
    generator = torch.Generator().manual_seed(2)
    projections = torch.zeros(draws, dtype=torch.float64)
    for draw in range(draws):
        total = {key: torch.zeros_like(value) for key, value in parameters.items()}
        add_draws(passed, block, kappa, 1.0, total, generator)
        projections[draw] = sum((as_rows(total, layer) * mean).sum() for layer, mean in means.items())
    z = (projections.mean() - expected) / (projections.std() / draws**0.5)
    assert abs(z) < 5  # false alarm 6e-7


@pytest.mark.parametrize("name", ["softmax_regression", "mlp", "lenet", "mixed"])
def test_padding_is_drawn_around_and_does_not_count(name):
    """As on a GPU, which does not wait to hear how many examples there are."""
    passed, parameters, rows = example_gradients(name)
    total, longer = ({key: torch.zeros_like(value) for key, value in parameters.items()} for _ in range(2))
    kept = torch.tensor([[1.0] * 4 + [0.0] * (BATCH - 4)])
    for into, weights in ((total, kept), (longer, torch.ones(1, BATCH))):
        how = {"sizes": [BATCH], "generators": [torch.Generator().manual_seed(1)], "weights": weights}
        add_directed_examples(passed, Drawing("row", NO_NOISE, 0.5, **how), into)
    for into, count in ((total, 4), (longer, BATCH)):
        for layer, expected in unit_sum({key: value[:count] for key, value in rows.items()}, "row").items():
            directed = rows[layer][:count].norm(dim=2).min(0).values > 0
            found = as_rows(into, layer)[directed]
            torch.testing.assert_close(found, 0.5 * expected[directed], rtol=1e-6, atol=1e-7)


def test_rows_of_a_linear_layer_have_the_law_of_rows_that_are_formed():
    """Draws from the Gram matrix, and those of a GPU, against one draw for each formed row.

    Two-sample tests at 1e-5, twelve of them.
    """
    generator = torch.Generator().manual_seed(4)
    x = torch.rand(1, 5, 12, dtype=torch.float64, generator=generator)
    delta = torch.randn(1, 5, 2, dtype=torch.float64, generator=generator)
    delta[0, 0] = 0.0  # a record that moves no row: uniform directions
    part = LinearGradients(("0.weight", "0.bias"), x, delta)
    samples = {"gram": [], "formed": [], "padded": []}
    longer = LinearGradients(part.names, torch.cat([x, x[:, :2]], 1), torch.cat([delta, delta[:, :2]], 1))
    weights = torch.tensor([[1.0] * 5 + [0.0] * 2])
    for _ in range(3_000):
        total = {"0.weight": torch.zeros(1, 2, 12).double(), "0.bias": torch.zeros(1, 2).double()}
        add_draws(BackwardPass([part]), "row", 6.0, 1.0, total, generator)
        samples["gram"].append(as_rows(total, part.names))
        total = {key: torch.zeros_like(value) for key, value in total.items()}
        drawing = Drawing("row", 6.0, 1.0, [7], [generator], weights)
        add_directed_examples(BackwardPass([longer]), drawing, total)
        samples["padded"].append(as_rows(total, part.names))
        units = torch.nn.functional.normalize(part.rows()[0], dim=2)
        units[0] = torch.eye(1, 13)
        kappa = torch.full((5, 2), 6.0, dtype=torch.float64)
        kappa[0] = 0.0
        samples["formed"].append(sample_vmf(units.flatten(0, 1), kappa.flatten(), generator).view(5, 2, 13).sum(0))
    means = torch.nan_to_num(torch.nn.functional.normalize(part.rows()[0], dim=2)).sum(0)
    for row in range(2):
        gram, formed, padded = (torch.stack(draws)[:, row] for draws in samples.values())
        for statistic in (lambda v, row=row: v @ means[row], lambda v: v.norm(dim=1), lambda v: v[:, 3]):
            for ours in (gram, padded):
                assert ks_2samp(statistic(ours).numpy(), statistic(formed).numpy()).pvalue > 1e-5


def test_gradients_of_zero_get_uniform_directions_of_length_one():
    passed, parameters, _ = example_gradients("softmax_regression")
    silent = type(passed)([type(p)(p.names, p.input, torch.zeros_like(p.delta)) for p in passed.parts])
    draws = []
    generator = torch.Generator().manual_seed(3)
    for _ in range(200):
        total = {key: torch.zeros_like(value) for key, value in parameters.items()}
        add_draws(silent, "whole", 1e6, 1.0, total, generator)
        draws.append(as_rows(total, ("0.weight", "0.bias")).flatten())
    draws = torch.stack(draws)
    # Sums of BATCH independent uniform unit vectors: mean 0, mean squared length BATCH.
    dimension = draws.shape[1]
    assert draws.square().sum(1).mean() == pytest.approx(BATCH, rel=6 * (2 / dimension) ** 0.5 / 200**0.5 * 2)
    assert draws.mean(0).norm() ** 2 == pytest.approx(BATCH / 200, rel=6 * (2 / dimension) ** 0.5)


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("size", [1e-20, 2.6e-23, 1e-29, 1e-31, 5e-42])
def test_a_saturated_example_still_gives_vectors_of_length_one(size, block):
    """In float32, where squares of its gradient vanish, and where the gradient itself nearly does."""
    x = torch.rand(1, 1, 300, generator=torch.Generator().manual_seed(2))
    passed = BackwardPass([LinearGradients(("0.weight", "0.bias"), x, torch.tensor([[[-size, size]]]))])
    total = {"0.weight": torch.zeros(1, 2, 300), "0.bias": torch.zeros(1, 2)}
    add_draws(passed, block, 50.0, 1.0, total, torch.Generator().manual_seed(3))
    rows = as_rows(total, ("0.weight", "0.bias"))
    lengths = rows.norm(dim=1) if block == "row" else rows.norm()
    torch.testing.assert_close(lengths, torch.ones_like(lengths), rtol=1e-5, atol=0)


@pytest.mark.parametrize("block", [*BLOCKS, "sum"])
def test_a_step_divides_by_the_batch_or_for_the_sum_not_at_all(block):
    x, y = data_of("mlp", dtype=torch.float64)
    mechanism = Mechanism(bound="normalize", clip_norm=CLIP, noise="vmf", kappa=NO_NOISE, block=block)
    training = started(layers_of("mlp"), x, y, subsets_of(40, 1), [1], mechanism, learning_rate=1.0, batch_size=BATCH)
    before = training.parameters.clone()
    take(training, [[torch.arange(1)]])
    length = (before - training.parameters).norm().item()
    units = {"whole": 1, "layer": 3, "row": 20 + 16 + 5, "sum": 1}[block]
    divisor = 1 if block == "sum" else BATCH
    assert length == pytest.approx(CLIP * units**0.5 / divisor, rel=1e-5)
