"""Where the workflow lies: linked into the package in a clone, within it in an installed wheel."""

from pathlib import Path

SNAKEFILE = (Path(__file__).resolve().parents[1] / "repository" / "Snakefile").resolve()
REPOSITORY = SNAKEFILE.parent  # also of config.yaml, envs, profiles and workflow
STUDIES = REPOSITORY / "workflow" / "studies"
SCHEMAS = REPOSITORY / "workflow" / "schemas"
