"""Several queries about one image."""

import numpy as np
import pytest

from dp_leakage.attacks.queries import QUERIES, altered, ask, margins
from dp_leakage.common.errors import UserError
from dp_leakage.data.dataset import Dataset

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


def dataset(x, y):
    roles = {"target_members": np.array([3, 0]), "target_nonmembers": np.array([4, 1]), "shadow_pool": np.array([2])}
    return Dataset(x, y, roles, np.array([], dtype=np.int64))


def test_margins_are_kept_query_by_query_and_averaged_over_the_first(known):
    x = np.random.default_rng(0).normal(size=(5, 1, 3, 3)).astype(np.float32)
    model = known(lambda k, images: np.stack([images[:, 0, 1, 1], images[:, 0, 0, 0]], axis=1), 2)
    y = np.array([0, 1, 0, 1, 0])
    said = ask(model, dataset(x, y), 4)
    for query, margin in zip(QUERIES, said.margin, strict=False):
        np.testing.assert_array_equal(margin, margins(model, altered(x, *query), y)[:, said.record])
    np.testing.assert_allclose(said.mean_margin(3), said.margin[:3].mean(axis=0))
    with pytest.raises(UserError, match="1 to 4"):
        said.mean_margin(5)


def test_every_record_that_has_a_role_is_asked_about_once(known):
    model = known(lambda k, x: np.stack([x[:, 0], -x[:, 0], 0 * x[:, 0]], axis=1), 2, np.array([[3, 2], [0, 1]]))
    x = np.array([1, -1, 2, -2, 0], dtype=np.float32)[:, None]
    said = ask(model, dataset(x, np.array([0, 0, 1, 1, 2])))
    np.testing.assert_array_equal(said.record, [3, 0, 4, 1, 2])
    np.testing.assert_array_equal(said.trained_on, [[1, 0, 0, 0, 1], [0, 1, 0, 1, 0]])
    np.testing.assert_array_equal(said.correct[0], [True, True, False, False, False])
    np.testing.assert_array_equal(said.rank[0], [1, 1, 3, 3, 3])
    assert (said.record[said.role == "target_nonmembers"] == [4, 1]).all()


def test_more_than_one_query_needs_images(known):
    model = known(lambda k, x: np.zeros((len(x), 2)), 1)
    y = np.zeros(5, int)
    with pytest.raises(UserError, match="are not images"):
        ask(model, dataset(np.zeros((5, 4), np.float32), y), 2)
    with pytest.raises(UserError, match="1 to 18"):
        ask(model, dataset(np.zeros((5, 1, 4, 4), np.float32), y), 19)
