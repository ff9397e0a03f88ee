"""Every source reads its format: small files with known content, written here in the official layouts."""

import gzip
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from data_files import (
    cifar_bytes,
    digit_pictures,
    image_bytes,
    write_files,
    write_idx,
    write_tar,
    write_zip,
)
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

from dp_leakage.common.errors import UserError
from dp_leakage.data import SOURCES, load, resolve
from dp_leakage.data.raw import Gap, Raw, filled, sensitive_columns
from dp_leakage.data.sources import cifar, idx, purchase
from dp_leakage.data.sources.digits import style

RNG = np.random.default_rng(7)


def assert_well_formed(raw):
    assert raw.x.dtype == np.float32
    assert raw.x.ndim in (2, 4)
    assert np.isfinite(raw.x).all()
    assert raw.y.dtype == np.int64
    assert raw.y.shape == (len(raw.x),)
    assert raw.y.min() >= 0
    assert raw.y.max() < len(raw.class_names)
    assert raw.sensitive.dtype == np.int64
    assert len(raw.feature_names) == (raw.x.shape[1] if raw.x.ndim == 2 else 0)
    assert all(rows.dtype == np.int64 for rows in raw.given.values())
    assert all(len(digest) == 64 for digest in raw.sha256.values())
    assert raw.sha256


def test_importing_the_registry_imports_no_heavy_library():
    heavy = "{'numpy', 'scipy', 'pandas', 'sklearn', 'torch', 'PIL', 'pyarrow', 'pooch'}"
    code = f"import sys, dp_leakage.data; print({heavy} & set(sys.modules) or 'none')"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "none"


def test_every_source_has_a_module_with_load():
    import importlib

    for source in SOURCES.values():
        assert callable(importlib.import_module(source.module).load)
        assert source.summary


class TestDigits:
    def test_are_the_default_and_scikit_learns_own_divided_by_sixteen(self, tmp_path):
        raw = load({}, tmp_path)
        bundle = load_digits()
        assert_well_formed(raw)
        np.testing.assert_array_equal(raw.x[:, 0], bundle.images.astype(np.float32) / 16)
        np.testing.assert_array_equal(raw.y, bundle.target)

    @pytest.mark.parametrize(
        ("spec", "shape"),
        [
            ({"resize": [28, 28]}, (1, 28, 28)),
            ({"resize": [32, 32], "channels": 3}, (3, 32, 32)),
            ({"resize": [12, 10]}, (1, 12, 10)),
            ({"resize": [10, 10], "binary": True}, (100,)),
        ],
    )
    def test_stand_in_for_other_shapes(self, spec, shape, tmp_path):
        raw = load({"source": "digits", **spec}, tmp_path)
        assert_well_formed(raw)
        assert raw.x.shape[1:] == shape
        assert raw.x.min() >= 0
        assert raw.x.max() <= 1
        if "binary" in spec:
            assert set(np.unique(raw.x)) == {0, 1}

    def test_made_up_writers_write_alike_and_several_digits(self, tmp_path):
        raw, images = load({"source": "digits", "person": 240}, tmp_path), load_digits().images
        assert_well_formed(raw)
        counts = np.bincount(raw.person)
        assert len(counts) == len(raw.people) == 240
        assert counts.min() >= 1
        assert counts.max() > 3 * np.median(counts)
        classes = [len(np.unique(raw.y[raw.person == one])) for one in range(240)]
        assert np.median(classes) >= 3
        slant = style(images)[:, 3]
        within = np.mean([slant[raw.person == one].var() for one in range(240) if counts[one] > 1])
        assert within < slant.var() / 2
        assert "made up" in raw.notes[-1]

    def test_style_is_that_of_the_ink_as_a_sample(self):
        """A digit is so many grains of ink at its pixels: moments and correlation as NumPy has them of the grains."""
        image = load_digits().images[17]
        down, across = (np.repeat(places.ravel(), image.astype(int).ravel()) for places in np.indices((8, 8)))
        expected = [image.sum(), across.std(), down.std(), np.corrcoef(across, down)[0, 1]]
        np.testing.assert_allclose(style(image[None])[0], expected)

    def test_resized_still_tell_the_digits_apart(self, tmp_path):
        from sklearn.neighbors import KNeighborsClassifier

        raw = load({"source": "digits", "resize": [28, 28]}, tmp_path)
        x = raw.x.reshape(len(raw.x), -1)
        assert KNeighborsClassifier(3).fit(x[:1000], raw.y[:1000]).score(x[1000:], raw.y[1000:]) > 0.9


