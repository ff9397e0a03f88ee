"""Options of `dp_leakage.commands.completion`."""

from dp_leakage.common.arguments import Parser

WHAT = """Print the completion of commands, options, studies, figures and columns for a shell. In ~/.bashrc, or in
~/.zshrc after compinit: eval "$(dp-leakage completion bash)"."""


def parser() -> Parser:
    """Return the parser of its command line."""
    options = Parser(prog="dp-leakage completion", description=WHAT)
    options.add_argument("shell", choices=("bash", "zsh"))
    return options
