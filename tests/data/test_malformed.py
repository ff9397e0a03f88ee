"""Damaged and wrong files: each gives one sentence that names the file, what was found and what is valid."""

import gzip
import io
import pickle
import tarfile
import zipfile

import numpy as np
import pandas as pd
import pytest
from data_files import (
    cifar_bytes,
    digit_pictures,
    idx_bytes,
    image_bytes,
    write_files,
    write_idx,
    write_tar,
    write_zip,
)
from PIL import Image

from dp_leakage.common.errors import UserError
from dp_leakage.data import load
from dp_leakage.data.sources import cifar, idx, purchase
from dp_leakage.data.trees import open_tree


def refused(call, *words):
    """The call ends in a UserError of one line with all the words."""
    with pytest.raises(UserError) as refusal:
        call()
    message = str(refusal.value)
    assert "\n" not in message
    assert len(message) < 400
    for word in words:
        assert word in message, message


class TestCifar:
    layout = cifar.LAYOUTS["cifar100"]._replace(train={"train.bin": 30}, test={"test.bin": 10})

    def files(self, **changed):
        x = np.zeros((30, 3, 32, 32), np.uint8)
        labels = np.arange(30, dtype=np.uint8)
        files = {"train.bin": cifar_bytes(x, labels, labels), "test.bin": cifar_bytes(x[:10], labels[:10], labels[:10])}
        return {f"cifar-100-binary/{k}": v for k, v in (files | changed).items() if v is not None}

    def read(self, tmp_path, files):
        return lambda: cifar.read(write_files(tmp_path, files) / "cifar-100-binary", self.layout)

    def test_a_file_is_missing(self, tmp_path):
        refused(self.read(tmp_path, self.files(**{"test.bin": None})), "test.bin is missing", "train.bin")

    @pytest.mark.parametrize("change", [lambda b: b[:-1], lambda b: b + b"x", lambda b: b""])
    def test_a_file_has_the_wrong_size(self, change, tmp_path):
        files = self.files()
        files["cifar-100-binary/train.bin"] = change(files["cifar-100-binary/train.bin"])
        refused(self.read(tmp_path, files), "train.bin", "bytes", "30 records", "92,220")

    def test_a_label_is_out_of_range(self, tmp_path):
        labels = np.full(10, 100, np.uint8)
        wrong = cifar_bytes(np.zeros((10, 3, 32, 32), np.uint8), labels * 0, labels)
        refused(self.read(tmp_path, self.files(**{"test.bin": wrong})), "test.bin", "label 100", "0 to 99")

    def test_the_archive_is_truncated(self, tmp_path):
        noise = np.random.default_rng(0).integers(0, 256, (30, 3, 32, 32), np.uint8)
        labels = np.arange(30, dtype=np.uint8)
        path = write_tar(tmp_path / "c.tar.gz", self.files(**{"train.bin": cifar_bytes(noise, labels, labels)}))
        path.write_bytes(path.read_bytes()[:-20_000])
        refused(lambda: cifar.read(path, self.layout), "c.tar.gz", "damaged")

    @pytest.mark.parametrize("content", [b"", b"<html>not found</html>", gzip.compress(b"not a tar", mtime=0)])
    def test_the_archive_is_none(self, content, tmp_path):
        (tmp_path / "c.tar.gz").write_bytes(content)
        refused(lambda: cifar.read(tmp_path / "c.tar.gz", self.layout), "c.tar.gz", "no zip or tar archive")

    @pytest.mark.parametrize("name", ["../train.bin", "/etc/train.bin"])
    def test_the_archive_leads_out_of_its_folder(self, name, tmp_path):
        path = write_tar(tmp_path / "c.tar.gz", {name: b"x"})
        refused(lambda: cifar.read(path, self.layout), "c.tar.gz", name, "not allowed")
        assert [p.name for p in tmp_path.iterdir()] == ["c.tar.gz"]

    @pytest.mark.parametrize(
        ("kind", "name", "target"),
        [
            (tarfile.SYMTYPE, "train.bin", "/etc/passwd"),
            (tarfile.SYMTYPE, "a/train.bin", "../../secret"),
            (tarfile.LNKTYPE, "a/train.bin", "../secret"),
            (tarfile.CHRTYPE, "train.bin", ""),
        ],
    )
    def test_the_archive_holds_a_link_to_the_outside_or_a_device(self, kind, name, target, tmp_path):
        path = tmp_path / "c.tar"
        with tarfile.open(path, "w") as archive:
            link = tarfile.TarInfo(name)
            link.type, link.linkname = kind, target
            archive.addfile(link)
        refused(lambda: cifar.read(path, self.layout), "c.tar", f"'{name}'", "not allowed")

    def test_links_inside_an_archive_are_passed_over(self, tmp_path):
        path = tmp_path / "c.tar"
        with tarfile.open(path, "w") as archive:
            link = tarfile.TarInfo("a/b/link")
            link.type, link.linkname = tarfile.SYMTYPE, "../../train.bin"
            archive.addfile(link)
        with open_tree(path) as tree:
            assert tree.names == ()


