from pathlib import Path

import pytest

from dp_leakage.release.make import release
from dp_leakage.release.plan import cell_named, plan_of, study_named

REPO = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def plan():
    """What the quickstart at smoke scale would release."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(REPO)
        study, _ = study_named("quickstart", "smoke")
        return plan_of(study, cell_named(study, "mlp/gaussian-rdp-eps=100"), Path("data"), {})


@pytest.fixture(scope="session")
def made(plan, tmp_path_factory):
    """A whole release. Do not edit: ask for `copy`."""
    folder = tmp_path_factory.mktemp("made") / "model"
    release(plan, folder, 60.0)
    return folder
