"""Command lines whose complaints are one sentence, like all others in this package."""

import argparse
import io
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn, TypeVar

from dp_leakage.common.errors import plain

T = TypeVar("T")


def number(least: float, most: float) -> Callable[[str], float]:
    """Type of an option that holds a number within these bounds."""
    return _within(float, "a number", least, most)


def whole(least: int, most: int) -> Callable[[str], int]:
    """Type of an option that holds a whole number within these bounds."""
    return _within(int, "a whole number", least, most)


def _within(kind: Callable[[str], T], what: str, least: float, most: float) -> Callable[[str], T]:
    def read(text: str) -> T:
        try:
            value = kind(text) if len(text) < 100 else None
        except ValueError:
            value = None
        if value is None or not least <= value <= most:  # type: ignore[operator]
            raise argparse.ArgumentTypeError(
                f"{text[:50]!r} is not valid; it must be {what} from {least:g} to {most:g}"
            )
        return value

    return read


class Parser(argparse.ArgumentParser):
    """An argument parser without abbreviations. Its complaint is one line that begins with ``error:``.

    From then on what a terminal cannot show (ε, where that is set to ASCII) is printed as Python escapes it.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)
        if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.encoding.lower() != "utf-8":
            with suppress(OSError):  # a job's, which is a pipe where its parent had a file
                sys.stdout.reconfigure(errors="backslashreplace")

    def error(self, message: str) -> NoReturn:
        """Ends the process with status 2."""
        print(f"error: {plain(message)}; `{self.prog} --help` says what is valid", file=sys.stderr)
        sys.exit(2)