CIFAR = {
    "cifar10": cifar.LAYOUTS["cifar10"]._replace(
        train={"data_batch_1.bin": 20, "data_batch_2.bin": 10}, test={"test_batch.bin": 10}
    ),
    "cifar100": cifar.LAYOUTS["cifar100"]._replace(train={"train.bin": 120}, test={"test.bin": 30}),
}


def small_cifar(name: str):
    """Files of a small CIFAR, and the pixels and labels in them."""
    layout = CIFAR[name]
    files, xs, ys = {}, [], []
    for file, count in (layout.train | layout.test).items():
        x = RNG.integers(0, 256, (count, 3, 32, 32), np.uint8)
        y = np.arange(count, dtype=np.uint8) % layout.classes
        labels = [RNG.integers(0, 20, count, np.uint8)] * (layout.label_bytes - 1) + [y]
        files[f"{layout.folder}/{file}"] = cifar_bytes(x, *labels)
        xs.append(x)
        ys.append(y)
    return layout, files, np.concatenate(xs), np.concatenate(ys)


@pytest.mark.parametrize("name", ["cifar10", "cifar100"])
@pytest.mark.parametrize("pack", ["folder", "archive"])
def test_cifar_files_give_back_their_pixels_fine_labels_and_official_split(name, pack, tmp_path):
    layout, files, x, y = small_cifar(name)
    if pack == "folder":
        path = write_files(tmp_path, files) / layout.folder
    else:
        path = write_tar(tmp_path / layout.remote.file, files)
    raw = cifar.read(path, layout)
    assert_well_formed(raw)
    np.testing.assert_allclose(raw.x * 255, x, atol=1e-4)
    np.testing.assert_array_equal(raw.y, y)
    np.testing.assert_array_equal(raw.given["train"], np.arange(sum(layout.train.values())))
    np.testing.assert_array_equal(raw.given["test"], np.arange(len(x) - sum(layout.test.values()), len(x)))
    assert len(raw.class_names) == layout.classes


def test_cifar_class_names_are_read_where_the_archive_has_them(tmp_path):
    layout, files, _, _ = small_cifar("cifar100")
    words = "\n".join(f"word{i}" for i in range(100))
    files[f"{layout.folder}/fine_label_names.txt"] = words.encode()
    raw = cifar.read(write_tar(tmp_path / layout.remote.file, files), layout)
    assert raw.class_names[99] == "word99"


@pytest.mark.parametrize("packed", [True, False])
def test_idx_files_gzipped_or_not_give_back_their_pixels(packed, tmp_path):
    x = RNG.integers(0, 256, (50, 28, 28), np.uint8)
    y = np.arange(50) % 10
    paths = write_idx(tmp_path, x[:40], y[:40], x[40:], y[40:], packed)
    raw = idx.read(paths, idx.LAYOUTS["mnist"]._replace(train=40, test=10))
    assert_well_formed(raw)
    np.testing.assert_allclose(raw.x[:, 0] * 255, x, atol=1e-4)
    np.testing.assert_array_equal(raw.y, y)
    assert [len(raw.given[k]) for k in ("train", "test")] == [40, 10]


def purchase_text(n: int = 300) -> tuple[str, np.ndarray, np.ndarray]:
    x = RNG.integers(0, 2, (n, 600))
    y = np.arange(n) % 100 + 1
    return "\n".join(f"{label},{','.join(map(str, row))}" for label, row in zip(y, x, strict=True)), x, y


@pytest.mark.parametrize("pack", ["text", "archive"])
def test_purchase100_release_gives_back_its_rows_and_labels_from_zero(pack, tmp_path):
    text, x, y = purchase_text()
    path = tmp_path / "dataset_purchase"
    path.write_text(text)
    if pack == "archive":
        path = write_tar(tmp_path / "dataset_purchase.tgz", {"dataset_purchase": text.encode()})
    raw = purchase.read_release(path, 300)
    assert_well_formed(raw)
    np.testing.assert_array_equal(raw.x, x)
    np.testing.assert_array_equal(raw.y, y - 1)


