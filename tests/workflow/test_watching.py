"""What a run prints on a terminal and in a file: one line or few, and errors whole."""

import fcntl
import logging
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from types import SimpleNamespace

import pytest

from snakemake_logger_plugin_dp_leakage import LogHandler, last_errors

JOBS = 60
# A small DAG of real jobs beside the workflow's own; one job can fail.
RULES = f"""

rule small:
    output: "small/{{number}}.txt"
    message: "Count to {{wildcards.number}}"
    shell: "sleep 0.02; echo {{wildcards.number}} > {{output}}"


rule broken:
    output: "broken.txt"
    log: "logs/broken.log"
    message: "Break"
    shell: "(echo 'error: the first sentence'; echo 'and the last one'; exit 3) > {{log}}"


rule smalls:
    input: expand("small/{{number}}.txt", number=range({JOBS}))


rule smalls_and_broken:
    input: "broken.txt", rules.smalls.input
"""
COUNTS = f"{JOBS + 1} of {JOBS + 1} jobs done in "


@pytest.fixture
def small(whole):
    whole.edit("workflow/Snakefile", "RULES = ", f"{RULES}\n\nRULES = ")
    return whole


def on_terminal(workflow, *arguments, columns=60):
    """What a terminal is sent, and the exit status."""
    own, other = pty.openpty()
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "snakemake", *arguments],
        cwd=workflow.folder,
        env=os.environ | {"PYTHONPATH": str(workflow.folder / "src"), "TERM": "xterm"},
        stdin=subprocess.DEVNULL,
        stdout=other,
        stderr=other,
        start_new_session=True,
    )
    os.close(other)
    text = b""
    try:
        while piece := os.read(own, 65536):
            text += piece
    except OSError:  # the other side is closed
        pass
    os.close(own)
    return text.decode(), process.wait(60)


def screen(text):
    """The lines that stay on a terminal, without colors."""
    text = re.sub(r"\x1b\[\d*m", "", text).replace("\r\n", "\n")
    return [line.rpartition("\r\x1b[K")[2] for line in text.split("\n")]


def test_a_terminal_shows_one_line_that_is_redrawn(small):
    text, status = on_terminal(small, "smalls", "--cores", "2")
    assert status == 0, text
    drawn = re.findall(r"\r\x1b\[K([^\r\n\x1b]+)", text)
    assert len(drawn) > 3
    assert any(re.match(rf"\d+ of {JOBS + 1} jobs · Count to \d+", line) for line in drawn), drawn
    assert max(map(len, drawn)) < 60
    lines = screen(text)
    assert lines[-2].startswith(COUNTS)
    assert lines[-1] == ""
    assert not any("Count to" in line or "Finished jobid" in line for line in lines)
    assert len(lines) < 12


def test_a_file_gets_few_lines_and_none_is_redrawn(small):
    text = small.snakemake("smalls", "--cores", "2")
    assert "\x1b" not in text
    assert "\r" not in text
    lines = text.splitlines()
    assert lines[-1].startswith(COUNTS)
    told = [line for line in lines if re.match(rf"\d\d:\d\d:\d\d \d+ of {JOBS + 1} jobs", line)]
    assert 8 <= len(told) <= 10, text
    assert len(lines) < 20
    assert f"\n{JOBS + 1} jobs to do; what Snakemake says of each: .snakemake/log/" in text
    (log,) = re.findall(r"\.snakemake/log/\S+", text)
    whole = (small.folder / log).read_text()
    assert all(f"Count to {number}\n" in whole for number in range(JOBS))
    assert f"{JOBS + 1} of {JOBS + 1} steps (100%) done" in whole


def test_an_error_is_whole_on_a_terminal_and_in_a_file(small):
    target = ("smalls_and_broken", "--cores", "2")
    on_screen, status = on_terminal(small, *target)
    shutil.rmtree(small.folder / "small")
    in_file = small.snakemake(*target, check=False)
    assert status == 1
    for text in ("\n".join(screen(on_screen)), in_file):
        assert "Error in rule broken:" in text
        assert "exit 3" not in text  # the command, which may be long
        assert "\nerror: the first sentence\nand the last one\n" in text
        assert re.search(rf"^{JOBS} of {JOBS + 2} jobs done in .*; 1 failed\.$", text, re.MULTILINE), text
        end = text[text.index("1 failed.") :]  # after which Snakemake's own last words may come first or last
        assert end.startswith("1 failed.\nerror: the first sentence\nand the last one\n")
        assert "A job failed: its message is above and in its log under logs/." in end


