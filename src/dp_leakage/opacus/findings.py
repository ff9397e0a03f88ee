"""What a watch says: sentences at three levels, and the verdict that follows from them."""

from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple


class Level(StrEnum):
    """How much a sentence weighs."""

    REFUTED = "refuted"  # a stated ε is false, or nothing proves it
    UNKNOWN = "cannot tell"  # it may be, and the watch cannot see it
    NOTE = "note"  # true of many correct scripts


HOLDS = "holds"
STATUS = {HOLDS: 0, Level.UNKNOWN.value: 2, Level.REFUTED.value: 3}  # verdict → exit status of the command

# With these findings nothing bounds what is published of one record, so no ε is stated beside them.
UNBOUNDED = frozenset(
    {"batch_norm", "mixing", "buffer", "clipping", "clip_bound", "norm", "bypass", "optimizer", "count"}
)


class Finding(NamedTuple):
    """One sentence.

    Attributes:
        level: its weight.
        code: a stable name of the fault, such as ``noise`` or ``sampler``.
        sentence: what was found, with its numbers.
    """

    level: Level
    code: str
    sentence: str


class Findings:
    """The sentences of one watch. Each fault is told once, when it is first seen."""

    def __init__(self, on_new: Callable[[Finding], None] = lambda finding: None) -> None:
        self.on_new = on_new
        self._by_fault: dict[tuple[str, str], Finding] = {}

    def add(self, level: Level, code: str, sentence: str, about: str = "") -> None:
        """Keep a sentence, unless this fault was told already. ``about`` tells faults of the same code apart."""
        if (code, about) not in self._by_fault:
            finding = self._by_fault[code, about] = Finding(level, code, sentence)
            self.on_new(finding)

    def extend(self, findings: list[Finding], about: str = "") -> None:
        """Keep several."""
        for finding in findings:
            self.add(*finding, about)

    def __iter__(self):  # type: ignore[no-untyped-def]
        """The sentences, the weightiest first, in the order in which they were found."""
        order = list(Level)
        return iter(sorted(self._by_fault.values(), key=lambda finding: order.index(finding.level)))

    def __contains__(self, code: str) -> bool:
        return any(finding.code == code for finding in self._by_fault.values())

    @property
    def is_bounded(self) -> bool:
        """Whether no finding leaves a record's effect without a bound."""
        return not any(
            finding.code in UNBOUNDED and finding.level is Level.REFUTED for finding in self._by_fault.values()
        )

    @property
    def verdict(self) -> str:
        """``refuted``, ``cannot tell`` or ``holds``."""
        levels = {finding.level for finding in self._by_fault.values()}
        return next((level.value for level in (Level.REFUTED, Level.UNKNOWN) if level in levels), HOLDS)
