"""Runs whose jobs are forked from one process: the same bytes, the work's own costs, and nothing left behind."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from workflow_copies import REPO

# Nearly every step has a job in it: all of the small study's, an audit, an attack on models, groups, and timings.
EVERY_STEP = {
    "repeats": 2,
    "epsilon": [100],
    "defenses": [{"defense": "none"}, {"defense": "gaussian", "accountant": "rdp", "sampler": "poisson"}],
    "audit": {"designs": {"one": {"design": "one_run", "canary": "mislabeled", "models": 4, "beyond_reach": "mark"}}},
    "groups": ["class"],
    "timing": {"rounds": 1, "records": 100},
    "figures": {
        "fig_leakage_lira": None,
        "fig_accuracy_proven": None,
        "table_times": {"kind": "own_times", "title": "Times"},
    },
}
# Studies with a tuned rate have jobs of the first; `overview` has none.
OF_OTHERS = {"tune", "overview"}
# Steps that run in the jobs of `judge`.
MEASURES = {path.stem for path in (REPO / "src" / "dp_leakage" / "steps").glob("measure*.py")}
OF_JUDGE = {"attack", "attack_models", "audit", *MEASURES}
SLEEP = """

rule sleep:
    output: "sleep.txt"
    shell: "python -m dp_leakage.steps.sleep {output:q}"


rule fail:
    output: "fail.txt"
    shell: "python -m dp_leakage.steps.sleep fail"
"""
SLEEPS = """
import subprocess, sys
if __name__ == "__main__":
    if sys.argv[1] == "fail":
        sys.exit(1)
    subprocess.run(["sleep", "600"])
"""


def steps_of(workflow):
    return {path.stem for path in (workflow.folder / "src" / "dp_leakage" / "steps").glob("[a-z]*.py")}


def servers_of(workflow):
    """The servers of runs in this folder, without their forks, which are called the same."""
    found = {}
    for process in psutil.process_iter(["cmdline", "cwd", "ppid"]):
        if "dp_leakage.jobs.server" in (process.info["cmdline"] or []) and process.info["cwd"] == str(workflow.folder):
            found[process.pid] = process
    return [process for process in found.values() if process.info["ppid"] not in found]


def wait_for(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False


def gone(process):
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def with_rule(workflow, rule, step, code):
    workflow.append("workflow/rules/data.smk", rule)
    (workflow.folder / "src" / "dp_leakage" / "steps" / f"{step}.py").write_text(code)
    return workflow


@pytest.mark.slow
def test_the_bytes_of_nearly_every_step_are_the_same_with_and_without_it(unrun, tmp_path_factory):
    kinds = unrun.folder / "kinds"
    kinds.mkdir()
    shutil.copy(unrun.folder / "workflow" / "studies" / "lomurno2022" / "timing_table.py", kinds / "own_times.py")
    unrun.edit("config.yaml", "plugins: []", "plugins: [kinds]")
    unrun.configure(**EVERY_STEP)
    targets = ("quickstart", "quickstart_audit")
    commands = unrun.snakemake(*targets, "quickstart_verify", "-n", "-p")
    assert set(re.findall(r"-m dp_leakage\.steps\.(\w+)", commands)) == steps_of(unrun) - OF_OTHERS - OF_JUDGE
    folder = tmp_path_factory.mktemp("by_itself")
    shutil.copytree(unrun.folder, folder, dirs_exist_ok=True)
    alone = type(unrun)(folder)
    alone.edit("config.yaml", "preload: true", "preload: false")
    for workflow in (unrun, alone):
        workflow.snakemake(*targets, "--cores", "2")
        workflow.snakemake("quickstart_verify", "--cores", "1")
    untimed = [{path: digest for path, digest in w.hashes().items() if "time" not in path} for w in (unrun, alone)]
    assert len(untimed[0]) > 30
    assert untimed[0] == untimed[1]


ENDS = {
    "Ctrl-C": lambda run: os.killpg(run.pid, signal.SIGINT),
    "kill -9": lambda run: os.kill(run.pid, signal.SIGKILL),
    "kill -9 of its whole group": lambda run: os.killpg(run.pid, signal.SIGKILL),
}


@pytest.mark.parametrize("way", ENDS)
def test_however_snakemake_is_ended_everything_that_it_started_ends_within_seconds(whole, way):
    run = with_rule(whole, SLEEP, "sleep", SLEEPS).started("sleep", "--cores", "1")
    assert wait_for(lambda: [work for server in servers_of(whole) for work in server.children(recursive=True)][1:])
    (server,) = servers_of(whole)
    started = [server, *server.children(recursive=True), *psutil.Process(run.pid).children(recursive=True)]
    assert len(started) >= 4
    ENDS[way](run)
    run.communicate(timeout=300)
    assert wait_for(lambda: all(map(gone, started)), seconds=10)


@pytest.mark.parametrize(("target", "status"), [("results/quickstart-smoke/digits/data.npz", 0), ("fail", 1)])
def test_the_server_ends_with_a_run_that_is_done_or_that_failed(unrun, target, status):
    run = with_rule(unrun, SLEEP, "sleep", SLEEPS).started(target, "--cores", "1")
    text, _ = run.communicate(timeout=120)
    assert run.returncode == status, text
    assert wait_for(lambda: not servers_of(unrun), seconds=10)


def test_no_server_where_it_is_turned_off_and_none_for_a_dry_run(unrun):
    target = "results/quickstart-smoke/digits/data.npz"
    watch = with_rule(unrun, SLEEP, "sleep", "import os, sys\nif __name__ == '__main__': print(os.environ)\n")
    assert "DP_LEAKAGE_JOBS" in watch.snakemake("sleep", "--cores", "1", check=False)
    assert "DP_LEAKAGE_JOBS" not in watch.snakemake("sleep", "--cores", "1", "--config", "preload=false", check=False)
    assert "Job stats" in watch.snakemake("-n", target)


def test_a_code_edit_between_two_runs_is_seen(unrun):
    target = "results/quickstart-smoke/digits/data.npz"
    unrun.snakemake(target, "--cores", "1")
    unrun.append("src/dp_leakage/data/projection.py", "\n\nraise SystemExit('the edited code ran')\n")
    assert "the edited code ran" in unrun.snakemake(target, "--cores", "1", check=False)


def test_a_job_with_two_threads_runs_by_itself(whole):
    code = "import os\nif __name__ == '__main__':\n    import torch; print(torch.get_num_threads(), 'threads')\n"
    rule = SLEEP.replace('output: "sleep.txt"', 'output: "sleep.txt"\n    threads: 2')
    text = with_rule(whole, rule, "sleep", code).snakemake("sleep", "--cores", "2", check=False)
    assert "2 threads" in text


def test_the_run_starts_no_second_python_for_what_it_does_not_need(whole):
    """The server itself imports nothing that costs before a job asks."""
    code = "import sys, subprocess; from dp_leakage.jobs import server; print('numpy' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(Path(whole.folder, "src"))},
        text=True,
        capture_output=True,
        check=True,
    )
    assert done.stdout == "False\n"
