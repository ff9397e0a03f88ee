"""Folders of images, one folder per class: the user's own, LFW and Faces94; also inside a zip or tar."""

import io
import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np

from dp_leakage.common.apart import Limits, apart
from dp_leakage.common.errors import UserError, brief
from dp_leakage.common.paths import user_path
from dp_leakage.data.fetch import Remote, checksum_note, download, find
from dp_leakage.data.persons import owners
from dp_leakage.data.raw import Raw, encode_labels
from dp_leakage.data.splits import balanced
from dp_leakage.data.trees import Tree, is_folder, open_tree, sha256_of, sha256_of_parts

MATCHING = 5.0  # seconds in which a pattern must match the names of all images

SOURCE = {
    "keys": {
        "size": {"$ref": "#/$defs/size"},
        "channels": {"$ref": "#/$defs/channels"},
        "min_per_class": {"type": "integer", "minimum": 1, "description": "Leave out classes with fewer images."},
        "per_class": {
            "type": "integer",
            "minimum": 1,
            "description": "Number of images of each class, drawn by `seed`.",
        },
        "seed": {"type": "integer", "minimum": 0, "description": "Seed of the draw for `per_class`."},
        "leave_out": {
            "type": "array",
            "items": {"type": "string", "minLength": 1},
            "description": "Names of folders that are left out.",
        },
        "skip_damaged": {
            "type": "boolean",
            "description": "Leave out images that cannot be read, and count them, instead of refusing the data set.",
        },
        "members": {"$ref": "#/$defs/members"},
        "person": {
            "type": "string",
            "minLength": 1,
            "description": "A regular expression whose group names the person in an image's path.",
        },
    },
    "variants": {
        "lfw": {"summary": "Labeled Faces in the Wild, one folder per person"},
        "faces94": {"summary": "Faces94, one folder per person"},
        "image_folder": {
            "summary": "your images, one folder per class, or a zip or tar of that",
            "keys": {"path": {"$ref": "#/$defs/path"}, "copies": {"$ref": "#/$defs/copies"}},
            "required": ["path"],
            "suffixes": [".zip", ".tar", ".tgz"],
        },
    },
}

SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".ppm", ".pgm", ".tif", ".tiff", ".webp"}
FORMATS = ("PNG", "JPEG", "BMP", "GIF", "PPM", "TIFF", "WEBP")
SPLITS = {"train", "test", "val", "valid", "validation"}  # top folders that are a split, not classes
MAX_BYTES = 8 * 2**30


class Official(NamedTuple):
    """A published set of images: known archives, the preferred one, and its counts."""

    remotes: tuple[Remote, ...]
    images: int
    classes: int


# LFW: copies and SHA-256 sums of scikit-learn's datasets/_lfw.py. Faces94: no checksum is published.
OFFICIAL = {
    "lfw": Official(
        (Remote("lfw.tgz", "https://ndownloader.figshare.com/files/5976018",
                "sha256:055f7d9c632d7370e6fb4afc7468d40f970c34a80d4c6f50ffec63f5a8d536c0"),
         Remote("lfw-funneled.tgz", "https://ndownloader.figshare.com/files/5976015",
                "sha256:b47c8422c8cded889dc5a13418c4bc2abbda121092b3533a83306f90d900100a")),
        13_233, 5_749,
    ),
    "faces94": Official(
        (Remote("faces94.zip", "http://cswww.essex.ac.uk/mv/allfaces/faces94.zip", None),), 153 * 20, 153
    ),
}  # fmt: skip


def load(spec: dict, data_dir: Path) -> Raw:
    """Load images below ``path``, or a published set's in ``data_dir``.

    ``size`` resizes; ``channels`` converts to gray or color; ``leave_out`` skips folders with these names anywhere;
    ``skip_damaged`` skips and counts images that cannot be read; ``min_per_class`` drops small classes; ``per_class``
    draws that many images of each class (by ``seed``, 0 if not given) and drops classes with fewer. ``person`` is a
    regular expression whose group names the person in an image's path: ``([^/]+)/[^/]+$`` is the folder.
    """
    if "path" in spec:
        return read(user_path(spec["path"]), spec)
    source = spec["source"]
    official = OFFICIAL[source]
    folder = data_dir / source
    archive = find(data_dir, source, [remote.file for remote in official.remotes])
    if archive is None and not _has_images(folder):
        archive = download(official.remotes[0], folder, source)
    raw = read(archive or folder, spec)
    notes = [f"{source}: the official set has {official.images:,} images of {official.classes:,} people."]
    notes += [checksum_note(archive, remote) for remote in official.remotes if archive and archive.name == remote.file]
    return raw._replace(notes=(*raw.notes, *notes))


