"""Purchase-100: the release of its authors, and jayaraman2019's own construction from transactions."""

import gzip
import zlib
from pathlib import Path, PurePosixPath

import numpy as np

from dp_leakage.common.errors import UserError
from dp_leakage.data.fetch import Remote, checksum_note, download, find
from dp_leakage.data.raw import Raw, check_finite, check_range
from dp_leakage.data.trees import open_tree, sha256_of

SOURCE = {
    "variants": {
        "purchase100": {
            "summary": "Purchase-100 as released by its authors (600 binary features)",
            "files": ["dataset_purchase", "dataset_purchase.tgz"],
        },
        "purchase100_raw": {
            "summary": "Purchase-100 built from raw transactions as in jayaraman2019's code",
            "keys": {
                "items": {
                    "type": "integer",
                    "minimum": 1,
                    "description": "How many of the most frequent products become features.",
                },
                "customers": {"type": "integer", "minimum": 1, "description": "How many customers are taken."},
                "classes": {
                    "type": "integer",
                    "minimum": 1,
                    "description": "How many clusters of customers become classes.",
                },
            },
        },
    },
}

# No checksum of either file is published, so neither is downloaded.
RELEASE = Remote("dataset_purchase.tgz", "https://www.comp.nus.edu.sg/~reza/files/dataset_purchase.tgz", None)
TRANSACTIONS = Remote("transactions.csv.gz", "https://www.kaggle.com/c/acquire-valued-shoppers-challenge/data", None)
TEXT_FILE = "dataset_purchase"  # in the archive, or unpacked
RECORDS, FEATURES, CLASSES = 197_324, 600, 100
CHUNK = 2_000_000  # transactions


def load(spec: dict, data_dir: Path) -> Raw:
    """``purchase100`` (the archive or the text file in it) or ``purchase100_raw`` (transactions.csv[.gz])."""
    source = spec["source"]
    if source == "purchase100":
        found = find(data_dir, source, [TEXT_FILE, RELEASE.file])
        return read_release(found or download(RELEASE, data_dir / source, source), RECORDS)
    found = find(data_dir, source, ["transactions.csv", TRANSACTIONS.file])
    path = found or download(TRANSACTIONS, data_dir / source, source)
    return build(path, spec.get("items", 100), spec.get("customers", 250_000), spec.get("classes", CLASSES))


def read_release(path: Path, records: int) -> Raw:
    """Return the released file: per line a class 1 … 100 and 600 values 0 or 1, comma-separated, without a header.

    Returns:
        x (records, 600) of zeros and ones, y from 0.

    Raises:
        UserError: the file is damaged, has another number of lines or columns, or values out of range.
    """
    from pyarrow import ArrowInvalid, BufferReader, csv, float32, int64

    content = path.read_bytes() if path.name == TEXT_FILE else _member(path)
    names = ["label", *(f"item_{i}" for i in range(1, FEATURES + 1))]
    try:
        table = csv.read_csv(
            BufferReader(content),
            csv.ReadOptions(column_names=names, use_threads=False),
            convert_options=csv.ConvertOptions(column_types={**dict.fromkeys(names, float32()), "label": int64()}),
        )
    except ArrowInvalid as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{path}: not {FEATURES + 1} comma-separated numbers per line ({reason})") from error
    if table.num_rows != records:
        raise UserError(f"{path}: {table.num_rows:,} records; the released file has {records:,}")
    labels = table.column(0).to_numpy()
    check_finite(labels, str(path))
    check_range(labels, CLASSES, str(path), first=1)
    x = np.empty((records, FEATURES), np.float32)
    for column in range(FEATURES):
        x[:, column] = table.column(column + 1).to_numpy()
    wrong = (x != 0) & (x != 1)
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise UserError(f"{path}: record {row} has {x[row, column]} as {names[column + 1]}; expected 0 and 1")
    class_names = tuple(str(c) for c in range(1, CLASSES + 1))
    y = labels.astype(np.int64) - 1
    return Raw(
        x,
        y,
        class_names,
        tuple(names[1:]),
        notes=(checksum_note(path, RELEASE),),
        sha256={path.name: sha256_of(path)},
    )


def build(path: Path, items: int, customers: int, classes: int) -> Raw:
    """Build the data set from the transactions of the Acquire Valued Shoppers Challenge, as the authors' released code
    does.

    The features are the first ``items`` distinct categories in file order (the paper says the most frequent ones). The
    records are the first ``customers`` customers that bought any of them. Each row (bought or not) is divided by its ℓ2
    norm. The classes are the clusters that k-means finds in the rows. k-means has changed since 2019, so the classes
    are similar in kind, not the same.

    Returns:
        x (n, items), rows of unit length; y the cluster.

    Raises:
        UserError: a column is missing or no number, or there are fewer records than classes.
    """
    from sklearn.cluster import KMeans

    bought, categories = _baskets(path, items, customers)
    bought = bought[bought.any(axis=1)]
    distinct = len(np.unique(bought, axis=0))
    if distinct < classes:
        raise UserError(f"{path}: {distinct:,} distinct baskets of {items} items; {classes} classes need as many")
    x = bought / np.sqrt(bought.sum(axis=1, keepdims=True, dtype=np.float32))
    y = KMeans(n_clusters=classes, random_state=0, n_init=10).fit(x).labels_.astype(np.int64)
    names = tuple(f"category_{c}" for c in categories)
    notes = (f"{path.name}: {len(x):,} customers; their classes are k-means clusters of their baskets.",)
    class_names = tuple(f"cluster_{c}" for c in range(classes))
    return Raw(x.astype(np.float32), y, class_names, names, notes=notes, sha256={path.name: sha256_of(path)})


def _baskets(path: Path, items: int, customers: int) -> tuple[np.ndarray, list[int]]:
    """uint8 (customers found, items): whether each bought each; and the items' category numbers."""
    import pandas as pd

    columns = ["id", "category"]
    item_of: dict[int, int] = {}
    customer_of: dict[int, int] = {}
    bought = np.zeros((customers, items), np.uint8)
    try:
        for chunk in pd.read_csv(path, usecols=columns, dtype="int64", chunksize=CHUNK):
            for category in chunk["category"].unique():
                if len(item_of) < items:
                    item_of.setdefault(int(category), len(item_of))
            for customer in chunk["id"].unique():
                customer_of.setdefault(int(customer), len(customer_of))
            row = chunk["id"].map(customer_of).to_numpy()
            # Reading ends at the first surplus customer, as in the authors' code.
            end = int(np.argmax(row >= customers)) if len(customer_of) > customers else len(row)
            column = chunk["category"].map(item_of).fillna(-1).to_numpy(np.int64)[:end]
            bought[row[:end][column >= 0], column[column >= 0]] = 1
            if len(customer_of) > customers:
                break
    except (ValueError, OSError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        reason = str(error).splitlines()[0]
        raise UserError(
            f"{path}: not a complete table of whole numbers in the columns {' and '.join(columns)} ({reason})"
        ) from error
    return bought[: len(customer_of)], list(item_of)


def _member(path: Path) -> bytes:
    with open_tree(path, lambda name: PurePosixPath(name).name == TEXT_FILE) as tree:
        if not tree.names:
            raise UserError(f"{path}: holds no file {TEXT_FILE}; the released archive has it")
        return tree.read(tree.names[0])
