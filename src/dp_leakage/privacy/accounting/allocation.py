"""Random allocation: each unit is in one step of an epoch, drawn uniformly (sampler ``balls_in_bins``).

**The pair.** Without the unit, the t noisy sums of an epoch are Q = N(0, σ²I); with it, P = (1/t) Σ_i N(v_i, σ²I),
where v_i lies along step i and is at most one clipping norm long. The likelihood ratio is a mean over steps, L = (1/t)
Σ_i R_i. Under Q, the R_i of full length are independent and log-normal, ln R ~ N(−s²/2, s²) with s = 1/σ, so that E R
= 1. All divergences are expectations of convex functions of L under Q: δ(ε) is E (L − e^ε)⁺ if the unit is removed
(P‖Q), and E (1 − e^ε L)⁺ if it is added (Q‖P).

**Convex order.** X is below Y in this order if E φ(X) ≤ E φ(Y) for every convex φ. So whatever replaces L by something
above it gives upper bounds in both directions. Three facts are used:

1. To split a mass between two places and keep its mean moves up: that is Jensen's inequality.
2. If X is below Y, then aX + bZ is below aY + bZ for an independent Z, since x ↦ E φ(ax + bZ) is convex.
3. Steps that look at earlier ones, and gradients shorter than the clipping norm, stay below L. Given the steps before,
   R_t is log-normal with some s' ≤ s, which is below that with s, so fact 2 replaces R_t by an independent one with s.
   Then the same is done for R_{t−1}, and so on. (After its own step, a unit has an effect only through what was
   released, so that L holds no further factors.)

So R is put on a geometric grid by splits (1). Means of 1, 2, 4, … steps and of those that make up t are formed on such
grids, again by splits (2). The result is a likelihood ratio on a grid whose logarithms have one spacing: two privacy
loss distributions, which compose over epochs like those of any dominating pair (Zhu, Dong & Wang 2022). All terms are
positive and nothing is transformed, so tails keep their digits. Feldman & Shenfeld (2026, arXiv 2602.17284) compute
the same distributions in another way.

**Neighbors.** Places of other units are drawn independently, so adding a unit and filling its place with nothing are
the same pair. Replacing a unit is one removal and one addition. With F the distribution of L, a set S with Q(S) = s
has P(S) ≤ ∫ F⁻¹ over (1 − s, 1) with the one unit, and P'(S) ≥ ∫ F⁻¹ over (0, s) with the other (convex order keeps
both). Both are reached at once where P has the density F⁻¹(u) and P' has F⁻¹(1 − u) on (0, 1). So these dominate an
epoch; their loss is a difference of two places.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil, log2, sqrt

import numpy as np

from dp_leakage.privacy.accounting import library, losses
from dp_leakage.privacy.accounting.losses import FINEST, LARGEST, NOTHING, Losses

FIRST = 8  # points of the first grid in one standard deviation of ln L; each next grid is twice as fine
MOST_POINTS = 30_000  # of a grid: a mean takes time with their square
AGREEMENT = 3e-3  # relative; the error falls to a quarter with each grid, so a third of it is left


@dataclass(frozen=True)
class Ratio:
    """Likelihood ratio under Q on a geometric grid, with mean 1.

    Attributes:
        spacing: h of the logarithms.
        lowest: the first index: i represents the ratio e^{ih}.
        masses: float64 (n,), Q's masses at the indices from ``lowest`` on.
        zero: Q's mass at ratio 0.
        infinite: P's mass where Q has none.
    """

    spacing: float
    lowest: int
    masses: np.ndarray
    zero: float
    infinite: float

    @property
    def places(self) -> np.ndarray:
        """Return the logarithms in units of the spacing, int64 (n,)."""
        return self.lowest + np.arange(len(self.masses))

    @property
    def deviation(self) -> float:
        """Standard deviation of the logarithm under Q."""
        logs = self.places * self.spacing
        mean = self.masses @ logs
        return float(np.sqrt(self.masses @ (logs - mean) ** 2))

    def refined(self, spacing: float) -> "Ratio":
        """Return the ratio on a grid with this spacing, or this spacing over a power of two."""
        times = round(self.spacing / spacing)
        masses = np.zeros((len(self.masses) - 1) * times + 1)
        masses[::times] = self.masses
        return Ratio(spacing, self.lowest * times, masses, self.zero, self.infinite)

    def trimmed(self) -> "Ratio":
        """Drop grid points at both ends with a total mass below ``NOTHING``, and move it to 0, ∞ and the remaining
        points.
        """
        ratios = np.exp(self.places * self.spacing)
        of_p = self.masses * ratios
        start = int(np.searchsorted(np.cumsum(self.masses), NOTHING))
        stop = len(of_p) - int(np.searchsorted(np.cumsum(of_p[::-1]), NOTHING))
        kept, first, last = self.masses[start:stop].copy(), ratios[start], ratios[stop - 1]
        low, high = of_p[:start].sum() / first, self.masses[stop:].sum()
        kept[0] += low
        kept[-1] += high
        return Ratio(
            self.spacing,
            self.lowest + start,
            kept,
            self.zero + max(float(self.masses[:start].sum() - low), 0.0),
            self.infinite + max(float(of_p[stop:].sum() - high * last), 0.0),
        )


def one_step(apart: float, spacing: float) -> Ratio:
    """Return the ratio of N(apart, 1) and N(0, 1) under the second, each cell's mass split between its two ends."""
    pair = losses.gaussian(apart)
    last = int(np.ceil(pair.reach / spacing))
    places = np.arange(-last, last + 1)
    p, q = pair.masses(np.concatenate([[-np.inf], places * spacing, [np.inf]]))
    ends = np.exp(places * spacing)
    upper = np.clip((p[1:-1] - ends[:-1] * q[1:-1]) / np.diff(ends), 0.0, q[1:-1])
    masses = np.zeros(len(places))
    masses[:-1] += q[1:-1] - upper
    masses[1:] += upper
    masses[0] += p[0] / ends[0]
    masses[-1] += q[-1]
    zero, infinite = max(q[0] - p[0] / ends[0], 0.0), max(p[-1] - ends[-1] * q[-1], 0.0)
    return Ratio(spacing, -last, masses, float(zero), float(infinite)).trimmed()


