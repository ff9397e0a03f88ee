import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.preprocessing import MinMaxScaler, StandardScaler, normalize

from dp_leakage.common.errors import UserError
from dp_leakage.data import projection
from dp_leakage.data.dataset import Dataset
from dp_leakage.data.projection import (
    SENSITIVITY,
    apply,
    channel_moments,
    fit_pca,
    fit_private_pca,
    fit_private_scaling,
    noisy_second_moment,
    project,
    scale,
    unit_rows,
)
from dp_leakage.data.projection_settings import ProjectionSettings
from dp_leakage.data.scattering import scattering
from dp_leakage.study.cells import released_noise

X = load_digits().data.astype(np.float32) / 16
ALL = np.arange(len(X))


def dataset(x=X, sensitive=()):
    roles = {
        "target_members": np.arange(300),
        "target_nonmembers": np.arange(300, 600),
        "shadow_pool": np.arange(600, 1500),
    }
    return Dataset(x, load_digits().target.astype(np.int64), roles, np.array(sensitive, np.int64))


class TestPCA:
    @pytest.mark.parametrize("rows", [ALL, ALL[::3], ALL[:40]], ids=["many", "some", "fewer than features"])
    @pytest.mark.parametrize("whiten", [False, True])
    def test_is_scikit_learns(self, rows, whiten):
        oracle = PCA(20, whiten=whiten, svd_solver="full").fit(X[rows].astype(np.float64))
        fitted = fit_pca(X, rows, 20)
        np.testing.assert_allclose(fitted.mean, oracle.mean_, atol=1e-12)
        np.testing.assert_allclose(fitted.variance, oracle.explained_variance_, rtol=1e-9)
        np.testing.assert_allclose(fitted.components, oracle.components_, atol=1e-8)
        np.testing.assert_allclose(apply(X, fitted, whiten), oracle.transform(X), atol=2e-5)

    def test_does_not_depend_on_the_chunks_beyond_rounding(self, monkeypatch):
        whole = fit_pca(X, ALL, 10)
        monkeypatch.setattr(projection, "CHUNK", 37)
        chunked = fit_pca(X, ALL, 10)
        np.testing.assert_allclose(chunked.components, whole.components, atol=1e-10)
        np.testing.assert_allclose(
            fit_pca(X, ALL[:50], 10).variance, PCA(10).fit(X[:50]).explained_variance_, rtol=1e-5
        )

    def test_components_are_orthonormal_with_their_largest_entry_positive(self):
        for fitted in (fit_pca(X, ALL, 30), fit_pca(X, ALL[:40], 30), fit_private_pca(X, ALL, 30, 2.0, 0)):
            np.testing.assert_allclose(fitted.components @ fitted.components.T, np.eye(30), atol=1e-9)
            largest = np.abs(fitted.components).argmax(axis=1)
            assert (fitted.components[np.arange(30), largest] > 0).all()

    def test_takes_images_as_rows(self):
        images = X.reshape(-1, 1, 8, 8)
        np.testing.assert_array_equal(fit_pca(images, ALL, 5).components, fit_pca(X, ALL, 5).components)
        assert apply(images, fit_pca(images, ALL, 5)).shape == (1797, 5)

    def test_memory_stays_far_below_a_float64_copy(self):
        import tracemalloc

        x = np.random.default_rng(0).standard_normal((60_000, 40), np.float32)
        tracemalloc.start()
        fit_pca(x, np.arange(len(x)), 5)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 0.5 * 2 * x.nbytes

    @pytest.mark.parametrize(
        ("rows", "k", "words"),
        [
            (ALL, 65, ["components: 65", "64 features", "1 to 64"]),
            (ALL[:10], 10, ["components: 10", "10 records", "1 to 9"]),
            (ALL, 0, ["components: 0"]),
            (np.array([0, 0, 0, 1, 1, 2]), 4, ["components: 4", "2 directions"]),
            (ALL, 63, ["components: 63", "61 directions"]),
        ],
    )
    def test_more_components_than_the_records_span_are_refused(self, rows, k, words):
        with pytest.raises(UserError) as refusal:
            fit_pca(X, rows, k)
        for word in words:
            assert word in str(refusal.value)

    def test_matrices_too_large_are_refused(self, monkeypatch):
        monkeypatch.setattr(projection, "MAX_SQUARE", 50)
        with pytest.raises(UserError, match="up to 50"):
            fit_pca(X, ALL, 3)
        with pytest.raises(UserError, match="up to 50"):
            fit_private_pca(X, ALL, 3, 1.0, 0)