def count(spec: dict) -> int | None:
    """Count the images, or the people by file name, before any is left out; None if an archive must be
    unpacked first.
    """
    if "path" not in spec:
        return OFFICIAL[spec["source"]].images
    path = user_path(spec["path"])
    if not is_folder(path):
        return None
    with open_tree(path, _wanted(spec)) as tree:
        all_stay = not {"min_per_class", "per_class", "skip_damaged"} & spec.keys()
        if tree.names and "person" in spec and all_stay:
            return len(_owners(tree.names, spec["person"], path)["people"])
        return len(tree.names) or None


def _wanted(spec: dict) -> Callable[[str], bool]:
    """Return a filter for the image files of a folder that the spec includes."""
    without = set(spec.get("leave_out", []))
    return lambda name: _is_image(name) and not without & set(PurePosixPath(name).parts[:-1])


def read(path: Path, spec: dict) -> Raw:
    """Read the images of a folder, zip or tar. Each folder with images in it is a class, wherever it lies.

    If the topmost folders are called train, test or val, they are taken as a given split, and the classes lie below.

    Returns:
        x (n, channels, height, width) in [0, 1], in the order of the names. If both gray and color images occur, the
        gray ones become color images.

    Raises:
        UserError: no images, only one class, an unreadable image, or images of different sizes without
        ``size``.
    """
    with open_tree(path, _wanted(spec)) as tree:
        if not tree.names:
            without = sorted(spec.get("leave_out", []))
            left_out = f" beside {', '.join(without)}" if without else ""
            raise UserError(
                f"{path}: no images{left_out}; expected folders, one per class, of {', '.join(sorted(SUFFIXES))}"
            )
        splits, classes = _classes(tree)
        y, _ = encode_labels(classes, f"{path}: folders of images")
        rows = balanced(y, spec.get("min_per_class", 1), spec.get("per_class"), spec.get("seed", 0))
        left = f"{path}: folders left by min_per_class and per_class"
        encode_labels(classes[rows], left)
        wanted = [tree.names[row] for row in rows]
        _check_room(path, len(wanted), spec)
        names, x, gray = _stack(_readable(tree, wanted, path, spec), len(wanted), path)
        rows = rows[np.isin(wanted, names)]
        y, class_names = encode_labels(classes[rows], left)
        digest = sha256_of(path) if path.is_file() else sha256_of_parts((n, tree.read(n)) for n in names)
    given = {split: np.flatnonzero(splits[rows] == split) for split in sorted({*splits} - {""})}
    notes = [f"{path.name}: {len(names):,} of {len(splits):,} images in {len(class_names):,} classes."]
    if len(names) < len(wanted):
        notes.append(f"{path.name}: damaged images skipped (skip_damaged): {len(wanted) - len(names):,}.")
    if 0 < gray < len(names):
        notes.append(f"{path.name}: {gray:,} of {len(names):,} images are gray, and became colored like the others.")
    return Raw(
        x,
        y,
        class_names,
        names=tuple(names),
        given=given,
        notes=tuple(notes),
        sha256={path.name: digest},
        divisor=255.0,
        **(_owners(names, spec["person"], path) if "person" in spec else {}),
    )


def _owners(names: Sequence[str], pattern: str, path: Path) -> dict[str, Any]:
    """Return the owner of each image, as fields of `Raw`: the match of a regular expression's group in the file name.

    Raises:
        UserError: this is not a regular expression, a name does not match, or matching takes longer than `MATCHING`.
    """
    words = "expected a regular expression with one group in parentheses, such as '([^/]+)_[0-9]+'"
    try:
        wanted = re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise UserError(f"person: {brief(pattern)!r} is not a regular expression ({error}); {words}") from None
    if wanted.groups != 1:
        raise UserError(f"person: {pattern!r} has {wanted.groups} groups; {words}")

    def matched() -> Iterator[dict[str, np.ndarray]]:
        for name in names:
            if wanted.search(name) is None:
                raise UserError(f"person: {pattern!r} matches nothing in {name!r}, an image of {path}")
        yield {"people": np.array([(wanted.search(name) or [""] * 2)[1] or "" for name in names])}

    # A pattern can take exponentially long, and nothing but the end of its process stops it.
    (found,) = apart(f"person: the pattern {pattern!r}", matched, Limits(MATCHING))
    where = f"{path}: person {pattern!r}"
    person, people = owners(found["people"], where)
    return {"person": person, "people": people}


