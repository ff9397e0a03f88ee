"""The workflow used from another folder: as a module of another Snakefile, and as `snakedeploy` sets it up."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from workflow_copies import REPO, Workflow, copied

DATA = "results/quickstart-smoke/digits/data.npz"
REPORT = "results/quickstart-smoke/report.html"
HOSTED = "https://github.com/example/dp-leakage"
MODULE = """
rule ours:
    output: "ours.txt"
    message: "Ours, with {{resources.mem_mb}} MB"
    resources: mem_mb=100
    params: memory=lambda wildcards, resources: resources.mem_mb
    shell: "echo {{params.memory}} > {{output}}"

module leakage:
    snakefile: {snakefile}
    config: config["leakage"]

use rule * from leakage as {renamed}

rule page:
    default_target: True
    input: "results/quickstart-smoke/report.html"
    output: "page.html"
    shell: "cp {{input}} {{output}}"
"""


class Elsewhere(Workflow):
    """A folder that holds nothing of the repository; the package is installed."""

    @property
    def environment(self) -> dict[str, str]:
        return os.environ | {"PYTHONPATH": str(REPO / "src"), "XDG_CACHE_HOME": str(self.folder.parent / "cache")}

    def ran(self, *program: str) -> subprocess.CompletedProcess[str]:
        """Another program of Python's, with this repository's package."""
        how = {"cwd": self.folder, "env": self.environment, "text": True, "capture_output": True}
        return subprocess.run([sys.executable, *program], check=False, **how)


@pytest.fixture
def elsewhere(tmp_path: Path) -> Elsewhere:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return Elsewhere(folder)


@pytest.fixture
def hosted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The repository on a host, with a tagged release: git finds it in a folder instead."""
    folder = tmp_path / "hosted"
    folder.mkdir()
    copied(folder)
    shutil.copytree(REPO / "config", folder / "config", symlinks=True)
    shutil.copy2(REPO / "LICENSE", folder)
    author = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    for words in (("init", "--quiet"), ("add", "."), (*author, "commit", "--quiet", "-m", "x"), ("tag", "v0.0.1")):
        subprocess.run(["git", *words], cwd=folder, check=True)
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", f"url.{folder}.insteadOf")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", HOSTED)
    return HOSTED


def write_module(elsewhere: Elsewhere, snakefile: str, renamed: str = "*", **config: object) -> None:
    given = {"leakage": {"scale": "smoke", **config}, "of_ours": 1}
    text = "configfile: 'ours.yaml'\n" + MODULE.format(snakefile=snakefile, renamed=renamed)
    (elsewhere.folder / "Snakefile").write_text(text)
    (elsewhere.folder / "ours.yaml").write_text(yaml.safe_dump(given))


LOCAL = repr(str(REPO / "workflow" / "Snakefile"))
TAGGED = "github('example/dp-leakage', path='workflow/Snakefile', tag='v0.0.1')"


@pytest.mark.slow
def test_the_two_snakefiles_of_the_repository_plan_the_same(unrun: Workflow) -> None:
    assert unrun.planned() == unrun.planned("--snakefile", "workflow/Snakefile") != {}


def test_a_module_has_a_config_of_its_own_and_makes_what_the_other_snakefile_asks_for(elsewhere: Elsewhere) -> None:
    write_module(elsewhere, LOCAL, "leakage_*", overrides={"quickstart": {"epsilon": [7]}})
    text = elsewhere.snakemake("-n", "page", "ours")
    assert "leakage_quickstart_report" in text
    assert "eps=7/" in text
    assert "Ours, with 100 MB" in text


def test_a_fault_in_a_modules_config_is_one_sentence(elsewhere: Elsewhere) -> None:
    write_module(elsewhere, LOCAL, devise="cpu")
    text = elsewhere.snakemake("-n", check=False)
    assert "error: config.yaml: unknown key 'devise'" in text
    assert "Traceback" not in text


def test_a_tagged_release_on_a_host_is_a_module(elsewhere: Elsewhere, hosted: str) -> None:
    write_module(elsewhere, TAGGED)
    elsewhere.snakemake(DATA, "--cores", "1")
    assert (elsewhere.folder / DATA).exists()


@pytest.mark.study
def test_a_module_runs_whole_and_its_figures_are_in_the_report(elsewhere: Elsewhere) -> None:
    briefly = {"training": {"epochs": 4, "evaluate_every": 2}}
    write_module(elsewhere, LOCAL, "leakage_*", overrides={"quickstart": briefly})
    elsewhere.snakemake("--cores", "2")
    assert (elsewhere.folder / "page.html").exists()
    elsewhere.snakemake("--report", "everything.html")
    assert "fig_pareto.png" in (elsewhere.folder / "everything.html").read_text(encoding="utf-8")
    assert "Nothing to be done" in elsewhere.snakemake("--cores", "1")


@pytest.fixture
def deployed(elsewhere: Elsewhere, hosted: str) -> Elsewhere:
    """The empty folder after `snakedeploy deploy-workflow` with a tag."""
    pytest.importorskip("snakedeploy")
    done = elsewhere.ran("-m", "snakedeploy.client", "deploy-workflow", hosted, ".", "--tag", "v0.0.1")
    assert done.returncode == 0, done.stderr
    return elsewhere


def test_snakedeploy_writes_a_folder_that_names_the_tag_and_plans_the_study(deployed: Elsewhere) -> None:
    files = {str(path.relative_to(deployed.folder)) for path in deployed.folder.rglob("*") if path.is_file()}
    assert {"workflow/Snakefile", "config/config.yaml", "config/README.md", "profiles/default/config.yaml"} <= files
    assert 'tag="v0.0.1"' in (deployed.folder / "workflow" / "Snakefile").read_text(encoding="utf-8")
    assert deployed.planned("quickstart", "--config", "scale=smoke")["quickstart_report"] == 1


@pytest.mark.study
def test_the_quickstart_runs_in_a_folder_that_snakedeploy_wrote(deployed: Elsewhere) -> None:
    text = deployed.snakemake("quickstart", "--config", "scale=smoke")
    assert f"Report: {REPORT}" in text
    assert "Nothing to be done" in deployed.snakemake("quickstart", "--config", "scale=smoke")
    assert "Nothing to be done" in deployed.snakemake("--config", "scale=smoke")
    deployed.snakemake("quickstart_verify", "--config", "scale=smoke")


def test_another_folder_needs_no_config_and_says_only_what_differs(elsewhere):
    """With --snakefile of a clone, and with --directory."""
    snakefile = ("--snakefile", str(REPO / "Snakefile"), "--cores", "1")
    elsewhere.snakemake("results/quickstart/digits/data.npz", *snakefile)
    (elsewhere.folder / "config.yaml").write_text("scale: smoke\n")
    elsewhere.snakemake(DATA, *snakefile)
    there = elsewhere.folder / "there"
    there.mkdir()
    elsewhere.snakemake(DATA, *snakefile, "--directory", str(there), "--config", "scale=smoke")
    assert (there / DATA).read_bytes() == (elsewhere.folder / DATA).read_bytes()


def test_touch_is_refused(elsewhere):
    text = elsewhere.snakemake(
        DATA, "--snakefile", str(REPO / "Snakefile"), "--config", "scale=smoke", "--touch", "--cores", "1", check=False
    )
    assert "error: --touch would call old results new" in text
    assert "Traceback" not in text
