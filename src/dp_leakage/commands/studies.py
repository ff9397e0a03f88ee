"""Studies available to a run here, by file names alone: reading all of them would take a second."""

import re
from collections.abc import Iterable
from pathlib import Path

from dp_leakage.common.errors import UserError
from dp_leakage.common.places import STUDIES


def studies_here(files: Iterable[str] = ()) -> dict[str, Path]:
    """Return name → file, of the package's studies, of those in the folder ``studies``, and of further files."""
    return studies_in(STUDIES) | studies_in(Path("studies")) | {_name_in(Path(file)): Path(file) for file in files}


def studies_in(folder: Path) -> dict[str, Path]:
    """Return name → file, of a folder's studies."""
    return {_name_in(path): path for path in sorted([*folder.glob("*.yaml"), *folder.glob("*/study.yaml")])}


def line_of(path: Path, key: str) -> str:
    """Return a one-line text at the top level of a study file, or ""."""
    try:
        line = re.search(rf"^{key}: *(.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    except (OSError, ValueError):
        return ""
    return line.group(1).strip().strip("'\"") if line else ""


def figures_of(path: Path) -> list[str]:
    """Return the names of a study's figures; none if the file cannot be read.

    They are the keys below ``figures:``, a line each; a file that writes them otherwise is read as YAML.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return []
    block = re.search(r"^figures: *\n((?: +.*\n|\n|#.*\n)+)", f"{text}\n", re.MULTILINE)
    indent = re.match(r"(?:\s*#.*\n|\n)*( +)", block[1]) if block else None
    keys = re.findall(rf"^{indent[1]}([^ #].*?) *:", block[1], re.MULTILINE) if block and indent else []
    if keys and all(re.fullmatch(r"[a-z]\w*", key) for key in keys):
        return keys
    from dp_leakage.common.yaml_files import read_yaml  # half of what completion costs

    try:
        figures = read_yaml(path).get("figures")
    except UserError:
        return []
    return list(figures) if isinstance(figures, dict) else []


def _name_in(path: Path) -> str:
    return line_of(path, "study") or path.stem
