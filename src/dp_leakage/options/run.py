"""Options of `dp_leakage.commands.run`; all others are Snakemake's."""

from dp_leakage.common.arguments import Parser

RUN = """Run a study with Snakemake. What is finished stays; what a changed setting, input or line of code reaches is
made again. STUDY:FIGURE runs only what that figure shows, STUDY:verify compares every file with its checksum. All other
options are Snakemake's, such as -n, which lists what would run.

On a SLURM cluster: --on slurm, from the login node. It needs dp-leakage[slurm]. Where the cluster has no default
partition and account, copy the folder of the profile, which `dp-leakage doctor` names, to profiles/slurm here, and
write them into its config.yaml."""
DEMO = """Run the study quickstart on bundled digits, to results/quickstart/report.html. All other options are
Snakemake's."""


def parser() -> Parser:
    """Return the parser of ``run``, without the studies, which precede the options."""
    return _with_options(
        Parser(prog="dp-leakage run", usage="dp-leakage run STUDY[:FIGURE] … [options]", description=RUN)
    )


def demo() -> Parser:
    """Return the parser of ``demo``."""
    return _with_options(Parser(prog="dp-leakage demo", usage="dp-leakage demo [options]", description=DEMO))


def _with_options(options: Parser) -> Parser:
    options.add_argument(
        "--scale", choices=("paper", "small", "smoke"), help="size of the study (default: config.yaml's)"
    )
    options.add_argument("--device", choices=("auto", "cpu", "cuda"), help="where models train")
    options.add_argument(
        "--data-dir", metavar="FOLDER", help="where data sets are, or are downloaded to (default: data)"
    )
    options.add_argument("--only", metavar="DATASET", action="append", help="only this data set; may be repeated")
    options.add_argument(
        "--plugins", metavar="FOLDER", action="append", help="your own attacks, figures, …; may be repeated"
    )
    options.add_argument("--study-file", metavar="FILE", action="append", help="a study elsewhere than in studies")
    options.add_argument(
        "--set", metavar="KEY=VALUE", action="append", help="change the study: epsilon=[1,10], training.epochs=5"
    )
    options.add_argument(
        "--on", metavar="PROFILE", help="slurm, storage, or a folder with a config.yaml of Snakemake's"
    )
    options.add_argument("--directory", "-d", metavar="FOLDER", help="work there instead of in this folder")
    options.add_argument(
        "--config", metavar="KEY=VALUE", nargs="*", action="extend", default=[], help="keys of config.yaml"
    )
    return options
