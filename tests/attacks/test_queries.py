"""Several queries about one image."""

import numpy as np
import pytest

from dp_leakage.attacks.queries import QUERIES, altered, queried_margins
from dp_leakage.attacks.signals import margins
from dp_leakage.errors import UserError

IMAGES = np.arange(1, 25, dtype=np.float32).reshape(1, 2, 3, 4)


def test_shifts_move_zeros_in_and_mirrors_come_first():
    np.testing.assert_array_equal(altered(IMAGES, False, 0, 0), IMAGES)
    down = altered(IMAGES, False, 1, 0)
    assert (down[:, :, 0] == 0).all()
    np.testing.assert_array_equal(down[:, :, 1:], IMAGES[:, :, :-1])
    left = altered(IMAGES, True, 0, -1)
    assert (left[..., -1] == 0).all()
    np.testing.assert_array_equal(left[..., :-1], IMAGES[..., ::-1][..., 1:])


def test_there_are_eighteen_different_queries_and_the_first_is_the_image():
    assert QUERIES[0] == (False, 0, 0)
    assert len({altered(IMAGES, *query).tobytes() for query in QUERIES}) == 18


def test_the_margin_is_the_mean_over_the_queries(known):
    x = np.random.default_rng(0).normal(size=(5, 1, 3, 3)).astype(np.float32)
    model = known(lambda k, images: np.stack([images[:, 0, 1, 1], images[:, 0, 0, 0]], axis=1), 2)
    y = np.array([0, 1, 0, 1, 0])
    expected = np.mean([margins(model, altered(x, *query), y) for query in QUERIES[:3]], axis=0)
    np.testing.assert_allclose(queried_margins(model, x, y, 3), expected)


def test_more_than_one_query_needs_images(known):
    model = known(lambda k, x: np.zeros((len(x), 2)), 1)
    with pytest.raises(UserError, match="no images"):
        queried_margins(model, np.zeros((2, 4), np.float32), np.zeros(2, int), 2)
    with pytest.raises(UserError, match="1 to 18"):
        queried_margins(model, np.zeros((2, 1, 4, 4), np.float32), np.zeros(2, int), 19)
