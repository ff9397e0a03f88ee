"""Options of `dp_leakage.new_study`."""

from pathlib import Path

from dp_leakage.common.arguments import Parser

WHAT = """Write a study of your own data to studies/NAME.yaml: models with and without privacy, and attacks.
`dp-leakage run NAME --scale smoke` then takes a first look, and `dp-leakage run NAME` makes the
report."""


def parser() -> Parser:
    """Return the parser of its command line."""
    options = Parser(prog="dp-leakage new", description=WHAT)
    options.add_argument("name", help="name of the study: lowercase letters, digits and _")
    options.add_argument("--data", required=True, help=".csv, .tsv, .parquet, .npz, a folder of images or a zip of one")
    options.add_argument("--label", default="", help="column of a table that holds the class")
    options.add_argument("--sensitive", default="", help="columns that attribute inference guesses: a,b")
    options.add_argument("--categorical", default="", help="columns of numbers that are categories")
    options.add_argument("--drop", default="", help="columns to leave out")
    options.add_argument("--key", default="", help="column of a table by which the report names records")
    options.add_argument(
        "--person", default="", help="column that says whose each record is: then people are protected"
    )
    options.add_argument("--leave-out", default="", help="folders of images to leave out: a,b")
    options.add_argument("--skip-damaged", action="store_true", help="skip images that cannot be read, and count them")
    options.add_argument("--missing", default="", help="impute fills missing values; otherwise they are refused")
    options.add_argument("--size", default="", help="height x width to which images are resized: 32x32")
    options.add_argument(
        "--seed", default="", help="of all that the study draws; without it, one that nobody can guess"
    )
    options.add_argument("--folder", type=Path, default=Path("studies"), help="where to write (default: studies)")
    return options
