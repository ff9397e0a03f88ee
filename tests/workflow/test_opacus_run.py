"""The config's engine ``opacus``: the same study, trained by Opacus into a folder of its own."""

import json

import pytest
from safetensors import safe_open

CELL = "results/quickstart-opacus/digits/mlp/gaussian-rdp-eps=10"
SMALL = {
    "models": {"softmax_regression": None},
    "epsilon": [10],
    "repeats": 4,
    "training": {"epochs": 2, "evaluate_every": 2},
    "defenses": [{"defense": "none"}, {"defense": "gaussian", "accountant": "rdp", "sampler": "poisson"}],
}


@pytest.fixture(scope="module")
def run(another):
    workflow = another("opacus")
    workflow.configure(**SMALL)
    workflow.snakemake("quickstart_fig_leakage_yeom", "--config", "engine=opacus", "--cores", "2")
    return workflow


def test_the_models_say_that_opacus_trained_them(run):
    with safe_open(run.folder / CELL / "target.safetensors", "np") as file:
        made = json.dumps(file.metadata())
    assert "opacus" in made
    assert not (run.folder / "results" / "quickstart").exists()


def test_attacks_and_figures_follow_as_for_our_own_trainer(run):
    assert (run.folder / "results/quickstart-opacus/figures/fig_leakage_yeom.csv").exists()


def test_a_study_with_audits_is_refused_before_it_trains(run):
    said = run.snakemake("-n", "atlas", "--config", "engine=opacus", check=False)
    assert "which trains no models with canaries" in said
