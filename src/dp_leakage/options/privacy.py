"""Options of `dp_leakage.privacy`."""

import argparse
import re

from dp_leakage.common.arguments import Parser, number, share, whole

WHAT = "Find the noise for an ε or a risk, and the ε or the risk of a noise."
USUAL = "Without further options batches are Poisson samples, as in Opacus"
SIGMA = f"""Print the smallest noise multiplier σ for an ε (--epsilon), or for a limit on any attack (--advantage, --tpr
or --precision). {USUAL}, and the accountant is the one that proves most."""
EPSILON = f"""Print the ε that a noise multiplier proves. {USUAL}, and the accountant is the one that proves most."""
RISK = f"""Print what no attack can exceed under a noise multiplier: advantage (true minus false positive rate), TPR at
1 % and 0.1 % FPR, and the μ of Gaussian privacy. {USUAL}."""
SELECT = """Print the ε of training a random number of times and releasing the best model alone. With --grid, draw what
to train."""
# Copies of the accountants' declarations, since importing them would take half a second.
SAMPLERS = ("shuffle", "poisson", "wor", "cyclic", "balls_in_bins", "cyclic_poisson", "class_poisson")
NEIGHBORS = ("add_remove", "zero_out", "replace_one")
CONVERSIONS = ("tight", "classic")
ACCOUNTANTS = (
    *("naive", "advanced", "zcdp", "gdp", "rdp", "pld", "class_moments", "theorem1"),
    *("banded_gdp", "banded_pld", "blt_gdp", "tree_gdp", "vmf_pure", "vmf_rdp", "vmf_pld", "per_step"),
)
SHAPES = ("logarithmic", "geometric", "poisson")
# Ranges with a meaningful answer within seconds.
BUDGETS = (1e-5, 1e6)
NOISES = (1e-8, 1e15)
MOST_EPOCHS, MOST_RECORDS, MOST_BLOCKS, MOST_RUNS = 10**9, 10**12, 10**6, 10**5
BLOCK = re.compile(r"[1-9][0-9]{0,9}", re.ASCII)