def transactions(customers: int = 400, seed: int = 1) -> pd.DataFrame:
    """Shop transactions with the columns of the challenge's file; customers come one after the other."""
    rng = np.random.default_rng(seed)
    bought = [rng.choice(40, rng.integers(1, 9)) * 11 + 7 for _ in range(customers)]
    ids = np.repeat(np.arange(customers) * 13 + 5, [len(b) for b in bought])
    return pd.DataFrame({"id": ids, "chain": 1, "dept": 2, "category": np.concatenate(bought), "company": 3})


def baskets_line_by_line(table: pd.DataFrame, items: int, customers: int) -> np.ndarray:
    """The authors' construction said as a loop over the lines: an independent oracle."""
    item_of, basket_of = {}, {}
    for customer, category in zip(table["id"], table["category"], strict=True):
        if category not in item_of and len(item_of) < items:
            item_of[category] = len(item_of)
        if customer not in basket_of:
            if len(basket_of) == customers:
                break
            basket_of[customer] = np.zeros(items)
        if category in item_of:
            basket_of[customer][item_of[category]] = 1
    rows = np.array([basket for basket in basket_of.values() if basket.any()])
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize("chunk", [37, 10_000])
@pytest.mark.parametrize("customers", [250, 1000])
def test_purchase100_raw_builds_the_baskets_of_a_plain_loop(chunk, customers, tmp_path, monkeypatch):
    monkeypatch.setattr(purchase, "CHUNK", chunk)
    table = transactions()
    (tmp_path / "purchase100_raw").mkdir()
    table.to_csv(tmp_path / "purchase100_raw" / "transactions.csv.gz", index=False)
    spec = {"source": "purchase100_raw", "items": 20, "customers": customers, "classes": 8}
    raw = load(spec, tmp_path)
    assert_well_formed(raw)
    np.testing.assert_allclose(raw.x, baskets_line_by_line(table, 20, customers), rtol=1e-6)
    assert set(raw.y) == set(range(8))
    np.testing.assert_allclose(np.linalg.norm(raw.x, axis=1), 1, rtol=1e-6)


