"""Names of roles. Apart from `dataset`, so that the workflow reads them without importing NumPy."""

from collections.abc import Container

MEMBERS = "target_members"
POOL = "pool"  # whose records are each in or out of a repeat's training by a fair coin


def trained_role(roles: Container[str]) -> str:
    """The role that target models train on: ``pool`` in design ``coins``, else ``target_members``."""
    return POOL if POOL in roles else MEMBERS
