"""A release of a model whose features were learned on public records: they are computed in the file."""

import json

import numpy as np
import onnxruntime
import pytest
import torch
from releasing import NOT_MEASURED
from safetensors.torch import load_file
from sklearn.datasets import load_digits
from torch.nn import functional

from dp_leakage.common.errors import UserError
from dp_leakage.models.layers import module
from dp_leakage.provenance.files import read_tensors
from dp_leakage.release.folder import MODEL, PRIVACY, WEIGHTS
from dp_leakage.release.make import release
from dp_leakage.release.network import RECORD
from dp_leakage.release.plan import study_named
from dp_leakage.release.verify import verify
from dp_leakage.steps import learn_features
from dp_leakage.study.steps.data import features_settings

TRAINING = {"optimizer": "sgd", "learning_rate": 0.1, "momentum": 0.9, "epochs": 2, "batch_size": 50}
LEARNED = {"source": {"path": "public.npz"}, "architecture": {"name": "cnn", "channels": [4, 8], "dense": 16}}
PROJECTION = {"features": "learned", "learned_on": LEARNED | {"training": TRAINING, "layers": "convolutions"}}


@pytest.fixture
def data(own, monkeypatch):
    bundle = load_digits()
    x = (bundle.images / 16).astype(np.float32)[:, None]
    for name, rows in (("mine", slice(0, 300)), ("public", slice(300, 900))):
        np.savez(own.folder / f"{name}.npz", x=x[rows], y=bundle.target[rows])
    monkeypatch.chdir(own.folder)
    roles = {"pool": 200, "target_nonmembers": 100}
    return own, x, lambda: own.study({"path": "mine.npz"}, roles, projection=PROJECTION)


def learn(own):
    """Has step ``learn_features`` write its file where the study has it."""
    study, _ = study_named("mine", "smoke")
    file = own.folder / "results" / "mine-smoke" / "mine" / "features.safetensors"
    file.parent.mkdir(parents=True)
    learn_features.main(features_settings(study, "mine"), file, "cpu", 60.0, own.folder)
    return file


def by_torch(x, features, plan, folder):
    """What PyTorch's own functions make of raw images, with the parameters of both files."""
    own = {name: torch.from_numpy(tensor[0]) for name, tensor in read_tensors(features)[0].items() if "." in name}
    z = torch.from_numpy(x)
    for place in sorted({int(name.split(".")[0]) for name in own})[:2]:
        z = functional.conv2d(z, own[f"{place}.weight"], own[f"{place}.bias"], padding=1)
        z = functional.max_pool2d(functional.relu(z), 2)
    network = module(plan.layers(plan.grid[0]))
    network.load_state_dict(load_file(folder / WEIGHTS))
    with torch.no_grad():
        return network.eval()(z).softmax(1).numpy()


def test_the_file_computes_the_features_and_says_what_they_were_learned_from(data, tmp_path):
    own, x, plan_of_study = data
    with pytest.raises(UserError, match=r"features\.safetensors is missing: .*; run `dp-leakage run mine`"):
        plan_of_study()
    file = learn(own)
    plan, folder = plan_of_study(), tmp_path / "model"
    release(plan, folder, 60.0, NOT_MEASURED)
    verify(folder)
    outside = json.loads((folder / PRIVACY).read_text())["outside"]
    assert any("the convolutions of a cnn, which learned from 600 records of npz" in words for words in outside)
    session = onnxruntime.InferenceSession((folder / MODEL).read_bytes(), providers=["CPUExecutionProvider"])
    (said,) = session.run(None, {RECORD: x[900:950]})  # raw images, which neither training saw
    np.testing.assert_allclose(said, by_torch(x[900:950], file, plan, folder), atol=1e-5)
    assert said.std(axis=0).max() > 1e-4  # it looks at them


def test_records_that_the_features_have_seen_are_not_released(data):
    own, x, plan_of_study = data
    np.savez(own.folder / "public.npz", x=x[290:900], y=load_digits().target[290:900])
    with pytest.raises(UserError, match="is missing"):
        plan_of_study()
    learn(own)
    with pytest.raises(UserError, match=r"datasets\.mine: 10 of its records are among those that its features"):
        plan_of_study()