class TestImages:
    @pytest.mark.parametrize("pack", ["folder", "zip", "tgz"])
    @pytest.mark.parametrize("top", ["", "my photos/"])
    def test_folder_zip_and_tar_of_one_folder_per_class_read_alike(self, pack, top, tmp_path):
        files = {top + name: content for name, content in digit_pictures().items()}
        files |= {top + ".DS_Store": b"junk", "__MACOSX/digit 0/._0.png": b"junk", top + "readme.txt": b"words"}
        if pack == "folder":
            path = write_files(tmp_path / "mine", files)
        else:
            path = {"zip": write_zip, "tgz": write_tar}[pack](tmp_path / f"mine.{pack}", files)
        raw = load({"path": str(path)}, tmp_path)
        assert_well_formed(raw)
        assert raw.class_names == ("digit 0", "digit 1", "digit 2")
        np.testing.assert_array_equal(raw.y, np.repeat([0, 1, 2], 3))
        bundle = load_digits()
        first = bundle.images[np.flatnonzero(bundle.target == 1)[0]] * 255 / 16
        np.testing.assert_allclose(raw.x[3, 0] * 255, first.astype(np.uint8), atol=1e-4)

    def test_train_and_test_folders_are_a_given_split(self, tmp_path):
        files = {f"train/{name}": content for name, content in digit_pictures(3).items()}
        files |= {f"test/{name}": content for name, content in digit_pictures(2).items()}
        raw = load({"path": str(write_files(tmp_path / "mine", files))}, tmp_path)
        assert raw.class_names == ("digit 0", "digit 1", "digit 2")
        assert {split: len(rows) for split, rows in raw.given.items()} == {"train": 9, "test": 6}
        np.testing.assert_array_equal(np.sort(np.concatenate([*raw.given.values()])), np.arange(15))

    def test_folders_above_the_classes_do_not_count_unless_names_clash(self, tmp_path):
        picture = image_bytes(np.zeros((4, 4), np.uint8))
        apart = {"female/ann/1.png": picture, "male/bob/1.png": picture}
        assert load({"path": str(write_files(tmp_path / "a", apart))}, tmp_path).class_names == ("ann", "bob")
        clash = {"old/ann/1.png": picture, "new/ann/1.png": picture}
        clashing = load({"path": str(write_files(tmp_path / "b", clash))}, tmp_path)
        assert clashing.class_names == ("new/ann", "old/ann")

    def test_gray_and_colored_images_become_colored_and_channels_turns_all_to_gray(self, tmp_path):
        gray = np.full((4, 5), 51, np.uint8)
        red = np.zeros((4, 5, 3), np.uint8)
        red[..., 0] = 255
        path = write_files(tmp_path / "m", {"a/1.png": image_bytes(gray), "b/1.png": image_bytes(red)})
        color = load({"path": str(path)}, tmp_path)
        assert color.x.shape == (2, 3, 4, 5)
        np.testing.assert_allclose(color.x[0], 0.2)
        np.testing.assert_allclose(color.x[1, :, 0, 0], [1, 0, 0])
        assert load({"path": str(path), "channels": 1}, tmp_path).x.shape == (2, 1, 4, 5)

    def test_size_is_height_by_width(self, tmp_path):
        path = write_files(tmp_path / "m", digit_pictures())
        assert load({"path": str(path), "size": [7, 6]}, tmp_path).x.shape == (9, 1, 7, 6)

    def test_min_per_class_and_per_class_keep_the_large_classes_balanced(self, tmp_path):
        files = digit_pictures(6)
        for name in ("digit 1/0.png", "digit 1/1.png", "digit 1/2.png"):
            del files[name]
        path = write_files(tmp_path / "m", files)
        raw = load({"path": str(path), "min_per_class": 4}, tmp_path)
        assert raw.class_names == ("digit 0", "digit 2")
        np.testing.assert_array_equal(np.bincount(raw.y), [6, 6])
        drawn = load({"path": str(path), "per_class": 5, "seed": 3}, tmp_path)
        np.testing.assert_array_equal(np.bincount(drawn.y), [5, 5])
        again = load({"path": str(path), "per_class": 5, "seed": 3}, tmp_path)
        np.testing.assert_array_equal(drawn.x, again.x)

    @pytest.mark.parametrize("name", ["lfw", "faces94"])
    def test_published_faces_are_found_as_a_folder_or_an_archive(self, name, tmp_path):
        write_files(tmp_path / "a" / name, digit_pictures())
        assert_well_formed(load({"source": name}, tmp_path / "a"))
        (tmp_path / "b" / name).mkdir(parents=True)
        archive = tmp_path / "b" / name / {"lfw": "lfw.tgz", "faces94": "faces94.zip"}[name]
        (write_tar if name == "lfw" else write_zip)(archive, {f"{name}/{k}": v for k, v in digit_pictures().items()})
        raw = load({"source": name}, tmp_path / "b")
        assert raw.class_names == ("digit 0", "digit 1", "digit 2")

    def test_the_folders_hash_changes_with_any_byte(self, tmp_path):
        files = digit_pictures()
        before = load({"path": str(write_files(tmp_path / "m", files))}, tmp_path).sha256["m"]
        files["digit 2/2.png"] = image_bytes(np.zeros((8, 8), np.uint8))
        assert load({"path": str(write_files(tmp_path / "m", files))}, tmp_path).sha256["m"] != before


