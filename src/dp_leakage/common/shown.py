"""Text for display: the user's words escaped for programs that interpret some of them as markup;
durations; progress.
"""

import re
import sys

CLEAR = "\r\x1b[K"  # to the line's start, and what is right of it away


def one_line(text: str) -> str:
    """Return the text with every run of blanks and line breaks replaced by one blank, for a list of targets."""
    return " ".join(text.split())


def capital(text: str) -> str:
    """Return the text with its first letter in upper case, and the others as they are.

    >>> capital("area under the ROC")
    'Area under the ROC'
    """
    return text[:1].upper() + text[1:]


def as_label(text: str) -> str:
    """Escape a label or category for ``snakemake --report``, which puts it into a script and expands its braces.

    An invisible word joiner (U+2060) keeps a ``<`` from beginning a tag and a ``{`` from naming a wildcard.
    """
    return re.sub("[<{]", "\\g<0>\u2060", one_line(text))


def as_rst(text: str) -> str:
    r"""Escape words for reStructuredText, so that none of them is read as markup.

    >>> as_rst("no *stress* here")
    'no \\*stress\\* here'
    """
    return re.sub(r"([^\w\s])", r"\\\1", one_line(text)).replace("_", "\\_")


def show(progress: str) -> None:
    """Print text to a terminal, but not to a log."""
    if sys.stderr.isatty():
        print(progress, end="", file=sys.stderr, flush=True)


def duration(seconds: float) -> str:
    """Return a duration in words.

    >>> [duration(seconds) for seconds in (0.4, 12, 200, 7500)]
    ['0.4 s', '12 s', '3 min 20 s', '2 h 5 min']
    """
    if seconds < 59.5:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min"
