"""The user's own table: CSV, TSV or Parquet with a label column."""

import csv
import gzip
import warnings
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from numbers import Number
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO
from unicodedata import normalize

import numpy as np

from dp_leakage.common.errors import UserError, nearest, no_utf8
from dp_leakage.common.paths import user_path
from dp_leakage.data import is_existing
from dp_leakage.data.persons import MISSING_VALUES, alike, likely_persons, owners
from dp_leakage.data.raw import Column, Gap, Raw, check_finite, encode_labels, trained_and_not
from dp_leakage.data.trees import is_folder, sha256_of

if TYPE_CHECKING:
    import pandas as pd

SOURCE = {
    "keys": {
        "path": {"$ref": "#/$defs/path"},
        "label": {"$ref": "#/$defs/label"},
        "sensitive": {
            "type": "array",
            "uniqueItems": True,
            "items": {"type": "string", "minLength": 1},
            "description": "Columns that attribute inference guesses.",
        },
        "categorical": {
            "type": "array",
            "uniqueItems": True,
            "items": {"type": "string", "minLength": 1},
            "description": "Columns of numbers that are categories.",
        },
        "drop": {
            "type": "array",
            "uniqueItems": True,
            "items": {"type": "string", "minLength": 1},
            "description": "Columns that are left out.",
        },
        "missing": {
            "enum": ["refuse", "impute"],
            "description": "What to do with missing values: refuse the table, or put in the median or the most "
            "frequent value.",
        },
        "member": {"$ref": "#/$defs/member"},
        "members": {"$ref": "#/$defs/members"},
        "copies": {"$ref": "#/$defs/copies"},
        "key": {
            "type": "string",
            "minLength": 1,
            "description": "The column that names records in the report; it is no feature.",
        },
        "person": {"type": "string", "minLength": 1, "description": "The column that says whose each record is."},
    },
    "required": ["path", "label"],
    "variants": {
        "csv": {
            "summary": "your table, comma- or tab-separated, with a label column",
            "suffixes": [".csv", ".tsv"],
        },
        "parquet": {"summary": "your table in a Parquet file, with a label column", "suffixes": [".parquet"]},
    },
}

MAX_BYTES = 8 * 2**30  # of a table in memory
MAX_COLUMNS = 50_000  # looking at each takes a minute in all
MAX_LINE = 10_000_000  # characters
BLOCK = 2**20  # bytes
MAX_CATEGORIES = 100  # a column with more different texts holds names or numbers of records rather than categories
# What to do with a column that holds names. A study of a model that exists already knows no persons.
NAMES = "list it in drop, name it in key if it names the records, or in person if it says whose each record is"
NAMES_OF_MODEL = (
    "list it in drop, or name it in key if it names the records; if it says whose each record is, keep one record per "
    "person, since intervals take records as independent"
)
MAX_SHOWN = 20  # column names in a complaint
MOSTLY = 0.9  # a column with this share of numbers is numeric, and texts in it are mistakes


