"""The audit against the real trainer: a correct mechanism passes, and planted bugs are found.

Each audit trains 400 softmax regressions with a canary and 400 with a blank record in its place. The canary has a
feature of its own and a gradient that is always clipped, so that its share of every step is known: the worst case.
"""

import numpy as np
import pytest
import torch

from dp_leakage.audits import approximate_dp, gaussian_dp, trials_bound
from dp_leakage.models.architectures import build
from dp_leakage.privacy.accounting.library import gaussian_epsilon, pld_epsilon
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.training import trainer
from dp_leakage.training.settings import TrainingSettings

GAUSSIAN = gaussian_dp(1e-3)
RECORDS, FEATURES, STEPS, CLIP, DELTA, MODELS = 10, 20, 10, 0.01, 1e-3, 400
SIGMA = 2 * np.sqrt(STEPS)  # full batches: a Gaussian mechanism with μ = 1/2
CLAIMED = gaussian_epsilon(SIGMA, DELTA, STEPS)


def canary_scores(canary, first_seed, mechanism, steps=STEPS, batch_size=RECORDS, records=RECORDS, scale=1.0):
    """(MODELS,) how far each trained model leans to the canary's class on its own feature."""
    rng = np.random.default_rng(0)
    x = (0.3 * rng.normal(size=(records, FEATURES))).astype(np.float32)
    x[:, 0], x[-1] = 0, 0
    x[-1, 0] = canary
    y = rng.integers(2, size=records)
    y[-1] = 1
    # The canary moves the parameters by learning_rate · CLIP / batch_size a step: 1 in all.
    settings = TrainingSettings(
        optimizer="sgd",
        learning_rate=scale * batch_size / (steps * CLIP),
        epochs=steps if batch_size == records else 1,
        batch_size=batch_size,
        evaluate_every=steps,
    )
    ensemble, _ = trainer.train(
        build("softmax_regression", (FEATURES,), 2),
        torch.from_numpy(x),
        torch.from_numpy(y),
        torch.arange(records).expand(MODELS, -1),
        range(first_seed, first_seed + MODELS),
        settings,
        mechanism,
    )
    weight = ensemble.parameters["0.weight"][:, :, 0]
    return (weight[:, 1] - weight[:, 0]).numpy()


def audit(mechanism, seed=0, claim=GAUSSIAN, canary=1.0, **training):
    present = canary_scores(canary, 1 + 10_000 * seed, mechanism, **training)
    absent = canary_scores(0.0, 5001 + 10_000 * seed, mechanism, **training)
    return trials_bound(present, absent, claim, seed).epsilon


def full_batches(sigma, **changes):
    return Mechanism(**({"sampler": "poisson", "noise_multiplier": sigma, "clip_norm": CLIP} | changes))


def test_a_correct_mechanism_passes_and_the_audit_is_not_empty():
    found = audit(full_batches(SIGMA / 4))
    assert 0.5 < found <= gaussian_epsilon(SIGMA / 4, DELTA, STEPS)
    assert audit(full_batches(SIGMA)) <= CLAIMED


BUGS = {
    "noise forgotten": (full_batches(0.0), {}),
    "noise scaled by the batch size": (full_batches(SIGMA / RECORDS), {}),
    # The mean is clipped and noised as if it were a mean of clipped gradients: a large gradient then has it to itself.
    "batches clipped instead of examples": (
        full_batches(SIGMA / RECORDS, unit="batch"),
        {"scale": 1 / RECORDS, "canary": 5.0},
    ),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(bug):
    mechanism, training = BUGS[bug]
    assert audit(mechanism, **training) > CLAIMED


def test_a_sampler_that_always_draws_the_same_batch_is_found(monkeypatch):
    """One step at rate 1/50 is claimed; with the sampler's seed fixed, the canary may always be in."""
    mechanism = full_batches(0.5)
    claimed = pld_epsilon(1 / 50, 0.5, DELTA, 1, "replace_one")
    drawn = trainer.draw_epoch

    def found():
        training = {"steps": 1, "batch_size": 1, "records": 50}
        present, absent = (canary_scores(value, seed, mechanism, **training) for value, seed in ((1.0, 1), (0.0, 5001)))
        return trials_bound(present, absent, approximate_dp(DELTA), seed=0).epsilon

    def with_seed(seed):
        def same(*arguments, **named):
            return drawn(*arguments[:5], torch.Generator().manual_seed(seed), *arguments[6:], **named)[:1]

        return same

    monkeypatch.setattr(trainer, "draw_epoch", lambda *arguments, **named: drawn(*arguments, **named)[:1])
    assert found() <= claimed
    rows = torch.arange(50)
    holding = next(s for s in range(1000) if 49 in with_seed(s)("poisson", "example", rows, 1, rows, None, None)[0][0])
    monkeypatch.setattr(trainer, "draw_epoch", with_seed(holding))
    assert found() > claimed


@pytest.mark.slow
def test_a_correct_mechanism_passes_at_the_stated_rate():
    """Of 60 audits at 95 %, more than 9 above the claim happen once in 1,000 runs."""
    found = [audit(full_batches(SIGMA), seed) for seed in range(60)]
    assert np.sum(np.array(found) > CLAIMED) <= 9
