"""Every input that once was taken, unclear, endless or answered by a traceback, and its like: one sentence, soon."""

import csv
import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "data")]
import given  # noqa: E402
from listed import MAY, MUST  # noqa: E402
from loading import REPO  # noqa: E402
from test_command_line import MAY_BE_RUN, REFUSED, SNAKEMAKES  # noqa: E402

pytestmark = pytest.mark.fuzz
SHARED = REPO.parent / "shared" / "hostile_inputs.tsv"
DRIVEN = {*MUST, *MAY, *REFUSED, *MAY_BE_RUN, *SNAKEMAKES}


@pytest.mark.parametrize("case", MUST)
def test_an_input_that_cannot_be_meant_ends_in_one_sentence(tmp_path, case):
    assert given.answered_soon(lambda: MUST[case](tmp_path)) is not None, "it was taken"


@pytest.mark.parametrize("case", MAY)
def test_an_input_that_may_be_meant_is_taken_or_ends_in_one_sentence(tmp_path, case):
    given.answered_soon(lambda: MAY[case](tmp_path))


def test_every_listed_input_is_driven():
    if not SHARED.exists():
        pytest.skip(f"no list of hostile inputs at {SHARED}")
    with SHARED.open(encoding="utf-8") as file:
        listed = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        # The list is of the days when an engine of its own trained a user's module, and options were British.
        names = [
            row["input"].replace("model=opacus_", "model=module_").replace("neighbours", "neighbors") for row in listed
        ]
    assert len(names) > 150
    # The list cuts a long name short, before its closing quote.
    assert [name for name in names if not any(known.startswith(name.rstrip("'")) for known in DRIVEN)] == []
