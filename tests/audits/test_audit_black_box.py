"""What the trained model alone gives away: canaries in one run from a random start, and what that run proves."""

import numpy as np
import pytest
import torch

from dp_leakage.attacks.queries import margins
from dp_leakage.audits import gaussian_dp, one_run_bound
from dp_leakage.audits.claims import gaussian_mu
from dp_leakage.data.canaries import place
from dp_leakage.data.dataset import Dataset
from dp_leakage.models.architectures import build
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.trainer import train
from dp_leakage.training.watch import WhiteBoxObserver

RECORDS, STEPS, CLAIMED, DELTA = 1000, 4, 10.0, 1e-5
ROLES = {"target_members": np.arange(RECORDS), "target_nonmembers": np.arange(RECORDS)}
X = np.random.default_rng(0).normal(size=(RECORDS, 20)).astype(np.float32)
DATA = Dataset(X, np.arange(RECORDS) % 10, ROLES, np.array([], dtype=np.int64))


@pytest.mark.slow
def test_one_run_from_a_random_start_proves_a_fifth_of_a_claim_of_ten_and_no_more_than_it():
    placed = place(DATA, "feature", RECORDS, False, 0)
    models = 4
    held = np.random.default_rng(1).random((models, RECORDS)) < 0.5
    subsets = torch.from_numpy(np.where(held, placed.held, placed.other))
    mechanism = Mechanism("shuffle", noise_multiplier=np.sqrt(STEPS) / gaussian_mu(CLAIMED, DELTA), clip_norm=0.1)
    settings = TrainingSettings("sgd", 1000.0, epochs=STEPS, batch_size=RECORDS, evaluate_every=STEPS)
    watch = WhiteBoxObserver(placed.first, torch.from_numpy(placed.held), torch.from_numpy(placed.other), scored=False)
    layers = build("softmax_regression", tuple(placed.x.shape[1:]), 10)
    x, y = torch.from_numpy(placed.x), torch.from_numpy(placed.y)
    trained, _ = train(layers, x, y, subsets, range(models), settings, mechanism, watch=watch)
    scores = margins(trained, placed.x[placed.held], placed.y[placed.held])
    found = one_run_bound(scores.ravel(), held.ravel(), gaussian_dp(DELTA)).epsilon
    assert 2 <= found <= CLAIMED
