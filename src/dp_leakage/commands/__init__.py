"""The commands of ``dp-leakage``.

A command's options are a module of `dp_leakage.options`, which imports no library, so that help costs no more than the
interpreter's start. The code to run is imported after the options are parsed.
"""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NamedTuple

from dp_leakage.common.arguments import Parser, print_anything
from dp_leakage.common.errors import UserError, close
from dp_leakage.common.surroundings import check_surroundings


class Command(NamedTuple):
    """One command.

    Attributes:
        does: one-line summary.
        example: its options in an example; several examples, one per line.
        options: the module of `dp_leakage.options`, and the function that returns the parser unless that is ``parser``.
        runs: module and function below `dp_leakage`, called with ``before`` followed by the user's arguments.
        before: arguments in front of the user's.
        passes_on: whether unknown arguments belong to another program and are not checked.
    """

    does: str
    example: str
    options: str
    runs: str
    before: tuple[str, ...] = ()
    passes_on: bool = False


SETTING = "--epochs 60 --batch-size 256 --dataset-size 60000"
COMMANDS = {
    "demo": Command(
        "run the study quickstart to its report", "--scale smoke", "run:demo", "commands.run:demo", passes_on=True
    ),
    "list": Command(
        "list the studies, of papers too, or the figures of one", "quickstart", "listing", "commands.listing:main"
    ),
    "run": Command(
        "run a study, or one figure; on a cluster with --on slurm",
        "quickstart:fig_pareto\nquickstart --scale smoke -n",
        "run",
        "commands.run:main",
        passes_on=True,
    ),
    "new": Command(
        "write a study of your own data", "mine --data my.csv --label diagnosis", "new_study", "new_study:main"
    ),
    "attack": Command(
        "write a study that attacks a model that you have",
        "mine --outputs outputs.parquet --references references.csv",
        "audit_model",
        "audit_model:main",
    ),
    "audit": Command(
        "test the claimed ε of your training function",
        "--train my_module:train --epsilon 4",
        "audit_training",
        "audit_training:main",
    ),
    "watch": Command(
        "run an Opacus script as it is, and audit its ε",
        "train.py --epochs 3",
        "watch",
        "commands.watch:main",
        passes_on=True,
    ),
    "release": Command(
        "train once on all records a model to give away",
        "mine mlp/gaussian-rdp-eps=10",
        "release",
        "release.command:make",
    ),
    "verify": Command(
        "check a release, or every file of a study",
        "releases/mine\nquickstart",
        "release:verifying",
        "commands.verify:main",
        passes_on=True,
    ),
    "share": Command("copy what can be given away of results", "quickstart --to for_you", "share", "share:main"),
    "sigma": Command(
        "the noise for an ε or a risk", f"--epsilon 1 {SETTING}", "privacy:sigma", "privacy.command:main", ("sigma",)
    ),
    "epsilon": Command(
        "the ε of a noise", f"--noise-multiplier 1.1 {SETTING}", "privacy:epsilon", "privacy.command:main", ("epsilon",)
    ),
    "risk": Command(
        "what a noise lets any attacker reach",
        f"--noise-multiplier 1.1 {SETTING}",
        "privacy:risk",
        "privacy.command:main",
        ("risk",),
    ),
    "select": Command(
        "the ε of releasing the best of several trainings",
        "--noise-multiplier 5 --epochs 60 --batch-size 50 --dataset-size 800 --mean 10",
        "privacy:select",
        "privacy.command:main",
        ("select",),
    ),
    "doctor": Command("say what is installed and what a run would use", "", "doctor", "commands.doctor:main"),
    "completion": Command("print the completion for bash or zsh", "bash", "completion", "commands.completion:main"),
}

DOORS = {  # what somebody has → the commands for it, as the help shows them
    "to begin": ("demo", "doctor", "completion"),
    "you train with Opacus, or with another library": ("watch", "audit"),
    "you have data, a model, or a paper to reproduce": ("new", "attack", "list", "run"),
    "you give a model or results away": ("release", "verify", "share"),
    "you choose an ε, a noise or a risk": ("sigma", "epsilon", "risk", "select"),
}


def main(words: Sequence[str] | None = None) -> int:
    """Run a command; return its exit status."""
    words = sys.argv[1:] if words is None else list(words)
    name, *rest = words or ["--help"]
    if name in ("-h", "--help"):
        print_anything()
        print(overview())
        return 0
    if name == "--version":
        from dp_leakage import __version__

        print(f"dp-leakage {__version__}")
        return 0
    try:
        check_surroundings()
        if name == "__complete":
            return int(import_module("dp_leakage.commands.completion").complete(rest))
        if name not in COMMANDS:
            raise UserError(f"no command is called {name!r}; {close(name, COMMANDS)}`dp-leakage --help` shows all")
        command = COMMANDS[name]
        if name != "watch":  # whose further words are a script's
            _check_filled(rest)
        if {"-h", "--help"} & {*rest} or not command.passes_on:
            check_words(name, rest)
        module, _, function = command.runs.partition(":")
        status: int = getattr(import_module(f"dp_leakage.{module}"), function)([*command.before, *rest])
        return status
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # dp-leakage list | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _check_filled(words: Sequence[str]) -> None:
    """Refuse empty values: an unset shell variable would silently act as if the option were absent."""
    for option, word in zip(["", *words], words, strict=False):
        name, equals, value = word.partition("=") if word.startswith("--") else ("", "=", word)
        if equals and not value.strip():
            raise UserError(f"{name or option or 'the first word'} is empty; give it a value, or leave it out")


def parser_of(name: str) -> Parser:
    """Return the parser of a command, with an example below its help."""
    command = COMMANDS[name]
    module, _, function = command.options.partition(":")
    parser: Parser = getattr(import_module(f"dp_leakage.options.{module}"), function or "parser")()
    parser.examples([f"dp-leakage {name} {example}".rstrip() for example in command.example.split("\n")])
    return parser


def check_words(name: str, words: Sequence[str]) -> None:
    """Print the help and exit, or refuse invalid arguments, before any slow import."""
    parser_of(name).parse_args(words)


def overview() -> str:
    """Return the help of ``dp-leakage`` itself."""
    lines = []
    for door, names in DOORS.items():
        lines += [f"{door}:", *(f"  {name:<12}{COMMANDS[name].does}" for name in names), ""]
    return "\n".join(
        [
            "usage: dp-leakage COMMAND …",
            "",
            "What does a privacy budget ε buy? Accuracy against leakage, with and without differential privacy.",
            "",
            *lines,
            "`dp-leakage COMMAND --help` shows its options. Studies, plugins and results are in the working folder.",
        ]
    )
