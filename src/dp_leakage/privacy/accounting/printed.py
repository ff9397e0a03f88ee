"""Closed formulas of papers, as printed or as in their authors' code.

Notation: k epochs, δ of the whole training, σ relative to the clipping norm. jayaraman2019 composes k epochs without
amplification: a record is used once an epoch, in one batch, whose sum it moves by at most C.
"""

from math import log, sqrt

from dp_leakage.common.errors import UserError


def naive_sigma(epsilon: float, delta: float, epochs: int) -> float:
    """σ = k √(2 ln(1.25 k/δ)) / ε: k classic Gaussian mechanisms, each with ε/k and δ/k.

    The classic mechanism is Dwork & Roth's (2014, theorem A.1). A bound only where ε/k < 1; see
    ``naive_is_valid``. Neighbors: zero_out. Source: jayaraman2019's released code.
    """
    return epochs * _classic_gaussian(delta / epochs) / epsilon


def naive_epsilon(sigma: float, delta: float, epochs: int) -> float:
    """Return the inverse of ``naive_sigma``."""
    return epochs * _classic_gaussian(delta / epochs) / sigma


def naive_is_valid(sigma: float, delta: float, epochs: int) -> bool:
    """Return whether the classic Gaussian formula holds: each epoch's ε is below 1."""
    return _classic_gaussian(delta / epochs) / sigma < 1


def advanced_sigma(epsilon: float, delta: float, epochs: int) -> float:
    """Return σ = √(k ln(2.5k/δ)) (√(ln(2/δ)+2ε) + √ln(2/δ)) / ε: advanced composition of k epochs.

    Half of δ goes to the composition, half is split over the epochs' classic Gaussian mechanisms; each epoch's ε₀
    solves ε = ε₀ √(2k ln(2/δ)) + k ε₀². Using k ε₀² in place of the usual k ε₀ (e^ε₀−1) is sound, since a pure
    mechanism's mean privacy loss is at most ε₀²/2. A bound only where ε₀ < 1; see ``advanced_is_valid``. Neighbors:
    zero_out. Source: jayaraman2019's released code.
    """
    a = log(2 / delta)
    return sqrt(epochs * log(2.5 * epochs / delta)) * (sqrt(a + 2 * epsilon) + sqrt(a)) / epsilon


def advanced_epsilon(sigma: float, delta: float, epochs: int) -> float:
    """Return the inverse of ``advanced_sigma``."""
    each = _classic_gaussian(delta / (2 * epochs)) / sigma
    return each * sqrt(2 * epochs * log(2 / delta)) + epochs * each**2


def advanced_is_valid(sigma: float, delta: float, epochs: int) -> bool:
    """Return whether the classic Gaussian formula holds: each epoch's ε is below 1."""
    return _classic_gaussian(delta / (2 * epochs)) / sigma < 1


def zcdp_sigma(epsilon: float, delta: float, epochs: int) -> float:
    """σ = √(k/2) (√(ln(1/δ)+ε) + √ln(1/δ)) / ε: the inverse of ``zcdp_epsilon``."""
    a = log(1 / delta)
    return sqrt(epochs / 2) * (sqrt(a + epsilon) + sqrt(a)) / epsilon


def zcdp_epsilon(sigma: float, delta: float, epochs: int) -> float:
    """ε = ρ + 2 √(ρ ln(1/δ)) with ρ = k/(2σ²), an upper bound for every σ > 0.

    Bun & Steinke (2016), proposition 1.3. Neighbors: zero_out. Source of its use: jayaraman2019, table 1
    and released code.
    """
    rho = epochs / (2 * sigma**2)
    return rho + 2 * sqrt(rho * log(1 / delta))


def theorem1_epsilon(sigma: float, delta: float, rate: float, steps: int, neighbors: str) -> float:
    """Return ε = 4q √(T ln(1/δ)) / σ for replacing a (sub)class, half of it for adding or removing one.

    zhang2020, theorem 1 (σ² = 16 q² T ln(1/δ)/ε²) and remark 1. Its proof replaces κ(κ+1)/(1−q) by κ², so it is an
    approximation and no bound, even where the theorem's conditions on noise, rate and order hold: at large ε it can lie
    below the true ε. All of the paper's own trainings lie outside these conditions.
    """
    return (4 if neighbors == "replace_one" else 2) * rate * sqrt(steps * log(1 / delta)) / sigma


AUTHORS_SIGMA = {
    0.01: 525.0,
    0.05: 150.0,
    0.1: 70.0,
    0.5: 13.8,
    1.0: 7.0,
    5.0: 1.669,
    10.0: 1.056,
    50.0: 0.551,
    100.0: 0.445,
    500.0: 0.275,
    1000.0: 0.219,
}
"""ε → σ for 100 epochs of batches of 200 from 10,000 records at δ = 1e-5, tuned by the authors of
jayaraman2019 with the classic RDP conversion (github bargavj/EvaluatingDPML, commit a65e342,
classifier_tf.py:21)."""


def authors_sigma(epsilon: float, delta: float, epochs: int, batch_size: float, dataset_size: int) -> float:
    """Return the σ that jayaraman2019 trained with under ``rdp``: from the table in its released code.

    Raises:
        UserError: the table has no such training or ε.
    """
    if (delta, epochs, batch_size, dataset_size) != (1e-5, 100, 200, 10_000):
        raise UserError(
            "sigma_table: 'authors' holds for delta 1e-05, 100 epochs and batches of 200 from 10000 records, "
            f"not for delta {delta:g}, {epochs} epochs and batches of {batch_size} from {dataset_size}."
        )
    if epsilon not in AUTHORS_SIGMA:
        raise UserError(
            f"epsilon: {epsilon:g} is not in the authors' sigma table; "
            f"valid: {', '.join(f'{e:g}' for e in AUTHORS_SIGMA)}."
        )
    return AUTHORS_SIGMA[epsilon]


def _classic_gaussian(delta: float) -> float:
    """σ·ε of the classic Gaussian mechanism, √(2 ln(1.25/δ))."""
    return sqrt(2 * log(1.25 / delta))
