"""Hostile inputs of kinds that nobody had listed: each ends in one sentence, and soon."""

import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "data")]
import given  # noqa: E402
from invented import MAY, MUST  # noqa: E402

pytestmark = pytest.mark.fuzz


@pytest.mark.parametrize("case", MUST)
def test_a_new_input_that_cannot_be_meant_ends_in_one_sentence(tmp_path, case):
    assert given.answered_soon(lambda: MUST[case](tmp_path)) is not None, "it was taken"
    assert not (tmp_path / "ran").exists(), "what a file holds was run"


@pytest.mark.parametrize("case", MAY)
def test_a_new_input_that_may_be_meant_is_taken_or_ends_in_one_sentence(tmp_path, case):
    given.answered_soon(lambda: MAY[case](tmp_path))