def test_a_run_that_is_stopped_says_that_it_was_and_not_that_a_job_failed(small):
    """Ctrl-C reaches jobs too: they were shown as failures, under "A job failed"."""
    small.edit("workflow/Snakefile", "sleep 0.02", "touch begun; sleep 60")
    process = subprocess.Popen(
        [sys.executable, "-m", "snakemake", "smalls", "--cores", "2"],
        cwd=small.folder,
        env=os.environ | {"PYTHONPATH": str(small.folder / "src")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while not (small.folder / "begun").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)
    text, _ = process.communicate(timeout=60)
    assert process.returncode not in (0, None)
    assert re.search(rf"^0 of {JOBS + 1} jobs done in [^;]+\.$", text, re.MULTILINE), text
    assert text.rstrip().endswith("Stopped. Run the same command again: what is finished stays."), text
    assert "rror" not in text
    assert "failed" not in text


def test_of_many_errors_a_run_ends_with_a_few_each_once(tmp_path):
    logs = [tmp_path / f"{number}.log" for number in range(9)]
    for number, log in enumerate(logs[1:]):
        log.write_text(f"12:00:00 epoch 1 of 2\n12:00:01 error: sentence {number // 2 if number < 4 else number}\n")
    assert last_errors(logs) == [f"error: sentence {number}" for number in (0, 1, 4, 5, 6)] + ["and 1 more"]
    (tmp_path / "killed.log").write_text("12:00:00 epoch 1 of 2\n")
    assert last_errors([tmp_path / "killed.log"]) == []


def test_all_that_snakemake_says_is_printed_on_request(small):
    text = small.snakemake("small/1.txt", "--cores", "1", "--printshellcmds")
    assert "Job 0: Count to 1" in text
    assert "1 of 1 steps (100%) done" in text
    assert "Complete log(s): " in text


def test_quiet_runs_are_quiet(small):
    text = small.snakemake("small/1.txt", "--cores", "1", "--quiet", "all")
    assert text.splitlines()[1:] == [], text
    text, _ = on_terminal(small, "small/2.txt", "--cores", "1", "--quiet", "progress")
    assert [line for line in screen(text) if "job" in line] == ["Building DAG of jobs..."]


@pytest.mark.parametrize(
    "asked",
    [
        ("-n", "smalls"),
        ("--summary",),
        ("smalls", "--dag"),
        ("--lint",),
    ],
    ids=" ".join,
)
def test_what_runs_nothing_prints_what_snakemake_prints(small, asked):
    ours = small.snakemake(*asked, check=False)
    small.edit("profiles/default/config.yaml", "logger: [dp-leakage]", "# ")
    own = small.snakemake(*asked, check=False)
    # What comes of records stands on a stream of its own, so its place among other lines is open.
    clean = lambda text: sorted(re.sub(r"\[\w{3} \w{3} .*\]|\d\d:\d\d:\d\d|(?<=tmpdir=).*", "", text).splitlines())  # noqa: E731
    assert clean(ours) == clean(own)
    assert "error: " not in ours


PLAIN_SETTINGS = SimpleNamespace(
    **dict.fromkeys(("stdout", "dryrun", "verbose", "printshellcmds", "debug_dag"), False), nocolor=True
)


def test_the_last_record_of_a_run_passes_whatever_quiet_drops(monkeypatch):
    monkeypatch.setattr("snakemake_logger_plugin_dp_leakage.own_folder", lambda: None)
    handler, last = LogHandler(PLAIN_SETTINGS, None), threading.Event()
    handler.addFilter(lambda record: False)
    handler.handle(logging.makeLogRecord({"last": last}))
    assert last.is_set()
    for _ in range(2):  # Snakemake closes it, and so does the interpreter
        handler.close()


def test_a_handler_that_a_signal_kept_from_being_set_up_is_closed_in_silence(monkeypatch):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr("snakemake_logger_plugin_dp_leakage.own_folder", interrupted)
    handler = LogHandler.__new__(LogHandler)
    with pytest.raises(KeyboardInterrupt):
        handler.__init__(PLAIN_SETTINGS, None)
    handler.close()
