"""Command lines that complain as everything else here does: in one sentence."""

import argparse
import sys
from typing import NoReturn

from dp_leakage.errors import plain


class Parser(argparse.ArgumentParser):
    """An argument parser without abbreviations, whose complaint is a line that begins with ``error:``."""

    def __init__(self, **options: object) -> None:
        super().__init__(allow_abbrev=False, **options)  # type: ignore[arg-type]

    def error(self, message: str) -> NoReturn:
        """Ends the process with status 2."""
        print(f"error: {plain(message)}; `{self.prog} --help` says what is valid", file=sys.stderr)
        sys.exit(2)
