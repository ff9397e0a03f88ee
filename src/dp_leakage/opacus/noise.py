"""Noise of a training: sums during the run, and tests at the end."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, sqrt
from typing import NamedTuple

import numpy as np
import torch
from scipy.stats import chi2
from torch import Tensor

from dp_leakage.opacus.findings import Finding, Level
from dp_leakage.opacus.laws import ALPHA, BAND, least_square, std_interval

KEY = 64  # signs that identify a draw: two draws share them by a chance of 2⁻⁶³
NEAR = 0.02  # of σ: nearer to zero than this lies a number without noise, and 1.6 % of those with noise
NEAR_SHARE = 0.015957  # P[|z| < NEAR]
SHARE_SEEN = 0.02  # of the coordinates of a tensor: fewer without noise in single steps are not refuted
RELATED = 0.02  # correlations below this are not refuted
NOT_GAUSSIAN = 0.05  # relative difference of the fourth moment from 3 that is refuted
NOTHING = 0.01  # noise below this share of what was counted is none
NEARLY_ALL = 0.9  # of the numbers
SURE = 6.0  # standard deviations
MOST_TOGETHER, MOST_WAITING = 16, 2**18  # steps, and numbers of their noise, that are summed up in one go


class NoiseTable(NamedTuple):
    """Sums over the noise of T steps on k tensors.

    Attributes:
        names: of the k tensors.
        sizes: int64 (k,), number of coordinates of each.
        std: float64 (T,), of the noise on the sum, as counted by the accountant.
        squares, sums, lagged, along, total: float64 (T, k): of the noise u on each tensor Σu², Σu, its product with the
            step before, its product with the clipped sum s, and Σs².
        least: float64 (k,), over coordinates the least Σ(u/σ)² of all steps.
        silent: int64 (k,), coordinates whose Σ(u/σ)² is below 1e-6.
        near, near_steps: int64 (k,), number of coordinates within ``NEAR`` of zero, and the number of checked steps.
        fourth, second: float64 (k,), Σ(u/σ)⁴ and Σ(u/σ)² over the checked steps.
        repeats: number of draws used before, with either sign.
    """

    names: tuple[str, ...]
    sizes: np.ndarray
    std: np.ndarray
    squares: np.ndarray
    sums: np.ndarray
    lagged: np.ndarray
    along: np.ndarray
    total: np.ndarray
    least: np.ndarray
    silent: np.ndarray
    near: np.ndarray
    near_steps: int
    fourth: np.ndarray
    second: np.ndarray
    repeats: int


class NoiseSums:
    """Running sums over the noise of each step, without random draws.

    Two numbers are kept for each parameter. For small models, a few steps are collected and summed together, since
    there the calls cost more than the arithmetic.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        """Start without a step, for k tensors of these sizes."""
        self.sizes = list(sizes)
        self.together = min(max(MOST_WAITING // max(sum(self.sizes), 1), 1), MOST_TOGETHER)
        self.waiting: list[tuple[Tensor, Tensor, float, bool]] = []  # noise, clipped sum, std, checked
        self.steps: list[Tensor] = []
        self.standard: Tensor | None = None  # per coordinate, Σ(u/σ)²
        self.previous: Tensor | None = None
        self.keys: Counter[bytes] = Counter()
        self.checked, self.checked_steps = torch.zeros(len(self.sizes), 3, dtype=torch.float64), 0
        self._places = _key_places(self.sizes)

    def add(
        self, totals: Sequence[Tensor], applied: Sequence[Tensor], divisor: float, std: float, checked: bool
    ) -> Tensor:
        """Add a step; return its noise, one flat tensor for all parameters in turn.

        Args:
            totals: the clipped sum of each parameter.
            applied: the optimizer's gradient of each parameter; multiplied by ``divisor``, the noisy sum.
            divisor: > 0.
            std: expected standard deviation of this step's noise, ≥ 0.
            checked: whether single coordinates are tested too.
        """
        total = torch.cat([s.reshape(-1) for s in totals])
        noise = torch.cat([a.reshape(-1) for a in applied]).mul_(divisor).sub_(total).float()
        self.waiting.append((noise, total.float(), std, checked))
        if len(self.waiting) >= self.together:
            self._sum_up()
        return noise

    def _sum_up(self) -> None:
        """Add the collected steps."""
        if not self.waiting:
            return
        noise, total = (torch.stack([step[i] for step in self.waiting]) for i in (0, 1))
        first = torch.zeros_like(noise[:1]) if self.previous is None else self.previous[None]
        before, dot = torch.cat([first, noise[:-1]]), torch.linalg.vecdot
        parts = zip(*(rows.split(self.sizes, 1) for rows in (noise, before, total)), strict=True)
        sums = [torch.stack([dot(u, u), u.sum(1), dot(u, v), dot(u, s), dot(s, s)], 1) for u, v, s in parts]
        self.steps += torch.stack(sums, 1).double().unbind(0)
        self.keys.update(self._keys(noise))
        noisy = [i for i, step in enumerate(self.waiting) if step[2] > 0]
        if noisy:
            scaled = torch.stack([noise[i] / self.waiting[i][2] for i in noisy])
            squares = scaled.square().sum(0)
            self.standard = squares if self.standard is None else self.standard.add_(squares)
            if looked := [row for row, i in enumerate(noisy) if self.waiting[i][3]]:
                self.checked_steps += len(looked)
                self.checked += torch.stack([_looked_at(part) for part in scaled[looked].split(self.sizes, 1)]).cpu()
        self.previous, self.waiting = noise[-1].clone(), []

    def table(self, names: list[str], std: np.ndarray) -> NoiseTable:
        """Return the sums as arrays, for noise with these standard deviations, float64 (T,)."""
        self._sum_up()
        sums = torch.stack(self.steps).cpu().numpy()
        standard = torch.full((sum(self.sizes),), inf) if self.standard is None else self.standard
        looked, parts = self.checked.numpy(), standard.split(self.sizes)
        return NoiseTable(
            names=tuple(names),
            sizes=np.array(self.sizes),
            std=std,
            squares=sums[:, :, 0],
            sums=sums[:, :, 1],
            lagged=sums[:, :, 2],
            along=sums[:, :, 3],
            total=sums[:, :, 4],
            least=np.array([float(s.min()) if s.numel() else inf for s in parts]),
            silent=np.array([int((s < 1e-6).sum()) for s in parts]),
            near=looked[:, 0],
            near_steps=self.checked_steps,
            second=looked[:, 1],
            fourth=looked[:, 2],
            repeats=sum(count - 1 for count in self.keys.values()),
        )

    def _keys(self, noise: Tensor) -> list[bytes]:
        """Return the signs of the numbers at each key's places, for each row of noise; the first sign is +."""
        if not len(self._places):
            return []
        self._places = self._places.to(noise.device)
        signs = (noise[:, self._places] > 0).reshape(-1, KEY)
        packed = np.packbits((signs ^ signs[:, :1]).cpu().numpy(), axis=1)
        return [key.tobytes() for key in packed]


def _looked_at(scaled: Tensor) -> Tensor:
    """Return the number of z near zero, Σz² and Σz⁴, float64 (3,)."""
    squares = scaled.double().square()
    return torch.stack([(scaled.abs() < NEAR).sum().double(), squares.sum(), squares.square().sum()])


def _key_places(sizes: Sequence[int]) -> Tensor:
    """Return the places of the first and middle numbers of each tensor, and of the small tensors together.

    int64 (keys, `KEY`), places in the concatenation of all tensors.
    """
    places, small, start = [], [], 0
    for size in sizes:
        if size < KEY:
            small += list(range(start, start + size))
        else:
            places.append(list(range(start, start + KEY)))
        if size >= 2 * KEY:
            places.append(list(range(start + size // 2, start + size // 2 + KEY)))
        start += size
    if len(small) >= KEY:
        places.append(small[:KEY])
    return torch.tensor(places, dtype=torch.int64)


@dataclass(frozen=True)
class NoiseSeen:
    """Measurements of the noise.

    Attributes:
        ratio: the noise's standard deviation divided by the counted one, over all coordinates.
        interval: its 95 % interval.
        numbers: number of observed values.
        factors: float64 (T,), at most 1: the confirmed share of each step's counted noise.
        by_step: float64 (T,), the ratio of each step.
        by_tensor: float64 (k,), the ratio of each tensor.
        between: correlation with the previous step.
        repeats: number of draws used twice.
    """

    ratio: float
    interval: tuple[float, float]
    numbers: int
    factors: np.ndarray
    by_step: np.ndarray
    by_tensor: np.ndarray
    between: float
    repeats: int


def judge_noise(table: NoiseTable) -> tuple[NoiseSeen, list[Finding]]:
    """Return measurements and faults of the noise. T ≥ 1."""
    found: list[Finding] = []
    steps, has_noise = len(table.std), table.std > 0
    if not has_noise.all():
        found.append(
            Finding(
                Level.REFUTED, "noise", f"{(~has_noise).sum()} of {steps} steps have no noise by their own settings."
            )
        )
    scale = np.where(has_noise, table.std, inf)[:, None] ** 2
    relative, along_finding = _rescaled(table, scale)
    found += along_finding
    missing, factors, cells = _missing(table, relative)
    found += missing
    sound = ~cells
    silent = _silent(table, cells, bool(has_noise.all()))
    repeated, related = _repeats(table, relative, bool(has_noise.all())), _related(table)
    if silent or repeated:
        factors = np.zeros(steps)
    found += silent + repeated + related
    if not found:
        found += _not_independent(table, sound) + _not_gaussian(table)
    seen = _measured(table, relative, factors)
    if seen.interval[0] > 1 + BAND and not found:
        found.append(
            Finding(
                Level.NOTE,
                "more_noise",
                f"The noise is {seen.ratio:.4g} times what the accountant counts: its ε is an overestimate.",
            )
        )
    return seen, found


def _measured(table: NoiseTable, relative: np.ndarray, factors: np.ndarray) -> NoiseSeen:
    steps, numbers = len(table.std), int(table.sizes.sum())
    low, high = std_interval(relative.sum(), np.array(numbers * steps), 0.05)
    return NoiseSeen(
        ratio=sqrt(relative.sum() / (numbers * steps)),
        interval=(float(low), float(high)),
        numbers=numbers * steps,
        factors=factors,
        by_step=np.sqrt(relative.sum(1) / numbers),
        by_tensor=np.sqrt(relative.sum(0) / (table.sizes * steps)),
        between=_correlation(table),
        repeats=table.repeats,
    )


def _rescaled(table: NoiseTable, scale: np.ndarray) -> tuple[np.ndarray, list[Finding]]:
    """Return Σ(u/σ)² of each step and tensor, float64 (T, k), relative to one times the clipped sum.

    If the optimizer applies a·(sum + noise), the effective noise is u/a. So a factor a > 1 hides missing noise.
    """
    relative = table.squares / scale
    weight = float((table.total / scale).sum())
    if weight == 0:
        return relative, []
    excess = float((table.along / scale).sum()) / weight
    if abs(excess) * sqrt(weight) < SURE * max(1.0, sqrt(relative.sum() / (table.sizes.sum() * len(table.std)))):
        return relative, []
    factor = 1 + excess
    if factor <= 0:
        return relative, [
            Finding(Level.UNKNOWN, "update", "The update does not hold the records' sum, so its noise is unknown.")
        ]
    rest = (table.squares - 2 * excess * table.along + excess**2 * table.total) / scale / factor**2
    count = np.array(table.sizes.sum() * len(table.std))
    if std_interval(rest.sum(), count, ALPHA)[1] < 1 and factor > 1:
        return rest, [
            Finding(
                Level.REFUTED,
                "update",
                f"The update holds {factor:.3g} times the clipped sum, but the noise is made for 1: {excess:.2g} of "
                "the records' sum is applied without noise.",
            )
        ]
    return rest, [
        Finding(
            Level.NOTE,
            "scaled",
            f"The noisy sum is multiplied by {factor:.3g} before it is applied. This costs no privacy.",
        )
    ]


def _missing(table: NoiseTable, relative: np.ndarray) -> tuple[list[Finding], np.ndarray, np.ndarray]:
    """Find missing noise: in single tensors and steps, then smaller shortfalls in sums over tensors or steps."""
    steps, sizes = len(table.std), table.sizes
    factors = np.ones(steps)
    ratio = np.sqrt(relative / sizes)
    cells = std_interval(relative, sizes[None], 2 * ALPHA / relative.size)[1] < 1 - BAND
    if cells.any():
        when, tensors = np.flatnonzero(cells.any(1)), np.flatnonzero(cells.any(0))
        factors[when] = np.where(cells, ratio, inf)[when].min(1)
        share = float(np.median(ratio[cells]))
        amount = "no noise" if share < NOTHING else f"{share:.3g} times the noise that the accountant counts"
        # A shortfall shows late in small tensors. If nearly all coordinates lack noise, all tensors do.
        most = sizes[tensors].sum() > NEARLY_ALL * sizes.sum()
        listed = "All tensors" if most else _listed(table.names, tensors)
        return (
            [Finding(Level.REFUTED, "noise", f"{listed} got {amount} in {len(when)} of {steps} steps.")],
            factors,
            cells,
        )
    for axis, counts, what in ((0, sizes * steps, "tensors"), (1, sizes.sum(), "steps")):
        high = std_interval(relative.sum(axis), counts, 2 * ALPHA / relative.shape[1 - axis])[1]
        short = np.flatnonzero(high < 1 - BAND)
        if len(short):
            share = float(np.sqrt(relative.sum(axis) / counts)[short].min())
            factors[short if what == "steps" else slice(None)] = share
            which = _listed(table.names, short) if what == "tensors" else f"{len(short)} of {steps} steps"
            sentence = f"{which} got {share:.3g} times the noise that the accountant counts."
            return [Finding(Level.REFUTED, "noise", sentence)], factors, cells
    return [], factors, cells


def _silent(table: NoiseTable, cells: np.ndarray, has_noise: bool) -> list[Finding]:
    """Find coordinates without noise: in all steps, or a share of a tensor in single steps."""
    if not has_noise:
        return []
    limit = least_square(ALPHA, len(table.std), np.full(len(table.sizes), table.sizes.sum()))
    found = [i for i in range(len(table.sizes)) if table.least[i] < limit[i] and not cells[:, i].any()]
    if found:
        worst = max(found, key=lambda i: int(table.silent[i]))
        count = max(int(table.silent[worst]), 1)
        return [
            Finding(
                Level.REFUTED,
                "coordinates",
                f"{count} of {table.sizes[worst]} coordinates of {table.names[worst]} have no noise in any step.",
            )
        ]
    for i, near in enumerate(table.near):
        looked = table.sizes[i] * table.near_steps
        excess = near / looked - NEAR_SHARE if looked else 0.0
        if excess > SHARE_SEEN + SURE * sqrt(NEAR_SHARE / max(looked, 1)) and not cells[:, i].any():
            sentence = f"About {100 * excess:.0f} % of the coordinates of {table.names[i]} have no noise in a step."
            return [Finding(Level.REFUTED, "coordinates", sentence)]
    return []


def _repeats(table: NoiseTable, relative: np.ndarray, has_noise: bool) -> list[Finding]:
    if not table.repeats or not has_noise or np.sqrt(relative / table.sizes).min() < NOTHING:
        return []
    return [
        Finding(
            Level.REFUTED,
            "repeat",
            f"The same noise was used {table.repeats + 1} times, as by a generator that is seeded again: differences "
            "of updates show the records' sums without noise.",
        )
    ]


def _correlation(table: NoiseTable) -> float:
    squares = sqrt(float(table.squares[1:].sum()) * float(table.squares[:-1].sum()))
    return float(table.lagged[1:].sum()) / squares if squares else 0.0


def _related(table: NoiseTable) -> list[Finding]:
    between, numbers = _correlation(table), table.sizes.sum() * (len(table.std) - 1)
    if abs(between) <= RELATED + SURE / sqrt(max(numbers, 1)):
        return []
    sentence = (
        f"The noise of a step is correlated with the noise of the step before ({between:.2f}): ε assumes new noise."
    )
    return [Finding(Level.REFUTED, "correlation", sentence)]


def _not_independent(table: NoiseTable, sound: np.ndarray) -> list[Finding]:
    """Find correlated coordinates within a tensor, e.g. one number for a whole row.

    (Σu)²/Σu² of one step has mean 1 and a variance below 2, so its sum over steps is compared with χ².
    """
    ratios = np.where(sound, table.sums**2 / np.maximum(table.squares, 1e-300), 1.0).sum(0)
    over = chi2.sf(ratios, len(table.std)) < ALPHA / len(ratios)
    if not over.any() and chi2.sf(ratios.sum(), len(table.std) * len(ratios)) >= ALPHA:
        return []
    listed = _listed(table.names, np.flatnonzero(over) if over.any() else np.arange(len(ratios)))
    sentence = f"The noise numbers of {listed} are not independent of each other: their sums vary too much."
    return [Finding(Level.REFUTED, "correlation", sentence)]


def _not_gaussian(table: NoiseTable) -> list[Finding]:
    """Test the fourth moment over the checked steps: 3 if Gaussian, 1.8 if uniform, 6 if Laplacian."""
    looked = table.sizes * table.near_steps
    for i, count in enumerate(looked):
        if count < 100 or table.second[i] == 0:
            continue
        moment = table.fourth[i] * count / table.second[i] ** 2
        if abs(moment - 3) > 3 * NOT_GAUSSIAN + SURE * sqrt(24 / count):
            sentence = (
                f"The noise of {table.names[i]} is not Gaussian (fourth moment {moment:.2f}, Gaussian 3): "
                "the accountant's ε is not proven for it."
            )
            return [Finding(Level.REFUTED, "law", sentence)]
    return []


def _listed(names: tuple[str, ...], which: np.ndarray) -> str:
    """Return the names of at most four tensors."""
    if len(which) == len(names):
        return "All tensors" if len(names) > 1 else names[0]
    listed = ", ".join(names[i] for i in which[:4])
    return listed if len(which) <= 4 else f"{listed} and {len(which) - 4} more"
