"""The audit's step, run as the workflow runs it: classes as units, and gradient canaries where there can be some."""

import numpy as np
import pytest

from dp_leakage.audits import gaussian_dp, many_runs_bound
from dp_leakage.audits.claims import gaussian_mu
from dp_leakage.provenance.files import read_table, write_arrays
from dp_leakage.steps.audit import main

TRAINING = {"optimizer": "adam", "learning_rate": 0.01, "momentum": 0.0, "l2": 0.0, "epochs": 2, "batch_size": 20}
GROUPED = {"sampler": "class_poisson", "bound": "clip", "noise": "gaussian", "block": "whole", "rdp_sigma": None}
GROUPED |= {"accountant": "class_moments", "noise_multiplier": 2.0, "epsilon": None}
GROUPED |= {"clip_norm": 1.0, "delta": 1e-3, "settings": {}, "kappa": None}
VMF = GROUPED | {"unit": "example", "sampler": "poisson", "bound": "normalize", "noise": "vmf", "kappa": 50.0}
VMF |= {"accountant": "vmf_rdp"}
EXAMPLES = GROUPED | {"unit": "example", "sampler": "shuffle", "accountant": "gdp"}
MECHANISMS = {
    "none": None,
    "gaussian": EXAMPLES,
    "class": GROUPED | {"unit": "class"},
    "subclass": GROUPED | {"unit": "subclass", "settings": {"k_sub": 3, "partition": "kmeans"}},
    "vmf": VMF,
    "person": EXAMPLES | {"unit": "person", "settings": {"most": "all", "chosen": "each_step"}},
}
DESIGN = {"canaries": 4, "score": "white_box", "relation": "replace_one", "start": "random", "start_epochs": 1}
DESIGN |= {"design": "one_run", "models": 3, "share": 1.0, "neighbors": "replace_one"}
# Which canaries go with which mechanisms.
DESIGNS = {
    "none": ("natural", "mislabeled", "optimized", "feature", "blank", "gradient"),
    "gaussian": ("natural", "mislabeled", "optimized", "feature", "blank", "gradient"),
    "class": ("natural", "mislabeled", "feature", "blank"),
    "subclass": ("natural", "blank"),
    "vmf": ("natural", "mislabeled", "optimized", "blank", "gradient"),
    "person": ("natural", "mislabeled", "optimized", "feature", "blank", "gradient"),
}


def run(settings, folder):
    scores = folder / "audit.parquet"
    main(settings, folder / "data.npz", scores, device="cpu", checkpoint_seconds=60)
    return read_table(scores)[0]


def settings_for(name, designs, folder, shape=(6,)):
    rng = np.random.default_rng(0)
    roles = {"target_members": np.arange(80), "target_nonmembers": np.arange(80, 160)}
    features = {"x": rng.normal(size=(160, *shape)).astype(np.float32), "y": np.arange(160) % 4}
    if name == "person":  # of one to four records each
        features["person"] = np.repeat(np.arange(64), np.arange(64) % 4 + 1)
        features["person"][80:] = features["person"][:80] + 64
    arrays = features | {"sensitive": np.array([], dtype=np.int64)} | roles
    write_arrays(folder / "data.npz", arrays, {"identity": "data"})
    settings = {"study": "s", "dataset": "d", "model": "m", "defense": name, "role": "audit", "engine": "ensemble"}
    settings |= {"architecture": {"name": "mlp", "hidden": [8]}, "dropout": 0.0, "seed": 1, "designs": designs}
    return settings | {
        "training": TRAINING | {"evaluate_every": 2},
        "mechanism": MECHANISMS[name],
        "data": "data",
        "delta": 1e-3,
    }


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_model_tosses_a_coin_for_every_canary(name, tmp_path):
    designs = {canary: DESIGN | {"canary": canary} for canary in DESIGNS[name]}
    designs["losses"] = DESIGN | {"canary": "mislabeled", "score": "loss"}
    if name != "vmf":
        designs["start"] = DESIGN | {"canary": "blank", "score": "margin", "relation": "presence", "start": "trained"}
    frame = run(settings_for(name, designs, tmp_path), tmp_path)
    assert set(frame["design"]) == set(designs)
    assert len(frame) == 3 * 4 * len(designs)
    assert np.isfinite(frame["score"]).all()
    coins = {
        design: tuple(map(tuple, part.pivot(index="repeat", columns="place", values="held").to_numpy()))
        for design, part in frame.groupby("design")
    }
    assert len(set(coins.values())) == len(designs)  # none twice; the seeds are fixed
    for design, of_models in coins.items():
        assert len(set(of_models)) > 1, design
        assert len(set(zip(*of_models, strict=True))) > 1, design
    # Five standard errors about one half.
    assert abs(frame["held"].mean() - 0.5) < 5 * 0.5 / np.sqrt(len(frame))


def test_the_coin_says_what_the_model_was_trained_on(tmp_path):
    """Without noise every score is higher, on average, where the canary was held."""
    told = ("blank", "feature", "gradient", "mislabeled")
    designs = {canary: DESIGN | {"canary": canary} for canary in told}
    designs["losses"] = DESIGN | {"canary": "mislabeled", "score": "loss"}
    frame = run(settings_for("none", designs, tmp_path), tmp_path)
    for design, part in frame.groupby("design"):
        assert part["score"][part["held"]].mean() > part["score"][~part["held"]].mean(), design


def test_images_are_asked_about_shifted_and_mirrored(tmp_path):
    designs = {score: DESIGN | {"canary": "blank", "score": score} for score in ("margin", "white_box")}
    designs["optimized"] = DESIGN | {"canary": "optimized", "score": "margin"}
    settings = settings_for("gaussian", designs, tmp_path, (1, 10, 10))
    frame = run(settings | {"architecture": {"name": "cnn_small"}}, tmp_path)
    assert np.isfinite(frame["score"]).all()
    assert frame["score"].nunique() > len(frame) / 2  # two blank canaries with the same labels score alike


@pytest.mark.parametrize("canary", ["gradient", pytest.param("natural", marks=pytest.mark.slow)])
def test_audits_of_persons_stay_below_the_claim_and_reach_most_of_it(canary, tmp_path):
    """A whole batch of 32 persons, one step a round: a Gaussian mechanism of known μ, seen step by step.

    The bound of a correct training lies above its claim once in twenty; the seed is fixed.
    """
    steps, claimed, models = 4, 4.0, 1500
    sigma = np.sqrt(steps) / gaussian_mu(claimed, 1e-3)
    settings = settings_for("person", {}, tmp_path)
    settings["architecture"] = {"name": "softmax_regression"}
    settings["training"] |= {"optimizer": "sgd", "epochs": steps, "batch_size": 32, "evaluate_every": steps}
    settings["mechanism"] |= {"noise_multiplier": sigma, "clip_norm": 0.01}
    design = {"canaries": 1, "models": models, "design": "many_runs", "canary": canary, "relation": "presence"}
    frame = run(settings | {"designs": {"one": DESIGN | design}}, tmp_path)
    found = many_runs_bound(frame["score"].to_numpy(), frame["held"].to_numpy(), gaussian_dp(1e-3)).epsilon
    assert 0.8 * claimed <= found <= claimed
