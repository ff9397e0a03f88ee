"""What a run prints: one line that is redrawn on a terminal, a line now and then elsewhere, and all that went wrong.

A plugin of Snakemake's, which finds it by the package's name; profiles choose it (``logger: [dp-leakage]``). The file
below .snakemake/log holds all that Snakemake says; ``-n``, ``--printshellcmds``, ``--verbose`` and ``--debug-dag``
print it too.
"""

import os
import re
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from copy import copy
from logging import ERROR, WARNING, FileHandler, LogRecord, getLogger
from pathlib import Path
from typing import Any

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from dp_leakage.common.shown import CLEAR
from dp_leakage.common.temporary import own_folder
from snakemake_logger_plugin_dp_leakage.progress import Progress, due

# What Snakemake says of every run, and no reader needs.
NOISE = ("Using shell:", "Group jobs: inactive", "Conda environments: ", "Singularity containers: ", "Select jobs")
# What it says beside its jobs that a reader needs: the run is ending early, or a job is tried again.
STOPS = "Terminating"  # on Ctrl-C
NEWS = (STOPS, "Shutting down", "Will exit", "Trying to restart")
# What it says of each file that a failed job makes anew, or keeps.
KEPT = ("Cannot restore ", "Restored previous version of ", "--keep-incomplete mode is set")
# With which it ends a run that was stopped, too.
FAILED_RUN = "WorkflowError:\nAt least one job did not complete successfully."

COLORS = {WARNING: "\x1b[33m", ERROR: "\x1b[31m"}
PLAIN = "\x1b[0m"
# Words of a log in which a job failed by itself, rather than because another one of its submission did, or was killed.
FELL = re.compile(r"^(?:\d\d:\d\d:\d\d )?error: |^Traceback \(most recent call last\)", re.MULTILINE)
LAST = 20  # lines of a log that tell of a submission without such words
# The command of a job that failed, which the file holds too. What it said follows, from its log.
FAILED_COMMAND = "RuleException:\nCalledProcessError"
SENTENCE = re.compile(r"^(?:\d\d:\d\d:\d\d )?(error: .*)", re.MULTILINE | re.DOTALL)  # as a step's log ends with it
MOST_ERRORS, MOST_CHARACTERS = 5, 1000  # repeated at the end of a run, and of each


FAILURES = (LogEvent.JOB_ERROR, LogEvent.GROUP_ERROR)
LOGGER = getLogger("snakemake.logging")  # what Snakemake and its Snakefiles say
_running: list["LogHandler"] = []


