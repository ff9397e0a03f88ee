"""The published sets themselves, where copies of them lie beside the repository; their twins are in test_sources."""

import hashlib

import numpy as np
import pytest
from data_files import write_idx

from dp_leakage.data import load
from dp_leakage.data.projection import apply, fit_pca, unit_rows
from dp_leakage.data.splits import duplicates, split


@pytest.mark.parametrize(("name", "zeros"), [("mnist", 5923), ("fashion_mnist", 6000)])
def test_mnist_and_fashion_mnist_are_the_official_ones(name, zeros, shared, tmp_path):
    with np.load(shared / f"{name}.npz") as arrays:
        x, y, x_test, y_test = (arrays[key] for key in ("x_train", "y_train", "x_test", "y_test"))
    write_idx(tmp_path / name, x, y, x_test, y_test, packed=False)
    raw = load({"source": name}, tmp_path)
    assert raw.x.shape == (70_000, 1, 28, 28)
    assert np.bincount(raw.y[raw.given["train"]])[0] == zeros
    np.testing.assert_array_equal(np.rint(raw.x[:, 0] * 255).astype(np.uint8), np.concatenate([x, x_test]))
    # The MD5 of the official training images, uncompressed, begins so.
    official = {"mnist": "6bbc9ace", "fashion_mnist": "f4a8712d"}[name]
    content = (tmp_path / name / "train-images-idx3-ubyte").read_bytes()
    assert hashlib.md5(content).hexdigest().startswith(official)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mnist", "fashion_mnist"])
def test_their_gzipped_files_read_alike(name, unpacked):
    raw = load({"source": name}, unpacked(name))
    assert raw.x.shape == (70_000, 1, 28, 28)
    assert len(raw.sha256) == 4


def test_the_same_mnist_reads_alike_as_the_users_npz(shared):
    raw = load({"path": str(shared / "mnist.npz")}, shared)
    assert raw.x.shape == (70_000, 1, 28, 28)
    assert [len(rows) for rows in raw.given.values()] == [60_000, 10_000]


def test_lfw_gives_the_106_people_of_the_papers(unpacked):
    data_dir = unpacked("lfw")
    raw = load({"source": "lfw", "min_per_class": 14}, data_dir)
    assert len(raw.class_names) == 106
    assert np.bincount(raw.y).min() >= 14
    drawn = load({"source": "lfw", "per_class": 14, "size": [32, 32]}, data_dir)
    assert drawn.x.shape == (1484, 1, 32, 32)


def test_faces94_is_read_from_folders_and_from_its_zip(unpacked, shared):
    raw = load({"source": "faces94", "size": [70, 60], "channels": 1}, unpacked("faces94"))
    assert raw.x.shape == (364, 1, 70, 60)
    zipped = load({"path": str(shared / "faces94_subset.zip"), "size": [70, 60], "channels": 1}, shared)
    np.testing.assert_array_equal(zipped.x, raw.x)
    np.testing.assert_array_equal(zipped.y, raw.y)


@pytest.mark.slow
def test_cifar100_projects_to_fifty_components_in_little_memory(unpacked):
    import resource

    raw = load({"source": "cifar100"}, unpacked("cifar100"))
    assert raw.x.shape == (60_000, 3, 32, 32)
    np.testing.assert_array_equal(np.bincount(raw.y), np.full(100, 600))
    np.testing.assert_allclose(
        raw.x[raw.given["train"]].mean(axis=(0, 2, 3), dtype=float), [0.5071, 0.4865, 0.4409], atol=1e-4
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    x, zeros = unit_rows(apply(raw.x, fit_pca(raw.x, np.arange(60_000), 50)))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000  # kB; a float64 copy is 1.5 GB
    assert zeros == 0
    roles = split(raw.y, {"target_members": 10_000, "target_nonmembers": 10_000}, seed=0, stratified=True)
    assert sum(duplicates(x, roles).values()) < 20


@pytest.mark.slow
def test_cifar10_has_six_thousand_of_each_class(unpacked):
    raw = load({"source": "cifar10"}, unpacked("cifar10"))
    np.testing.assert_array_equal(np.bincount(raw.y), np.full(10, 6000))
    np.testing.assert_array_equal(np.bincount(raw.y[raw.given["test"]]), np.full(10, 1000))
