"""A command in a folder that is no longer there says so."""

import pytest

from dp_leakage.commands import main


@pytest.mark.parametrize("words", [["run", "quickstart"], ["list"]])
def test_a_deleted_working_folder_is_told_in_one_sentence(tmp_path, monkeypatch, capsys, words):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert main(words) == 1
    assert capsys.readouterr().err.startswith("error: the current folder was deleted; ")
