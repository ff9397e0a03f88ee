"""Where the workflow lies: linked into the package in a clone, within it in an installed wheel."""

from pathlib import Path

from dp_leakage.common.errors import UserError, nearest

SNAKEFILE = (Path(__file__).resolve().parents[1] / "repository" / "Snakefile").resolve()
REPOSITORY = SNAKEFILE.parent  # also of config.yaml, envs, profiles and workflow
STUDIES = REPOSITORY / "workflow" / "studies"
SCHEMAS = REPOSITORY / "workflow" / "schemas"
PROFILES = REPOSITORY / "profiles"


def profile_folder(name: str) -> Path:
    """Return where a workflow profile of this name or path lies: here, in ``profiles`` here, or in the package's.

    Raises:
        UserError: nowhere, where Snakemake would run without any profile.
    """
    for path in (Path(name), Path("profiles", name), PROFILES / name):
        if name == "none" or path.is_file() or any(path.glob("config*.yaml")):
            return path
    known = {file.parent.name for folder in (PROFILES, Path("profiles")) for file in folder.glob("*/config.yaml")}
    raise UserError(
        f"there is no workflow profile {name!r}; {nearest(Path(name).name, known)}, or a folder with a config.yaml"
    )
