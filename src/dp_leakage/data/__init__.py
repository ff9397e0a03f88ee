"""Data sets: where records come from, how they are split and projected.

``SOURCES`` is the registry: a new data set is one module in ``data/sources`` with a ``load(spec, data_dir)``
and one line here. Importing this package is cheap, since the Snakefile does it: a source's module is imported
when it loads.
"""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dp_leakage.errors import UserError, nearest
from dp_leakage.kinds import COUNT, FLAG, SEED, TEXT, TEXTS, Kind, choice, listed, whole

if TYPE_CHECKING:
    from dp_leakage.data.raw import Raw


SHAPE = Kind(listed(whole(1, 1024), 2).holds, "[height, width] in pixels, up to 1024 each")
COLUMNS = Kind(lambda v: TEXTS.holds(v) and len(set(v)) == len(v), "a list of column names, each once")
PLACES = Kind(
    lambda v: listed(SEED).holds(v) and len(set(v)) == len(v), "a list of column numbers, from 0 on, each once"
)
FOLDERS = Kind(TEXTS.holds, "a list of folder names")
CHANNELS = Kind(choice(1, 3).holds, "1 (grey) or 3 (colour)")
LAYOUT = choice("nchw", "nhwc")
MISSING = choice("refuse", "impute")

_IMAGES = {
    "size": SHAPE, "channels": CHANNELS, "min_per_class": COUNT, "per_class": COUNT, "seed": SEED,
    "leave_out": FOLDERS, "skip_damaged": FLAG, "members": TEXT,
}  # fmt: skip
_TABLE = {
    "path": TEXT, "label": TEXT, "sensitive": COLUMNS, "categorical": COLUMNS, "drop": COLUMNS,
    "missing": MISSING, "member": TEXT, "members": TEXT, "key": TEXT,
}  # fmt: skip


class Source(NamedTuple):
    """A place that records come from.

    Attributes:
        module: the module of ``data/sources`` that reads it.
        summary: what it is, in a few words.
        keys: what a spec may say beside ``source``; path and label are the only ones that must be there,
            where listed.
    """

    module: str
    summary: str
    keys: Mapping[str, Kind]

    def load(self, spec: Mapping[str, object], data_dir: Path) -> "Raw":
        """Read the records of ``spec`` (as ``resolve`` gives it); published sets lie in ``data_dir``."""
        return import_module(f"dp_leakage.data.sources.{self.module}").load(dict(spec), Path(data_dir))


SOURCES: dict[str, Source] = {
    "digits": Source("digits", "scikit-learn's handwritten digits, 8×8, bundled",
                     {"resize": SHAPE, "channels": CHANNELS, "binary": FLAG}),
    "breast_cancer": Source("breast_cancer", "569 tumours, 30 measurements, two classes; scikit-learn's, bundled",
                            {}),
    "cifar10": Source("cifar", "CIFAR-10, official binary version", {}),
    "cifar100": Source("cifar", "CIFAR-100 with its 100 fine labels, official binary version", {}),
    "mnist": Source("idx", "MNIST, official IDX files", {}),
    "fashion_mnist": Source("idx", "Fashion-MNIST, official IDX files", {}),
    "lfw": Source("images", "Labeled Faces in the Wild, one folder per person", _IMAGES),
    "faces94": Source("images", "Faces94, one folder per person", _IMAGES),
    "purchase100": Source("purchase", "Purchase-100 as released by its authors (600 binary features)", {}),
    "purchase100_raw": Source("purchase", "Purchase-100 built from raw transactions as in jayaraman2019's "
    "code",
                              {"items": COUNT, "customers": COUNT, "classes": COUNT}),
    "image_folder": Source("images", "your images, one folder per class, or a zip or tar of that",
                           {"path": TEXT, **_IMAGES}),
    "npz": Source("arrays", "your arrays x and y in an .npz file",
                  {"path": TEXT, "x": TEXT, "y": TEXT, "layout": LAYOUT, "sensitive": PLACES, "member": TEXT,
                   "members": TEXT}),
    "csv": Source("tables", "your table, comma- or tab-separated, with a label column", _TABLE),
    "parquet": Source("tables", "your table in a Parquet file, with a label column", _TABLE),
    "outputs": Source("outputs", "what models said of records (docs/audit-model.md)", {"path": TEXT}),
}  # fmt: skip

OWN_SUFFIXES = {
    ".npz": "npz", ".csv": "csv", ".tsv": "csv", ".parquet": "parquet",
    ".zip": "image_folder", ".tar": "image_folder", ".tgz": "image_folder",
}  # fmt: skip


def resolve(spec: Mapping[str, object]) -> dict[str, object]:
    """A data set's spec, checked, with its ``source``: if not given, by the suffix of ``path``; else digits.

    Looks at no file but to see whether ``path`` is a folder.

    Raises:
        UserError: an unknown source, suffix or key, a value of the wrong kind, or a key that is missing.
    """
    source = spec["source"] if "source" in spec else _own_source(spec["path"]) if "path" in spec else "digits"
    if not isinstance(source, str) or source not in SOURCES:
        raise UserError(f"source: {source!r} is not a data set; {nearest(source, SOURCES)}")
    keys = SOURCES[source].keys
    for key, value in spec.items():
        if key == "source":
            continue
        if key not in keys:
            raise UserError(f"{key}: unknown key for the source {source}; {nearest(key, keys)}")
        if not keys[key].holds(value):
            raise UserError(f"{key}: {value!r} is not valid for the source {source}; it must be {keys[key].words}")
    for key in ("path", "label"):
        if key in keys and key not in spec:
            raise UserError(f"{key}: missing; the source {source} needs {keys[key].words} there")
    return {**spec, "source": source}


def load(spec: Mapping[str, object], data_dir: Path) -> "Raw":
    """All records of the data set that ``spec`` describes.

    Args:
        spec: ``source`` and its keys (see ``SOURCES``); a user's own data needs only ``path`` (and
            ``label``).
        data_dir: folder in which published sets are found, or into which they are downloaded.

    Raises:
        UserError: a wrong spec, or a file that is missing, damaged or of the wrong form.
    """
    spec = resolve(spec)
    raw = SOURCES[spec["source"]].load(spec, data_dir)
    if "members" not in spec:
        return raw
    from dp_leakage.data.members import listed

    file = Path(str(spec["members"])).expanduser()
    return raw._replace(given=listed(file, len(raw.y), raw.names, header=str(spec.get("key", ""))))


def _own_source(path: object) -> str:
    if not TEXT.holds(path):
        raise UserError(f"path: {path!r} is not valid; it must name a file or a folder")
    place = Path(path).expanduser()
    try:
        if place.is_dir():
            return "image_folder"
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"path: {path!r} cannot be read ({reason}); it must name a file or a folder") from None
    suffixes = [s.lower() for s in place.suffixes if s.lower() != ".gz"] or [""]
    suffix = suffixes[-1]
    if suffix not in OWN_SUFFIXES:
        what = f"ends in {suffix!r}" if suffix else "is not a folder and has no suffix"
        raise UserError(f"path: {path} {what}; valid are a folder of images, {', '.join(sorted(OWN_SUFFIXES))}")
    return OWN_SUFFIXES[suffix]
