"""Location of the workflow: linked into the package in a clone, inside the package in an installed wheel."""

from contextlib import suppress
from pathlib import Path

from dp_leakage.common.errors import UserError, nearest

SNAKEFILE = (Path(__file__).resolve().parents[1] / "repository" / "Snakefile").resolve()
REPOSITORY = SNAKEFILE.parent  # also of config.yaml, envs, profiles and workflow
STUDIES = REPOSITORY / "workflow" / "studies"
PROFILES = REPOSITORY / "profiles"


def placeless(path: Path) -> Path:
    """Return a file's path relative to the repository or the working folder if the file lies in one of them; see
    `located`.

    Files of the workflow then have the same name in a clone, in an installed wheel, and from every folder.
    """
    for folder in (REPOSITORY, Path.cwd()):
        if path.resolve().is_relative_to(folder):
            return path.resolve().relative_to(folder)
    return path


def located(path: Path) -> Path:
    """Resolve a path of `placeless`: in the working folder if the file exists there, else in the repository."""
    return path if path.exists() else REPOSITORY / path


def profile_folder(name: str) -> Path:
    """Return the folder of a workflow profile: here, in ``profiles`` here, or in the package's profiles.

    Raises:
        UserError: the profile does not exist. Snakemake would run without any profile.
    """
    for path in (Path(name), Path("profiles", name), PROFILES / name):
        if name == "none" or path.is_file() or any(path.glob("config*.yaml")):
            return path
    known = {file.parent.name for folder in (PROFILES, Path("profiles")) for file in folder.glob("*/config.yaml")}
    raise UserError(
        f"there is no workflow profile {name!r}; {nearest(Path(name).name, known)}, or a folder with a config.yaml"
    )


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
