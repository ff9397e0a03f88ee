"""Findings of a watch: sentences at three levels, and the verdict."""

from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple


class Level(StrEnum):
    """Weight of a finding."""

    REFUTED = "refuted"  # a stated ε is false, or nothing proves it
    UNKNOWN = "cannot tell"  # it may be, and the watch cannot see it
    NOTE = "note"  # true of many correct scripts


HOLDS = "holds"
STATUS = {HOLDS: 0, Level.UNKNOWN.value: 2, Level.REFUTED.value: 3}  # verdict → exit status of the command

# With these findings the effect of one record has no bound, so no ε is stated.
UNBOUNDED = frozenset(
    {"batch_norm", "mixing", "buffer", "clipping", "clip_bound", "norm", "bypass", "optimizer", "count"}
)


class Finding(NamedTuple):
    """A finding.

    Attributes:
        level: its weight.
        code: a stable name of the fault, such as ``noise`` or ``sampler``.
        sentence: the finding with its numbers.
    """

    level: Level
    code: str
    sentence: str


class Findings:
    """Findings of one watch. Each fault is reported once, at its first occurrence."""

    def __init__(self, on_new: Callable[[Finding], None] = lambda finding: None) -> None:
        self.on_new = on_new
        self._by_fault: dict[tuple[str, str], Finding] = {}

    def add(self, level: Level, code: str, sentence: str, about: str = "") -> None:
        """Keep a finding, unless this fault was reported already. ``about`` distinguishes faults of the same code."""
        if (code, about) not in self._by_fault:
            finding = self._by_fault[code, about] = Finding(level, code, sentence)
            self.on_new(finding)

    def extend(self, findings: list[Finding], about: str = "") -> None:
        """Keep several findings."""
        for finding in findings:
            self.add(*finding, about)

    def __iter__(self):  # type: ignore[no-untyped-def]
        """Iterate over the findings, the weightiest first, then in order of discovery."""
        order = list(Level)
        return iter(sorted(self._by_fault.values(), key=lambda finding: order.index(finding.level)))

    def __contains__(self, code: str) -> bool:
        return any(finding.code == code for finding in self._by_fault.values())

    @property
    def is_bounded(self) -> bool:
        """Return whether the effect of each record is bounded in spite of all findings."""
        return not any(
            finding.code in UNBOUNDED and finding.level is Level.REFUTED for finding in self._by_fault.values()
        )

    @property
    def verdict(self) -> str:
        """``refuted``, ``cannot tell`` or ``holds``."""
        levels = {finding.level for finding in self._by_fault.values()}
        return next((level.value for level in (Level.REFUTED, Level.UNKNOWN) if level in levels), HOLDS)