def _readable(tree: Tree, names: list[str], path: Path, spec: dict) -> Iterator[tuple[str, np.ndarray]]:
    """Name and pixels of each image, without damaged ones if the spec skips them."""
    for name in names:
        content = tree.read(name)
        try:
            yield name, _decode(content, f"{path}/{name}", spec)
        except UserError as error:
            if not spec.get("skip_damaged", False):
                raise UserError(f"{error}; or skip_damaged: true leaves such images out") from error


def _check_room(path: Path, images: int, spec: dict) -> None:
    """Refuse a size at which the images would not fit into memory, before any is read."""
    height, width = spec.get("size", (1, 1))
    if 4 * images * 3 * height * width > MAX_BYTES:
        words = "need over 8 GiB; set a smaller size: [height, width]"
        raise UserError(f"{path}: {images:,} images of {height}×{width} pixels {words}")


def _is_image(name: str) -> bool:
    parts = PurePosixPath(name).parts
    hidden = any(part.startswith(".") or part == "__MACOSX" for part in parts)
    return not hidden and PurePosixPath(name).suffix.lower() in SUFFIXES


def _has_images(folder: Path) -> bool:
    return any(_is_image(name) for _, _, names in os.walk(folder) for name in names)


def _classes(tree: Tree) -> tuple[np.ndarray, np.ndarray]:
    """Return the given split ("" without one) and the class of each name in the tree: texts, (n,)."""
    folders = [PurePosixPath(name).parts[:-1] for name in tree.names]
    if () in folders:
        stray = tree.names[folders.index(())]
        raise UserError(
            f"{tree.path}: {stray} is not in a class folder; put the images of each class into a folder of its own"
        )
    while len({f[0] for f in folders}) == 1 and min(map(len, folders)) > 1:
        folders = [f[1:] for f in folders]
    splits = [""] * len(folders)
    if {f[0].lower() for f in folders} <= SPLITS and min(map(len, folders)) > 1:
        splits = [f[0].lower() for f in folders]
        folders = [f[1:] for f in folders]
    # The last folder names the class, unless two classes would then share a name.
    distinct = set(folders)
    short = len({f[-1] for f in distinct}) == len(distinct)
    return np.array(splits), np.array([f[-1] if short else "/".join(f) for f in folders])


def _decode(content: bytes, where: str, spec: dict) -> np.ndarray:
    """One image as uint8, (height, width) if gray, (height, width, 3) if colored."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as opened:
            if opened.mode.startswith(("I", "F")):
                raise UserError(f"{where}: pixels of mode {opened.mode}; expected 8 bits per channel")
            gray = spec.get("channels", 1 if opened.mode in ("1", "L", "LA") else 3) == 1
            image = opened.convert("L" if gray else "RGB")
            if "size" in spec:
                height, width = spec["size"]
                image = image.resize((width, height), Image.Resampling.LANCZOS)
            return np.asarray(image)
    except UserError:
        raise
    except Exception as error:  # Pillow's decoders raise many kinds of exceptions on damaged bytes
        reason = "no known format" if isinstance(error, UnidentifiedImageError) else error
        raise UserError(f"{where}: not a readable image ({reason}); expected {', '.join(FORMATS)}") from error


def _stack(images: Iterator[tuple[str, np.ndarray]], at_most: int, path: Path) -> tuple[list[str], np.ndarray, int]:
    """Return the images' names, their pixels as float32 (n, channels, height, width), and how many are gray."""
    names: list[str] = []
    decoded: list[np.ndarray] = []
    for name, image in images:
        height, width = image.shape[:2]
        first = decoded[0].shape[:2] if decoded else (height, width)
        if (height, width) != first:
            raise UserError(
                f"{path}/{name}: {height}×{width} pixels (height×width), {names[0]} has "
                f"{first[0]}×{first[1]}; "
                f"give all images one size, or set size: [{first[0]}, {first[1]}]"
            )
        if 4 * at_most * image.size > MAX_BYTES:
            raise UserError(
                f"{path}: {at_most:,} images of {height}×{width} pixels need over 8 GiB; "
                "set a smaller size: [height, width]"
            )
        names.append(name)
        decoded.append(image)
    if not decoded:
        raise UserError(f"{path}: none of {at_most:,} images can be read; expected {', '.join(FORMATS)}")
    gray = sum(image.ndim == 2 for image in decoded)
    x = np.empty((len(decoded), 1 if gray == len(decoded) else 3, *decoded[0].shape[:2]), np.float32)
    for row, image in zip(x, decoded, strict=True):
        np.divide(image if image.ndim == 2 else image.transpose(2, 0, 1), np.float32(255), out=row)
    return names, x, gray
