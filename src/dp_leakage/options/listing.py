"""Options of `dp_leakage.commands.listing`."""

from dp_leakage.common.arguments import Parser

WHAT = """List the studies, or the figures of one: `dp-leakage run` takes both. Studies are the package's own, of which
five reproduce papers, and those in the folder studies."""


def parser() -> Parser:
    """Return the parser of its command line."""
    options = Parser(prog="dp-leakage list", description=WHAT)
    options.add_argument("study", nargs="?", default="", help="a study, whose figures are listed")
    return options