def load(spec: dict, data_dir: Path) -> Raw:
    """Load the table at ``path``: ``label`` is the class, and all other columns are features, except those to ``drop``.

    Numbers and truth values are features as they stand. A text column, or one listed in ``categorical``, becomes one
    column of zeros and ones per category (``color=red``), or a single one if it has two categories. ``sensitive``
    columns are those that attribute inference guesses. Missing values are refused. With ``missing: impute`` they stay
    gaps, to be filled when it is known which records are the attacker's. The column ``member`` says which records an
    existing model was trained on. The column ``key`` is the report's name of each record, ``person`` says whose it is.

    Raises:
        UserError: names the file, and the column and record if there is one.
    """
    path = user_path(spec["path"])
    frame = read_frame(path, spec["source"], [spec[key] for key in ("key", "person") if key in spec])
    label = spec["label"]
    single = {key: [spec[key]] for key in ("label", "member", "key", "person") if key in spec}
    asked = single | {key: spec.get(key, []) for key in ("sensitive", "categorical", "drop")}
    for key, columns_named in asked.items():
        for name in columns_named:
            _require_column(frame.columns, name, key, path)
            if key != "label" and name == label:
                raise UserError(f"{key}: {name!r} is the label; name other columns")
    y, class_names = _labels(frame[label], f"{path}: column {label!r}")
    given = trained_and_not(frame[spec["member"]].to_numpy(), str(path)) if "member" in spec else {}
    dropped = {*spec.get("drop", []), *(name for named in single.values() for name in named)}
    _check_gaps(frame.drop(columns=list(dropped)), spec, path)
    columns: list[Any] = []
    names: list[str] = []
    sensitive: list[int] = []
    gaps: list[Any] = []
    own_columns: list[Column] = []
    for name in frame.columns:
        if name in dropped:
            if name in spec.get("sensitive", []):
                raise UserError(f"sensitive: {name!r} is also in drop, member, key or person; a column cannot be both")
            continue
        _check_values(frame[name], f"{path}: column {name!r}")
        missing = frame[name].isna().to_numpy()
        column = frame[name].fillna(frame[name][~missing].iloc[0]) if missing.any() else frame[name]
        categorical, advice = name in spec.get("categorical", []), NAMES_OF_MODEL if is_existing(spec) else NAMES
        parts, categories = _encoded(column, categorical, f"{path}: column {name!r}", advice)
        if missing.any():
            for values in parts.values():
                values[missing] = 0.0
            own = tuple(range(len(names), len(names) + len(parts)))
            gaps.append(Gap(name, own, np.flatnonzero(missing), categories))
        if name in spec.get("sensitive", []):
            sensitive += range(len(names), len(names) + len(parts))
        own_columns.append(Column(name, categories, truth=column.dtype.kind == "b" and not categories))
        names += [name + suffix for suffix in parts]
        columns += parts.values()
    if not columns:
        raise UserError(f"{path}: no columns besides the label {label!r}; at least one feature is needed")
    with np.errstate(over="ignore"):  # becomes an infinity, which is refused below
        x = np.stack(columns, axis=1).astype(np.float32)
    check_finite(x, str(path), names)
    digest = {path.name: sha256_of(path)}
    places = np.array(sensitive, np.int64)
    called = tuple(frame[spec["key"]].fillna("").astype(str)) if "key" in spec else ()
    return Raw(
        x,
        y,
        class_names,
        tuple(names),
        places,
        given,
        sha256=digest,
        gaps=tuple(gaps),
        names=called,
        columns=tuple(own_columns),
        **_persons(frame, spec, path),
    )


def count(spec: dict) -> int:
    """Count the records, or people, of ``path``. Reads one column; raises UserError as `load` does for it."""
    path, key = user_path(spec["path"]), "person" if "person" in spec else "label"
    names = [spec[name] for name in ("key", "person") if name in spec]
    column = read_frame(path, spec["source"], names, (key, spec[key]))[spec[key]]
    return len(column) if key == "label" else len(owners(column.to_numpy(), f"{path}: column {spec[key]!r}")[1])


def _persons(frame: "pd.DataFrame", spec: dict, path: Path) -> dict[str, Any]:
    """Return the owner of each record, or the columns that seem to identify it: fields of `Raw`."""
    if "person" in spec:
        where = f"{path}: column {spec['person']!r}"
        person, people = owners(frame[spec["person"]].to_numpy(), where)
        return {"person": person, "people": people, "notes": alike(people, where)}
    known = [spec[key] for key in ("label", "member") if key in spec]
    return {"persons": likely_persons(frame, known, MAX_CATEGORIES)}


