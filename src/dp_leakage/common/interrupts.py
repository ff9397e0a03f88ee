"""Ctrl-C ends a run at any point with a short message instead of a traceback."""

import sys
import threading
from types import TracebackType
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
