"""Foreign code in a child process: it ends in arrays or in one sentence, and takes nothing of this process with it."""

import os
import resource
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from dp_leakage.common.apart import GIB, Limits, apart
from dp_leakage.common.errors import UserError


def results(work, **limits):
    return list(apart("it", work, Limits(**limits)))


def complaint(work, **limits):
    with pytest.raises(UserError) as found:
        results(work, **limits)
    return str(found.value)


def test_arrays_come_back_as_they_are_in_their_order():
    given = [
        {"a": np.arange(5), "b": np.array("text"), "c": np.array(True)},
        {},
        {"a": np.full((3, 0, 2), 1.5, np.float32)},
        {"large": np.arange(10**6)},
    ]
    found = results(lambda: iter(given))
    assert [list(one) for one in found] == [list(one) for one in given]
    for ours, theirs in zip(given, found, strict=True):
        for name, array in ours.items():
            np.testing.assert_array_equal(theirs[name], array)
            assert theirs[name].dtype == array.dtype


def test_each_result_comes_before_the_next_is_made(tmp_path):
    def work():
        for number in range(3):
            (tmp_path / str(number)).touch()
            yield {"n": np.array(number)}
            while not (tmp_path / f"{number} seen").exists():
                time.sleep(0.01)

    for number, found in enumerate(apart("it", work, Limits(seconds=60))):
        assert found["n"] == number
        assert not (tmp_path / str(number + 1)).exists()
        (tmp_path / f"{number} seen").touch()


def raises(error):
    def work():
        raise error
        yield

    return work


class Mute(BaseException):
    def __str__(self):
        os._exit(3)


@pytest.mark.parametrize(
    ("work", "words"),
    [
        (raises(UserError("key 'x' is 5; expected 6")), "key 'x' is 5; expected 6"),
        (raises(KeyError("a\nb")), "it: KeyError: 'a\\nb'"),
        (raises(SystemExit(0)), "it: SystemExit: 0"),
        (raises(KeyboardInterrupt()), "it: KeyboardInterrupt"),
        (raises(GeneratorExit()), "it: GeneratorExit"),
        (raises(RecursionError()), "it: RecursionError"),
        (raises(Mute()), "it ended its process (exit status 3)"),
        (lambda: os._exit(0), "it ended its process (exit status 0); return, or raise an error"),
        (lambda: os.kill(os.getpid(), signal.SIGTERM), "it was ended by the signal SIGTERM"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "it was ended by the signal SIGKILL (out of memory?)"),
        (lambda: iter([{"a": np.array([object()])}]), "it: ValueError"),
        (lambda: 5, "it: TypeError"),
    ],
)  # fmt: skip
def test_every_other_end_is_one_sentence(work, words):
    assert complaint(work).startswith(words)


def test_a_process_that_closed_all_its_files_is_not_waited_for():
    def work():
        os.closerange(0, 256)
        yield {}

    assert "it ended its process" in complaint(work) or "it closed" in complaint(work)


def test_time_is_limited_and_what_the_work_started_ends_too(tmp_path):
    def work():
        if os.fork() == 0:
            (tmp_path / "child").write_text(str(os.getpid()))
            time.sleep(600)
        time.sleep(600)
        yield {}

    assert complaint(work, seconds=0.5) == "it takes more than 0.5 s, and was stopped"
    pid = int((tmp_path / "child").read_text())
    for _ in range(100):
        if not Path(f"/proc/{pid}").exists() or ") Z" in Path(f"/proc/{pid}/stat").read_text():
            break
        time.sleep(0.05)
    else:
        raise AssertionError("still there")


def test_a_child_of_the_work_that_holds_the_pipe_does_not_hold_us():
    def work():
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)

    assert "ended its process (exit status 0)" in complaint(work, seconds=30)


def test_memory_is_limited():
    words = "it takes more than 0.25 GiB of memory, and was stopped"
    assert complaint(lambda: iter([{"a": np.ones(GIB)}]), memory=GIB // 4) == words
    assert results(lambda: iter([{"a": np.ones(GIB // 80)}]), memory=GIB)[0]["a"].sum() == GIB // 80


def test_work_that_forks_and_goes_on_in_both_processes_gives_its_results_once(tmp_path):
    def work():
        for number in range(8):
            os.fork()
            with (tmp_path / "calls").open("a") as file:
                file.write("x")
            yield {"n": np.array(number)}

    assert [int(found["n"]) for found in results(work, seconds=60)] == list(range(8))
    assert len((tmp_path / "calls").read_text()) <= 16


def test_this_process_stays_as_it_was():
    state, folder = np.geterr(), Path.cwd()

    def work():
        np.seterr(all="raise")
        os.chdir("/")
        os.environ["APART"] = "1"
        yield {}

    results(work)
    assert (np.geterr(), Path.cwd(), "APART" in os.environ) == (state, folder, False)


def test_a_result_that_nobody_asks_for_ends_the_process():
    found = apart("it", lambda: ({"n": np.array(os.getpid())} for _ in iter(int, 1)), Limits(seconds=60))
    pid = int(next(found)["n"])
    found.close()
    assert not Path(f"/proc/{pid}").exists()


def test_a_daemon_that_leaves_the_group_ends_with_the_work(tmp_path):
    written = tmp_path / "pid"

    def work():
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                written.write_text(str(os.getpid()))
                time.sleep(600)
            os._exit(0)
        while not (written.exists() and written.read_text()):
            time.sleep(0.01)
        yield {}

    results(work)
    with pytest.raises(ProcessLookupError):
        os.kill(int(written.read_text()), 0)


@pytest.mark.parametrize("junk", [b"X", b"R"])
def test_work_that_writes_into_files_of_others_is_named(junk):
    def work():
        os.write(sys._getframe(1).f_locals["pipe"], junk * 100)
        yield {}

    with pytest.raises(UserError, match="wrote into the files of its process"):
        results(work)


def test_a_hard_limit_of_this_process_is_kept():
    def limited():
        resource.setrlimit(resource.RLIMIT_AS, (8 * GIB, 8 * GIB))
        yield from results(lambda: iter([{"n": np.array(1)}]), memory=64 * GIB)

    (found,) = results(limited)
    assert found["n"] == 1
