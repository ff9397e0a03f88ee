"""ε ↔ noise, under every accountant."""

from collections.abc import Callable
from importlib import import_module
from math import ceil, exp, inf, log

from dp_leakage.common.errors import UserError, nearest
from dp_leakage.common.user_code import DEFINED, FILES, amount_by, call, spent_by
from dp_leakage.privacy.accounting import printed, renyi
from dp_leakage.privacy.accounting.case import Case, projection_cost
from dp_leakage.privacy.accounting.rules import accountant_named

TOLERANCE = 1e-6
"""Calibrated noise spends at most the target ε, and at most this much less (relative)."""
PLD_TOLERANCE = 1e-4  # its ε jumps by that much where a finer grid is chosen
LEAST_NOISE, MAX_NOISE = 1e-100, 1e15
MOST_TURNS = 100  # the most rounds of a search, which ends after ten if ε falls smoothly
PLD_TURNS = 12  # each takes a second, and a tiny ε has jumps that no search can pass

SIGMA_TABLES = ("computed", "authors")


def noise_for_budget(case: Case, epsilon: float, sigma_table: str = "computed") -> float:
    """Return the least noise with an ε of at most ``epsilon``: σ relative to the clipping norm, or the largest κ.

    Args:
        case: its training needs no noise yet; ``noise_epsilon`` lists each accountant's formula, validity, neighbors
            and source.
        epsilon: > 0, the whole training's budget; for ``per_step`` the budget of one step.
        sigma_table: ``authors`` takes the σ for ``rdp`` from jayaraman2019's table, ``printed.AUTHORS_SIGMA``.

    Raises:
        UserError: a value is out of range, or no noise reaches the budget.
    """
    if not 0 < epsilon < inf:
        raise UserError(f"epsilon must be positive and finite; got {epsilon:g}")
    if sigma_table not in SIGMA_TABLES:
        raise UserError(f"sigma_table: {sigma_table!r} is unknown; {nearest(sigma_table, SIGMA_TABLES)}.")
    training, rules = case.training, accountant_named(case.accountant)
    if rules.noise == "vmf":
        pure = epsilon / (2 * len(case.blocks) * case.uses)  # what the budget allows without amplification
        return 1 / least_noise(lambda noise: noise_epsilon(case, 1 / noise), epsilon, start=1 / pure)
    if sigma_table == "authors":
        if case.accountant != "rdp":
            raise UserError(f"sigma_table: 'authors' belongs to the accountant 'rdp', not to {case.accountant!r}.")
        return printed.authors_sigma(epsilon, case.delta, case.epochs, training.batch_size, training.dataset_size)
    if (known := _formula(case, epsilon)) is not None:
        return known
    if not rules.by_losses:
        return least_noise(lambda sigma: noise_epsilon(case, sigma), epsilon)
    # Slow: start near the solution, with the noise that Rényi divergences of Poisson batches ask for.
    rate, uses = training.rate, ceil(training.steps / training.mechanism.turns)
    beside = projection_cost(training, "add_remove")
    guess = least_noise(
        lambda sigma: renyi.sampled_gaussian_epsilon(rate, sigma, False, uses, case.delta, "tight", beside), epsilon
    )
    return least_noise(lambda sigma: noise_epsilon(case, sigma), epsilon, guess, 0.1, PLD_TOLERANCE, PLD_TURNS)


def epsilon_spent(case: Case, amount: float | None = None) -> float:
    """Return the ε that the training spends with its noise, or with another ``amount`` of it: σ > 0 or κ ≥ 0.

    Raises:
        UserError: the noise is missing or out of range.
    """
    directional = accountant_named(case.accountant).noise == "vmf"
    mechanism = case.training.mechanism
    found = (mechanism.kappa if directional else mechanism.noise_multiplier) if amount is None else amount
    if directional and (found is None or not 0 <= found < inf):
        raise UserError(f"kappa: {found} is out of range; {case.accountant!r} needs 0 ≤ kappa < inf.")
    if not directional and (found is None or not 0 < found < inf):
        raise UserError(f"noise_multiplier: {found} is out of range; {case.accountant!r} needs a positive number.")
    assert found is not None
    return noise_epsilon(case, found)


def noise_epsilon(case: Case, amount: float) -> float:
    """Return ε of an amount of noise, σ or κ, from the accountant's own module (see `mechanisms.base`).

    The functions called there state formula, validity, neighbors and source.
    """
    module = accountant_named(case.accountant).module
    return spent_by(module, amount, case) if module in FILES else float(call(module, "epsilon", amount, case))


def _formula(case: Case, epsilon: float) -> float | None:
    """Return the amount of noise for a budget, if the accountant's module has a formula."""
    name = accountant_named(case.accountant).module
    if name in FILES:
        return amount_by(name, epsilon, case) if "amount_for" in DEFINED[name] else None
    module = import_module(name)
    return module.amount_for(epsilon, case) if hasattr(module, "amount_for") else None


def least_noise(
    epsilon_of: Callable[[float], float],
    target: float,
    start: float = 1.0,
    stride: float = 1.0,
    tolerance: float = TOLERANCE,
    turns: int = MOST_TURNS,
    what: str = "epsilon",
) -> float:
    """Return the noise whose ε lies within ``tolerance`` below the target: false position in log-log scale.

    ``what`` is the name of the target in errors, if it is not ε. The noise is bracketed from ``start`` in factors
    of e^stride, e^2·stride, … After ``turns`` rounds the search returns the least noise so far that does not exceed the
    target.

    Raises:
        UserError: no noise up to ``MAX_NOISE`` reaches the target, or even ``LEAST_NOISE`` stays below it.
    """

    def excess(x: float) -> float:
        return log(max(epsilon_of(exp(x)), 1e-12 * target) / target) + tolerance / 2

    low = high = log(start)
    f_low = f_high = excess(low)
    while f_low < 0:
        high, f_high = low, f_low
        low, stride = low - stride, 2 * stride
        if exp(low) < LEAST_NOISE:
            raise UserError(
                f"{what}: even noise of {LEAST_NOISE:g} stays below {target:g}, so there is no least noise; choose a "
                "smaller δ or target."
            )
        f_low = excess(low)
    while f_high > 0:
        low, f_low = high, f_high
        high, stride = high + stride, 2 * stride
        if exp(high) > MAX_NOISE:
            raise UserError(f"{what}: no noise up to {MAX_NOISE:g} reaches {target:g}.")
        f_high = excess(high)
    weight_low = weight_high = 1.0
    for _ in range(turns):
        if f_high >= -tolerance / 2 or high - low <= 1e-12:
            break
        # Illinois method: halve the weight of an end that stays, so that both ends close in.
        g_low, g_high = weight_low * f_low, weight_high * f_high
        x = (low * g_high - high * g_low) / (g_high - g_low)
        f = excess(x)
        if f > 0:
            low, f_low, weight_low, weight_high = x, f, 1.0, weight_high / 2
        else:
            high, f_high, weight_high, weight_low = x, f, 1.0, weight_low / 2
    return exp(high)
