"""Planted bugs of noise and clipping, each audited twenty times: all are found, and the correct training is not."""

import numpy as np
import pytest
import torch

from dp_leakage.audits import gaussian_dp, many_runs_bound
from dp_leakage.audits.claims import gaussian_mu
from dp_leakage.data.canaries import place
from dp_leakage.data.dataset import Dataset
from dp_leakage.models.architectures import build
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.training.planted import BUGS
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.trainer import train
from dp_leakage.training.watch import Watch

CLAIMED, DELTA, STEPS, RECORDS, MODELS, AUDITS = 3.0, 1e-5, 4, 20, 200, 20
MU = gaussian_mu(CLAIMED, DELTA)
ROLES = {"target_members": np.arange(RECORDS), "target_nonmembers": np.arange(RECORDS)}
X = np.random.default_rng(0).normal(size=(RECORDS, 5)).astype(np.float32)
DATA = Dataset(X, np.arange(RECORDS) % 3, ROLES, np.array([], dtype=np.int64))
FULL = Mechanism("shuffle", noise_multiplier=np.sqrt(STEPS) / MU, clip_norm=0.1)


def bounds(bug):
    """Lower bounds of twenty audits with seeds of their own."""
    placed = place(DATA, "feature", 1, False, 0)
    x, y = torch.from_numpy(placed.x), torch.from_numpy(placed.y)
    layers = build("softmax_regression", tuple(x.shape[1:]), 3)
    done = FULL if bug is None else BUGS[bug](FULL, RECORDS)
    settings = TrainingSettings("sgd", 1.0, epochs=STEPS, batch_size=RECORDS, evaluate_every=STEPS)
    found = []
    for audit in range(AUDITS):
        held = np.random.default_rng(audit).random(MODELS) < 0.5
        rows = np.where(held, placed.held, placed.other)[:, None]
        subsets = torch.from_numpy(np.concatenate([np.tile(placed.fixed, (MODELS, 1)), rows], axis=1))
        rows_of = torch.from_numpy(placed.held), torch.from_numpy(placed.other)
        watch = Watch(placed.first, *rows_of, claimed=FULL)
        seeds = range(audit * MODELS, (audit + 1) * MODELS)
        train(layers, x, y, subsets, seeds, settings, done, watch=watch)
        found.append(many_runs_bound(watch.scores[:, 0].numpy(), held, gaussian_dp(DELTA)).epsilon)
    return np.array(found)


@pytest.mark.slow
@pytest.mark.parametrize("bug", ["noise_forgotten", "noise_divided_twice", "batch_clipped"])
def test_a_planted_bug_is_found_in_twenty_of_twenty(bug):
    assert (bounds(bug) > CLAIMED).all()


@pytest.mark.slow
def test_the_correct_training_is_refuted_at_the_stated_rate_at_most():
    """Of 20 audits at 95 %, more than 5 above the claim happen once in 3,000 runs."""
    assert (bounds(None) > CLAIMED).sum() <= 5
