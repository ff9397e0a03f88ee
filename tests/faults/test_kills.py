"""Kill -9 at random moments, and two runs at once: the next run ends with the same bytes and loses nothing finished."""

import os
import random
import signal
import time
from base64 import b64decode
from pathlib import Path

import pytest

pytestmark = pytest.mark.faults
KILLS = 30
SEED = 20260728
# Not prepared.npz (temporary), metrics and figures (those of all cells follow the training of the undefended one).
LASTING = ("data.npz", "target.safetensors", "models.safetensors", "shokri.safetensors")


def test_thirty_kills_of_snakemake_and_of_jobs_lose_nothing(unrun, finished):
    chance = random.Random(SEED)
    expected = finished.hashes()
    kills = 0
    while kills < KILLS:
        if unrun.hashes() == expected:  # all done: begin again with some cell, so that there is something to kill
            _forget_a_cell(unrun, chance)
        kept = _whole_files(unrun, expected)
        process = unrun.started("quickstart", "--cores", "2", "--nolock")
        time.sleep(chance.uniform(1.5, 8))
        steps = _steps(unrun.folder)
        if kills % 2 and steps:
            os.kill(chance.choice(steps), signal.SIGKILL)  # the other jobs go on: keep-going
            process.communicate(timeout=600)
        else:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            _wait_for_none(unrun.folder)
        kills += 1
        # Nothing that was whole is lost or altered.
        assert {path: unrun.hashes().get(path) for path in kept} == {path: expected[path] for path in kept}
    unrun.snakemake("quickstart", "--cores", "2", "--nolock")
    assert unrun.hashes() == expected
    assert not [path for path in unrun.results.rglob(".*") if path.suffix != ".checkpoint"]


def test_a_second_run_is_refused_while_the_first_goes_on(unrun, finished):
    first = unrun.started("quickstart", "--cores", "1")
    time.sleep(6)
    text = unrun.snakemake("quickstart", "--cores", "1", check=False)
    assert "Directory cannot be locked" in text
    text, _ = first.communicate(timeout=600)
    assert first.returncode == 0, text
    assert unrun.hashes() == finished.hashes()


def test_after_a_killed_snakemake_the_lock_says_what_to_do(unrun, finished):
    first = unrun.started("quickstart", "--cores", "1")
    time.sleep(6)
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate()
    _wait_for_none(unrun.folder)
    text = unrun.snakemake("quickstart", "--cores", "2", check=False)
    if "cannot be locked" in text:
        assert "--unlock" in text
        unrun.snakemake("--unlock")
        unrun.snakemake("quickstart", "--cores", "2")
    assert unrun.hashes() == finished.hashes()


def _forget_a_cell(workflow, chance: random.Random) -> None:
    cells = [path.parent for path in workflow.results.rglob("target.safetensors")]
    for path in chance.choice(sorted(cells)).rglob("*"):
        if path.is_file():
            path.unlink()


def _whole_files(workflow, expected: dict[str, str]) -> list[str]:
    """Files of finished jobs that nothing asks to make anew."""
    marks = workflow.folder / ".snakemake" / "incomplete"
    unfinished = {b64decode(mark.name).decode() for mark in marks.rglob("*") if mark.is_file()}
    whole = [path for path, digest in workflow.hashes().items() if digest == expected[path]]
    lasting = [path for path in whole if path.endswith(LASTING) or "/attack/" in path]
    return [path for path in lasting if str((workflow.results / path).relative_to(workflow.folder)) not in unfinished]


def _steps(folder: Path) -> list[int]:
    """Process ids of the steps that run in a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_text().split("\0")
            inside = (process / "cwd").readlink() == folder
        except OSError:
            continue
        if inside and len(words) > 2 and words[2].startswith("dp_leakage.steps."):
            found.append(int(process.name))
    return found


def _wait_for_none(folder: Path) -> None:
    """Jobs of a killed Snakemake may live on in process groups of their own."""
    for _ in range(600):
        for number in (steps := _steps(folder)):
            os.kill(number, signal.SIGKILL)
        if not steps:
            return
        time.sleep(0.1)
