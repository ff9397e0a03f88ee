"""Gradients of length one without noise: the control that shows what directional noise costs beyond normalization."""

from dp_leakage.privacy.mechanisms.base import Declaration

MECHANISMS = {
    "normalize": Declaration(
        label="normalized, no noise",
        guarantee="Hides nothing.",
        module="",
        noise="none",
        bound="normalize",
        private=False,
        keys=frozenset(),
    )
}
ACCOUNTANTS: dict = {}
