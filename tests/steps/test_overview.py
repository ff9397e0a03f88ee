"""The page of all studies: the latest first, what each found, and which are not whole."""

import os
import re
from datetime import datetime
from html import unescape
from pathlib import Path

from dp_leakage.provenance.files import BLANK_CHECKSUM, write_json, write_page
from dp_leakage.report import Claim, as_json
from dp_leakage.steps.overview import write_overview
from dp_leakage.table.origin import beware


def study(folder: Path, name: str, words: str, seconds: int) -> Path:
    own = folder / name
    own.mkdir()
    claim = Claim("digits.answer", "answer", "digits", words, verdict="both", screen=1)
    reduced = beware(name.partition("-")[2] or "paper", {"digits": "digits"})
    write_json(own / "claims.json", as_json(name, f"Title of {name}", reduced, [claim]))
    write_page(own / "report.html", f"<!DOCTYPE html>{BLANK_CHECKSUM}<p>{words}")
    os.utime(own / "report.html", (seconds, seconds))
    return own


def articles(page: Path) -> list[str]:
    return re.findall(r"<article>(.*?)</article>", unescape(page.read_text(encoding="utf-8")), re.S)


def test_studies_are_told_with_date_sentence_and_link_the_latest_first(tmp_path: Path) -> None:
    study(tmp_path, "old", "On digits, use ε = 1.", 1_700_000_000)
    study(tmp_path, "new-small", "On digits, use ε = 2.", 1_800_000_000)
    page = write_overview(tmp_path)
    assert page == tmp_path / "index.html"
    first, second = articles(page)
    assert '<a href="new-small/report.html">Title of new-small</a>' in first
    assert "On digits, use ε = 2." in first
    assert f"finished {datetime.fromtimestamp(1_800_000_000):%Y-%m-%d %H:%M}" in first
    assert "On digits, use ε = 1." in second
    assert "Reduced run (scale small)" in first
    assert "Reduced run" not in second
    assert all((page.parent / link).is_file() for link in re.findall(r'href="([^"]+html)"', page.read_text()))


def test_studies_that_are_not_whole_say_so_and_hide_no_other(tmp_path: Path) -> None:
    study(tmp_path, "whole", "On digits, use ε = 1.", 1_700_000_000)
    cut = study(tmp_path, "cut", "On digits, use ε = 3.", 1_750_000_000) / "claims.json"
    cut.write_bytes(cut.read_bytes()[:-9])
    foreign = study(tmp_path, "foreign", "On digits, use ε = 4.", 1_760_000_000) / "claims.json"
    write_json(foreign, {"format": 1})
    (tmp_path / "begun").mkdir()
    found = articles(write_overview(tmp_path))
    assert ["foreign" in found[0], "cut" in found[1], "whole" in found[2], "begun" in found[3]] == [True] * 4
    damaged = "its report is damaged or of another version: run the study again"
    assert [damaged in one for one in found] == [True, True, False, False]
    assert "not finished" in found[3]
    assert "ε = 3" not in found[1]


def test_words_of_users_stay_words(tmp_path: Path) -> None:
    study(tmp_path, "evil", '<script>alert("&")</script>', 1_700_000_000)
    text = write_overview(tmp_path).read_text(encoding="utf-8")
    assert "<script" not in text
    assert "default-src 'none'" in text


def test_the_same_studies_give_the_same_bytes(tmp_path: Path) -> None:
    for number, name in enumerate(("b", "a", "c")):
        study(tmp_path, name, "On digits, use ε = 1.", 1_700_000_000 + number % 2)
    before = write_overview(tmp_path).read_bytes()
    assert write_overview(tmp_path).read_bytes() == before
