"""Scattering features of images: wavelet moduli, averaged. Nothing is learned, so they cost no privacy.

A record x becomes S₀ = x ∗ φ, S₁ = |x ∗ ψ| ∗ φ and S₂ = ||x ∗ ψ₁| ∗ ψ₂| ∗ φ, read at every fourth pixel: a Gaussian
average φ and Morlet wavelets ψ of two scales in eight directions, of which ψ₂ is the coarser (Bruna & Mallat 2013).
The filters, the reflected border and the order of the maps are those of ``kymatio.Scattering2D(J=2)`` (Andreux et al.
2020), on whose features Tramèr & Boneh (2021) train.
"""

from functools import cache
from typing import NamedTuple

import numpy as np

from dp_leakage.common.errors import UserError

SCALES = 2  # J
ANGLES = 8  # L
REACH = 2**SCALES  # pixels of a feature, and of the border on each side
MAPS = 1 + ANGLES * SCALES + ANGLES**2 * SCALES * (SCALES - 1) // 2  # 81 maps for each channel
CHUNK = 256  # images (one channel each) at a time: about 50 MB for 28 × 28 pixels

WIDTH = 0.8  # standard deviation of the finest wavelet's envelope, in pixels
FREQUENCY = 0.75 * np.pi  # of the finest wavelet, in radians per pixel
SLANT = 4 / ANGLES  # how much longer than wide an envelope is, as a ratio below one
WRAPS = range(-2, 3)  # copies of a filter that reach around the border


class Filters(NamedTuple):
    """Real Fourier transforms of the filters on a padded image, float32.

    Attributes:
        average: φ, (h, w).
        half_average: φ on every second pixel, (h/2, w/2).
        wavelets: ψ, (scales, angles, h, w), the finest scale first.
    """

    average: np.ndarray
    half_average: np.ndarray
    wavelets: np.ndarray


def check_images(shape: tuple[int, ...]) -> None:
    """Refuse records that have no scattering features.

    Args:
        shape: of a record.

    Raises:
        UserError: the records are not images, or their sides are too short or not multiples of four.
    """
    if len(shape) != 3:
        raise UserError("projection: features is 'scattering', which needs images; remove it")
    if any(side % REACH or side < 2 * REACH for side in shape[1:]):
        raise UserError(
            f"projection: features is 'scattering', but images have {shape[1]} × {shape[2]} pixels; sides must be "
            f"multiples of {REACH} from {2 * REACH} on, so resize them (key 'resize' of the source)"
        )


