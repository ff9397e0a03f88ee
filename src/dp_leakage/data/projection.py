"""Projection of features: scattering, learned features, group normalization, scaling, PCA, private PCA, unit rows.

Features computed from one record alone (scattering, the output of a network trained on public records, group
normalization, constants, unit rows) cost no privacy. Everything that is fitted here on private records lies outside
the privacy budget, as in the papers, except for the private PCA and the private scaling, whose costs are composed into
ε.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dp_leakage.common.errors import UserError, nearest
from dp_leakage.data.dataset import Dataset
from dp_leakage.data.projection_settings import CHOICES, PRIVATE, ProjectionSettings
from dp_leakage.data.scattering import group_normalized, scattering

Features = Callable[[np.ndarray], np.ndarray]  # of records (n, …) → float32 (n, …)
CHUNK = 2048  # rows converted to float64 at a time
MAX_SQUARE = 16_384  # the most features for which a square matrix is formed (2 GiB in float64)

SENSITIVITY = {"add_remove": 1.0, "replace_one": np.sqrt(2.0)}
"""ℓ2 sensitivity of the upper triangle of Σ u uᵀ over records of ℓ2 norm at most 1, by neighbor relation.

‖u uᵀ‖_F = ‖u‖² ≤ 1, and ‖u uᵀ − v vᵀ‖_F² = ‖u‖⁴ + ‖v‖⁴ − 2(u·v)² ≤ 2. The triangle's norm is at most the matrix's.
"""


class Projection(NamedTuple):
    """A linear map to fewer features: ``(x − mean) @ components.T``.

    Attributes:
        mean: float64, (d,).
        components: float64, (k, d), orthonormal rows; the largest entry of each (in absolute value) is positive.
        variance: float64, (k,), variance of each component over the fitted records (for private PCA the mean square).
    """

    mean: np.ndarray
    components: np.ndarray
    variance: np.ndarray


class Fitted(NamedTuple):
    """Numbers fitted by `project`: shift and stretch, then a projection, then each record's own norm.

    Attributes:
        shift, stretch: float64, the shape of a record: (x − shift)/stretch; None if nothing is scaled.
        projection: of the flattened record; None: none.
        whiten: whether each component is divided by its standard deviation.
        row_norm: whether the record is then divided by its ℓ2 norm; one of zeros stays.
        learned: network of learned features, applied first; None: no network.
    """

    shift: np.ndarray | None = None
    stretch: np.ndarray | None = None
    projection: Projection | None = None
    whiten: bool = False
    row_norm: bool = False
    learned: Any = None


def project(
    dataset: Dataset, given: Mapping[str, Any] | None, seed: int, learned: Features | None = None
) -> tuple[Dataset, tuple[str, ...]]:
    """Scale, project and normalize the features as the key ``projection`` says (see `ProjectionSettings`).

    Args:
        dataset: images are flattened where a step needs rows.
        given: the key; applied in the order ``mean_std`` (constants), ``features`` (`scattering`, or ``learned``),
            ``groups`` (`group_normalized`), ``scale`` (standard: zero mean, unit variance; range: to [0, 1]; private:
            `fit_private_scaling`), ``method``, ``row_norm``. All fits use the records of the roles ``fit_on``.
        seed: of the noise of the private PCA or the private scaling.
        learned: network that computes features learned on public records.

    Returns:
        The new data set, and sentences for the report. With PCA it has no sensitive columns.

    Raises:
        UserError: an unknown key or value, too many components, or sensitive columns that PCA would dissolve.
    """
    return fit_and_project(dataset, given, seed, learned)[:2]


def fit_and_project(
    dataset: Dataset, given: Mapping[str, Any] | None, seed: int, learned: Features | None = None
) -> tuple[Dataset, tuple[str, ...], Fitted]:
    """Return the result of `project` and the fitted numbers."""
    settings = ProjectionSettings.read(given)
    _check(dataset, settings)
    known = Fitted(whiten=settings.whiten, row_norm=settings.row_norm, learned=learned)
    rows = np.sort(np.concatenate([dataset.roles[role] for role in settings.fitted_on(dataset.roles)]))
    x, notes = _of_each_record(dataset.x, settings, learned)
    if settings.scale == PRIVATE:
        shift, stretch = fit_private_scaling(x, rows, settings.bounds, settings.noise, seed, settings.signed)
        known, x = known._replace(shift=shift, stretch=stretch), scaled(x, shift, stretch)
        notes.append(
            f"Channels scaled privately at noise multiplier {settings.noise:g}, fitted on {len(rows):,} records."
        )
    elif settings.scale != "none":
        left = int(binary(x, rows).sum()) if settings.scale == "standard" else 0
        shift, stretch = scaling(x, rows, settings.scale)
        known, x = known._replace(shift=shift, stretch=stretch), scaled(x, shift, stretch)
        notes.append(
            f"Features scaled ({settings.scale}), fitted on {len(rows):,} records"
            + (f"; {left:,} of zeros and ones stay as they are." if left else ".")
        )
    if settings.method != "none":
        k = settings.components
        if settings.method == "pca":
            fitted = fit_pca(x, rows, k)
            notes.append(f"PCA to {k} components, fitted on {len(rows):,} records without privacy.")
        else:
            fitted = fit_private_pca(x, rows, k, settings.noise, seed)
            notes.append(
                f"Private PCA to {k} components at noise multiplier {settings.noise:g}, fitted on "
                f"{len(rows):,} records."
            )
        known, x = known._replace(projection=fitted), apply(x, fitted, whiten=settings.whiten)
        dataset = dataset._replace(sensitive=np.empty(0, np.int64))
    if settings.row_norm:
        x, zeros = unit_rows(x)
        notes.append(
            "Each record divided by its ℓ2 norm." + (f" {zeros} records are all zero and stay so." if zeros else "")
        )
    return dataset._replace(x=x), tuple(notes), known


def scale(x: np.ndarray, rows: np.ndarray, how: str) -> np.ndarray:
    """Shift and stretch each feature, so that over ``rows`` it has zero mean and unit variance or fills [0, 1].

    A feature of zeros and ones is not standardized. Standardizing would stretch a rare one to many times the length of
    other features, and clipping would then remove more of every gradient.

    Args:
        x: (n, …).
        rows: int64, the records that determine shift and scale.
        how: ``standard`` or ``range``.

    Returns:
        float32 of the shape of ``x``; a feature that is constant over ``rows`` is only shifted.
    """
    return scaled(x, *scaling(x, rows, how))


def scaled(x: np.ndarray, shift: np.ndarray, stretch: np.ndarray) -> np.ndarray:
    """Return (x − shift)/stretch in float64, rounded to float32."""
    return _by_chunks(x, x.shape[1:], lambda part: (part - shift) / stretch)


def fit_private_scaling(
    x: np.ndarray, rows: np.ndarray, bounds: Sequence[float], noise: float, seed: int, signed: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Estimate mean and standard deviation of each channel privately (Tramèr & Boneh 2021, §2.3, but with given
    bounds).

    One deviation of the noise on the mean square is added to each variance, so that a channel below the noise is not
    stretched to the length of other channels. In other units of x, with bounds that follow, the result is the same.

    Formal guarantee: one Gaussian mechanism with noise multiplier ``noise`` under add/remove of a record, and
    ``noise``/√2 under replacement, for any records (see `channel_moments`). The number of records counts as public.

    Args:
        x: (n, channels, …).
        rows: int64, the records that are measured.
        bounds: (for the means, for the mean squares) > 0; they must not depend on private records.
        noise: noise multiplier > 0.
        seed: of the noise.
        signed: as in `channel_moments`.

    Returns:
        Shift and stretch, float64 (channels, 1, …) as many ones as a record has further dimensions. A variance that is
        lost in the noise counts as 0.
    """
    total = sum(channel_moments(part, bounds, signed).sum(axis=0) for part in _chunks(x, rows))
    total = total + noise * np.random.default_rng(seed).standard_normal(total.shape)
    units = _shares(signed) * np.array(bounds, dtype=float)[:, None] / len(rows)
    mean, square = total * units
    stretch = np.sqrt(np.maximum(square - mean**2, 0) + noise * units[1])
    shape = (len(mean), *[1] * (x.ndim - 2))
    return mean.reshape(shape), stretch.reshape(shape)