class TestArrays:
    def test_a_table_keeps_its_values_and_text_labels_become_class_names(self, tmp_path):
        wine = load_wine()
        np.savez(tmp_path / "w.npz", x=wine.data, y=np.array(["red", "rosé", "white"])[wine.target])
        raw = load({"path": str(tmp_path / "w.npz"), "sensitive": [0, 3]}, tmp_path)
        assert_well_formed(raw)
        np.testing.assert_allclose(raw.x, wine.data, rtol=1e-6)
        assert raw.class_names == ("red", "rosé", "white")
        np.testing.assert_array_equal(raw.sensitive, [0, 3])

    def test_names_given_in_the_spec_and_labels_with_gaps(self, tmp_path):
        np.savez(tmp_path / "w.npz", data=np.eye(4), target=np.array([10, 20, 10, 70]))
        raw = load({"path": str(tmp_path / "w.npz"), "x": "data", "y": "target"}, tmp_path)
        np.testing.assert_array_equal(raw.y, [0, 1, 0, 2])
        assert raw.class_names == ("10", "20", "70")

    def test_train_and_test_arrays_are_a_given_split(self, tmp_path):
        x = RNG.integers(0, 256, (7, 5, 5), np.uint8)
        y = np.array([0, 1, 0, 1, 0, 1, 0])
        np.savez(tmp_path / "w.npz", x_train=x[:4], y_train=y[:4], x_test=x[4:], y_test=y[4:])
        raw = load({"path": str(tmp_path / "w.npz")}, tmp_path)
        np.testing.assert_allclose(raw.x[:, 0] * 255, x, atol=1e-4)
        np.testing.assert_array_equal(raw.given["test"], [4, 5, 6])

    @pytest.mark.parametrize("layout", ["nchw", "nhwc"])
    def test_images_of_either_layout_come_out_channels_first(self, layout, tmp_path):
        x = RNG.integers(0, 256, (4, 3, 6, 5), np.uint8)
        stored = x if layout == "nchw" else x.transpose(0, 2, 3, 1)
        np.savez(tmp_path / "w.npz", x=stored, y=[0, 1, 0, 1])
        for spec in ({}, {"layout": layout}):
            raw = load({"path": str(tmp_path / "w.npz"), **spec}, tmp_path)
            np.testing.assert_allclose(raw.x * 255, x, atol=1e-4)


