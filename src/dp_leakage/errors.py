"""The one exception that is meant for the person at the keyboard."""

from collections.abc import Iterable
from difflib import get_close_matches


class UserError(ValueError):
    """Something the user can mend: its message is one sentence naming the key or file, the value, and what is valid.

    Steps and the Snakefile print it without a traceback.
    """


def nearest(name: object, valid: Iterable[object]) -> str:
    """The words that end a complaint about an unknown name: a suggestion if one is close, then what is valid.

    >>> nearest("rpd", ["rdp", "pld"])
    "did you mean 'rdp'? Valid: pld, rdp"
    """
    names = sorted(str(v) for v in valid)
    close = get_close_matches(str(name), names, n=1)
    hint = f"did you mean '{close[0]}'? " if close else ""
    return f"{hint}Valid: {', '.join(names) or 'none'}"
