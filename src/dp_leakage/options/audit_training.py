"""Options of `dp_leakage.audit_training`."""

from dp_leakage.common.arguments import Parser, number, whole

MOST_COINS = 10**6  # the most coins in all; a bound from more takes minutes
WHAT = """Test the claimed ε of your training function by calls with and without canaries.

The function gets records (float32), labels (int64) and a seed, and returns another function: records to probabilities
or logits. It must not divide by the number of records that it gets. Exit status: 0 not refuted, 3 refuted, 2
an error."""


def parser() -> Parser:
    """Return the parser of its command line."""
    options = Parser(prog="dp-leakage audit", description=WHAT)
    options.add_argument("--train", required=True, help="module:function, such as my_module:train in this folder")
    options.add_argument(
        "--epsilon", type=number(1e-6, 1e4), required=True, help="the claimed ε, for one record added or removed"
    )
    options.add_argument("--delta", type=number(0, 0.999), default=1e-5, help="δ of the claim (default: 1e-5)")
    options.add_argument(
        "--models",
        type=whole(1, MOST_COINS),
        help="number of trainings; default: enough to find half the noise with 95 %% (from ε = 0.4 on)",
    )
    options.add_argument(
        "--canaries",
        type=whole(1, MOST_COINS),
        default=1,
        help="canaries in each training; with more than 1, a one-run audit",
    )
    options.add_argument(
        "--canary",
        choices=("mislabeled", "optimized", "blank", "feature"),
        default="optimized",
        help="the record that is in or out (default: optimized, the most noticeable)",
    )
    options.add_argument(
        "--claim",
        choices=("gaussian", "approximate"),
        help="Gaussian noise, as in DP-SGD (the default), or only (ε, δ)-DP, which takes many more models",
    )
    options.add_argument("--data", default="", help=".npz with x and y; the bundled digits if not given")
    options.add_argument(
        "--records", type=whole(2, 10**9), default=100, help="records in each training, with canaries (default: 100)"
    )
    options.add_argument("--seed", type=whole(0, 2**63 - 1), default=0, help="of coins and trainings (default: 0)")
    options.add_argument("--verdict", default="", help="file to write: not refuted, refuted or error")
    options.add_argument("--beyond-reach", action="store_true", help="run even if the audit cannot refute the claim")
    return options
