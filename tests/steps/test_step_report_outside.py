"""What the report's first paragraph names as outside every ε: all that looks at training records without noise."""

from typing import Any

import numpy as np
import pytest

from dp_leakage.steps.report import _outside

ARRAYS = {
    name: np.zeros(rows) for name, rows in (("x", 30), ("y", 30), ("target_members", 20), ("target_nonmembers", 10))
}
CLUSTERS = "the k-means subclasses, fitted on each model's training records"


def _named(*defenses: dict[str, Any], projection: dict[str, Any] | None = None) -> tuple[str, ...]:
    datasets = {"digits": {"projection": projection}, "faces": {}}
    return _outside({"datasets": datasets, "defenses": list(defenses)}, "digits", ARRAYS)


@pytest.mark.parametrize(
    ("defense", "named"),
    [
        ({"defense": "subclass", "k_sub": 5}, (CLUSTERS,)),
        ({"defense": "subclass", "k_sub": 5, "partition": "kmeans"}, (CLUSTERS,)),
        ({"defense": "subclass", "k_sub": 5, "partition": "random"}, ()),
        ({"defense": "subclass", "k_sub": 5, "datasets": ["faces"]}, ()),
        ({"defense": "class"}, ()),
    ],
)
def test_clusters_of_the_records_that_they_protect_are_outside(defense: dict[str, Any], named: tuple[str, ...]) -> None:
    assert _named({"defense": "none"}, defense) == named


def test_clusters_are_named_once_beside_the_pca() -> None:
    pca = {"method": "pca", "fit_on": ["target_nonmembers"]}
    subclass = {"defense": "subclass", "k_sub": 5}
    assert _named(subclass, {**subclass, "k_sub": 9}, projection=pca) == (CLUSTERS,)  # that PCA saw no training record
    fitted = "the PCA, fitted on 30 records"
    assert _named(subclass, {**subclass, "k_sub": 9}, projection={"method": "pca"}) == (fitted, CLUSTERS)
