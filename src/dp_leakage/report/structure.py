"""Sentences on disclosure by the structure of models, without any attack."""

import pandas as pd

from dp_leakage.engines.structure import SMALL
from dp_leakage.metrics.rows import CELL
from dp_leakage.metrics.runs import ALL
from dp_leakage.report.claims import Claim, ClaimWriter
from dp_leakage.table.words import name

CHECKED = ("smallest_cell", "in_small_cells", "class_disclosed", "residual_freedom", "stored_records")
NEARLY_ALL = 0.9  # share of records in small cells from which on a model answers nearly every record differently


def structure_claims(metrics: pd.DataFrame) -> list[Claim]:
    """Return for each data set a claim on the models with small cells, certain classes, or more parameters than
    records.

    Args:
        metrics: rows as `dp_leakage.table.frames` names them.

    These are counts, so they have no intervals. The worst repeat of a cell counts.
    """
    rows = metrics[metrics["metric"].isin(CHECKED) & (metrics["repeat"] == ALL)]
    rows = rows[rows["cells"] != "leaves"]
    return [_claim(str(dataset), own) for dataset, own in rows.groupby("dataset", sort=False)]


def _claim(dataset: str, rows: pd.DataFrame) -> Claim:
    values = [rows[rows["metric"] == metric].set_index(CELL)["value"] for metric in CHECKED]
    smallest, small, sure, freedom, stored = values
    writer, said = ClaimWriter({"dataset": dataset}), []
    if len(smallest):
        said.append(_small(smallest, writer))
        # A record's unique answer reveals its class only to those who know it already.
        apart = sure.index.isin(small.index[small >= NEARLY_ALL])
        if apart.any():
            where = f"in {writer.count(int(apart.sum()))}, this" if len(smallest) > 1 else "this"
            said.append(f"{where} holds for nearly all records, as is usual for networks and alone no leak")
        said += _certain(sure[~apart], writer, len(smallest))
    if len(freedom):
        said.append(_over(freedom, writer))
    if len(stored) and stored.max() > 0:
        said.append(_stored(stored, writer))
    words = f"Structure, checked without any attack: {'; '.join(said)}."
    cells = tuple(dict.fromkeys((model, defense) for _, model, defense in rows[CELL].itertuples(index=False)))
    return writer.claim(f"{dataset}.structure", "structure", dataset, words, cells=cells, screen=2)


def _small(smallest: pd.Series, writer: ClaimWriter) -> str:
    """Say in how many models few records share an answer."""
    shared = f"some training record gets the same answer as fewer than {SMALL - 1} others"
    few = int((smallest < SMALL).sum())
    if len(smallest) > 1:
        return f"in {writer.count(few)} of {writer.count(len(smallest))} models, {shared}"
    every = f"every training record gets the same answer as at least {SMALL - 1} others"
    return f"in the one model, {shared if few else every}"


def _over(freedom: pd.Series, writer: ClaimWriter) -> str:
    """Say how many models have more fitted numbers than records, among those with a known count."""
    over, than = int((freedom < 0).sum()), "numbers from the training records than there are records"
    if len(freedom) > 1:
        return f"{writer.count(over)} of {writer.count(len(freedom))} took more {than}"
    return f"the one model whose parameters are counted took {'more' if over else 'no more'} {than}"


def _stored(stored: pd.Series, writer: ClaimWriter) -> str:
    """Say how many models store training records, and how many records one of them stores."""
    some = int((stored > 0).sum())
    model, defense = stored.idxmax()[1:]
    many = len(stored) > 1
    counts = f"{writer.count(some)} of {writer.count(len(stored))} models store" if many else "the model stores"
    shown = writer("stored_records", stored.max(), f"{stored.max():,.0f}", model=model, defense=defense)
    if not many:
        return f"{counts} {shown} of its training records as they are, so whoever has the model has these records"
    which = f"{name(model)}, defense {defense}"
    return f"{counts} training records as they are, up to {shown} ({which}), so whoever has such a model has them"


def _certain(sure: pd.Series, writer: ClaimWriter, models: int) -> list[str]:
    """Say in how many of the remaining models an answer reveals a class."""
    if not len(sure):
        return []
    some = int((sure > 0).sum())
    if len(sure) == 1:
        where = "" if models == 1 else "in the other one, "
        makes = "the answer makes the class of some records" if some else "no answer makes a class"
        certain = f"{where}{makes} certain"
    else:
        others = "" if len(sure) == models else f" of the other {writer.count(len(sure))}"
        certain = f"in {writer.count(some)}{others}, the answer makes the class of some records certain"
    if sure.max() > 0:
        model, defense = sure.idxmax()[1:]
        shown = writer("class_disclosed", sure.max(), f"{100 * sure.max():.0f} %", model=model, defense=defense)
        certain += f", of {shown} of a model's records at most ({name(model)}, defense {defense})"
    return [certain]
