"""The studies that a run here would find, by their files alone: reading all of them would take a second."""

import re
from pathlib import Path

from dp_leakage.common.places import STUDIES


def studies_here() -> dict[str, Path]:
    """Return name → file, of the package's studies and of those in the folder ``studies``."""
    files = [path for folder in (STUDIES, Path("studies")) for path in sorted(_files(folder))]
    return {line_of(path, "study") or path.stem: path for path in files}


def line_of(path: Path, key: str) -> str:
    """Return a text at the top level of a study file; "" if there is none on one line."""
    try:
        line = re.search(rf"^{key}: *(.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    except (OSError, ValueError):
        return ""
    return line.group(1).strip().strip("'\"") if line else ""


def figures_of(path: Path) -> list[str]:
    """Return the names of a study's figures; none if the file cannot be read."""
    from dp_leakage.common.errors import UserError
    from dp_leakage.common.yaml_files import read_yaml

    try:
        figures = read_yaml(path).get("figures")
    except UserError:
        return []
    return list(figures) if isinstance(figures, dict) else []


def _files(folder: Path) -> list[Path]:
    return [*folder.glob("*.yaml"), *folder.glob("*/study.yaml")]