class TestTables:
    @pytest.mark.parametrize("source", ["csv", "parquet"])
    def test_a_records_key_stays_the_text_that_it_is(self, tmp_path, source):
        frame = pd.DataFrame({"patient": ["001", "1", "1e3", "NA"], "x": [1.0, 2, 3, 4], "label": [0, 1, 0, 1]})
        path = tmp_path / f"t.{source}"
        frame.to_parquet(path) if source == "parquet" else frame.to_csv(path, index=False)
        raw = load({"source": source, "path": str(path), "label": "label", "key": "patient"}, tmp_path)
        assert raw.names == ("001", "1", "1e3", "NA")

    def breast_cancer(self):
        bundle = load_breast_cancer(as_frame=True)
        frame = bundle.data.copy()
        frame["diagnosis"] = bundle.target_names[bundle.target]
        return frame

    @pytest.mark.parametrize("suffix", ["csv", "csv.gz", "tsv", "parquet"])
    def test_the_same_table_reads_alike_from_every_format(self, suffix, tmp_path):
        frame = self.breast_cancer()
        path = tmp_path / f"cancer.{suffix}"
        if suffix == "parquet":
            frame.to_parquet(path)
        else:
            frame.to_csv(path, index=False, sep="\t" if suffix == "tsv" else ",")
        raw = load({"path": str(path), "label": "diagnosis", "sensitive": ["mean area"]}, tmp_path)
        assert_well_formed(raw)
        np.testing.assert_allclose(raw.x, frame.drop(columns="diagnosis"), rtol=1e-6)
        assert raw.class_names == ("benign", "malignant")
        assert [raw.feature_names[c] for c in raw.sensitive] == ["mean area"]

    def table(self, path, **columns):
        frame = pd.DataFrame({"y": ["a", "b", "a", "b"], **columns})
        frame.to_csv(path, index=False) if path.suffix == ".csv" else frame.to_parquet(path)
        return {"path": str(path), "label": "y"}

    @pytest.mark.parametrize("suffix", ["csv", "parquet"])
    def test_categories_become_columns_of_zeros_and_ones(self, suffix, tmp_path):
        spec = self.table(
            tmp_path / f"t.{suffix}",
            age=[30, 41, 52, 63],
            color=["red", "blue", "green", "red"],
            sex=["f", "m", "m", "f"],
            member=[True, False, False, True],
            region=[3, 1, 2, 3],
        )
        raw = load({**spec, "categorical": ["region"], "sensitive": ["sex", "color"]}, tmp_path)
        assert raw.feature_names == (
            *("age", "color=blue", "color=green", "color=red", "sex=m", "member"),
            *("region=1", "region=2", "region=3"),
        )
        np.testing.assert_array_equal(
            raw.x[:, 1:6], [[0, 0, 1, 0, 1], [1, 0, 0, 1, 0], [0, 1, 0, 1, 0], [0, 0, 1, 0, 1]]
        )
        assert sorted(raw.sensitive) == [1, 2, 3, 4]

    def test_sensitive_columns_keep_the_users_names_and_values(self, tmp_path):
        color, sex = ["red", "blue", "green", "red"], ["f", "m", "f", "f"]
        spec = self.table(
            tmp_path / "t.csv", age=[30, 41, 52, 63], color=color, sex=sex, one=["same"] * 4, rest=[1, 2, 3, 4],
            smoker=[True, False, False, True],
        )  # fmt: skip
        raw = load({**spec, "sensitive": ["sex", "color", "age", "one", "smoker"]}, tmp_path)
        columns, values = sensitive_columns(raw)
        own = {column.name: (column.words, list(value)) for column, value in zip(columns, values.T, strict=True)}
        assert own == {
            "age": ((), [30, 41, 52, 63]),
            "color": (("blue", "green", "red"), [2, 0, 1, 2]),
            "sex": (("f", "m"), [0, 1, 0, 0]),
            "one": (("same",), [0, 0, 0, 0]),
            "smoker": (("False", "True"), [1, 0, 0, 1]),
        }
        assert values.dtype == np.float32
        assert sensitive_columns(load(spec, tmp_path))[1].shape == (4, 0)

    def test_too_many_texts_for_categories_may_name_persons(self, tmp_path):
        frame = pd.DataFrame({"y": ["a", "b"] * 101, "who": [f"p{k // 2}" for k in range(202)], "age": [0, 1] * 101})
        frame.to_csv(tmp_path / "t.csv", index=False)
        spec = {"path": str(tmp_path / "t.csv"), "label": "y"}
        with pytest.raises(UserError, match=r"column 'who' has 101 different texts.*or in person if it says"):
            load(spec, tmp_path)
        assert load({**spec, "person": "who"}, tmp_path).feature_names == ("age",)
        with pytest.raises(UserError, match=r"101 different texts.* whose each record is, keep one record per person"):
            load({**spec, "member": "age"}, tmp_path)

    def test_dropped_columns_are_gone(self, tmp_path):
        spec = self.table(tmp_path / "t.csv", name=["Ann", "Bob", "Cy", "Di"], age=[1, 2, 3, 4])
        assert load({**spec, "drop": ["name"]}, tmp_path).feature_names == ("age",)

    @pytest.mark.parametrize("suffix", ["csv", "parquet"])
    def test_missing_values_are_what_the_attackers_records_say(self, suffix, tmp_path):
        spec = self.table(
            tmp_path / f"t.{suffix}", age=[1.0, None, 3.0, 10.0], sex=["f", "f", None, "m"], ok=[1, 2, 3, 4]
        )
        raw = load({**spec, "missing": "impute"}, tmp_path)
        np.testing.assert_array_equal(raw.x, [[1, 0, 1], [0, 0, 2], [3, 0, 3], [10, 1, 4]])
        found = filled(raw, {"target_members": np.array([0, 1, 2]), "shadow_pool": np.array([3])})
        np.testing.assert_array_equal(found.x, [[1, 0, 1], [10, 0, 2], [3, 1, 3], [10, 1, 4]])
        assert any("age: 1" in note and "median of the attacker's 1 records" in note for note in found.notes)
        assert not found.gaps

    def test_without_records_of_the_attackers_all_fill_the_gaps_and_the_notes_say_so(self, tmp_path):
        spec = self.table(tmp_path / "t.csv", region=[3.0, None, 3.0, 1.0], size=[5.0, 1.0, 2.0, None])
        raw = load({**spec, "missing": "impute", "categorical": ["region"]}, tmp_path)
        found = filled(raw, {"target_members": np.arange(4)})
        np.testing.assert_array_equal(found.x, [[1, 5], [1, 1], [1, 2], [0, 2]])
        assert all("outside the privacy budget" in note for note in found.notes)

    def test_what_fills_a_gap_does_not_depend_on_members_or_nonmembers(self):
        rng = np.random.default_rng(0)
        roles = {"target_members": np.arange(4), "target_nonmembers": np.arange(4, 8), "shadow_pool": np.arange(8, 12)}
        gaps = (Gap("age", (0,), np.array([1, 5, 9])), Gap("hue", (1, 2, 3), np.array([0, 4]), ("a", "b", "c")))
        x = np.c_[rng.normal(size=12), np.eye(3)[rng.integers(3, size=12)]].astype(np.float32)
        other = x.copy()
        other[:8] = np.c_[rng.normal(size=8), np.eye(3)[rng.integers(3, size=8)]]
        first, second = (filled(Raw(values, np.zeros(12, int), ("u",), gaps=gaps), roles).x for values in (x, other))
        for gap in gaps:
            rows = np.ix_(gap.records, gap.columns)
            np.testing.assert_array_equal(first[rows], second[rows])
        assert first[1, 0] == np.float32(np.median(x[[8, 10, 11], 0]))

    def test_numeric_labels_sort_as_numbers(self, tmp_path):
        pd.DataFrame({"y": [10, 9, 10, 9], "a": [1, 2, 3, 4]}).to_csv(tmp_path / "t.csv", index=False)
        raw = load({"path": str(tmp_path / "t.csv"), "label": "y"}, tmp_path)
        assert raw.class_names == ("9", "10")

    def test_a_byte_order_mark_and_quoted_names_are_no_part_of_the_names(self, tmp_path):
        (tmp_path / "t.csv").write_text('\ufeff"y","a,b"\nu,1\nv,2\n', encoding="utf-8")
        assert load({"path": str(tmp_path / "t.csv"), "label": "y"}, tmp_path).feature_names == ("a,b",)


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("t.csv", "csv"),
        ("t.CSV", "csv"),
        ("t.csv.gz", "csv"),
        ("t.tsv", "csv"),
        ("t.parquet", "parquet"),
        ("my.data.npz", "npz"),
        ("t.zip", "image_folder"),
        ("t.tar.gz", "image_folder"),
        ("t.tgz", "image_folder"),
    ],
)
def test_your_own_data_is_known_by_its_suffix(path, source):
    spec = {"path": path} | ({"label": "y"} if source in ("csv", "parquet") else {})
    assert resolve(spec)["source"] == source


