"""Names of roles and their purpose. The workflow and the attacks both use them, so they are not in `dataset`."""

from collections.abc import Collection

MEMBERS, OUTSIDERS = "target_members", "target_nonmembers"
POOL = "pool"  # for each of its records, a fair coin decides whether a repeat trains on it
REFERENCE_POOL = "reference_pool"
SHADOW_POOL = "shadow_pool"
TUNING = "tuning"  # records set apart for trying learning rates, and for nothing else
ROLES = (MEMBERS, OUTSIDERS, POOL, SHADOW_POOL, REFERENCE_POOL, TUNING)
# Where a role's records are, in words: "80 records in the pool".
PLACES = {
    MEMBERS: "among the members",
    OUTSIDERS: "among the non-members",
    POOL: "in the pool",
    SHADOW_POOL: "in the shadow pool",
    REFERENCE_POOL: "in the reference pool",
    TUNING: "set apart for tuning",
}


def trained_role(roles: Collection[str]) -> str:
    """Return the role that target models train on: ``pool`` in design ``coins``, otherwise ``target_members``."""
    return POOL if POOL in roles else MEMBERS


def asked_roles(roles: Collection[str]) -> tuple[str, ...]:
    """Return the roles whose membership is attacked, the members' first."""
    return (POOL,) if POOL in roles else (MEMBERS, OUTSIDERS)


def population_role(roles: Collection[str]) -> str:
    """Return the role of records that no target trained on and no attack queries.

    That is ``reference_pool``. In design ``coins``, it is the role of the new records, on which accuracy is measured.
    """
    return OUTSIDERS if POOL in roles and REFERENCE_POOL not in roles else REFERENCE_POOL


def traced_roles(roles: Collection[str]) -> tuple[str, ...]:
    """Return the roles whose losses are recorded at every evaluated epoch, if an attack reads them: queried ones and
    the population.
    """
    return (*asked_roles(roles), population_role(roles))


def attackers_roles(roles: Collection[str]) -> list[str]:
    """Return the roles whose records the attacker already has."""
    return [role for role in (SHADOW_POOL, population_role(roles)) if role in roles]
