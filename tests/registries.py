"""What plugins change in a process: the package's tables, Python's path and its modules."""

import sys
from contextlib import contextmanager

from dp_leakage.attacks import ATTACKS
from dp_leakage.common import user_code
from dp_leakage.common.utilities import UTILITIES
from dp_leakage.data import SOURCES
from dp_leakage.figures import FIGURES
from dp_leakage.models.layers.own import OWN
from dp_leakage.privacy.accounting import ACCOUNTANTS
from dp_leakage.privacy.mechanism import SAMPLERS, UNITS
from dp_leakage.privacy.mechanisms import MECHANISMS

TABLES = (ATTACKS, FIGURES, SOURCES, OWN, ACCOUNTANTS, MECHANISMS, UTILITIES, user_code.FILES, user_code.DEFINED)
LISTS = (SAMPLERS, UNITS, user_code.FOLDERS, sys.path)


@contextmanager
def unchanged(*modules):
    """Puts all of it back as it was before the block; ``modules`` are forgotten along with the plugins."""
    tables, lists = [dict(table) for table in TABLES], [list(own) for own in LISTS]
    try:
        yield
    finally:
        for name in (*user_code.FILES, *modules):
            sys.modules.pop(name, None)
        for table, old in zip(TABLES, tables, strict=True):
            table.clear()
            table.update(old)
        for own, old in zip(LISTS, lists, strict=True):
            own[:] = old
