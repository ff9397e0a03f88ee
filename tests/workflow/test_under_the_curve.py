"""No measured ROC of the atlas lies above what its noise proves: every defense against every membership attack."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dp_leakage.metrics.rates import tpr_at
from dp_leakage.metrics.runs import by_repeat
from dp_leakage.provenance.files import read_table

POINTS = 25  # of each curve
FEWEST = 5  # false positives of the first: with fewer the rate itself is hardly known, and intervals are too narrow


def measured_and_proven(results: Path) -> pd.DataFrame:
    """A row per private cell, membership attack and rate: ``tpr`` with its interval (low, high), and ``proven``."""
    rows = []
    for file in sorted(results.glob("*/*/*/measured/proven.parquet")):
        limit = read_table(file)[0]
        limit = limit[limit["metric"] == "tpr_proven"]
        limit = limit.sort_values("fpr") if len(limit) else limit
        for path in sorted(file.parents[1].glob("attack/*.parquet")) if len(limit) else ():
            frame = read_table(path)[0]
            if "score" not in frame or "feature" in frame:
                continue
            (score,), member = by_repeat(frame, ["score"], ["record"])
            outside = int((~member).sum())
            for count in np.unique(np.round(np.geomspace(FEWEST, outside - 1, POINTS)).astype(int)):
                fpr = (count + 1e-9) / outside
                proven = np.interp(fpr, limit["fpr"].to_numpy(), limit["value"].to_numpy())
                found = tpr_at(score, member, fpr).found
                rows.append((str(file.parents[1].relative_to(results)), path.stem, fpr, *found, float(proven)))
    return pd.DataFrame(rows, columns=["cell", "attack", "fpr", "tpr", "low", "high", "proven"])


@pytest.mark.study
def test_no_curve_of_the_atlas_is_above_what_is_proven(whole):
    whole.snakemake("atlas", "--cores", "2", "--config", "scale=smoke")
    drawn = measured_and_proven(whole.folder / "results" / "atlas-smoke")
    assert drawn["attack"].nunique() >= 8
    assert drawn["cell"].nunique() >= 5
    # The interval's lower end: 95 %, and the attacks are far from optimal, so none of some thousand points crosses.
    assert (drawn["low"] <= drawn["proven"] + 1e-9).all(), drawn[drawn["low"] > drawn["proven"]].to_string()
    # Somewhere the limit says something: below 1 at a rate where it could be crossed.
    assert (drawn["proven"] < 0.5).sum() > 100
