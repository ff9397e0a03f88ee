"""Data sets: where records come from, how they are split and projected.

A source is one file of ``data/sources``, or a plugin, with a literal ``SOURCE`` at its top (see
`common.declarations`), whose keys are the fields of `Source`, and a function

    load(spec, data_dir) → a `raw.Raw`, all records of the source
    count(spec) → at most how many records, or people, these are; optional

where ``spec`` is the study's checked description of it and ``data_dir`` the folder of published sets. Importing this
package reads only the files' declarations; a source's module is imported when it loads.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dp_leakage.common.declarations import declarations, schemas_of, things_of
from dp_leakage.common.errors import UserError, nearest
from dp_leakage.common.paths import is_dir, user_path
from dp_leakage.common.schemas import ANY, FLAG, TEXT, TEXTS, Schema, check, holds, table, words
from dp_leakage.common.user_code import FILES, call

if TYPE_CHECKING:
    from dp_leakage.data.raw import Raw

FILED = ("path", "members")  # keys that name a file of the user's, whatever kind a source says
USUAL = "digits"  # the source of a data set that names none
OUTPUTS = "outputs"  # the source of what a model said
FOLDER = "image_folder"  # the source if the path is a folder


@dataclass(frozen=True)
class Source:
    """A source of records.

    Attributes:
        module: dotted name of the module that has ``load``.
        summary: description in a few words.
        keys: valid keys of a spec besides ``source``, with their schemas. A ``path`` is a file or folder of the user.
            Its content is part of the identity, so that an edit reruns dependent steps.
        required: required keys.
        suffixes: file endings, e.g. ``.csv``, by which a ``path`` without a source gets this one.
        files: possible file names in ``data_dir`` of a published set that is never downloaded.
        made_up: whether the records are synthetic, so that results are not compared with published numbers.
    """

    module: str
    summary: str
    keys: Mapping[str, Schema]
    required: tuple[str, ...] = ()
    suffixes: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    made_up: bool = False


WORD = "SOURCE"
SCHEMA = table(
    {"summary": TEXT, "keys": ANY, "required": TEXTS, "suffixes": TEXTS, "files": TEXTS, "made_up": FLAG},
    required=["summary"],
)
# Keys that several sources have: ``{"$ref": "#/$defs/path"}`` in a declaration.
DEFINITIONS: dict[str, Schema] = {
    "path": {"type": "string", "minLength": 1, "description": "Your file or folder."},
    "size": {
        "type": "array",
        "items": {"type": "integer", "minimum": 1, "maximum": 1024},
        "minItems": 2,
        "maxItems": 2,
        "description": "[height, width] in pixels, to which all images are resized.",
    },
    "channels": {"type": "integer", "enum": [1, 3], "description": "1 (gray) or 3 (color)."},
    "member": {
        "type": "string",
        "minLength": 1,
        "description": "The column that says which records the model was trained on.",
    },
    "members": {
        "type": "string",
        "minLength": 1,
        "description": "A file that lists the records that the model was trained on.",
    },
    "label": {"type": "string", "minLength": 1, "description": "The column with the class."},
    "copies": {
        "enum": ["together"],
        "description": "`together`: near-copies count as records of one person.",
    },
}


def _source(where: str, module: str, given: dict[str, Any]) -> Source:
    check(given, SCHEMA, where)
    keys = schemas_of(where, given, DEFINITIONS, "keys")
    for key in keys:
        if key in ("", "source"):
            raise UserError(f"{where}: keys has {key!r}; expected a name other than 'source', which every data set has")
    required, suffixes = given.get("required", ()), given.get("suffixes", ())
    for key in required:
        if key not in keys:
            raise UserError(f"{where}: required has {key!r}, which is no key; {nearest(key, keys)}")
    for suffix in suffixes:
        if "path" not in keys or not suffix.startswith(".") or suffix != suffix.lower():
            words = "expected lowercase endings such as '.csv', of a source with the key path"
            raise UserError(f"{where}: suffixes has {suffix!r}; {words}")
    files, made_up = tuple(given.get("files", ())), given.get("made_up", False)
    return Source(module, given["summary"], keys, tuple(required), tuple(suffixes), files, made_up)


sources_of = partial(things_of, WORD, _source)  # the sources that one file declares, by name

SOURCES: dict[str, Source] = {}
for _module, _given in declarations(f"{__name__}.sources", Path(__file__).parent / "sources", WORD):
    SOURCES |= sources_of(_module, _module, _given)


def resolve(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a data set's checked spec with its ``source``: by default from the suffix of ``path``, otherwise digits.

    Reads no file, and only looks whether ``path`` is a folder.

    Raises:
        UserError: an unknown source, suffix or key, a value of the wrong kind, or a key that is missing.
    """
    source = spec["source"] if "source" in spec else _own_source(spec["path"]) if "path" in spec else USUAL
    if not isinstance(source, str) or source not in SOURCES:
        raise UserError(f"source: {source!r} is not a data set; {nearest(source, SOURCES)}")
    keys = SOURCES[source].keys
    for key, value in spec.items():
        if key == "source":
            continue
        if key not in keys:
            files = [suffix for suffix, name in _by_suffix().items() if key in SOURCES[name].keys]
            if files and "source" not in spec and "path" in spec and is_dir(user_path(spec["path"])):
                raise UserError(
                    f"path: {spec['path']} is a folder, so it is read as images, which have no key '{key}'; "
                    f"'{key}' needs a file ({', '.join(sorted(files))})"
                )
            raise UserError(f"{key}: unknown key for the source {source}; {nearest(key, keys)}")
        if not holds(value, keys[key]) or (key in FILED and not holds(value, TEXT)):
            raise UserError(f"{key}: {value!r} is not valid for the source {source}; it must be {words(keys[key])}")
    for key in SOURCES[source].required:
        if key not in spec:
            raise UserError(f"{key}: missing; the source {source} needs {words(keys[key])} there")
    return {**spec, "source": source}


