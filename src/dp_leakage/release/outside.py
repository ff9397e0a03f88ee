"""Limits of a release's ε, as far as its own statement shows them. The plan adds those known only from data and
study.
"""

from dp_leakage.common.config import Json

GAPS = "Whether a column has missing values, and what fills them (`missing_as`), was read from records without noise."
COUNTED = {"one record": ("record", "records"), "one person": ("person", "records and people")}
CELL = "The cell itself (architecture, ε and settings) was chosen by people, which no ε covers."
MEASURED = "What attacks and audits measured was computed from the same records, without noise."


def follows_from(statement: Json) -> list[str]:
    """Return the sentences on what ε does not cover that follow from the other keys of a statement."""
    unit, counted = COUNTED[statement["unit"]]
    model, selection, measured = statement["model"], statement["selection"], statement["measured"]
    sentences = [
        f"Whoever is in the data as more than one {unit} is promised less. No copies were looked for here.",
        f"The names of columns, categories and classes, and the number of {counted}, are taken from the data.",
    ]
    if any(column["missing_as"] is not None for column in model["columns"]):
        sentences.append(GAPS)
    if judged := model["accuracy_on"]:
        words = f"on {judged:,} records that the model did not train on, without noise"
        use = f", {model['utility']['label']}" if "utility" in model else ""
        sentences.append(f"Accuracy{use} and the share of the largest class were measured {words}.")
    if judged and selection is not None and selection["score_noise"] is None:
        by = model["utility"]["label"] if "utility" in model else "accuracy"
        sentences.append(f"The best training was chosen by that {by}, so the choice depends on those records.")
    sentences.append(CELL)
    if measured["attacks_run"] or "audits" in measured:
        sentences.append(MEASURED)
    return sentences