class TestPrivatePCA:
    def test_without_noise_it_is_the_uncentered_pca_of_unit_rows(self):
        unit = normalize(X.astype(np.float64))
        moment = noisy_second_moment(X, ALL, 0.0, 0)
        np.testing.assert_allclose(moment, unit.T @ unit, atol=1e-9)
        _, _, directions = np.linalg.svd(unit, full_matrices=False)
        fitted = fit_private_pca(X, ALL, 10, 0.0, 0)
        np.testing.assert_allclose(np.abs(fitted.components @ directions[:10].T), np.eye(10), atol=1e-8)
        np.testing.assert_array_equal(fitted.mean, 0)

    def test_without_noise_it_is_scikit_learns_pca_of_records_and_their_opposites(self):
        unit = normalize(X.astype(np.float64))
        oracle = PCA(10, svd_solver="full").fit(np.vstack([unit, -unit]))  # whose mean is zero, so nothing is centered
        fitted = fit_private_pca(X, ALL, 10, 0.0, 0)
        np.testing.assert_allclose(np.abs(fitted.components @ oracle.components_.T), np.eye(10), atol=1e-8)
        np.testing.assert_allclose(fitted.variance, oracle.explained_variance_ * (2 * len(X) - 1) / (2 * len(X)))
        projected = apply(X, fitted)
        np.testing.assert_allclose(np.abs(projected), np.abs(X @ oracle.components_.T), atol=2e-5)

    def test_the_noise_is_symmetric_gaussian_of_the_given_deviation(self):
        # Three chi-square and KS checks at 1e-4 each on a fixed seed: false alarm rate 3e-4.
        noise = 3.5
        added = noisy_second_moment(X, ALL, noise, 11) - noisy_second_moment(X, ALL, 0.0, 11)
        np.testing.assert_allclose(added, added.T, atol=1e-12)
        for part in (added[np.triu_indices(64, 1)], np.diag(added)):
            statistic = (part**2).sum() / noise**2
            assert 1e-4 < stats.chi2(len(part)).cdf(statistic) < 1 - 1e-4
        assert stats.kstest(added[np.triu_indices(64)] / noise, "norm").pvalue > 1e-4

    def test_the_noise_depends_on_the_seed_alone(self):
        first = noisy_second_moment(X, ALL, 1.0, 1)
        np.testing.assert_array_equal(first, noisy_second_moment(X, ALL, 1.0, 1))
        assert not np.allclose(first, noisy_second_moment(X, ALL, 1.0, 2))

    def test_no_record_moves_the_upper_triangle_by_more_than_the_stated_sensitivity(self):
        def triangle(x):
            return noisy_second_moment(x, np.arange(len(x)), 0.0, 0)[np.triu_indices(x.shape[1])]

        rng = np.random.default_rng(3)
        base = rng.standard_normal((20, 6)).astype(np.float32)
        extremes = [np.eye(6, dtype=np.float32)[:1] * 1e6, np.eye(6, dtype=np.float32)[1:2] * 1e-6]
        others = [*extremes, *rng.standard_normal((50, 1, 6)).astype(np.float32)]
        added = [np.linalg.norm(triangle(np.vstack([base, other])) - triangle(base)) for other in others]
        assert max(added) <= SENSITIVITY["add_remove"] + 1e-9
        assert max(added) > 0.999
        swaps = [
            np.linalg.norm(triangle(np.vstack([base, a])) - triangle(np.vstack([base, b])))
            for a in others
            for b in others
        ]
        assert max(swaps) <= SENSITIVITY["replace_one"] + 1e-9
        assert max(swaps) > 0.999 * np.sqrt(2)

    def test_more_noise_finds_worse_directions(self):
        total = (normalize(X) ** 2).sum()
        unit = normalize(X)

        def captured(noise):
            return (apply(unit, fit_private_pca(X, ALL, 10, noise, 5)) ** 2).sum() / total

        assert captured(0) > captured(50) + 0.01 > captured(5000) + 0.02

    def test_whitening_a_component_without_positive_variance_is_refused(self):
        fitted = fit_private_pca(X, ALL, 60, 1000.0, 0)
        with pytest.raises(UserError, match="whiten"):
            apply(X, fitted, whiten=True)

    def test_a_negative_noise_is_refused(self):
        with pytest.raises(UserError, match="noise: -1"):
            noisy_second_moment(X, ALL, -1.0, 0)


