"""What this package uses of Snakemake beyond its documentation, and the version in which it was looked at."""

import re
import sys
from importlib.metadata import version
from pathlib import Path

REPO = Path(__file__).parents[2]
sys.path.append(str(REPO / "benchmarks"))

from house import private_names  # noqa: E402

LOOKED_AT = "9.27.1"
MODULES = {  # what files other than the workflow's import: the command line, and what a failed submission leaves
    "snakemake.cli.get_argument_parser",
    "snakemake.cli.main",
    "snakemake.io.is_flagged",
    "snakemake.jobs.Job",
}


def test_the_pinned_snakemake_is_the_one_whose_private_parts_were_looked_at():
    (pinned,) = re.findall(r"^snakemake==(\S+)", (REPO / "envs" / "constraints.txt").read_text(), re.MULTILINE)
    assert pinned == LOOKED_AT
    assert version("snakemake") == LOOKED_AT


def test_no_private_part_of_snakemake_came_to_these():
    names = private_names()
    assert {name for name in names if name.startswith("snakemake")} == MODULES
    assert {name.removeprefix("workflow.") for name in names - MODULES} == {
        *("_onstart", "_onsuccess", "_onerror"),
        *("current_basedir.join", "is_main_process", "modifier.is_main_snakefile", "modifier.modify_rulename"),
        *("rules", "is_rule", "get_rule", "touch", "local_exec"),
        *("deployment_settings.deployment_method", "storage_settings.default_storage_provider"),
    }
