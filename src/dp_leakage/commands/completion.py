"""``dp-leakage completion``: shell code for completion, which calls ``dp-leakage __complete LINE``."""

import csv
import shlex
from argparse import Action
from collections.abc import Iterable, Sequence
from pathlib import Path

from dp_leakage.commands import COMMANDS, parser_of
from dp_leakage.commands.run import PARTS, snakemake_options
from dp_leakage.commands.studies import figures_of, studies_here
from dp_leakage.common.places import PROFILES
from dp_leakage.options.completion import parser

BASH = r"""_dp_leakage() {
  local line="${COMP_LINE:0:COMP_POINT}" IFS=$'\n'
  local word="${line##* }"
  COMPREPLY=($(dp-leakage __complete "$line" 2>/dev/null))
  [ "${#COMPREPLY[@]}" -gt 0 ] || COMPREPLY=($(compgen -f -- "$word"))
  if [[ "$word" == *:* && "$COMP_WORDBREAKS" == *:* ]]; then  # a colon begins a word of bash's own
    COMPREPLY=("${COMPREPLY[@]#"${word%"${word##*:}"}"}")
  fi
}
complete -o default -F _dp_leakage dp-leakage"""
ZSH = r"""_dp_leakage() {
  local -a found
  found=("${(@f)$(dp-leakage __complete "$LBUFFER" 2>/dev/null)}")
  if [[ -n "${found[1]}" ]]; then compadd -Q -- "${found[@]}"; else _files; fi
}
compdef _dp_leakage dp-leakage"""
STUDIES_FIRST = ("run", "list", "release", "verify", "share")  # commands whose first word is a study
COLUMNS = ("--label", "--key", "--person", "--sensitive", "--categorical", "--drop", "--members")


def main(words: Sequence[str]) -> int:
    """Print the shell code."""
    print(BASH if parser().parse_args(words).shell == "bash" else ZSH)
    return 0


def complete(words: Sequence[str]) -> int:
    """Print the possible endings of a command line's last word, one per line; print nothing to leave it to the
    shell."""
    print("\n".join(sorted(endings(words[0] if words else ""))))
    return 0


def endings(line: str) -> set[str]:
    """Return possible completions of the last word of a line; empty if only the shell knows them, e.g. for files."""
    words, last = line.split(" ")[1:-1], line.rpartition(" ")[2]
    words = [word for word in words if word]
    if not words:
        return _beginning(last, COMMANDS)
    if (command := words[0]) not in COMMANDS:
        return set()
    actions = {name: action for action in parser_of(command)._actions for name in action.option_strings}
    if last.startswith("-"):
        others = snakemake_options() if command in ("run", "demo") else []
        return _beginning(last, [*actions, *others])
    if words[-1] in actions and actions[words[-1]].nargs != 0:
        return _beginning(last, _values(words[-1], actions[words[-1]], words))
    if len(words) == 1 and command in STUDIES_FIRST:
        return _studies(last, figures=command == "run")
    if len(words) == 1 and command == "completion":
        return _beginning(last, ["bash", "zsh"])
    return set()


def _values(option: str, action: Action, words: Sequence[str]) -> Iterable[str]:
    """Return possible values of an option: its choices, a profile, or the columns of the table behind ``--data``."""
    if option == "--on":
        return [file.parent.name for folder in (PROFILES, Path("profiles")) for file in folder.glob("*/config.yaml")]
    if option in COLUMNS and "--data" in words[:-2]:
        return _columns(Path(words[words.index("--data") + 1]))
    return action.choices or []


def _columns(path: Path) -> list[str]:
    """Return the names in the first line of a table, quoted for the shell; empty if it cannot be read."""
    if path.suffix not in (".csv", ".tsv"):
        return []
    try:
        with path.open(encoding="utf-8-sig") as file:
            return [
                shlex.quote(name)
                for name in next(csv.reader(file, delimiter="\t" if path.suffix == ".tsv" else ","), [])
            ]
    except (OSError, ValueError, csv.Error):
        return []


def _studies(last: str, figures: bool) -> set[str]:
    known = studies_here()
    study, colon, _ = last.partition(":")
    if not colon:
        return _beginning(last, known)
    parts = [*figures_of(known[study]), *PARTS] if figures and study in known else []
    return _beginning(last, [f"{study}:{part}" for part in parts])


def _beginning(last: str, names: Iterable[str]) -> set[str]:
    return {name for name in names if name.startswith(last)}
