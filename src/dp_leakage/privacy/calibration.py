"""Translation between a study's settings, the trained mechanism, and the accountants' arguments."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dp_leakage.privacy.accounting import ACCOUNTANTS, Case, epsilon_spent, noise_for_budget
from dp_leakage.privacy.accounting.rules import check_noise
from dp_leakage.privacy.mechanisms import amount_of, with_amount
from dp_leakage.privacy.protection import Protection
from dp_leakage.privacy.training import Training

# Where σ of accountant rdp comes from: a study's word → the accountant's argument.
RDP_SIGMA: dict[str, dict[str, Any]] = {
    "calibrated_tight": {"conversion": "tight"},
    "calibrated_classic": {"conversion": "classic"},
    "authors_table": {"sigma_table": "authors"},
}


def solved(
    protection: Protection | None,
    *,
    epochs: int,
    batch_size: float,
    dataset_size: int,
    blocks: Sequence[int] | None = None,
) -> Training | None:
    """Return the training of a cell with its noise. If the cell has an ε or a target, its accountant solves for the
    noise.

    Args:
        protection: of the cell, or None for training without a mechanism.
        epochs, batch_size, dataset_size, blocks: see ``Training``.

    Raises:
        UserError: no noise reaches the budget, or the accountant refuses the mechanism.
    """
    if protection is None:
        return None
    step, accountant, delta = protection.step, protection.accountant, protection.delta
    # ε includes what a private PCA of the same records spends
    training = Training(step, epochs, batch_size, dataset_size, tuple(blocks or ()), protection.projection_noise)
    if not protection.noisy:
        return training
    check_noise(accountant, step)
    amount = protection.amount
    if amount is not None:
        return training
    assert delta is not None  # as a study has one, if it has noise
    if protection.target is not None and protection.neighbors is not None:
        from dp_leakage.privacy.accounting.curve import noise_for

        amount = noise_for(protection.target, training, protection.neighbors, delta)
    else:
        assert protection.epsilon is not None  # as nothing else fixes the noise
        given = RDP_SIGMA.get(protection.rdp_sigma or "", {})
        case = Case.counted(training, accountant, delta, conversion=given.get("conversion", "tight"))
        amount = noise_for_budget(case, protection.epsilon, given.get("sigma_table", "computed"))
    return replace(training, mechanism=with_amount(step, float(amount)))


def epsilon_after(training: Training, accountant: str, delta: float) -> float:
    """Return the ε of a training by ``accountant``.

    A batch that is bounded as a whole moves by up to 2C with one record, so accountants that claim a bound count half
    of its noise. A paper's formula is used as printed.
    """
    mechanism, case = training.mechanism, Case.counted(training, accountant, delta)
    if amount_of(mechanism.noise) == "kappa":
        return epsilon_spent(case)
    doubled = mechanism.unit == "batch" and ACCOUNTANTS[accountant].claim != "as_printed"
    return epsilon_spent(case, mechanism.sigma / (2 if doubled else 1))
