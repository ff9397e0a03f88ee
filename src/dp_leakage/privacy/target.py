"""Noise chosen by risk: a limit on the success of any attack, in place of an ε. Imports nothing heavy."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dp_leakage.common.errors import UserError, nearest

FPR = 0.001  # the FPR of a precision that names none
LEAST = 1e-6  # how far a limit is above guessing
KEYS = {"advantage": (), "tpr": ("fpr",), "precision": ("prior", "fpr")}
NEEDED = {"advantage": (), "tpr": ("fpr",), "precision": ("prior",)}
EXAMPLES = "{advantage: 0.1}, {tpr: 0.05, fpr: 0.001} or {precision: 0.5, prior: 0.01}"


@dataclass(frozen=True)
class Target:
    """A limit on the risk from any attack.

    Attributes:
        measure: ``advantage`` (TPR − FPR), ``tpr`` (the share of members found at ``fpr``) or ``precision`` (the share
            of members among those accused at ``fpr``, if a share ``prior`` of all are members).
        value: the limit, in (0, 1).
        fpr: the false positive rate, in (0, 1); None for an advantage.
        prior: in (0, 1), of a precision; otherwise None.
    """

    measure: str
    value: float
    fpr: float | None = None
    prior: float | None = None

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> "Target":
        """Read a study file's ``target``.

        Raises:
            UserError: unknown or missing keys, values out of range, or a limit that every training or no training
                meets.
        """
        measures = [key for key in KEYS if key in given]
        if len(measures) != 1:
            raise UserError(f"target is {dict(given)}; expected {EXAMPLES}")
        measure = measures[0]
        for key in given:
            if key not in (measure, *KEYS[measure]):
                raise UserError(f"target has the unknown key '{key}'; {nearest(key, (measure, *KEYS[measure]))}")
        for key in NEEDED[measure]:
            if key not in given:
                raise UserError(f"target lacks the key '{key}', which {measure} needs; expected {EXAMPLES}")
        for key, value in given.items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
                raise UserError(f"target.{key} is {value!r}; expected a number above 0 and below 1")
        fpr = float(given.get("fpr", FPR)) if measure != "advantage" else None
        prior = float(given["prior"]) if measure == "precision" else None
        found = cls(measure, float(given[measure]), fpr, prior)
        found._check_reachable()
        return found

    @property
    def settings(self) -> dict[str, float]:
        """Return the target as in a study file, with every key."""
        values = {self.measure: self.value, "prior": self.prior, "fpr": self.fpr}
        return {key: value for key, value in values.items() if value is not None}

    @property
    def limit(self) -> float:
        """Return the limit: the advantage, or the true positive rate at ``fpr``."""
        if self.prior is None or self.fpr is None:
            return self.value
        return self.fpr * (1 - self.prior) / self.prior * self.value / (1 - self.value)

    @property
    def words(self) -> str:
        """advantage ≤ 0.1, TPR ≤ 0.05 at FPR 0.001, …"""
        if self.measure == "advantage":
            return f"advantage ≤ {self.value:g}"
        if self.measure == "tpr":
            return f"TPR ≤ {self.value:g} at FPR {self.fpr:g}"
        return f"precision ≤ {self.value:g} at prior {self.prior:g} and FPR {self.fpr:g}"

    def _check_reachable(self) -> None:
        if self.prior is not None and self.value <= self.prior:
            words = f"expected above the prior, {self.prior:g}, which guessing reaches"
            raise UserError(f"target.precision is {self.value:g}; {words}")
        if self.fpr is not None and self.limit <= self.fpr:
            raise UserError(
                f"target.tpr is {self.limit:g}; expected above the fpr, {self.fpr:g}, which guessing reaches"
            )
        if self.limit - (self.fpr or 0.0) < LEAST:
            words = f"expected at least {LEAST:g} above what guessing reaches, since accountants resolve no less"
            raise UserError(f"target.{self.measure} is {self.value:g}; {words}")
        if self.limit >= 1:
            words = f"already because only {self.fpr:g} of the others are accused; a smaller fpr would ask for noise"
            raise UserError(f"target.precision {self.value:g} at prior {self.prior:g} is never exceeded, {words}")
