"""What a run hands to SLURM, counted by stand-ins for its commands; `tests/slurm` runs on a real cluster."""

import json
import os
import re
import signal
import sys
import time
from collections import Counter, defaultdict

import pytest

PROFILE = ("--workflow-profile", "profiles/slurm", "--slurm-init-seconds-before-status-checks", "1")
# Notes its own call. A submission "runs" at once where FINISHED says what it would have made, and really runs where
# BEFORE says what is done before it begins. The first one ends as ENDS says, once two cells are trained.
STAND_IN = """#!{python}
import json, os, shutil, signal, subprocess, sys, time
from pathlib import Path

def trained():
    return sorted(Path({results!r}).glob("*/*/*/timing.json"))

def run(command, stops):
    with open("slurm.log", "a") as log:
        process = subprocess.Popen(command, shell=True, stdout=log, stderr=log, start_new_session=True)
        before = len(trained())
        while process.poll() is None:
            time.sleep(0.01)
            if stops and len(trained()) >= before + 2:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                there = {{str(path): path.stat().st_ino for path in trained()}}
                calls.with_name("trained").write_text(json.dumps(there))
                return stops
    return "FAILED" if process.returncode else "COMPLETED"

name, calls = Path(sys.argv[0]).name, Path({calls!r})
number = len(calls.read_text().splitlines()) + 1 if calls.exists() else 1
with calls.open("a") as out:
    print(json.dumps([name, *sys.argv[1:]]), file=out)
if name == "sbatch":
    if os.environ["FINISHED"]:
        shutil.copytree(os.environ["FINISHED"], {results!r}, dirs_exist_ok=True)
        for folder in Path({results!r}).glob("data/*"):
            (folder / "prepared.npz").touch()  # a temporary file, which a finished study has no more
    if "BEFORE" in os.environ:
        subprocess.run([sys.executable, "-c", os.environ["BEFORE"]], check=True)
        wrapped = sys.argv[-1].removeprefix("--wrap=")
        first = not any(calls.parent.glob("state*"))
        state = run(wrapped, first and os.environ.get("ENDS"))
        if state == "REQUEUED":
            state = run(wrapped, None)
        calls.with_name(f"state{{number}}").write_text(state)
    print(number)
elif name == "squeue" and "BEFORE" in os.environ:
    for path in calls.parent.glob("state*"):
        print(path.name.removeprefix("state") + "|" + path.read_text())
elif name == "squeue":
    state = "COMPLETED" if os.environ["FINISHED"] else "RUNNING"
    print("\\n".join(f"{{job}}|{{state}}" for job in range(1, number)))
elif name == "scontrol":
    print("MinJobAge = 300 sec")  # so long squeue knows what became of a job
"""


class Cluster:
    """Stand-ins for SLURM's commands, and what they were called with."""

    def __init__(self, folder, results):
        self.calls = folder / "calls"
        folder.mkdir()
        # The last three know nothing: no account is checked. All are there, whatever of SLURM is on this machine.
        for name in ("sbatch", "srun", "squeue", "scancel", "scontrol", "sacct", "sacctmgr", "sshare"):
            program = folder / name
            program.write_text(STAND_IN.format(python=sys.executable, calls=str(self.calls), results=str(results)))
            program.chmod(0o755)

    def called(self, name):
        """The arguments of each call of a command."""
        lines = self.calls.read_text().splitlines() if self.calls.exists() else []
        return [arguments for command, *arguments in map(json.loads, lines) if command == name]

    def submissions(self):
        """Name → how often something of that name was submitted: a group, or a rule that is in none."""
        comments = [call[call.index("--comment") + 1] for call in self.called("sbatch")]
        return Counter(comment.removeprefix("rule_").partition("_")[0] for comment in comments)


@pytest.fixture
def clustered(tmp_path_factory, monkeypatch):
    """A function: workflow → the stand-ins on its PATH, for the profile with the lines that users fill in."""

    def started(workflow):
        made = Cluster(tmp_path_factory.mktemp("slurm") / "bin", workflow.results)
        monkeypatch.setenv("PATH", f"{made.calls.parent}{os.pathsep}{os.environ['PATH']}")
        workflow.edit("profiles/slurm/config.yaml", "# slurm_partition: my_partition", "slurm_partition: main")
        workflow.edit("profiles/slurm/config.yaml", "# slurm_account: my_account", "slurm_account: nobody")
        return made

    return started


