"""Models whose gradients are attacked before they have trained: the noise is that of the training, which is not run."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from asked import noise_multiplier

from dp_leakage.attacks import ATTACKS
from dp_leakage.common.identity import identity
from dp_leakage.common.yaml_files import read_yaml
from dp_leakage.data.dataset import Dataset
from dp_leakage.provenance.files import write_arrays
from dp_leakage.steps import attack_models, train
from dp_leakage.steps._data import arrays_of
from dp_leakage.steps._untrained import untrained
from dp_leakage.study.file import load_studies
from dp_leakage.study.steps import STEPS, Job

REPO = Path(__file__).parents[2]
JOB = Job("digits", "mlp", attack="iga")
ITERATED = {"images": 3, "steps": 4}


def study_of(tmp_path, **changes):
    """The tests' quickstart with attacks on gradients of pixels, and other changes."""
    spec = yaml.safe_load((REPO / "tests" / "studies" / "quickstart.yaml").read_text())
    spec["datasets"]["digits"].pop("projection")
    spec |= {"attacks": {"iga": ITERATED, "dlg": {"weights": ["initial", "trained"]}}, "figures": {}}
    spec["training"] |= changes.pop("training", {})
    (tmp_path / "quickstart.yaml").write_text(yaml.safe_dump(spec | changes))
    return load_studies(read_yaml(REPO / "config.yaml"), [tmp_path / "quickstart.yaml"])["quickstart"]


def found(study, defense, attack="iga"):
    return STEPS["attack"].settings(study, replace(JOB, defense=defense, attack=attack))


@pytest.fixture
def digits() -> Dataset:
    rng = np.random.default_rng(0)
    ends = {"target_members": (0, 200), "target_nonmembers": (200, 300)}
    roles = {name: np.arange(*end) for name, end in ends.items()}
    x = rng.uniform(size=(300, 1, 8, 8)).astype(np.float32)
    return Dataset(x, np.arange(300) % 10, roles, np.array([], dtype=np.int64))


def test_an_attack_on_initial_weights_reads_no_models_and_others_do(tmp_path):
    study = study_of(tmp_path)
    job = replace(JOB, defense="gaussian-rdp-eps=1")
    assert "target" not in STEPS["attack"].reads(study, job)
    assert STEPS["attack"].reads(study, replace(job, attack="dlg"))["target"].name == "target.safetensors"


def test_only_what_decides_the_noise_makes_it_another_attack(tmp_path):
    before = {defense: identity(found(study_of(tmp_path), defense)) for defense in ("none", "gaussian-rdp-eps=1")}
    rate = study_of(tmp_path, training={"learning_rate": 0.5, "evaluate_every": 20})
    longer = study_of(tmp_path, training={"epochs": 61})
    for defense, old in before.items():
        assert identity(found(rate, defense)) == old
        assert identity(found(longer, defense)) != old


def test_they_have_the_noise_that_solves_for_the_budget_of_the_training(tmp_path, digits):
    own = untrained(found(study_of(tmp_path), "gaussian-rdp-eps=1")["untrained"], digits, 5)
    schedule = {"epochs": 60, "batch_size": 50, "dataset_size": 200}
    expected = noise_multiplier("rdp", epsilon=1.0, delta=1e-5, sampler="poisson", **schedule)
    assert own.mechanism.noise_multiplier == expected
    assert own.size == 3
    assert own.parameters["1.weight"].shape == (3, 64, 64)
    again = untrained(found(study_of(tmp_path), "gaussian-rdp-eps=1")["untrained"], digits, 5)
    assert all(torch.equal(again.parameters[name], value) for name, value in own.parameters.items())


def test_the_attack_finds_what_it_would_beside_trained_models(tmp_path, digits):
    """Of the trained models it takes nothing but the layers and the noise."""
    study, defense = study_of(tmp_path, repeats=2, training={"epochs": 1}), "gaussian-rdp-eps=1"
    settings, data = found(study, defense), tmp_path / "data.npz"
    trained = STEPS["train_target"].settings(study, replace(JOB, defense=defense))
    write_arrays(data, arrays_of(digits), {"identity": trained["data"]})
    models, rest = tmp_path / "target.safetensors", [tmp_path / name for name in ("history.parquet", "timing.json")]
    train.main(trained, data, models, *rest, device="cpu", checkpoint_seconds=60.0)
    frames = []
    for target in (None, models):
        inputs = {"inputs": settings["inputs"] | {"target": identity(trained)}}
        scores = tmp_path / "iga.parquet"
        attack_models.main(settings | inputs, data, scores, target, tmp_path / "iga.npz", "cpu")
        frames.append(pd.read_parquet(scores))
    pd.testing.assert_frame_equal(*frames, check_exact=True)
    assert len(frames[0]) == 2 * ITERATED["images"]
    assert ATTACKS["iga"].settings["weights"] == ["initial"]