def mean(a: Ratio, b: Ratio, weight: float) -> Ratio:
    """Return the distribution of weight·A + (1 − weight)·B for independent A and B, on the finer of their grids.

    The mean of two grid points at distance d lies a fixed number of spacings above the first. It is split between the
    two neighboring grid points, for all pairs at this distance at once.
    """
    spacing = min(a.spacing, b.spacing)
    a, b = a.refined(spacing), b.refined(spacing)
    apart = np.arange(b.lowest - a.lowest - len(a.masses) + 1, b.lowest - a.lowest + len(b.masses))
    above = np.logaddexp(np.log(weight), np.log1p(-weight) + apart * spacing) / spacing
    whole = np.floor(above).astype(int)
    upper = np.expm1((above - whole) * spacing) / np.expm1(spacing)
    first = np.maximum(0, b.lowest - a.lowest - apart)  # of a's places that have a partner d apart
    last = np.minimum(len(a.masses), b.lowest - a.lowest + len(b.masses) - apart)
    base = int((first + whole).min())
    found = np.zeros(int((last + whole).max()) + 1 - base)
    for d, at, share, start, stop in zip(apart + a.lowest - b.lowest, whole - base, upper, first, last, strict=True):
        both = a.masses[start:stop] * b.masses[start + d : stop + d]
        high = share * both
        found[start + at : stop + at] += both - high
        found[start + at + 1 : stop + at + 1] += high
    infinite = weight * a.infinite + (1 - weight) * b.infinite
    total = _with_zeros(Ratio(spacing, a.lowest + base, found, a.zero * b.zero, infinite), a, b, weight)
    # Rounding makes all masses a bit too small or too large, by a share that would double with each mean.
    return replace(total, masses=total.masses * ((1 - total.zero) / total.masses.sum())).trimmed()


def _with_zeros(total: Ratio, a: Ratio, b: Ratio, weight: float) -> Ratio:
    """Add to the distribution of a mean of two ratios the cases in which one is 0, rounded down to the grid."""
    found, zero = total.masses.copy(), total.zero
    for one, other, part in ((a, b, weight), (b, a, 1 - weight)):
        places = one.lowest - total.lowest + int(np.floor(np.log(part) / total.spacing)) + np.arange(len(one.masses))
        inside = np.clip(places + 1, 0, len(found) - 1)
        values = part * np.exp(one.places * total.spacing)
        share = np.minimum(values / np.exp((total.lowest + inside) * total.spacing), 1.0)
        np.add.at(found, inside, other.zero * one.masses * share)
        zero += float(other.zero * one.masses @ (1 - share))
    return Ratio(total.spacing, total.lowest, found, zero, total.infinite)


def one_epoch(apart: float, steps: int, points: int) -> Ratio | None:
    """Return L of t steps, on grids of at least ``points`` per standard deviation of ln L; None if a grid is too
    large.

    It uses binary powers: means of 1, 2, 4, … steps, combined to t.
    """
    power, whole, done, size = one_step(apart, apart / points), None, 0, 1
    while True:
        if steps & size:
            whole = power if whole is None else mean(whole, power, done / (done + size))
            done += size
        if done == steps:
            return whole
        finest = max(power.deviation / sqrt(2) / points, FINEST)  # a mean of two deviates by √2 less, or more
        power = power.refined(power.spacing / 2 ** max(ceil(log2(power.spacing / finest)), 0))
        if len(power.masses) > MOST_POINTS:
            return None
        power, size = mean(power, power, 0.5), 2 * size