@pytest.fixture
def cluster(clustered, unrun):
    return clustered(unrun)


def test_a_study_is_a_handful_of_submissions(cluster, unrun, finished, monkeypatch):
    monkeypatch.setenv("FINISHED", str(finished.results))
    text = unrun.snakemake("quickstart", *PROFILE, timeout=180)
    done = int(re.search(r"^(\d+) of \1 jobs, .* done in ", text, re.MULTILINE)[1])
    assert done > 20, text
    # Data; undefended models; shadow models and their attack; four and one cells; figures with the report.
    assert cluster.submissions() == Counter(data=1, baseline=1, auxiliary=1, cell=2, figures=1)


@pytest.fixture
def on_gpus(cluster, unrun, finished, monkeypatch):
    """A function: arguments → the calls of sbatch by group, for a figure of cells that train on a GPU."""
    monkeypatch.setenv("FINISHED", str(finished.results))
    unrun.edit("config.yaml", "device: auto", "device: cuda")

    def submitted(*arguments):
        unrun.snakemake("quickstart_fig_leakage_yeom", *PROFILE, *arguments, timeout=180)
        found = defaultdict(list)
        for call in cluster.called("sbatch"):
            found[call[call.index("--comment") + 1].removeprefix("rule_").partition("_")[0]].append(call)
        return found

    return submitted


@pytest.mark.parametrize("cores", [1, 4])
def test_a_submission_has_one_gpu_or_as_many_of_one_node_as_it_has_cores(on_gpus, cores):
    calls = on_gpus("--cores", str(cores))
    (call,) = calls["cell"]  # of four trainings
    assert {f"--gpus={cores}", f"--cpus-per-task={cores}"} <= set(call)
    assert f" --resources gpu={cores} " in call[-1]
    assert all("-N1" in call for made in calls.values() for call in made)


def test_attacks_and_measures_are_submitted_without_a_gpu_apart_from_trainings(on_gpus):
    calls = on_gpus()
    with_gpu = {group for group, made in calls.items() if any("--gpus=1" in call for call in made)}
    assert with_gpu == {"baseline", "auxiliary", "cell"}
    assert set(calls) - with_gpu == {"data", "fitted", "judged", "figures"}


@pytest.mark.parametrize("share", ["gpu:1", "mps:25"])
def test_cells_side_by_side_can_share_one_gpu(on_gpus, share):
    calls = on_gpus("--cores", "4", "--set-resources", "train_target:gpu=0", f"train_target:gres={share}")
    assert any({f"--gres={share}", "--cpus-per-task=4"} <= set(call) for call in calls["cell"])
    assert not any(word.startswith("--gpus") for call in calls["cell"] + calls["baseline"] for word in call)


