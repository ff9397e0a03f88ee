"""Signals at random moments, and two runs at once: the next run ends with the same bytes and loses nothing finished.

``DP_LEAKAGE_KILL_ROUNDS=200 pytest -m faults -k signals -s`` sends 200 signals, and ``-k damage`` deletes and damages
results before each kill; ``DP_LEAKAGE_KILL_SEED=1`` makes others than those.
"""

import os
import random
import re
import shutil
import signal
import tempfile
import time
from base64 import b64decode
from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from preloaded import Runner
from workflow_copies import Workflow

pytestmark = pytest.mark.faults
KILLS = 30
SEED = 20260728
ROUNDS = int(os.environ.get("DP_LEAKAGE_KILL_ROUNDS", "12"))
ROUNDS_SEED = SEED + int(os.environ.get("DP_LEAKAGE_KILL_SEED", "0"))
# Every kind of job and of file once: the fewer there are, the more rounds.
FEWER = {
    "epsilon": [1],
    "defenses": [{"defense": "none"}, {"defense": "gaussian", "accountant": "rdp", "sampler": "poisson"}],
    "figures": dict.fromkeys(
        ("fig_accuracy_loss", "fig_leakage_yeom", "fig_leakage_shokri", "fig_leakage_attribute", "fig_spent_epsilon")
    ),
}
# Still smaller, for signals.
TINY = {
    "study": "tiny", "title": "Tiny", "seed": 1, "repeats": 2, "delta": 1e-5, "epsilon": [10],
    "datasets": {"digits": {"source": "digits", "roles": {"target_members": 200, "target_nonmembers": 200}}},
    "models": {"mlp": {"architecture": {"name": "softmax_regression"}}},
    "training": {"optimizer": "adam", "learning_rate": 0.01, "epochs": 2, "batch_size": 20},
    "defenses": [{"defense": "none"}, {"defense": "gaussian", "accountant": "rdp", "sampler": "poisson"}],
    "attacks": {"yeom": {}}, "figures": {"fig_loss": {"kind": "accuracy_loss"}},
}  # fmt: skip
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
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


def test_rounds_of_damage_and_kills_leave_nothing_missing_and_nothing_different(unrun, monkeypatch):
    """Each round some results are deleted or damaged with their old dates, a run is killed, and one runs to its end.

    What a run or ``quickstart_verify`` calls damaged is deleted, as it asks for.
    """
    _keep_one_study(unrun)
    unrun.configure(**FEWER)
    monkeypatch.setenv("PYTHONPATH", f"{unrun.folder / 'src'}:{Path(__file__).parent}")
    runner, chance = Runner(unrun.folder), random.Random(ROUNDS_SEED)
    status, text = runner.start("quickstart", "quickstart_verify", "--cores", "2").ended(timeout=1200)
    assert status == 0, text
    expected, all_files = unrun.hashes(), _files(unrun)
    for number in range(ROUNDS):
        done = [_spoil(unrun, chance) for _ in range(chance.randint(1, 4))]
        done.append(_killed_somewhere(runner, chance))
        said = _run_to_the_end(unrun, runner)
        what = f"round {number}: {done}\n{said}"
        print(what, flush=True)
        assert _files(unrun) == all_files, what
        assert unrun.hashes() == expected, what


def test_rounds_of_signals_change_no_result_and_leave_no_temporary_file(unrun, monkeypatch):
    """Each round some results are deleted, and a run gets a signal that ends it, at once or after its jobs. Every tenth
    time the next run goes to its end. What was whole is whole all the time.
    """
    _keep_one_study(unrun, yaml.safe_dump(TINY))
    monkeypatch.setenv("PYTHONPATH", f"{unrun.folder / 'src'}:{Path(__file__).parent}")
    chance = random.Random(ROUNDS_SEED)
    with tempfile.TemporaryDirectory() as temporary:  # a short path, as the socket in it needs
        runner, results = Runner(unrun.folder, temporary=Path(temporary)), Workflow(unrun.folder, "tiny")
        _end_well(runner)
        expected = results.hashes()
        assert expected
        begun = time.monotonic()
        for path in results.results.rglob("*.parquet"):
            path.unlink()
        _end_well(runner)
        usual = time.monotonic() - begun
        for number in range(ROUNDS):
            for path in chance.sample(sorted(results.hashes()), chance.randint(0, 2)):
                (results.results / path).unlink(missing_ok=True)
            what = f"round {number}: {_signaled(runner, chance, usual)}"
            print(what, flush=True)
            assert {path: expected[path] for path in _whole_files(results, expected)} == {
                path: digest for path, digest in results.hashes().items() if path in _whole_files(results, expected)
            }
            if number % 10 == 9:
                _end_well(runner)
                assert results.hashes() == expected, what
                assert list(Path(temporary).iterdir()) == [], what
        _end_well(runner)
        assert results.hashes() == expected
        assert list(Path(temporary).iterdir()) == []