def read_frame(
    path: Path, source: str, names: Iterable[str] = (), only: tuple[str, str] | None = None
) -> "pd.DataFrame":
    """Read the table unchanged.

    Args:
        path: of the file.
        source: csv or parquet.
        names: columns that name records or people: they stay texts, so that 001 is not 1, and NA is one.
        only: the key and the name of the one column that is read; None for all.

    Raises:
        UserError: it cannot be read or holds no records.
    """

    if is_folder(path):
        raise UserError(f"{path}: is a folder; expected a file of the kind {source}")
    try:
        if source == "parquet":
            frame = _read_parquet(path, only)
            frame.columns = [str(name) for name in frame.columns]
            _require_distinct(frame.columns, path)
        else:
            frame = _read_text(path, names, only)
    except UserError:
        raise
    except MemoryError:
        raise UserError(f"{path}: does not fit into the memory of this machine; give it fewer records") from None
    except Exception as error:  # every reader above has exceptions of its own; this block does nothing but read
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rpartition("error: ")[2]
        if isinstance(error, Warning):
            reason = "a record has more values than there are column names"
        raise UserError(f"{path}: cannot be read as a {source} table ({reason})") from error
    if frame.empty:
        raise UserError(f"{path}: no records; a header and at least two records are needed")
    return frame


def _read_text(path: Path, names: Iterable[str], only: tuple[str, str] | None) -> "pd.DataFrame":
    """Return a table of lines of text; ``names`` and ``only`` as for `read_frame`."""
    import pandas as pd

    separator = "\t" if ".tsv" in path.suffixes else ","
    try:
        header = _check_header(path, separator)
        gaps = dict.fromkeys(header, MISSING_VALUES) | dict.fromkeys(names, MISSING_VALUES[:1])
        how: Any = {
            "sep": separator,
            "na_values": gaps,
            "keep_default_na": False,
            "dtype": dict.fromkeys(names, str),
        }
        if only is not None:
            _require_column(header, only[1], only[0], path)
            how["usecols"] = [only[1]]
        with warnings.catch_warnings():
            # For a record with more values than the header, pandas only warns and drops the surplus.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(path, index_col=False, low_memory=False, **how)
    except UnicodeDecodeError as error:  # which counts from somewhere within the file
        line, byte = _first_byte_that_is_no_text(path, error.object[error.start])
        raise no_utf8(path, line, byte) from None


def _first_byte_that_is_no_text(path: Path, otherwise: int) -> tuple[int, int]:
    """Return the line, from 1, and the value of the first byte that is not UTF-8; the last line and ``otherwise`` if a
    character is cut off by the end.
    """
    decoder, line = getincrementaldecoder("utf-8")(), 1
    with _opener(path)(path, "rb") as file:
        while block := file.read(BLOCK):
            try:
                line += decoder.decode(block).count("\n")
            except UnicodeDecodeError as error:
                return line + error.object[: error.start].count(b"\n"), error.object[error.start]
    return line, otherwise


def _opener(path: Path) -> Callable[..., Any]:
    return gzip.open if path.suffix == ".gz" else open


