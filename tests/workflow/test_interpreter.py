"""Which Python runs the jobs: that of Snakemake, of the image under apptainer, of the environment under conda."""

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

IMAGE = os.environ.get("DP_LEAKAGE_IMAGE")  # built from this commit's Containerfile
DATA = "results/quickstart-smoke/digits/data.npz"
APPTAINER = """#!/bin/sh
[ "$*" = --version ] && echo "apptainer version 1.3.4" && exit
echo "$*" >> {calls}
export PATH={inside}:/usr/bin:/bin  # an image has its own
while [ "$1" != -c ]; do shift; done
exec bash -c "$2"
"""
# Stand-ins for SLURM's commands: a submission runs at once.
SLURM = {
    "sbatch": 'for last; do :; done; bash -c "${last#--wrap=}" > submission.log 2>&1; echo 7',
    "srun": 'while case "$1" in -*) ;; *) break ;; esac; do shift; done; exec "$@"',
    "squeue": "echo '7|COMPLETED'",
    "scontrol": "echo 'MinJobAge = 300 sec'",
    **dict.fromkeys(("scancel", "sacct", "sacctmgr", "sshare"), "exit 0"),
}
ON_SLURM = (
    *("--workflow-profile", "profiles/slurm", "--default-resources", "slurm_account=x", "slurm_partition=x"),
    *("--slurm-init-seconds-before-status-checks", "1"),
)


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


@pytest.fixture
def image(tmp_path):
    """A function that returns what was called: images, and Python in one. Its ``python`` is found in an image alone."""
    calls, inside = tmp_path / "calls", tmp_path / "inside"
    executable(inside / "python", f'#!/bin/sh\necho python $* >> {calls}\nexec {sys.executable} "$@"\n')
    executable(tmp_path / "bin" / "apptainer", APPTAINER.format(calls=calls, inside=inside))
    (tmp_path / "our.sif").touch()
    return lambda: calls.read_text().splitlines()


@pytest.mark.parametrize("where", [("--cores", "1"), ON_SLURM], ids=["here", "slurm"])
def test_under_apptainer_jobs_run_the_python_of_the_image_that_the_config_names(unrun, tmp_path, image, where):
    for name, words in SLURM.items():
        executable(tmp_path / "bin" / name, f"#!/bin/sh\n{words}\n")
    container = ("--sdm", "apptainer", "--config", f"container={tmp_path}/our.sif")
    done = snakemake(unrun, DATA, *where, *container, path=tmp_path / "bin")
    assert done.returncode == 0, done.stdout
    assert (unrun.folder / DATA).exists()
    assert (unrun.folder / "submission.log").exists() == (where == ON_SLURM)
    assert len([line for line in image() if line.startswith("exec ") and f" {tmp_path}/our.sif " in line]) == 2
    assert len([line for line in image() if line.startswith("python -m dp_leakage.steps.")]) == 2


@pytest.mark.study
@pytest.mark.skipif(not (IMAGE and shutil.which("apptainer")), reason="DP_LEAKAGE_IMAGE is not set, or no apptainer")
def test_in_a_real_image_the_small_study_has_the_same_results(unrun, finished, monkeypatch):
    """The headers of npz files also hold which Python wrote them."""
    monkeypatch.setenv("APPTAINERENV_PYTHONPATH", "")  # the image has its own package, of this commit
    unrun.run("--sdm", "apptainer", "--config", f"container={IMAGE}")
    made, expected = unrun.hashes(), finished.hashes()
    assert made.keys() == expected.keys()
    for path in made:
        if path.endswith(".npz"):
            ours, theirs = (dict(np.load(own.results / path)) for own in (unrun, finished))
            assert ours.keys() == theirs.keys()
            assert all(np.array_equal(ours[name], theirs[name]) for name in ours), path
        else:
            assert made[path] == expected[path], path


def test_without_apptainer_no_image_is_looked_for(unrun, tmp_path):
    executable(tmp_path / "bin" / "apptainer", "#!/bin/sh\nexit 1\n")
    done = snakemake(unrun, DATA, "-n", "--config", "container=no_such.sif", path=tmp_path / "bin")
    assert done.returncode == 0, done.stdout


# A stand-in for conda, as Snakemake asks it: an environment is a venv that sees our packages, but neither the project
# nor what the user's PYTHONPATH holds; each start of its Python is noted.
CONDA = """#!/bin/bash
echo "conda $*" >> {base}/calls
case "$1 $2" in
  "info --json") echo '{{"conda_prefix": "{base}", "platform": "linux-64"}}' ;;
  "--version "*) echo "conda 25.9.1" ;;
  "config --get") echo '{{"get": {{"channel_priority": "strict"}}}}' ;;
  "env create")
    while [ $# -gt 1 ]; do case "$1" in --file) file=$2 ;; --prefix) prefix=$2 ;; esac; shift; done
    {python} -m venv --without-pip "$prefix"
    cp "$file" {base}/asked.yaml
    for packages in "$prefix"/lib/python*/site-packages; do
      echo {packages} > "$packages/ours.pth"
      echo 'import sys; print("python", *sys.orig_argv[1:], file=open("{base}/calls", "a"))' >> "$packages/ours.pth"
    done ;;
esac
"""


@pytest.fixture
def conda(tmp_path):
    """A function that returns what was called: conda, and the Python of an environment."""
    base = tmp_path / "conda"
    base.mkdir()
    packages = os.path.dirname(os.path.dirname(np.__file__))
    executable(tmp_path / "bin" / "conda", CONDA.format(base=base, python=sys.executable, packages=packages))
    executable(base / "bin" / "activate", 'export PATH="$1/bin:$PATH"\n')
    return lambda: (base / "calls").read_text().splitlines()


def test_under_conda_jobs_run_in_the_environment_of_the_pinned_versions(unrun, finished, tmp_path, conda):
    command = (DATA, "--cores", "1", "--sdm", "conda")
    done = snakemake(unrun, *command, path=tmp_path / "bin")
    assert done.returncode == 0, done.stdout
    assert len([line for line in conda() if line.startswith("conda env create")]) == 1
    assert (tmp_path / "conda" / "asked.yaml").read_bytes() == (unrun.folder / "envs" / "jobs.yaml").read_bytes()
    # A set, since Python reads a venv's .pth files twice.
    assert len({line for line in conda() if line.startswith("python -m dp_leakage.steps.")}) == 2
    assert (unrun.folder / DATA).read_bytes() == (finished.folder / DATA).read_bytes()
    assert "Nothing to be done" in snakemake(unrun, *command, path=tmp_path / "bin").stdout
    without = snakemake(unrun, DATA, "-n", path=tmp_path / "bin").stdout
    assert "project_pca" in without  # going from an environment to none runs everything again
    with (unrun.folder / "envs" / "jobs.yaml").open("a") as pins:
        pins.write("    - one-more==1.0\n")
    again = snakemake(unrun, *command, path=tmp_path / "bin")
    assert again.returncode == 0, again.stdout
    assert len([line for line in conda() if "env create" in line]) == 2


def test_sdm_conda_without_conda_says_so(unrun, tmp_path):
    assert (
        "Is conda installed" in snakemake(unrun, DATA, "--cores", "1", "--sdm", "conda", path=tmp_path / "bin").stdout
    )
