"""The version stands in one place, what cannot read it says the same, and a release is tagged with it."""

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

import dp_leakage

REPO = Path(__file__).parents[1]
CODE, CITED, NEWS = "src/dp_leakage/__init__.py", "CITATION.cff", "CHANGELOG.md"
FILES = {
    CODE: '__version__ = "1.2.0"\n',
    CITED: "title: x\nversion: 1.2.0\n",
    NEWS: "# Changes\n\n## 1.2.0\n\n### Attacks\n\n- A new one.\n\n## 1.1.0\n\n- Older.\n",
}


def test_the_package_takes_its_version_from_its_code():
    project = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" in project["project"]["dynamic"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "dp_leakage.__version__"}


def test_the_citation_and_the_newest_released_changes_name_the_version():
    cited = re.search(r"^version: (.+)$", (REPO / CITED).read_text(encoding="utf-8"), re.MULTILINE)
    assert cited[1] == dp_leakage.__version__
    headings = re.findall(r"^## (.+)$", (REPO / NEWS).read_text(encoding="utf-8"), re.MULTILINE)
    released = headings[headings[0] == "Unreleased" :]
    assert released[0] == dp_leakage.__version__
    numbers = [tuple(map(int, version.split("."))) for version in released]
    assert numbers == sorted(set(numbers), reverse=True)


def git(folder, *words):
    author = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    return subprocess.run(["git", *author, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


def tagged(folder, **changed):
    """What the script that tags says in a repository of these files, of which some hold another text."""
    files = FILES | {{"code": CODE, "cited": CITED, "news": NEWS}[name]: text for name, text in changed.items()}
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    git(folder, "init", "--quiet")
    for key, value in (("user.name", "x"), ("user.email", "x@example.org")):
        git(folder, "config", key, value)
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "x")
    return tag(folder)


def tag(folder):
    return subprocess.run([REPO / ".ci" / "tag"], cwd=folder, capture_output=True, text=True)


def test_a_release_is_tagged_with_its_version_and_what_is_new_and_once(tmp_path):
    process = tagged(tmp_path)
    assert (process.returncode, process.stderr) == (0, "")
    assert git(tmp_path, "tag", "--list", "--format=%(refname:short) %(contents)").split("\n") == (
        ["v1.2.0 ### Attacks", "", "- A new one.", "", ""]
    )
    again = tag(tmp_path)
    assert (again.returncode, again.stderr.count("\n")) == (1, 1)
    assert again.stderr.startswith("error: the tag v1.2.0 exists")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {"news": "# Changes\n\n## Unreleased\n\n- A new one.\n\n## 1.2.0\n"},
            "CHANGELOG.md begins with '## Unreleased'",
        ),
        ({"news": "# Changes\n\n## 1.1.0\n"}, "CHANGELOG.md begins with '## 1.1.0'"),
        ({"cited": "version: 1.1.0\n"}, "CITATION.cff has another version than 1.2.0"),
    ],
)
def test_what_does_not_name_the_version_is_one_sentence_and_no_tag(tmp_path, changed, said):
    process = tagged(tmp_path, **changed)
    assert (process.returncode, process.stderr.count("\n")) == (1, 1)
    assert process.stderr.startswith(f"error: {said}")
    assert git(tmp_path, "tag") == ""


def test_changes_without_a_commit_are_not_tagged(tmp_path):
    tagged(tmp_path)
    git(tmp_path, "tag", "--delete", "v1.2.0")
    (tmp_path / CITED).write_text("version: 1.2.0\n")
    assert tag(tmp_path).stderr.startswith("error: there are changes without a commit")


def publish(*words, **variables):
    command = [REPO / ".ci" / "publish", *words]
    return subprocess.run(command, env=os.environ | variables, capture_output=True, text=True)


def test_the_steps_that_publish_are_printed_and_none_is_run():
    process = publish(INDEX="https://index.example/", REGISTRY="registry.example/us")
    assert (process.returncode, process.stderr) == (0, "")
    *steps, last = process.stdout.splitlines()
    version = dp_leakage.__version__
    assert last.startswith("Nothing was run.")
    assert all(step.startswith("+ ") for step in steps)
    assert steps[0].endswith(f" v{version}")
    assert any("twine upload --repository-url https://index.example/ " in step for step in steps)
    assert steps[-1] == f"+ podman push registry.example/us/dp-leakage:{version}"


@pytest.mark.parametrize(
    ("words", "variables", "said"),
    [
        (["--rum"], {}, "unknown option --rum; did you mean --run?"),
        (["no"], {}, "unknown option no"),
        (["--run"], {"INDEX": "", "REGISTRY": "x"}, "INDEX is missing"),
        (["--run"], {"INDEX": "x", "REGISTRY": ""}, "REGISTRY is missing"),
    ],
)
def test_what_is_missing_or_misspelled_publishes_nothing(words, variables, said):
    process = publish(*words, **variables)
    assert process.returncode == 1
    assert process.stderr.startswith(f"error: {said}")
    assert process.stdout == ""
