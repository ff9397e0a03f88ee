"""Options of `dp_leakage.release`: making and checking a release."""

from dp_leakage.common.arguments import Parser

WHAT = "Train once on all records, and write the folder of a model that you can give away."


def parser() -> Parser:
    """Return the parser for making a release."""
    options = Parser(prog="dp-leakage release", description=WHAT)
    options.add_argument("study", help="a study that `dp-leakage list` shows")
    options.add_argument(
        "cell", nargs="?", default="", help="model/defense, or dataset/model/defense; if not given, the study's own"
    )
    options.add_argument("--to", default="", help="where to: a folder that does not exist (default: releases/…)")
    options.add_argument("--keep", action="store_true", help="verify the folder, if it is there")
    # Same values and checks as the study's keys.
    options.add_argument(
        "--models", help="audit the training first, by this many twins with a canary (release.audit.models)"
    )
    options.add_argument("--canary", help="canary of the twins (release.audit.canary)")
    options.add_argument("--scale", help="paper, small or smoke (default: config.yaml's)")
    return options


def verifying() -> Parser:
    """Return the parser for checking a release."""
    options = Parser(
        prog="dp-leakage verify", description="Check the hashes, and compute again what the statement proves."
    )
    options.add_argument(
        "folder", metavar="FOLDER|STUDY", help="a release's folder, or a study: then every file of its results"
    )
    return options
