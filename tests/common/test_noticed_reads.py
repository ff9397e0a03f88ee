"""A file that the user's code reads and that no plan knows of is told of, once."""

import os
import subprocess
import sys

import pytest

READER = """
import logging, sys
from pathlib import Path
from dp_leakage.common.user_code import blamed, notice_reads

logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
Path("results").mkdir()
Path("known.csv").write_text("1")
Path("results/made.csv").write_text("1")
Path("table.csv").write_text("1")
Path("helper.py").write_text("VALUE = 1\\n")
notice_reads([Path("known.csv").resolve()], [Path("results").resolve()])
open("table.csv").read()
with blamed("plugin mine", Path("mine.py")):
    open("new.csv", "w").write("1")
    for name in ("known.csv", "results/made.csv"):
        open(name).read()
    for _ in range(2):
        CODE
open("table.csv").read()
"""


@pytest.mark.parametrize(
    ("code", "file"),
    [
        ("open('table.csv').read()", "table.csv"),
        ("Path('table.csv').read_bytes()", "table.csv"),
        ("import os; os.close(os.open('table.csv', os.O_RDONLY))", "table.csv"),
        ("__import__('importlib').import_module('hel' + 'per')", "helper.py"),
        ("pass", None),
    ],
)
def test_what_is_read_and_not_known_is_told_once(tmp_path, code, file):
    place = tmp_path / "work"
    place.mkdir()
    around = os.environ | {"TMPDIR": "/dev/shm", "PYTHONPATH": f"{os.environ.get('PYTHONPATH', '')}:{place}"}
    done = subprocess.run(
        [sys.executable, "-c", READER.replace("CODE", code)],
        cwd=place,
        env=around,
        capture_output=True,
        text=True,
        check=True,
    )
    told = [f"beware: plugin mine reads {place / file}, and an edit of it reruns nothing"] if file else []
    assert [line.partition("; name it")[0] for line in done.stdout.splitlines()] == told
