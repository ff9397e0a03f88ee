"""Options of `dp_leakage.audit_model`."""

from pathlib import Path

from dp_leakage.common.arguments import Parser

WHAT = """Write a study that attacks a model that you have trained to studies/NAME.yaml; `dp-leakage run NAME` makes its
report.

Outputs are a table with a line for each record: label; member, 1 if the model was trained on it and 0 if not; and
probability_CLASS or score_CLASS (logits) of every class, or loss (cross-entropy), or margin (ln p/(1 - p) of the
label). With references also record, its name. An .npz has arrays label, member, record, and probability or score
(records, classes), loss or margin.

In place of outputs: --model, --data and --members, for a model that is asked here."""


def parser() -> Parser:
    """Return the parser of its command line."""
    options = Parser(prog="dp-leakage attack", description=WHAT)
    options.add_argument("name", help="name of the study: lowercase letters, digits and _")
    options.add_argument("--outputs", default="", help="the model's outputs: .csv, .tsv, .parquet or .npz")
    options.add_argument("--references", default="", help="outputs of reference models, for the same records")
    options.add_argument("--shadows", default="", help="outputs of shadow models, trained on some of the non-members")
    options.add_argument("--model", default="", help="an .onnx file, or module:Class of a torch.nn.Module")
    options.add_argument("--weights", default="", help="weights of a module: .safetensors, or a state dict (.pt)")
    options.add_argument("--draws", default="", help="how many answers of a module with random outputs to average")
    options.add_argument("--data", default="", help="the records as the model takes them: a table, .npz or images")
    options.add_argument("--label", default="", help="column of a table that holds the class")
    options.add_argument("--key", default="", help="column of a table that names the records")
    options.add_argument("--drop", default="", help="columns of a table that the model does not take")
    options.add_argument("--categorical", default="", help="columns of numbers that are categories")
    options.add_argument("--missing", default="", help="impute fills missing values; otherwise they are refused")
    options.add_argument(
        "--members", default="", help="training records: a column or array of 1 and 0, or a file that lists them"
    )
    for role in ("reference", "shadow"):
        options.add_argument(
            f"--{role}-model", default="", help=f"architecture of {role} models to train: mlp, or module:Class"
        )
    options.add_argument("--folder", type=Path, default=Path("studies"), help="where to write (default: studies)")
    return options
