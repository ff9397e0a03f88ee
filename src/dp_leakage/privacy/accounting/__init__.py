"""ε ↔ noise for every mechanism, under every accountant that covers it.

`Training` describes the training; an accountant states whether it covers it, and computes ε.
"""

from dp_leakage.privacy.accounting.case import Case
from dp_leakage.privacy.accounting.report import Spent, epsilon_report
from dp_leakage.privacy.accounting.rules import ACCOUNTANTS, check_mechanism, check_noise, check_sampler
from dp_leakage.privacy.accounting.spend import epsilon_spent, noise_for_budget
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.privacy.training import Training, steps_per_epoch

__all__ = [
    "ACCOUNTANTS",
    "Case",
    "Mechanism",
    "Spent",
    "Training",
    "check_mechanism",
    "check_noise",
    "check_sampler",
    "epsilon_report",
    "epsilon_spent",
    "noise_for_budget",
    "steps_per_epoch",
]