def of_presence(epoch: Ratio) -> list[Losses]:
    """Return the losses of an epoch if the unit is removed, and if it is added."""
    of_p = epoch.masses * np.exp(epoch.places * epoch.spacing)
    removed = Losses(epoch.spacing, epoch.lowest, of_p, epoch.infinite)
    added = Losses(epoch.spacing, -int(epoch.places[-1]), epoch.masses[::-1], epoch.zero)
    return [removed, added]


def of_replacement(epoch: Ratio) -> list[Losses]:
    """Return the loss of an epoch if the unit is replaced, which is the same in both directions: see *Neighbors*.

    The s-th largest ratio is paired with the s-th smallest. Masses are small at both ends, so each is counted from its
    own end.
    """
    masses, ratios = epoch.masses, np.exp(epoch.places * epoch.spacing)
    smallest = np.cumsum(np.append(epoch.zero, masses))
    largest = np.cumsum(np.append(masses[::-1], epoch.zero))
    limits = np.union1d(smallest, largest)
    limits = np.append(limits[limits < 0.5], 0.5)
    share = np.diff(limits, prepend=0.0)
    low = np.searchsorted(smallest, limits) - 1  # of the masses; −1: a ratio of 0
    high = len(masses) - 1 - np.searchsorted(largest, limits)
    forth, back = (np.where(at >= 0, ratios[at], 0.0) * share for at in (high, low))
    finite, apart = low >= 0, high - low
    widest = int(apart[finite].max(initial=0))
    found = np.zeros(2 * widest + 1)
    np.add.at(found, widest + apart[finite], forth[finite])
    np.add.at(found, widest - apart[finite], back[finite])
    return [Losses(epoch.spacing, -widest, found, epoch.infinite + float(forth[~finite].sum()))]


def totals(sigma: float, steps: int, epochs: int, replaced: bool, beside: float) -> Iterator[list[Losses]]:
    """Yield the losses of all epochs, in both directions or one for both, on ever finer grids; arguments as in
    `epsilon`.
    """
    apart, points = 1 / sigma, FIRST
    while apart * (apart / 2 + 10) <= LARGEST and (epoch := one_epoch(apart, steps, points)):
        once = of_replacement(epoch) if replaced else of_presence(epoch)
        both = [one.repeated(epochs) for one in once]
        if beside:
            pair = losses.gaussian(sqrt((4 if replaced else 2) * beside))
            (other,) = losses.one_step(pair, 1.0, "shown", epoch.spacing)
            both = [one and one.plus(other) for one in both]
        found = [one for one in both if one]
        if len(found) < len(once):
            return
        yield found
        points *= 2


def epsilon(sigma: float, steps: int, epochs: int, delta: float, replaced: bool = False, beside: float = 0.0) -> float:
    """Return ε of Gaussian noise with random allocation: never too small, and mostly tight to 1e-3 for add/remove of a
    unit.

    At most the ε of an attacker who knows every batch, which is exact (`library.gaussian_epsilon`).

    Args:
        sigma: σ > 0 relative to the clipping norm.
        steps: t, of an epoch.
        epochs: k ≥ 1, for each of which steps are drawn again.
        delta: in (0, 1).
        replaced: replace_one neighbors; otherwise a unit is in or out.
        beside: ρ = Δ²/2σ² ≥ 0 of a Gaussian mechanism without sampling, for one unit in or out, that is composed with
            the training.
    """
    known = library.gaussian_epsilon(1 / unamplified(sigma, epochs, replaced, beside), delta, 1)
    if steps == 1 or known == 0:
        return known
    return min(known, losses.epsilon_of(totals(sigma, steps, epochs, replaced, beside), delta, AGREEMENT))


def profile(
    sigma: float, steps: int, epochs: int, replaced: bool = False, beside: float = 0.0
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return δ(ε) ≥ 0 in both directions, never too small; arguments and grid as for ``epsilon``.

    Returns:
        ε, float64 (n,), rising from 0, and δ, float64 (n,), at most 1; None if no grid fits.
    """
    return losses.profile_of(totals(sigma, steps, epochs, replaced, beside), AGREEMENT)


def unamplified(sigma: float, epochs: int, replaced: bool, beside: float) -> float:
    """Return μ of the training for an attacker who knows every batch; arguments as for ``epsilon``."""
    return sqrt((4 if replaced else 1) * epochs / sigma**2 + (4 if replaced else 2) * beside)