def test_a_folder_where_a_table_was_meant_is_named(tmp_path):
    with pytest.raises(UserError) as refusal:
        resolve({"path": str(tmp_path), "label": "y"})
    assert str(refusal.value) == (
        f"path: {tmp_path} is a folder, so it is read as images, which have no key 'label'; 'label' needs a file "
        "(.csv, .parquet, .tsv)"
    )
    for spec in ({"path": str(tmp_path), "sise": [8, 8]}, {"path": "t.zip", "label": "y"}):
        with pytest.raises(UserError, match="unknown key for the source image_folder"):
            resolve(spec)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"source": "cifar1000"}, ["cifar1000", "did you mean 'cifar100'"]),
        ({"source": "digits", "resise": [8, 8]}, ["resise", "did you mean 'resize'"]),
        ({"source": "digits", "resize": [0, 8]}, ["resize", "[0, 8]", "a list of 2", "from 1 to"]),
        ({"source": "digits", "person": 1}, ["person", "1", "2 to 600"]),
        ({"source": "digits", "channels": 2}, ["channels", "2", "1 or 3"]),
        ({"source": "digits", "channels": True}, ["channels", "True"]),
        ({"source": "digits", "binary": "yes"}, ["binary", "yes", "true or false"]),
        ({"source": "lfw", "per_class": 0}, ["per_class", "0", "of at least 1"]),
        ({"source": "lfw", "seed": -1}, ["seed", "-1", "of at least 0"]),
        ({"path": "t.csv"}, ["label", "missing"]),
        ({"source": "npz"}, ["path", "missing"]),
        ({"path": 5}, ["path", "5"]),
        ({"path": "t.xlsx"}, ["t.xlsx", ".parquet"]),
        ({"path": "notes"}, ["notes", "no suffix"]),
        ({"path": "t.csv", "label": "y", "missing": "drop"}, ["missing", "drop", "impute"]),
        ({"path": "t.csv", "label": "y", "sensitive": "age"}, ["sensitive", "age", "list"]),
        ({"path": "t.npz", "sensitive": ["age"]}, ["sensitive", "age", "whole number"]),
    ],
)
def test_a_wrong_spec_is_refused_in_one_sentence(spec, words):
    with pytest.raises(UserError) as refusal:
        resolve(spec)
    assert "\n" not in str(refusal.value)
    for word in words:
        assert word in str(refusal.value)


def test_gzip_of_idx_is_read_by_suffix_not_by_luck(tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"\0\0\x08\x01\0\0\0\x02\x05\x06"))
    np.testing.assert_array_equal(idx.read_idx(path, (2,)), [5, 6])
