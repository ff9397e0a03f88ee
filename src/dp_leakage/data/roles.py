"""Names of roles, and what they are for. Apart from `dataset`: read by the workflow and by attacks alike."""

from collections.abc import Collection

MEMBERS, OUTSIDERS = "target_members", "target_nonmembers"
POOL = "pool"  # whose records are each in or out of a repeat's training by a fair coin
REFERENCE_POOL = "reference_pool"
TUNING = "tuning"  # set apart: learning rates are tried on these, and nothing else is


def trained_role(roles: Collection[str]) -> str:
    """The role that target models train on: ``pool`` in design ``coins``, else ``target_members``."""
    return POOL if POOL in roles else MEMBERS


def asked_roles(roles: Collection[str]) -> tuple[str, ...]:
    """The roles whose records membership is asked of, the members' first."""
    return (POOL,) if POOL in roles else (MEMBERS, OUTSIDERS)


def population_role(roles: Collection[str]) -> str:
    """The role of records that no target trained on and nobody asks about.

    That is ``reference_pool``; in design ``coins``, where there is none, the new records that accuracy is measured on.
    """
    return OUTSIDERS if POOL in roles and REFERENCE_POOL not in roles else REFERENCE_POOL


def attackers_roles(roles: Collection[str]) -> list[str]:
    """The roles whose records the attacker has anyway."""
    return [role for role in ("shadow_pool", population_role(roles)) if role in roles]
