"""Kinds of settings: a test of the value, and its words in a complaint. Declarations name one for each setting."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeGuard

from dp_leakage.common.errors import UserError, nearest

MOST = 2**63 - 1  # the largest whole number, whatever it counts


class Kind(NamedTuple):
    """What a setting may hold.

    Attributes:
        holds: a test of a value.
        words: what passes it.
        names: the texts that pass, from which a complaint picks its suggestion.
    """

    holds: Callable[[Any], bool]
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
    """Finite numbers within bounds. ``least`` and ``most`` are valid themselves, ``above`` and ``below`` are not."""
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


def some(kind: Kind) -> Kind:
    """A list of one or more of what ``kind`` holds."""
    return Kind(
        lambda v: isinstance(v, list | tuple) and len(v) > 0 and all(map(kind.holds, v)),
        f"a list of one or more items, each {kind.words}",
    )


def distinct(kind: Kind) -> Kind:
    """A list of what ``kind`` holds, without repetitions."""
    return Kind(
        lambda v: isinstance(v, list | tuple) and all(map(kind.holds, v)) and len({*map(repr, v)}) == len(v),
        f"a list of items, each once, each {kind.words}",
    )


def row(*kinds: Kind) -> Kind:
    """A list with one item of each kind, in this order."""
    return Kind(
        lambda v: (
            isinstance(v, list | tuple)
            and len(v) == len(kinds)
            and all(kind.holds(item) for kind, item in zip(kinds, v, strict=True))
        ),
        f"[{', '.join(kind.words for kind in kinds)}]",
    )


def mapping(kinds: Mapping[str, Kind]) -> Kind:
    """A mapping with exactly these keys."""
    return Kind(
        lambda v: isinstance(v, Mapping) and v.keys() == kinds.keys() and all(kinds[key].holds(v[key]) for key in v),
        "a mapping with " + ", ".join(f"{key} ({kind.words})" for key, kind in kinds.items()),
    )


def named(kind: Kind) -> Kind:
    """A mapping from any names to what ``kind`` holds."""
    return Kind(
        lambda v: isinstance(v, Mapping) and all(map(TEXT.holds, v)) and all(map(kind.holds, v.values())),
        f"a mapping of names, each to {kind.words}",
    )


def worded(words: str, kind: Kind) -> Kind:
    """The same kind, said in other words."""
    return kind._replace(words=words)


def either(*kinds: Kind) -> Kind:
    """Values that one of these kinds holds."""
    return Kind(lambda v: any(kind.holds(v) for kind in kinds), ", or ".join(kind.words for kind in kinds))


def like(default: object) -> Kind:
    """Values of the same type as a default: the kind of a setting whose declaration names none."""
    if isinstance(default, bool):
        return FLAG
    if isinstance(default, int | float):
        return number()
    if isinstance(default, list | tuple):
        return Kind(lambda v: isinstance(v, list | tuple), "a list")
    return ANY if default is None else Kind(lambda v: isinstance(v, type(default)), f"a value like {default!r}")


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


ANY = Kind(lambda v: True, "anything")
NOTHING = Kind(lambda v: v is None, "null")
COUNT = whole(1)
SEED = whole(0)
FLAG = Kind(lambda v: isinstance(v, bool), "true or false")
TEXT = Kind(lambda v: isinstance(v, str) and v != "", "a text")
TEXTS = listed(TEXT)

# How a declaration spells a kind as plain data: a name, or a list of a word and its arguments.
NAMED = {
    "anything": ANY, "null": NOTHING, "count": COUNT, "number": number(), "flag": FLAG, "text": TEXT, "texts": TEXTS
}  # fmt: skip
LIMITS = {"from": "least", "above": "above", "to": "most", "below": "below"}
MADE: dict[str, Callable[..., Kind]] = {  # each takes a function that reads the kinds inside it
    "number": lambda _, *limits: number(**_limits(limits)),
    "whole": lambda _, *limits: _whole(limits),
    "choice": lambda _, *values: choice(*_some(values, either(TEXT, number(), FLAG))),
    "list": lambda read, *arguments: _listed(read, *arguments),
    "some": lambda read, kind: some(read(kind)),
    "distinct": lambda read, kind: distinct(read(kind)),
    "row": lambda read, *kinds: row(*map(read, _some(kinds, ANY))),
    "mapping": lambda read, kinds: _mapping(read, kinds),
    "named": lambda read, kind: named(read(kind)),
    "either": lambda read, *kinds: either(*map(read, _some(kinds, ANY))),
    "worded": lambda read, words, kind: worded(_some((words,), TEXT)[0], read(kind)),
}
DEEPEST = 10  # levels of kinds in kinds
EXAMPLES: dict[str, list[object]] = {
    "number": ["number", "from", 0, "below", 1],
    "whole": ["whole", "from", 1, "to", 18],
    "choice": ["choice", "low", "high"],
    "list": ["list", "count"],
    "some": ["some", "text"],
    "distinct": ["distinct", "text"],
    "row": ["row", "text", "number"],
    "mapping": ["mapping", {"label": "text"}],
    "named": ["named", ["list", "number"]],
    "either": ["either", "null", "count"],
    "worded": ["worded", "a list of column names", "texts"],
}


def read(said: object) -> Kind:
    """The kind that a declaration spells out.

    >>> read(["number", "above", 0, "to", 1]).words
    'a number above 0 and up to 1'
    >>> read(["either", "null", ["list", ["whole", "from", 0], 2]]).holds([3, 4])
    True

    Args:
        said: a name of `NAMED`, or a list of a word of `MADE` and its arguments.

    Raises:
        UserError: ``said`` is neither, or the word does not take these arguments.
    """
    return _read(said, 0)


def _read(said: object, depth: int) -> Kind:
    word, *arguments = said if isinstance(said, list | tuple) and said else [said]
    if isinstance(word, str) and word in NAMED and not arguments:
        return NAMED[word]
    if depth > DEEPEST:
        raise UserError(f"a kind is nested deeper than {DEEPEST} levels; no value of a study is")
    if not isinstance(word, str) or word not in MADE:
        raise UserError(f"{said!r} is not a kind; {nearest(word, [*NAMED, *MADE])}")
    try:
        return MADE[word](lambda inner: _read(inner, depth + 1), *arguments)
    except UserError:  # from a kind inside this one
        raise
    except (TypeError, AttributeError, KeyError, ValueError):
        raise UserError(f"{said!r} is not a kind; for example {EXAMPLES[word]!r}") from None


def _limits(words: tuple[Any, ...]) -> dict[str, Any]:
    """``("from", 0, "to", 1)`` as keywords of `number` and `whole`. ValueError if they leave no number."""
    found = {LIMITS[str(word)]: limit for word, limit in zip(words[::2], words[1::2], strict=True)}
    if len(found) * 2 != len(words) or not all(map(number().holds, found.values())):
        raise ValueError("a limit stands twice, or is no finite number")
    least, most = (
        max((found[key] for key in pair if key in found), default=None, key=lambda limit: sign * limit)
        for pair, sign in ((("least", "above"), 1), (("most", "below"), -1))
    )
    if least is not None and most is not None:
        touching = least == most and found.get("above") != least and found.get("below") != most
        if least > most or (least == most and not touching):
            raise ValueError("no number is within the limits")
    return found


def _whole(words: tuple[Any, ...]) -> Kind:
    limits = _limits(words)
    if not all(map(_is_whole, limits.values())) or not -MOST <= limits["least"] <= MOST:
        raise ValueError("a limit is no whole number")
    return whole(**limits)


def _some(values: tuple[Any, ...], valid: Kind) -> tuple[Any, ...]:
    """One value or more, each a ``valid`` one. ValueError if there is none, or another."""
    if not values or not all(map(valid.holds, values)):
        raise ValueError(f"valid is {valid.words}")
    return values


def _mapping(read: Callable[[object], Kind], kinds: Mapping[str, object]) -> Kind:
    _some(tuple(kinds), TEXT)
    return mapping({key: read(kind) for key, kind in kinds.items()})


def _listed(read: Callable[[object], Kind], kind: object, length: int | None = None) -> Kind:
    _some((length,), either(NOTHING, COUNT))
    return listed(read(kind), length)
