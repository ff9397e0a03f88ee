"""Privacy for whole classes, or for subclasses of similar records (zhang2020): Gaussian noise on few sums."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dp_leakage.common.schemas import COUNT, enum
from dp_leakage.privacy.mechanisms import gaussian
from dp_leakage.privacy.mechanisms.base import Accountant, Declaration, Relations

if TYPE_CHECKING:
    from dp_leakage.privacy.accounting.case import Case

HERE = __name__
MECHANISMS = {
    "class": Declaration(
        label="class",
        guarantee="Hides what all records of a class are: replace_one and add_remove of a class. Classes are few, "
        "and δ should be below one over their number.",
        module=gaussian.HERE,
        noise="gaussian",
        step={"unit": "class"},
    ),
    "subclass": Declaration(
        label="subclass",
        guarantee="Hides what the records of one subclass are: replace_one and add_remove of a subclass. Subclasses by "
        "k-means look at the records outside the budget.",
        module=gaussian.HERE,
        noise="gaussian",
        schemas={
            "k_sub": {**COUNT, "description": "Subclasses of each class."},
            "partition": {
                **enum("kmeans", "random"),
                "default": "kmeans",
                "description": "Division of a class, into clusters of similar records or at random.",
            },
        },
        step={"unit": "subclass"},
    ),
}
_DRAWN: Relations = {"class_poisson": ("replace_one", "add_remove")}
ACCOUNTANTS = {
    "class_moments": Accountant("gaussian", _DRAWN, "bound", HERE),
    "theorem1": Accountant("gaussian", _DRAWN, "as_printed", HERE),
}


def epsilon(sigma: float, case: Case) -> float:
    """Return ε of Gaussian noise on the sum of the classes' gradients; see the functions called here.

    class_moments accounts for the same pair as zhang2020, N(0) against (1−q) N(0) + q N(2C). Replacing a class yields
    two other mixtures; the tests compare the two by quadrature, and the ε here is always the larger one.
    """
    from dp_leakage.privacy.accounting import printed, renyi

    if case.accountant == "theorem1":
        return printed.theorem1_epsilon(sigma, case.delta, case.rate, case.steps, case.relation)
    return renyi.sampled_gaussian_epsilon(
        case.rate, sigma / case.apart, False, case.steps, case.delta, case.conversion, case.beside
    )
