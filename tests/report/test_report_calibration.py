"""What a rate over all records together hides is said beside it."""

import numpy as np
import pandas as pd

from dp_leakage.metrics import measure_membership
from dp_leakage.metrics.calibration import measure_calibration
from dp_leakage.metrics.intervals import Estimate
from dp_leakage.metrics.simultaneous import simultaneous
from dp_leakage.report.calibration import calibration_claims

N = 1500
CELL = {"dataset": "digits", "model": "mlp", "defense": "none", "accountant": ""}


def rows(shift: float, attack: str, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    member = rng.random((12, N)) < 0.5
    score = 3 * rng.normal(size=N) + rng.normal(size=member.shape) + shift * member
    places = {"repeat": np.repeat(np.arange(12), N), "record": np.tile(np.arange(N), 12)}
    frame = pd.DataFrame({**places, "member": member.ravel(), "score": score.ravel(), "flagged": score.ravel() > 0})
    return pd.DataFrame([*measure_membership(frame, attack), *measure_calibration({attack: frame})]).assign(**CELL)


def test_the_rate_over_all_records_stands_beside_those_of_single_ones():
    frame = pd.concat([rows(0.0, "yeom"), rows(4.0, "lira_online", 1)])
    (claim,) = calibration_claims(frame)
    found = frame[(frame["repeat"] == "all") & (frame["attack"] == "lira_online") & (frame["fpr"] == 0.01)]
    by = found.set_index("metric")
    for number in claim.numbers[1:-1]:
        alone = Estimate(*by.loc[number.estimates, ["value", "low", "high"]])
        held = simultaneous(alone, 2, (0.0, 1.0))
        assert (number.value, number.low, number.high, number.among) == (*held, 2)
    assert [number.estimates for number in claim.numbers] == [
        "fpr", "reached_tpr", "accused_again", "own_tpr", "own_fpr", "count",
    ]  # fmt: skip
    assert "LiRA online on MLP, defense none" in claim.words
    assert claim.words.endswith("These intervals hold for all 2 attacks and models at once.")
    # Records differ by three deviations: thresholds of their own find more, and the common one accuses the same ones.
    assert by.loc["own_tpr", "value"] > 2 * by.loc["reached_tpr", "value"]
    assert by.loc["accused_again", "value"] > 0.2


def test_where_too_few_are_accused_to_be_accused_again_only_that_is_left_out():
    frame = rows(1.0, "yeom")
    (whole,), (shorter,) = (calibration_claims(part) for part in (frame, frame[frame["metric"] != "accused_again"]))
    assert "Errors may always meet the same records" in whole.words
    assert "Errors may always meet" not in shorter.words
    assert [number.estimates for number in shorter.numbers] == ["fpr", "reached_tpr", "own_tpr", "own_fpr"]


def test_nothing_is_said_where_single_records_were_not_measured():
    frame = rows(1.0, "yeom")
    assert calibration_claims(frame[~frame["metric"].isin(["own_tpr", "own_fpr"])]) == []
    assert calibration_claims(frame[:0]) == []