def is_at_hand(source: Mapping[str, Any], data_dir: Path) -> bool:
    """Return whether the files of a source that is never downloaded lie below ``data_dir``; True for other sources."""
    from dp_leakage.data.fetch import find

    files = SOURCES[source["source"]].files
    return not files or find(data_dir, source["source"], files) is not None


def files_of(source: Mapping[str, Any]) -> list[str]:
    """Return the user's files that a source names; empty for a published data set."""
    return [str(source[key]) for key in FILED if key in source]


def count(spec: Mapping[str, Any]) -> int | None:
    """Return an upper limit on the records of a source, or on its people if the source identifies them.

    Reads no features of the user's files. Returns None if only loading can tell.

    Args:
        spec: as `resolve` returns it.

    Raises:
        UserError: a file is damaged or has the wrong form.
    """
    module = SOURCES[spec["source"]].module
    counting = None if module in FILES else getattr(import_module(module), "count", None)
    found: int | None = None if counting is None else counting(spec)
    return found


def is_existing(source: Mapping[str, Any]) -> bool:
    """Return whether a source belongs to an external model, so that it lists the training records."""
    return "member" in source or "members" in source or source.get("source") == OUTPUTS


def by_person(source: Mapping[str, Any]) -> bool:
    """Return whether a source identifies people or copies, so that inclusion and scores are per person."""
    return "person" in source or "copies" in source


def load(spec: Mapping[str, Any], data_dir: Path) -> "Raw":
    """Load all records of the data set described by ``spec``.

    Args:
        spec: ``source`` and its keys (see ``SOURCES``); a user's own data needs only ``path`` (and
            ``label``).
        data_dir: folder in which published sets are found, or into which they are downloaded.

    Raises:
        UserError: a wrong spec, or a file that is missing, damaged or of the wrong form.
    """
    spec = resolve(spec)
    module = SOURCES[str(spec["source"])].module
    raw = call(module, "load", dict(spec), Path(data_dir))
    if module in FILES:
        raw = _checked(raw, module)
    if "copies" in spec:
        raw = _together(raw)
    if "members" not in spec:
        return raw
    from dp_leakage.data.members import listed

    file = user_path(str(spec["members"]))
    return raw._replace(given=listed(file, len(raw.y), raw.names, header=str(spec.get("key", ""))))


def _together(raw: "Raw") -> "Raw":
    from dp_leakage.data.near_copies import together

    if raw.person is not None:
        raise UserError("copies: cannot be combined with person, which already names owners; remove one of them")
    return together(raw)


def _checked(raw: "Raw", plugin: str) -> "Raw":
    """Check and return the data loaded by a plugin. Raises UserError if this package cannot work with them."""
    from dp_leakage.data.checks import check_raw

    return check_raw(raw, f"plugin {plugin}: load")


def _own_source(path: Any) -> str:
    if not holds(path, TEXT):
        raise UserError(f"path: {path!r} is not valid; it must name a file or a folder")
    place = user_path(path)
    try:
        if place.is_dir():
            return FOLDER
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"path: {path!r} cannot be read ({reason}); it must name a file or a folder") from None
    suffixes = [s.lower() for s in place.suffixes if s.lower() != ".gz"] or [""]
    suffix = suffixes[-1]
    by_suffix = _by_suffix()
    if suffix not in by_suffix:
        what = f"ends in {suffix!r}" if suffix else "is not a folder and has no suffix"
        raise UserError(f"path: {path} {what}; expected a folder of images, {', '.join(sorted(by_suffix))}")
    return by_suffix[suffix]


def _by_suffix() -> dict[str, str]:
    """Return file name ending → the source that reads it."""
    return {ending: name for name, source in SOURCES.items() for ending in source.suffixes}
