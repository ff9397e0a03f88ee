"""A data set whose features are learned, on the real Snakefile: what runs, and what an edit reruns."""

from collections import Counter

import numpy as np
import pytest
from sklearn.datasets import load_digits

NETWORK = {"name": "cnn", "channels": [4, 8], "dense": 16}
TRAINING = {"optimizer": "sgd", "learning_rate": 0.1, "epochs": 2, "batch_size": 50}
LEARNED = {"source": {"path": "public.npz"}, "architecture": NETWORK, "training": TRAINING}
ROLES = {"target_members": 300, "target_nonmembers": 300, "shadow_pool": 200, "reference_pool": None}
DATA = "results/quickstart-smoke/digits/data.npz"


def dataset(roles=ROLES, **learned):
    projection = {"method": "none", "components": None, "features": "learned", "learned_on": LEARNED | learned}
    return {"digits": {"source": {"path": "mine.npz"}, "roles": roles, "projection": projection}}


@pytest.fixture
def own(unrun):
    bundle = load_digits()
    x = (bundle.images / 16).astype(np.float32)[:, None]
    for name, rows in (("mine", slice(0, 900)), ("public", slice(900, None))):
        np.savez(unrun.folder / f"{name}.npz", x=x[rows], y=bundle.target[rows])
    unrun.configure(datasets=dataset(), shadow={"count": 2, "size": 40})
    unrun.snakemake(DATA, "--cores", "1")
    return unrun


def test_only_what_a_change_reaches_is_learned_again(own):
    assert own.planned(DATA) == Counter()
    own.configure(datasets=dataset(layers="convolutions"))
    assert own.planned(DATA) == Counter(prepare_dataset=1, project_pca=1)
    own.configure(datasets=dataset(roles=ROLES | {"target_members": 280}))
    assert own.planned(DATA) == Counter(prepare_dataset=1, project_pca=1)
    own.configure(datasets=dataset(training=TRAINING | {"epochs": 3}))
    assert own.planned(DATA) == Counter(prepare_dataset=1, learn_features=1, project_pca=1)


def test_a_data_set_as_it_is_has_no_network_of_features(unrun):
    text = unrun.snakemake("results/quickstart-smoke/digits/features.safetensors", "-n", check=False)
    assert "error: " in text
    assert "key 'datasets.digits.projection.features' is not 'learned', so there is nothing to learn" in text
    assert "Traceback" not in text


def test_the_report_says_what_the_features_were_learned_from(own):
    own.run()
    page = (own.folder / "results/quickstart-smoke/report.html").read_text()
    assert "which learned from 897 records of npz" in page
    assert "Those records count as public: no ε is of them." in page