class TestIdx:
    def paths(self, tmp_path, **changed):
        x, y = np.zeros((12, 28, 28), np.uint8), np.arange(12) % 10
        arrays = {"images": x[:8], "labels": y[:8], "test_images": x[8:], "test_labels": y[8:]} | changed
        return write_idx(tmp_path, *arrays.values(), packed=False)

    def read(self, paths):
        return lambda: idx.read(paths, idx.LAYOUTS["mnist"]._replace(train=8, test=4))

    def test_the_well_formed_twin_is_read(self, tmp_path):
        assert len(self.read(self.paths(tmp_path))().y) == 12

    def test_a_label_is_out_of_range(self, tmp_path):
        paths = self.paths(tmp_path, labels=np.array([0, 1, 2, 12, 4, 5, 6, 7]))
        refused(self.read(paths), "train-labels", "record 3", "label 12", "0 to 9")

    def test_images_have_another_size(self, tmp_path):
        paths = self.paths(tmp_path, images=np.zeros((8, 27, 28)))
        refused(self.read(paths), "train-images", "8×27×28", "8×28×28")

    def test_the_counts_of_images_and_labels_differ(self, tmp_path):
        refused(self.read(self.paths(tmp_path, labels=np.arange(7))), "train-labels", "array of 7", "has 8")

    @pytest.mark.parametrize("change", [lambda b: b[:-5], lambda b: b + b"xx"])
    def test_a_file_is_too_short_or_too_long(self, change, tmp_path):
        paths = self.paths(tmp_path)
        paths[0].write_bytes(change(paths[0].read_bytes()))
        refused(self.read(paths), "train-images", "bytes", "6,288")

    def test_the_magic_number_is_wrong(self, tmp_path):
        paths = self.paths(tmp_path)
        paths[0].write_bytes(b"\x00\x00\x0d\x03" + paths[0].read_bytes()[4:])
        refused(self.read(paths), "train-images", "00 00 0d 03", "00 00 08 03")

    def test_labels_lie_where_images_should(self, tmp_path):
        paths = self.paths(tmp_path)
        refused(self.read([paths[1], paths[1], *paths[2:]]), "train-labels", "00 00 08 01", "00 00 08 03")

    @pytest.mark.parametrize("content", [b"", b"\0", idx_bytes(np.zeros((8, 28, 28), np.uint8))[:7]])
    def test_a_file_ends_in_its_header(self, content, tmp_path):
        paths = self.paths(tmp_path)
        paths[0].write_bytes(content)
        refused(self.read(paths), "train-images")

    @pytest.mark.parametrize("change", [lambda b: b[:-9], lambda b: b"no gzip", lambda b: b[:20] + b"zz" + b[22:]])
    def test_the_gzip_is_damaged(self, change, tmp_path):
        path = tmp_path / "train-images-idx3-ubyte.gz"
        path.write_bytes(change(gzip.compress(idx_bytes(np.arange(784 * 8).astype(np.uint8).reshape(8, 28, 28)))))
        refused(lambda: idx.read_idx(path, (8, 28, 28)), "train-images", "gzip")


