"""Command-line parser whose errors are one sentence, like all others in this package."""

import argparse
import io
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from textwrap import fill
from typing import Any, NoReturn, TypeVar

from dp_leakage.common.errors import close, nearest, plain

T = TypeVar("T")


def number(least: float, most: float) -> Callable[[str], float]:
    """Type of an option that holds a number within these bounds."""
    return _within(float, f"a number from {least:g} to {most:g}", lambda value: least <= value <= most)


def share(text: str) -> float:
    """Type of an option that holds a number above 0 and below 1."""
    return _within(float, "a number above 0 and below 1", lambda value: 0 < value < 1)(text)


def whole(least: int, most: int) -> Callable[[str], int]:
    """Type of an option that holds a whole number within these bounds."""
    return _within(int, f"a whole number from {least:g} to {most:g}", lambda value: least <= value <= most)


def _within(kind: Callable[[str], T], what: str, holds: Callable[[T], bool]) -> Callable[[str], T]:
    def read(text: str) -> T:
        try:
            value = kind(text) if len(text) < 100 else None
        except ValueError:
            value = None
        if value is None or not holds(value):
            raise argparse.ArgumentTypeError(f"{text[:50]!r} is not valid; it must be {what}")
        return value

    return read


def print_anything() -> None:
    """Print characters that the terminal cannot show, such as ε, as Python escapes from now on."""
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.encoding.lower() != "utf-8":
        with suppress(OSError):  # a job's, which is a pipe where its parent had a file
            sys.stdout.reconfigure(errors="backslashreplace")


class Parser(argparse.ArgumentParser):
    """Argument parser without abbreviations. Its error message is one line that begins with ``error:``."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)
        print_anything()

    def examples(self, lines: Sequence[str]) -> None:
        """Show command lines below the help, as they are."""
        self.formatter_class = argparse.RawDescriptionHelpFormatter
        paragraphs = (self.description or "").split("\n\n")
        self.description = "\n\n".join(fill(" ".join(text.split()), 100) for text in paragraphs)
        self.epilog = "\n".join(["examples:" if len(lines) > 1 else "example:", *(f"  {line}" for line in lines)])

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse as argparse does. The error for an unknown option suggests the option with the nearest name."""
        words = list(sys.argv[1:] if args is None else args)
        options = words[: words.index("--")] if "--" in words else words
        for word in options:
            name = word.partition("=")[0]
            if re.fullmatch("--[a-z-]+", name) and name not in (known := self._known()):
                self.error(f"unknown option {name}; {close(name, known)}".rstrip("; "))
        return super().parse_args(words, namespace)

    def _known(self) -> set[str]:
        """Return the names of its options, and of its commands'."""
        below = [action for action in self._actions if isinstance(action, argparse._SubParsersAction)]
        return {*self._option_string_actions}.union(*(one._known() for each in below for one in each.choices.values()))

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse an invalid choice; the error suggests the nearest valid one."""
        if action.choices is not None and value not in action.choices:
            raise argparse.ArgumentError(action, f"{value!r} is not valid; {nearest(value, action.choices)}")

    def error(self, message: str) -> NoReturn:
        """End the process with status 2."""
        print(f"error: {plain(message)}; `{self.prog} --help` says what is valid", file=sys.stderr)
        sys.exit(2)
