"""Who is drawn from where, where the publisher's own split is asked for."""

import numpy as np
import pytest

from dp_leakage.common.errors import UserError
from dp_leakage.data.groups import Names, groups_of
from dp_leakage.data.raw import Raw, ranges
from dp_leakage.data.splits import split
from dp_leakage.provenance.files import read_arrays
from dp_leakage.steps import _source, prepare
from dp_leakage.steps._data import dataset_of
from dp_leakage.steps.prepare import official_rows

Y = np.arange(100) % 5
RAW = Raw(np.zeros((100, 2), np.float32), Y, tuple("abcde"), given=ranges(train=70, test=30))


def test_members_are_training_records_and_non_members_test_records():
    given = official_rows(RAW, "mnist")
    roles = {"shadow_pool": 20, "target_members": 70, "target_nonmembers": 10}
    rows = split(Y, roles, seed=3, stratified=False, given=given)
    assert set(rows["target_members"]) == set(range(70))
    assert set(rows["target_nonmembers"]) | set(rows["shadow_pool"]) == set(range(70, 100))
    assert len(rows["target_nonmembers"]) == 10


def test_a_source_without_a_split_of_its_own_is_refused():
    with pytest.raises(UserError, match="the source digits has no training and test records of its own; set false"):
        official_rows(RAW._replace(given={}), "digits")


def test_records_of_a_source_that_names_no_checksum_are_prepared(tmp_path, monkeypatch):
    """As the documented plugin's; its empty checksums could not be written."""
    monkeypatch.setattr(_source, "load", lambda source, data_dir: RAW)
    roles = {"target_members": 60, "target_nonmembers": 40}
    settings = {"source": {"source": "digits"}, "roles": roles, "seed": 1, "stratified": False}
    settings |= {"official_split": False, "augment": None, "content": None}
    prepare.main(settings, tmp_path / "prepared.npz", tmp_path)
    arrays, made = read_arrays(tmp_path / "prepared.npz")
    assert len(arrays["x"]) == 100
    assert made["sha256"] == {}


@pytest.mark.parametrize("words", [("no", "yes"), ("False", "True"), ("0", "1")])
def test_groups_of_a_column_with_two_values_bear_the_users_words(words, tmp_path):
    """Texts, truth values and numbers as a table's file holds them."""
    rows = [f"{words[k % 2]},{k},{'ab'[k // 50]}" for k in range(100)]
    (tmp_path / "t.csv").write_text("\n".join(["smoker,age,y", *rows]))
    source = {"source": "csv", "path": str(tmp_path / "t.csv"), "label": "y", "sensitive": ["smoker"]}
    settings = {"source": source, "roles": {"target_members": 60, "target_nonmembers": 40}, "seed": 1}
    settings |= {"stratified": False, "official_split": False, "augment": None, "content": None}
    prepare.main(settings, tmp_path / "prepared.npz", tmp_path)
    arrays, made = read_arrays(tmp_path / "prepared.npz")
    found = groups_of(dataset_of(arrays), ["sensitive"], Names(**made["names"]))["smoker"]
    assert {name: list(own) for name, own in found.items()} == {
        words[0]: list(range(0, 100, 2)),
        words[1]: list(range(1, 100, 2)),
    }


@pytest.mark.parametrize("existing", [True, False])
def test_persons_are_proposed_only_where_models_are_trained_here(existing, tmp_path):
    """A study of a model that exists already knows no key `person`."""
    rows = [f"{k % 25},{k},{'ab'[k % 2]},{int(k < 60)}" for k in range(100)]
    (tmp_path / "t.csv").write_text("\n".join(["patient,height,y,member", *rows]))
    own = {"member": "member"} if existing else {"drop": ["member"]}
    source = {"source": "csv", "path": str(tmp_path / "t.csv"), "label": "y", **own}
    settings = {"source": source, "roles": {"target_members": 60, "target_nonmembers": 40}, "seed": 1}
    settings |= {"stratified": False, "official_split": existing, "augment": None, "content": None}
    prepare.main(settings, tmp_path / "prepared.npz", tmp_path)
    (said,) = [remark for remark in read_arrays(tmp_path / "prepared.npz")[1]["remarks"] if "seems to name" in remark]
    assert ("--person patient" in said) != existing
    assert ("people with several records make them too narrow" in said) == existing
    assert said.endswith("eep one record per person.")
