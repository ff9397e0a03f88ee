"""Settings as mappings, and changes to them."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

Json = dict[str, Any]


def merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> Json:
    """``base`` with ``changes``: mappings merge key by key, None removes a key, and any other value replaces the old
    one.
    """
    result = deepcopy(dict(base))
    for key, value in changes.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(result.get(key), Mapping):
            result[key] = merged(result[key], value)
        else:
            result[key] = deepcopy(value)
    return result
