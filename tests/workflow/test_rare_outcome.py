"""A rare outcome, from a table of people with several rows each to the report: use is judged by AUROC."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import yaml
from sklearn.metrics import roc_auc_score
from workflow_copies import ONE_FIGURE

SMALLEST = {
    "models": {"softmax_regression": None},
    "epsilon": [100],
    "defenses": [{"defense": "none"}, {"defense": "person", "accountant": "rdp"}],
    "repeats": 4,
    "tune": {"learning_rate": [0.003, 0.03]},
    "attacks": {"rmia_online": None, "lira_online": None},
    "figures": ONE_FIGURE | {"table_persons": None},
}


@pytest.fixture(scope="module")
def rare(another):
    """The folder of a run study of 1,500 people with two rows each, of whom one in fifty has the outcome; what
    `dp-leakage new` printed.
    """
    workflow = another("rare")
    rng = np.random.default_rng(0)
    ill = np.repeat(rng.permutation(1500) < 30, 2)
    values = rng.normal(size=(3000, 5)) + 1.2 * ill[:, None]
    frame = pd.DataFrame(values, columns=list("abcde")).assign(patient=np.repeat(np.arange(1500), 2), ill=ill * 1)
    frame.to_csv(workflow.folder / "rare.csv", index=False)
    command = [sys.executable, "-m", "dp_leakage", "new", "rare", "--data", "rare.csv", "--label", "ill"]
    command += ["--person", "patient", "--seed", "1"]
    said = subprocess.run(command, cwd=workflow.folder, text=True, capture_output=True, check=True).stdout
    workflow.edit("config.yaml", "overrides: {}", yaml.safe_dump({"overrides": {"rare": SMALLEST}}))
    workflow.snakemake("rare", "--cores", "1", "--config", "scale=smoke")
    return workflow.folder, said


def test_a_new_study_says_by_what_it_judges_and_keeps_it_in_its_file(rare):
    folder, said = rare
    assert "Use is judged by AUROC, since one class dominates." in said
    study = yaml.safe_load((folder / "studies" / "rare.yaml").read_text())
    assert study["utility"] == "auroc"
    assert study["figures"]["fig_pareto"]["title"] == "AUROC against leakage"


def test_metrics_hold_what_scikit_learn_finds_for_the_models_probabilities(rare):
    folder, _ = rare
    results = folder / "results" / "rare-smoke" / "rare"
    for defense in ("none", "person-rdp-eps=100"):
        cell = results / "mlp" / defense
        rows = pd.read_parquet(cell / "metrics.parquet").set_index(["metric", "repeat"])
        with np.load(results / "data.npz") as data, np.load(cell / "signals.npz") as signals:
            outside = np.isin(signals["record"], data["target_nonmembers"])
            y, margin = signals["y"][outside], signals["margin"][0][:, outside]
            if not outside.any():
                pytest.skip("no answers on new records are kept")
        sure = np.where(y == 1, margin, -margin)
        expected = [roc_auc_score(y, one) for one in sure]
        assert [rows.loc[("test_utility", str(k)), "value"] for k in range(4)] == pytest.approx(expected, abs=1e-6)
        own = rows.loc[("test_utility", "all")]
        assert own["low"] < own["value"] < own["high"]
        assert own["value"] == pytest.approx(np.mean(expected), abs=1e-6)
        assert rows.loc[("guessing_utility", "all"), "value"] == 0.5
        assert set(rows.loc["test_utility", "of"]) == {"auroc"}
        assert {"tuning_utility", "test_accuracy"} <= set(rows.index.get_level_values(0))


def test_the_page_its_figures_and_claims_judge_by_auroc_and_never_by_accuracy(rare):
    folder, _ = rare
    results = folder / "results" / "rare-smoke"
    claims = json.loads((results / "claims.json").read_text())["claims"]
    (answer,) = [claim for claim in claims if claim["kind"] == "answer"]
    assert "AUROC" in answer["words"]
    said = " ".join(claim["label"] + claim["words"] for claim in claims)
    assert "AUROC on new records" in said
    assert "accuracy" not in said.lower()
    drawn = pd.read_csv(results / "figures" / "fig_pareto.csv", comment="#")
    assert set(drawn["of_use"]) == {"auroc"}
    rows = pd.concat(map(pd.read_parquet, sorted(results.rglob("metrics.parquet"))))
    known = rows[(rows["metric"] == "test_utility") & (rows["repeat"] == "all")]["value"]
    assert sorted(drawn["test_utility"]) == pytest.approx(sorted(known))
    lost = pd.read_csv(results / "figures" / "fig_accuracy_loss.csv", comment="#")
    assert set(lost["metric"]) == {"utility_loss"}
