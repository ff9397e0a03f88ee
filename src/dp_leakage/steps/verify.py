"""Reads every file of a study to its last byte and compares it with the digest that it holds."""

from pathlib import Path

from dp_leakage.steps import Json, log, run
from dp_leakage.study.verify import check_content


def main(settings: Json, folder: Path) -> None:
    """Raises UserError, which names the files that are damaged."""
    files = [Path(path) for path in sorted(folder.rglob("*")) if path.is_file()]
    own = [path for path in files if not path.name.startswith(".") and "benchmarks" not in path.parts]
    log.info("%s: %d files are whole", folder, check_content(own))


if __name__ == "__main__":
    run(main, "folder")
