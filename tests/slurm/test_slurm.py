"""The small study on a real SLURM cluster: the same bytes as a local run, whatever happens on the way."""

import os
import re
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from slurm_cluster import wait_for

pytestmark = pytest.mark.slurm
PROFILE = ("--workflow-profile", "profiles/slurm")
# A figure of every cell, without the slow attacks: enough for what goes wrong.
FIGURE = "quickstart_fig_leakage_yeom"
# Data, the undefended models, then the five cells in one submission after another of two, then the figure.
SOME_CELLS = ("--group-components", "cell=2")


@pytest.fixture
def remote(cluster, unrun):
    """The small study, set up for the cluster as the README says, with nothing run."""
    unrun.edit("profiles/slurm/config.yaml", "# slurm_partition: my_partition", "slurm_partition: main")
    yield unrun
    cluster.node("resume")
    cluster.empty()


def test_the_clusters_bytes_are_the_local_runs(remote, finished):
    text = remote.snakemake("quickstart", *PROFILE, timeout=1500)
    assert re.search(r"^(\d+) of \1 jobs, .* done in ", text, re.MULTILINE), text
    assert remote.hashes() == finished.hashes()
    # Data; undefended models; shadow models and their attack; four and one cells; figures with the report.
    (log,) = (remote.folder / ".snakemake" / "log").glob("*.log")
    assert log.read_text().count("submitted with SLURM jobid") == 6
    assert remote.planned("quickstart") == Counter()


def test_without_a_shared_disk_each_job_has_a_folder_of_its_own_and_the_bytes_are_the_same(remote, finished, tmp_path):
    storage = tmp_path / "storage"
    remote.edit("profiles/storage/config.yaml", "/path/that/every/machine/reaches", str(storage))
    for words in (["init", "--quiet"], ["add", "--all"]):  # what git knows is what jobs are given
        subprocess.run(["git", *words], cwd=remote.folder, check=True)
    remote.snakemake(FIGURE, "--profile", "profiles/storage", *PROFILE, timeout=1500)
    made, expected = type(remote)(storage).hashes(), finished.hashes()
    assert made == {path: expected[path] for path in made}
    assert "figures/fig_leakage_yeom.csv" in made
    assert not remote.results.exists()


def test_a_job_asks_for_what_its_cell_needs_and_training_for_a_gpu(cluster, remote):
    remote.edit("config.yaml", "device: auto", "device: cuda")
    remote.configure(training={"epochs": 20_000})
    process = remote.started("quickstart", *PROFILE)
    training = cluster.running("baseline")
    told = subprocess.run(["scontrol", "show", "job", training], check=True, text=True, capture_output=True).stdout
    _interrupt(process)
    assert "gres:gpu:1" in told or "gres/gpu=1" in told
    assert "NumNodes=1 " in told
    assert "NumCPUs=1 " in told
    # 20,000 epochs of 200 records, twice, at 0.2 ms: 26.7 minutes, and 5 to start.
    assert "TimeLimit=00:32:00" in told
    assert "MinMemoryNode=2112M" in told


def test_a_cancelled_job_is_named_and_a_rerun_repeats_no_finished_cell(cluster, remote, finished):
    process = remote.started(FIGURE, *PROFILE, *SOME_CELLS, "--retries", "0")
    job = cluster.running("cell")
    subprocess.run(["scancel", job], check=True)
    text, _ = process.communicate(timeout=600)
    assert process.returncode == 1
    assert re.search(rf"SLURM status is: 'CANCELLED|slurm_logs/\S*/{job}\.log", text), text
    assert "What is finished stays" in text
    _finishes(remote, finished)


def test_the_second_attempt_of_a_cancelled_submission_repeats_nothing_that_the_first_finished(
    cluster, remote, finished
):
    # All five cells in one submission, and what fails is sent once more.
    process = remote.started(FIGURE, *PROFILE, "--group-components", "cell=5")
    job = cluster.running("cell")
    wait_for(lambda: [*remote.results.glob("*/*/gaussian*/metrics.parquet")], every=0.05)
    step = wait_for(lambda: _step(remote, "train", "judge"), every=0.01)
    os.kill(step, signal.SIGSTOP)  # it cannot end before it is canceled
    subprocess.run(["scancel", job], check=True)
    wait_for(lambda: job not in cluster.jobs())
    there = _inodes(remote)
    text, _ = process.communicate(timeout=900)
    assert process.returncode == 0, text
    assert "Trying to restart job" in text
    after = _inodes(remote)
    assert {path: after[path] for path in there} == there
    _same(remote, finished)


