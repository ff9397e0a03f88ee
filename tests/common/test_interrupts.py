"""Ctrl-C: no traceback, whenever it comes, and no wait for a cluster's next look at its jobs."""

import asyncio
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor

from dp_leakage.jobs.remote import end_soon

QUIET = "from dp_leakage.common.interrupts import end_quietly; end_quietly('Stopped.')\n"


def ended(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", QUIET + code], capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize(
    "code",
    [
        "raise KeyboardInterrupt",
        "import asyncio\nasync def f(): raise KeyboardInterrupt\nasyncio.run(f())",
        "try:\n    1 / 0\nfinally:\n    raise KeyboardInterrupt",
    ],
)
def test_an_interrupt_ends_a_process_with_words_and_by_the_signal(code):
    process = ended(code)
    assert process.stderr == "Stopped.\n"
    assert process.returncode == -2


@pytest.mark.parametrize(
    "code",
    [
        "import threading\ndef f(): raise KeyboardInterrupt\nt = threading.Thread(target=f); t.start(); t.join()",
        "class C:\n    def __del__(self): raise KeyboardInterrupt\nc = C(); del c",
    ],
)
def test_an_interrupt_that_python_only_mentions_is_not_mentioned(code):
    assert ended(code).stderr == ""


def test_other_errors_are_shown_as_before():
    process = ended("1 / 0")
    assert "Traceback" in process.stderr
    assert "ZeroDivisionError" in process.stderr


def test_a_step_that_is_interrupted_while_it_imports_says_nothing():
    code = "import runpy, sys, threading, _thread\nsys.argv = ['train']\n"
    code += "import dp_leakage.steps\nraise KeyboardInterrupt"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert (process.stderr, process.returncode) == ("", -2)


class Executor(RemoteExecutor):
    """The interface's own loop and shutdown, with a plugin's 180 s between two looks."""

    def __init__(self):
        common = SimpleNamespace(init_seconds_before_status_checks=0)
        self.workflow = SimpleNamespace(
            executor_plugin=SimpleNamespace(common_settings=common),
            remote_execution_settings=SimpleNamespace(immediate_submit=False, seconds_between_status_checks=180),
            scheduler=None,
        )
        self._next_seconds_between_status_checks, self._tmpdir = 180, None
        self.active_jobs, self.lock, self.wait, self.cancelled = ["7"], threading.Lock(), True, []
        self.looked = threading.Event()

    async def check_active_jobs(self, active_jobs):
        for job in active_jobs:
            self.looked.set()
            await asyncio.sleep(0)
            yield job

    def cancel_jobs(self, active_jobs):
        self.cancelled += active_jobs

    def run_job(self, job): ...

    @property
    def tmpdir(self):
        return "nowhere"

    def begin(self):
        self.wait_thread = threading.Thread(target=self._wait_thread, daemon=True)
        self.wait_thread.start()


def test_an_executor_ends_though_it_has_just_fallen_asleep():
    end_soon(Executor)
    executor = Executor()
    executor.begin()
    assert executor.looked.wait(10)
    time.sleep(1)
    started = time.monotonic()
    executor.cancel()
    assert time.monotonic() - started < 20
    assert executor.cancelled == ["7"]


LOCKED = """
import os, signal, threading, time
from dp_leakage.common.interrupts import handle_apart
lock, heard = threading.Lock(), threading.Event()
def handler(number, frame):
    with lock:
        heard.set()
signal.signal(signal.SIGTERM, handler)
handle_apart(signal.SIGTERM)
with lock:
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.1)  # the handler is called here
assert heard.wait(60)
"""


def test_a_signal_that_comes_while_its_handlers_lock_is_held_is_heard_once_that_is_free():
    """One SIGTERM in fifty hung a run: Snakemake's handler waited for the lock that the thread under it held."""
    done = subprocess.run([sys.executable, "-c", LOCKED], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
