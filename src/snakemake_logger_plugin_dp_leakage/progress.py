"""How far a run is, in words: jobs and cells done of all, what runs, and about how long the rest takes.

Nothing here knows Snakemake; the handler beside it hands over what it reports. All times are seconds.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

CELL = "judge_"  # how the rules begin whose jobs judge a cell
TOLD = 10  # an estimate is given after this many seconds
PAUSE = 30  # between two plain lines, or a twentieth of the time that the run has taken, whichever is longer


@dataclass
class Progress:
    """A run's jobs so far.

    Args:
        jobs: rule → how many jobs of it the run has.
        began: when.
    """

    jobs: Mapping[str, int]
    began: float
    running: dict[int, tuple[str, str, float]] = field(default_factory=dict)  # job → rule, message, start; oldest first
    spent: dict[str, list[float]] = field(default_factory=dict)  # rule → how long its finished jobs took
    failed: dict[int, str] = field(default_factory=dict)  # job → rule
    submitted: dict[int, frozenset[int]] = field(default_factory=dict)  # job → the jobs of its submission
    queue: Mapping[str, int] = field(default_factory=dict)  # as the cluster says: state → submissions

    def start(self, job: int, rule: str, message: str, at: float) -> None:
        """A job starts, or starts again after it failed."""
        self.failed.pop(job, None)
        self.running[job] = rule, " ".join(message.split()), at

    def finish(self, job: int, at: float) -> None:
        """A job is done."""
        rule, _, start = self.running.pop(job, ("", "", at))
        self.spent.setdefault(rule, []).append(at - start)

    def fail(self, job: int) -> None:
        """A job failed."""
        if job in self.running:
            self.failed[job] = self.running.pop(job)[0]

    def leave(self, job: int) -> None:
        """A job did not fail itself, but another one of its submission."""
        self.running.pop(job, None)

    def submit(self, jobs: Iterable[int]) -> None:
        """Jobs go to a cluster together, where they wait before they run."""
        together = frozenset(jobs)
        self.submitted.update(dict.fromkeys(together, together))

    def submissions(self) -> str:
        """Such as ``submissions: 3 queued, 1 running, 2 done``; "" on one machine."""
        if not self.submitted:
            return ""
        every = set(self.submitted.values())
        alive = sum(not together.isdisjoint(self.running) for together in every)
        # A failed submission is neither: another line names it.
        done = len(every) - alive - sum(not together.isdisjoint(self.failed) for together in every)
        counted = self.queue or {"sent": alive}
        words = [f"{count:,} {state}" for state, count in [*counted.items(), ("done", done)]]
        return f"submissions: {', '.join(words)}"

    @property
    def total(self) -> int:
        """Jobs of the run."""
        return sum(self.jobs.values())

    @property
    def done(self) -> int:
        """Jobs that are done."""
        return sum(map(len, self.spent.values()))

    @property
    def cells(self) -> int:
        """Cells that the run judges."""
        return sum(count for rule, count in self.jobs.items() if rule.startswith(CELL))

    def plan(self) -> str:
        """Such as ``181 jobs, 54 cells``."""
        cells = self.cells
        return f"{self.total:,} jobs" + (f", {cells:,} cells" if cells else "")

    def counts(self) -> str:
        """Such as ``34 of 181 jobs, 12 of 54 cells, 1 failed``."""
        return self._finished() + (f", {self._failures()}" if self.failed else "")

    def _finished(self) -> str:
        words = f"{self.done:,} of {self.total:,} jobs"
        done = sum(len(times) for rule, times in self.spent.items() if rule.startswith(CELL))
        return words + (f", {done:,} of {self.cells:,} cells" if self.cells else "")

    def _failures(self) -> str:
        return f"{len(self.failed):,} failed"

    def now(self) -> str:
        """What has been running longest, in its rule's words, and how many jobs run beside it; "" if nothing runs.

        On a cluster, where jobs wait among others', the counts of submissions.
        """
        if self.submitted:
            return self.submissions()
        messages = [message for _, message, _ in self.running.values() if message]
        if not messages:
            return ""
        return messages[0] + (f" (and {len(messages) - 1:,} more)" if messages[1:] else "")

    def left(self, at: float) -> float | None:
        """About how many seconds the rest takes; None as long as too little is known, and on a cluster, where others'
        jobs come first.
        """
        if self.submitted:
            return None
        failed = list(self.failed.values())
        waiting = {
            rule: count - len(self.spent.get(rule, ())) - failed.count(rule) for rule, count in self.jobs.items()
        }
        ages = [(rule, at - start) for rule, _, start in self.running.values()]
        return time_left(waiting, self.spent, ages, at - self.began)

    def line(self, at: float, width: int) -> str:
        """All of it in at most ``width`` characters; what runs is cut short first."""
        left = self.left(at)
        end = "" if left is None else f" · about {in_words(rounded(left))} left"
        room = width - len(self.counts()) - len(end) - len(" · ")
        now = self.now()
        if len(now) > room:
            now = now[: max(room - 1, 0)] + "…"
        return (self.counts() + (f" · {now}" if len(now) > 1 else "") + end)[:width]

    def summary(self, at: float) -> str:
        """What was done, once the run ends."""
        failures = f"; {self._failures()}" if self.failed else ""
        return f"{self._finished()} done in {in_words(at - self.began)}{failures}"


def time_left(
    unfinished: Mapping[str, int],
    spent: Mapping[str, Sequence[float]],
    running: Sequence[tuple[str, float]],
    elapsed: float,
) -> float | None:
    """How long the rest of a run takes, if a job takes as long as others of its rule did on average.

    The work that is left is set against the work that was done in the time so far, so that neither the cores nor how
    well the jobs fill them need be known.

    Args:
        unfinished: rule → jobs that are not done, those that run included.
        spent: rule → seconds that each of its finished jobs took.
        running: rule and age in seconds of each job that runs.
        elapsed: seconds since the run began.

    Returns:
        Seconds, at least 1. None where that would be a guess: in the first seconds, while a job runs of whose rule none
        is done, while most of what is left is of such rules, and once every job that is left is overdue.
    """
    means = {rule: sum(times) / len(times) for rule, times in spent.items() if times}
    all_left = sum(unfinished.values())
    known_left = sum(count for rule, count in unfinished.items() if rule in means)
    if elapsed < TOLD or 2 * known_left < all_left or any(rule not in means for rule, _ in running):
        return None
    finished = [seconds for times in spent.values() for seconds in times]
    usual = sum(finished) / max(len(finished), 1)  # of a rule of which none is done
    begun = sum(min(age, means[rule]) for rule, age in running)
    work_done = sum(finished) + begun
    work_left = sum(count * means.get(rule, usual) for rule, count in unfinished.items()) - begun
    left = elapsed * work_left / work_done if work_done > 0 else 0.0
    return left if left >= 1 else None


def in_words(seconds: float) -> str:
    """A time as ``5 s``, ``1 min 20 s``, ``2 h 10 min`` or ``1 d 3 h``."""
    whole = round(seconds)
    for large, small, size, part in (("d", "h", 86400, 3600), ("h", "min", 3600, 60), ("min", "s", 60, 1)):
        if whole >= size:
            rest = whole % size // part
            return f"{whole // size} {large}" + (f" {rest} {small}" if rest else "")
    return f"{whole} s"


def rounded(seconds: float) -> int:
    """A time as exactly as an estimate deserves: to 5 s, and to 10 s, 1 min, 10 min, 1 h as it grows."""
    steps = ((60, 5), (600, 10), (3600, 60), (86400, 600))
    step = next((step for below, step in steps if seconds < below), 3600)
    return max(round(seconds / step), 1) * step


def due(done: int, total: int, at: float, began: float, last: tuple[int, float]) -> bool:
    """Whether a plain line is due: a tenth of the jobs more is done, or the last line is long ago.

    Args:
        done: jobs that are done, ``total`` of all.
        at: now; ``began`` is when the run did.
        last: jobs that were done when the last line was written, and when.
    """
    tenth = 10 * done // max(total, 1) > 10 * last[0] // max(total, 1)
    return tenth or at - last[1] >= max(PAUSE, (at - began) / 20)
