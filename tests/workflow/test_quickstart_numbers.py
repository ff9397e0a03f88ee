"""What the quickstart's numbers must say, whatever they are: run at its own scale, minutes on two cores."""

import numpy as np
import pandas as pd
import pytest

pytestmark = pytest.mark.study
ATTACKS = ("yeom", "lira_online", "rmia_online")


@pytest.fixture(scope="module")
def numbers(quickstart) -> pd.DataFrame:
    """All metrics of all cells over all repeats (`repeat` all) and of each repeat."""
    paths = sorted((quickstart.folder / "results" / "quickstart").rglob("metrics.parquet"))
    return pd.concat([pd.read_parquet(path).assign(model=path.parts[-3], defense=path.parts[-2]) for path in paths])


def _over_all(numbers: pd.DataFrame, metric: str, **setting: str) -> pd.DataFrame:
    rows = numbers[(numbers["metric"] == metric) & (numbers["repeat"] == "all")]
    for key, value in setting.items():
        rows = rows[rows["setting"].str.contains(f"{key}={value}(?:;|$)")]
    return rows.set_index(["model", "defense"])[["value", "low", "high"]]


def test_the_undefended_mlp_leaks_and_epsilon_1_does_not_with_intervals_apart(numbers):
    lira = _over_all(numbers, "membership_advantage", attack="lira_online").loc["mlp"]
    assert lira.loc["none", "low"] > lira.loc["gaussian-rdp-eps=1", "high"]
    assert lira.loc["gaussian-rdp-eps=1", "low"] <= 0 <= lira.loc["gaussian-rdp-eps=1", "high"]
    for metric in ("membership_auc", "reached_advantage"):
        found = _over_all(numbers, metric, attack="lira_online").loc["mlp"]
        assert found.loc["none", "low"] > found.loc["gaussian-rdp-eps=1", "high"]


@pytest.mark.parametrize("attack", ATTACKS)
def test_intervals_of_the_advantage_are_at_most_3_hundredths_to_either_side(numbers, attack):
    found = _over_all(numbers, "membership_advantage", attack=attack).loc["mlp"]
    for defense in ("none", "gaussian-rdp-eps=10"):
        row = found.loc[defense]
        assert max(row["high"] - row["value"], row["value"] - row["low"]) <= 0.03, (defense, row.to_dict())


def test_what_is_measured_stays_below_what_was_spent_in_every_cell(numbers):
    proved = _over_all(numbers, "epsilon_lower_bound", design="one_run")
    assert len(proved) == numbers.groupby(["model", "defense"]).ngroups
    spent = numbers[(numbers["metric"] == "epsilon_spent") & numbers["setting"].str.contains("valid=true")]
    spent = spent[spent["setting"].str.contains("neighbours=(?:add_remove|zero_out)")]
    for (model, defense), rows in spent.groupby(["model", "defense"]):
        assert proved.loc[(model, defense), "value"] <= rows["value"].min()
    assert proved.loc[("mlp", "none"), "value"] > 0


def test_accuracy_loss_falls_with_epsilon(numbers):
    loss = _over_all(numbers, "accuracy_loss")["value"]
    cells = [("softmax_regression", "rdp"), *(("mlp", name) for name in ("naive", "advanced", "zcdp", "rdp"))]
    for model, accountant in cells:
        strict, loose = (loss[model, f"gaussian-{accountant}-eps={e}"] for e in ("0.1", "1000"))
        assert loose < strict


def test_at_equal_epsilon_rdp_adds_least_noise_and_naive_most(numbers):
    noise = _over_all(numbers, "noise_multiplier")["value"]
    for epsilon in ("0.1", "1", "10", "50"):  # up to the number of epochs, 60
        rdp, zcdp, naive = (noise["mlp", f"gaussian-{a}-eps={epsilon}"] for a in ("rdp", "zcdp", "naive"))
        assert rdp < zcdp < naive


def test_every_number_has_an_interval_around_it(numbers):
    known = numbers[np.isfinite(numbers["value"])]
    assert (known["low"] <= known["value"] + 1e-12).all()
    assert (known["value"] <= known["high"] + 1e-12).all()
