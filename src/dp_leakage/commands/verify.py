"""``dp-leakage verify``: check a release's folder, or every file of a study."""

from collections.abc import Sequence
from pathlib import Path

from dp_leakage.commands.run import main as run
from dp_leakage.options.release import verifying


def main(words: Sequence[str]) -> int:
    """Run the check; return its exit status."""
    name, *others = words or [""]
    if name and not name.startswith("-") and "/" not in name and not Path(name).is_dir():
        return run([f"{name}:verify", *others])
    from dp_leakage.release.command import check

    return check([verifying().parse_args(words).folder])
