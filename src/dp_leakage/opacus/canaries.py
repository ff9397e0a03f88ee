"""Canary gradients: a lower bound on ε from a white-box observer of every noisy sum."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from dp_leakage.audits.claims import Claim, approximate_dp, own_curves
from dp_leakage.audits.many_runs import many_runs_bound
from dp_leakage.audits.one_run import one_run_bound
from dp_leakage.opacus.record import Training
from dp_leakage.opacus.spent import Steps, curve_of

LARGEST = 700.0  # exponent
ASSUMPTIONS = {
    "any": "any mechanism; canaries may influence each other",
    "own": "the curve of the claimed mechanism; canaries may influence each other",
    "independent": "the curve of the claimed mechanism; canaries do not influence each other, as each has its own "
    "coordinate and the noise of coordinates is independent",
}


class CanaryBound(NamedTuple):
    """A lower bound at 95 % confidence.

    Attributes:
        epsilon: the true ε is at least this.
        right, guesses: number of right guesses, and of guesses, about the canaries.
        canaries: number of canaries.
        assumption: the condition of the bound, in words.
    """

    epsilon: float
    right: int
    guesses: int
    canaries: int
    assumption: str


class Canaries:
    """Canary gradients of length C, each along a coordinate of its own and tied to a record.

    A fair coin decides whether a canary is included whenever its record is in a batch.
    """

    def __init__(self, wanted: int, optimizer: Any, records: int, rate: float, rng: np.random.Generator) -> None:
        """Draw the canaries and their coins. There are at most as many as records, and half as many as coordinates."""
        sizes = [p.numel() for p in optimizer.params]
        self.count = min(wanted, records, sum(sizes) // 2)
        self.rate, self.limits = rate, np.concatenate([[0], np.cumsum(sizes)])
        self.coordinates = rng.choice(sum(sizes), self.count, replace=False)
        self.canary_of = {int(row): i for i, row in enumerate(rng.choice(records, self.count, replace=False))}
        self.included = rng.random(self.count) < 0.5
        self.scores, self.present = np.zeros(self.count), np.zeros(self.count)
        self.added: list[Tensor] = []

    def plant(self, optimizer: Any, bound: float, rows: Sequence[int]) -> None:
        """Add the canaries of a batch's records to the sum, before the noise."""
        self.present = np.zeros(self.count)
        for row in rows:
            i = self.canary_of.get(int(row))
            if i is not None and self.included[i]:
                self.present[i] += 1
        flat = np.zeros(self.limits[-1], np.float32)
        flat[self.coordinates] = self.present * bound
        self.added = []
        for low, high, p in zip(self.limits[:-1], self.limits[1:], optimizer.params, strict=True):
            extra = torch.as_tensor(flat[low:high]).to(p.summed_grad).reshape(p.summed_grad.shape)
            p.summed_grad += extra
            self.added.append(extra)

    def removed(self, totals: Sequence[Tensor]) -> list[Tensor]:
        """Return the sums without the canaries of this step."""
        if not self.added:
            return list(totals)
        return [total - extra for total, extra in zip(totals, self.added, strict=True)]

    def observe(self, noise: Tensor, std: float, bound: float) -> None:
        """Score each canary by the log-likelihood ratio of its coordinate, for an observer who does not know the
        batches.

        Args:
            noise: the applied sum minus the sum with canaries; flat, all parameters in turn.
            std: of the noise.
            bound: C.
        """
        seen = noise.cpu().numpy()[self.coordinates].astype(float) / bound + self.present
        sigma = std / bound
        exponent = np.clip((2 * seen - 1) / (2 * sigma**2), -LARGEST, LARGEST)
        self.scores += np.log1p(self.rate * np.expm1(exponent))

    def bounds(self, training: Training, delta: float) -> dict[str, CanaryBound]:
        """Return lower bounds at 95 % confidence by assumption. The last two need equal steps with q < 1."""
        kinds: dict[str, tuple[Any, Claim]] = {"any": (one_run_bound, approximate_dp(delta))}
        if len({step.noise_multiplier for step in training.steps}) == 1 and self.rate < 1:
            sigma, steps = training.steps[0].noise_multiplier, len(training.steps)

            def curve(strength: float) -> Any:
                found = curve_of([Steps(sigma / strength, self.rate, steps)], "add_remove")
                assert found is not None
                return found.tpr

            own = own_curves("own", delta, curve)
            kinds |= {"own": (one_run_bound, own), "independent": (many_runs_bound, own)}
        result = {}
        for name, (bound, claim) in kinds.items():
            audit = bound(self.scores, self.included, claim)
            result[name] = CanaryBound(audit.epsilon, audit.right, audit.guesses, self.count, ASSUMPTIONS[name])
        return result
