"""Kill -9 at random moments, and two runs at once: the next run ends with the same bytes and loses nothing finished.

Results are deleted and damaged before each kill too: ``DP_LEAKAGE_KILL_ROUNDS=200 pytest -m faults -k rounds``.
"""

import os
import random
import re
import signal
import time
from base64 import b64decode
from pathlib import Path

import pytest

pytestmark = pytest.mark.faults
KILLS = 30
SEED = 20260728
ROUNDS = int(os.environ.get("DP_LEAKAGE_KILL_ROUNDS", "12"))
NAMED = re.compile(
    r"error: (results/\S+?(?:, results/\S+?)*)(?: and \d+ more)?(?:, each)? (?:is damaged|does not hold|was made by)"
)
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


def test_rounds_of_damage_and_kills_leave_nothing_missing_and_nothing_different(workflow, finished):
    """Each round some results are deleted or damaged with their old dates, a run is killed, and one runs to its end.

    What a run or ``quickstart_verify`` calls damaged is deleted, as it asks for.
    """
    chance = random.Random(SEED)
    expected, all_files = finished.hashes(), _files(finished)
    for number in range(ROUNDS):
        done = [_spoil(workflow, chance) for _ in range(chance.randint(1, 4))]
        process = workflow.started("quickstart", "--cores", "2", "--nolock")
        time.sleep(chance.uniform(0.3, 5))
        running = _steps(workflow.folder)
        if number % 3 == 0 and running:
            os.kill(chance.choice(running), signal.SIGKILL)
            process.communicate(timeout=600)
        else:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            _wait_for_none(workflow.folder)
        said = _run_to_the_end(workflow)
        what = f"round {number}: {done}\n{said}"
        assert _files(workflow) == all_files, what
        assert workflow.hashes() == expected, what


def _spoil(workflow, chance: random.Random) -> str:
    """Deletes or damages some of the results; the words for it."""
    files = sorted(path for path in workflow.results.rglob("*") if path.is_file() and path.suffix != ".tsv")
    if not files:
        return "nothing is left"
    path, how = chance.choice(files), chance.choice(["delete", "delete", "folder", "cut", "flip", "empty"])
    content, stat = path.read_bytes(), path.stat()
    if how == "delete":
        path.unlink()
    elif how == "folder":
        for other in path.parent.rglob("*"):
            if other.is_file():
                other.unlink()
    else:
        changed = bytearray(content[: len(content) // 2] if how == "cut" else content if how == "flip" else b"")
        if how == "flip" and path.suffix in (".safetensors", ".parquet", ".npz", ".csv"):
            changed[len(changed) // 2] ^= 1
        path.write_bytes(changed)
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    return f"{how} {path.relative_to(workflow.results)}"


def _run_to_the_end(workflow) -> str:
    """Runs until a run and a check of all bytes end well, deleting what they name; what they named."""
    said = []
    while len(said) < 30:
        for target in ("quickstart", "quickstart_verify"):
            process = workflow.started(target, "--cores", "2", "--nolock")
            text, _ = process.communicate(timeout=1200)
            assert "Traceback" not in text, text
            if process.returncode:
                break
        else:
            return "\n".join(said)
        damaged = [name for names in NAMED.findall(text) for name in names.split(", ")]
        assert damaged, text
        for name in damaged:
            (workflow.folder / name).unlink(missing_ok=True)
        said.append(f"{target}: {damaged}")
    raise AssertionError("\n".join(said))


def _files(workflow) -> set[str]:
    return {
        str(path.relative_to(workflow.results))
        for path in workflow.results.rglob("*")
        if path.is_file() and path.suffix != ".tsv" and not path.name.startswith(".")
    }


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
        if inside and len(words) > 2 and words[2].startswith(("dp_leakage.steps.", "dp_leakage.jobs.")):
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
