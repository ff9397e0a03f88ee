"""`UserError`, the only exception whose message is written for the user."""

from collections.abc import Iterable
from difflib import get_close_matches

LONGEST = 1000  # characters of a complaint; a value of ten pages says no more than its beginning


class UserError(ValueError):
    """A mistake that the user can mend.

    The message is one sentence that names the key or file, the value, and what is valid. Steps and the Snakefile print
    it without a traceback. It is always one line, whatever characters the value holds.
    """

    def __init__(self, message: str) -> None:
        text = plain(message)
        super().__init__(text if len(text) <= LONGEST else f"{text[: LONGEST - 300]} … {text[-300:]}")


def no_utf8(file: object, line: int, byte: int) -> UserError:
    """Return the error message for a text file with a byte that is not UTF-8, with the line counted from 1."""
    return UserError(f"{file}, line {line} is not UTF-8 text (byte {byte:#x}); save the file as UTF-8")


def first_wrong_byte(error: UnicodeDecodeError) -> tuple[int, int]:
    """Return the line, from 1, and the value of the byte at which the decoding of a whole text ended."""
    return error.object[: error.start].count(b"\n") + 1, error.object[error.start]


def plain(text: str) -> str:
    r"""Return the text on one line. Characters that a terminal or a UTF-8 file cannot show are written as Python
    escapes.

    >>> plain("two\nlines, a bell\a")
    'two\\nlines, a bell\\x07'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def brief(text: object, most: int = 200) -> str:
    """Return a text on one line, cut between words after ``most`` characters.

    >>> brief("size mismatch for\\nweight", 15)
    'size mismatch …'
    """
    line = " ".join(str(text).split())
    return line if len(line) <= most else f"{line[:most].rpartition(' ')[0] or line[:most]} …"


def nearest(name: object, valid: Iterable[object]) -> str:
    """Return the end of an error message about an unknown name: a suggestion if a valid name is close, then the
    valid names.

    >>> nearest("rpd", ["rdp", "pld"])
    "did you mean 'rdp'? Valid: pld, rdp"
    """
    names = sorted(str(v) for v in valid)
    hint = close(name, names)
    return f"{hint}{'Valid' if hint else 'valid'}: {', '.join(names)}" if names else "there is none to choose from"


def close(name: object, valid: Iterable[str], cutoff: float = 0.6) -> str:
    """Return ``did you mean …?`` if a valid name is similar, otherwise an empty text.

    Args:
        name: the name as written.
        valid: valid names.
        cutoff: minimum similarity, from 0 to 1. At 0.85 they differ by a letter or two.

    >>> close("--scal", ["--scale"], 0.85), close("--slurm-account", ["--scale"], 0.85)
    ("did you mean '--scale'? ", '')
    """
    found = get_close_matches(str(name), list(valid), n=1, cutoff=cutoff)
    return f"did you mean '{found[0]}'? " if found else ""
