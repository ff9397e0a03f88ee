"""Options of `dp_leakage.commands.watch`; arguments after the script belong to the script."""

from collections.abc import Sequence
from typing import Any

from dp_leakage.common.arguments import Parser, share, whole

WHAT = """Run a training script that uses Opacus, unchanged, and audit it: what each step draws, clips, adds, applies
and counts is compared with the ε that the script states. Exit status: 0 nothing contradicts it, 3 it is refuted, 2
something cannot be told; a script that fails keeps its own.

In Python: `with dp_leakage.opacus.watch() as seen: train()`; in a test: `dp_leakage.opacus.assert_private(train)`."""
TO = "watched"


class WatchParser(Parser):
    """Parser that stops at the script: all further arguments are the script's own, even if they look like options."""

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse the words up to the script; ``script`` and ``arguments`` are the rest."""
        own, rest = self._split(list(args or ()))
        options = super().parse_args(own, namespace)
        if not rest:
            self.error("name the script to run, such as train.py")
        options.script, options.arguments = rest[0], rest[1:]
        return options

    def _split(self, words: Sequence[str]) -> tuple[list[str], list[str]]:
        place = 0
        while place < len(words) and words[place].startswith("-"):
            action = self._option_string_actions.get(words[place])
            place += 2 if action is not None and action.nargs != 0 else 1
        return list(words[:place]), list(words[place:])


def parser() -> WatchParser:
    """Return the parser of its command line."""
    usage = "dp-leakage watch [options] SCRIPT [its arguments]"
    options = WatchParser(prog="dp-leakage watch", usage=usage, description=WHAT)
    options.add_argument("--delta", type=share, help="δ at which ε is computed; default: the script's own, else 1e-5")
    options.add_argument(
        "--canaries",
        type=whole(0, 10**6),
        default=0,
        help="plant so many gradients for a lower bound on ε; this changes the training (default: 0)",
    )
    options.add_argument("--to", default=TO, help="folder for report.html and report.json; default: %(default)s")
    options.add_argument(
        "--every", type=whole(1, 10**6), default=10, help="recompute the clipping in one step of so many (default: 10)"
    )
    options.add_argument("--seed", type=whole(0, 2**63 - 1), default=0, help="of the audit's own draws")
    return options
