"""Filling roles with varied copies: sizes, classes, and whether copies cross from one role to another."""

import numpy as np
import pytest

from dp_leakage.common.errors import UserError
from dp_leakage.data.augment import LIGHT, augmented_split, varied
from dp_leakage.data.raw import Raw

ROLES = {"target_members": 95, "target_nonmembers": 15}
CLASSES, PHOTOS = 5, 6


def faces():
    """Flat images whose gray level says which photo they are: copies differ from it in light alone."""
    level = np.geomspace(0.02, 0.6, CLASSES * PHOTOS, dtype=np.float32)
    x = np.broadcast_to(level[:, None, None, None], (len(level), 1, 8, 7)).copy()
    return Raw(x, np.repeat(np.arange(CLASSES), PHOTOS), tuple("abcde"))


@pytest.mark.parametrize("order", ["after_split", "before_split"])
def test_roles_have_their_sizes_and_classes_their_shares(order):
    raw, rows = augmented_split(faces(), ROLES, order, seed=0, stratified=True)
    assert {role: len(own) for role, own in rows.items()} == ROLES
    assert sorted(np.concatenate([*rows.values()])) == list(range(110))
    for role, size in ROLES.items():
        assert np.bincount(raw.y[rows[role]]).tolist() == [size // CLASSES] * CLASSES
    assert raw.x.dtype == np.float32
    assert raw.x.min() >= 0
    assert raw.x.max() <= 1
    assert "varied copies" in raw.notes[-1]
    assert "An ε for single records is for one copy" in raw.notes[-1]
    again, same = augmented_split(faces(), ROLES, order, seed=0, stratified=True)
    assert (again.x == raw.x).all()
    assert all((rows[role] == same[role]).all() for role in ROLES)


@pytest.mark.parametrize("order", ["after_split", "before_split"])
def test_every_photo_is_there_itself(order):
    given = faces()
    raw, _ = augmented_split(given, ROLES, order, seed=1, stratified=True)
    for image, label in zip(given.x, given.y, strict=True):
        assert (raw.x[raw.y == label] == image).all((1, 2, 3)).any()


def test_copies_stay_on_their_side_of_the_split_by_default_and_cross_it_as_printed():
    given = faces()
    given.x[:] = given.x * 0 + np.geomspace(1e-6, 0.6, len(given.x))[:, None, None, None]  # wider apart than LIGHT

    def sources(order):
        raw, rows = augmented_split(given, ROLES, order, seed=2, stratified=True)
        levels = given.x[:, 0, 0, 0]
        return [{int(np.abs(np.log(v / levels)).argmin()) for v in raw.x[own].mean((1, 2, 3))} for own in rows.values()]

    assert np.log(1 + LIGHT) < np.log(given.x[1, 0, 0, 0] / given.x[0, 0, 0, 0]) / 2
    apart, together = sources("after_split"), sources("before_split")
    assert not apart[0] & apart[1]
    assert apart[0] | apart[1] == set(range(len(given.x)))
    assert together[0] & together[1]


def test_a_varied_copy_is_near_and_not_the_same():
    rng = np.random.default_rng(3)
    image = np.clip(np.add.outer(np.linspace(0, 0.6, 30), np.linspace(0, 0.3, 20)), 0, 1)[None].astype(np.float32)
    copies = np.stack([varied(image, rng) for _ in range(50)])
    assert copies.shape == (50, *image.shape)
    assert (np.abs(copies - image).max((1, 2, 3)) > 0.01).all()
    mirrored = np.abs(copies - image[..., ::-1]).mean((1, 2, 3)) < np.abs(copies - image).mean((1, 2, 3))
    assert 10 < mirrored.sum() < 40  # 25 expected; beyond 4 standard deviations of 50 fair coins, false alarm 3e-5
    closest = np.minimum(np.abs(copies - image).mean((1, 2, 3)), np.abs(copies - image[..., ::-1]).mean((1, 2, 3)))
    assert closest.max() < 0.15


@pytest.mark.parametrize(
    ("raw", "roles", "words"),
    [
        (Raw(np.zeros((4, 3), np.float32), np.arange(4) % 2, ("a", "b")), ROLES, "augment needs images"),
        (faces(), {"target_members": 10, "target_nonmembers": 5}, "already"),
        (faces(), {f"role_{i}": 10 for i in range(7)}, "class a has 6 images"),
    ],
)
def test_what_cannot_be_filled_is_refused(raw, roles, words):
    with pytest.raises(UserError, match=words):
        augmented_split(raw, roles, "after_split", seed=0, stratified=True)
