"""What a setting may hold: a test, and the words that say it in a complaint. The registries name one for each."""

from collections.abc import Callable
from typing import NamedTuple

from dp_leakage.errors import nearest

MOST = 2**63 - 1  # of a whole number, whatever it counts


class Kind(NamedTuple):
    """What a setting may hold.

    Attributes:
        holds: a test of a value.
        words: what passes it.
        names: the texts that pass, where one may be meant.
    """

    holds: Callable[[object], bool]
    words: str
    names: tuple[str, ...] = ()

    def valid(self, value: object) -> str:
        """The end of a complaint about a value: a suggestion where a name is close, and what is valid."""
        return nearest(value, self.names) if self.names and isinstance(value, str) else f"valid is {self.words}"


def whole(least: int, most: int | None = None) -> Kind:
    """Whole numbers from ``least`` (to ``most``)."""
    words = f"a whole number from {least} " + ("on" if most is None else f"to {most}")
    return Kind(lambda v: _is_whole(v) and least <= v <= (MOST if most is None else most), words)


def number(
    *, least: float | None = None, above: float | None = None, most: float | None = None, below: float | None = None
) -> Kind:
    """Finite numbers within bounds, of which ``above`` and ``below`` do not belong to them."""
    limits = {"of at least": least, "above": above, "up to": most, "below": below}
    words = " and ".join(f"{word} {limit:g}" for word, limit in limits.items() if limit is not None)

    def holds(value: object) -> bool:
        return (
            isinstance(value, int | float)
            and not isinstance(value, bool)
            and abs(value) < float("inf")
            and (least is None or value >= least)
            and (above is None or value > above)
            and (most is None or value <= most)
            and (below is None or value < below)
        )

    return Kind(holds, f"a number {words}".strip())


def choice(*values: object) -> Kind:
    """One of these texts or numbers."""
    names = tuple(value for value in values if isinstance(value, str))
    return Kind(
        lambda v: any(type(v) is type(known) and v == known for known in values),
        " or ".join(map(str, values)),
        names if len(names) == len(values) else (),
    )


def listed(kind: Kind, length: int | None = None) -> Kind:
    """A list of what ``kind`` holds, of any length or of this one."""
    words = f"a list of {length or 'any number of'} items, each {kind.words}"
    return Kind(
        lambda v: isinstance(v, list | tuple) and (length is None or len(v) == length) and all(map(kind.holds, v)),
        words,
    )


def either(*kinds: Kind) -> Kind:
    """What any of these holds."""
    return Kind(lambda v: any(kind.holds(v) for kind in kinds), ", or ".join(kind.words for kind in kinds))


def like(default: object) -> Kind:
    """Values of the type of a default: what is known of a setting of which nothing is said."""
    if isinstance(default, bool):
        return FLAG
    if isinstance(default, int | float):
        return number()
    if isinstance(default, list | tuple):
        return Kind(lambda v: isinstance(v, list | tuple), "a list")
    return ANY if default is None else Kind(lambda v: isinstance(v, type(default)), f"a value like {default!r}")


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


ANY = Kind(lambda v: True, "anything")
NOTHING = Kind(lambda v: v is None, "null")
COUNT = whole(1)
SEED = whole(0)
FLAG = Kind(lambda v: isinstance(v, bool), "true or false")
TEXT = Kind(lambda v: isinstance(v, str) and v != "", "a text")
TEXTS = listed(TEXT)
