"""Privacy loss distributions of steps that no library knows, composed on a grid; every grid gives a bound.

A step is worst between two distributions P and Q of its output, its dominating pair: no neighbors have a larger
hockey-stick divergence E_e^ε(P‖Q) = ∫ max(0, p − e^ε q) at any real ε. Pairs of steps compose, even where later
steps look at earlier ones (Zhu, Dong & Wang 2022, "Optimal accounting of differential privacy via characteristic
function"). So it is enough to add up independent losses ln(p/q).

Here the pair with the unit in the batch is symmetric: some map of the outputs swaps P and Q, so that the loss under Q
is minus the loss under P.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

How = Literal["replaced", "added", "shown"]

UNIT = 2.0**-53  # relative error of one operation
MOST_STEPS = 5e7  # with more, rounding shows
VANISHED, LINES = 1e-12, 250  # the δ below which a profile needs no more ε, and its number of ε
NOTHING = 1e-22  # mass that a grid may leave out; it is counted as an infinite loss
LARGEST = 500.0  # losses beyond count as infinite: they matter only at rates of e^−500
FINEST = 1e-7  # spacing of a grid below which rounding shows in δ
FIRST, FINER = 16, 4  # points of one step's first grid, and how much finer each next grid is
MOST_POINTS, MOST_TOTAL = 400_000, 1 << 22  # of one step and of all steps
STEADY, AGREEMENT = 0.05, 1e-3  # relative: how far the variance and the answer may still move from grid to grid
TAIL = 1e-15  # mass of a composition that may lie outside its grid
ORDERS = np.geomspace(0.3, 3e3, 25)  # of Chernoff's bound, over the composition's standard deviation


class Pair(NamedTuple):
    """A symmetric dominating pair P, Q of one step whose batch holds the unit.

    Attributes:
        masses: rising limits of the loss, float64 (n + 1,), perhaps infinite → the masses of P and of Q in each of the
            cells (limit, next limit], float64 (n,) each.
        reach: the loss above which P has less than ``NOTHING``.
    """

    masses: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
    reach: float


@dataclass(frozen=True)
class Losses:
    """Privacy loss under P on a grid.

    Attributes:
        spacing: of the grid, which holds 0.
        lowest: the first loss, in spacings.
        masses: float64 (n,), at the losses (lowest + i) · spacing.
        infinite: the mass at an infinite loss, and all that rounding may have taken from any δ.
    """

    spacing: float
    lowest: int
    masses: np.ndarray
    infinite: float

    @property
    def values(self) -> np.ndarray:
        """Return the losses, float64 (n,)."""
        return (self.lowest + np.arange(len(self.masses))) * self.spacing

    @property
    def variance(self) -> float:
        """Return the mean square of the pair's loss under P, up to ``LARGEST``; slightly too large."""
        return float(self.masses @ self.values**2)

    def repeated(self, times: int) -> "Losses | None":
        """Return the sum of ``times`` independent losses; None if its grid would be too large."""
        if times == 1:
            return replace(self, infinite=min(self.infinite + rounding(1, 1, 1.0), 1.0))
        low, high = self._range(times)
        if high - low >= MOST_TOTAL:
            return None
        from scipy import fft

        size = fft.next_fast_len(max(high - low + 1, len(self.masses)), real=True)
        once = fft.rfft(self.masses, size)
        others = once ** (times - 1)
        kept = np.roll(fft.irfft(others * once, size), -(low % size))[: high - low + 1]
        with np.errstate(divide="ignore"):  # all may be infinite
            infinite = TAIL - np.expm1(times * np.log1p(-self.infinite))
        lost = rounding(times, size, float(np.sqrt(2) * np.linalg.norm(others)))
        return Losses(self.spacing, times * self.lowest + low, kept, min(float(infinite) + lost, 1.0))

    def plus(self, other: "Losses") -> "Losses":
        """Return the sum with an independent loss on a grid of the same spacing."""
        from scipy.signal import fftconvolve

        masses = fftconvolve(self.masses, other.masses)
        infinite = self.infinite + other.infinite - self.infinite * other.infinite
        norm = np.sqrt(len(masses)) * max(np.linalg.norm(one.masses) for one in (self, other))
        lost = rounding(2, len(masses), float(norm))
        return Losses(self.spacing, self.lowest + other.lowest, masses, min(infinite + lost, 1.0))

    def delta(self, epsilon: np.ndarray) -> np.ndarray:
        """Return E_e^ε(P‖Q) at each ε ≥ 0, float64 (n,), in [0, 1]."""
        values, above, below = self._sums
        first = np.searchsorted(values, epsilon, side="right")
        finite = above[first] - np.exp(epsilon - np.append(values, np.inf)[first]) * below[first]
        return np.minimum(np.maximum(finite, 0.0) + self.infinite, 1.0)

    def epsilon(self, delta: float) -> float:
        """Return the least ε ≥ 0 with E_e^ε(P‖Q) ≤ δ, or inf."""
        if self.infinite > delta:
            return np.inf
        values, above, below = self._sums
        left = delta - self.infinite
        # Up to each loss, and from the one before it, δ falls linearly in e^ε.
        first = int(np.argmax(above[1:] - np.exp(-self.spacing) * below[1:] <= left)) if len(values) else 0
        if above[first] <= left:
            return 0.0
        return max(float(values[first] + np.log((above[first] - left) / below[first])), 0.0)

    @cached_property
    def _sums(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the losses l above 0, (n,), and the tail sums of P's mass and of Q's mass times e^l, (n + 1,)."""
        from scipy.signal import lfilter

        positive = self.values > 0
        p = np.append(self.masses[positive], 0.0)[::-1]
        q = lfilter([1.0], [1.0, -np.exp(-self.spacing)], p)
        return self.values[positive], np.cumsum(p)[::-1], q[::-1]

    def _range(self, times: int) -> tuple[int, int]:
        """Return the indices outside of which the sum of ``times`` losses has a mass of at most ``TAIL``, by
        Chernoff.
        """
        from scipy.special import logsumexp

        kept = self.masses > 0
        places, masses = np.flatnonzero(kept).astype(float), self.masses[kept]
        low, high = 0.0, float(times * (len(kept) - 1))
        if not len(places):  # all is infinite
            return 0, 0
        mean = float(masses @ places)
        spread = np.sqrt(times * max(float(masses @ (places - mean) ** 2), 1.0))
        for order in ORDERS / spread:
            for signed in (order, -order):
                with np.errstate(over="ignore"):
                    grown = times * float(logsumexp((places - mean) * signed, b=masses))
                limit = times * mean + (grown + np.log(2 / TAIL)) / signed
                low, high = (low, min(high, limit)) if signed > 0 else (max(low, limit), high)
        return int(np.floor(low)), int(np.ceil(high))


def gaussian(apart: float) -> Pair:
    """Return the pair N(apart, 1) and N(0, 1), whose loss is normal with mean apart²/2."""
    from scipy.special import ndtr

    def masses(limits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return between(limits / apart - apart / 2), between(limits / apart + apart / 2)

    def between(limits: np.ndarray) -> np.ndarray:
        low, high = limits[:-1], limits[1:]
        return np.where(low > 0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))

    return Pair(masses, apart * (apart / 2 + 10))


def on_grid(total: Losses) -> Pair:
    """Return the pair of a composition of symmetric pairs, read off its losses above 0: P's mass at −l is
    Q's mass at l.
    """
    above = total.values > 0
    values, p = total.values[above], np.maximum(total.masses[above], 0.0)
    q = p * np.exp(-values)
    middle = total.masses[total.values == 0]
    at = np.concatenate((-values[::-1], np.zeros(len(middle)), values))
    of_p, of_q = np.concatenate((q[::-1], middle, p)), np.concatenate((p[::-1], middle, q))

    def masses(limits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        cell = np.searchsorted(limits, at, side="left") - 1
        inside = (cell >= 0) & (cell < len(limits) - 1)
        found_p, found_q = (np.bincount(cell[inside], mass[inside], len(limits) - 1) for mass in (of_p, of_q))
        found_p[-1] += total.infinite if np.isposinf(limits[-1]) else 0.0
        return found_p, found_q

    return Pair(masses, float(total.values[-1]))


def variance(pair: Pair) -> float:
    """Return the mean square of the pair's loss under P, up to ``LARGEST``; a bit too large."""
    (one,) = one_step(pair, 1.0, "shown", min(pair.reach, LARGEST) / FIRST / FINER**2)
    return one.variance


def one_step(pair: Pair, rate: float, how: How, spacing: float) -> list[Losses]:
    """Return the loss of one sampled step, from each neighbor to the other (one loss if both are equal).

    With B the step with the unit, C with its replacement, and A without either, where any two are dominated by P, Q:

    - ``replaced``: (1−q) A + q B against (1−q) A + q C. At ε ≥ 0 the divergence is at most q E_β(P‖Q) with β = 1 +
      (e^ε − 1)/q (Balle, Barthe & Gaboardi 2018, theorem 2), that of (1−q) Q + q P against Q; below 0 it is at most the
      mirror image. The two together are convex in e^ε: at 0 the slope grows by (1−q)(1 − 2 P(p < q)), which a symmetric
      pair keeps from being negative. So they are the profile of a pair (Zhu, Dong & Wang 2022, on subsampling), whose
      loss above 0 is that of the first, below 0 that of its mirror image, and otherwise 0.
    - ``added``: (1−q) A + q B against A, in both directions, is dominated by (1−q) Q + q P against Q: its divergence
      at 1 + q(β − 1) is q times that of B from A at β, and without overlap where β < 0.
    - ``shown``: A may be any output that betrays that the unit is absent. By joint convexity the divergence is at most
      q times that of P, Q: with probability 1 − q the loss is 0.
    """
    top = min(np.log1p(rate * np.expm1(min(pair.reach, 700.0))) if how != "shown" else pair.reach, LARGEST)
    last = int(np.ceil(top / spacing))
    first = int(np.floor(np.log1p(-rate) / spacing)) if how == "added" else 0
    ends = spacing * np.arange(first, last + 1)
    limits = ends
    if how != "shown":
        with np.errstate(divide="ignore"):
            limits = np.log1p(np.maximum(np.expm1(ends) / rate, -1.0))
    p, q = pair.masses(np.append(limits, np.inf))
    p, q = (rate * p, rate * q) if how == "shown" else (rate * p + (1 - rate) * q, q)
    if how == "added":
        forth = _dots(spacing, first, p, q)
        back = _dots(spacing, -last, q[-2::-1], p[-2::-1], before=float(q[-1]), ended=True)
        return [forth, back]
    half = _dots(spacing, 0, p, q)
    middle = max(1 - float(p.sum() + q.sum()), 0.0) + 2 * half.masses[0]
    above = half.masses[1:]
    below = (above * np.exp(-ends[1:]))[::-1]
    return [Losses(spacing, -last, np.concatenate((below, [middle], above)), half.infinite)]


def _dots(spacing: float, first: int, p: np.ndarray, q: np.ndarray, before: float = 0.0, ended: bool = False) -> Losses:
    """Connect the dots of a profile (Doroshenko et al. 2022): each cell's masses move to its two ends.

    P and Q keep their masses, so the profile between the ends becomes its chord, which lies above.

    Args:
        spacing, first: cell i starts at the loss (first + i) · spacing.
        p, q: float64 (n,), masses of each cell; the last cell has no end, unless ``ended``.
        before: P's mass below the first cell.
        ended: nothing lies above the last cell.
    """
    if ended:
        p, q = np.append(p, 0.0), np.append(q, 0.0)
    steps = np.full(len(p), -np.expm1(-spacing))
    steps[-1] = 1.0  # all that is beyond the first end counts as an infinite loss
    upper = np.clip((p - q * np.exp(spacing * (first + np.arange(len(p))))) / steps, 0.0, p)
    masses = p - upper
    masses[1:] += upper[:-1]
    masses[0] += before
    return Losses(spacing, first, masses, min(float(upper[-1]), 1.0))  # sums of masses may round above 1


def profile(pair: Pair, rate: float, how: How, steps: int, beside: float = 0.0) -> tuple[np.ndarray, np.ndarray] | None:
    """Return δ(ε) ≥ 0 of all steps, between neighbors in both directions; never too small, and mostly tight to 1e-4.

    Args:
        pair: see ``Pair``.
        rate: q in (0, 1], the unit's chance of being in a batch.
        how: see ``one_step``.
        steps: T.
        beside: ρ ≥ 0 of a Gaussian mechanism without sampling that is composed with the steps.

    Returns:
        ε, float64 (n,), rising from 0, and δ, float64 (n,), at most 1; None if no grid fits.
    """
    return profile_of(_finer(pair, rate, how, steps, beside))


def epsilon(pair: Pair, rate: float, how: How, steps: int, delta: float, beside: float = 0.0) -> float:
    """Return the least ε with δ(ε) ≤ ``delta`` in both directions, never too small; inf if no grid fits.

    Arguments as for ``profile``.
    """
    return epsilon_of(_finer(pair, rate, how, steps, beside), delta)


def profile_of(totals: Iterable[list[Losses]], agreement: float = AGREEMENT) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the largest δ(ε) ≥ 0 of some losses, on the first of ever finer grids where it converges."""
    start = np.zeros(1)
    found = settled(totals, lambda total: max(float(one.delta(start)[0]) for one in total), agreement)
    if found is None:
        return None
    top = max(one.epsilon(VANISHED + one.infinite) for one in found)
    epsilon = top * np.linspace(0.0, 1.0, LINES) ** 2  # closest where the curve bends
    return epsilon, np.max([one.delta(epsilon) for one in found], axis=0)


def epsilon_of(totals: Iterable[list[Losses]], delta: float, agreement: float = AGREEMENT) -> float:
    """Return the largest ε of some losses at δ, on the first of ever finer grids where it converges; inf without any
    grid.
    """

    def answer(total: list[Losses]) -> float:
        return max(one.epsilon(delta) for one in total)

    found = settled(totals, answer, agreement)
    return np.inf if found is None else answer(found)


def rounding(steps: int, size: int, norm: float) -> float:
    """Bound the error of any δ of T equal losses that are added up by Fourier transforms.

    With u = ``UNIT``, each frequency F of one loss is off by at most g = (4 log₂ N + 16) u: a mass passes log₂ N
    butterflies of 4u at most (Higham 2002, §24.1), and 16u are for the masses themselves, whose errors cancel between
    neighbors. So F^T is off by E ≤ T g |F|^(T−1). δ weighs the losses by a function that rises from 0 to 1, whose
    transform is at most N at 0 and 1/sin(πk/N) at k, and N in ℓ2. So it is off by min(‖E‖, max |E| (2 + ln N)) at most,
    and by g ‖F^T‖ more in the way back.

    Args:
        steps: T ≥ 1.
        size: N, of the transforms; 1 without any.
        norm: ‖F^(T−1)‖₂ over all frequencies, which is at least that of F^T.
    """
    each = UNIT * (4 * np.log2(size) + 16)
    return float(each * (steps * min(norm, 2 + np.log(size)) + norm))


def settled(
    totals: Iterable[list[Losses]], answer: Callable[[list[Losses]], float], agreement: float = AGREEMENT
) -> list[Losses] | None:
    """Return the first of ever finer totals whose answer hardly changes, or the last; None without totals."""
    best, previous = None, np.inf
    for total in totals:
        best, now = total, answer(total)
        if now == previous or abs(previous - now) <= agreement * now:
            break
        previous = now
    return best


def _finer(pair: Pair, rate: float, how: How, steps: int, beside: float) -> Iterator[list[Losses]]:
    """Yield the loss of all steps on ever finer grids, starting where the variance of one step has converged."""
    if steps > MOST_STEPS:
        return
    reach = np.log1p(rate * np.expm1(min(pair.reach, 700.0))) if how != "shown" else pair.reach
    spacing, variance = min(reach, LARGEST) / FIRST, np.inf
    while spacing >= FINEST and min(reach, LARGEST) / spacing <= MOST_POINTS:
        step = one_step(pair, rate, how, spacing)
        before, variance = variance, step[0].variance
        if abs(before - variance) <= STEADY * variance:
            total = [one.repeated(steps) for one in step]
            if beside and all(total):
                other = one_step(gaussian(np.sqrt(2 * beside)), 1.0, "shown", spacing)[0]
                total = [one.plus(other) for one in total if one]
            if None in total:
                return
            yield [one for one in total if one]
        spacing /= FINER