class TestScaling:
    rows = ALL[100:400]

    def test_standard_is_scikit_learns_where_features_vary(self):
        oracle = StandardScaler().fit(X[self.rows].astype(np.float64))
        vary = X[self.rows].std(axis=0) > 0
        np.testing.assert_allclose(scale(X, self.rows, "standard")[:, vary], oracle.transform(X)[:, vary], atol=1e-5)

    def test_range_is_scikit_learns(self):
        oracle = MinMaxScaler().fit(X[self.rows].astype(np.float64))
        np.testing.assert_allclose(scale(X, self.rows, "range"), oracle.transform(X), atol=1e-6)

    def test_columns_of_zeros_and_ones_are_not_standardized_whatever_stands_beside_them(self):
        flags = (np.random.default_rng(3).random((len(X), 2)) < (0.02, 0.5)).astype(np.float32)
        mixed = np.column_stack([X[:, 10:14], flags])
        scaled = scale(mixed, self.rows, "standard")
        assert (scaled[:, 4:] == flags).all()
        assert scaled[self.rows, :4].std(axis=0) == pytest.approx(np.ones(4), abs=1e-4)
        _, (note,) = project(dataset(mixed), {"scale": "standard", "fit_on": ["target_members"]}, 0)
        assert note == "Features scaled (standard), fitted on 300 records; 2 of zeros and ones stay as they are."

    @pytest.mark.parametrize("how", ["standard", "range"])
    def test_a_constant_feature_becomes_zero(self, how):
        x = np.column_stack([X[:, 10], np.full(len(X), 1e6 + 0.1)]).astype(np.float32)
        np.testing.assert_allclose(scale(x, ALL, how)[:, 1], 0, atol=1e-6)

    def test_unit_rows_have_length_one_and_zero_rows_stay(self):
        x = np.vstack([X[:5], np.zeros((2, 64), np.float32)])
        unit, zeros = unit_rows(x)
        assert zeros == 2
        assert unit.dtype == np.float32
        np.testing.assert_allclose(unit, normalize(x), atol=1e-6)
        images, _ = unit_rows(x.reshape(-1, 1, 8, 8))
        np.testing.assert_array_equal(images.reshape(7, 64), unit)


