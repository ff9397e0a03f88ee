"""What jobs cost beyond their own work: forked from the run's server, and by themselves.

    python benchmarks/jobs.py                  # the quickstart and the atlas at full scale, and planning (15 minutes)
    python benchmarks/jobs.py --scale smoke    # the same, small
    python benchmarks/jobs.py --compare        # the runs also without the server (half an hour more)

Seconds are of processor time unless the row says otherwise; those of a run are of all that it starts, Snakemake and the
server included.
"""

import argparse
import ctypes
import os
import re
import resource
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from dp_leakage.jobs import VARIABLE
from dp_leakage.jobs.server import announce
from dp_leakage.training.launcher import ENVIRONMENT

REPO = Path(__file__).parents[1]
PARTS = ("Snakefile", "config.yaml", "workflow", "profiles", "src", "envs")
PAPERS = ("jayaraman2019", "directional2023", "zhang2020", "abadi2016", "lomurno2022")
PR_SET_CHILD_SUBREAPER = 36
# A step run three times in one process: the third is its own work, imports and first uses done.
OWN = """
import runpy, sys, time
module, *arguments = sys.argv[1:]
for _ in range(3):
    sys.argv, began = [module, *arguments], time.process_time()
    sys.modules.pop(module, None)
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    seconds = time.process_time() - began
print(seconds)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", choices=["paper", "smoke"], default="paper")
    parser.add_argument("--compare", action="store_true", help="run the studies without the server too")
    parser.add_argument("--studies", nargs="*", default=["quickstart", "atlas"], choices=["quickstart", "atlas"])
    arguments = parser.parse_args()
    # The server, whose parent ends before it, comes to this process, which can then count its time.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    print(f"{'':58} {'forked':>8} {'by itself':>9} {'goal':>7}", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = copied(Path(temporary))
        os.environ.update(ENVIRONMENT, PYTHONPATH=str(folder / "src"))
        seconds, _ = run(folder, *PAPERS, "-n")
        row("snakemake -n of five papers' studies", seconds, None, "9")
        ways = (True, False) if arguments.compare else (True,)
        for study in arguments.studies:
            took = [run_study(folder, study, arguments.scale, preload) for preload in ways[::-1]][::-1]
            names = ("processor time of the run", "seconds on the clock, two cores", "job seconds, summed")
            goals = {"quickstart": ("", "90", "150"), "atlas": ("300", "", "")}[study]
            for number, (name, goal) in enumerate(zip(names, goals, strict=True)):
                row(f"{study}: {name}", *[seconds[number] for seconds in took], *[None] * (2 - len(took)), goal)
        if "quickstart" in arguments.studies:
            study = "quickstart" + ("" if arguments.scale == "paper" else f"-{arguments.scale}")
            cells = folder / "results" / study / "digits" / "mlp"
            attack = cells / "gaussian-rdp-eps=1" / "attack" / "yeom.parquet"
            figure = folder / "results" / study / "figures" / "fig_accuracy_loss.png"
            for name, file, goal in (
                ("attack yeom on the MLP", attack, "0.15"),
                ("a figure drawn again", figure, "0.3"),
            ):
                row(f"{name}: beyond its own work", *overheads(folder, file, arguments.scale), goal)


def row(name: str, forked: float, alone: float | None, goal: str) -> None:
    digits = 2 if forked < 10 else 0
    cells = ["" if seconds is None else f"{seconds:.{digits}f}" for seconds in (forked, alone)]
    print(f"{name:58} {cells[0]:>8} {cells[1]:>9} {goal and '≤ ' + goal:>7}", flush=True)


def copied(folder: Path) -> Path:
    """The repository's workflow, in a folder of its own."""
    for part in PARTS:
        copy = shutil.copytree if (REPO / part).is_dir() else shutil.copy2
        copy(REPO / part, folder / part)
    return folder


def run(folder: Path, *arguments: str) -> tuple[float, float]:
    """(processor time, time on the clock) of Snakemake and of everything that it starts."""
    before, began = children(), time.perf_counter()
    command = [sys.executable, "-m", "snakemake", *arguments]
    done = subprocess.run(command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        sys.exit(done.stdout)
    took = time.perf_counter() - began
    while True:  # what is left of the run
        try:
            os.wait()
        except ChildProcessError:
            return children() - before, took


def children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_study(folder: Path, study: str, scale: str, preload: bool) -> tuple[float, float, float]:
    """(processor time, time on the clock, processor time of its jobs by their logs) of a whole study."""
    name = study if scale == "paper" else f"{study}-{scale}"
    for place in ("results", "logs"):
        shutil.rmtree(folder / place / name, ignore_errors=True)
    seconds, clock = run(folder, study, "--cores", "2", "--config", f"scale={scale}", f"preload={preload}")
    return seconds, clock, job_seconds(folder / "logs" / name)


def overheads(folder: Path, file: Path, scale: str) -> tuple[float, float]:
    """Processor time of the job that makes a file, forked and by itself, less that of its work; medians of five."""
    target = str(file.relative_to(folder))
    command = [sys.executable, "-m", "snakemake", target, "--force", "-n", "-p", "--config", f"scale={scale}"]
    text = subprocess.run(command, cwd=folder, text=True, capture_output=True, check=True).stdout
    shell = re.findall(r"Shell command: (.* -m dp_leakage\.steps\..*)", text)[-1].rpartition(" 2> ")[0]
    # A figure's arguments lie in a file that the command writes first, in brackets: those of the last run are there.
    words = ["python", *shlex.split(shell[shell.rindex("-m dp_leakage.steps.") :].removesuffix(")"))]
    step = words[2:]
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    own = subprocess.run(
        [sys.executable, "-c", OWN, *step], cwd=folder, env=environment, text=True, capture_output=True, check=True
    )
    os.chdir(folder)
    announce(True)
    served = dict(os.environ)
    log = folder / "job.log"
    work(folder, words, served, log)  # the first starts the server, and makes it import
    forked = statistics.median(work(folder, words, served, log) for _ in range(5))
    alone = statistics.median(work(folder, words, environment, log) for _ in range(5))
    return forked - float(own.stdout), alone - float(own.stdout)


def work(folder: Path, words: list[str], environment: dict[str, str], log: Path) -> float:
    """Processor time of a job: of the process that was started and, where a fork did the work, of that by its log."""
    with log.open("w") as file:
        process = subprocess.Popen(["bash", "-c", 'exec "$0" "$@"', *words], cwd=folder, env=environment, stderr=file)
        _, status, used = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{shlex.join(words)} failed")
    seconds = used.ru_utime + used.ru_stime
    return seconds + (job_seconds(log) if VARIABLE in environment else 0)


def job_seconds(logs: Path) -> float:
    """Processor time of jobs, by the last lines of their logs: of a log, or of all below a folder."""
    files = [logs] if logs.is_file() else logs.rglob("*.log")
    return sum(
        float(number) for file in files for number in re.findall(r"\(([\d.]+) s of processor time", file.read_text())
    )


if __name__ == "__main__":
    main()
