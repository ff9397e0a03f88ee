"""What Snakemake plans, and how much memory it takes to; `benchmarks/dag.py` and `jobs.py` print how long."""

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import yaml

from dp_leakage.study.file import study_files

STUDIES = study_files(Path(__file__).parents[2] / "workflow" / "studies")
TARGETS = [yaml.safe_load(path.read_text())["study"] for path in STUDIES]
MEMORY = 1 << 30  # bytes


# The system counts what a process held before it became Snakemake, so a small one starts it, not that of the tests.
MEASURED_RUN = """
import json, resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
print(json.dumps([done.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024, done.stderr[-2000:]]))
"""


def test_a_dry_run_of_all_studies_fits_into_a_gigabyte(whole):
    command = [sys.executable, "-m", "snakemake", *TARGETS, "-n", "--quiet", "all"]
    done = subprocess.run(
        [sys.executable, "-c", MEASURED_RUN, *command], cwd=whole.folder, text=True, capture_output=True, check=True
    )
    status, memory, words = json.loads(done.stdout)
    assert status == 0, words
    assert memory < MEMORY


PLANNED = """
import contextlib, io, json, sys
from snakemake.cli import main
sys.argv = ["snakemake", "-n", *sys.argv[1:]]
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
    main()
print(json.dumps(sorted({"torch", "scipy", "matplotlib"} & sys.modules.keys())))
"""


def test_planning_imports_nothing_that_only_jobs_need(whole):
    command = [sys.executable, "-c", PLANNED, "quickstart_fig_pareto"]
    done = subprocess.run(command, cwd=whole.folder, text=True, capture_output=True, check=True)
    assert json.loads(done.stdout) == [], done.stderr[-2000:]


def test_what_the_audits_of_a_study_reach_is_checked_where_the_study_is_asked_for(unrun):
    unrun.edit("workflow/studies/audits.yaml", "models: 40000", "models: 20")
    assert "audit.designs.steps_most_runs" in unrun.snakemake("-n", "audits", "--config", "scale=paper", check=False)
    assert unrun.planned("quickstart_fig_pareto")


@pytest.mark.slow
def test_the_benchmark_of_the_dag_runs(tmp_path):
    script = Path(__file__).parents[2] / "benchmarks" / "dag.py"
    done = subprocess.run(
        [sys.executable, script, "50", "--folder", tmp_path], text=True, capture_output=True, check=True
    )
    assert re.search(r"^\s*50\s", done.stdout, re.MULTILINE), done.stdout


def test_jayaraman2019_asks_for_the_jobs_that_its_file_describes(whole):
    planned = whole.planned("jayaraman2019")
    # Two data sets, two models: 1 undefended, 6 values of λ, 3 accountants × 11 ε and rdp × 11 ε in each; on CIFAR-100
    # also 44 cells of clipped batches (softmax regression) and 11 with the printed λ in each model.
    cells = 4 * (1 + 6 + 33 + 11) + 44 + 11 + 11
    attacked = 4 * (1 + 33 + 11)
    of_study = Counter({rule: count for rule, count in planned.items() if "jayaraman2019" not in rule})
    assert of_study == Counter(
        prepare_dataset=2,
        project_pca=2,
        train_target=cells,
        train_auxiliary=4,
        fit_attack=4,
        query=2 * 4,
    )
    judged = {rule: count for rule, count in planned.items() if rule.startswith("judge_jayaraman2019")}
    assert sorted(judged.values()) == [cells - attacked, attacked]
    figures = len(yaml.safe_load(next(path for path in STUDIES if "jayaraman2019" in str(path)).read_text())["figures"])
    assert sum(count for rule, count in planned.items() if rule.startswith("jayaraman2019_")) == figures + 1


def test_a_figure_of_jayaraman2019_asks_for_its_own_cells(whole):
    # CIFAR-100, MLP: the undefended model and 44 private ones, each judged as a whole.
    assert whole.planned("jayaraman2019_fig6b") == Counter(
        prepare_dataset=1,
        project_pca=1,
        train_auxiliary=1,
        fit_attack=1,
        query=2,
        train_target=45,
        judge_jayaraman2019=45,
        jayaraman2019_fig6b=1,
    )


def test_a_bare_snakemake_runs_the_quickstart(whole):
    assert whole.planned() - whole.planned("quickstart") == Counter(all=1)
    assert whole.planned() - Counter(all=1) == whole.planned("quickstart") - Counter(quickstart=1)


@pytest.mark.slow
def test_the_benchmark_of_jobs_prints_a_line_for_each_goal(tmp_path):
    script = Path(__file__).parents[2] / "benchmarks" / "jobs.py"
    command = [sys.executable, script, "--scale", "smoke", "--studies", "quickstart"]
    done = subprocess.run(command, text=True, capture_output=True, check=True)
    assert len(re.findall(r" \d[\d.]* .*≤", done.stdout)) == 5, done.stdout


def test_the_benchmark_of_requests_prints_that_no_job_needed_more_than_it_requests(finished):
    script = Path(__file__).parents[2] / "benchmarks" / "requests.py"
    done = subprocess.run(
        [sys.executable, script, "quickstart"],
        cwd=finished.folder,
        env=finished.environment,
        text=True,
        capture_output=True,
        check=True,
    )
    jobs, requested, needed, time, memory = done.stdout.splitlines()[-1].removeprefix("all").split()
    assert int(jobs) > 15
    assert float(requested) > float(needed)
    assert 0 < int(time.rstrip("%")) <= 100
    assert 0 < int(memory.rstrip("%")) <= 100