class LogHandler(LogHandlerBase):
    """Handler of Snakemake's messages, which draws those of single jobs together.

    Records come one after another from a thread of Snakemake's. Another thread redraws the line each second.
    """

    def __post_init__(self) -> None:
        with suppress(OSError):  # what Snakemake and its jobs leave in TMPDIR goes with the run
            own_folder()
        settings: Any = self.common_settings
        self.stream = sys.stdout if settings.stdout else sys.stderr
        terminal = self.stream.isatty() and os.environ.get("TERM") != "dumb"
        self.colored = terminal and not settings.nocolor
        self.all = settings.dryrun or settings.verbose or settings.printshellcmds or settings.debug_dag
        self.live = terminal
        self.progress: Progress | None = None
        self.told_job = False  # whether the last record was of a job that starts
        self.drawn = 0.0  # when the line was drawn last; 0 if none is there
        self.logs: dict[int, list[str]] = {}  # job that failed → its logs
        self.last = 0, 0.0  # jobs that were done at the last plain line, and when it was written
        self.stopped = False  # by the user; jobs that end by that are no failures
        self.over = threading.Event()
        self.drawing = threading.RLock()
        _running.append(self)

    writes_to_stream = True
    writes_to_file = False
    has_filter = False  # Snakemake's, by which --quiet acts
    has_formatter = False  # Snakemake's too
    needs_rulegraph = False

    def emit(self, record: LogRecord) -> None:
        """Takes note of a record, and prints what a reader needs of it. Never raises: Snakemake's thread would end."""
        try:
            with self.drawing:
                if last := getattr(record, "last", None):
                    self.finish()
                    last.set()
                    return
                if _event(record) == LogEvent.GROUP_ERROR and not self.all and not self.stopped:
                    self._tell_submission(record)
                    return
                if self.all or self._is_told(record):
                    self._clear()
                    self._say(record if self.all else _without_command(record))
                if not self.all:
                    self._note(record, record.created)
        except Exception:
            self.handleError(record)

    def finish(self) -> None:
        """Replaces the line by what was done, and repeats the errors of failed jobs, which are far above by then.

        Nothing but errors and warnings is printed after that.
        """
        self.over.set()
        with self.drawing:
            self._clear()
            if self.progress:
                self._print(f"{self.progress.summary(time.time())}.\n")
                logs = [Path(log) for job in self.progress.failed for log in self.logs.get(job, ())]
                self._print("".join(f"{sentence}\n" for sentence in last_errors(logs)))
            self.progress = None

    def close(self) -> None:
        """Snakemake ends, perhaps by a signal before this handler was set up."""
        if self in _running:
            self.finish()
            _running.remove(self)
        super().close()

    def filter(self, record: LogRecord) -> bool:
        """Let the last record of a run pass whatever --quiet drops."""
        return hasattr(record, "last") or bool(super().filter(record))

    def _say(self, record: LogRecord) -> None:
        color = COLORS.get(record.levelno) if self.colored else None
        text = self.format(record)
        begins = _event(record) == LogEvent.JOB_INFO
        if begins and not self.told_job:  # an empty line before jobs, as Snakemake has it
            text = f"\n{text}"
        self.told_job = begins
        if text and text != "None":  # as Snakemake's formatter answers for what is not shown
            self._print(f"{color}{text}{PLAIN}\n" if color else f"{text}\n")

    def _is_told(self, record: LogRecord) -> bool:
        if record.levelno >= WARNING:
            if _event(record) == LogEvent.JOB_ERROR and getattr(record, "indent", False):
                return False  # one of a submission, whose other jobs may have succeeded
            if self.stopped and (_event(record) in FAILURES or record.getMessage().startswith(FAILED_RUN)):
                return False
            return not record.getMessage().startswith((FAILED_COMMAND, *KEPT))
        if _event(record) is not None or self.over.is_set():
            return False
        return record.getMessage().startswith(NEWS) if self.progress else not record.getMessage().startswith(NOISE)

    def _note(self, record: Any, at: float) -> None:
        event = _event(record)
        self.stopped |= event is None and record.getMessage().startswith(STOPS)
        if event == LogEvent.RUN_INFO:
            self._begin({rule: count for rule, count in record.stats.items() if rule != "total"}, at)
        elif self.progress:
            if event == LogEvent.JOB_INFO:
                self.progress.start(record.jobid, record.rule_name, record.rule_msg or "", at)
            elif event == LogEvent.JOB_FINISHED:
                self.progress.finish(record.job_id, at)
            elif jobs := getattr(record, "submitted", None):
                self.progress.submit(jobs)
            elif (queue := getattr(record, "queue", None)) is not None:
                self.progress.queue = queue
            elif event == LogEvent.JOB_ERROR and not self.stopped and not getattr(record, "indent", False):
                self.progress.fail(record.jobid)
                self.logs[record.jobid] = record.log
            self._show(at)

    def _tell_submission(self, record: Any) -> None:
        """Print one short message for a submission that failed: the sentences of the jobs at fault, each once, or the
        last lines of the log if there is none.
        """
        own = {info["jobid"]: info["log"] for info in record.job_error_info}
        fell = {job: logs for job, logs in own.items() if any(FELL.search(_text(log)) for log in logs)}
        logs = [log for files in fell.values() for log in files] or record.aux_logs
        words = last_errors(map(Path, logs)) or ["\n".join(_text(log).splitlines()[-LAST:]) for log in logs]
        self._clear()
        named = ", ".join(
            sorted({info["rule_name"] for info in record.job_error_info if info["jobid"] in (fell or own)})
        )
        text = "\n".join([f"A submission failed in {named}: {', '.join(logs)}", *filter(None, words)])
        self._print(f"{COLORS[ERROR]}{text}{PLAIN}\n" if self.colored else f"{text}\n")
        if self.progress:
            for job in own:
                (self.progress.fail if job in (fell or own) else self.progress.leave)(job)

    def _begin(self, jobs: dict[str, int], at: float) -> None:
        self.progress = Progress(jobs, at)
        self.last = 0, at
        files = [os.path.relpath(each.baseFilename) for each in LOGGER.handlers if isinstance(each, FileHandler)]
        self._print(f"{self.progress.plan()} to do; what Snakemake says of each: {', '.join(files)}\n")
        if self.live:
            threading.Thread(target=self._redraw, daemon=True).start()

    def _redraw(self) -> None:
        while not self.over.wait(1):
            with self.drawing:
                if not self.over.is_set():
                    self._show(time.time())

    def _show(self, at: float) -> None:
        progress = self.progress
        if progress is None:
            return
        if self.live:
            if abs(at - self.drawn) >= 0.1:  # many jobs end sooner; nobody reads that fast
                self._print(f"{CLEAR}{progress.line(at, self._width() - 1)}")
                self.drawn = at
        elif progress.done < progress.total and due(progress.done, progress.total, at, progress.began, self.last):
            self._print(f"{time.strftime('%H:%M:%S', time.localtime(at))} {progress.line(at, 1000)}\n")
            self.last = progress.done, at

    def _width(self) -> int:
        try:
            return os.get_terminal_size(self.stream.fileno()).columns or 80
        except OSError:  # the terminal was closed
            return 80

    def _clear(self) -> None:
        if self.drawn:
            self._print(CLEAR)
            self.drawn = 0.0

    def _print(self, text: str) -> None:
        try:
            self.stream.write(text)
            self.stream.flush()
        except (OSError, ValueError):  # nobody reads any more: the run goes on
            pass


def _text(log: str) -> str:
    """Return a log's text; "" if there is none."""
    try:
        return Path(log).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _without_command(record: LogRecord) -> LogRecord:
    """A record that a job failed, without the kilobytes of settings in its command."""
    if _event(record) != LogEvent.JOB_ERROR:
        return record
    shorter = copy(record)
    shorter.shellcmd = None
    return shorter


def _event(record: LogRecord) -> LogEvent | None:
    event: LogEvent | None = getattr(record, "event", None)
    return event


def finish() -> bool:
    """Wait until all that was reported is printed, and end the line, so that what follows stands last.

    Returns:
        Whether the user stopped the run.
    """
    for _ in _running:
        last = threading.Event()
        LOGGER.info("The run ends.", extra={"last": last})
        last.wait(10)
    return any(handler.stopped for handler in _running)


def last_errors(logs: Iterable[Path]) -> list[str]:
    """The sentences with which jobs failed, each once, from their logs; a log that cannot be read has none."""
    found: dict[str, None] = {}
    for log in logs:
        if said := SENTENCE.search(_text(str(log))):
            found[said[1].rstrip()[:MOST_CHARACTERS]] = None
    more = len(found) - MOST_ERRORS
    return [*list(found)[:MOST_ERRORS], *([f"and {more:,} more"] if more > 0 else [])]
