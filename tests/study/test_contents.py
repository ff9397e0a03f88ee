"""What a run tells its jobs of the user's files."""

import pytest

from dp_leakage.common import paths
from dp_leakage.common.paths import use_copies, user_path
from dp_leakage.study import contents


def test_a_job_knows_the_files_that_its_run_told_it_and_no_others(monkeypatch):
    monkeypatch.setenv(contents.VARIABLE, "{}")
    contents.tell({"my data.csv": "aa"})
    contents.tell({"members.txt": "bb"})
    assert [contents.known(name) for name in ("my data.csv", "members.txt", "other.csv")] == ["aa", "bb", None]


@pytest.mark.parametrize("said", [None, "", "[]", '{"other.csv": "aa"}', '{"data.csv": 3}'])
def test_outside_a_run_nothing_is_known(monkeypatch, said):
    monkeypatch.delenv(contents.VARIABLE, raising=False)
    if said is not None:
        monkeypatch.setenv(contents.VARIABLE, said)
    assert contents.known("data.csv") is None


def test_a_job_reads_its_copies_under_the_names_of_the_study(monkeypatch, tmp_path):
    monkeypatch.setattr(paths, "COPIES", {})
    use_copies(["data.csv", "{odd}.csv", "~/members.txt"], [tmp_path / "a", tmp_path / "b"])
    assert user_path("data.csv") == tmp_path / "a"
    assert user_path("~/members.txt") == tmp_path / "b"
    assert user_path("{odd}.csv").name == "{odd}.csv"  # no input of Snakemake's, so read where it lies
