"""How Snakemake's planning grows with the number of cells: processor time and memory of a dry run.

    python benchmarks/dag.py 1000 5000 20000

Cells are budgets of one model, each trained and judged by one attack (two jobs), in studies of a thousand.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

from dp_leakage.study.file import study_files

PER_STUDY = 1000  # the report of a study names its cells on one command line, which holds about 1,500
REPO = Path(__file__).parents[1]
PARTS = ("Snakefile", "config.yaml", "workflow", "profiles", "src", "envs")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cells", nargs="*", type=int, default=[1000, 5000, 20000])
    parser.add_argument("--folder", type=Path, help="where the copies of the workflow go; default: a temporary folder")
    arguments = parser.parse_args()
    print(f"{'cells':>7} {'jobs':>7} {'target':>12} {'seconds':>8} {'MB':>6}")
    with tempfile.TemporaryDirectory() as temporary:
        for cells in arguments.cells:
            folder = (arguments.folder or Path(temporary)) / str(cells)
            studies = write_studies(folder, cells)
            for name, targets in (("all", studies), ("one figure", ["many0_fig_few"])):
                jobs, seconds, megabytes = dry_run(folder, targets)
                print(f"{cells:7} {jobs:7} {name:>12} {seconds:8.1f} {megabytes:6.0f}", flush=True)


def write_studies(folder: Path, cells: int) -> list[str]:
    """A copy of the workflow with studies of so many cells together, each with a figure of three; their names."""
    folder.mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        copy = shutil.copytree if (REPO / part).is_dir() else shutil.copy2
        copy(REPO / part, folder / part)
    studies = folder / "workflow" / "studies"
    base = yaml.safe_load((studies / "quickstart.yaml").read_text())
    for path in study_files(studies):
        if path.stem != "quickstart":
            path.unlink()
    sizes = [min(PER_STUDY, cells - done) for done in range(0, cells, PER_STUDY)]
    for number, size in enumerate(sizes):
        path = studies / f"many{number}.yaml"
        path.write_text(yaml.safe_dump(study(base, path.stem, size)))
    return [f"many{number}" for number in range(len(sizes))]


def study(base: dict, name: str, cells: int) -> dict:
    """The quickstart with one model, one attack, so many cells (the undefended one among them) and one figure."""
    budgets = [1 + number / 8 for number in range(cells - 1)]
    changes = {
        "study": name,
        "models": {"mlp": base["models"]["mlp"]},
        "epsilon": budgets,
        "defenses": [{"defense": "none"}, {"defense": "gaussian", "accountant": "rdp", "sampler": "poisson"}],
        "attacks": {"yeom": {}},
        "figures": {
            "fig_few": {"kind": "accuracy_loss", "parts": ["training"], "select": {"epsilon": [None, *budgets[:2]]}}
        },
    }
    return {key: value for key, value in (base | changes).items() if key != "scales"}


def dry_run(folder: Path, targets: list[str]) -> tuple[int, float, float]:
    """(jobs, seconds of processor time, megabytes) of ``snakemake -n``."""
    process = subprocess.Popen(
        [sys.executable, "-m", "snakemake", *targets, "-n", "--quiet", "rules"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder / "src")},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    text = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = status
    if status:
        sys.exit(text)
    total = [line for line in text.splitlines() if line.startswith("total ")]
    return int(total[0].split()[1]), used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


if __name__ == "__main__":
    main()
