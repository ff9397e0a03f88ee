"""The regularizers against loops over pixels."""

import numpy as np
import pytest
import torch

from dp_leakage.attacks.inversion.regularizers import btv, l1, l1_mean, l2, smoothness


def btv_by_hand(x, p, alpha):
    height, width = x.shape
    total = 0.0
    for m in range(p + 1):
        for across in range(-p, p + 1):
            if across + m <= 0:
                continue
            for i in range(height):
                for j in range(width):
                    other = x[min(max(i - m, 0), height - 1), min(max(j - across, 0), width - 1)]
                    total += alpha ** (across + m) * abs(x[i, j] - other)
    return total


@pytest.mark.parametrize(("p", "alpha"), [(1, 0.9), (2, 0.9), (2, 0.5)])
def test_btv_is_the_sum_over_shifts(p, alpha):
    x = np.random.default_rng(0).random((2, 3, 6, 5))
    found = btv(torch.from_numpy(x), p, alpha)
    expected = [[btv_by_hand(image, p, alpha) for image in row] for row in x]
    np.testing.assert_allclose(found, expected)


def test_btv_with_the_papers_window_has_nine_shifts():
    # One bright pixel far from the edges differs from its surroundings twice in every shift.
    x = torch.zeros(9, 9, dtype=torch.float64)
    x[4, 4] = 1.0
    shifts = [(i, m) for m in range(3) for i in range(-2, 3) if i + m > 0]
    assert len(shifts) == 9
    assert float(btv(x)) == pytest.approx(2 * sum(0.9 ** (i + m) for i, m in shifts))


def test_an_image_of_one_value_has_no_btv():
    assert float(btv(torch.full((1, 7, 4), 0.3))) == 0.0


def test_l1_is_per_image():
    x = torch.randn(2, 3, 4, 5, generator=torch.Generator().manual_seed(0))
    np.testing.assert_allclose(l1(x), np.abs(x.numpy()).sum((2, 3)), rtol=1e-6)
    np.testing.assert_allclose(l1_mean(x), np.abs(x.numpy()).mean((2, 3)), rtol=1e-6)


def test_squares_and_smoothness_are_per_image():
    x = torch.randn(2, 3, 4, 5, generator=torch.Generator().manual_seed(0))
    np.testing.assert_allclose(l2(x), np.linalg.norm(x.numpy(), axis=(2, 3)) ** 2, rtol=1e-6)
    down, right = np.diff(x.numpy(), axis=2), np.diff(x.numpy(), axis=3)
    np.testing.assert_allclose(smoothness(x), (down**2).sum((2, 3)) + (right**2).sum((2, 3)), rtol=1e-5)
