"""The audit's step, run as the workflow runs it: classes as units, and gradient canaries where there can be some."""

import json
import subprocess
import sys

import numpy as np
import pytest

from dp_leakage.files import read_table, write_arrays

TRAINING = {"optimizer": "adam", "learning_rate": 0.01, "momentum": 0.0, "l2": 0.0, "epochs": 2, "batch_size": 20}
GROUPED = {"sampler": "class_poisson", "bound": "clip", "noise": "gaussian", "block": "whole", "rdp_sigma": None}
GROUPED |= {"accountant": "class_moments", "noise_multiplier": 2.0, "epsilon": None, "clip_norm": 1.0, "delta": 1e-3}
VMF = GROUPED | {"unit": "example", "sampler": "poisson", "bound": "normalise", "noise": "vmf", "kappa": 50.0}
VMF |= {"accountant": "vmf_rdp"}
MECHANISMS = {
    "none": (None, {"natural", "mislabelled", "gradient"}),
    "class": (GROUPED | {"unit": "class"}, {"natural", "mislabelled", "gradient"}),
    "subclass": (
        GROUPED | {"unit": "subclass", "k_sub": 3, "partition": "kmeans"},
        {"natural", "mislabelled", "gradient"},
    ),
    "vmf": (VMF, {"natural", "mislabelled"}),
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_model_tosses_a_coin_for_every_canary(name, tmp_path):
    mechanism, kinds = MECHANISMS[name]
    rng = np.random.default_rng(0)
    roles = {"target_members": np.arange(80), "target_nonmembers": np.arange(80, 160)}
    features = {"x": rng.normal(size=(160, 6)).astype(np.float32), "y": np.arange(160) % 4}
    arrays = features | {"sensitive": np.array([], dtype=np.int64)} | roles
    write_arrays(tmp_path / "data.npz", arrays, {"identity": "data"})
    settings = {"study": "s", "dataset": "d", "model": "m", "defense": name, "role": "audit", "engine": "ensemble"}
    settings |= {"architecture": {"name": "mlp", "hidden": [8]}, "dropout": 0.0, "repeats": 3, "seed": 1}
    settings |= {"training": TRAINING | {"evaluate_every": 2}, "mechanism": mechanism, "data": "data"}
    settings |= {"canaries": {"natural": 4, "mislabelled": 4, "gradient": 4}, "share": 0.5, "delta": 1e-3}
    scores = tmp_path / "audit.parquet"
    command = [sys.executable, "-m", "dp_leakage.steps.audit", "--settings", json.dumps(settings)]
    command += ["--data", str(tmp_path / "data.npz"), "--scores", str(scores)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    frame, _ = read_table(scores)
    assert set(frame["canary"]) == kinds
    assert len(frame) == 3 * 4 * len(kinds)
    assert np.isfinite(frame["score"]).all()
    assert 0 < frame["held"].mean() < 1
