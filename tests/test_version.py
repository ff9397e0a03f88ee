"""The version stands in one place, and what cannot read it says the same."""

import re
import tomllib
from pathlib import Path

import dp_leakage

REPO = Path(__file__).parents[1]


def test_the_package_takes_its_version_from_its_code():
    project = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" in project["project"]["dynamic"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "dp_leakage.__version__"}


def test_the_citation_and_the_changelog_name_the_version():
    cited = re.search(r"^version: (.+)$", (REPO / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    assert cited[1] == dp_leakage.__version__
    assert f"## {dp_leakage.__version__}" in (REPO / "CHANGELOG.md").read_text(encoding="utf-8")
