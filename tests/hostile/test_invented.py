"""Hostile inputs of kinds that nobody had listed: each ends in one sentence, and soon."""

import sys
import time
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "data")]
import given  # noqa: E402
from invented import MAY, MUST  # noqa: E402

pytestmark = pytest.mark.fuzz
SOON = 10  # seconds of processor time


@pytest.mark.parametrize("case", MUST)
def test_a_new_input_that_cannot_be_meant_ends_in_one_sentence(tmp_path, case):
    begun = time.process_time()
    text = MUST[case](tmp_path)
    assert text is not None, "it was taken"
    assert given.is_sentence(text), text
    assert not (tmp_path / "ran").exists(), "what a file holds was run"
    assert time.process_time() - begun < SOON


@pytest.mark.parametrize("case", MAY)
def test_a_new_input_that_may_be_meant_is_taken_or_ends_in_one_sentence(tmp_path, case):
    begun = time.process_time()
    text = MAY[case](tmp_path)
    assert text is None or given.is_sentence(text), text
    assert time.process_time() - begun < SOON
