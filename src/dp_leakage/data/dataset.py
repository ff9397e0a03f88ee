"""The prepared data set that all other modules use."""

from typing import NamedTuple

import numpy as np

from dp_leakage.data.roles import asked_roles, population_role, trained_role


class Dataset(NamedTuple):
    """Features, labels and the index sets of a study's split.

    Attributes:
        x: float32, (n, d) or (n, channels, height, width).
        y: int64, (n,), classes 0 … n_classes-1.
        roles: role name → int64 row numbers of ``x``: ``target_members`` or, in design ``coins``, ``pool``,
            ``target_nonmembers``, ``shadow_pool``, ``reference_pool``, …; roles do not overlap.
        sensitive: int64 columns of ``x`` that attribute inference may guess; empty means any column.
        person: int64 (n,), the owner of each record; None if every record has its own owner.
        own_values: float32 (n, c), what the user's c sensitive columns hold, before any projection: numbers in the
            user's units, or the places of categories; None if no column is sensitive.
    """

    x: np.ndarray
    y: np.ndarray
    roles: dict[str, np.ndarray]
    sensitive: np.ndarray
    person: np.ndarray | None = None
    own_values: np.ndarray | None = None

    @property
    def n_classes(self) -> int:
        """Number of classes, counted over all records."""
        return int(self.y.max()) + 1

    def owners(self, record: np.ndarray) -> np.ndarray | None:
        """Return the owner of each of these records (row numbers), int64; None if every record has its own."""
        return None if self.person is None else self.person[record]

    @property
    def trainable(self) -> np.ndarray:
        """Return the rows of the pool or the members: all records that a target model may train on, int64."""
        return self.roles[trained_role(self.roles)]

    @property
    def targets(self) -> np.ndarray:
        """Rows whose membership is attacked, int64: the members before the non-members, or the pool."""
        return np.concatenate([self.roles[role] for role in asked_roles(self.roles)])

    @property
    def traced(self) -> np.ndarray:
        """Return the rows whose losses a training records at every evaluated epoch, int64.

        They are the rows of `roles.traced_roles` in the order of `queries.asked_records`.
        """
        return np.concatenate([self.targets, np.sort(self.roles.get(population_role(self.roles), self.targets[:0]))])
