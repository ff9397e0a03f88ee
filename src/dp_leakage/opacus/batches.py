"""Test whether the batches of a training follow the law of its sampler."""

from collections import Counter
from typing import NamedTuple

import numpy as np

from dp_leakage.opacus.findings import Finding, Level
from dp_leakage.opacus.laws import ALPHA, dispersion, repeated_batches
from dp_leakage.opacus.preflight import is_known
from dp_leakage.opacus.record import UNMATCHED, Training

ROUNDING = 1.0001
WEAK = 5.0  # n·q of batches, or T·q of uses, below which the law tells little


class BatchesSeen(NamedTuple):
    """Observed batches of a training.

    Attributes:
        mean, deviation: of their sizes, in records.
        law_mean, law_deviation: of Poisson sampling at ``rate``.
        rate: the largest sampling probability of a loader; None if no batch was a Poisson sample.
        is_poisson: whether each step's batch came from a Poisson sampler; None: unknown.
        most_uses: number of batches of the most used record.
        is_weak: whether there are too few records or steps for the test.
    """

    mean: float
    deviation: float
    law_mean: float
    law_deviation: float
    rate: float | None
    is_poisson: bool | None
    most_uses: int
    is_weak: bool


def judge_batches(training: Training, counted_rate: float | None) -> tuple[BatchesSeen, list[Finding]]:
    """Return the observed batches of a training with steps, and findings that contradict Poisson sampling.

    Args:
        training: with at least one step.
        counted_rate: the largest sampling probability in the accounting; None without accounting.
    """
    found: list[Finding] = []
    steps, records = training.steps, training.claim.records
    sources = Counter(step.source for step in steps)
    for source, count in sources.items():
        if source == UNMATCHED:
            sentence = f"{count} of {len(steps)} steps used batches that no watched loader drew."
            found.append(Finding(Level.UNKNOWN, "batches", sentence))
        elif source != "Poisson":
            known = is_known(source)
            sentence = (
                f"{count} of {len(steps)} steps used batches of {source}, which are not Poisson, but the accountant "
                "assumes Poisson sampling. Train on the loader that make_private returns."
                if known
                else f"{count} of {len(steps)} steps used batches of {source}; whether they are Poisson is unknown."
            )
            found.append(Finding(Level.REFUTED if known else Level.UNKNOWN, "sampler", sentence))
    rate = max((step.rate for step in steps if step.rate is not None), default=None)
    if rate is not None and counted_rate is not None and rate > counted_rate * ROUNDING:
        sentence = f"Records were drawn with probability {rate:.4g}, but the accountant counted {counted_rate:.4g}."
        found.append(Finding(Level.REFUTED, "rate", sentence))
    sizes = np.array([step.size for step in steps])
    share = (records or 0) / training.world
    others = set(sources) - {"Poisson"}
    is_poisson = False if any(map(is_known, others)) else None if others else True
    uses = np.array([training.uses.get(row, 0) for row in range(records or 0)])
    if rate is not None and records and is_poisson and rate < 1:
        rates = {step.rate for step in steps}
        if len(rates) == 1:
            found += _of_law(sizes, share, rate, "The sizes of batches")
            if training.world == 1:
                found += _of_law(uses, len(steps), rate, "The uses of records")
        repeats = sum(count - 1 for count in training.batches.values())
        if repeated_batches(repeats, len(steps), int(share), rate) < ALPHA:
            sentence = f"The same batch was drawn {repeats + 1} times, as by a sampler that is seeded again."
            found.append(Finding(Level.REFUTED, "same_batches", sentence))
    known_rate = rate or 0.0
    seen = BatchesSeen(
        mean=float(sizes.mean()),
        deviation=float(sizes.std()),
        law_mean=share * known_rate,
        law_deviation=(share * known_rate * (1 - known_rate)) ** 0.5,
        rate=rate,
        is_poisson=is_poisson,
        most_uses=max(training.uses.values(), default=len(steps)),
        is_weak=len(steps) < 3 or share * known_rate < WEAK or len(steps) * known_rate < WEAK,
    )
    return seen, found


def _of_law(values: np.ndarray, trials: float, rate: float, what: str) -> list[Finding]:
    few, many = dispersion(values, trials, rate)
    if min(few, many) >= ALPHA / 2:
        return []
    how = "less" if few < many else "more"
    sentence = (
        f"{what} vary {how} than Poisson sampling at rate {rate:.4g} lets them (p = {max(min(few, many), 1e-300):.1g})."
    )
    return [Finding(Level.REFUTED, "law_of_batches", sentence)]
