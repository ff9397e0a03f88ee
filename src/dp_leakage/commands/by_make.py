"""Run the command of a Makefile target with the variables of make's command line.

A variable is the option of the same name: ``LEAVE_OUT=a,b`` is ``--leave-out=a,b``. The Makefile does not list
variables: it passes the names of all that were typed in ``GIVEN``, with their values.
"""

import os
import sys
from argparse import Action
from collections.abc import Mapping, Sequence

from dp_leakage.commands import main as run
from dp_leakage.commands import parser_of
from dp_leakage.common.arguments import Parser
from dp_leakage.common.errors import UserError, nearest

MAKES_OWN = ("PYTHON", "VENV")  # which the Makefile itself reads
TARGETS = {
    "audit-model": "attack",
    "audit-training": "audit",
    "new-study": "new",
    "release": "release",
    "share": "share",
}


def main(words: Sequence[str] | None = None) -> int:
    """Run a target's command; return its exit status, 2 if a variable is refused."""
    (target,) = sys.argv[1:] if words is None else words
    given = {name: os.environ[name] for name in os.environ["GIVEN"].split() if name not in MAKES_OWN}
    try:
        arguments = arguments_of(target, parser_of(TARGETS[target]), given)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return run([TARGETS[target], *arguments])


def arguments_of(target: str, parser: Parser, given: Mapping[str, str]) -> list[str]:
    """Return the command line for make's variables. An empty value is ignored.

    Raises:
        UserError: a variable is unknown or missing, or a flag has a value other than yes.
    """
    actions = {variable_of(action): action for action in parser._actions if action.dest != "help"}
    for name in given:
        if name not in actions:
            raise UserError(f"make {target} has no variable {name}; {nearest(name, actions)}")
    for name, action in actions.items():
        if action.required and not given.get(name):
            raise UserError(f"make {target} needs {name}=…: {action.help}")
    options, rest = [], []
    for name, action in actions.items():
        if not (value := given.get(name, "")):
            continue
        if not action.option_strings:
            rest.append(value)
        elif action.nargs != 0:
            options.append(f"{action.option_strings[0]}={value}")
        elif value == "yes":
            options.append(action.option_strings[0])
        else:
            raise UserError(f"{name} must be yes; got {value!r}. Leave it out if you do not want it")
    return [*options, "--", *rest] if rest else options


def variable_of(action: Action) -> str:
    """Return the name of an option's variable."""
    return action.dest.upper()


if __name__ == "__main__":
    sys.exit(main())
