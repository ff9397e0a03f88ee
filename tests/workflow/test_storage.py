"""Results and data in a storage, from which each job fetches copies of its inputs and nothing else."""

import shutil
import sys
from pathlib import Path

import pytest
import yaml
from sklearn.datasets import load_wine

sys.path.append(str(Path(__file__).parent))
from test_own_data import SMALLEST, new_study

pytest.importorskip("snakemake_storage_plugin_fs")
# What the storage plugin `fs` asks of rsync, where that is not installed.
RSYNC = (
    '#!/bin/sh\nfor last; do before="$from" from="$last"; done\nexec cp -rL --preserve=timestamps "$before" "$last"\n'
)


@pytest.fixture
def storage(tmp_path_factory, monkeypatch):
    """The options of a run whose results are in a storage; its folder is last."""
    folder = tmp_path_factory.mktemp("storage")
    if not shutil.which("rsync"):
        program = folder / "bin" / "rsync"
        program.parent.mkdir()
        program.write_text(RSYNC)
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    return "--shared-fs-usage", "none", "--default-storage-provider", "fs", "--default-storage-prefix", str(folder)


def hashes(folder, workflow):
    """Of every file of the small study in a storage, as ``Workflow.hashes`` says them."""
    return type(workflow)(Path(folder)).hashes()


@pytest.fixture
def wine(whole):
    """A workflow with a study of the user's own table, which is in ``own`` below the workflow's folder."""
    (whole.folder / "own").mkdir()
    load_wine(as_frame=True).frame.to_csv(whole.folder / "own" / "wine.csv", index=False)
    new_study(whole, ["--data", "own/wine.csv", "--label", "target"])
    return whole


@pytest.mark.study
def test_a_run_in_a_storage_makes_the_local_runs_bytes(unrun, finished, storage):
    text = unrun.snakemake("quickstart", "quickstart_verify", "--cores", "2", *storage)
    assert hashes(storage[-1], unrun) == finished.hashes()
    assert not unrun.results.exists()
    assert "Nothing to be done" in unrun.snakemake("quickstart", "--cores", "1", *storage), text


@pytest.mark.study
def test_the_report_of_ones_own_data_reads_the_copies_in_the_storage(wine, storage):
    shutil.copytree(wine.folder / "own", Path(storage[-1]) / "own")
    wine.edit("config.yaml", "overrides: {}", yaml.safe_dump({"overrides": {"mine": SMALLEST}}))
    wine.snakemake("mine", "--cores", "2", "--config", "scale=smoke", *storage)
    assert "wine.csv" in (Path(storage[-1]) / "results" / "mine-smoke" / "report.html").read_text()


def test_a_job_reads_the_copy_of_ones_own_file_and_refuses_another_version(wine, storage):
    copy = Path(storage[-1]) / "own" / "wine.csv"
    copy.parent.mkdir()
    table = (wine.folder / "own" / "wine.csv").read_text()
    copy.write_text(table[: table.rindex("\n", 0, -1) + 1])  # without the last record
    command = ("mine", "--until", "prepare_dataset", "--notemp", "--cores", "1", *storage)
    wine.snakemake(*command, check=False)
    (log,) = Path(storage[-1]).glob("logs/mine/*/prepare_dataset.log")
    assert "own/wine.csv has changed since this run began" in log.read_text()
    copy.write_text(table)
    wine.snakemake(*command)
    assert (Path(storage[-1]) / "results" / "mine" / "mine" / "prepared.npz").exists()
