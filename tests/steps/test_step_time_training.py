"""The timing step, run as the workflow runs it."""

import json
import subprocess
import sys

import numpy as np

from dp_leakage.provenance.files import read_table, write_arrays

TRAINING = {"optimizer": "sgd", "learning_rate": 0.1, "momentum": 0.0, "l2": 0.0, "epochs": 2, "batch_size": 20}
GAUSSIAN = {"sampler": "poisson", "unit": "example", "bound": "clip", "noise": "gaussian", "block": "whole"}
GAUSSIAN |= {"accountant": "rdp", "epsilon": 5.0, "noise_multiplier": None, "delta": 1e-5, "clip_norm": 1.0}
GAUSSIAN |= {"rdp_sigma": "calibrated_tight", "settings": {}}


def test_every_defense_is_timed_in_every_round_and_rivals_beside_two_of_them(tmp_path):
    rng = np.random.default_rng(0)
    roles = {"target_members": np.arange(80), "target_nonmembers": np.arange(80, 100)}
    features = {"x": rng.uniform(size=(100, 1, 8, 8)).astype(np.float32), "y": np.arange(100) % 4}
    arrays = features | {"sensitive": np.array([], dtype=np.int64)} | roles
    write_arrays(tmp_path / "data.npz", arrays, {"identity": "data"})
    cell = {"engine": "ensemble", "architecture": {"name": "cnn", "channels": [2, 2, 2], "dense": 4}, "repeats": 1}
    cells = [
        cell | {"defense": name, "mechanism": mechanism, "dropout": dropout, "training": TRAINING}
        for name, mechanism, dropout in (
            ("none", None, 0.0),
            ("gaussian-rdp-eps=5", GAUSSIAN, 0.0),
            ("gaussian-rdp-eps=8", GAUSSIAN | {"epsilon": 8.0}, 0.0),
            ("dropout", None, 0.2),
        )
    ]
    settings = {"rounds": 2, "records": 60, "n_records": 80, "cells": cells, "seed": 1, "data": "data"}
    timed = tmp_path / "timed.parquet"
    command = [sys.executable, "-m", "dp_leakage.steps.time_training", "--settings", json.dumps(settings)]
    command += ["--data", str(tmp_path / "data.npz"), "--timed", str(timed)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    frame, _ = read_table(timed)
    assert set(zip(frame["timed"], frame["engine"], strict=True)) == {
        *((entry["defense"], "ours") for entry in cells),
        ("none", "pytorch"),
        ("gaussian-rdp-eps=5", "opacus"),
    }
    assert frame.groupby(["timed", "engine"])["round"].apply(list).map(lambda rounds: rounds == [0, 1]).all()
    assert (frame["seconds"] > 0).all()
    assert set(frame["records"]) == {60}
