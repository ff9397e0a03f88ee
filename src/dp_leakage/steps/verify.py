"""Read every file of a study completely and compare it with its embedded digest."""

from pathlib import Path

from dp_leakage.steps import Json, log, run
from dp_leakage.study.verify import check_content


def main(settings: Json, files: list[Path]) -> None:
    """Raise UserError, which names the files that are damaged."""
    log.info("%s files are whole, as their digests say", f"{check_content(files):,}")


if __name__ == "__main__":
    run(main, lists=("files",))
