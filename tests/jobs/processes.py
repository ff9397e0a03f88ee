"""Waiting for processes, on a machine that may be busy."""

import time

import psutil


def wait_for(condition, seconds: float = 30) -> bool:
    """Whether a condition comes true in time (generous: the machine may be busy)."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


def gone(process: psutil.Process) -> bool:
    """Whether a process has ended (one that nobody has waited for yet has)."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
