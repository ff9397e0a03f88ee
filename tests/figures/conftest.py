"""Synthetic metrics for every kind, and the paper's prints."""

import sys
from pathlib import Path

import pandas as pd
import pytest

sys.path.append(str(Path(__file__).parent))
import synthetic

from dp_leakage.figures import enter
from dp_leakage.table.published import read_published

for folder in sorted((Path(__file__).parents[2] / "workflow" / "studies").iterdir()):
    enter(folder)
    sys.path.append(str(folder))


@pytest.fixture(scope="session")
def quick() -> pd.DataFrame:
    return synthetic.quick_frame()


@pytest.fixture(scope="session")
def persons() -> pd.DataFrame:
    return synthetic.persons_frame()


@pytest.fixture(scope="session")
def guesses() -> pd.DataFrame:
    return synthetic.guesses_frame()


@pytest.fixture(scope="session")
def groups() -> pd.DataFrame:
    return synthetic.groups_frame()


@pytest.fixture(scope="session")
def structure() -> pd.DataFrame:
    return synthetic.structure_frame()


@pytest.fixture(scope="session")
def audited() -> pd.DataFrame:
    return synthetic.audited_frame()


@pytest.fixture(scope="session")
def scores() -> pd.DataFrame:
    return synthetic.score_frame()


@pytest.fixture(scope="session")
def bounded() -> pd.DataFrame:
    return synthetic.bounded_frame()


@pytest.fixture(scope="session")
def tossed() -> pd.DataFrame:
    return synthetic.tossed_frame()


@pytest.fixture(scope="session")
def paper() -> pd.DataFrame:
    return synthetic.paper_frame()


@pytest.fixture(scope="session")
def histories() -> pd.DataFrame:
    return synthetic.history_frame()


@pytest.fixture(scope="session")
def lambdas() -> pd.DataFrame:
    return synthetic.lambda_frame()


@pytest.fixture(scope="session")
def inversions() -> pd.DataFrame:
    return synthetic.inversion_frame()


@pytest.fixture(scope="session")
def inverted() -> list:
    return synthetic.inversion_images()


@pytest.fixture(scope="session")
def images() -> pd.DataFrame:
    return synthetic.image_frame()


@pytest.fixture(scope="session")
def directional() -> pd.DataFrame:
    return synthetic.directional_frame()


@pytest.fixture(scope="session")
def projected() -> pd.DataFrame:
    return synthetic.projected_frame()


@pytest.fixture(scope="session")
def pictures() -> list:
    return synthetic.picture_list()


@pytest.fixture(scope="session")
def times() -> pd.DataFrame:
    return synthetic.timing_frame()


@pytest.fixture(scope="session")
def printed_images() -> pd.DataFrame:
    """The printed numbers of lomurno2022."""
    return read_published(Path(__file__).parents[2] / "workflow/studies/lomurno2022/lomurno2022.csv")


@pytest.fixture(scope="session")
def printed() -> pd.DataFrame:
    """The paper's printed numbers, as the repository has them."""
    return read_published(Path(__file__).parents[2] / "workflow/studies/jayaraman2019/jayaraman2019.csv")
