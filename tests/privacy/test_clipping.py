import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dp_leakage.privacy.clipping import bound_scales, check_bound

norm = st.floats(min_value=0, max_value=2.0**100, width=32)
positive = st.floats(min_value=2.0**-20, max_value=2.0**20, width=32)


@given(norm, positive, st.sampled_from(["clip", "normalize"]), st.sampled_from([torch.float32, torch.float64]))
def test_no_gradient_is_left_longer_than_the_bound(length, clip_norm, bound, dtype):
    norms = torch.tensor([length], dtype=dtype)
    scale = bound_scales(norms, clip_norm, bound)
    assert scale.dtype == dtype
    assert float(scale.double() * norms.double()) <= clip_norm


@given(norm, positive)
def test_clipping_leaves_short_gradients_alone_and_never_lengthens(length, clip_norm):
    scale = float(bound_scales(torch.tensor([length]), clip_norm, "clip"))
    assert 0 <= scale <= 1
    if length < clip_norm * 0.99 - 1e-5:
        assert scale == pytest.approx(1, rel=1e-5)


def test_normalizing_brings_every_gradient_to_the_bound_but_not_what_float32_sees_only_in_part():
    norms = torch.tensor([1e-6, 0.5, 3.0, 1e10, 0.0])
    scaled = bound_scales(norms, 2.0, "normalize") * norms
    torch.testing.assert_close(scaled, torch.tensor([2.0, 2.0, 2.0, 2.0, 0.0]), rtol=1e-4, atol=0)
    assert bound_scales(torch.tensor([1e-20]), 2.0, "normalize") * 1e-20 < 1e-7


@pytest.mark.parametrize("clip_norm", [1e-3, 0.01, 1.0, 100.0])
def test_gradients_that_only_factors_with_few_digits_would_bound_count_as_0(clip_norm):
    check_bound("adaptive", clip_norm)  # .01/1e38 is below the smallest normal number
    norms = torch.tensor([1e30, 7.8e37])
    assert (bound_scales(norms, clip_norm, "adaptive").double() * norms.double() <= clip_norm).all()


def test_the_norms_are_not_overwritten():
    norms = torch.tensor([0.5, 3.0])
    for bound in ("clip", "normalize"):
        bound_scales(norms, 1.0, bound)
    assert norms.tolist() == [0.5, 3.0]
