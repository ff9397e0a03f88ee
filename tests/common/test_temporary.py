"""Temporary files of a process lie in one folder, and go with it: at its end, or as the next one begins."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

OWN = """
import os, subprocess, sys, tempfile
from dp_leakage.common.temporary import own_folder
folder = own_folder()
assert own_folder() == folder
tempfile.mkdtemp()
subprocess.run([sys.executable, "-c", "import tempfile; tempfile.mkdtemp()"], check=True)
print(len(list(folder.iterdir())), flush=True)
"""


def started(place: Path, then: str) -> subprocess.Popen[str]:
    """A process that has a folder of its own there, with two folders in it, and then does something."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen([sys.executable, "-c", OWN + then], env=os.environ | {"TMPDIR": str(place)}, **pipes)
    assert process.stdout is not None
    assert process.stdout.readline() == "3\n"  # and the mark
    return process


@pytest.mark.parametrize("then", ["", "1 / 0", "sys.exit(3)"])
def test_nothing_is_left_when_a_process_ends(tmp_path, then):
    started(tmp_path, then).wait()
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_leaves_is_removed_by_the_next_and_what_lives_stays(tmp_path):
    (tmp_path / "dp_leakage-foreign").mkdir()
    (tmp_path / "dp_leakage-0--1").touch()
    killed, living = (started(tmp_path, "sys.stdin.read()") for _ in range(2))
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    started(tmp_path, "").wait()
    left = {path.name for path in tmp_path.iterdir()} - {"dp_leakage-foreign", "dp_leakage-0--1"}
    assert len(left) == 1
    living.kill()
    living.wait()
    assert len(list((tmp_path / left.pop()).iterdir())) == 3


def test_a_fork_does_not_take_the_folder_with_it(tmp_path):
    process = started(tmp_path, "os.fork() or sys.exit()\nos.wait()\nprint(folder.exists(), flush=True)")
    assert process.communicate()[0] == "True\n"
    assert list(tmp_path.iterdir()) == []
