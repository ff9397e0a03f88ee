"""Options of `dp_leakage.share`."""

from pathlib import Path

from dp_leakage.common.arguments import Parser

WHAT = "Copy what can be given away of a study's results: no seed, no record, no list of members."


def parser() -> Parser:
    """Return the parser of its command line."""
    options = Parser(prog="dp-leakage share", description=WHAT)
    options.add_argument("study", type=results_of, help="a study's name, or its folder, such as results/quickstart")
    options.add_argument("--to", type=Path, required=True, help="the copy: a folder that does not exist yet")
    options.add_argument(
        "--undefended",
        action="store_true",
        help="also the parameters of models without differential privacy, or with an ε above the study's share.epsilon",
    )
    return options


def results_of(study: str) -> Path:
    """Return the folder of a study's results, of its name or of the folder itself."""
    return Path(study) if "/" in study else Path("results", study)
