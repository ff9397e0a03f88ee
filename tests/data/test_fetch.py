"""Downloads, from a server on this machine: complete with the right checksum, or a sentence and no file."""

import functools
import hashlib
import http.server
import threading

import numpy as np
import pytest
from data_files import cifar_bytes, write_idx, write_tar

from dp_leakage.common.errors import UserError
from dp_leakage.data import load
from dp_leakage.data.fetch import Remote, checksum_note, download, find
from dp_leakage.data.sources import cifar, idx, images, purchase

CONTENT = b"published bytes" * 1000


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves a folder; paths below /cut promise more bytes than they send, /busy answers 503."""

    def do_GET(self):
        if self.path.startswith("/cut"):
            self.send_response(200)
            self.send_header("Content-Length", str(2 * len(CONTENT)))
            self.end_headers()
            self.wfile.write(CONTENT)
        elif self.path.startswith("/busy"):
            self.send_error(503)
        else:
            super().do_GET()

    def log_message(self, *args):
        pass


@pytest.fixture
def server(tmp_path):
    """Address of a server of the folder tmp_path/served, which holds ``file.bin``."""
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "file.bin").write_bytes(CONTENT)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=folder)) as running:
        threading.Thread(target=running.serve_forever, args=[0.01], daemon=True).start()
        yield f"http://127.0.0.1:{running.server_address[1]}"
        running.shutdown()


def sums(content: bytes) -> list[str]:
    return [f"{kind}:{hashlib.new(kind, content).hexdigest()}" for kind in ("md5", "sha256")]


@pytest.mark.parametrize("checksum", sums(CONTENT))
def test_a_file_with_the_published_checksum_arrives_whole(server, checksum, tmp_path):
    remote = Remote("file.bin", f"{server}/file.bin", checksum)
    path = download(remote, tmp_path / "data" / "set", "set")
    assert path == tmp_path / "data" / "set" / "file.bin"
    assert path.read_bytes() == CONTENT
    assert "as published" in checksum_note(path, remote)


@pytest.mark.parametrize(
    ("place", "checksum", "words"),
    [
        ("file.bin", sums(b"other")[0], ["other bytes", "published checksum"]),
        ("none.bin", sums(CONTENT)[0], ["could not be downloaded", "HTTPError"]),
        ("busy/file.bin", sums(CONTENT)[0], ["could not be downloaded", "HTTPError"]),
        ("cut/file.bin", sums(CONTENT)[0], ["by hand"]),
    ],
)
def test_a_failed_download_leaves_no_file_and_says_what_to_put_where(server, place, checksum, words, tmp_path):
    remote = Remote("file.bin", f"{server}/{place}", checksum)
    with pytest.raises(UserError) as refusal:
        download(remote, tmp_path / "set", "my set")
    message = str(refusal.value)
    assert "\n" not in message
    for word in [*words, "my set", remote.url, str(tmp_path / "set" / "file.bin")]:
        assert word in message
    assert list((tmp_path / "set").iterdir()) == []


def test_no_connection_is_said_in_one_sentence(tmp_path):
    remote = Remote("file.bin", "http://127.0.0.1:9/file.bin", sums(CONTENT)[0])
    with pytest.raises(UserError, match=r"could not be downloaded \(ConnectionError\); put the file from"):
        download(remote, tmp_path, "set")


def test_a_folder_that_cannot_be_written_is_said_in_one_sentence(server, tmp_path):
    (tmp_path / "blocked").write_text("a file, not a folder")
    remote = Remote("file.bin", f"{server}/file.bin", sums(CONTENT)[0])
    with pytest.raises(UserError, match="could not be written"):
        download(remote, tmp_path / "blocked", "set")


def test_without_a_published_checksum_nothing_is_downloaded(server, tmp_path):
    remote = Remote("file.bin", f"{server}/file.bin", None)
    with pytest.raises(UserError, match="no checksum of it is published") as refusal:
        download(remote, tmp_path / "set", "set")
    assert str(tmp_path / "set" / "file.bin") in str(refusal.value)
    assert not (tmp_path / "set").exists()


@pytest.mark.parametrize("source", ["faces94", "purchase100", "purchase100_raw"])
def test_sets_without_a_checksum_say_which_file_to_put_where(source, tmp_path):
    with pytest.raises(UserError, match="by hand") as refusal:
        load({"source": source}, tmp_path)
    assert str(tmp_path / source) in str(refusal.value)


def test_a_set_downloads_once_and_is_then_found(server, tmp_path, monkeypatch):
    x, y = np.zeros((12, 28, 28)), np.arange(12) % 10
    served = write_idx(tmp_path / "served", x[:8], y[:8], x[8:], y[8:])
    remotes = tuple(Remote(p.name, f"{server}/{p.name}", sums(p.read_bytes())[0]) for p in served)
    layout = idx.LAYOUTS["mnist"]._replace(remotes=remotes, train=8, test=4)
    monkeypatch.setitem(idx.LAYOUTS, "mnist", layout)
    raw = load({"source": "mnist"}, tmp_path / "data")
    assert raw.x.shape == (12, 1, 28, 28)
    assert all("as published" in note for note in raw.notes)
    for path in served:
        path.unlink()
    again = load({"source": "mnist"}, tmp_path / "data")
    np.testing.assert_array_equal(again.x, raw.x)


def test_a_found_archive_is_never_replaced_even_if_it_is_another_copy(tmp_path, monkeypatch):
    layout = cifar.LAYOUTS["cifar10"]._replace(train={"data_batch_1.bin": 20}, test={"test_batch.bin": 10})
    monkeypatch.setitem(cifar.LAYOUTS, "cifar10", layout)
    records = cifar_bytes(np.zeros((20, 3, 32, 32)), np.arange(20) % 10)
    files = {"c/data_batch_1.bin": records, "c/test_batch.bin": records[: len(records) // 2]}
    archive = write_tar(tmp_path / layout.remote.file, files)
    before = archive.read_bytes()
    raw = load({"source": "cifar10"}, tmp_path)
    assert any("differs from the published" in note for note in raw.notes)
    assert archive.read_bytes() == before


def test_files_are_looked_for_in_the_sets_folder_first(tmp_path):
    assert find(tmp_path, "set", ["a", "b"]) is None
    (tmp_path / "b").touch()
    assert find(tmp_path, "set", ["a", "b"]) == tmp_path / "b"
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "b").touch()
    assert find(tmp_path, "set", ["a", "b"]) == tmp_path / "set" / "b"


def test_every_published_checksum_has_the_form_of_its_kind():
    remotes = [layout.remote for layout in cifar.LAYOUTS.values()]
    remotes += [remote for layout in idx.LAYOUTS.values() for remote in layout.remotes]
    remotes += [remote for official in images.OFFICIAL.values() for remote in official.remotes]
    remotes += [purchase.RELEASE, purchase.TRANSACTIONS]
    for remote in remotes:
        if remote.checksum is not None:
            kind, digest = remote.checksum.split(":")
            assert len(bytes.fromhex(digest)) == hashlib.new(kind).digest_size
    assert sum(remote.checksum is None for remote in remotes) == 3
