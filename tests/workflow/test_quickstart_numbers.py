"""What the quickstart's numbers must say, whatever they are: run at its own scale, minutes on two cores."""

import json
import re
from html import unescape
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dp_leakage.metrics.coins import auc
from dp_leakage.table.numbers import at_most

pytestmark = pytest.mark.study
ATTACKS = ("yeom", "lira_online", "rmia_online")


@pytest.fixture(scope="module")
def numbers(quickstart) -> pd.DataFrame:
    """All metrics of all cells over all repeats (`repeat` all) and of each repeat."""
    paths = sorted((quickstart.folder / "results" / "quickstart").rglob("metrics.parquet"))
    return pd.concat([pd.read_parquet(path).assign(model=path.parts[-3], defense=path.parts[-2]) for path in paths])


def _over_all(numbers: pd.DataFrame, metric: str, **said: str) -> pd.DataFrame:
    rows = numbers[(numbers["metric"] == metric) & (numbers["repeat"] == "all")]
    for key, value in said.items():
        rows = rows[rows[key] == value]
    return rows.set_index(["model", "defense"])[["value", "low", "high"]]


@pytest.mark.parametrize("attack", [*ATTACKS, "strongest"])
def test_the_undefended_mlp_leaks_and_epsilon_1_far_less_with_intervals_apart(numbers, attack):
    found = _over_all(numbers, "reached_advantage", attack=attack).loc["mlp"]
    assert found.loc["none", "low"] > max(0, found.loc["gaussian-rdp-eps=1", "high"])
    if attack in ("lira_online", "rmia_online"):
        auc = _over_all(numbers, "membership_auc", attack=attack).loc["mlp"]
        assert auc.loc["none", "low"] > auc.loc["gaussian-rdp-eps=1", "high"]


def test_at_epsilon_1_no_attack_reaches_what_is_proven(numbers):
    proven = _over_all(numbers, "advantage_proven").loc[("mlp", "gaussian-rdp-eps=1"), "value"]
    for attack in ATTACKS:
        reached = _over_all(numbers, "reached_advantage", attack=attack).loc[("mlp", "gaussian-rdp-eps=1")]
        assert reached["low"] < proven


@pytest.fixture(scope="module")
def said(quickstart) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of the MLP at ε = 1: margins (32, 1200) of the pool's records, who was in, and their classes."""
    digits = quickstart.folder / "results" / "quickstart" / "digits"
    with np.load(digits / "mlp" / "gaussian-rdp-eps=1" / "signals.npz") as told, np.load(digits / "data.npz") as data:
        pool = np.isin(told["record"], data["pool"])
        return told["margin"][0][:, pool], told["trained_on"][:, pool], told["y"][pool]


def test_what_leaks_at_epsilon_1_is_no_artefact_with_the_coins_of_another_model_nothing_is_found(said):
    """Rows moved by one to all 31 places: no model keeps its own coins, and all others take each place once."""
    margin, member, _ = said
    found = [auc(margin, np.roll(member, shift, axis=0)).value for shift in range(1, len(member))]
    assert np.mean(found) == pytest.approx(0.5, abs=0.003)  # standard error about .001


def test_some_of_what_leaks_at_epsilon_1_is_how_many_of_each_class_were_in(said):
    """Where many of a class are in, the model names that class more readily, and more of its records are members."""
    margin, member, classes = said
    own = (classes[:, None] == np.unique(classes)).astype(float)
    counts = member @ own / own.sum(axis=0)
    others = (margin @ own)[:, classes] - margin
    others = others / (own.sum(axis=0)[classes] - 1)
    centered = others - others.mean(axis=0)
    assert np.corrcoef(centered.ravel(), counts[:, classes].ravel())[0, 1] > 0.2
    within = margin - (margin @ own / own.sum(axis=0))[:, classes]
    assert auc(within, member).value < auc(margin, member).value


@pytest.mark.parametrize("attack", ATTACKS)
def test_intervals_of_the_advantage_are_at_most_3_hundredths_to_either_side(numbers, attack):
    found = _over_all(numbers, "membership_advantage", attack=attack).loc["mlp"]
    for defense in ("none", "gaussian-rdp-eps=8"):
        row = found.loc[defense]
        assert max(row["high"] - row["value"], row["value"] - row["low"]) <= 0.03, (defense, row.to_dict())


