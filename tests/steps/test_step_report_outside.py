"""What the report's first paragraph names as outside every ε: all that looks at training records without noise."""

from typing import Any

import numpy as np
import pytest

from dp_leakage.steps.report import _preprocessing

ARRAYS = {
    name: np.zeros(rows) for name, rows in (("x", 30), ("y", 30), ("target_members", 20), ("target_nonmembers", 10))
}


@pytest.mark.parametrize(
    ("projection", "named"),
    [
        (None, ()),
        ({"method": "pca"}, ("the PCA, fitted on 30 records",)),
        ({"method": "pca", "fit_on": ["target_nonmembers"]}, ()),  # it saw no training record
    ],
)
def test_a_projection_that_saw_training_records_is_outside(projection: dict[str, Any], named: tuple[str, ...]) -> None:
    datasets = {"digits": {"projection": projection}, "faces": {}}
    assert _preprocessing({"datasets": datasets}, "digits", ARRAYS) == named
