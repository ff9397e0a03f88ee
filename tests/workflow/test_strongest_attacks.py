"""The attacks that train reference models against the one that only looks at the loss, by the study `atlas`."""

import pandas as pd
import pytest
import yaml

STRONG = ("lira_online", "rmia_online")
CIFAR100 = {
    "source": "cifar100",
    "roles": {"pool": 20_000, "target_nonmembers": 1000, "shadow_pool": 1000},
    "stratified": False,
    "projection": {"method": "pca", "components": 50, "row_norm": True},
}


def measured(workflow, datasets: dict, **changes: object) -> pd.DataFrame:
    """TPR at 1 % FPR and AUC of Yeom's and the strong attacks on the undefended model: (metric, attack) → interval."""
    config = yaml.safe_load((workflow.folder / "config.yaml").read_text())
    study = yaml.safe_load((workflow.folder / "workflow" / "studies" / "atlas.yaml").read_text())
    config["overrides"] = {
        "atlas": {
            "datasets": datasets,
            "repeats": 17,
            "defenses": [{"defense": "none"}],
            "attacks": {name: None for name in study["attacks"] if name not in (*STRONG, "yeom")},
            "audit": None,
            "figures": {name: None for name in study["figures"] if name != "fig_roc"}
            | {"fig_roc": {"select": {"defense": ["none"]}}},
        }
        | changes
    }
    (workflow.folder / "config.yaml").write_text(yaml.safe_dump(config))
    workflow.snakemake("atlas", "--cores", "2", timeout=3000)
    (path,) = (workflow.folder / "results" / "atlas").rglob("none/metrics.parquet")
    rows = pd.read_parquet(path)
    rows = rows[(rows["repeat"] == "all") & rows["metric"].isin(["membership_auc", "reached_tpr"])]
    return rows[rows["fpr"] != 0.001].set_index(["metric", "attack"])[["value", "low", "high"]]


@pytest.mark.study
def test_on_cifar100_lira_and_rmia_beat_the_loss_at_a_small_false_positive_rate(whole, unpacked):
    """PCA-50, MLP, not private, 16 references for each of 17 models; 95 % intervals of the rates do not overlap."""
    whole.edit("config.yaml", "data_dir: data", f"data_dir: {unpacked('cifar100')}")
    model = {"mlp": {"architecture": {"hidden": [256, 256]}}}
    found = measured(
        whole,
        {"digits": None, "cifar100": CIFAR100},
        models=model,
        training={"epochs": 100, "batch_size": 400, "evaluate_every": 100},
    )
    print(found.to_string())
    for attack in STRONG:
        assert found.loc[("reached_tpr", attack), "low"] > found.loc[("reached_tpr", "yeom"), "high"]


@pytest.mark.study
def test_on_the_digits_they_rank_better_than_the_loss(whole):
    """The same on bundled data."""
    found = measured(whole, {})
    for attack in STRONG:
        assert found.loc[("membership_auc", attack), "value"] > found.loc[("membership_auc", "yeom"), "high"]
