"""Options of `dp_leakage.release`: what makes a release, and what checks one."""

from dp_leakage.common.arguments import Parser

WHAT = "Train once on all records, and write the folder of a model that you can give away."


def parser() -> Parser:
    """Return the parser of what makes a release."""
    options = Parser(prog="dp-leakage release", description=WHAT)
    options.add_argument("study", help="a study of workflow/studies or studies")
    options.add_argument(
        "cell", nargs="?", default="", help="model/defense, or dataset/model/defense; if not given, the study's own"
    )
    options.add_argument("--to", default="", help="where to: a folder that does not exist (default: releases/…)")
    options.add_argument("--keep", action="store_true", help="verify the folder, if it is there")
    # Their values are those of the study's keys, and checked as these are.
    options.add_argument(
        "--models", help="train so many twins with a canary, to audit the training: release.audit.models"
    )
    options.add_argument("--canary", help="of the twins: release.audit.canary")
    options.add_argument("--scale", help="of the study, if not config.yaml's")
    return options


def verifying() -> Parser:
    """Return the parser of what checks a release."""
    options = Parser(
        prog="dp-leakage verify", description="Check the hashes, and compute again what the statement proves."
    )
    options.add_argument("folder", help="of a release")
    return options
