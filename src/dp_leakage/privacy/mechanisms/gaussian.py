"""DP-SGD: Gaussian noise on the sum of bounded gradients (Abadi et al. 2016)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dp_leakage.privacy.mechanisms import base
from dp_leakage.privacy.mechanisms.base import Accountant, Declaration, Relations

if TYPE_CHECKING:
    from dp_leakage.privacy.accounting.case import Case

HERE = __name__
MECHANISMS = {
    "gaussian": Declaration(
        label="DP-SGD",
        guarantee="Hides each record: add_remove and replace_one under Poisson batches and balls in bins, zero_out and "
        "replace_one where each record comes once an epoch.",
        module=HERE,
        noise="gaussian",
        keys=frozenset({"unit", "noise_multiplier"}),
    )
}
# Each record comes once an epoch. The epochs compose, whatever the order within one.
_EACH_EPOCH: Relations = {
    "shuffle": ("zero_out", "replace_one"),
    "cyclic": ("zero_out", "replace_one"),
    "balls_in_bins": ("zero_out", "replace_one"),
}
_GROUPS: Relations = {"class_poisson": ("replace_one", "add_remove")}
ACCOUNTANTS = {
    "naive": Accountant("gaussian", {"shuffle": ("zero_out",)}, "as_printed", HERE),
    "advanced": Accountant("gaussian", {"shuffle": ("zero_out",)}, "as_printed", HERE),
    "zcdp": Accountant("gaussian", _EACH_EPOCH, "bound", HERE),
    "gdp": Accountant("gaussian", _EACH_EPOCH, "exact", HERE),
    "rdp": Accountant("gaussian", {"poisson": ("add_remove", "replace_one"), "wor": ("replace_one",)}, "bound", HERE),
    "pld": Accountant(
        "gaussian",
        {
            "poisson": ("add_remove", "replace_one"),
            **_GROUPS,
            "wor": ("replace_one",),
            "balls_in_bins": ("add_remove", "zero_out", "replace_one"),
        },
        "bound",
        HERE,
        by_losses=True,
    ),
}


class Noise(base.Noise):
    """N(0, (σC/divisor)²) on each number, independent in each step."""

    independent = (1.0,)

    def add(self, step: int) -> None:
        """As in `base.Noise`."""
        self.add_normals(step, self.deviation)


def epsilon(sigma: float, case: Case) -> float:
    """Return ε of Gaussian noise; the functions called here state formula, validity, neighbors and source."""
    from dp_leakage.privacy.accounting import allocation, library, printed, renyi

    relative = sigma / case.apart
    match case.accountant:
        case "naive":
            return printed.naive_epsilon(sigma, case.delta, case.epochs)
        case "advanced":
            return printed.advanced_epsilon(sigma, case.delta, case.epochs)
        case "zcdp":
            return printed.zcdp_epsilon(relative, case.delta, case.epochs)
        case "gdp":
            return library.gaussian_epsilon(relative, case.delta, case.epochs)
        case "pld" if case.sampler == "wor":
            return library.fixed_size_epsilon(case.rate, relative, case.delta, case.steps, case.beside)
        case "pld" if case.sampler == "balls_in_bins":
            replaced = case.neighbors == "replace_one"
            beside = case.beside / 2 if replaced else case.beside  # for one record in or out
            return allocation.epsilon(sigma, case.steps_per_epoch, case.epochs, case.delta, replaced, beside)
        case "pld":
            return library.pld_epsilon(case.rate, sigma, case.delta, case.steps, case.relation, case.beside)
    replaced = case.neighbors == "replace_one"
    return renyi.sampled_gaussian_epsilon(
        case.rate, relative, replaced, case.uses, case.delta, case.conversion, case.beside
    )


def amount_for(epsilon: float, case: Case) -> float | None:
    """Return σ for a budget, or None without a formula."""
    from dp_leakage.privacy.accounting import library, printed

    match case.accountant:
        case "naive":
            return printed.naive_sigma(epsilon, case.delta, case.epochs)
        case "advanced":
            return printed.advanced_sigma(epsilon, case.delta, case.epochs)
        case "zcdp":
            return case.apart * printed.zcdp_sigma(epsilon, case.delta, case.epochs)
        case "gdp":
            return case.apart * library.gaussian_sigma(epsilon, case.delta, case.epochs)
    return None
