"""``dp-leakage run`` and ``dp-leakage demo``: Snakemake on the package's own workflow, in the working folder."""

import argparse
import json
import os
import re
import shutil
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

from dp_leakage.commands.studies import figures_of, studies_here
from dp_leakage.common.errors import UserError, close, nearest
from dp_leakage.common.places import SNAKEFILE, profile_folder
from dp_leakage.options import run as options_of

DEMO = "quickstart"
PARTS = ("audit", "release", "report", "verify")  # of a study's targets, beside its figures
LISTED = {"only": "only_datasets", "plugins": "plugins", "study_file": "study_files"}  # options → keys of config.yaml
BUILT_IN = ("local", "dryrun", "touch")  # executors of Snakemake itself
# Options of Snakemake's plugins begin with the kind or the name of the plugin.
OF_PLUGINS = (
    "--slurm",
    "--storage",
    "--logger",
    "--report",
    "--scheduler",
    "--aws",
    "--kubernetes",
    "--drmaa",
    "--lsf",
)


def main(words: Sequence[str]) -> int:
    """Replace this process by Snakemake. UserError for an unknown study, figure or key."""
    first = next((place for place, word in enumerate(words) if word.startswith("-")), len(words))
    options, others = options_of.parser().parse_known_args(words[first:])
    if not first:
        raise UserError("name a study before the options: dp-leakage run quickstart; `dp-leakage list` shows all")
    return _replaced(words[:first], options, others)


def demo(words: Sequence[str]) -> int:
    """Run the study quickstart."""
    options, others = options_of.demo().parse_known_args(words)
    return _replaced([DEMO], options, others)


def _replaced(studies: Sequence[str], options: argparse.Namespace, others: Sequence[str]) -> int:
    check_passed_on(others)
    if options.directory is not None:  # before studies are looked for: Snakemake's own option changes it later
        if not Path(options.directory).is_dir():
            raise UserError(f"--directory {options.directory} must be a folder; make it first")
        os.chdir(options.directory)
    command = command_line(studies, options, others)
    os.execv(program := _snakemake(), [program, *command])


def command_line(studies: Sequence[str], options: argparse.Namespace, others: Sequence[str]) -> list[str]:
    """Return Snakemake's command line.

    Args:
        studies: STUDY, STUDY:FIGURE, or files of results.
        options: of `dp_leakage.options.run`.
        others: options and values that are Snakemake's.

    Raises:
        UserError: a study, figure or profile is unknown, or a key of the config is given twice.
    """
    known = studies_here(options.study_file or [])
    targets = [target_of(word, known) for word in studies]
    config = _config(options, {word.partition(":")[0] for word in studies})
    here = Path("Snakefile").resolve() == SNAKEFILE
    place = [] if here else ["--snakefile", str(SNAKEFILE)]
    profile = ["--workflow-profile", str(_checked(profile_folder(options.on)))] if options.on else []
    return [*targets, *place, *profile, *(["--config", *config] if config else []), *others]


def _checked(profile: Path) -> Path:
    """Return a profile whose executor is installed; UserError otherwise, where Snakemake shows all its options."""
    text = "\n".join(file.read_text(encoding="utf-8") for file in profile.glob("config*.yaml"))
    executor = re.search(r"^executor: *([a-z0-9-]+)", text, re.MULTILINE)
    if executor and executor[1] not in BUILT_IN:
        package = f"snakemake-executor-plugin-{executor[1]}"
        if find_spec(package.replace("-", "_")) is None:
            extra = "'dp-leakage[slurm]'" if executor[1] == "slurm" else package
            raise UserError(f"profile {profile.name} needs the package {package}; pip install {extra}")
    return profile


def _config(options: argparse.Namespace, studies: set[str]) -> list[str]:
    """Return the pairs for one ``--config`` of Snakemake, which uses only the last if there are several."""
    pairs = [f"{key}={value}" for key in ("scale", "device", "data_dir") if (value := getattr(options, key))]
    pairs += [f"{key}={json.dumps(value)}" for name, key in LISTED.items() if (value := getattr(options, name))]
    if options.set:
        if len(studies) != 1:
            raise UserError("--set changes one study; run one at a time, or write overrides into config.yaml")
        pairs.append(f"overrides={json.dumps({studies.pop(): _changes(options.set)})}")
    pairs += options.config
    keys = [pair.partition("=")[0] for pair in pairs]
    if twice := next((key for key in keys if keys.count(key) > 1), None):
        raise UserError(f"key {twice!r} is given twice on the command line; give it once")
    return pairs


def _changes(settings: Iterable[str]) -> dict[str, object]:
    """Return the changes of ``--set KEY=VALUE`` as nested keys."""
    from dp_leakage.common.config import merged
    from dp_leakage.common.yaml_files import parse

    changes: dict[str, object] = {}
    for setting in settings:
        key, _, text = setting.partition("=")
        if not all(key.split(".")) or not text:
            raise UserError(f"--set {setting!r} must be KEY=VALUE, such as --set repeats=5 or --set epsilon=[1,10]")
        value = parse(text, f"--set {key}")
        for part in reversed(key.split(".")):
            value = {part: value}
        changes = merged(changes, value)
    return changes


def target_of(word: str, known: dict[str, Path]) -> str:
    """Return Snakemake's name for STUDY, STUDY:FIGURE or a file of results. Raises UserError for an unknown name."""
    study, colon, part = word.partition(":")
    if "/" in word:
        return word
    if study not in known:
        raise UserError(f"no study is called {study!r}; {close(study, known)}`dp-leakage list` shows all")
    if not colon:
        return study
    if part not in (parts := [*figures_of(known[study]), *PARTS]):
        raise UserError(f"study {study} has no figure {part!r}; {nearest(part, parts)}")
    return f"{study}_{part}"


def check_passed_on(words: Iterable[str]) -> None:
    """Refuse misspelled options of this command or of Snakemake, and missing profiles.

    Snakemake ignores a missing profile. An unknown option without a similar name may belong to a Snakemake plugin.
    """
    words = [*words, ""]
    known = {*snakemake_options(), *options_of.parser()._option_string_actions}
    for word, value in pairwise(words):
        name, equals, joined = word.partition("=")
        if name == "--workflow-profile":
            profile_folder(joined if equals else value)
        if not name.startswith("--") or name in ("--", *known) or name.startswith(OF_PLUGINS):
            continue
        if hint := close(name, known, 0.85):
            raise UserError(f"unknown option {name}; {hint}`dp-leakage run --help` and `snakemake --help` show all")


def snakemake_options() -> list[str]:
    """Return the names of Snakemake's options, from its source text: importing its parser takes most of a second."""
    found = find_spec("snakemake")
    file = Path(found.origin).with_name("cli.py") if found and found.origin else None
    text = file.read_text(encoding="utf-8") if file and file.exists() else ""
    return re.findall(r'"(--[a-z][a-z0-9-]+)"', text)


def _snakemake() -> str:
    """Return the path of this environment's Snakemake. Raises UserError if it is not installed."""
    script = Path(sysconfig.get_path("scripts"), "snakemake")
    found = str(script) if script.exists() else shutil.which("snakemake", path=Path(sys.executable).parent)
    if found is None:
        raise UserError(f"{script} is missing; install the package with its dependencies: pip install dp-leakage")
    return found
