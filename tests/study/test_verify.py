"""Whole files are told from cut, lengthened and changed ones."""

import numpy as np
import pandas as pd
import pytest
from damaged import flipped
from matplotlib.figure import Figure

from dp_leakage.common.errors import UserError
from dp_leakage.figures.files import write_figure, write_tables
from dp_leakage.provenance.files import BLANK_CHECKSUM, write_arrays, write_json, write_page, write_table, write_tensors
from dp_leakage.study.verify import check_content
from dp_leakage.table.tables import Table, Tables

MADE = {"identity": "0" * 16, "settings": {}}


@pytest.fixture
def files(tmp_path):
    arrays = {"x": np.arange(300.0), "none": np.zeros((0, 3), np.float32)}
    write_arrays(tmp_path / "a.npz", arrays, MADE)
    write_tensors(tmp_path / "b.safetensors", arrays, MADE)
    write_table(tmp_path / "c.parquet", {"x": np.arange(50), "word": ["a"] * 50}, MADE)
    write_json(tmp_path / "d.json", {"seconds": 1.5})
    write_page(tmp_path / "e.html", f"<html>{BLANK_CHECKSUM}</html>\n")
    figure = Figure(figsize=(1, 1))
    figure.add_subplot().plot([0, 1])
    paths = [tmp_path / f"f.{kind}" for kind in ("pdf", "png", "csv")]
    write_figure(figure, pd.DataFrame({"x": [1, 2]}), *paths, "0" * 16)
    tables = Tables([Table("", ["x"], [["1"], ["2"]])])
    paths = [tmp_path / f"g.{kind}" for kind in ("html", "tex", "csv")]
    write_tables(tables, pd.DataFrame({"x": [1, 2]}), *paths, "0" * 16)
    return sorted(tmp_path.iterdir())


@pytest.mark.parametrize("kept", [0.0, 0.33, 0.5, 0.99])
def test_whatever_is_cut_off_or_added_shows(files, kept):
    assert check_content(files) == len(files)
    for path in files:
        content = path.read_bytes()
        for changed in (content[: int(kept * len(content))], content + b"\0" * 70):
            path.write_bytes(changed)
            with pytest.raises(UserError, match=f"{path.name} is damaged"):
                check_content(files)
        path.write_bytes(content)


def test_a_changed_bit_of_any_byte_shows_when_all_is_read_and_the_file_is_named(files):
    for path in files:
        together = [one for one in files if one.stem == path.stem]  # a figure's PNG holds the digests of the others
        size = path.stat().st_size
        # Each byte of the beginning and of the end, where headers, directories and padding are, and some between.
        between = range(600, max(size - 3000, 600), 97)
        for _ in flipped(path, {*range(min(600, size)), *between, *range(max(size - 3000, 0), size)}):
            with pytest.raises(UserError, match=f"^[^,]*{path.name} is damaged"):
                check_content(together)
    check_content(files)


def test_a_csv_that_lost_a_line_is_not_what_its_picture_shows(files, tmp_path):
    path = tmp_path / "f.csv"
    path.write_text("x\n1\n")
    with pytest.raises(UserError, match=r"f\.csv is damaged"):
        check_content(files)


def test_many_damaged_files_are_counted(tmp_path):
    paths = [tmp_path / f"{i}.npz" for i in range(8)]
    for path in paths:
        path.write_bytes(b"")
    with pytest.raises(UserError, match=r"4.npz and 3 more, each is damaged"):
        check_content(paths)
