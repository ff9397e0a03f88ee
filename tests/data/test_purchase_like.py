"""Made-up baskets: the same bytes at every call, sizes and rates as the model says, classes as k-means finds them."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from dp_leakage.data import SOURCES, is_at_hand, load
from dp_leakage.data.sources import purchase, purchase_like
from dp_leakage.data.sources.purchase_like import ACTIVITY, BASKET, ITEMS, baskets, clusters, popularity

TWIN = {"source": "purchase_like", "customers": 1300, "items": 64, "classes": 10}  # of the scale smoke


@pytest.fixture(scope="module")
def many():
    return baskets(20_000, ITEMS, seed=1)


def test_the_same_bytes_at_every_call_on_any_number_of_threads(tmp_path):
    twin = load(TWIN, tmp_path)
    with threadpool_limits(2):
        again = load(TWIN, tmp_path)
    assert twin.sha256 == again.sha256
    assert np.array_equal(twin.x, again.x)
    assert not np.array_equal(baskets(100, 20, seed=1), baskets(100, 20, seed=2))


def test_the_twin_is_a_small_one_of_the_same_kind(tmp_path):
    raw = load(TWIN, tmp_path)
    assert raw.x.shape == (1300, 64)
    assert set(np.unique(raw.x)) == {0.0, 1.0}
    assert raw.x.any(axis=1).all()
    assert len(np.unique(raw.y)) == len(raw.class_names) == 10
    assert np.bincount(raw.y).min() >= 20
    assert "made-up" in raw.notes[0]


def test_rates_fall_and_add_up_to_the_mean_basket():
    rates = popularity(ITEMS)
    assert (np.diff(rates) < 0).all()
    assert rates.sum() == pytest.approx(BASKET)
    assert popularity(2 * ITEMS).sum() == pytest.approx(2 * BASKET)


def test_sizes_of_baskets_vary_as_activities_do(many):
    """Given the mean rates alone, an item is missing with probability (1 + m/ACTIVITY)^-ACTIVITY (the gamma's Laplace
    transform), and a basket without any item, as the sum of all rates has it, is left out.
    """
    bought = 1 - (1 + popularity(ITEMS) / ACTIVITY) ** -ACTIVITY
    empty = (1 + BASKET / ACTIVITY) ** -ACTIVITY
    assert many.sum(axis=1).mean() == pytest.approx(bought.sum() / (1 - empty), rel=0.03)
    assert many.sum(axis=1).std() > 3 * np.sqrt((bought * (1 - bought)).sum())  # far from items alone


@pytest.mark.parametrize(("likeness", "together"), [(2.0, True), (1e6, False)])
def test_the_less_alike_the_styles_the_more_of_the_baskets_varies_together(likeness, together, monkeypatch):
    """Of customers of one activity. Of 4,950 pairs of items that are bought independently by n customers the mean of
    n r², r their correlation, is 1 ± .02 (one standard deviation).
    """
    monkeypatch.setattr(purchase_like, "LIKENESS", likeness)
    monkeypatch.setattr(purchase_like, "ACTIVITY", 1e6)
    many = baskets(20_000, ITEMS, seed=1)
    r = np.corrcoef(many.T)[np.triu_indices(ITEMS, 1)]
    found = len(many) * np.mean(r**2)
    assert found > 1.2 if together else found == pytest.approx(1, abs=0.1)


def test_classes_are_those_of_k_means_written_anew():
    x = baskets(3000, 40, seed=3)
    found = clusters(x, 8)
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    centers = np.stack([unit[found == c].mean(axis=0) for c in range(8)])
    nearest = ((unit[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
    assert (nearest == found).mean() > 0.995  # a fixed point of Lloyd's steps, but for its tolerance
    assert adjusted_rand_score(nearest, found) > 0.99


def test_the_real_file_is_preferred_where_it_lies(tmp_path):
    real, twin = {"source": "purchase100"}, {"source": "purchase_like"}
    assert is_at_hand(twin, tmp_path)
    assert not is_at_hand(real, tmp_path)
    (tmp_path / "purchase100").mkdir()
    (tmp_path / "purchase100" / purchase.RELEASE.file).touch()
    assert is_at_hand(real, tmp_path)
    assert [name for name, source in SOURCES.items() if source.made_up] == ["purchase_like"]
    assert SOURCES["purchase100"].files == (purchase.TEXT_FILE, purchase.RELEASE.file)
