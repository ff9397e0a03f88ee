"""Study as a value: a checked study file at one scale. The modules after this one are functions of it."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from dp_leakage.common.config import Json
from dp_leakage.common.errors import UserError, nearest
from dp_leakage.study.cells import Cell, cells_of
from dp_leakage.study.protocol import AUDIT, COINS, design_of, keyed
from dp_leakage.table.origin import FULL

T = TypeVar("T")


@dataclass(frozen=True)
class Study:
    """A checked study at one scale.

    Attributes:
        name: its folder in ``results``, ``STUDY[-SCALE][-ENGINE]``, such as ``quickstart-smoke-opacus``. The scale
            ``paper`` and the engine ``ensemble`` are left out.
        spec: the study file after overrides and scale, as the schema describes it.
        folder: folder of its file and of further files of this study.
        scale: ``paper``, ``small`` or ``smoke``.
        contents: SHA-256 of each user file read so far to make the settings of steps, by its name in the study.
    """

    name: str
    spec: Json
    folder: Path = Path()
    scale: str = FULL
    contents: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)
    _known: dict[tuple[str, Hashable], Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def target(self) -> str:
        """Name of the Snakemake target that runs the whole study."""
        return self.spec["study"]

    @property
    def targets(self) -> list[str]:
        """Names of its Snakemake targets: the study, its report, check and figures; its audit and release if it has
        them.
        """
        own = [*keyed(self.spec, AUDIT), *(["release"] if self.releases else [])]
        return [self.target, *(f"{self.target}_{part}" for part in ("report", "verify", *own, *self.spec["figures"]))]

    @property
    def releases(self) -> bool:
        """Return whether the study names a cell for release."""
        return "cell" in self.spec.get("release", {})

    @cached_property
    def cells(self) -> dict[str, Cell]:
        """``Cell.key`` → cell, in the order of the study file."""
        return cells_of(self.name, self.spec)

    def cell(self, dataset: str, model: str, defense: str) -> Cell:
        """Return the cell of these names. Raises UserError for names that the study does not have."""
        key = f"{dataset}/{model}/{defense}"
        if key not in self.cells:
            raise UserError(f"study {self.target} has no cell '{key}'; {nearest(key, self.cells)}")
        return self.cells[key]

    def cell_named(self, name: str) -> Cell:
        """Return the private cell ``model/defense``, or ``dataset/model/defense``. Raises UserError if it does not
        exist.
        """
        found = [cell for key, cell in self.cells.items() if name in (key, f"{cell.model}/{cell.defense}")]
        if len(found) == 1:
            return found[0]
        if found:
            words = " or ".join(cell.key for cell in found)
            raise UserError(f"CELL: {name!r} is one of several data sets; write {words}")
        raise UserError(f"CELL: study {self.target} has no cell {name!r}; {nearest(name, self.private_names)}")

    @property
    def private_names(self) -> set[str]:
        """``model/defense`` of each private cell."""
        return {f"{cell.model}/{cell.defense}" for cell in self.cells.values() if cell.protection}

    @cached_property
    def bounds_together(self) -> int:
        """Return the number of lower bounds on ε that must hold together, from audits and random inclusion: all of
        the study, or 1.
        """
        if self.spec.get(AUDIT, {}).get("hold", "together") == "each":
            return 1
        by_coins = sum(1 + cell.noisy for cell in self.cells.values()) if design_of(self.spec) == COINS else 0
        return max(sum(len(cell.audits) for cell in self.cells.values()) + by_coins, 1)

    def path(self, pattern: str, cell: Cell | None = None, /, **names: str) -> Path:
        """Return the file of a pattern of `paths`, of a cell or of these names."""
        return Path(pattern.format(study=self.name, **(cell.names if cell else {}), **names))

    def remembered(self, what: str, name: Hashable, made: Callable[[], T]) -> T:
        """Return a cached value: with many cells, computing identities dominates the time before the first job."""
        if (what, name) not in self._known:
            self._known[what, name] = made()
        known: T = self._known[what, name]
        return known
