"""What the structure of models gives away without any attack, in a sentence for each data set."""

import pandas as pd

from dp_leakage.engines.structure import SMALL
from dp_leakage.figures.style import name
from dp_leakage.metrics.rows import CELL
from dp_leakage.metrics.runs import ALL
from dp_leakage.report.claims import Claim, Telling

CHECKED = ("smallest_cell", "class_disclosed", "residual_freedom")


def structure_claims(metrics: pd.DataFrame) -> list[Claim]:
    """Of each data set, how many of its models have small cells, certain classes, or more parameters than records.

    Args:
        metrics: rows as `dp_leakage.figures.frames` names them.

    All of it is counted, so nothing has an interval. A cell's worst repeat counts.
    """
    rows = metrics[metrics["metric"].isin(CHECKED) & (metrics["repeat"] == ALL)]
    rows = rows[rows["cells"] != "leaves"]
    return [_claim(str(dataset), own) for dataset, own in rows.groupby("dataset", sort=False)]


def _claim(dataset: str, rows: pd.DataFrame) -> Claim:
    smallest, sure, freedom = (rows[rows["metric"] == metric].set_index(CELL)["value"] for metric in CHECKED)
    tell, said = Telling({"dataset": dataset}), []
    if len(smallest):
        small = int((smallest < SMALL).sum())
        said.append(
            f"{tell.count(small)} of {tell.count(len(smallest))} models answer some training record as they answer "
            f"fewer than {SMALL - 1} others"
        )
        certain = f"{tell.count(int((sure > 0).sum()))} make the class of some of them certain"
        if sure.max() > 0:
            model, defense = sure.idxmax()[1:]
            shown = tell("class_disclosed", sure.max(), f"{100 * sure.max():.0f} %", model=model, defense=defense)
            certain += f", of {shown} of its records at most ({name(model)}, defense {defense})"
        said.append(certain)
    if len(freedom):
        over = int((freedom < 0).sum())
        said.append(
            f"{tell.count(over)} of {tell.count(len(freedom))} took more numbers from the training records than there "
            "are records"
        )
    words = f"Structure, checked without any attack: {'; '.join(said)}."
    cells = tuple(dict.fromkeys((model, defense) for _, model, defense in rows[CELL].itertuples(index=False)))
    return Claim(
        f"{dataset}.structure", "structure", dataset, words, cells=cells, screen=2, numbers=tuple(tell.numbers)
    )
