"""A watch from its beginning to its end."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from dp_leakage.opacus.findings import HOLDS, STATUS, Finding, Findings, Level
from dp_leakage.opacus.judge import Budget, Judgement, Seen, judge
from dp_leakage.opacus.observer import Observer, tell

T = TypeVar("T")
EVERY = 10


class Watched:
    """What a watch saw. Its findings grow while it lasts; all else is there when it has ended.

    Attributes:
        rank: of this process, if there are several; only rank 0 judges.
    """

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._judgement: Judgement | None = None
        self.rank = 0

    @property
    def judgement(self) -> Judgement:
        """Everything. RuntimeError while the watch lasts."""
        if self._judgement is None:
            raise RuntimeError("the watch has not ended; read its judgement after the `with` block")
        return self._judgement

    @property
    def findings(self) -> list[Finding]:
        """(level, code, sentence), the weightiest first."""
        return list(self._findings)

    @property
    def verdict(self) -> str:
        """``refuted``, ``cannot tell`` or ``holds``."""
        return self._findings.verdict

    @property
    def status(self) -> int:
        """The exit status for it: 3, 2 or 0."""
        return STATUS[self.verdict] if not self.rank else 0

    @property
    def trainings(self) -> list[Seen]:
        """What was measured of each private optimizer."""
        return self.judgement.trainings

    @property
    def budgets(self) -> list[Budget]:
        """ε of what ran, for each accountant."""
        return self.judgement.budgets

    @property
    def epsilon(self) -> dict[str, float | None]:
        """Relation → ε of what ran, of the first accountant; None where nothing is proven."""
        return self.budgets[0].epsilon if self.budgets else {}


@contextmanager
def watch(
    *,
    delta: float | None = None,
    canaries: int = 0,
    every: int = EVERY,
    seed: int = 0,
    say: Callable[[Level, str], None] | None = tell,
) -> Iterator[Watched]:
    """Audit every private training by Opacus within the block, without changing one bit of it.

    Each sentence is printed when it is found. A fault of the watch itself is one more sentence, never an error of the
    training.

    Args:
        delta: at which ε is computed, in (0, 1). None: as the script says, else 1e-5.
        canaries: how many gradients to plant for a lower bound on ε, which changes the training. 0: none.
        every: the clipping of one step in so many is computed again, and of the first three.
        seed: of the watch's own draws.
        say: prints a sentence and its level. None: print nothing.

    Yields:
        What is seen; `Watched.verdict` and the rest after the block.
    """
    findings = Findings(lambda finding: say(finding.level, finding.sentence) if say else None)
    observer, watched = Observer(findings, every, canaries, seed), Watched(findings)
    observer.install()
    try:
        yield watched
    finally:
        observer.remove()
        watched.rank = max((t.optimizer.rank for t in observer.trainings if not t.is_first_rank), default=0)
        try:
            watched._judgement = judge(observer, findings, delta)
        except Exception as error:
            findings.add(Level.UNKNOWN, "watch", f"The judgement failed: {type(error).__name__}: {error}.")
            watched._judgement = Judgement(findings.verdict, list(findings), [], [], None)


def assert_private(train: Callable[[], T], *, epsilon: float | None = None, **options: Any) -> T:
    """Run a training under a watch, for a test: an AssertionError lists what is refuted or cannot be told.

    Args:
        train: takes nothing; whatever it returns is returned.
        epsilon: at most this ε of what ran, between zero-out neighbors. None: as the script states it.
        options: of `watch`.
    """
    with watch(say=None, **options) as seen:
        result = train()
    weighty = [f"{level}: {sentence}" for level, _, sentence in seen.findings if level is not Level.NOTE]
    for budget in seen.budgets:
        spent = budget.epsilon["zero_out"]
        if epsilon is not None and (spent is None or spent > epsilon):
            weighty.append(f"ε of what ran is {spent}, more than {epsilon:g}.")
    if seen.verdict != HOLDS or weighty:
        raise AssertionError("\n".join(weighty))
    return result
