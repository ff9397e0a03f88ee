"""The user's own arrays in an ``.npz`` file: x and y, or x_train, y_train, x_test, y_test."""

import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from dp_leakage.common.errors import UserError, nearest
from dp_leakage.common.paths import user_path
from dp_leakage.data.raw import Raw, check_finite, encode_labels, ranges, trained_and_not
from dp_leakage.data.trees import is_folder, sha256_of
from dp_leakage.provenance.contents import declared_size

SOURCE = {
    "keys": {
        "path": {"$ref": "#/$defs/path"},
        "x": {"type": "string", "minLength": 1, "description": "The name of the array of features."},
        "y": {"type": "string", "minLength": 1, "description": "The name of the array of labels."},
        "layout": {"enum": ["nchw", "nhwc"], "description": "The order of an image's axes."},
        "sensitive": {
            "type": "array",
            "uniqueItems": True,
            "items": {"type": "integer", "minimum": 0},
            "description": "Numbers of columns, from 0, that attribute inference guesses.",
        },
        "member": {"$ref": "#/$defs/member"},
        "members": {"$ref": "#/$defs/members"},
        "copies": {"$ref": "#/$defs/copies"},
    },
    "required": ["path"],
    "variants": {"npz": {"summary": "your arrays x and y in an .npz file", "suffixes": [".npz"]}},
}

MAX_BYTES = 4 * 2**30  # of one array, unpacked


def load(spec: dict, data_dir: Path) -> Raw:
    """Records of ``path``. ``x`` and ``y`` name the arrays; without them it reads x and y, or x_train, y_train, x_test,
    y_test.

    An x of (n, d) is a table. Images are (n, height, width), (n, channels, height, width) with ``layout`` ``nchw``, or
    (n, height, width, channels) with ``nhwc``. Without ``layout``, it is guessed if only one of the two has 1 or 3
    channels. Images of whole numbers are divided by 255.

    Raises:
        UserError: the file is damaged, holds Python objects, or its arrays do not fit together.
    """
    path = user_path(spec["path"])
    arrays = _arrays(path, spec)
    if len(arrays) == 2:
        (x, y), given = arrays.values(), {}
    else:
        x_train, y_train, x_test, y_test = arrays.values()
        if x_train.shape[1:] != x_test.shape[1:]:
            raise UserError(
                f"{path}: x_train has records of shape {x_train.shape[1:]}, x_test of {x_test.shape[1:]}; "
                "they must agree"
            )
        x, y = np.concatenate([x_train, x_test]), np.concatenate([y_train, y_test])
        given = ranges(train=len(x_train), test=len(x_test))
    if "member" in spec:
        given = trained_and_not(_member(path, spec["member"], len(y)), str(path))
    divisor = 255.0 if x.ndim > 2 and x.dtype.kind in "iu" else 1.0
    x = _features(x, spec.get("layout"), f"{path}: {next(iter(arrays))}")
    check_finite(x, str(path))
    y, class_names = encode_labels(y, f"{path}: {list(arrays)[1]}")
    features = tuple(f"feature_{i}" for i in range(x.shape[1])) if x.ndim == 2 else ()
    sensitive = np.array(spec.get("sensitive", []), np.int64)
    if sensitive.size and (x.ndim != 2 or sensitive.max() >= x.shape[1]):
        valid = f"0 to {x.shape[1] - 1}" if x.ndim == 2 else "none, as these are images"
        raise UserError(f"sensitive: {spec['sensitive']} are not columns of {path}; expected {valid}")
    digest = {path.name: sha256_of(path)}
    return Raw(x, y, class_names, features, sensitive, given, sha256=digest, divisor=divisor)


def count(spec: dict) -> int:
    """Count the labels of ``path``. Reads no features; raises UserError as `load` does for the labels."""
    path = user_path(spec["path"])
    arrays = read_archive(path, lambda names: _wanted(names, path, spec)[1::2])
    for name, y in arrays.items():
        if _flat(y).ndim != 1:
            raise UserError(f"{path}: {name} has shape {y.shape}; expected (n,), one label for each record")
    return sum(len(y) for y in arrays.values())


