"""What the report's first paragraph names as outside every ε: all that looks at training records without noise."""

from typing import Any

import numpy as np
import pytest

from dp_leakage.data.outside import CLUSTERS, LEARNED, OUTSIDE, grouping, uncovered
from dp_leakage.data.raw import Gap, Raw, filled

ARRAYS = {
    name: np.zeros(rows) for name, rows in (("x", 30), ("y", 30), ("target_members", 20), ("target_nonmembers", 10))
}


SCALED = "the scaling of features, fitted on 30 records"
FILLED = "the values that fill gaps, computed from all records"
GAP = "age: 3 missing values were replaced by 41, the median of "


@pytest.mark.parametrize(
    ("projection", "notes", "named"),
    [
        (None, [], ()),
        ({"method": "pca"}, [], ("the PCA, fitted on 30 records",)),
        ({"method": "pca", "scale": "standard", "fit_on": "all"}, [], (SCALED, "the PCA, fitted on 30 records")),
        ({"method": "pca", "fit_on": ["target_nonmembers"]}, [], ()),  # it saw no training record
        # The variances by which it divides have noise too.
        ({"method": "private_pca", "whiten": True, "scale": "private"}, [], ()),
        (None, [f"{GAP}all records, which lies {OUTSIDE}."], (FILLED,)),
        ({"method": "pca", "fit_on": ["target_nonmembers"]}, [f"{GAP}all records, which lies {OUTSIDE}."], (FILLED,)),
        (None, [f"{GAP}the attacker's 10 records."], ()),
        (
            None,
            [f"3 records of the study are among those. {LEARNED}."],
            ("the features, learned from some of these records",),
        ),
    ],
)
def test_what_saw_training_records_without_noise_is_outside(
    projection: dict[str, Any] | None, notes: list[str], named: tuple[str, ...]
) -> None:
    assert uncovered(projection, ARRAYS, notes) == named


def test_the_note_on_gaps_says_what_is_looked_for_in_it() -> None:
    gap = Gap("age", (0,), np.array([1]), ())
    raw = Raw(np.zeros((4, 1), np.float32), np.array([0, 1, 0, 1]), ("a", "b"), gaps=(gap,))
    for roles, named in (({"target_members": [0, 1]}, (FILLED,)), ({"shadow_pool": [2, 3]}, ())):
        rows = {role: np.array(own) for role, own in roles.items()}
        assert uncovered(None, ARRAYS, filled(raw, rows).notes) == named


def test_groups_that_the_records_may_have_made_are_outside() -> None:
    assert grouping("subclass", "kmeans") == CLUSTERS
    assert grouping("by_rank", None) == "the groups that the plugin by_rank makes of the records"
    assert not any(grouping(unit, None) for unit in ("", "example", "person", "batch", "class", "subclass"))