def test_a_job_over_its_time_limit_is_sent_again_with_twice_the_time(cluster, remote, finished):
    limited = ("--set-resources", "train_target:runtime=attempt")
    process = remote.started(FIGURE, *PROFILE, *limited)
    job = cluster.running("baseline")
    training = wait_for(lambda: _step(remote, "train"))
    os.kill(training, signal.SIGSTOP)  # a minute is the shortest limit: this job does not meet it
    text, _ = process.communicate(timeout=900)
    assert process.returncode == 0, text
    assert job in cluster.jobs("TO")
    assert "Trying to restart job" in text
    _same(remote, finished)


def test_ctrl_c_cancels_the_jobs_and_a_rerun_finishes(cluster, remote, finished):
    process = remote.started(FIGURE, *PROFILE, *SOME_CELLS)
    cluster.running("cell")
    _interrupt(process)
    wait_for(lambda: not cluster.jobs())
    _finishes(remote, finished)


def test_after_a_killed_snakemake_the_orphans_are_cancelled_by_name_and_a_rerun_finishes(cluster, remote, finished):
    process = remote.started(FIGURE, *PROFILE, *SOME_CELLS)
    cluster.running("cell")
    os.killpg(process.pid, signal.SIGKILL)
    text, _ = process.communicate()
    assert cluster.jobs(), "its jobs go on without it"
    # What the README says to do, literally.
    run = re.search(r"SLURM run ID: (\S+)", text)[1]
    subprocess.run(["scancel", "--name", run], check=True)
    wait_for(lambda: not cluster.jobs())
    remote.snakemake("--unlock")
    _finishes(remote, finished)


def test_on_a_drained_node_jobs_wait_with_a_reason_and_go_on_later(cluster, remote, finished):
    process = remote.started(FIGURE, *PROFILE, *SOME_CELLS)
    cluster.running("baseline")
    cluster.node("drain")
    # The scheduler says why within a round of its own; until then the reason is None or Priority.
    wait_for(lambda: re.search("DRAIN|Resources|ReqNodeNotAvail|Nodes", cluster.reasons()))
    assert process.poll() is None
    cluster.node("resume")
    text, _ = process.communicate(timeout=600)
    assert process.returncode == 0, text
    _same(remote, finished)


def test_code_that_is_edited_while_a_job_waits_stops_it_and_leaves_no_result(cluster, remote):
    code, data = remote.folder / "src/dp_leakage/data/projection.py", remote.results / "digits" / "data.npz"
    run = str(data.relative_to(remote.folder)), *PROFILE, "--retries", "0"
    before = code.read_text()
    cluster.node("drain")
    process = remote.started(*run)
    wait_for(lambda: cluster.jobs("PD"))
    code.write_text(f"{before}\n\nEDITED = 1\n")
    cluster.node("resume")
    text, _ = process.communicate(timeout=300)
    assert process.returncode == 1, text
    assert "error: the code or a setting of the step project was edited after its job was submitted" in text
    assert not data.exists()
    code.write_text(before)
    remote.snakemake(*run)
    assert data.exists()


def _finishes(remote, finished) -> None:
    """A second run ends with the local run's bytes and leaves every file of a finished step as it was."""
    there = _inodes(remote)
    remote.snakemake(FIGURE, *PROFILE, *SOME_CELLS, timeout=900)
    after = _inodes(remote)
    assert there, "nothing was finished before"
    assert {path: after[path] for path in there} == there
    _same(remote, finished)


def _same(remote, finished) -> None:
    expected = finished.hashes()
    made = remote.hashes()
    assert made == {path: expected[path] for path in made}
    assert "figures/fig_leakage_yeom.csv" in made


def _inodes(remote) -> dict[str, int]:
    """Files of finished steps; each write makes a new one, so its number tells a repeated step from a kept one."""
    return {path: (remote.results / path).stat().st_ino for path in remote.hashes() if "prepared" not in path}


def _step(remote, *names: str) -> int | None:
    """Process id of one of these steps at work in this folder."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_text().split("\0")
            inside = (process / "cwd").readlink() == remote.folder
        except OSError:
            continue
        if inside and words[1:3] in [["-m", f"dp_leakage.steps.{name}"] for name in names]:
            return int(process.name)
    return None


def _interrupt(process: subprocess.Popen) -> None:
    """Ctrl-C: to Snakemake alone."""
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    assert process.returncode != 0