class TestProject:
    def test_nothing_asked_for_changes_nothing(self):
        made, notes = project(dataset(sensitive=[3]), {}, 0)
        np.testing.assert_array_equal(made.x, X)
        assert notes == ()
        assert list(made.sensitive) == [3]

    @pytest.mark.parametrize("fit_on", ["all", ["shadow_pool"]])
    def test_pca_is_fitted_on_the_roles_named_and_rows_normalized_after(self, fit_on):
        rows = np.arange(1500) if fit_on == "all" else np.arange(600, 1500)
        settings = {"method": "pca", "components": 12, "row_norm": True, "fit_on": fit_on}
        made, notes = project(dataset(), settings, 0)
        oracle = normalize(PCA(12, svd_solver="full").fit(X[rows].astype(np.float64)).transform(X))
        np.testing.assert_allclose(made.x, oracle, atol=1e-4)
        assert made.x.dtype == np.float32
        assert any(f"{len(rows):,} records" in note for note in notes)
        assert list(made.roles) == list(dataset().roles)

    def test_constants_shift_and_stretch_every_value_and_look_at_no_record(self):
        made, notes = project(dataset(), {"mean_std": [0.1307, 0.3081]}, 0)
        np.testing.assert_allclose(made.x, (X - 0.1307) / 0.3081, rtol=1e-5, atol=1e-6)
        assert notes == ("0.1307 taken from every value, the rest divided by 0.3081.",)

    def test_constants_of_channels_come_before_scattering_and_means_then_have_signs(self):
        images = np.repeat(X.reshape(-1, 1, 8, 8), 3, axis=1) * np.array([1, 0.5, 0.25], np.float32)[:, None, None]
        constants = [[0.485, 0.456, 0.406], [0.229, 0.224, 0.225]]
        mean, std = np.array(constants)[:, :, None, None]
        features = scattering(((images - mean) / std).astype(np.float32))
        made, notes = project(dataset(images), {"mean_std": constants, "features": "scattering"}, 0)
        np.testing.assert_allclose(made.x, features, rtol=1e-5, atol=1e-5)
        assert notes[0] == (
            "0.485, 0.456, 0.406 taken from every value, the rest divided by 0.229, 0.224, 0.225 (by channel)."
        )
        settings = {"mean_std": constants, "features": "scattering", "scale": "private", "bounds": [9, 9], "noise": 1.0}
        normal, _ = project(dataset(images), settings, 0)
        shift, stretch = fit_private_scaling(made.x, np.arange(1500), [9, 9], 1.0, 0, signed=True)
        np.testing.assert_allclose(normal.x, (made.x - shift) / stretch, rtol=1e-5, atol=1e-5)
        assert (shift < -1).any()

    def test_private_pca_depends_on_the_seed(self):
        settings = {"method": "private_pca", "components": 5, "noise": 20.0}
        first, again, other = (project(dataset(), settings, seed)[0].x for seed in (1, 1, 2))
        np.testing.assert_array_equal(first, again)
        assert not np.allclose(first, other)

    def test_records_without_a_role_do_not_count(self):
        x = X.copy()
        x[1500:] = 1e6
        made, _ = project(dataset(x), {"method": "pca", "components": 3}, 0)
        clean, _ = project(dataset(), {"method": "pca", "components": 3}, 0)
        np.testing.assert_array_equal(made.x[:1500], clean.x[:1500])

    @pytest.mark.parametrize(
        ("settings", "words"),
        [
            ({"metod": "pca"}, ["'metod'", "did you mean 'method'"]),
            ({"method": "pcs"}, ["method", "'pcs'", "did you mean 'pca'"]),
            ({"scale": "minmax"}, ["scale", "'minmax'", "standard"]),
            ({"method": "pca"}, ["components is missing"]),
            ({"method": "private_pca", "components": 3}, ["noise is missing"]),
            (
                {"method": "private_pca", "components": 3, "noise": 1.0, "scale": "standard"},
                ["scale standard", "without privacy", "scale: none"],
            ),
            ({"scale": "private", "noise": 1.0}, ["bounds is missing", "scale private"]),
            ({"scale": "private", "noise": 1.0, "bounds": [1, 1]}, ["channels of images"]),
            ({"features": "scattering"}, ["needs images"]),
            ({"mean_std": [[0.1, 0.2], 1.0]}, ["mean_std lists 2 constants", "no channels"]),
            ({"groups": 2}, ["groups is 2", "no channels"]),
            ({"fit_on": ["target_member"]}, ["fit_on", "did you mean 'target_members'"]),
            # The second moment would hold each record twice, and its noise is for one.
            (
                {
                    "method": "private_pca",
                    "components": 3,
                    "noise": 1.0,
                    "fit_on": ["target_members", "target_members"],
                },
                ["fit_on names 'target_members' more than once"],
            ),
        ],
    )
    def test_wrong_settings_are_refused(self, settings, words):
        with pytest.raises(UserError) as refusal:
            project(dataset(), settings, 0)
        for word in words:
            assert word in str(refusal.value)

    def test_pca_over_sensitive_columns_is_refused(self):
        with pytest.raises(UserError, match="sensitive columns"):
            project(dataset(sensitive=[3]), {"method": "pca", "components": 3}, 0)


