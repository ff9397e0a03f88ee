"""Quantities outside ε: computed without noise from training records before a model saw them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dp_leakage.data.projection_settings import PRIVATE
from dp_leakage.data.roles import ROLES, trained_role

OUTSIDE = "outside the privacy budget"  # in a note on the data: a source looked at all records
LEARNED = "What the features give away of them is in no ε"  # in a note on the data: of records known from elsewhere
GIVEN = ("", "example", "person", "batch", "class")  # units that each record decides for itself; "" of others' claims
CLUSTERS = "the k-means subclasses, fitted on each model's training records"


def uncovered(
    projection: Mapping[str, Any] | None, arrays: Mapping[str, np.ndarray], notes: Sequence[str]
) -> tuple[str, ...]:
    """Describe each quantity that ε does not cover, e.g. "the PCA, fitted on 800 records".

    Args:
        projection: as in the study file; None: no projection.
        arrays: arrays of the prepared data; only the roles are used.
        notes: on the preparation.
    """
    gaps = any("missing values" in note and OUTSIDE in note for note in notes)
    filled: tuple[str, ...] = ("the values that fill gaps, computed from all records",) if gaps else ()
    filled += ("the features, learned from some of these records",) if any(LEARNED in note for note in notes) else ()
    given = projection or {}
    roles = [role for role in arrays if role in ROLES]
    fitted = roles if given.get("fit_on", "all") == "all" else given["fit_on"]
    if trained_role(arrays) not in fitted:
        return filled
    records = f"fitted on {sum(len(arrays[role]) for role in fitted):,} records"
    scaled = ("the scaling of features",) if given.get("scale", "none") not in ("none", PRIVATE) else ()
    pca = ("the PCA",) if given.get("method") == "pca" else ()
    return (*(f"{what}, {records}" for what in (*scaled, *pca)), *filled)


def grouping(unit: str, partition: str | None) -> str:
    """Describe the origin of the groups that are a mechanism's units if the records may have determined them; else "".

    Args:
        unit: see `Mechanism`.
        partition: of subclasses.
    """
    if unit == "subclass":
        return CLUSTERS if partition == "kmeans" else ""
    return "" if unit in GIVEN else f"the groups that the plugin {unit} makes of the records"
