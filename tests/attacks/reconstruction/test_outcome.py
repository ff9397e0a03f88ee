"""How close images come."""

from itertools import combinations, permutations

import numpy as np
import pytest
import torch
from scipy.stats import norm
from skimage.metrics import structural_similarity

from dp_leakage.attacks.reconstruction.outcome import matched, outcome
from dp_leakage.attacks.reconstruction.recognition import most_recognized, recognized
from dp_leakage.attacks.reconstruction.released import released, victims
from dp_leakage.privacy.mechanism import Mechanism

PLAIN = {"weights": ["trained"], "batch": 1, "candidates": None}


def test_measures_are_the_textbooks_in_stated_spaces(models, pictures):
    x, y = victims(pictures, 4, "iga")
    settings = PLAIN | {"weights": ["trained", "initial"]}
    rebuilt = [(s, x + 0.1 * (i + 1)) for i, s in enumerate(released(models("mlp"), x, y, settings, 0, "iga"))]
    frame, images = outcome(pictures, x, rebuilt, settings, None)
    made = (x + 0.1).clamp(0, 1).numpy()
    np.testing.assert_array_equal(images["weights=trained"][0], made)
    trained = frame[frame["weights"] == "trained"]
    error = (made - x.numpy()) ** 2
    np.testing.assert_allclose(trained["mse"], error.mean(axis=(1, 2, 3)), rtol=1e-5)
    spread = pictures.x[pictures.roles["target_members"]].std(axis=(0, 2, 3))
    expected = (error.mean(axis=(2, 3)) / spread**2).mean(axis=1)
    np.testing.assert_allclose(trained["mse_standardized"], expected, rtol=1e-5)
    first = structural_similarity(x[0].numpy(), made[0], data_range=1, channel_axis=0)
    assert trained["ssim"].iloc[0] == pytest.approx(first)


def test_diverged_pixels_are_gray(models, pictures):
    x, y = victims(pictures, 4, "iga")
    (seen,) = released(models("mlp"), x, y, PLAIN, 0, "iga")
    frame, _ = outcome(pictures, x, [(seen, torch.full_like(x, torch.nan))], PLAIN, None)
    assert frame["mse"].notna().all()


def test_the_frame_says_which_images_one_gradient_shows(models, pictures):
    x, y = victims(pictures, 4, "iga")
    (seen,) = released(models("mlp"), x, y, PLAIN | {"batch": 2}, 0, "iga")
    frame, _ = outcome(pictures, x, [(seen, x)], PLAIN | {"batch": 2}, None)
    assert frame["gradient"].tolist() == [0, 0, 1, 1]


def test_images_of_a_batch_are_assigned_to_originals_as_by_trying_every_order():
    rng = np.random.default_rng(4)
    truth, made = rng.uniform(size=(2, 8, 1, 3, 3))
    found = matched(made, truth, 4)
    for rows in (slice(0, 4), slice(4, 8)):
        orders = [made[rows][list(order)] for order in permutations(range(4))]
        best = min(orders, key=lambda order: ((order - truth[rows]) ** 2).sum())
        np.testing.assert_array_equal(found[rows], best)


def test_a_record_is_recognized_if_it_comes_nearest_to_any_image_of_its_batch():
    truth, others = np.array([[0.0], [1.0], [5.0], [6.0]]), np.array([[3.0], [9.0]])
    made = np.array([[1.1], [0.2], [8.0], [3.1]])
    np.testing.assert_array_equal(recognized(made, truth, others, 2, candidates=3), [1, 1, 0, 0])


@pytest.mark.parametrize("candidates", [2, 4, 7])
def test_the_chance_to_be_recognized_is_the_share_of_all_sets_of_candidates(candidates):
    rng = np.random.default_rng(6)
    truth, made, others = rng.uniform(size=(4, 2)), rng.uniform(size=(4, 2)), rng.uniform(size=(6, 2))
    right = [recognized(made, truth, others[list(of)], 2, candidates) for of in combinations(range(6), candidates - 1)]
    assert set(np.unique(right)) <= {0, 1}
    np.testing.assert_allclose(recognized(made, truth, others, 2, candidates), np.mean(right, axis=0))


def test_images_that_say_nothing_recognize_as_many_records_as_a_guess():
    """If all records met the same other candidate, all or none of them could be recognized. 5 deviations, 20 draws."""
    rng = np.random.default_rng(7)
    members = rng.uniform(size=(1_100, 1)) * np.ones(8)
    for gray in rng.uniform(size=20):
        said = recognized(np.full((100, 8), gray), members[:100], members[100:], 1, candidates=2)
        assert said.mean() == pytest.approx(0.5, abs=0.15)


@pytest.mark.parametrize(
    ("mechanism", "weights", "most"),
    [
        (Mechanism(noise_multiplier=2.0), "initial", norm.cdf(norm.ppf(0.1) + 1 / 2)),
        (Mechanism(noise_multiplier=2.0, unit="batch"), "initial", norm.cdf(norm.ppf(0.1) + 1)),
        (Mechanism(noise_multiplier=2.0), "trained", 1.0),
        (Mechanism(noise="none"), "initial", 1.0),
        (Mechanism(noise="vmf", bound="normalize", kappa=1.0), "initial", 1.0),
        (None, "initial", 1.0),
    ],
)
def test_the_limit_of_one_step_is_the_closed_form_where_one_is_known(mechanism, weights, most):
    assert most_recognized(mechanism, 10, weights) == pytest.approx(most)


def test_the_best_attacker_of_one_step_reaches_less_than_the_limit_and_near_it():
    """Ten orthogonal gradients of length C. 20,000 draws: the limit is exceeded in one of 10,000 seeds at most."""
    sums = 0.5 * np.random.default_rng(5).standard_normal((20_000, 10))
    sums[:, 0] += 1
    right = (sums.argmax(1) == 0).mean()
    limit = most_recognized(Mechanism(noise_multiplier=0.5), 10, "initial")
    assert 0.7 * limit < right <= limit + 3.7 * np.sqrt(limit * (1 - limit) / 20_000)