class TestPrivateScaling:
    @given(st.integers(0, 2**32 - 1), st.sampled_from([1e-30, 1e-3, 1.0, 1e30, np.inf]), st.booleans())
    def test_one_record_moves_the_sum_by_at_most_the_claim(self, seed, size, signed):
        rng = np.random.default_rng(seed)
        bounds = rng.uniform(0.01, 10, 2)
        with np.errstate(all="ignore"):
            x = (rng.standard_normal((2, 5, 3, 3)) * size).astype(np.float64)
            one, other = channel_moments(x, bounds, signed)
        assert np.linalg.norm(one) <= SENSITIVITY["add_remove"] + 1e-12
        assert np.linalg.norm(one - other) <= SENSITIVITY["replace_one"] + 1e-12

    @pytest.mark.parametrize("signed", [False, True])
    def test_records_that_lie_farthest_apart_reach_the_claim_and_no_more(self, signed):
        # Opposite means in one channel, and mean squares that lie in others of each record.
        x = np.zeros((2, 3, 1, 2))
        x[:, 0] = [[[1, 1]], [[-1, -1]]]
        x[0, 1], x[1, 2] = [100, -100], [100, -100]
        one, other = channel_moments(x, [1e-6, 1e-6], signed)
        expected = SENSITIVITY["replace_one"] if signed else np.sqrt(1.5)  # the mean below 0 counts as 0
        assert np.linalg.norm(one - other) == pytest.approx(expected, rel=1e-4)

    @pytest.mark.parametrize(("signed", "center"), [(False, 0.0), (True, 0.0), (True, 0.8)])
    def test_without_clipping_and_noise_it_is_the_mean_and_deviation_of_each_channel(self, signed, center):
        x = (np.random.default_rng(0).random((400, 3, 4, 4)) - center).astype(np.float32)
        shift, stretch = fit_private_scaling(x, np.arange(400), [100, 100], 1e-9, 0, signed)
        np.testing.assert_allclose(shift.ravel(), x.mean((0, 2, 3)), rtol=2e-6)
        np.testing.assert_allclose(stretch.ravel() ** 2, x.var((0, 2, 3), dtype=np.float64), rtol=1e-5)

    @pytest.mark.parametrize(("signed", "unit"), [(False, np.sqrt(2)), (True, 2.0)])
    def test_the_noise_has_the_claimed_deviation(self, signed, unit):
        x = np.zeros((10, 4000, 1, 1), np.float32)
        shift, _ = fit_private_scaling(x, np.arange(10), [2.0, 1.0], 3.0, 0, signed)
        # 4,000 means of N(0, (3·2·unit/10)²): their deviation lies within 5 % but once in 10^5.
        assert shift.std() == pytest.approx(3 * 2 * unit / 10, rel=0.05)

    def test_a_channel_that_is_lost_in_the_noise_stays_small_beside_one_that_is_not(self):
        images = X.reshape(-1, 1, 8, 8) * np.array([1, 0.01], np.float32)[:, None, None]
        noise = 2 * np.sqrt(2) / len(X)  # deviation of a mean square's
        assert images[:, 1].var() < noise / 100
        for seed in range(5):  # with a noisy variance below 0 and above
            settings = {"scale": "private", "bounds": [1, 1], "noise": 2.0}
            made, notes = project(dataset(images), settings, seed)
            assert made.x[:, 0].std() == pytest.approx(1, abs=0.05)
            assert made.x[:, 1].std() < 0.1
            assert "privately at noise multiplier 2," in notes[0]

    def test_a_variance_that_is_lost_in_the_noise_counts_as_zero(self):
        # The noise on the mean's square is far larger.
        _, stretch = fit_private_scaling(X.reshape(-1, 1, 8, 8), ALL, [1e4, 0.1], 1e3, 3)
        assert stretch.ravel() == pytest.approx([np.sqrt(1e3 * np.sqrt(2) * 0.1 / len(X))])

    @pytest.mark.parametrize("unit", [1e-3, 4.0, 255.0])
    def test_the_unit_of_the_pixels_changes_nothing_if_the_bounds_follow_it(self, unit):
        images = X.reshape(-1, 1, 8, 8) * np.array([1, 0.01, 0.2], np.float32)[:, None, None]
        settings = {"scale": "private", "bounds": [1, 0.5], "noise": 2.0}
        made, _ = project(dataset(images), settings, 0)
        other, _ = project(dataset(unit * images), settings | {"bounds": [unit, 0.5 * unit**2]}, 0)
        np.testing.assert_allclose(other.x, made.x, rtol=1e-4, atol=1e-5)

    def test_its_cost_is_composed_into_epsilon_as_the_private_pcas_is(self):
        settings = {"scale": "private", "bounds": [1, 1], "noise": 5.6, "fit_on": ["target_members"]}

        def noise(**changes):
            return released_noise(ProjectionSettings.read(settings | changes))

        assert noise() == noise(scale="none", method="private_pca") == 5.6
        assert noise(fit_on=["shadow_pool"]) is None
        assert noise(scale="standard") is None
