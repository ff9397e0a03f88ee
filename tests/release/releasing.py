"""What the tests of releases share."""

from pathlib import Path

import pytest

from dp_leakage.release.plan import plan_of, study_named

REPO = Path(__file__).parents[2]
NOT_MEASURED = {"attacks_run": [], "attacks_not_run": ["yeom"]}
DP = "gaussian-rdp-eps=100"


def released_plan(study, cell, wanted, folder=REPO):
    """What a study of a folder at smoke scale would release."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        found, _ = study_named(study, "smoke")
        return plan_of(found, found.cell_named(cell), Path("data"), wanted)