def test_what_is_measured_stays_below_what_was_spent_in_every_cell(numbers):
    proved = _over_all(numbers, "epsilon_lower_bound", design="one_run")  # of (ε, δ)-DP, and of the cell's own curve
    proved = proved.groupby(level=[0, 1]).max(numeric_only=True)
    assert len(proved) == numbers.groupby(["model", "defense"]).ngroups
    spent = numbers[(numbers["metric"] == "epsilon_spent") & (numbers["valid"] == True)]  # noqa: E712
    spent = spent[spent["neighbors"].isin(["add_remove", "zero_out"])]
    for (model, defense), rows in spent.groupby(["model", "defense"]):
        assert proved.loc[(model, defense), "value"] <= rows["value"].min()
    assert proved.loc[("mlp", "none"), "value"] > 0


def test_accuracy_loss_falls_with_epsilon(numbers):
    loss = _over_all(numbers, "accuracy_loss")["value"]
    for model in ("softmax_regression", "mlp"):
        losses = [loss[model, f"gaussian-rdp-eps={epsilon}"] for epsilon in (1, 2, 4, 6, 8)]
        assert losses == sorted(losses, reverse=True)


def test_at_equal_epsilon_rdp_adds_less_noise_than_zcdp(numbers):
    noise = _over_all(numbers, "noise_multiplier")["value"]
    assert noise["mlp", "gaussian-rdp-eps=8"] < noise["mlp", "gaussian-zcdp-eps=8"]


def test_a_setting_is_recommended(quickstart):
    page = json.loads((quickstart.folder / "results" / "quickstart" / "claims.json").read_text(encoding="utf-8"))
    (answer,) = [claim for claim in page["claims"] if claim["kind"] == "answer"]
    assert answer["verdict"] == "both"
    assert answer["words"].startswith("Use ε = 4 (DP-SGD, softmax regression).")


def test_every_number_has_an_interval_around_it(numbers):
    known = numbers[np.isfinite(numbers["value"]) & (numbers["metric"] != "nonmembers_worth")]
    assert (known["low"] <= known["value"] + 1e-12).all()
    assert (known["value"] <= known["high"] + 1e-12).all()


def test_the_finding_in_the_readme_is_what_the_report_says(quickstart):
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    found = re.search(r"On 1,797 handwritten digits, .*?95 % intervals\)", readme, re.DOTALL)[0]
    page = json.loads((quickstart.folder / "results" / "quickstart" / "claims.json").read_text(encoding="utf-8"))
    told = " ".join(claim["words"] for claim in page["claims"])
    assert "ε = 4 (DP-SGD" in told
    numbers = re.findall(r"0\.\d{3} \[[^]]*\]|\d+\.\d %\s\[[^]]*\]", found)
    assert len(numbers) == 3
    assert [number for number in numbers if number not in told] == []


def test_the_epsilon_in_the_readmes_picture_is_that_of_the_figure(quickstart):
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    said = re.search(r"one record exchanged \(replace-one\): ([\d.]+) at that point", readme)[1]
    drawn = pd.read_csv(quickstart.folder / "results" / "quickstart" / "figures" / "fig_pareto.csv", comment="#")
    drawn = drawn.set_index(["model", "defense"])
    assert drawn["spent_neighbors"].dropna().unique().tolist() == ["replace_one"]
    assert said == at_most(drawn.loc[("softmax_regression", "gaussian-rdp-eps=4"), "epsilon_spent"])


def test_before_the_reports_first_figure_there_are_at_most_65_words_and_12_numbers_beside_the_cards(quickstart):
    page = (quickstart.folder / "results" / "quickstart" / "report.html").read_text(encoding="utf-8")
    page = re.sub(r'<div class="cards">.*?</div>\s*</div>', " ", page, flags=re.DOTALL)
    first = unescape(re.sub(r"<[^>]+>", " ", page[page.index("<main>") : page.index("<figure")]))
    assert len([word for word in first.split() if re.search(r"[^\W\d]", word)]) <= 65
    assert len(re.findall(r"\d[\d,]*(?:\.\d+)?(?:e-?\d+)?", first)) <= 12
