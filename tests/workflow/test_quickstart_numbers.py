"""What the quickstart's numbers must say, whatever they are: run at its own scale, minutes on two cores."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

pytestmark = pytest.mark.study
PRIVATE = ("naive", "advanced", "zcdp", "rdp")


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


def test_the_undefended_mlp_leaks_and_its_interval_says_so(numbers):
    assert _over_all(numbers, "membership_advantage", attack="yeom").loc[("mlp", "none"), "low"] > 0


@pytest.mark.parametrize("attack", ["yeom", "shokri"])
def test_epsilon_a_tenth_leaks_nothing(numbers, attack):
    """Pooled over cells; a 99 % interval, so one false alarm in a hundred seeds, and the seed is fixed."""
    rows = _over_all(numbers, "membership_advantage", attack=attack)
    rows = rows[rows.index.get_level_values("defense").str.endswith("-eps=0.1")]
    assert len(rows) == 2 * len(PRIVATE)
    deviations = (rows["high"] - rows["low"]) / (2 * norm.ppf(0.975))
    # All cells are judged on the same records, so their errors are taken as one and the same.
    reach = norm.ppf(0.995) * deviations.mean()
    assert abs(rows["value"].mean()) <= reach


def test_accuracy_loss_falls_with_epsilon(numbers):
    loss = _over_all(numbers, "accuracy_loss")["value"]
    for model in ("softmax_regression", "mlp"):
        for accountant in PRIVATE:
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
