"""Model card of a release: inputs, outputs, accuracy, and protection."""

import json

from dp_leakage.common.config import Json
from dp_leakage.release.folder import CARD, MODEL, PRIVACY, SHEET, WEIGHTS
from dp_leakage.release.network import RECORD
from dp_leakage.release.sheet import page, records_in_words, sheet_of
from dp_leakage.release.statement import in_words, spent_in_words

NO_FILL = "Where that is null, the answer to a missing number is NaN."


def pages(statement: Json) -> dict[str, bytes]:
    """Return the files that describe a statement in words, name → content."""
    return {CARD: card(statement).encode(), SHEET: page(sheet_of(statement)).encode()}


def card(statement: Json) -> str:
    """Return the model card as Markdown, from the statement alone. The user's names are in JSON blocks, where markup
    has no effect.
    """
    model = statement["model"]
    parts = [
        "# Model card",
        f"A classifier of {len(model['classes'])} classes, trained once on "
        f"{records_in_words(statement['mechanism'])} with differential privacy: "
        f"{spent_in_words(statement)}, for {in_words(statement)}. "
        f"{SHEET} says what that means, and {PRIVACY} has every number.",
        "## What goes in and what comes out",
        _input(model),
        "One output, `probability`: a float32 for each record and class, in this order:",
        _block(model["classes"]),
        "## How to ask it",
        _example(model),
        f"`{WEIGHTS}` holds the same parameters without the preprocessing.",
        "## How good it is",
        _accuracy(model) + _of_the_study(statement["measured"]),
        "## How it was trained",
        _block({"architecture": model["architecture"], "training": model["training"]}),
        "## What ε does not cover",
        "\n".join(f"- {_plain(sentence)}" for sentence in statement["outside"]),
        "## How to check it",
        "`dp-leakage verify FOLDER` compares every file with its SHA-256 and computes ε again by "
        "dp-accounting. It needs no data.",
    ]
    return "\n\n".join(parts) + "\n"


def _input(model: Json) -> str:
    if _by_column(model):
        return (
            "One input for each column, of shape (records, 1): numbers as float32, texts as strings. A missing number "
            "is NaN. A text that is not among the categories counts as missing. What stands for a missing value is "
            f"`missing_as`. {NO_FILL} A missing text then counts as none of the categories, and of two as the "
            "first.\n\n" + _block(model["columns"])
        )
    if model["columns"]:
        return (
            "One input, `record`: float32 (records, columns), the columns in this order, as they stand in the table; a "
            f"missing value is NaN, and `missing_as` stands for it. {NO_FILL}\n\n" + _block(model["columns"])
        )
    shape = ", ".join(map(str, model["input"]))
    largest = model["numbers_divided_by"]
    pixels = f"pixels from 0 to {largest:g}" if largest != 1 else "the numbers of the file"
    return f"One input, `record`: float32 (records, {shape}), images as (channels, height, width) of {pixels}."


def _example(model: Json) -> str:
    """Return runnable example code for the model. Its record is synthetic and not from the data."""
    row, shape = "", (1, *model["input"])
    given = f'{{"{RECORD}": np.zeros({shape}, np.float32)}}  # one record of zeros'
    if model["columns"]:
        values = {column["name"]: _made_up(column) for column in model["columns"]}
        row = f"row = {json.dumps(values, ensure_ascii=False, indent=4)}\n"
        given = f'{{"{RECORD}": np.array([list(row.values())], np.float32)}}'
    if _by_column(model):
        kind = "object if isinstance(value, str) else np.float32"
        given = f"{{name: np.array([[value]], {kind}) for name, value in row.items()}}"
    return (
        "With `pip install numpy onnxruntime`, this runs in the folder as it stands. Its record is made up.\n\n"
        "```python\nimport numpy as np\nimport onnxruntime\n\n"
        f'session = onnxruntime.InferenceSession("{MODEL}", providers=["CPUExecutionProvider"])\n'
        f"{row}given = {given}\n"
        "(probability,) = session.run(None, given)\n"
        "print(probability)  # a row for each record, a column for each class\n```"
    )


def _made_up(column: Json) -> str | float:
    """Return a value for a column of the example: the fill value of missing ones, else the first category or zero."""
    if column["missing_as"] is not None:
        return column["missing_as"]
    return column["categories"][0] if column["kind"] == "text" else 0.0


def _accuracy(model: Json) -> str:
    if model["accuracy"] is None:
        return "Not known: all records were trained on."
    people = f" of {model['accuracy_persons']:,} people" if "accuracy_persons" in model else ""
    drawn = "over people, whose own records may be alike" if people else "if records are independent"
    low, high = model["accuracy_interval"]
    return (
        f"It names the right class for {100 * model['accuracy']:.1f} % of {model['accuracy_on']:,} records{people} "
        f"that it did not train on (95 % interval, {drawn}: {100 * low:.1f} to {100 * high:.1f} %). Compare that with "
        f"the share of the largest class, which a guess reaches: {100 * model['largest_class']:.1f} % of these records."
        + _use(model)
    )


def _use(model: Json) -> str:
    """Return the study's measure of use if it is not accuracy."""
    if (told := model.get("utility")) is None:
        return ""
    low, high = told["interval"]
    return (
        f" The study judges by another measure. Its {_plain(told['label'])} on these records is {told['value']:.3f} "
        f"(95 % interval: {low:.3f} to {high:.3f}); a guess has {told['guessing']:.3f}."
    )


def _of_the_study(measured: Json) -> str:
    """State that the study's accuracy is for models with half of the records, under random inclusion."""
    if not measured.get("trained_on_half"):
        return ""
    return " The accuracy in the study's report is that of models which trained on about half of the records each."


def _by_column(model: Json) -> bool:
    return any(column["kind"] == "text" for column in model["columns"])


def _block(value: object) -> str:
    """Return JSON in a code block that no name can end early: no line can begin with backticks."""
    return f"```json\n{json.dumps(value, ensure_ascii=False, indent=1)}\n```"


def _plain(text: str) -> str:
    """Return a sentence in which the user's names are escaped as plain text."""
    return "".join(f"\\{sign}" if sign in "\\`*_[]<>#|!" else sign for sign in " ".join(text.split()))
