"""A training by Opacus with a target ε, as `dp-leakage audit` calls it.

``make_private_with_epsilon`` searches the noise for the target in every call. The search takes much longer than this
training, so it is done once, before the first call; `train_slowly` is the usual way.
"""

import warnings
from functools import cache

import torch
from opacus import PrivacyEngine
from opacus.accountants.utils import get_noise_multiplier
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EPSILON, DELTA, EPOCHS, BATCHES = 2.0, 1e-5, 2, 5
RECORDS = 100  # a constant: the number of records that a call gets tells whether the canary is there


@cache
def noise_multiplier():
    """The noise for the target ε. Rate and steps are constants, so one search is enough."""
    return get_noise_multiplier(
        target_epsilon=EPSILON, target_delta=DELTA, sample_rate=1 / BATCHES, epochs=EPOCHS, accountant="rdp"
    )


def train(x, y, seed):
    """A function: records (m, features) → logits (m, classes)."""
    return _trained(x, y, seed, noise_multiplier=noise_multiplier())


def train_slowly(x, y, seed):
    """The same with a search in each call."""
    return _trained(x, y, seed, target_epsilon=EPSILON, target_delta=DELTA, epochs=EPOCHS)


def _trained(x, y, seed, **budget):
    torch.manual_seed(seed)
    data = TensorDataset(torch.tensor(x).flatten(1), torch.tensor(y))
    model = nn.Linear(data.tensors[0].shape[1], 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    # One batch more or less would tell the number of records: the loader always has as many batches.
    loader = DataLoader(data, batch_size=-(-len(data) // BATCHES))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        engine = PrivacyEngine(accountant="rdp")
        make = engine.make_private_with_epsilon if "epochs" in budget else engine.make_private
        model, optimizer, loader = make(
            module=model, optimizer=optimizer, data_loader=loader, max_grad_norm=1.0, **budget
        )
    optimizer.expected_batch_size = RECORDS / BATCHES
    for _ in range(EPOCHS):
        for records, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(records), labels).backward()
            optimizer.step()

    def logits(records):
        with torch.no_grad():
            return model._module(torch.tensor(records).flatten(1)).numpy()

    return logits
