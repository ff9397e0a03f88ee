import pytest
import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from dp_leakage.models import products
from dp_leakage.models.products import add_outer, add_rows, affine, takes_one_at_a_time, times

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


def test_rows_are_added_without_atomics_where_those_have_no_order():
    """On a device without kernels the same call is seen as it would go to a GPU."""
    seen = []

    class Watching(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, arguments=(), named=None):
            seen.append(function.overloadpacket)
            return function(*arguments, **(named or {}))

    for device, expected in (("cpu", torch.ops.aten.index_add_), ("meta", torch.ops.aten.index_put_)):
        total, rows = torch.zeros(5, 2, device=device), torch.ones(3, 2, device=device)
        seen.clear()
        with Watching():
            add_rows(total, torch.tensor([4, 0, 4], device=device), rows)
        assert expected in seen
        assert len({torch.ops.aten.index_add_, torch.ops.aten.index_put_} & set(seen)) == 1


def test_both_ways_add_the_same_rows():
    generator = torch.Generator().manual_seed(0)
    places, rows = torch.randint(0, 7, (50,), generator=generator), torch.randn(50, 3, generator=generator)
    total, put = torch.zeros(7, 3), torch.zeros(7, 3)
    add_rows(total, places, rows)
    put.index_put_((places,), rows, accumulate=True)
    expected = F.one_hot(places, 7).T.double() @ rows.double()
    for found in (total, put):
        torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)
