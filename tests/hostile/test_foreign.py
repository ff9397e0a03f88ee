"""Hostile models, classifiers, trainings and declarations: each ends in one sentence, and soon."""

import sys
import time
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "data")]
import given  # noqa: E402
from foreign import MAY, MUST  # noqa: E402

pytestmark = pytest.mark.fuzz
SOON = 10  # seconds


@pytest.mark.parametrize("case", MUST)
def test_what_cannot_be_meant_ends_in_one_sentence(tmp_path, case):
    begun = time.monotonic()
    text = MUST[case](tmp_path)
    assert text is not None, "it was taken"
    assert given.is_sentence(text), text
    assert time.monotonic() - begun < SOON


@pytest.mark.parametrize("case", MAY)
def test_what_may_be_meant_is_taken_or_ends_in_one_sentence(tmp_path, case):
    begun = time.monotonic()
    text = MAY[case](tmp_path)
    assert text is None or given.is_sentence(text), text
    assert time.monotonic() - begun < SOON
