"""Sentences on tuning: the learning rates tried, the records used, and the cost of the choice."""

from dataclasses import dataclass

import pandas as pd

from dp_leakage.report.claims import ClaimWriter

UNTUNED = (
    "Private training was not tuned here: another learning rate, batch size or number of epochs may keep far more."
)


@dataclass(frozen=True)
class Tuned:
    """Tuning of one cell.

    Attributes:
        rate: the selected learning rate.
        right: rate → measure of use on the validation records, in the order of the trials.
        records: number of validation records.
    """

    rate: float
    right: dict[float, float]
    records: int


def tuned_of(cell: pd.DataFrame) -> Tuned | None:
    """Return how a cell's learning rate was tuned, from its metrics over all repeats; None if it was set."""
    chosen = cell[cell["metric"] == "learning_rate"]
    if chosen.empty:
        return None
    tried = cell[cell["metric"].isin(["tuning_accuracy", "tuning_utility"])]
    right = dict(zip(map(float, tried["tried"]), map(float, tried["value"]), strict=True))
    return Tuned(float(chosen["value"].iloc[0]), right, int(tried["records"].iloc[0]))


def more_tuning(tuned: Tuned | None) -> str:
    """Say what else might keep more accuracy."""
    if tuned is None:
        return UNTUNED
    return "Learning rates were tuned; another batch size or number of epochs may still keep more."


def tuned_words(tuned: Tuned | None, writer: ClaimWriter) -> str:
    """Describe the choice of the learning rates; "" if they were set."""
    if tuned is None:
        return ""
    rates = [writer.plain("learning_rate_tried", rate) for rate in tuned.right]
    *first, last = rates
    of = f"the best of {', '.join(first)} and {last}" if first else last
    records = writer.count(tuned.records)
    return (
        f"The learning rate of each model is {of}, by {records} records set apart. No model in this report trains on "
        "them and no attack asks about them, so tuning costs the training records no privacy. The tuning records "
        "themselves have no guarantee."
    )