def parser() -> Parser:
    """Return the parser of its command line."""
    schedule, records = Parser(add_help=False), whole(1, MOST_RECORDS)
    schedule.add_argument("--delta", type=share, default=1e-5, help="δ of (ε, δ) (default: 1e-5)")
    schedule.add_argument("--epochs", type=whole(1, MOST_EPOCHS), required=True, help="passes over the data")
    schedule.add_argument("--batch-size", type=records, required=True, help="records (or classes) per batch")
    schedule.add_argument("--dataset-size", type=records, required=True, help="records (or classes) in all")
    training = Parser(add_help=False, parents=[schedule])
    training.add_argument("--sampler", choices=SAMPLERS, help="how batches are drawn (default: poisson, as in Opacus)")
    training.add_argument(
        "--neighbors", choices=NEIGHBORS, help="neighbors of the guarantee (default: the accountant's)"
    )
    training.add_argument(
        "--conversion", choices=CONVERSIONS, default="tight", help="of Rényi divergences to ε (default: tight)"
    )
    training.add_argument(
        "--blocks",
        type=_blocks,
        default=(),
        help="directional noise: dimensions of a unit's vectors, such as 61706 or 120x401,10x85",
    )
    training.add_argument(
        "--bands", type=whole(1, MOST_RECORDS), default=1, help="number of bands of the noise, for cyclic_poisson"
    )
    training.add_argument("--accountant", choices=ACCOUNTANTS, help="default: the one that proves most")
    training.add_argument("--all", action="store_true", help="every accountant and sampler, a line each")
    training.add_argument("--summed", action="store_true", help="directional noise on the summed gradient")

    options = Parser(
        prog="dp-leakage",
        description=WHAT,
    )
    commands = options.add_subparsers(required=True, metavar="sigma|epsilon|risk|select")
    sigma = commands.add_parser(
        "sigma", parents=[training], description=SIGMA, help="the least noise for a budget or a risk"
    )
    budget = sigma.add_mutually_exclusive_group(required=True)
    budget.add_argument("--epsilon", type=number(*BUDGETS), help="the ε to keep")
    budget.add_argument("--advantage", type=share, help="limit for any attack: true minus false positive rate")
    budget.add_argument("--tpr", type=share, help="limit for any attack's true positive rate at --fpr")
    budget.add_argument("--precision", type=share, help="limit for any attack at --fpr (0.001), if --prior are members")
    sigma.add_argument("--fpr", type=share, help="false positive rate, for --tpr and --precision")
    sigma.add_argument("--prior", type=share, help="share of members among the people tested, for --precision")
    sigma.set_defaults(answer="sigma", noise_multiplier=None, kappa=None)
    for answer, words, what in (
        ("epsilon", "the budget that a noise spends", EPSILON),
        ("risk", "what a noise proves of any attack", RISK),
    ):
        command = commands.add_parser(answer, parents=[training], help=words, description=what)
        noise = command.add_mutually_exclusive_group(required=True)
        noise.add_argument("--noise-multiplier", type=number(*NOISES), help="Gaussian σ relative to the clipping norm")
        noise.add_argument("--kappa", type=number(*NOISES), help="concentration of directional noise; needs --blocks")
        command.set_defaults(answer=answer, epsilon=None)
        if answer == "risk":
            command.add_argument(
                "--guess",
                type=number(0, 1),
                help="success probability of a guess without the model, such as .01 for one of 100 candidates: adds "
                "the largest chance with it, even for somebody who knows all other records",
            )
    select = commands.add_parser(
        "select", parents=[schedule], help="what releasing the best of several runs spends", description=SELECT
    )
    select.add_argument(
        "--noise-multiplier", type=number(*NOISES), required=True, help="Gaussian σ of each run, Poisson batches"
    )
    select.add_argument("--mean", type=number(1, MOST_RUNS), required=True, help="number of runs, on average")
    select.add_argument("--runs", choices=SHAPES, default="geometric", help="how their number is drawn")
    select.add_argument("--grid", type=whole(1, 10**9), help="number of declared settings; draws which to train")
    select.add_argument(
        "--seed", type=whole(0, 2**64 - 1), default=None, help="secret seed of that draw; default: random"
    )
    select.set_defaults(answer="select", epsilon=None, kappa=None)
    return options


def sigma() -> Parser:
    """Return the parser of ``sigma``."""
    return _command("sigma")


def epsilon() -> Parser:
    """Return the parser of ``epsilon``."""
    return _command("epsilon")


def risk() -> Parser:
    """Return the parser of ``risk``."""
    return _command("risk")


def select() -> Parser:
    """Return the parser of ``select``."""
    return _command("select")


def _command(answer: str) -> Parser:
    (commands,) = [action for action in parser()._actions if isinstance(action, argparse._SubParsersAction)]
    found: Parser = commands.choices[answer]
    return found


def _blocks(text: str) -> tuple[int, ...]:
    """Parse ``120x401,10x85`` as 120 times 401 and 10 times 85; ``61706`` as once."""
    blocks: list[int] = []
    for part in text.split(","):
        count, times, dimension = part.rpartition("x")
        numbers = [count, dimension] if times else ["1", dimension]
        if not all(BLOCK.fullmatch(one) for one in numbers) or int(dimension) < 2:
            raise argparse.ArgumentTypeError(
                f"{text[:50]!r} is not valid; write dimensions of at least 2, such as 61706 or 120x401,10x85"
            )
        if len(blocks) + int(numbers[0]) > MOST_BLOCKS:
            raise argparse.ArgumentTypeError(f"{text[:50]!r} has more than {MOST_BLOCKS:,} blocks")
        blocks += [int(dimension)] * int(numbers[0])
    return tuple(blocks)
