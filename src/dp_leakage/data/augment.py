"""Roles filled with augmented copies of images (zhang2020 makes 220 of 20 faces of each person)."""

from collections.abc import Mapping

import numpy as np

from dp_leakage.common.errors import UserError
from dp_leakage.data.raw import Raw
from dp_leakage.data.splits import shares, split

# The paper names its library but not the operations. These leave a face recognizable.
TURN = 5.0  # degrees, to either side
SHIFT = 0.05  # of height and width, in either direction
ZOOM = 0.05  # relative, in either direction
LIGHT = 0.15  # relative, in either direction
COPIES = "An ε for single records is for one copy: it does not hold for an image, which may be there several times"


def augmented_split(
    raw: Raw, roles: Mapping[str, int], order: str, *, seed: int, stratified: bool
) -> tuple[Raw, dict[str, np.ndarray]]:
    """Split images into roles and fill each role up to its size with augmented copies.

    Args:
        raw: images; each original is part of the result too.
        roles: role → number of records, together at least as many as there are images.
        order: ``after_split`` deals the images to the roles, in proportion to their sizes and class by class, and fills
            each role with copies of its own images, so that no photo is both trained and tested on. ``before_split``
            makes all copies first, as zhang2020 does, so that copies of a training image end up in other roles.
        seed: of the split and the copies.
        stratified: whether the split keeps the classes' shares; ``after_split`` always does.

    Returns:
        ``raw`` with copies, classes in the shares that they have among the images, and the rows of each role in random
        order.

    Raises:
        UserError: the records are not images, there are more of them than wanted, or a class has fewer images than
            roles exist.
    """
    if raw.x.ndim != 4:
        raise UserError("augment needs images; remove it")
    wanted = sum(roles.values())
    if wanted < len(raw.y):
        raise UserError(
            f"augment: the roles ask for {wanted:,} records, but there are {len(raw.y):,} images already; "
            "make the roles larger or leave augment out"
        )
    rng, classes = np.random.default_rng([seed, 1]), np.bincount(raw.y)
    if order == "before_split":
        x, y = _filled(raw.x, raw.y, shares(classes, wanted), rng)
        rows = split(y, roles, seed=seed, stratified=stratified)
    else:
        dealt = _dealt(raw, np.array([*roles.values()]), rng)
        parts = [
            _filled(raw.x[own], raw.y[own], shares(classes, size), rng)
            for own, size in zip(dealt, roles.values(), strict=True)
        ]
        x, y = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        ends = np.cumsum([*roles.values()])
        rows = {
            role: rng.permutation(np.arange(end - size, end, dtype=np.int64))
            for (role, size), end in zip(roles.items(), ends, strict=True)
        }
    note = (
        f"{len(raw.y):,} images, filled up with varied copies to {wanted:,}, {order.replace('_', ' the ')}: mirrored, "
        f"turned by up to {TURN:g}°, shifted, zoomed and lit by up to {SHIFT:.0%}, {ZOOM:.0%} and {LIGHT:.0%}. "
        f"{COPIES}."
    )
    return raw._replace(x=x, y=y, names=(), notes=(*raw.notes, note)), rows


def varied(image: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return an augmented copy of an image (channels, height, width) in [0, 1]: mirrored, rotated, shifted, zoomed,
    brightened.

    Pixels that move in from outside repeat the edge.
    """
    from scipy.ndimage import affine_transform

    mirrored, angle = rng.random() < 0.5, np.deg2rad(rng.uniform(-TURN, TURN))
    shift, zoom, light = rng.uniform(-SHIFT, SHIFT, 2), 1 + rng.uniform(-ZOOM, ZOOM), 1 + rng.uniform(-LIGHT, LIGHT)
    source = image[..., ::-1] if mirrored else image
    sides = np.array(image.shape[1:])
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]) / zoom
    offset = (sides - 1) / 2 - turn @ ((sides - 1) / 2 + shift * sides)
    moved = [affine_transform(channel, turn, offset, order=1, mode="nearest") for channel in source]
    return np.clip(np.stack(moved) * light, 0, 1).astype(np.float32)


def _dealt(raw: Raw, sizes: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """Return the rows of the images for each role: one of every class, the rest in proportion to the roles' sizes."""
    dealt: list[list[np.ndarray]] = [[] for _ in sizes]
    for c, name in enumerate(raw.class_names):
        rows = rng.permutation(np.flatnonzero(raw.y == c))
        if len(rows) < len(sizes):
            raise UserError(
                f"augment: the class {name} has {len(rows)} images; expected one for each of the {len(sizes)} roles, "
                "or before_split"
            )
        ends = np.cumsum(1 + shares(sizes, len(rows) - len(sizes)))
        for part, own in zip(dealt, np.split(rows, ends[:-1]), strict=True):
            part.append(own)
    return [np.concatenate(part) for part in dealt]


def _filled(
    x: np.ndarray, y: np.ndarray, numbers: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return ``numbers[c]`` images of each class c: the given ones, then augmented copies of each in turn."""
    rows = np.concatenate([np.resize(np.flatnonzero(y == c), n) for c, n in enumerate(numbers)])
    first = np.zeros(len(rows), bool)
    first[np.unique(rows, return_index=True)[1]] = True
    images = [x[row] if itself else varied(x[row], rng) for row, itself in zip(rows, first, strict=True)]
    return np.stack(images), y[rows]
