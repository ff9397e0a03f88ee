"""Options of `dp_leakage.audit_model`."""

from pathlib import Path

from dp_leakage.common.arguments import Parser

WHAT = "Write a study that attacks a model that you have trained to studies/NAME.yaml."


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
