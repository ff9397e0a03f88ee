"""Questions to accountants by keywords, as tests ask them."""

from typing import Any

from dp_leakage.common.errors import UserError, nearest
from dp_leakage.privacy import calibration
from dp_leakage.privacy.accounting import ACCOUNTANTS, Case, Spent, report, selection, spend
from dp_leakage.privacy.accounting.rules import accountant_named
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.privacy.protection import Protection
from dp_leakage.privacy.training import Training


def case_of(
    accountant: str,
    *,
    delta: float,
    sampler: str | None = None,
    neighbors: str | None = None,
    conversion: str = "tight",
    summed: bool = False,
    turns: int = 1,
    **run: Any,
) -> Case:
    """A question; the accountant's first sampler if none is said."""
    rules = accountant_named(accountant)
    settings = {"bands": turns} if turns > 1 else {}
    block = "sum" if summed else "whole"
    step = Mechanism(sampler or rules.samplers[0], noise=rules.noise, block=block, settings=settings)
    return Case(Training(step, **run), accountant, delta, neighbors, conversion)


def epsilon_spent(accountant: str, *, noise_multiplier: Any = None, kappa: Any = None, **terms: Any) -> float:
    """`spend.epsilon_spent`."""
    case = case_of(accountant, **terms)
    amount = kappa if accountant_named(accountant).noise == "vmf" else noise_multiplier
    return spend.epsilon_spent(case, amount)


def noise_multiplier(accountant: str, *, epsilon: float, sigma_table: str = "computed", **terms: Any) -> float:
    """`spend.noise_for_budget`, of a σ."""
    _check_kind(accountant, False)
    return spend.noise_for_budget(case_of(accountant, **terms), epsilon, sigma_table)


def kappa_for(accountant: str, *, epsilon: float, **terms: Any) -> float:
    """`spend.noise_for_budget`, of a κ."""
    _check_kind(accountant, True)
    return spend.noise_for_budget(case_of(accountant, **terms), epsilon)


def _check_kind(accountant: str, directional: bool) -> None:
    if (accountant_named(accountant).noise == "vmf") != directional:
        known = [name for name, rules in ACCOUNTANTS.items() if (rules.noise == "vmf") == directional]
        noise = "vmf" if directional else "gaussian"
        raise UserError(f"accountant: {accountant!r} does not account for {noise} noise; {nearest('', known)}.")


def epsilon_report(
    mechanism: Mechanism, *, delta: float, accountant: str | None = None, n_groups: int | None = None, **run: Any
) -> list[Spent]:
    """`report.epsilon_report`."""
    return report.epsilon_report(Training(mechanism, groups=n_groups, **run), delta, accountant)


def epsilon_after(mechanism: Mechanism, accountant: str, delta: float, **run: Any) -> float:
    """`calibration.epsilon_after`."""
    return calibration.epsilon_after(Training(mechanism, **run), accountant, delta)


def calibrated(settings: dict[str, Any], **run: Any) -> Mechanism:
    """The mechanism of `calibration.solved`, of a protection by its `settings`."""
    training = calibration.solved(Protection.read(settings), **run)
    assert training is not None
    return training.mechanism


def selection_epsilon(noise_multiplier: float, *, delta: float, mean: float, runs: str, **run: Any) -> float:
    """`selection.selection_epsilon`."""
    training = Training(Mechanism("poisson", noise_multiplier=noise_multiplier), **run)
    return selection.selection_epsilon(training, delta=delta, mean=mean, runs=runs)
