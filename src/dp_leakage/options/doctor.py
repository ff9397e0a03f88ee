"""Options of `dp_leakage.commands.doctor`."""

from dp_leakage.common.arguments import Parser

WHAT = (
    "Say what is installed, what is missing, and what a run here would use. The exit status is 1 if a run cannot begin."
)


def parser() -> Parser:
    """Return the parser of its command line."""
    options = Parser(prog="dp-leakage doctor", description=WHAT)
    options.add_argument("--constraints", action="store_true", help="print the tested versions, for pip's --constraint")
    return options