@pytest.mark.parametrize("cells", [80, pytest.param(3000, marks=pytest.mark.slow)])
def test_forty_cells_go_together_so_that_a_grid_of_3000_is_75_submissions(clustered, workflow, cells, monkeypatch):
    """Data and undefended models are there; each cell trains, is asked, attacked and measured."""
    monkeypatch.setenv("FINISHED", "")
    cluster = clustered(workflow)
    workflow.configure(epsilon=[1000 + number for number in range(cells // 2)])  # for two accountants
    process = workflow.started("quickstart_fig_leakage_yeom", *PROFILE, "--group-components", "cell=40")
    _waits(process, lambda: len(cluster.called("sbatch")) >= cells / 40, timeout=60 + cells)
    asked = len(cluster.called("squeue"))
    _waits(process, lambda: len(cluster.called("squeue")) > asked + 1)  # meanwhile it would submit more
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60 + cells)
    assert cluster.submissions() == Counter(cell=cells // 40)


@pytest.mark.parametrize(
    ("file", "edit"),
    [
        ("src/dp_leakage/data/projection.py", ("import numpy", "EDITED = 1\nimport numpy")),
        ("workflow/studies/quickstart.yaml", ("components: 30", "components: 20")),
    ],
    ids=["code", "setting"],
)
def test_an_edit_after_a_submission_leaves_nothing_under_the_identity_of_what_was_there_before(
    cluster, unrun, monkeypatch, file, edit
):
    """A job on a cluster plans anew. Otherwise an edit that is taken back leaves what no code or study has made."""
    monkeypatch.setenv("FINISHED", "")
    path, data = unrun.folder / file, unrun.results / "digits" / "data.npz"
    run = str(data.relative_to(unrun.folder)), *PROFILE, "--retries", "0"
    before = path.read_text()
    unrun.edit(file, *edit)
    edited = path.read_text()
    path.write_text(before)
    monkeypatch.setenv("BEFORE", f"from pathlib import Path; Path({file!r}).write_text({edited!r})")
    unrun.snakemake(*run, check=False)
    said = (unrun.folder / "logs" / "quickstart-smoke" / "digits" / "project_pca.log").read_text()
    assert "error: the code or a setting of the step project was edited after its job was submitted; run the" in said
    assert not data.exists()
    path.write_text(before)
    monkeypatch.setenv("BEFORE", "")
    unrun.snakemake(*run)
    assert data.exists()


@pytest.mark.parametrize("state", ["CANCELLED", "REQUEUED"])
def test_a_second_attempt_trains_no_cell_that_the_first_has_trained(cluster, unrun, monkeypatch, state):
    """Snakemake forces every job of a submission that it sends again, and so does one that SLURM requeues."""
    none, *cells = [
        f"results/quickstart-smoke/digits/mlp/{cell}/timing.json"
        for cell in ("none", *(f"gaussian-{rule}-eps={epsilon}" for rule in ("naive", "rdp") for epsilon in (1, 100)))
    ]
    unrun.snakemake(none, "--cores", "1")
    monkeypatch.setenv("FINISHED", "")
    monkeypatch.setenv("BEFORE", "")
    monkeypatch.setenv("ENDS", state)
    text = unrun.snakemake(*cells, *PROFILE, "--retries", "1", timeout=500)
    assert len(cluster.called("sbatch")) == (1 if state == "REQUEUED" else 2), text
    before = json.loads(cluster.calls.with_name("trained").read_text())
    assert len(before) == 3
    assert not cluster.called("srun")  # which would start a Snakemake for each job
    assert {path: os.stat(path).st_ino for path in before} == before


@pytest.mark.parametrize(("sentence", "attempts"), [("a setting is wrong", 1), ("not enough memory for this", 2)])
def test_a_users_error_is_told_in_one_sentence_and_not_sent_again(cluster, unrun, monkeypatch, sentence, attempts):
    monkeypatch.setenv("FINISHED", "")
    monkeypatch.setenv("BEFORE", "")
    unrun.edit(
        "src/dp_leakage/steps/project.py",
        'if __name__ == "__main__":\n',
        'def main(settings, prepared, data, features=None):\n    raise UserError("' + sentence + '")\n\n\n'
        'if __name__ == "__main__":\n    from dp_leakage.common.errors import UserError\n',
    )
    text = unrun.snakemake("results/quickstart-smoke/digits/data.npz", *PROFILE, "--retries", "1", check=False)
    assert cluster.submissions() == Counter(data=attempts)
    told = text[text.index("A submission failed") :]
    assert told.count(f"error: {sentence}") == attempts
    assert "A submission failed in project_pca: logs/quickstart-smoke/digits/project_pca.log\nerror: " in told
    assert len(told.splitlines()) < 12 * attempts, told


def test_ctrl_c_cancels_a_runs_submissions_by_name_and_ends_it(cluster, unrun, monkeypatch):
    monkeypatch.setenv("FINISHED", "")
    process = unrun.started("quickstart", *PROFILE)
    _waits(process, lambda: cluster.called("squeue"))  # it asks, and sleeps until it asks again
    name = cluster.called("sbatch")[0]
    process.send_signal(signal.SIGINT)
    text, _ = process.communicate(timeout=30)
    assert process.returncode != 0
    assert ["--name", name[name.index("--job-name") + 1]] in cluster.called("scancel"), text


def _waits(process, reached, timeout=120):
    """Until that is true. Ends the run if it never is."""
    given_up = time.monotonic() + timeout
    while not reached():
        if process.poll() is not None or time.monotonic() > given_up:
            process.kill()
            raise AssertionError(process.communicate()[0])
        time.sleep(0.2)
