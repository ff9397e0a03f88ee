"""``dp-leakage run`` and ``dp-leakage demo``: Snakemake on the package's own workflow, in the working folder."""

import os
import shutil
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from dp_leakage.commands.studies import figures_of, studies_here
from dp_leakage.common.errors import UserError, close, nearest
from dp_leakage.common.places import SNAKEFILE
from dp_leakage.options.run import parser

DEMO = "quickstart"
PARTS = ("audit", "release", "report", "verify")  # of a study's targets, beside its figures


def main(words: Sequence[str]) -> int:
    """Replace this process by Snakemake. UserError if a study, a figure or a key is not known."""
    os.execv(program := _snakemake(), [program, *command_line(words)])


def demo(words: Sequence[str]) -> int:
    """Run the study quickstart."""
    return main([DEMO, *words])


def command_line(words: Sequence[str]) -> list[str]:
    """Return what Snakemake is called with.

    Raises:
        UserError: no study is named, a study or figure is unknown, or a key of the config is given twice.
    """
    first = next((place for place, word in enumerate(words) if word.startswith("-")), len(words))
    options, others = parser().parse_known_args(words[first:])
    if not first:
        raise UserError("name a study before the options: dp-leakage run quickstart; `dp-leakage list` shows all")
    known = studies_here()
    targets = [target_of(word, known) for word in words[:first]]
    own = [f"{key}={value}" for key in ("scale", "device", "data_dir") if (value := getattr(options, key))]
    config = [*own, *options.config]
    keys = [pair.partition("=")[0] for pair in config]
    if twice := next((key for key in keys if keys.count(key) > 1), None):
        raise UserError(f"key {twice!r} is given twice on the command line; give it once")
    here = Path("Snakefile").resolve() == SNAKEFILE
    place = [] if here else ["--snakefile", str(SNAKEFILE)]
    return [*targets, *place, *(["--config", *config] if config else []), *others]


def target_of(word: str, known: dict[str, Path]) -> str:
    """Return Snakemake's name for STUDY, STUDY:FIGURE or a file of results. UserError if there is none."""
    study, _, part = word.partition(":")
    if "/" in word:
        return word
    if study not in known:
        raise UserError(f"no study is called {study!r}; {close(study, known)}`dp-leakage list` shows all")
    if not part:
        return study
    if part not in (parts := [*figures_of(known[study]), *PARTS]):
        raise UserError(f"study {study} has no figure {part!r}; {nearest(part, parts)}")
    return f"{study}_{part}"


def _snakemake() -> str:
    """Return the path of this environment's Snakemake. UserError if it has none."""
    script = Path(sysconfig.get_path("scripts"), "snakemake")
    found = str(script) if script.exists() else shutil.which("snakemake", path=Path(sys.executable).parent)
    if found is None:
        raise UserError(f"{script} is missing; install the package with its dependencies: pip install dp-leakage")
    return found
