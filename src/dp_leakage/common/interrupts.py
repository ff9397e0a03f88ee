"""Ctrl-C ends a run at any point with a short message, not a traceback, and no signal makes it wait for itself."""

import signal
import sys
import threading
from types import FrameType, TracebackType
from typing import Any


def end_quietly(words: str = "") -> None:
    """Print ``words`` instead of a traceback for an uncaught interrupt. Other errors print as before.

    The process still ends by the signal, so that a shell or a scheduler sees what happened.
    """
    shown, unraisable, of_thread = sys.excepthook, sys.unraisablehook, threading.excepthook

    def excepthook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if not issubclass(kind, KeyboardInterrupt):
            shown(kind, error, trace)
        elif words:
            print(words, file=sys.stderr, flush=True)

    def unraisablehook(found: Any) -> None:
        if not issubclass(found.exc_type, KeyboardInterrupt):
            unraisable(found)

    def thread_hook(found: Any) -> None:
        if not issubclass(found.exc_type, KeyboardInterrupt):
            of_thread(found)

    sys.excepthook, sys.unraisablehook, threading.excepthook = excepthook, unraisablehook, thread_hook


def handle_apart(number: int) -> None:
    """Handle signals in a separate thread from now on.

    Snakemake's handler of SIGTERM takes a lock. A handler runs in the main thread, between any two of its lines, and
    while that holds the lock itself, it would wait for ever.
    """
    handler = signal.getsignal(number)

    def apart(number: int, frame: FrameType | None) -> None:
        if callable(handler):
            threading.Thread(target=handler, args=(number, frame), daemon=True).start()

    if callable(handler):
        signal.signal(number, apart)