def _read_parquet(path: Path, only: tuple[str, str] | None) -> "pd.DataFrame":
    """Read the columns as stored, since the index that pandas notes in the file may name missing columns.

    A file holds each text of a column once, however many records have it: texts are counted before they are copied.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        about, schema = file.metadata, file.schema_arrow
    numbers = about.num_rows * about.num_columns
    if 8 * numbers > MAX_BYTES:
        raise UserError(f"{path}: has {numbers:,} values; expected up to {MAX_BYTES // 8:,}")
    groups = [about.row_group(place) for place in range(about.num_row_groups)]
    sizes = [one.column(place).total_uncompressed_size for one in groups for place in range(one.num_columns)]
    _check_bytes(sum(sizes), path)
    if only is not None:
        _require_column(schema.names, only[1], only[0], path)
    texts = [field.name for field in schema if _is_text(field.type)]
    with pq.ParquetFile(path, read_dictionary=texts) as file:
        table = file.read(columns=None if only is None else [only[1]])
    packed = [place for place, field in enumerate(table.schema) if pa.types.is_dictionary(field.type)]
    _check_bytes(sum(_unpacked_bytes(chunk) for place in packed for chunk in table.column(place).chunks), path)
    for place in packed:
        if (name := table.schema.names[place]) in texts:
            plain = [chunk.dictionary_decode() for chunk in table.column(place).chunks]
            table = table.set_column(place, name, pa.chunked_array(plain, table.schema.types[place].value_type))
    return table.to_pandas(ignore_metadata=True)


def _unpacked_bytes(texts: Any) -> int:
    """Return the bytes of all texts in an Arrow array that stores each distinct text once; 0 for other types."""
    import pyarrow.compute as pc

    if not _is_text(texts.dictionary.type):
        return 0
    lengths = pc.cast(pc.binary_length(texts.dictionary), "int64")
    return pc.sum(pc.take(lengths, texts.indices)).as_py() or 0


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())


def _check_bytes(size: int, path: Path) -> None:
    if size > MAX_BYTES:
        raise UserError(f"{path}: holds {size:,} bytes; expected up to {MAX_BYTES:,}")


def _check_header(path: Path, separator: str) -> list[str]:
    """Return the names of the columns. UserError if the first line holds none, or not one for each."""
    with _opener(path)(path, "rt", newline="", encoding="utf-8-sig") as file:
        header = next(csv.reader(_lines(file, path), delimiter=separator), [])
    if not header:
        raise UserError(f"{path}: empty; a line of column names and then records are needed")
    if any("\0" in name for name in header):  # as in UTF-16 that does not begin by saying so
        raise no_utf8(path, 1, 0)
    if len(header) > MAX_COLUMNS:
        raise UserError(f"{path}: {len(header):,} columns; expected up to {MAX_COLUMNS:,}, or arrays in an .npz")
    if len(header) == 1 and any(other in header[0] for other in ";\t|"):
        raise UserError(
            f"{path}: one single column {header[0]!r}; columns must be separated by commas (or tabs, in a .tsv)"
        )
    if header[0].startswith("#"):
        raise UserError(f"{path}: the first line begins with #; remove comment lines, so that it names the columns")
    if all(map(_is_number, header)):
        raise UserError(f"{path}: the first line holds numbers ({header[0]}, …); it must hold the names of the columns")
    if not all(name.strip() for name in header):
        place = [name.strip() for name in header].index("") + 1
        raise UserError(f"{path}: column {place} has no name; name it, or remove it if it numbers the records")
    _require_distinct(header, path)
    return header


def _lines(file: TextIO, path: Path) -> Iterator[str]:
    """Yield the lines of a file, of bounded length."""
    while line := file.readline(MAX_LINE + 1):
        if len(line) > MAX_LINE:
            raise UserError(f"{path}: a line of more than {MAX_LINE:,} characters; a table has a line for each record")
        yield line


def _require_distinct(names: Iterable[str], path: Path) -> None:
    seen: dict[str, str] = {}
    for name in names:
        bare = " ".join(normalize("NFC", name).split())
        if bare in seen:
            alike = "" if seen[bare] == name else f" but for blanks or how letters are encoded ({seen[bare]!r})"
            raise UserError(f"{path}: two columns are called {name!r}{alike}; every column needs a name of its own")
        seen[bare] = name


def _require_column(header: Iterable[str], name: str, key: str, path: Path) -> None:
    columns = list(header)
    if name in columns:
        return
    shown = columns if len(columns) <= MAX_SHOWN else get_close_matches(name, columns) or columns[:MAX_SHOWN]
    raise UserError(f"{key}: {path} has no column {name!r}; {nearest(name, shown)}")


def _labels(column: "pd.Series", where: str) -> tuple[np.ndarray, tuple[str, ...]]:
    missing = column.isna().to_numpy()
    if missing.any():
        raise UserError(
            f"{where}: {missing.sum()} of {len(column)} records have no label, the first is record "
            f"{int(np.argmax(missing))}, counted from 0; remove them, or look for lines with too few values"
        )
    _check_values(column, where)
    plain = column.to_numpy() if column.dtype.kind in "iufb" else column.astype(str).to_numpy()
    return encode_labels(plain, where)


def _check_values(column: "pd.Series", where: str) -> None:
    """Refuse columns that hold neither numbers nor texts: dates, lists, bytes."""
    if column.dtype.kind in "mM":
        raise UserError(f"{where} holds {column.dtype}; turn dates and times into numbers or list the column in drop")
    if column.dtype.kind not in "iufbO" or column.dtype.kind == "O":
        wrong = next((v for v in column[column.notna()] if not isinstance(v, str | Number | np.bool_)), None)
        if wrong is not None:
            raise UserError(f"{where} holds values of type {type(wrong).__name__}; expected numbers and texts")


def _check_gaps(features: "pd.DataFrame", spec: dict, path: Path) -> None:
    """Refuse columns without any value, and without ``missing: impute`` columns with missing values.

    The sentence describes the first such column, and names the others.
    """
    gaps = features.isna()
    empty, gapped = ([str(name) for name in gaps.columns[found]] for found in (gaps.all(), gaps.any()))
    if empty:
        alone = "it holds nothing, so list it in drop"
        words = f"columns {_listed(empty)} hold nothing, so list them in drop" if empty[1:] else alone
        raise UserError(f"{_lacking(features[empty[0]], path)}; {words}")
    if gapped and spec.get("missing", "refuse") == "refuse":
        words = "fill them, list the column in drop, or set missing: impute"
        if gapped[1:]:
            others = f"values are also missing in {_listed(gapped[1:])}"
            words = f"{others}; fill them, list the columns in drop, or set missing: impute"
        raise UserError(f"{_lacking(features[gapped[0]], path)}; {words}")


def _listed(names: list[str]) -> str:
    unnamed = len(names) - MAX_SHOWN
    return ", ".join([*map(repr, names[:MAX_SHOWN]), *([f"{unnamed} more"] if unnamed > 0 else [])])


def _lacking(column: "pd.Series", path: Path) -> str:
    missing = column.isna().to_numpy()
    return (
        f"{path}: column {column.name!r} lacks {missing.sum()} of {len(column)} values, first in record "
        f"{int(np.argmax(missing))}, counted from 0"
    )


def _encoded(
    column: "pd.Series", categorical: bool, where: str, advice: str
) -> tuple[dict[str, np.ndarray], tuple[str, ...]]:
    """Suffix of the feature's name → float64 (n,) values, and the categories (none for numbers).

    Raises:
        UserError: numbers with mistakes among them, or more texts than categories (with ``advice``).
    """
    if column.dtype.kind in "iufb" and not categorical:
        return {"": column.to_numpy(np.float64, copy=True)}, ()
    texts = column.astype(str)
    if not categorical:
        commas = texts.str.fullmatch(r"[+-]?[0-9]+,[0-9]+")
        if commas.mean() >= MOSTLY:
            row = int(np.argmax(commas))
            raise UserError(f"{where} has decimal commas, such as {texts.iloc[row]!r} in record {row}; write a point")
        numbers = texts.map(_is_number)
        if numbers.mean() >= MOSTLY:
            row = int(np.argmin(numbers))
            if numbers.all():
                return {"": texts.astype(float).to_numpy(copy=True)}, ()
            raise UserError(
                f"{where} is numeric but holds {texts.iloc[row]!r} in record {row}, counted from 0; fix it, or "
                f"list the column in categorical or drop"
            )
    categories = sorted(texts.unique())  # an array of texts would have the length of the longest for each record
    if len(categories) > MAX_CATEGORIES:
        raise UserError(
            f"{where} has {len(categories):,} different texts, at most {MAX_CATEGORIES} can be categories; {advice}"
        )
    shown = range(len(categories)) if len(categories) != 2 else [1]
    values = texts.to_numpy(object)
    return {f"={categories[c]}": (values == categories[c]).astype(np.float64) for c in shown}, tuple(categories)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
