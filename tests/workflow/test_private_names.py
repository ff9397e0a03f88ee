"""What this package uses of Snakemake beyond its documentation, and the version in which it was looked at."""

import re
import sys
from importlib.metadata import version
from pathlib import Path

from snakemake_interface_executor_plugins.workflow import WorkflowExecutorInterface

REPO = Path(__file__).parents[2]
sys.path.append(str(REPO / "benchmarks"))

from house import INTERFACE, private_names  # noqa: E402

LOOKED_AT = "9.27.1"
NAMES = {
    "snakemake.cli.get_argument_parser",  # study/targets.py
    "workflow.rules",  # Snakefile
    "workflow.storage_settings.default_storage_provider",  # common.smk
}


def test_the_pinned_snakemake_is_the_one_whose_private_parts_were_looked_at():
    (pinned,) = re.findall(r"^snakemake==(\S+)", (REPO / "envs" / "constraints.txt").read_text(), re.MULTILINE)
    assert pinned == LOOKED_AT
    assert version("snakemake") == LOOKED_AT


def test_no_private_part_of_snakemake_came_to_these():
    assert private_names() == NAMES


def test_what_counts_as_promised_is_in_the_interface_of_plugins():
    assert all(isinstance(getattr(WorkflowExecutorInterface, name), property) for name in INTERFACE)
