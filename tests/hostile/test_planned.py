"""What would come out after training is said before it: each input ends in one sentence, and soon."""

import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "data")]
import given  # noqa: E402
from planned import MAY, MUST  # noqa: E402

pytestmark = pytest.mark.fuzz


@pytest.mark.parametrize("case", MUST)
def test_what_cannot_be_meant_ends_in_one_sentence_before_anything_is_trained(tmp_path, case):
    assert given.answered_soon(lambda: MUST[case](tmp_path)) is not None, "it was taken"


@pytest.mark.parametrize("case", MAY)
def test_what_is_meant_is_taken(tmp_path, case):
    assert MAY[case](tmp_path) is None