def _end_well(runner: Runner) -> None:
    status, text = runner.start("tiny", "--cores", "2", "--nolock").ended(timeout=1200)
    assert status == 0, text
    assert "Traceback" not in text, text
    _wait_for_all(runner.folder)


def _wait_for_all(folder: Path) -> None:
    """The server and its jobs see that their run has ended, and end."""
    for _ in range(100):
        if not _forks(folder):
            return
        time.sleep(0.1)
    _wait_for_none(folder)


def _signaled(runner: Runner, chance: random.Random, usual: float) -> str:
    """Starts a run and sends it a signal after a while, alone or with all of its session; the words for it."""
    run, moment = runner.start("tiny", "--cores", "2", "--nolock"), chance.uniform(0, usual)
    number, send = chance.choice(SIGNALS), chance.choice([os.kill, os.killpg])
    run.process.join(moment)
    with suppress(ProcessLookupError):  # it has ended, or has no session yet
        send(run.process.pid, number)
    text = ""
    if number == signal.SIGKILL:
        run.process.join()
    else:
        _, text = run.ended(timeout=600)
    assert "Traceback" not in text, text
    _wait_for_all(runner.folder)
    return f"{signal.Signals(number).name} by {send.__name__} after {moment:.1f} s"


def _killed_somewhere(runner: Runner, chance: random.Random) -> str:
    """Starts a run and kills it, or one of its jobs, while it plans or a moment after its first job began."""
    run, jobs, moment = runner.start("quickstart", "--cores", "2", "--nolock"), [], chance.uniform(0, 3)
    planning, of_a_job = chance.random() < 0.3, chance.random() < 0.3
    while not planning and run.process.is_alive() and not jobs:
        time.sleep(0.1)
        jobs = _steps(runner.folder)
    time.sleep(moment)
    if of_a_job and (jobs := _steps(runner.folder)):
        os.kill(chance.choice(jobs), signal.SIGKILL)
        run.ended(timeout=600)
        return "a job killed"
    if run.process.is_alive():
        run.kill()
    _wait_for_none(runner.folder)
    return (
        f"killed {f'{moment:.1f} s after its beginning' if planning else f'{moment:.1f} s after its first job began'}"
    )


def _keep_one_study(workflow, text: str = "") -> None:
    """The quickstart alone, or a study ``tiny`` of this text: each is read and checked in every run."""
    studies = workflow.folder / "workflow" / "studies"
    for study in studies.iterdir():
        if study.is_dir():
            shutil.rmtree(study)
        elif text or study.name != "quickstart.yaml":
            study.unlink()
    if text:
        (studies / "tiny.yaml").write_text(text)
        (workflow.folder / "config.yaml").write_text("scale: paper\ndevice: cpu\ndata_dir: data\n")


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


def _run_to_the_end(workflow, runner: Runner) -> str:
    """Runs until a run and a check of all bytes end well, deleting what they name; what they named."""
    said = []
    while len(said) < 30:
        status, text = runner.start("quickstart", "quickstart_verify", "--cores", "2", "--nolock").ended(timeout=1200)
        assert "Traceback" not in text, text
        if status == 0:
            return "\n".join(said)
        damaged = [name for names in NAMED.findall(text) for name in names.split(", ")]
        assert damaged, text
        for name in damaged:
            (workflow.folder / name).unlink(missing_ok=True)
        said.append(str(damaged))
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
    """Files of finished jobs that nothing asks to make anew, temporary ones apart."""
    marks = workflow.folder / ".snakemake" / "incomplete"
    unfinished = {b64decode(mark.name).decode() for mark in marks.rglob("*") if mark.is_file()}
    whole = [path for path, digest in workflow.hashes().items() if digest == expected.get(path)]
    lasting = [path for path in whole if path.endswith(LASTING) or "/attack/" in path]
    return [path for path in lasting if str((workflow.results / path).relative_to(workflow.folder)) not in unfinished]


def _steps(folder: Path) -> list[int]:
    """Process ids of the steps that run in a folder."""
    return [number for number, word in _inside(folder) if word.startswith(("dp_leakage.steps.", "dp_leakage.jobs."))]


def _forks(folder: Path) -> list[int]:
    """Of the runs of a `Runner`, their servers and their jobs."""
    return [number for number, word in _inside(folder) if "multiprocessing" in word]


def _inside(folder: Path) -> list[tuple[int, str]]:
    """Processes that run in a folder: number, and what stands after ``python -m`` or ``python -c``."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_text().split("\0")
            if (process / "cwd").readlink() == folder and len(words) > 2:
                found.append((int(process.name), words[2]))
        except OSError:
            continue
    return found


def _wait_for_none(folder: Path) -> None:
    """Jobs of a killed Snakemake may live on in process groups of their own."""
    for _ in range(600):
        for number in (left := [*_steps(folder), *_forks(folder)]):
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        if not left:
            return
        time.sleep(0.1)
