"""Synthetic baskets similar to Purchase-100, for runs of jayaraman2019 without its data, which cannot be downloaded.

**The model** is a latent class model (Lazarsfeld and Henry 1968: Latent Structure Analysis; of baskets: Grover and
Srinivasan 1987, J. Marketing Research 24(2)) of customers who buy more or less often (Ehrenberg 1959, Applied
Statistics 8(1): purchases are Poisson at a rate of the customer's own, which has a gamma distribution). A customer has
one of ``STYLES`` styles and an activity, gamma with mean 1 and shape ``ACTIVITY``. Given both, items are bought
independently, item j at the rate activity · (rate of the style for j), and a record says which were bought at all. Over
the styles the rate of item j is gamma with shape ``LIKENESS`` (the smaller, the further apart are the styles) and a
mean that falls with the item's rank as a power law (``POPULARITY``); these means add up to ``BASKET``. Styles are of
unequal size (Dirichlet, ``SIZES``). Customers who bought nothing are left out. The classes are not the styles: as in
the data's own making (jayaraman2019, section 4.1, and its code), k-means groups the baskets, each divided by its
length, into 100 classes.

It was fitted only to the paper's printed numbers: 200,000 records of 100 frequent items in 100 classes, and the four
accuracies without a defense on 10,000 records (softmax regression .942 on those and .695 on new ones, MLP .982 and
.605). The released file has 600 items, which ``items: 600`` would give. No number of a private model or an attack was
used, and none is compared: agreement would only repeat the fit.
"""

import hashlib
from pathlib import Path

import numpy as np

from dp_leakage.data.raw import Raw

SOURCE = {
    "summary": "made-up baskets in place of Purchase-100: a latent class model, and 100 classes by k-means",
    "made_up": True,
    "keys": {
        "customers": {
            "type": "integer",
            "minimum": 1,
            "description": "Number of synthetic customers with a purchase.",
        },
        "items": {"type": "integer", "minimum": 1, "description": "How many items there are."},
        "classes": {"type": "integer", "minimum": 2, "description": "How many clusters of customers become classes."},
    },
}

CUSTOMERS, ITEMS, CLASSES = 200_000, 100, 100
STYLES, SIZES, LIKENESS = 100, 5.0, 20.0
ACTIVITY, BASKET, POPULARITY = 0.5, 50.0, 1.0
SEED = 100
CHUNK = 10_000  # customers


def load(spec: dict, data_dir: Path) -> Raw:
    """Baskets (customers, items) of zeros and ones, and the cluster of each; the same at every call."""
    customers, items, classes = (
        spec.get(key, usual) for key, usual in (("customers", CUSTOMERS), ("items", ITEMS), ("classes", CLASSES))
    )
    x = baskets(customers, items, SEED)
    y = clusters(x, classes)
    names = tuple(f"item_{item}" for item in range(1, items + 1))
    note = f"{customers:,} made-up customers; their classes are {classes} k-means clusters of their baskets."
    sha256 = {"made-up baskets": hashlib.sha256(x.tobytes() + y.tobytes()).hexdigest()}
    return Raw(x, y, tuple(f"cluster_{c}" for c in range(classes)), names, notes=(note,), sha256=sha256)


def baskets(customers: int, items: int, seed: int) -> np.ndarray:
    """Draw baskets: float32 (customers, items) of zeros and ones, without empty rows."""
    rng = np.random.default_rng(seed)
    rates = rng.gamma(LIKENESS, popularity(items) / LIKENESS, size=(STYLES, items)).astype(np.float32)
    sizes = rng.dirichlet(np.full(STYLES, SIZES))
    x = np.empty((customers, items), np.float32)
    filled = 0
    while filled < customers:
        style = rng.choice(STYLES, CHUNK, p=sizes)
        activity = rng.gamma(ACTIVITY, 1 / ACTIVITY, CHUNK).astype(np.float32)
        bought = rng.random((CHUNK, items), dtype=np.float32) < -np.expm1(-activity[:, None] * rates[style])
        kept = bought[bought.any(axis=1)][: customers - filled]
        x[filled : filled + len(kept)] = kept
        filled += len(kept)
    return x


def popularity(items: int) -> np.ndarray:
    """Return the mean rate of each item in purchases per customer, float64 (items,), descending.

    The rates add up to ``BASKET`` for ``ITEMS`` items and scale with the number of items.
    """
    falling = np.arange(10.0, 10.0 + items) ** -POPULARITY
    return np.asarray(BASKET * items / ITEMS * falling / falling.sum())


def clusters(x: np.ndarray, classes: int) -> np.ndarray:
    """Return the k-means cluster of each basket, int64 (n,), of baskets (n, items) that are divided by
    their lengths.
    """
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    unit = x / np.sqrt(x.sum(axis=1, keepdims=True))
    with threadpool_limits(1):  # sums in another order would move baskets between clusters
        return KMeans(n_clusters=classes, random_state=0, n_init=1, max_iter=100).fit(unit).labels_.astype(np.int64)
