"""Bad studies and configs are refused in one sentence each: the page of all of them is as it was read last."""

import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent


def test_every_refusal_is_the_sentence_on_the_page():
    command = [sys.executable, TESTS / "refusals.py"]
    said = subprocess.run(command, capture_output=True, text=True, check=True, cwd=TESTS.parent).stdout
    assert said.splitlines() == (TESTS / "refusals.md").read_text(encoding="utf-8").splitlines()
    assert "(taken)" not in said