class TestPurchase:
    def release(self, tmp_path, lines):
        path = tmp_path / "dataset_purchase"
        path.write_text("\n".join(lines))
        return lambda: purchase.read_release(path, 3)

    good = ",".join(["7"] + ["0", "1"] * 300)

    def test_the_well_formed_twin_is_read(self, tmp_path):
        assert self.release(tmp_path, [self.good] * 3)().x.shape == (3, 600)

    @pytest.mark.parametrize(
        ("bad", "words"),
        [
            ("7,0,1", ["601", "3"]),
            (good + ",1", ["601", "602"]),
            (good.replace("7,", "cat,", 1), ["numbers", "cat"]),
            (good.replace("7,", "1.5,", 1), ["numbers", "1.5"]),
            (good.replace("7,", "101,", 1), ["record 1", "101", "1 to 100"]),
            (good.replace("7,", "0,", 1), ["record 1", "label 0", "1 to 100"]),
            (good.replace("7,0", "7,2", 1), ["record 1", "2.0", "item_1", "0 and 1"]),
            (good.replace("7,0,1", "7,0,", 1), ["record 1", "nan", "item_2"]),
            (good + "\n" + good, ["4 records", "has 3"]),
        ],
    )
    def test_a_bad_line(self, bad, words, tmp_path):
        refused(self.release(tmp_path, [self.good, bad, self.good]), "dataset_purchase", *words)

    def test_an_empty_file(self, tmp_path):
        refused(self.release(tmp_path, []), "dataset_purchase")

    def test_an_archive_without_the_file(self, tmp_path):
        path = write_tar(tmp_path / "dataset_purchase.tgz", {"other": b"1"})
        refused(lambda: purchase.read_release(path, 3), "dataset_purchase.tgz", "holds no file dataset_purchase")

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("id,chain\n1,2\n", ["category"]),
            ("id,category\n1,food\n", ["whole numbers", "id and category"]),
            ("id,category\n1,\n", ["whole numbers"]),
            ("", ["transactions.csv"]),
            ("id,category\n1,4\n2,5\n", ["2 distinct baskets", "100"]),
        ],
    )
    def test_transactions(self, text, words, tmp_path):
        (tmp_path / "transactions.csv").write_text(text)
        refused(lambda: load({"source": "purchase100_raw"}, tmp_path), "transactions.csv", *words)

    def test_truncated_transactions(self, tmp_path):
        lines = "".join(f"{i},{i % 97 * 13}\n" for i in range(5000))
        packed = gzip.compress(("id,category\n" + lines).encode())
        (tmp_path / "transactions.csv.gz").write_bytes(packed[: len(packed) // 2])
        refused(lambda: load({"source": "purchase100_raw"}, tmp_path), "transactions.csv.gz")


class TestImages:
    def load(self, tmp_path, files, **spec):
        path = write_files(tmp_path / "pictures", files)
        return lambda: load({"path": str(path), **spec}, tmp_path)

    def test_no_such_folder(self, tmp_path):
        refused(lambda: load({"path": str(tmp_path / "x.zip")}, tmp_path), "x.zip", "no such")
        refused(lambda: load({"source": "image_folder", "path": str(tmp_path / "x")}, tmp_path), "x", "no such")

    def test_no_images(self, tmp_path):
        refused(self.load(tmp_path, {"a/notes.txt": b"words"}), "pictures", "no images", ".png")

    def test_images_in_no_class_folder(self, tmp_path):
        files = {"stray.png": image_bytes(np.zeros((8, 8), np.uint8)), **digit_pictures()}
        refused(self.load(tmp_path, files), "pictures", "stray.png", "folder of its own")

    def test_one_class(self, tmp_path):
        refused(self.load(tmp_path, digit_pictures(classes=1)), "pictures", "only one class (digit 0)", "two")

    def test_one_class_left(self, tmp_path):
        files = digit_pictures(3)
        files["digit 0/more.png"] = files["digit 0/0.png"]
        refused(self.load(tmp_path, files, per_class=4), "per_class", "only one class", "digit 0")
        refused(self.load(tmp_path, files, min_per_class=9), "min_per_class", "no records")

    def test_an_image_of_another_size(self, tmp_path):
        files = {**digit_pictures(), "digit 1/odd.png": image_bytes(np.zeros((8, 9), np.uint8))}
        refused(self.load(tmp_path, files), "digit 1/odd.png", "8×9", "8×8", "size: [8, 8]")
        assert self.load(tmp_path, files, size=[8, 8])().x.shape == (10, 1, 8, 8)

    @pytest.mark.parametrize("content", [b"", b"no image at all", digit_pictures()["digit 0/0.png"][:60]])
    def test_an_unreadable_image(self, content, tmp_path):
        refused(self.load(tmp_path, {**digit_pictures(), "digit 2/bad.png": content}), "digit 2/bad.png", "readable")

    def test_an_image_of_sixteen_bits(self, tmp_path):
        deep = image_bytes(np.full((8, 8), 40_000, np.uint16))
        refused(self.load(tmp_path, {**digit_pictures(), "digit 2/deep.png": deep}), "deep.png", "8 bits")

    def test_images_too_large_for_the_memory(self, tmp_path, monkeypatch):
        monkeypatch.setattr("dp_leakage.data.sources.images.MAX_BYTES", 1000)
        refused(self.load(tmp_path, digit_pictures()), "pictures", "9 images", "8×8", "size")

    def test_an_image_bomb(self, tmp_path, monkeypatch):
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 20)
        refused(self.load(tmp_path, digit_pictures()), "digit 0/0.png", "bomb")

    @pytest.mark.parametrize("change", [lambda b: b[: len(b) // 2], lambda b: b"", lambda b: b"PK\3\4 but no zip"])
    def test_a_damaged_zip(self, change, tmp_path):
        path = write_zip(tmp_path / "p.zip", digit_pictures())
        path.write_bytes(change(path.read_bytes()))
        refused(lambda: load({"path": str(path)}, tmp_path), "p.zip", "damaged")

    def test_a_zip_with_one_flipped_byte_in_an_image(self, tmp_path):
        path = write_zip(tmp_path / "p.zip", digit_pictures())
        content = bytearray(path.read_bytes())
        with zipfile.ZipFile(path) as archive:
            content[archive.infolist()[4].header_offset + 60] ^= 0xFF
        path.write_bytes(content)
        refused(lambda: load({"path": str(path)}, tmp_path), "p.zip", "damaged")

    def test_a_zip_with_a_password(self, tmp_path):
        path = write_zip(tmp_path / "p.zip", digit_pictures())
        content = path.read_bytes()
        # The first bit of the flags says "encrypted", at offset 6 of local and 8 of central headers.
        for signature, offset in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
            parts = content.split(signature)
            content = signature.join([parts[0], *(p[: offset - 4] + b"\1" + p[offset - 3 :] for p in parts[1:])])
        path.write_bytes(content)
        refused(lambda: load({"path": str(path)}, tmp_path), "p.zip", "encrypted")

    @pytest.mark.parametrize("name", ["../../evil/1.png", "/evil/1.png", "a\\..\\..\\evil\\1.png"])
    def test_a_zip_that_leads_out_of_its_folder(self, name, tmp_path):
        path = write_zip(tmp_path / "p.zip", {**digit_pictures(), name: b"x"})
        refused(lambda: load({"path": str(path)}, tmp_path), "p.zip", "evil", "not allowed")

    def test_a_tar_that_leads_out_of_its_folder(self, tmp_path):
        path = write_tar(tmp_path / "p.tgz", {**digit_pictures(), "../evil/1.png": b"x"})
        refused(lambda: load({"path": str(path)}, tmp_path), "p.tgz", "evil", "not allowed")


class TestArrays:
    x, y = np.eye(4), np.array([0, 1, 0, 1])

    def load(self, tmp_path, _spec=None, **arrays):
        np.savez(tmp_path / "a.npz", **arrays)
        return lambda: load({"path": str(tmp_path / "a.npz"), **(_spec or {})}, tmp_path)

    def test_python_objects_are_never_unpickled(self, tmp_path):
        class Trap:
            def __reduce__(self):
                return (open, (str(tmp_path / "sprung"), "w"))

        trap = np.array([Trap()] * 4, dtype=object)
        refused(self.load(tmp_path, x=trap, y=self.y), "a.npz", "Python objects (pickle)", "plain arrays")
        refused(self.load(tmp_path, x=self.x, y=trap), "a.npz", "Python objects (pickle)")
        (tmp_path / "b.npz").write_bytes(pickle.dumps(Trap()))
        refused(lambda: load({"path": str(tmp_path / "b.npz")}, tmp_path), "b.npz", "Python objects (pickle)")
        assert not (tmp_path / "sprung").exists()

    def test_no_such_file(self, tmp_path):
        refused(lambda: load({"path": str(tmp_path / "none.npz")}, tmp_path), "none.npz", "no such file")

    def test_a_single_array(self, tmp_path):
        buffer = io.BytesIO()
        np.save(buffer, self.x)
        (tmp_path / "a.npz").write_bytes(buffer.getvalue())
        refused(lambda: load({"path": str(tmp_path / "a.npz")}, tmp_path), "a.npz", "single array", "x and y")

    @pytest.mark.parametrize("change", [lambda b: b"", lambda b: b[: len(b) // 2], lambda b: b[:100] + b"??" + b[102:]])
    def test_a_damaged_file(self, change, tmp_path):
        self.load(tmp_path, x=self.x, y=self.y)
        path = tmp_path / "a.npz"
        path.write_bytes(change(path.read_bytes()))
        refused(lambda: load({"path": str(path)}, tmp_path), "a.npz", "cannot be read")

    @pytest.mark.parametrize(
        ("spec", "arrays", "words"),
        [
            ({}, {"x": x}, ["y:", "a.npz", "'y'", "valid: x"]),
            ({}, {"features": x, "y": y}, ["x:", "'x'", "features"]),
            ({"y": "lable"}, {"x": x, "label": y}, ["y:", "'lable'", "did you mean 'label'"]),
            ({}, {"x": x, "y": y[:3]}, ["(4, 4)", "(3,)"]),
            ({}, {"x": x, "y": np.eye(4)}, ["y (4, 4)", "(n,) labels"]),
            ({}, {"x": np.arange(4), "y": y}, ["x has shape (4,)"]),
            ({}, {"x": np.float32(3), "y": y}, ["x has shape ()"]),
            ({}, {"x": np.full((4, 2), "a"), "y": y}, ["x", "<U1", "real numbers"]),
            ({}, {"x": x + 1j, "y": y}, ["complex128", "real numbers"]),
            ({}, {"x": np.where(x > 0, np.nan, x), "y": y}, ["record 0", "nan", "feature 0"]),
            ({}, {"x": x * 1e300, "y": y}, ["record 0", "inf", "finite"]),
            ({}, {"x": x - 1e30, "y": y}, ["record 0 has -1e+30 in feature 0", "within ±1e+16", "rescale"]),
            ({}, {"x": x, "y": y * 0}, ["only one class (0)", "two"]),
            ({}, {"x": x, "y": y + 0.5}, ["y", "record 0", "0.5", "whole numbers"]),
            ({}, {"x": x, "y": np.array([0, 1, np.nan, 1])}, ["record 2", "no label"]),
            ({}, {"x": x[:0], "y": y[:0]}, ["no records"]),
            ({}, {"x": np.zeros((4, 3, 8, 3)), "y": y}, ["(4, 3, 8, 3)", "layout"]),
            ({}, {"x": np.zeros((4, 8, 8, 8)), "y": y}, ["(4, 8, 8, 8)", "layout"]),
            ({}, {"x": np.zeros((4, 1, 1, 1, 1)), "y": y}, ["5 dimensions"]),
            ({}, {"x": np.full((4, 8, 8), 300), "y": y}, ["300", "0 to 255"]),
            ({"sensitive": [4]}, {"x": x, "y": y}, ["sensitive", "[4]", "0 to 3"]),
            ({"sensitive": [0]}, {"x": np.zeros((4, 8, 8)), "y": y}, ["sensitive", "images"]),
            ({}, {"x_train": x, "y_train": y, "x_test": x[:, :2], "y_test": y}, ["x_train", "(4,)", "(2,)"]),
            ({}, {"x_train": x, "y_train": y, "x_test": x, "y_test": y[:2]}, ["y_test (2,)"]),
        ],
    )
    def test_arrays_that_do_not_fit(self, spec, arrays, words, tmp_path):
        refused(self.load(tmp_path, spec, **arrays), *words)


class TestTables:
    def load(self, tmp_path, content, suffix="csv", **spec):
        path = tmp_path / f"t.{suffix}"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return lambda: load({"path": str(path), "label": "y", **spec}, tmp_path)

    @pytest.mark.parametrize(
        ("text", "spec", "words"),
        [
            ("", {}, ["t.csv", "empty"]),
            ("a,y\n", {}, ["t.csv", "no records"]),
            ("a,lable\n1,u\n2,v\n", {}, ["label:", "t.csv", "'y'", "lable"]),
            ("a,yy\n1,u\n2,v\n", {}, ["label:", "did you mean 'yy'"]),
            ("a;y\n1;u\n2;v\n", {}, ["t.csv", "one single column 'a;y'", "separated by commas"]),
            ("a;y\n1,5;u\n2,25;v\n", {}, ["t.csv", "one single column 'a;y'", "separated by commas"]),
            ("1,2\n3,4\n", {}, ["t.csv", "first line holds numbers", "names"]),
            ("a,a,y\n1,2,u\n2,3,v\n", {}, ["two columns", "'a'"]),
            (",a,y\n0,1,u\n1,2,v\n", {}, ["column 1 has no name"]),
            ("y\nu\nv\n", {}, ["no columns besides the label 'y'"]),
            ("a,y\n1,u\n2,u\n", {}, ["column 'y'", "only one class (u)"]),
            ("a,y\n1,u\n2,\n3,v\n", {}, ["column 'y'", "record 1", "no label"]),
            ("a,y\n1,1.5\n2,2\n", {}, ["column 'y'", "1.5", "whole numbers"]),
            ("a,y\n1,u\n,v\n", {}, ["column 'a'", "lacks 1 of 2", "record 1", "missing: impute"]),
            ("a,y\n1,u\n?,v\n", {}, ["column 'a'", "lacks 1 of 2"]),
            (
                "a,b,c,y\n1,,,u\n?,2,3,v\n",
                {},
                [
                    "'a' lacks 1 of 2",
                    "counted from 0; values are also missing in 'b', 'c'; fill",
                    "the columns in drop",
                ],
            ),
            (
                "a,b,c,y\n1,,,u\n?,2,3,v\n",
                {"drop": ["a", "c"]},
                ["'b' lacks 1 of 2", "first in record 0, counted from 0; f"],
            ),
            (
                f"{','.join(map(str, range(25)))},y\n{',' * 25}u\n{','.join('1' * 25)},v\n",
                {},
                ["'0' lacks 1 of 2", "missing in '1', '2', ", "'20', 4 more; fill"],
            ),
            ("a,b,y\n1,,u\n2,,v\n", {"missing": "impute"}, ["column 'b'", "holds nothing", "drop"]),
            ("a,b,y\n,,u\n2,,v\n", {}, ["column 'b' lacks 2 of 2", "; it holds nothing, so list it in drop"]),
            ("a,b,c,y\n1,,,u\n2,,,v\n", {}, ["'b' lacks 2", "; columns 'b', 'c' hold nothing, so list them in drop"]),
            ("a,y\n1,u,7\n2,v\n", {}, ["t.csv", "more values than there are column names"]),
            (",".join(f"c{i}" for i in range(99)) + ",y\n", {"drop": ["c1000"]}, ["t.csv", "no records"]),
            ("a,y\n1,u\n2,v,7\n", {}, ["t.csv", "cannot be read"]),
            ("a,y\n" + "1,u\n2,v\n" * 9 + "oops,u\n", {}, ["column 'a'", "numeric", "'oops'", "record 18"]),
            ("a,y\n1e300,u\n2,v\n", {}, ["column 'a'", "inf", "finite"]),
            ("a,y\ninf,u\n2,v\n", {}, ["column 'a'", "inf", "finite"]),
            ("a,y\n1e16,u\n2e16,v\n", {}, ["record 1 has 2e+16 in column 'a'", "within ±1e+16", "rescale"]),
            ("a,y\n" + "".join(f"name{i},{'uv'[i % 2]}\n" for i in range(200)), {}, ["'a'", "200 different", "drop"]),
            ("a,y\n1,u\n2,v\n", {"sensitive": ["sex"]}, ["sensitive:", "'sex'", "valid: a, y"]),
            ("a,y\n1,u\n2,v\n", {"sensitive": ["y"]}, ["sensitive:", "'y' is the label"]),
            ("a,y\n1,u\n2,v\n", {"drop": ["b"]}, ["drop:", "'b'"]),
            ("a,b,y\n1,3,u\n2,4,v\n", {"drop": ["a"], "sensitive": ["a"]}, ["sensitive:", "'a'", "drop"]),
            ("a,y\n1,u\n2,v\n", {"categorical": ["z"]}, ["categorical:", "'z'"]),
            (b"a,y\n\xff\xfe,u\n2,v\n", {}, ["t.csv, line 2 is not UTF-8 text (byte 0xff); save the file as UTF-8"]),
            ("a,y\n1,\xe4\n2,v\n".encode("latin-1"), {}, ["t.csv, line 2 is not UTF-8 text (byte 0xe4); save"]),
            ("\xe4,y\n1,u\n2,v\n".encode("latin-1"), {}, ["t.csv, line 1 is not UTF-8 text (byte 0xe4); save"]),
            # beyond the first block
            (b"a,y\n" + b"1,u\n2,v\n" * 200_000 + b"3,\xe4\n", {}, ["line 400002 is not UTF-8 text (byte 0xe4)"]),
            (b"a,y\n" + b"1,u\n" + b"3,\xc3", {}, ["line 3 is not UTF-8 text (byte 0xc3)"]),  # half a character
            ("a,y\n1,u\n2,v\n".encode("utf-16"), {}, ["t.csv, line 1 is not UTF-8 text (byte 0xff); save"]),
            ("a,y\n1,u\n2,v\n".encode("utf-16-le"), {}, ["t.csv, line 1 is not UTF-8 text (byte 0x0); save"]),
            (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", {}, ["t.csv"]),
        ],
    )
    def test_csv(self, text, spec, words, tmp_path):
        refused(self.load(tmp_path, text, **spec), *words)

    def test_a_packed_table_that_is_no_utf8(self, tmp_path):
        packed = gzip.compress("a,y\n1,u\n2,\xe4\n".encode("latin-1"))
        refused(self.load(tmp_path, packed, "csv.gz"), "t.csv.gz, line 3 is not UTF-8 text (byte 0xe4); save the file")

    def test_a_truncated_gzip(self, tmp_path):
        packed = gzip.compress(("a,y\n" + "".join(f"{i * 7919 % 1013},u\n" for i in range(4000))).encode())
        refused(self.load(tmp_path, packed[: len(packed) // 2], "csv.gz"), "t.csv.gz", "cannot be read")

    def test_no_such_file(self, tmp_path):
        refused(lambda: load({"path": str(tmp_path / "u.csv"), "label": "y"}, tmp_path), "u.csv", "no such file")

    @pytest.mark.parametrize("change", [lambda b: b"", lambda b: b[:-30], lambda b: b"PAR1 not a table PAR1"])
    def test_a_damaged_parquet(self, change, tmp_path):
        buffer = io.BytesIO()
        pd.DataFrame({"a": [1, 2], "y": ["u", "v"]}).to_parquet(buffer)
        refused(self.load(tmp_path, change(buffer.getvalue()), "parquet"), "t.parquet", "cannot be read")

    @pytest.mark.parametrize(
        ("columns", "words"),
        [
            ({"a": [[1, 2], [3, 4]]}, ["column 'a'", "numbers and texts"]),
            ({"a": [{"k": 1}, {"k": 2}]}, ["column 'a'", "numbers and texts"]),
            ({"a": pd.to_datetime(["2020-01-01", "2021-01-01"])}, ["column 'a'", "datetime", "dates"]),
            ({"a": [b"\xff", b"\x00"]}, ["column 'a'", "bytes"]),
            ({"a": [1.0, None]}, ["column 'a'", "lacks 1 of 2"]),
            ({"b": [1.0, 2.0]}, ["sensitive:", "'a'", "valid: b, y"]),
        ],
    )
    def test_parquet(self, columns, words, tmp_path):
        buffer = io.BytesIO()
        pd.DataFrame({**columns, "y": ["u", "v"]}).to_parquet(buffer)
        spec = {"sensitive": ["a"]} if "b" in columns else {}
        refused(self.load(tmp_path, buffer.getvalue(), "parquet", **spec), *words)
