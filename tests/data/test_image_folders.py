"""Folders of images as they are found: damaged files, folders to leave out, gray among colored; and names."""

import numpy as np
import pandas as pd
import pytest
from data_files import digit_pictures, write_files, write_zip
from PIL import Image

from dp_leakage.common.errors import UserError
from dp_leakage.data import count, resolve
from dp_leakage.data.sources import images, tables


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    for label in ("cat", "dog", "thumbs"):
        (tmp_path / label).mkdir()
        for i in range(4):
            pixels = rng.integers(0, 256, (6, 5, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / label / f"{i}.png")
    return tmp_path


def read(folder, **spec):
    return images.read(folder, spec)


def test_every_image_is_called_by_its_file(folder):
    raw = read(folder)
    assert raw.names == tuple(f"{label}/{i}.png" for label in ("cat", "dog", "thumbs") for i in range(4))


def test_a_folder_can_be_left_out(folder):
    raw = read(folder, leave_out=["thumbs"])
    assert raw.class_names == ("cat", "dog")
    assert len(raw.y) == len(raw.names) == 8
    with pytest.raises(UserError, match="no images beside cat, dog, thumbs"):
        read(folder, leave_out=["cat", "dog", "thumbs"])


def test_damaged_images_are_refused_with_the_key_that_skips_and_counts_them(folder):
    (folder / "cat" / "1.png").write_bytes(b"no image")
    (folder / "dog" / "0.png").write_bytes((folder / "dog" / "1.png").read_bytes()[:60])
    with pytest.raises(UserError, match=r"cat/1.png: not a readable image .*; or skip_damaged: true leaves"):
        read(folder)
    raw = read(folder, skip_damaged=True)
    assert len(raw.x) == len(raw.y) == len(raw.names) == 10
    assert np.bincount(raw.y).tolist() == [3, 3, 4]
    assert "cat/1.png" not in raw.names
    assert any("damaged images skipped (skip_damaged): 2." in note for note in raw.notes)


def test_gray_images_among_colored_ones_are_said(folder):
    assert not any("are gray" in note for note in read(folder).notes)
    Image.open(folder / "cat" / "0.png").convert("L").save(folder / "cat" / "0.png")
    raw = read(folder)
    assert raw.x.shape == (12, 3, 6, 5)
    assert any("1 of 12 images are gray, and became colored like the others" in note for note in raw.notes)


def test_rows_of_a_table_are_called_by_the_key_which_is_no_feature(tmp_path):
    path = tmp_path / "t.csv"
    pd.DataFrame({"id": ["a7", "b1", "c3", "d4"], "x": [1.0, 2, 3, 4], "y": [0, 1, 0, 1]}).to_csv(path, index=False)
    raw = tables.load({"source": "csv", "path": str(path), "label": "y", "key": "id"}, tmp_path)
    assert raw.names == ("a7", "b1", "c3", "d4")
    assert raw.feature_names == ("x",)
    with pytest.raises(UserError, match=r"key: .* has no column 'nr'"):
        tables.load({"source": "csv", "path": str(path), "label": "y", "key": "nr"}, tmp_path)


def test_a_plan_counts_the_images_of_a_folder_and_not_of_an_archive(tmp_path):
    """An archive would have to be unpacked for it, so only loading tells."""
    write_files(tmp_path / "folder", digit_pictures())
    write_zip(tmp_path / "archive.zip", digit_pictures())
    assert count(resolve({"path": str(tmp_path / "folder")})) == 9
    assert count(resolve({"path": str(tmp_path / "archive.zip")})) is None
