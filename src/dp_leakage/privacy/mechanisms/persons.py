"""User-level privacy, for people with several records each: Gaussian noise on the sum of their bounded mean gradients.

Batches are drawn from people, and a person's gradient is the mean over the person's records, bounded as one (user-level
DP-SGD: McMahan et al. 2018; Charles et al. 2024). So the accountants of DP-SGD hold with people in place of records.
"""

from __future__ import annotations

from dp_leakage.common.schemas import COUNT, enum
from dp_leakage.privacy.mechanisms import gaussian
from dp_leakage.privacy.mechanisms.base import Accountant, Declaration

MECHANISMS = {
    "person": Declaration(
        label="person-level DP-SGD",
        guarantee="Hides each person with all records: add_remove and replace_one under Poisson batches, zero_out and "
        "replace_one if each person is used once an epoch.",
        module=gaussian.HERE,
        noise="gaussian",
        schemas={
            "most": {
                "anyOf": [{"const": "all"}, COUNT],
                "default": "all",
                "description": "Maximum records of a person in a batch.",
            },
            "chosen": {
                **enum("each_step", "first"),
                "default": "each_step",
                "description": "Choice of these records, drawn again for each batch, or the first in the file.",
            },
        },
        step={"unit": "person"},
    )
}
ACCOUNTANTS: dict[str, Accountant] = {}
