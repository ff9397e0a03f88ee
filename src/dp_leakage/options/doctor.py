"""Options of `dp_leakage.commands.doctor`: none."""

from dp_leakage.common.arguments import Parser


def parser() -> Parser:
    """Return the parser of its command line."""
    return Parser(prog="dp-leakage doctor", description="Say what is installed and what a run here would use.")
