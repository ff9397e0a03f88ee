"""What is installed: each package that the code imports is asked for, and every list of versions says the same."""

import ast
import re
import runpy
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import yaml

REPO = Path(__file__).parents[1]
PROJECT = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# Snakemake's report needs the first and does not ask for it; the others, of extras, are imported where they are there.
OURS = {"__future__", "dp_leakage", "snakemake_logger_plugin_dp_leakage"}
NOT_IMPORTED, EXTRAS = {"pygments"}, {"diffprivlib", "interpret-core"}


def _plain(name):
    return re.match(r"[\w.-]+", name)[0].lower().replace("_", "-")


ASKED_FOR = {_plain(dependency) for dependency in PROJECT["dependencies"]}
PINS = {
    _plain(line): line.strip()
    for line in (REPO / "envs" / "constraints.txt").read_text(encoding="utf-8").splitlines()
    if "==" in line
}


def _imported(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module.partition(".")[0]


def test_the_package_asks_for_what_it_imports_and_for_nothing_else():
    names = {name for path in (REPO / "src").rglob("*.py") for name in _imported(path)}
    packages = packages_distributions()
    found = {_plain(packages.get(name, [name])[0]) for name in names - sys.stdlib_module_names - OURS}
    assert found - EXTRAS == ASKED_FOR - NOT_IMPORTED


def test_the_pinned_versions_name_all_that_a_run_needs():
    assert PINS.keys() >= ASKED_FOR


def _pinned_for_jobs():
    *_, own = yaml.safe_load((REPO / "envs" / "jobs.yaml").read_text(encoding="utf-8"))["dependencies"]
    return own["pip"]


def test_the_environment_of_jobs_holds_the_pinned_versions_of_all_that_a_job_imports():
    """The file is what envs/write.py makes of constraints.txt: there is one source of versions."""
    text = runpy.run_path(str(REPO / "envs" / "write.py"))["text"]()
    assert (REPO / "envs" / "jobs.yaml").read_text(encoding="utf-8") == text
    pins = {_plain(line): line for line in _pinned_for_jobs()}
    assert pins.items() <= PINS.items()
    assert pins.keys() >= {need for need in ASKED_FOR if not need.startswith("snakemake")}


def test_the_image_is_made_of_the_pins_of_the_jobs_environment():
    """The command in the Containerfile that reads them, run here."""
    (command,) = re.findall(r"sed -n .* envs/jobs\.yaml", (REPO / "Containerfile").read_text(encoding="utf-8"))
    read = subprocess.run(["sh", "-c", command], cwd=REPO, capture_output=True, text=True, check=True).stdout
    assert read.splitlines() == _pinned_for_jobs()