def scattering(x: np.ndarray) -> np.ndarray:
    """Return the scattering features of images.

    Args:
        x: (n, channels, height, width), any real dtype.

    Returns:
        float32 (n, 81·channels, height/4, width/4): for each channel S₀, S₁ by scale and angle, then S₂ by the first
        angle and the second.

    Raises:
        UserError: see `check_images`.
    """
    check_images(x.shape[1:])
    n, channels, height, width = x.shape
    filters = _filters(height + 2 * REACH, width + 2 * REACH)
    images = x.reshape(n * channels, height, width)
    features = np.empty((n * channels, MAPS, height // REACH, width // REACH), np.float32)
    for start in range(0, len(images), CHUNK):
        features[start : start + CHUNK] = _maps(images[start : start + CHUNK].astype(np.float32), filters)
    return features.reshape(n, channels * MAPS, *features.shape[2:])


def group_normalized(x: np.ndarray, groups: int, out: np.ndarray | None = None) -> np.ndarray:
    """Normalize each record's groups of channels to mean 0 and variance 1, from this record alone (Wu & He 2018).

    Args:
        x: (n, channels, …).
        groups: a divisor of the number of channels.
        out: array to write to, such as x itself; None: a new array.

    Returns:
        float32 of the shape of x; as in PyTorch's ``group_norm`` without weights.
    """
    out = np.empty(x.shape, np.float32) if out is None else out
    for start in range(0, len(x), CHUNK):
        part = x[start : start + CHUNK].astype(np.float64).reshape(-1, groups, x[0].size // groups)
        normal = (part - part.mean(2, keepdims=True)) / np.sqrt(part.var(2, keepdims=True) + 1e-5)
        out[start : start + CHUNK] = normal.reshape(-1, *x.shape[1:])
    return out


def _maps(images: np.ndarray, filters: Filters) -> np.ndarray:
    """Return the maps of images (n, height, width), float32 (n, 81, height/4, width/4)."""
    from scipy.fft import fft2

    border = ((0, 0), (REACH, REACH), (REACH, REACH))
    spectrum = fft2(np.pad(images, border, mode="reflect"))
    fine = fft2(_modulus(spectrum, filters.wavelets[0]))
    coarse = fft2(_modulus(spectrum, filters.wavelets[1], step=2))
    first = [_average(fine, filters.average, 4), _average(coarse, filters.half_average, 2)]
    second = [
        _average(fft2(_modulus(fine[:, angle], filters.wavelets[1], step=2)), filters.half_average, 2)
        for angle in range(ANGLES)
    ]
    return np.concatenate([_average(spectrum[:, None], filters.average, 4), *first, *second], axis=1)


def _modulus(spectrum: np.ndarray, wavelets: np.ndarray, step: int = 1) -> np.ndarray:
    """|x ∗ ψ| at every ``step``-th pixel: (n, angles, …) for the spectrum (n, h, w) of x and ψ (angles, h, w)."""
    from scipy.fft import ifft2

    return np.abs(ifft2(_thinned(spectrum[:, None] * wavelets, step)))


def _average(spectrum: np.ndarray, average: np.ndarray, step: int) -> np.ndarray:
    """Return x ∗ φ at every ``step``-th pixel, without the border (one feature wide)."""
    from scipy.fft import ifft2

    return ifft2(_thinned(spectrum * average, step)).real[..., 1:-1, 1:-1]


def _thinned(spectrum: np.ndarray, step: int) -> np.ndarray:
    """Return the spectrum of every ``step``-th pixel: aliased frequencies are averaged."""
    if step == 1:
        return spectrum
    *outer, height, width = spectrum.shape
    return spectrum.reshape(*outer, step, height // step, step, width // step).mean(axis=(-4, -2))


@cache
def _filters(height: int, width: int) -> Filters:
    average = _spectrum(_gabor(height, width, WIDTH * 2 ** (SCALES - 1), 0.0, 0.0, 1.0))
    wavelets = [
        [
            _spectrum(_morlet(height, width, scale, (ANGLES // 2 - 1 - angle) * np.pi / ANGLES))
            for angle in range(ANGLES)
        ]
        for scale in range(SCALES)
    ]
    low = [np.r_[: side // 4, side - side // 4 : side] for side in (height, width)]  # what every second pixel can hold
    half = np.zeros((height // 2, width // 2), np.float32)
    places = [np.r_[: side // 4, side // 2 - side // 4 : side // 2] for side in (height, width)]
    half[np.ix_(*places)] = average[np.ix_(*low)]
    return Filters(average, half, np.array(wavelets))


def _spectrum(filter_: np.ndarray) -> np.ndarray:
    from scipy.fft import fft2

    return fft2(filter_).real.astype(np.float32)  # of a filter whose value at −u is the conjugate of that at u


def _morlet(height: int, width: int, scale: int, angle: float) -> np.ndarray:
    """Return a wave under a Gaussian envelope, minus the multiple of the envelope that makes its mean zero."""
    shape = height, width, WIDTH * 2**scale, angle
    wave, envelope = _gabor(*shape, FREQUENCY / 2**scale, SLANT), _gabor(*shape, 0.0, SLANT)
    return wave - wave.sum() / envelope.sum() * envelope


def _gabor(height: int, width: int, sigma: float, angle: float, frequency: float, slant: float) -> np.ndarray:
    """Return a plane wave in the direction of ``angle`` under an envelope of deviations sigma along it and
    sigma/slant across, wrapped around the borders: complex128 (height, width).
    """
    rows = np.arange(WRAPS.start * height, WRAPS.stop * height)[:, None]
    columns = np.arange(WRAPS.start * width, WRAPS.stop * width)[None]
    along = rows * np.cos(angle) + columns * np.sin(angle)
    across = columns * np.cos(angle) - rows * np.sin(angle)
    wave = np.exp(-(along**2 + (slant * across) ** 2) / (2 * sigma**2) + 1j * frequency * along)
    wrapped = wave.reshape(len(WRAPS), height, len(WRAPS), width).sum(axis=(0, 2))
    return wrapped * slant / (2 * np.pi * sigma**2)