def read_archive(path: Path, wanted: Callable[[list[str]], list[str]] = list) -> dict[str, np.ndarray]:
    """Return the arrays of an ``.npz`` that ``wanted`` chooses by name, in that order.

    Raises:
        UserError: the file is missing, damaged, no archive of arrays, too large, or holds Python objects.
    """
    if is_folder(path):
        raise UserError(f"{path}: is a folder; expected an .npz file with arrays by name, such as x and y")
    try:
        with path.open("rb") as file:
            if file.read(6) == b"\x93NUMPY":
                raise UserError(
                    f"{path}: holds a single array; expected an .npz file with arrays by name, such as x and y"
                )
        with np.load(path, allow_pickle=False) as archive:
            chosen = wanted(archive.files)
            for name in chosen:
                _check_size(archive, name, path)
            return {name: archive[name] for name in chosen}
    except UserError:
        raise
    except MemoryError:
        raise UserError(f"{path}: does not fit into the memory of this machine; give it fewer records") from None
    except Exception as error:  # the readers of zip, of its compressions and of arrays raise many classes of exceptions
        if "pickle" in str(error):
            raise UserError(
                f"{path}: holds Python objects (pickle), which are never loaded; save plain arrays of numbers or texts"
            ) from error
        reason = str(error) or type(error).__name__
        raise UserError(f"{path}: cannot be read, it is damaged or no .npz archive of arrays ({reason})") from error


def _arrays(path: Path, spec: dict) -> dict[str, np.ndarray]:
    """Return the named arrays in the order x, y or x_train, y_train, x_test, y_test."""
    arrays = read_archive(path, lambda names: _wanted(names, path, spec))
    wanted = list(arrays)
    for x_name, y_name in zip(wanted[::2], wanted[1::2], strict=True):
        x, y = arrays[x_name], arrays[y_name] = arrays[x_name], _flat(arrays[y_name])
        if y.ndim != 1 or x.ndim < 2 or len(x) != len(y):
            raise UserError(
                f"{path}: {x_name} has shape {x.shape} and {y_name} {y.shape}; expected (n, d) or images, "
                "and (n,) labels"
            )
        if not x.size:
            raise UserError(f"{path}: {x_name} of shape {x.shape} has no records, or none with a feature")
    return arrays


def _check_size(archive: np.lib.npyio.NpzFile, name: str, path: Path) -> None:
    """Refuse an array before it is unpacked: of the wrong kind, too large, or of a size that contradicts its shape."""
    opened: zipfile.ZipFile = archive.zip  # type: ignore[assignment]  # None once it is closed
    info = opened.getinfo(name if name in opened.namelist() else f"{name}.npy")
    dtype, told, there = declared_size(opened, info)
    if dtype.hasobject:
        return  # np.load refuses it
    if told != there:
        raise UserError(f"{path}: {name} has {there:,} bytes, but says that it has {told:,}; save it again")
    if told > MAX_BYTES:
        raise UserError(f"{path}: {name} has {told:,} bytes; expected up to {MAX_BYTES:,}")


def _wanted(files: list[str], path: Path, spec: dict) -> list[str]:
    split = ["x_train", "y_train", "x_test", "y_test"]
    if not {"x", "y"} & spec.keys() and not {"x", "y"} & set(files) and set(split) <= set(files):
        return split
    names = [spec.get("x", "x"), spec.get("y", "y")]
    for key, name in zip("xy", names, strict=True):
        if name not in files:
            raise UserError(f"{key}: {path} has no array {name!r}; {nearest(name, files)}")
    return names


def _member(path: Path, name: str, n: int) -> np.ndarray:
    """Return the array that flags the training records."""

    def wanted(files: list[str]) -> list[str]:
        if name not in files:
            raise UserError(f"member: {path} has no array {name!r}; {nearest(name, files)}")
        return [name]

    found = read_archive(path, wanted)[name]
    if found.shape != (n,):
        raise UserError(
            f"member: array {name!r} of {path} has the shape {found.shape}; expected ({n},), one for each record"
        )
    return found


def _flat(y: np.ndarray) -> np.ndarray:
    return y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y


def _features(x: np.ndarray, layout: str | None, where: str) -> np.ndarray:
    """float32 (n, d) or (n, channels, height, width)."""
    if x.dtype.kind not in "biuf":
        raise UserError(f"{where} holds values of type {x.dtype}; expected real numbers")
    if x.ndim == 2:
        with np.errstate(over="ignore"):  # becomes an infinity, which is refused
            return x.astype(np.float32)
    if x.ndim == 3:
        x = x[:, None]
    elif x.ndim == 4:
        layouts = [name for name, axis in (("nchw", 1), ("nhwc", 3)) if x.shape[axis] in (1, 3)]
        if layout is None and len(layouts) != 1:
            raise UserError(f"{where} has shape {x.shape}, whose channel axis is ambiguous; set layout: nchw or nhwc")
        if (layout or layouts[0]) == "nhwc":
            x = x.transpose(0, 3, 1, 2)
    else:
        raise UserError(f"{where} has {x.ndim} dimensions; expected 2 (table), 3 (gray images) and 4 (images)")
    if x.dtype.kind in "iu":
        if x.min() < 0 or x.max() > 255:
            raise UserError(f"{where} has pixels from {x.min()} to {x.max()}; whole-number pixels must lie in 0 to 255")
        return np.divide(x, np.float32(255), dtype=np.float32)
    return np.ascontiguousarray(x, np.float32)
