"""The user's words in the languages of other programs, which take some of them for their own."""

import re


def one_line(text: str) -> str:
    """The text with every run of blanks and line breaks as one blank, as a list of targets shows it."""
    return " ".join(text.split())


def as_label(text: str) -> str:
    """A label or category for ``snakemake --report``, which puts it into a script and fills in its braces.

    A word joiner (U+2060), which nobody sees, keeps a ``<`` from beginning a tag and a ``{`` from naming a wildcard.
    """
    return re.sub("[<{]", "\\g<0>\u2060", one_line(text))


def as_rst(text: str) -> str:
    r"""Words in reStructuredText, where they mean nothing but themselves.

    >>> as_rst("no *stress* here")
    'no \\*stress\\* here'
    """
    return re.sub(r"([^\w\s])", r"\\\1", one_line(text)).replace("_", "\\_")
