"""Settings as mappings, and changes to them."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, TypeVar

T = TypeVar("T")
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


def spread(values: Sequence[T], count: int) -> list[T]:
    """Return at most ``count`` values: the first, the last, and evenly spaced ones between.

    >>> spread([0.1, 1, 2, 5, 10], 3)
    [0.1, 2, 10]
    """
    count = min(count, len(values))
    return [values[round(place * (len(values) - 1) / max(count - 1, 1))] for place in range(count)]
