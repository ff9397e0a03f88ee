"""Which Python runs the jobs: the one that runs Snakemake, unless conda is to bring its own."""

import os
import subprocess
import sys

DATA = "results/quickstart-smoke/digits/data.npz"
CONDA = """#!/bin/sh
case "$*" in
  "info --json") echo '{"conda_prefix": "/opt/conda", "platform": "linux-64", "conda_version": "25.1.0"}';;
  *"channel_priority"*) echo '{"get": {"channel_priority": "strict"}}';;
  *"version"*) echo "conda 25.1.0";;
esac
"""


def executable(path, text):
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def snakemake(workflow, *arguments, path):
    return subprocess.run(
        [sys.executable, "-m", "snakemake", *arguments],
        cwd=workflow.folder,
        env=os.environ | {"PYTHONPATH": str(workflow.folder / "src"), "PATH": f"{path}:/usr/bin:/bin"},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def test_jobs_run_in_the_interpreter_that_runs_snakemake_whatever_python_is_on_path(unrun, tmp_path):
    for name in ("python", "python3"):
        executable(tmp_path / "bin" / name, "#!/bin/sh\necho 'No module named dp_leakage' >&2; exit 1\n")
    done = snakemake(unrun, DATA, "--cores", "1", path=tmp_path / "bin")
    assert done.returncode == 0, done.stdout
    assert (unrun.folder / DATA).exists()


def test_under_conda_jobs_run_the_python_of_their_environment(unrun, tmp_path):
    executable(tmp_path / "bin" / "conda", CONDA)
    done = snakemake(unrun, DATA, "-n", "-p", "--sdm", "conda", path=tmp_path / "bin")
    assert done.returncode == 0, done.stdout
    commands = [line for line in done.stdout.splitlines() if "-m dp_leakage.steps." in line]
    assert len(commands) == 2
    assert all("Shell command: python -m" in line for line in commands), commands
