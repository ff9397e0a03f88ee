"""A job's command by hand: what is asked for, and what is printed."""

import os
import subprocess
import sys

import pytest

from dp_leakage.common.errors import UserError
from dp_leakage.steps.__main__ import by_hand, command_in, run_by_hand, under_debugger, wanted

QUERY = "python -m dp_leakage.steps.query --data 'a b.npz' --signals x.npz"


@pytest.mark.parametrize(
    ("study", "asked", "target", "config"),
    [
        ("quickstart", "fig_pareto", "quickstart_fig_pareto", []),
        ("quickstart", "quickstart_fig_pareto", "quickstart_fig_pareto", []),
        ("quickstart-smoke", "report", "quickstart_report", ["scale=smoke"]),
        ("mine", "digits/data.npz", "results/mine/digits/data.npz", []),
        ("mine-small", "results/mine-small/digits/data.npz", "results/mine-small/digits/data.npz", ["scale=small"]),
    ],
)
def test_a_figure_a_report_or_a_file_is_found_by_its_short_name_too(study, asked, target, config):
    assert wanted(study, asked) == (target, config)


@pytest.mark.parametrize("asked", ["quickstart", "audit", "quickstart_audit"])
def test_what_many_jobs_make_is_refused(asked, capsys):
    with pytest.raises(UserError, match="many jobs"):
        wanted("quickstart", asked)
    assert run_by_hand(["show", "quickstart", asked]) == 1
    assert capsys.readouterr().err.startswith("error: target")


def test_the_last_command_of_a_plan_is_the_one_asked_for():
    assert command_in(f"Job 1: before\nShell command: first \nJob 0: it\nShell command: {QUERY} \n\n") == QUERY
    with pytest.raises(UserError, match="plans no job"):
        command_in("Nothing to be done")


def test_the_command_keeps_its_words_and_its_log_goes_to_the_terminal():
    assert by_hand(f"{QUERY} 2> 'logs/a b/query.log'", {}) == f"({QUERY})"
    shown = by_hand(f"{QUERY} 2> logs/query.log", {"PATH": "/venv/bin:/usr/bin", "DP_LEAKAGE_DEVICE": "a b"})
    assert shown == f"(export DP_LEAKAGE_DEVICE='a b' PATH=/venv/bin:\"$PATH\"; {QUERY})"


def test_the_debugger_gets_the_step_and_not_the_shell_around_it():
    assert under_debugger(f"(mkdir -p logs; {QUERY})") == f"(mkdir -p logs; {QUERY.replace('-m', '-m pdb -m', 1)})"


def test_a_printed_command_makes_its_file_and_pdb_stops_before_its_first_line(unrun):
    def show(*arguments: str, **options: str) -> str:
        command = [
            sys.executable,
            "-m",
            "dp_leakage.steps",
            "show",
            "quickstart-smoke",
            "digits/prepared.npz",
            *arguments,
        ]
        environment = os.environ | {"PYTHONPATH": str(unrun.folder / "src")}
        done = subprocess.run(
            command, cwd=unrun.folder, env=environment, capture_output=True, text=True, check=False, **options
        )
        return done.stdout

    subprocess.run(["bash", "-c", show()], cwd=unrun.folder, check=True)
    assert (unrun.folder / "results/quickstart-smoke/digits/prepared.npz").exists()
    assert "(Pdb)" in show("--pdb", input="quit\n")
