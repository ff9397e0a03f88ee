"""The documentation as a site: every page is in it, nothing is loaded from elsewhere, and links lead somewhere."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from dp_leakage.figures import ENTERED, FIGURES

REPO = Path(__file__).parents[1]
DOCS = REPO / "docs"
ROOT = {f"root/{name.lower()}": REPO / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")}
PAGES = [*sorted(DOCS.rglob("*.md")), *ROOT.values()]


def configuration() -> dict:
    class Loader(yaml.SafeLoader):
        """Leaves out what only MkDocs can make."""

    Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda loader, suffix, node: suffix)
    return yaml.load((REPO / "mkdocs.yml").read_text(encoding="utf-8"), Loader)


def pages_of(entry: object) -> list[str]:
    if isinstance(entry, str):
        return [entry]
    parts = entry.values() if isinstance(entry, dict) else entry
    return [page for part in parts for page in pages_of(part)]


def anchors(page: Path) -> set[str]:
    """What headings of a page are called in links, as GitHub and the site call them."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    heads = [re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", head) for head in re.findall(r"^#+ (.*)$", text, re.M)]
    return {re.sub(r"[^\w\- ]", "", head.strip().lower()).replace(" ", "-") for head in heads}


def test_every_page_is_in_the_navigation_once() -> None:
    listed = pages_of(configuration()["nav"])
    assert len(listed) == len(set(listed))
    assert set(listed) == {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")} | set(ROOT)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(REPO).as_posix())
def test_links_to_a_heading_name_one_that_is_there(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            there = page.parent / target if target else page
            assert anchor in anchors(there), f"{target}#{anchor}"


def test_the_gallery_has_every_kind_of_figure_with_its_caption_and_a_picture_or_a_table() -> None:
    text = (DOCS / "gallery.md").read_text(encoding="utf-8")
    shown = dict(re.findall(r"^### (\w+)\n\n.*\n\n(?:!\[\w+\]\(([^)]+)\)$|\| )", text, re.M))
    general = {kind for kind in FIGURES if kind not in ENTERED}
    assert set(shown) == general
    assert {kind for kind, picture in shown.items() if not picture} == {kind for kind in general if FIGURES[kind].table}
    assert all((DOCS / picture).is_file() for picture in shown.values() if picture)
    assert all(FIGURES[kind].caption in text for kind in general)


def test_the_reviewers_page_promises_nothing() -> None:
    text = (DOCS / "reviewers.md").read_text(encoding="utf-8").lower()
    assert "anonym" not in text
    rows = [line for line in text.splitlines() if line.startswith("| ") and not re.search(r"--- \||answer \|", line)]
    assert len(rows) > 30
    unanswered = [row for row in rows if not re.search(r"\*\*(run|not run|declared|outside)\*\*", row)]
    assert unanswered == ["| mark | means |"]
    read = text.split("## what was read")[1]  # of every text that the page answers, what we had before us
    texts = re.findall(r"^## (\w+)", text, re.M)
    assert texts == ["edpb", "nist", "eu", "owasp", "ico", "what"]
    assert re.findall(r"^- \*\*(\w+).*read: .*not read: ", read, re.M) == ["edpb", "nist", "ai", "owasp", "ico"]


@pytest.mark.skipif(importlib.util.find_spec("mkdocs") is None, reason="MkDocs is not installed here: make docs")
def test_it_builds_without_a_warning_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=REPO, text=True, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    built = sorted((tmp_path / "site").rglob("*.html"))
    assert len(built) > len(PAGES)
    for page in built:
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r'<(?:script|img|iframe)[^>]* src="([^"]+)"|<link[^>]* href="([^"]+)"', text)
        assert not [one for pair in loaded for one in pair if "://" in one], page.name
