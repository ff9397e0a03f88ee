"""Advanced composition of sampled Gaussian steps, as used before the moments accountant."""

from math import exp, expm1, log, log1p, sqrt, tanh

from dp_leakage.privacy.accounting.library import gaussian_epsilon


def advanced_epsilon(
    rate: float, sigma: float, delta: float, steps: int, projection_noise: float | None = None
) -> float:
    """Return an upper bound on ε of T Poisson-sampled Gaussian steps: each amplified by sampling, then composed.

    δ is cut into equal shares: one for the composition, one for all steps together, and one for the projection if there
    is one. A step is (ε₀, δ₀)-DP on its batch (exactly, Balle & Wang 2018), and so (ln(1 + q(e^ε₀ − 1)), qδ₀)-DP on the
    data (Balle, Barthe & Gaboardi 2018). T steps with (ε', δ') are (ε'√(2T ln(1/δ'')) + Tε'(e^ε' − 1)/(e^ε' + 1), Tδ' +
    δ'')-DP (Kairouz, Oh & Viswanath 2015, theorem 3.4), or (Tε', Tδ')-DP if that is less. The projection's ε is added.
    Neighbors: add_remove.

    Args:
        rate: q in (0, 1].
        sigma: > 0, relative to the clipping norm.
        delta: in (0, 1), of everything together.
        steps: T ≥ 1.
        projection_noise: of a private PCA of the same records; None: none.
    """
    share = delta / (2 if projection_noise is None else 3)
    unsampled = gaussian_epsilon(sigma, share / (steps * rate), 1)
    each = log1p(rate * expm1(unsampled)) if unsampled < 1 else unsampled + log(rate + (1 - rate) * exp(-unsampled))
    composed = each * sqrt(2 * steps * log(1 / share)) + steps * each * tanh(each / 2)
    before = 0.0 if projection_noise is None else gaussian_epsilon(projection_noise, share, 1)
    return before + min(composed, steps * each)
