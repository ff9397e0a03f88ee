"""Source of data: a file with one JSON record per line, such as {"height": 1.7, "age": 31, "label": "yes"}."""

import json
from pathlib import Path

import numpy as np

from dp_leakage.data.raw import Raw, encode_labels

SOURCE = {
    "summary": "your records as JSON lines",
    "keys": {"path": {"type": "string"}, "label": {"type": "string"}},
    "required": ["path", "label"],
    "suffixes": [".jsonl"],
}


def load(spec, data_dir):
    """All records of the file; its first one says which columns there are."""
    records = [json.loads(line) for line in Path(spec["path"]).read_text().splitlines()]
    columns = [name for name in records[0] if name != spec["label"]]
    x = np.array([[record[name] for name in columns] for record in records], np.float32)
    y, classes = encode_labels(np.array([record[spec["label"]] for record in records]), spec["path"])
    return Raw(x, y, classes, tuple(columns))
