import json
import os
import re

import numpy as np
import pytest
from damaged import flipped

from dp_leakage.common.errors import UserError
from dp_leakage.provenance.files import (
    REBUILD,
    read_arrays,
    read_table,
    read_tensors,
    replacing,
    write_arrays,
    write_json,
    write_table,
    write_tensors,
)

PROVENANCE = {
    "identity": "0123456789abcdef",
    "settings": {"study": "s", "dataset": "d", "model": "m", "defense": "none"},
}
ARRAYS = {"x": np.arange(600, dtype=np.float32).reshape(20, 30), "y": np.arange(20)}
TABLE = {"repeat": np.arange(50), "score": np.linspace(0, 1, 50), "setting": [f"fpr={i}" for i in range(50)]}
KINDS = {
    "npz": (lambda p: write_arrays(p, ARRAYS, PROVENANCE), read_arrays),
    "safetensors": (lambda p: write_tensors(p, ARRAYS, PROVENANCE), read_tensors),
    "parquet": (lambda p: write_table(p, TABLE, PROVENANCE), read_table),
}


@pytest.fixture(params=KINDS)
def kind(request, tmp_path):
    write, read = KINDS[request.param]
    path = tmp_path / f"file.{request.param}"
    write(path)
    return path, write, read


def test_what_was_written_is_read_back_with_its_provenance(kind):
    path, _, read = kind
    content, made = read(path, PROVENANCE["identity"])
    expected = TABLE if path.suffix == ".parquet" else ARRAYS
    for name, values in expected.items():
        np.testing.assert_array_equal(np.asarray(content[name]), np.asarray(values))
    assert made == PROVENANCE


def test_the_same_content_gives_the_same_bytes(kind):
    path, write, _ = kind
    before = path.read_bytes()
    write(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("keep", [0, 1, 100, -1])
def test_a_truncated_file_is_refused_by_name(kind, keep):
    path, _, read = kind
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(UserError, match=rf"{re.escape(path.name)} is damaged.*delete it and run"):
        read(path)


@pytest.mark.parametrize("suffix", KINDS)
def test_every_flipped_bit_is_refused_by_name(tmp_path, suffix):
    """One bit of every byte there is: headers, content, padding, directories, metadata and the digest itself."""
    write, read = KINDS[suffix]
    path = tmp_path / f"file.{suffix}"
    write(path)
    for _ in flipped(path, range(path.stat().st_size)):
        with pytest.raises(UserError, match=rf"{re.escape(path.name)} is damaged.*{REBUILD}"):
            read(path)
    read(path)


def test_a_file_of_other_settings_is_refused_with_the_cell_that_it_holds(kind):
    path, _, read = kind
    with pytest.raises(UserError, match=r"made by other settings or other code .*s/d/m/none"):
        read(path, "ffffffffffffffff")


def test_a_foreign_file_is_refused(tmp_path):
    for suffix, (_, read) in KINDS.items():
        path = tmp_path / f"other.{suffix}"
        path.write_text("hello")
        with pytest.raises(UserError, match="is damaged or not a file of this workflow"):
            read(path)
    plain = tmp_path / "plain.npz"
    np.savez(plain, x=np.zeros(3))
    with pytest.raises(UserError, match="not a file of this workflow"):
        read_arrays(plain)


def test_a_pickle_inside_is_never_loaded(tmp_path):
    path = tmp_path / "evil.npz"
    np.savez(path, x=np.array([{"a": 1}], dtype=object), provenance=np.array("{}"))
    with pytest.raises(UserError):
        read_arrays(path)


def test_a_missing_file_is_named(kind):
    path, _, read = kind
    path.unlink()
    with pytest.raises(UserError, match="is missing"):
        read(path)


def test_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path):
    path = tmp_path / "a.json"
    write_json(path, {"old": 1})
    with pytest.raises(RuntimeError, match="midway"), replacing(path) as temporary:  # noqa: PT012
        temporary.write_text("half")
        raise RuntimeError("midway")
    assert json.loads(path.read_text())["old"] == 1
    assert os.listdir(tmp_path) == ["a.json"]
