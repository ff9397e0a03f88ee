"""Directional noise: a draw from the von Mises-Fisher distribution around each unit vector (directional2023)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.privacy.mechanisms import base
from dp_leakage.privacy.mechanisms.base import Accountant, Declaration, Relations

if TYPE_CHECKING:
    from torch import Tensor

    from dp_leakage.models.layers import Parameters
    from dp_leakage.privacy.accounting.case import Case
    from dp_leakage.training.backward import BackwardPass

HERE = __name__
MECHANISMS = {
    "vmf": Declaration(
        label="VMF",
        guarantee="Hides each record: replace_one; add_remove too where the noise is drawn around the summed gradient "
        "(block: sum) of a Poisson batch.",
        module=HERE,
        noise="vmf",
        keys=frozenset({"unit", "block"}),
        bound="normalize",
        spelled=("block",),
        amount="kappa",
    )
}
_DIRECTIONS: Relations = {
    "poisson": ("replace_one", "add_remove"),  # add_remove for summed gradients only, see ``Case``
    "wor": ("replace_one",),
    "shuffle": ("replace_one",),
}
ACCOUNTANTS = {
    "vmf_pure": Accountant("vmf", _DIRECTIONS, "bound", HERE),
    "vmf_rdp": Accountant("vmf", _DIRECTIONS, "bound", HERE),
    "vmf_pld": Accountant("vmf", _DIRECTIONS, "bound", HERE),
    "per_step": Accountant("vmf", dict.fromkeys(_DIRECTIONS, ("replace_one",)), "as_printed", HERE),
}


class Noise(base.Noise):
    """Each unit's gradient becomes a vector of length C around its direction; see `privacy.directional`."""

    directs = True
    shares = True

    @classmethod
    def waits(cls, mechanism: Mechanism) -> bool:
        """As in `base.Noise`."""
        return mechanism.block != "row"

    def add_examples(self, passed: BackwardPass, total: Parameters, model: int) -> None:
        """As in `base.Noise`."""
        self.add_all_examples(passed, None, total, range(model, model + 1))

    def add_all_examples(self, passed: BackwardPass, weights: Tensor | None, total: Parameters, models: range) -> None:
        """As in `base.Noise`."""
        from dp_leakage.privacy.directional import Drawing, add_directed_examples, draws_padding

        sizes = [passed.parts[0].examples] * len(models)
        if weights is not None and not draws_padding(self.mechanism.block, weights.device):
            sizes, weights = weights.count_nonzero(1).tolist(), None
        generators = self.generators[models.start : models.stop]
        add_directed_examples(
            passed, Drawing(**self._how(), sizes=sizes, generators=generators, weights=weights), total
        )

    def add_unit(self, mean: Parameters, total: Parameters, model: int) -> None:
        """As in `base.Noise`."""
        self.add_all_units(mean, total, range(model, model + 1))

    def add_all_units(self, means: Parameters, total: Parameters, models: range) -> None:
        """As in `base.Noise`."""
        from dp_leakage.privacy.directional import add_directed

        add_directed(means, total=total, generators=self.generators[models.start : models.stop], **self._how())

    def _how(self) -> dict:
        mechanism = self.mechanism
        return {
            "block": "whole" if mechanism.block == "sum" else mechanism.block,
            "kappa": mechanism.kappa,
            "scale": mechanism.clip_norm / self.divisor,
        }


def epsilon(kappa: float, case: Case) -> float:
    """Return ε of directional noise; the functions called here state formula, validity, neighbors and source."""
    from dp_leakage.privacy.accounting import vmf

    match case.accountant:
        case "vmf_pure":
            return vmf.pure_epsilon(kappa, case)
        case "vmf_rdp":
            return vmf.renyi_epsilon(kappa, case)
        case "vmf_pld":
            return vmf.pld_epsilon(kappa, case)
    return vmf.printed_epsilon(kappa)
