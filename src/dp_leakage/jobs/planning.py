"""What Snakemake works out again and again while it plans, worked out once.

A fifth of the time of ``snakemake -n`` on thousands of jobs goes into what never changes. All this is about speed
alone: where a version of Snakemake has other insides, it plans as it does by itself.
"""

import inspect
from contextlib import suppress
from functools import lru_cache
from typing import Any


def plan_faster(workflow: Any) -> None:
    """Call it once all rules are defined.

    - Groups are for clusters; a run on this machine does not use them, yet each job is looked up in them, and a dry run
      lists jobs by them.
    - Each function of a rule is asked for its signature a few times per job.
    - A dry run spells out each job's command three times.
    """
    with suppress(AttributeError, ImportError):
        if workflow.local_exec:
            for rule in workflow.rules:
                rule.group = None
        _state_signatures(workflow.rules)
        _spell_once()


def _state_signatures(rules: Any) -> None:
    from snakemake.resources import Resource

    functions = {Resource.evaluate}
    for rule in rules:
        for item in (*rule.input, *rule.params, *rule.resources.values()):
            item = getattr(getattr(item, "_file", item), "callable", item)
            functions.add(getattr(item, "_evaluator", item))
    for function in functions:
        if inspect.isfunction(function):
            function.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]


def _spell_once() -> None:
    from snakemake.jobs import Job

    # The last one is enough, and no later state of a job is answered with an earlier one's words for long.
    Job.shellcmd = property(lru_cache(maxsize=1)(Job.shellcmd.fget))
