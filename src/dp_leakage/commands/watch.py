"""``dp-leakage watch``: run an Opacus script unchanged and audit it."""

import os
import sys
from collections.abc import Sequence

from dp_leakage.common.errors import UserError
from dp_leakage.common.paths import beginning, is_dir, is_file, is_there, user_path
from dp_leakage.options.watch import parser

PAGE, DATA = "report.html", "report.json"
MARKS = {PAGE: b"<title>Watched: ", DATA: b'"script_status"'}  # what a file begins with that an earlier watch wrote


def main(words: Sequence[str]) -> int:
    """Run the script; return 0, 3 or 2 for the verdict, or the script's own status if it fails.

    Raises:
        UserError: the script does not exist, or the report's folder is not writable or contains another report.
    """
    options = parser().parse_args(words)
    script, folder = user_path(options.script), user_path(options.to)
    if not is_file(script):
        raise UserError(f"{options.script} is not a file; name the Python script to run")
    if is_there(folder) and not is_dir(folder):
        raise UserError(f"--to {options.to} is not a folder; name a folder for the report")
    for name, mark in MARKS.items():
        if os.path.lexists(folder / name) and mark not in beginning(folder / name, 10_000):
            words = "exists and is not a report of watch, so it stays as it is; name another folder"
            raise UserError(f"--to {options.to}: {name} {words}")
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise UserError(f"--to {options.to} cannot be made: {error.strerror}") from None
    from dp_leakage.opacus.page import as_json, page
    from dp_leakage.opacus.script import run
    from dp_leakage.opacus.told import told
    from dp_leakage.provenance.files import write_text

    settings = {name: getattr(options, name) for name in ("delta", "canaries", "every", "seed")}
    seen, status = run(script, options.arguments, **settings)
    if seen.rank:  # the first process tells; another status would end all of them
        return status
    command = " ".join([script.name, *options.arguments])
    for line in told(seen.judgement):
        print(f"watch: {line}", file=sys.stderr)
    write_text(folder / PAGE, page(seen.judgement, command, status))
    write_text(folder / DATA, as_json(seen.judgement, command, status))
    print(f"watch: {folder / PAGE}", file=sys.stderr)
    return status or seen.status
