"""Run a script under a watch, in the same way as ``python SCRIPT``."""

import runpy
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dp_leakage.opacus.session import Watched, watch

INTERRUPTED = 130


def run(script: Path, arguments: Sequence[str], **options: Any) -> tuple[Watched, int]:
    """Run a script with its arguments; return the observations and the script's own exit status.

    Args:
        script: a Python file, run as ``__main__`` with its folder first on the path.
        arguments: the script's own arguments.
        options: of `watch`.
    """
    before = sys.argv, list(sys.path), sys.modules["__main__"]
    sys.argv, sys.path[0] = [str(script), *arguments], str(script.resolve().parent)
    status = 0
    try:
        with watch(**options) as seen:
            status = _status_of(script)
    finally:
        sys.argv, sys.path[:], sys.modules["__main__"] = before
    return seen, status


def _status_of(script: Path) -> int:
    try:
        runpy.run_path(str(script), run_name="__main__")
    except SystemExit as left:
        if isinstance(left.code, str):
            print(left.code, file=sys.stderr)
        return left.code if isinstance(left.code, int) else int(left.code is not None)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BaseException as error:
        own = error.__traceback__
        while own is not None and own.tb_frame.f_code.co_filename != str(script):
            own = own.tb_next
        traceback.print_exception(type(error), error, own or error.__traceback__)
        return 1
    return 0
