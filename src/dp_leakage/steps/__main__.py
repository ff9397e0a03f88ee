"""Runs one job by hand: prints its exact command, or starts it under Python's debugger.

    python -m dp_leakage.steps show STUDY TARGET-OR-FILE [--pdb] [--config key=value …]

STUDY is the name of a study's folder in ``results/`` (``quickstart``, ``quickstart-smoke``), TARGET one of its figures
or its report, and FILE any file of its results.
"""

import contextlib
import io
import os
import re
import runpy
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from dp_leakage.common.arguments import Parser
from dp_leakage.common.errors import UserError
from dp_leakage.engines import OPACUS
from dp_leakage.jobs import CODE, RUN, STATE, VARIABLE
from dp_leakage.study.paths import STUDY

COMMAND = "Shell command: "  # Snakemake's words before a command


def wanted(study: str, asked: str) -> tuple[str, list[str]]:
    """Return Snakemake's name of the target, and the config that it needs.

    >>> wanted("quickstart-smoke", "fig_pareto")
    ('quickstart_fig_pareto', ['scale=smoke'])
    >>> wanted("quickstart-smoke-opacus", "report")
    ('quickstart_report', ['scale=smoke', 'engine=opacus'])
    >>> wanted("quickstart", "digits/mlp/none/metrics.parquet")
    ('results/quickstart/digits/mlp/none/metrics.parquet', [])

    Raises:
        UserError: many jobs make the target.
    """
    name, *parts = study.split("-")
    config = [f"{'engine' if part == OPACUS else 'scale'}={part}" for part in parts]
    folder = STUDY.format(study=study)
    if "/" in asked or "." in asked:
        return (asked if asked.startswith(f"{folder}/") else f"{folder}/{asked}"), config
    part = asked.removeprefix(f"{name}_")
    if part in (name, "audit"):
        raise UserError(f"target '{asked}' is made by many jobs; expected a figure, 'report', 'verify' or a file")
    return f"{name}_{part}", config


def command_in(plan: str) -> str:
    """Return the command of a plan's last job. Raises UserError if there is none."""
    commands = [line.removeprefix(COMMAND) for line in plan.splitlines() if line.startswith(COMMAND)]
    if not commands:
        raise UserError("Snakemake plans no job for it; `snakemake -n` says why")
    return commands[-1].strip()


def by_hand(command: str, changed: dict[str, str]) -> str:
    """Return the command, ready to paste into a shell: with a job's environment, and output to the terminal.

    >>> by_hand("python -m dp_leakage.steps.query --data a 2> logs/mine/query.log", {"OMP_NUM_THREADS": "1"})
    '(export OMP_NUM_THREADS=1; python -m dp_leakage.steps.query --data a)'
    >>> by_hand("(printf x > logs/a.arguments && python -m dp_leakage.steps.report @logs/a.arguments) 2> logs/a", {})
    '(mkdir -p logs; (printf x > logs/a.arguments && python -m dp_leakage.steps.report @logs/a.arguments))'
    """
    shown = re.sub(r"\s*2> ('[^']*'|\S+)$", "", command)
    written = re.search(r" > (\S+)\.arguments && ", shown)
    said = " ".join(f"{name}={_quoted(name, value)}" for name, value in sorted(changed.items()))
    before = [f"export {said}"] if said else []
    before += [f"mkdir -p {shlex.quote(str(Path(written[1]).parent))}"] if written else []
    return f"({'; '.join([*before, shown])})"


def _quoted(name: str, value: str) -> str:
    """Return a variable's value for a shell. For PATH only the first folder changes, since the rest is
    the user's own.
    """
    return f'{shlex.quote(value.partition(os.pathsep)[0])}:"$PATH"' if name == "PATH" else shlex.quote(value)


def under_debugger(command: str) -> str:
    """Return the command with the step under ``pdb``."""
    return command.replace("python -m dp_leakage.", "python -m pdb -m dp_leakage.")


def planned(target: str, config: list[str]) -> tuple[str, dict[str, str]]:
    """Return Snakemake's printed plan of a target, and its changes to the environment of jobs.

    Raises:
        UserError: Snakemake refuses; its own message went to the terminal.
    """
    before, said = dict(os.environ), io.StringIO()
    sys.argv = ["snakemake", target, "--dry-run", "--force", "--printshellcmds"]
    sys.argv += ["--config", *config] if config else []
    status: object = 0
    with contextlib.redirect_stdout(said):
        try:
            runpy.run_module("snakemake", run_name="__main__", alter_sys=True)
        except SystemExit as end:
            status = end.code
    if status:
        raise UserError(f"Snakemake cannot plan {target}")
    for name in (CODE, RUN, STATE, VARIABLE):  # by hand, a step runs whatever its code is by then, and by itself
        os.environ.pop(name, None)
    return said.getvalue(), {name: value for name, value in os.environ.items() if before.get(name) != value}


def run_by_hand(arguments: list[str]) -> int:
    """Print or debug the command of one job; return the exit status."""
    parser = Parser(prog="python -m dp_leakage.steps", description=(__doc__ or "").partition("\n")[0])
    show = parser.add_subparsers(required=True, parser_class=Parser).add_parser("show", help="print a job's command")
    show.add_argument("study", help="as it is called in results/, such as quickstart or quickstart-smoke")
    show.add_argument("asked", metavar="TARGET-OR-FILE", help="a figure, the report, or a file of the results")
    show.add_argument("--pdb", action="store_true", help="start the job under Python's debugger")
    show.add_argument("--config", nargs="*", default=[], help="as for snakemake")
    given = parser.parse_args(arguments)
    try:
        target, config = wanted(given.study, given.asked)
        plan, changed = planned(target, [*config, *given.config])
        command = by_hand(command_in(plan), changed)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if not given.pdb:
        print(command)
        return 0
    with tempfile.NamedTemporaryFile("w", suffix=".sh", encoding="utf-8") as script:  # longer than an argument can be
        script.write(under_debugger(command))
        script.flush()
        return subprocess.run(["bash", script.name], check=False).returncode


if __name__ == "__main__":
    sys.exit(run_by_hand(sys.argv[1:]))
