"""Translates between a study's settings, the mechanism that is trained, and the accountants' arguments."""

from collections.abc import Sequence
from typing import Any

from dp_leakage.privacy.accounting import ACCOUNTANTS, epsilon_spent, kappa_for, noise_multiplier
from dp_leakage.privacy.accounting.rules import check_noise, terms_of
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.privacy.mechanisms import amount_of, with_amount
from dp_leakage.privacy.target import Target

STEP = ("sampler", "unit", "bound", "clip_norm", "noise", "block", "settings")
# Where σ of accountant rdp comes from: a study's word → the accountant's argument.
RDP_SIGMA: dict[str, dict[str, Any]] = {
    "calibrated_tight": {"conversion": "tight"},
    "calibrated_classic": {"conversion": "classic"},
    "authors_table": {"sigma_table": "authors"},
}


def calibrated(
    settings: dict[str, Any] | None, *, blocks: Sequence[int] | None = None, **schedule: int
) -> Mechanism | None:
    """The mechanism with its noise. If the cell names an ε or a target, its accountant solves for the noise.

    Args:
        settings: the cell's mechanism (see ``defenses``), or None for training without one.
        blocks: for von Mises–Fisher noise, the dimension of each unit vector.
        **schedule: epochs, batch_size and dataset_size of the training.

    Raises:
        UserError: no noise reaches the budget, or the accountant refuses the mechanism.
    """
    if settings is None:
        return None
    step = Mechanism(**{key: settings[key] for key in STEP})
    if step.noise == "none":
        return step
    check_noise(settings["accountant"], step)
    name = amount_of(step.noise)
    amount = settings[name]
    if amount is None and "target" in settings:
        amount = _for_target(settings, step, blocks, schedule)
    elif amount is None:
        accountant = settings["accountant"]
        terms = {
            "epsilon": settings["epsilon"],
            "delta": settings["delta"],
            **schedule,
            **terms_of(accountant, step, blocks),
        }
        if "projection_noise" in settings:  # ε includes what a private PCA of the same records spends
            terms["projection_noise"] = settings["projection_noise"]
        if name == "kappa":
            amount = kappa_for(accountant, **terms)
        else:
            amount = noise_multiplier(accountant, **terms, **RDP_SIGMA.get(settings["rdp_sigma"], {}))
    return with_amount(step, float(amount))


def _for_target(settings: dict[str, Any], step: Mechanism, blocks: Sequence[int] | None, schedule: dict) -> float:
    """The noise with which no attack exceeds the cell's target, between the neighbors that the target names."""
    from dp_leakage.privacy.accounting.curve import Training, noise_for

    wanted = {key: value for key, value in settings["target"].items() if key != "neighbors"}
    run = schedule | {"blocks": blocks, "projection_noise": settings.get("projection_noise")}
    training = Training(step, settings["delta"], **run)
    return noise_for(Target.read(wanted), training, settings["target"]["neighbors"])


def epsilon_after(
    mechanism: Mechanism,
    accountant: str,
    delta: float,
    *,
    blocks: Sequence[int] | None = None,
    **schedule: float | None,
) -> float:
    """The ε that ``accountant`` finds for a training with this mechanism and schedule (see ``calibrated``).

    The schedule may also hold the ``projection_noise`` of a private PCA that is composed with it. A batch that is
    bounded as a whole moves by up to 2C with one record, so accountants that claim a bound count half of its noise. A
    paper's formula is used as printed.
    """
    terms = {"delta": delta, **schedule, **terms_of(accountant, mechanism, blocks)}
    if amount_of(mechanism.noise) == "kappa":
        return epsilon_spent(accountant, kappa=mechanism.kappa, **terms)
    doubled = mechanism.unit == "batch" and ACCOUNTANTS[accountant].claim != "as_printed"
    return epsilon_spent(accountant, noise_multiplier=mechanism.sigma / (2 if doubled else 1), **terms)