def channel_moments(x: np.ndarray, bounds: Sequence[float], signed: bool = False) -> np.ndarray:
    """Return each record's contribution to the sum that `fit_private_scaling` releases.

    One record more or less moves the sum by at most 1, and exchanging one by at most √2, as in ``SENSITIVITY``. For
    vectors of length up to r, ‖u − v‖² = ‖u‖² + ‖v‖² − 2u·v is at most 2r² if no entry is below 0, and 4r² otherwise.
    Mean squares are of the first kind. With r² = 1/2 for them, means may have 1/2 as well if they are of the first
    kind, but only 1/4 if they have signs: with 1/2, an exchange could move the sum by √3.

    Args:
        x: float64 (n, channels, …).
        bounds: as in `fit_private_scaling`.
        signed: whether means below 0 count as such; otherwise they count as 0.

    Returns:
        float64 (n, 2, channels): the channels' means and mean squares, each vector clipped to its bound and then
        scaled so that the bound becomes r.
    """
    flat = x.reshape(*x.shape[:2], -1)
    means = flat.mean(axis=2)
    moments = np.stack([means if signed else np.maximum(means, 0), (flat**2).mean(axis=2)], axis=1)
    limits = np.array(bounds, dtype=float)[:, None]
    lengths = np.linalg.norm(moments, axis=2, keepdims=True)
    return np.nan_to_num(moments / np.maximum(lengths, limits) / _shares(signed), nan=0.0)


