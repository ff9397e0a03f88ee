"""Where the workflow lies: linked into the package in a clone, within it in an installed wheel."""

from contextlib import suppress
from pathlib import Path

SNAKEFILE = (Path(__file__).resolve().parents[1] / "repository" / "Snakefile").resolve()
REPOSITORY = SNAKEFILE.parent  # also of config.yaml, envs, profiles and workflow
STUDIES = REPOSITORY / "workflow" / "studies"
SCHEMAS = REPOSITORY / "workflow" / "schemas"


def link_code(folder: Path) -> Path:
    """Make a folder that holds nothing but a link to this package, for PYTHONPATH, and return its absolute path.

    The folder around the package may hold other packages, which are not meant for another environment.

    Args:
        folder: an existing or new folder; the new one is called ``dp_leakage_code`` there.
    """
    place, package = folder.absolute() / "dp_leakage_code", Path(__file__).resolve().parents[1]
    link = place / package.name
    place.mkdir(parents=True, exist_ok=True)
    if not (link.is_symlink() and link.resolve() == package):
        link.unlink(missing_ok=True)
        with suppress(FileExistsError):  # another run in this folder made it
            link.symlink_to(package)
    return place
