"""Options of `dp_leakage.commands.listing`."""

from dp_leakage.common.arguments import Parser


def parser() -> Parser:
    """Return the parser of its command line."""
    options = Parser(prog="dp-leakage list", description="List the studies, or the figures of one.")
    options.add_argument("study", nargs="?", default="", help="a study, whose figures are listed")
    return options