def _shares(signed: bool) -> np.ndarray:
    """Return the factors 1/r of the means and of the mean squares in `channel_moments`, float64 (2, 1)."""
    return np.array([[2.0 if signed else np.sqrt(2)], [np.sqrt(2)]])


def scaling(x: np.ndarray, rows: np.ndarray, how: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the shift and the factor of each feature for `scale`, float64, in the shape of a record."""
    if how == "range":
        shift = np.min([part.min(axis=0) for part in _chunks(x, rows)], axis=0)
        stretch = np.max([part.max(axis=0) for part in _chunks(x, rows)], axis=0) - shift
    else:
        shift = sum(part.sum(axis=0) for part in _chunks(x, rows)) / len(rows)
        stretch = np.sqrt(sum(((part - shift) ** 2).sum(axis=0) for part in _chunks(x, rows)) / len(rows))
        left = binary(x, rows)
        shift, stretch = np.where(left, 0.0, shift), np.where(left, 1.0, stretch)
    return shift, np.where(stretch > 1e-12 * np.maximum(1, np.abs(shift)), stretch, 1.0)


def binary(x: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the features with only zeros and ones over ``rows``, and some of both: bool, the shape of one record."""
    zero, one = (np.any([(part == value).any(axis=0) for part in _chunks(x, rows)], axis=0) for value in (0, 1))
    only = np.all([((part == 0) | (part == 1)).all(axis=0) for part in _chunks(x, rows)], axis=0)
    return zero & one & only


def fit_pca(x: np.ndarray, rows: np.ndarray, components: int) -> Projection:
    """Return principal components of ``x[rows]``, largest variance first, the same as scikit-learn's up to rounding.

    The covariance is summed in float64 over chunks of rows, so no float64 copy of ``x`` is made. With fewer records
    than features, the (n, n) Gram matrix serves instead.

    Raises:
        UserError: more components than the records span.
    """
    d = int(np.prod(x.shape[1:]))
    if not 1 <= components <= min(len(rows) - 1, d):
        raise UserError(
            f"components: {components}; {len(rows):,} records of {d:,} features allow 1 to {min(len(rows) - 1, d):,}"
        )
    mean = sum(part.sum(axis=0) for part in _chunks(x, rows, flat=True)) / len(rows)
    by_covariance = d <= len(rows)
    if min(len(rows), d) > MAX_SQUARE:
        raise UserError(
            f"fit_on: {len(rows):,} records of {d:,} features; PCA takes up to {MAX_SQUARE:,} records or features"
        )
    if by_covariance:
        values, vectors = _largest(_scatter(x, rows, mean), components)
    else:
        values, vectors = _largest(_gram(x, rows, mean), components)
    rank = int((values > 1e-10 * max(values[0], np.finfo(float).tiny)).sum())
    if rank < components:
        raise UserError(
            f"components: {components}, but the {len(rows):,} records vary in {rank} directions only; set at "
            f"most {rank}"
        )
    if not by_covariance:
        starts = range(0, len(rows), CHUNK)
        parts = zip(starts, _chunks(x, rows, flat=True), strict=True)
        vectors = sum((part - mean).T @ vectors[i : i + len(part)] for i, part in parts) / np.sqrt(values)
    return Projection(mean, _signed(vectors.T), values / (len(rows) - 1))


def fit_private_pca(x: np.ndarray, rows: np.ndarray, components: int, noise: float, seed: int) -> Projection:
    """Differentially private PCA (Abadi et al. 2016, §4; Dwork et al. 2014, "Analyze Gauss").

    The components are the eigenvectors of ``noisy_second_moment`` with the largest eigenvalues. This is one Gaussian
    mechanism with noise multiplier ``noise`` under add/remove of a record, and ``noise``/√2 under replacement (see
    ``SENSITIVITY``). Nothing is centered, and any later use of the directions costs nothing more. ``variance`` is
    post-processed too (the number of records counts as public), and may be negative.

    Raises:
        UserError: too many features or components, or a negative noise.
    """
    d = int(np.prod(x.shape[1:]))
    if not 1 <= components <= d:
        raise UserError(f"components: {components}; private PCA of {d:,} features allows 1 to {d:,}")
    values, vectors = _largest(noisy_second_moment(x, rows, noise, seed), components)
    return Projection(np.zeros(d), _signed(vectors.T), values / len(rows))


def noisy_second_moment(x: np.ndarray, rows: np.ndarray, noise: float, seed: int) -> np.ndarray:
    """Return Σ u uᵀ over the records of ``rows``, each scaled to ℓ2 norm 1, plus symmetric noise: float64, (d, d).

    The entries on and above the diagonal get independent Gaussian noise of standard deviation ``noise``; those below
    mirror them.
    """
    d = int(np.prod(x.shape[1:]))
    if d > MAX_SQUARE:
        raise UserError(
            f"method: private_pca needs a matrix of all pairs of {d:,} features; expected up to {MAX_SQUARE:,} features"
        )
    if noise < 0:
        raise UserError(f"noise: {noise}; expected numbers of at least 0")
    moment = np.triu(_scatter(x, rows, np.zeros(d), unit=True))
    rng = np.random.default_rng(seed)
    for row in range(d):
        moment[row, row:] += noise * rng.standard_normal(d - row)
    return moment + np.triu(moment, 1).T


def apply(x: np.ndarray, projection: Projection, whiten: bool = False) -> np.ndarray:
    """Return the records in the new features, float32 (n, k); with ``whiten`` they have unit variance over the
    fitted records.

    Raises:
        UserError: a component has no positive variance to whiten by (private PCA at high noise).
    """
    matrix = projection.components.T
    if whiten:
        if projection.variance.min() <= 0:
            raise UserError(
                "whiten: a component has no positive variance to divide by; set whiten: false or fewer components"
            )
        matrix = matrix / np.sqrt(projection.variance)
    return _by_chunks(x, (matrix.shape[1],), lambda part: (part.reshape(len(part), -1) - projection.mean) @ matrix)


def unit_rows(x: np.ndarray) -> tuple[np.ndarray, int]:
    """Return each record divided by its ℓ2 norm (over all its values), and how many are zero, which stay zero."""
    norms = np.concatenate([np.linalg.norm(part, axis=1) for part in _chunks(x, np.arange(len(x)), flat=True)])
    safe = np.where(norms > 0, norms, 1.0).astype(np.float32).reshape(-1, *[1] * (x.ndim - 1))
    return x / safe, int((norms == 0).sum())


def constants_taken(x: np.ndarray, constants: Sequence[float | Sequence[float]]) -> np.ndarray:
    """(value − first)/second, where each constant is one number or one for each channel; float32 of the shape of x.

    Raises:
        UserError: there is another number of constants than of channels.
    """
    return scaled(x, *(_of_channels(given, x.shape[1:]) for given in constants))


def _of_each_record(
    x: np.ndarray, settings: ProjectionSettings, learned: Features | None
) -> tuple[np.ndarray, list[str]]:
    """Return the features computed from each record alone, and sentences about them."""
    notes = []
    if (constants := settings.mean_std) is not None:
        x = constants_taken(x, constants)
        mean, std = (", ".join(f"{value:g}" for value in np.atleast_1d(given)) for given in constants)
        by = " (by channel)" if any(map(np.ndim, constants)) else ""
        notes.append(f"{mean} taken from every value, the rest divided by {std}{by}.")
    if settings.features == "scattering":
        x = scattering(x)
        notes.append(f"Scattering features of each image: {x.shape[1]} maps of {x.shape[2]} × {x.shape[3]}.")
    if settings.learns:
        assert learned is not None  # a study's step has read it
        x = learned(x)
    if (groups := settings.groups) is not None:
        if x.ndim < 3 or x.shape[1] % groups:
            words = f"records have {x.shape[1]} channels" if x.ndim > 2 else "records have no channels"
            raise UserError(f"projection: groups is {groups}, but {words}; expected a divisor of their number")
        x = group_normalized(x, groups, out=x if settings.features != "none" else None)
        notes.append(f"The channels of each record normalized in {groups} groups.")
    return x, notes


def _of_channels(constants: float | Sequence[float], shape: tuple[int, ...]) -> np.ndarray:
    """Return a constant, or one for each channel of records of the shape (channels, …), in a form that
    broadcasts to them.
    """
    given = np.array(constants, dtype=float)
    if given.ndim and (len(shape) < 2 or len(given) != shape[0]):
        words = f"have {shape[0]} channels" if len(shape) > 1 else "have no channels"
        raise UserError(
            f"projection: mean_std lists {len(given)} constants, but records {words}; expected one number or one for "
            "each channel"
        )
    return given.reshape(-1, *[1] * (len(shape) - 1)) if given.ndim else given


def _check(dataset: Dataset, settings: ProjectionSettings) -> None:
    for key, valid in CHOICES.items():
        if (choice := getattr(settings, key)) not in valid:
            raise UserError(f"projection: {key} is {choice!r}; {nearest(choice, valid)}")
    for role in [] if settings.fit_on == "all" else settings.fit_on:
        if role not in dataset.roles:
            raise UserError(f"projection: fit_on names {role!r}; {nearest(role, ['all', *dataset.roles])}")
        if settings.fit_on.count(role) > 1:  # its records would count twice, and move the sums twice as far
            raise UserError(f"projection: fit_on names {role!r} more than once; name each role once")
    for chosen, key in settings.missing:
        raise UserError(f"projection: {key} is missing; {chosen} needs it")
    if settings.scale == PRIVATE and dataset.x.ndim < 3:
        raise UserError("projection: scale 'private' needs the channels of images; expected none, standard or range")
    if settings.scale != "none" != settings.method and settings.private:
        raise UserError(
            f"projection: scale {settings.scale} and method {settings.method} cannot be combined: one of them "
            "is fitted without privacy, or both spend a budget; set scale: none or method: none"
        )
    if settings.method != "none" and len(dataset.sensitive):
        raise UserError(
            f"projection: method {settings.method} mixes the sensitive columns into others; set method: "
            "none or name no sensitive columns"
        )


def _chunks(x: np.ndarray, rows: np.ndarray, flat: bool = False) -> Iterator[np.ndarray]:
    for start in range(0, len(rows), CHUNK):
        part = x[rows[start : start + CHUNK]].astype(np.float64)
        yield part.reshape(len(part), -1) if flat else part


def _by_chunks(x: np.ndarray, shape: tuple[int, ...], change: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    new = np.empty((len(x), *shape), np.float32)
    for start in range(0, len(x), CHUNK):
        new[start : start + CHUNK] = change(x[start : start + CHUNK].astype(np.float64))
    return new


def _scatter(x: np.ndarray, rows: np.ndarray, mean: np.ndarray, unit: bool = False) -> np.ndarray:
    """Return the upper triangle of Σ (u − mean)(u − mean)ᵀ, float64 (d, d); with ``unit`` each u has ℓ2 norm 1."""
    from scipy.linalg.blas import dsyrk

    total = np.zeros((len(mean), len(mean)), order="F")
    for part in _chunks(x, rows, flat=True):
        if unit:
            norms = np.linalg.norm(part, axis=1, keepdims=True)
            part /= np.where(norms > 0, norms, 1.0)
        part -= mean
        total = dsyrk(1.0, part.T, beta=1.0, c=total, overwrite_c=True)  # half the work of a full product
    return total


def _gram(x: np.ndarray, rows: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Return the upper triangle of the (n, n) products of the centered records, float64."""
    from scipy.linalg.blas import dsyrk

    flat = x.reshape(len(x), -1)
    total = np.zeros((len(rows), len(rows)), order="F")
    for start in range(0, flat.shape[1], CHUNK):
        part = flat[rows, start : start + CHUNK].astype(np.float64) - mean[start : start + CHUNK]
        total = dsyrk(1.0, part, beta=1.0, c=total, overwrite_c=True)
    return total


def _largest(upper: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the k largest eigenvalues, falling, and their eigenvectors (n, k), from a matrix's upper triangle."""
    from scipy.linalg import eigh

    n = len(upper)
    values, vectors = eigh(upper, lower=False, subset_by_index=[n - k, n - 1], overwrite_a=True, check_finite=False)
    return values[::-1], vectors[:, ::-1]


def _signed(components: np.ndarray) -> np.ndarray:
    largest = np.abs(components).argmax(axis=1)
    return components * np.sign(components[np.arange(len(components)), largest])[:, None]
