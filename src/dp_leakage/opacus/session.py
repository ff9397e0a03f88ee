"""A watch from start to end."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from dp_leakage.opacus.findings import HOLDS, STATUS, Finding, Findings, Level
from dp_leakage.opacus.judge import Budget, Judgement, Seen, judge
from dp_leakage.opacus.observer import Observer, tell

T = TypeVar("T")
EVERY = 10


class Watched:
    """Results of a watch. Findings are available during the watch, everything else after it.

    Attributes:
        rank: rank of this process in distributed training; only rank 0 judges.
    """

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._judgement: Judgement | None = None
        self.rank = 0

    @property
    def judgement(self) -> Judgement:
        """Return the full judgment. Raises RuntimeError during the watch."""
        if self._judgement is None:
            raise RuntimeError("the watch has not ended; read its judgement after the `with` block")
        return self._judgement

    @property
    def findings(self) -> list[Finding]:
        """Return (level, code, sentence) of each finding, the weightiest first."""
        return list(self._findings)

    @property
    def verdict(self) -> str:
        """``refuted``, ``cannot tell`` or ``holds``."""
        return self._findings.verdict

    @property
    def status(self) -> int:
        """Return the exit status of the verdict: 3, 2 or 0."""
        return STATUS[self.verdict] if not self.rank else 0

    @property
    def trainings(self) -> list[Seen]:
        """Return the measurements of each private optimizer."""
        return self.judgement.trainings

    @property
    def budgets(self) -> list[Budget]:
        """Return the ε of the trainings as they ran, for each accountant."""
        return self.judgement.budgets

    @property
    def epsilon(self) -> dict[str, float | None]:
        """Return relation → ε of the trainings as they ran, for the first accountant; None without a proof."""
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
    """Audit every private training by Opacus within the block. Without canaries, its result is the same bit for bit.

    Findings are printed at once. An error of the watch itself is one more finding, never an error of the training.

    Args:
        delta: δ of the ε, in (0, 1). None: δ of the script, or 1e-5.
        canaries: number of canary gradients, which change the training and give a lower bound on ε. 0: none.
        every: check the clipping in every such step, and in the first three.
        seed: seed of the watch's own draws.
        say: function that prints a finding and its level. None: print nothing.

    Yields:
        The results; `Watched.verdict` and the rest are available after the block.
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
    """Run a training under a watch in a test; raise AssertionError with all findings unless the verdict is ``holds``.

    Args:
        train: function without arguments; its result is returned.
        epsilon: largest allowed ε of the training as it ran, between zero-out neighbors. None: the script's own
            statement.
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
