"""A figure's three files say what made them, and a report takes no other for it."""

import re
import shutil

import pytest
from matplotlib.figure import Figure
from pandas import DataFrame
from PIL import Image

from dp_leakage.common.errors import UserError
from dp_leakage.figures.files import read_figure, read_tables, without_provenance, write_figure, write_tables
from dp_leakage.figures.style import encode
from dp_leakage.table.html import content
from dp_leakage.table.tables import Table, Tables

FORMS, TABLE_FORMS = ("pdf", "png", "csv"), ("html", "tex", "csv")


def paths(folder, name, forms=FORMS):
    return [folder / f"{name}.{form}" for form in forms]


def drawn(folder, name, identity, value=1.0):
    figure = Figure(figsize=(1, 1))
    figure.subplots().plot([0, value])
    write_figure(figure, DataFrame({"value": [value]}), *paths(folder, name), identity)
    return encode(figure, "png")


def test_a_figure_is_read_as_it_was_drawn_and_is_a_valid_picture(tmp_path):
    picture = drawn(tmp_path, "a", "0123456789abcdef")
    assert read_figure(*paths(tmp_path, "a"), "0123456789abcdef") == picture
    with Image.open(tmp_path / "a.png") as image:
        image.load()
        assert image.text["dp-leakage"].startswith("identity=0123456789abcdef shows=numbers csv=")
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")


def test_the_same_figure_is_the_same_bytes(tmp_path):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        drawn(tmp_path / folder, "a", "0123456789abcdef")
    for form in FORMS:
        assert (tmp_path / "one" / f"a.{form}").read_bytes() == (tmp_path / "two" / f"a.{form}").read_bytes()


@pytest.mark.parametrize("form", FORMS)
def test_a_figure_swapped_for_another_is_refused_by_name(tmp_path, form):
    drawn(tmp_path, "a", "0123456789abcdef", 1.0)
    drawn(tmp_path, "b", "fedcba9876543210", 2.0)
    shutil.copy(tmp_path / f"b.{form}", tmp_path / f"a.{form}")
    with pytest.raises(UserError, match=rf"a\.{form} (was made by other settings|does not hold the numbers)"):
        read_figure(*paths(tmp_path, "a"), "0123456789abcdef")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("how", ["empty", "cut", "noise", "missing", "other end"])
def test_a_damaged_or_missing_file_of_a_figure_is_refused_by_name(tmp_path, form, how):
    drawn(tmp_path, "a", "0123456789abcdef")
    path = tmp_path / f"a.{form}"
    content = path.read_bytes()
    if how == "missing":
        path.unlink()
    elif how == "other end":
        path.write_bytes(content[:-3] + bytes(3))
    else:
        path.write_bytes({"empty": b"", "cut": content[: min(60, len(content) // 2)], "noise": b"\x00\xff" * 40}[how])
    with pytest.raises(UserError, match=r"a\.(png|pdf|csv)"):
        read_figure(*paths(tmp_path, "a"), "0123456789abcdef")


def tabulated(folder, name, identity, value=1.0, banner=""):
    shown = Tables([Table("MLP", ["x"], [[f"{value}"]])], ["A note."], "Title")
    files = paths(folder, name, TABLE_FORMS)
    write_tables(shown, DataFrame({"value": [value]}), *files, identity, banner)
    return content(shown)


def test_tables_are_read_as_they_were_written(tmp_path):
    shown = tabulated(tmp_path, "a", "0123456789abcdef", banner="Reduced run.")
    assert read_tables(*paths(tmp_path, "a", TABLE_FORMS), "0123456789abcdef") == shown
    html, tex, csv = (path.read_text() for path in paths(tmp_path, "a", TABLE_FORMS))
    assert "Reduced run." in html.partition("<main>")[0]
    assert "Reduced run. A note." in tex
    assert csv == "value\n1.0\n"


@pytest.mark.parametrize("form", TABLE_FORMS)
@pytest.mark.parametrize("how", ["swapped", "empty", "cut", "missing", "other end"])
def test_tables_that_are_swapped_damaged_or_missing_are_refused_by_name(tmp_path, form, how):
    tabulated(tmp_path, "a", "0123456789abcdef")
    tabulated(tmp_path, "b", "fedcba9876543210", 2.0)
    path = tmp_path / f"a.{form}"
    content = path.read_bytes()
    if how == "missing":
        path.unlink()
    elif how == "swapped":
        shutil.copy(tmp_path / f"b.{form}", path)
    else:
        path.write_bytes({"empty": b"", "cut": content[: len(content) // 2], "other end": content[:-3] + bytes(3)}[how])
    with pytest.raises(UserError, match=rf"a\.{form} (was made by other|is damaged|is missing)"):
        read_tables(*paths(tmp_path, "a", TABLE_FORMS), "0123456789abcdef")


def test_what_is_given_away_of_tables_does_not_say_what_they_were_made_from(tmp_path):
    shown = tabulated(tmp_path, "a", "0123456789abcdef")
    html, tex, csv = paths(tmp_path, "a", TABLE_FORMS)
    given = without_provenance(html)
    assert given.keys() == {html, tex, csv}
    assert str(shown) in given[html].decode()
    said = set(re.findall(rb"[0-9a-f]{16,}", html.read_bytes()))
    assert len(said) == 4  # identity, two digests and the checksum
    assert not said & set(re.findall(rb"[0-9a-f]{16,}", given[html]))
    write_tables(Tables([Table("", ["x"], [["1"]])]), DataFrame({"record": [5]}), html, tex, csv, "0" * 16)
    assert without_provenance(html) == {}
