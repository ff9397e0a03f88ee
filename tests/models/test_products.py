import pytest
import torch

from dp_leakage.models import products
from dp_leakage.models.products import add_outer, affine, takes_one_at_a_time, times

SMALL, LARGE = (20, 30), (150, 170)


@pytest.mark.parametrize("models", [1, 3])
@pytest.mark.parametrize("sizes", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("onednn", [True, False])
def test_products_are_right_to_float32_whichever_library_makes_them(models, sizes, onednn, monkeypatch):
    available = products.has_onednn()
    monkeypatch.setattr(products, "has_onednn", lambda: onednn and available)
    inputs, outputs = sizes
    x, delta = torch.randn(models, 40, inputs), torch.randn(models, 40, outputs)
    weight, bias = torch.randn(models, outputs, inputs), torch.randn(models, outputs)
    # As in training, the total is a view with gaps between the models.
    total = torch.randn(models, outputs * inputs + 5)[:, : outputs * inputs].unflatten(1, (outputs, inputs))
    expected_total = total.double() + torch.bmm(delta.double().mT, x.double())
    add_outer(total, delta, x)
    pairs = [
        (affine(x, weight, bias), torch.bmm(x.double(), weight.double().mT) + bias.double()[:, None]),
        (times(delta, weight), torch.bmm(delta.double(), weight.double())),
        (total, expected_total),
    ]
    for actual, expected in pairs:
        torch.testing.assert_close(actual.double(), expected, rtol=1e-5, atol=1e-4)


def test_float64_and_small_layers_stay_with_batched_products():
    assert not takes_one_at_a_time(torch.empty(2, *SMALL))
    assert not takes_one_at_a_time(torch.empty(2, *LARGE, dtype=torch.float64))
