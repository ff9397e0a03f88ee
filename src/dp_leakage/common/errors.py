"""The one exception that is meant for the person at the keyboard."""

from collections.abc import Iterable
from difflib import get_close_matches

LONGEST = 1000  # characters of a complaint; a value of ten pages says no more than its beginning


class UserError(ValueError):
    """Something the user can mend: its message is one sentence naming the key or file, the value, and what is valid.

    Steps and the Snakefile print it without a traceback. Whatever the user's words hold, it is one line.
    """

    def __init__(self, message: str) -> None:
        text = plain(message)
        super().__init__(text if len(text) <= LONGEST else f"{text[: LONGEST - 300]} … {text[-300:]}")


def plain(text: str) -> str:
    r"""The text on one line that a terminal shows and a file in UTF-8 holds: all else is written as Python escapes it.

    >>> plain("two\nlines, a bell\a")
    'two\\nlines, a bell\\x07'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def nearest(name: object, valid: Iterable[object]) -> str:
    """The words that end a complaint about an unknown name: a suggestion if one is close, then what is valid.

    >>> nearest("rpd", ["rdp", "pld"])
    "did you mean 'rdp'? Valid: pld, rdp"
    """
    names = sorted(str(v) for v in valid)
    close = get_close_matches(str(name), names, n=1)
    hint = f"did you mean '{close[0]}'? " if close else ""
    return f"{hint}Valid: {', '.join(names) or 'none'}"
