"""What a design of a cell's audit tests, from what the file of its scores says of their making."""

from dp_leakage.audits import Claim, approximate_dp, gaussian_dp
from dp_leakage.errors import UserError
from dp_leakage.steps import Json


def claim_of(design: Json, made: Json) -> Claim:
    """The claim that a design tests. Raises UserError where the mechanism makes no such claim."""
    settings = made["settings"]
    mechanism, delta = settings["mechanism"] or {}, settings["delta"]
    if design["claim"] == "approximate":
        return approximate_dp(delta)
    if unsampled_gaussian(mechanism):
        return gaussian_dp(delta)
    raise UserError(f"audit claim {design['claim']!r} needs Gaussian noise without sampling; valid here: approximate")


def unsampled_gaussian(mechanism: Json) -> bool:
    """Is it Gaussian noise on batches that every record is in once an epoch?"""
    kind = tuple(mechanism.get(key) for key in ("noise", "sampler", "unit"))
    return kind == ("gaussian", "shuffle", "example")
