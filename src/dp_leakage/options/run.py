"""Options of `dp_leakage.commands.run`; all others are Snakemake's."""

from dp_leakage.common.arguments import Parser

WHAT = """Run a study with Snakemake. What is finished stays; what a changed setting, input or line of code reaches is
made again. STUDY:FIGURE runs what that figure shows. All other options are Snakemake's."""


def parser(prog: str = "dp-leakage run") -> Parser:
    """Return the parser of its command line, without the studies, which stand before the options."""
    options = Parser(prog=prog, usage=f"{prog} STUDY[:FIGURE] … [options]", description=WHAT)
    options.add_argument("--scale", help="paper, small or smoke: of the study, if not config.yaml's")
    options.add_argument("--device", help="auto, cpu or cuda: where models train")
    options.add_argument("--data-dir", help="where data sets are, or are downloaded to")
    options.add_argument(
        "--config", nargs="*", action="extend", default=[], help="further keys of config.yaml: KEY=VALUE"
    )
    return options
