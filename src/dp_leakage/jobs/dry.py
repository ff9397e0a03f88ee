"""What a dry run need not spell out for each of its jobs, since it prints none of it (Snakemake 9.27.1)."""

from collections.abc import Iterable
from typing import Any


class Unprinted(str):
    """A command that equals what was recorded of earlier runs, and that Snakemake fills in for no job.

    Snakemake fills in a command three times a job, unless it is false.
    """

    def __bool__(self) -> bool:
        return False


def spare(rules: Iterable[Any], printing: bool) -> None:
    """Takes groups from all rules and, where a message stands for the job, also resources and the command's text.

    Which jobs have to run stays the same: no group or resource decides that, and changed commands are still found.

    Args:
        rules: Snakemake's.
        printing: whether the run prints commands (``-p``), for which it fills in resources too, or other rules may use
            these.
    """
    for rule in rules:
        rule.group = None
        if rule.message and rule.shellcmd and not printing:
            rule.shellcmd = Unprinted(rule.shellcmd)
            rule.resources = type(rule.resources)({name: rule.resources[name] for name in ("_cores", "_nodes")})
