"""Canaries: the training set keeps its size, and each kind is what it says."""

import numpy as np
import pytest

from dp_leakage.audits.designs import DESIGNS
from dp_leakage.common.errors import UserError
from dp_leakage.common.sections import schema_of
from dp_leakage.data.canaries import KINDS, place
from dp_leakage.data.dataset import Dataset
from dp_leakage.release.twin import CANARIES
from dp_leakage.study.sections import StudyFile

RNG = np.random.default_rng(0)
ROLES = {"target_members": np.arange(80), "target_nonmembers": np.arange(80, 180)}
DATA = Dataset(RNG.normal(size=(200, 5)).astype(np.float32), np.arange(200) % 4, ROLES, np.array([], dtype=np.int64))
IMAGES = DATA._replace(x=RNG.normal(size=(200, 1, 4, 4)).astype(np.float32))


FLAT_OR_IMAGES = [(kind, data) for kind in KINDS for data in (DATA, IMAGES) if kind != "feature" or data is DATA]


@pytest.mark.parametrize("replaced", [True, False])
@pytest.mark.parametrize(("kind", "data"), FLAT_OR_IMAGES)
def test_with_either_side_of_each_coin_the_training_set_has_its_usual_size(kind, replaced, data):
    placed = place(data, kind, 6, replaced, 3)
    assert len(placed.fixed) + len(placed.held) == 80
    assert len({*placed.fixed} | {*placed.held} | {*placed.other}) == len(placed.x) == len(placed.y)
    assert (placed.held >= placed.first).all() == (kind == "gradient")
    assert (placed.other >= placed.first).all() == (kind == "gradient" or not replaced)
    assert (placed.fixed < placed.first).all()


def test_members_that_stay_are_the_data_unchanged():
    placed = place(DATA, "blank", 5, True, 0)
    kept = {tuple(row) for row in placed.x[placed.fixed]}
    assert kept < {tuple(row) for row in DATA.x[:80]}
    assert len(kept) == 75


def true_labels(placed, rows):
    """The label in the data of the records with these features."""
    return np.array([DATA.y[np.flatnonzero((DATA.x == x).all(axis=1))[0]] for x in placed.x[rows]])


@pytest.mark.parametrize(("kind", "right"), [("natural", True), ("mislabeled", False)])
def test_natural_canaries_are_a_member_and_an_nonmember_and_mislabelled_ones_have_wrong_labels(kind, right):
    placed = place(DATA, kind, 7, True, 3)
    assert (placed.y[placed.held] == placed.y[placed.other]).all()
    for rows in (placed.held, placed.other):
        assert ((placed.y[rows] == true_labels(placed, rows)) == right).all()


def test_feature_canaries_have_a_feature_of_their_own():
    placed = place(DATA, "feature", 7, True, 3)
    assert (np.count_nonzero(placed.x[:, 5:], axis=0) == 2).all()
    assert (placed.x[placed.held] == -placed.x[placed.other]).all()
    assert (placed.x[placed.held, :5] == 0).all()


@pytest.mark.parametrize("data", [DATA, IMAGES])
def test_optimized_canaries_lie_where_the_records_lie_least(data):
    placed = place(data, "optimized", 2, True, 3)
    records = data.x[:80].reshape(80, -1)
    canary, *_ = placed.x[placed.held].reshape(2, -1)
    assert np.linalg.norm(canary) == pytest.approx(np.linalg.norm(records, axis=1).mean(), rel=1e-5)
    rng = np.random.default_rng(0)
    others = rng.normal(size=(1000, records.shape[1]))
    others *= np.linalg.norm(canary) / np.linalg.norm(others, axis=1)[:, None]
    assert np.square(records @ canary).sum() <= np.square(records @ others.T).sum(0).min()
    assert (placed.x[placed.held] == -placed.x[placed.other]).all()
    assert (placed.y[placed.held] == placed.y[placed.other]).all()


def test_blank_canaries_differ_in_their_labels_alone():
    placed = place(IMAGES, "blank", 7, True, 3)
    assert not placed.x[[*placed.held, *placed.other]].any()
    assert (placed.y[placed.held] != placed.y[placed.other]).all()


def test_too_many_canaries_are_refused_with_the_number_that_there_can_be():
    with pytest.raises(UserError, match="asks for 81 natural canaries; expected up to 80"):
        place(DATA, "natural", 81, True, 0)


def test_a_feature_of_its_own_needs_flat_records():
    with pytest.raises(UserError, match="use blank or gradient"):
        place(IMAGES, "feature", 1, True, 0)


PERSON = np.repeat(np.arange(60), RNG.permutation(np.arange(60) % 5 + 1))[RNG.permutation(180)]
OF_ROLE = [RNG.permutation(np.flatnonzero(own)) for own in (PERSON < 30, PERSON >= 30)]
PERSONS = DATA._replace(
    x=DATA.x[:180],
    y=DATA.y[:180],
    roles=dict(zip(("target_members", "target_nonmembers"), OF_ROLE, strict=True)),
    person=PERSON,
)


def test_an_unknown_canary_is_refused():
    """Its two records were equal, so that an audit could find nothing."""
    with pytest.raises(UserError, match=r"canary 'blanc' is unknown; did you mean 'blank'\?"):
        place(DATA, "blanc", 1, replaced=True, seed=0)


def test_the_schema_of_a_study_has_the_canaries_and_designs_that_there_are():
    enums = {}

    def collect(node):
        if isinstance(node, dict):
            for key, value in node.items():
                if isinstance(value, dict) and "enum" in value:
                    enums.setdefault(key, []).append(tuple(value["enum"]))
                collect(value)
        elif isinstance(node, list):
            for value in node:
                collect(value)

    collect(schema_of(StudyFile))
    assert tuple(DESIGNS) in enums["design"]
    assert KINDS in enums["canary"]
    assert CANARIES in enums["canary"]


@pytest.mark.parametrize("replaced", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_a_canary_takes_the_place_of_a_whole_person(kind, replaced):
    placed = place(PERSONS, kind, 6, replaced, 3)
    assert set(placed.of) == set(range(6))
    assert len(placed.held) == len(placed.other) == len(placed.of)
    several = kind in ("natural", "mislabeled")
    assert (len(placed.held) > 6) == several
    members = {one: int((PERSON[OF_ROLE[0]] == one).sum()) for one in range(30)}
    staying, counts = np.unique(placed.person[placed.fixed], return_counts=True)
    # Who stays has all records; six have gone with all of theirs.
    assert {one: members[one] for one in staying} == dict(zip(staying, counts, strict=True))
    assert len(staying) == 24
    for own in range(6):
        of_held, of_other = (placed.person[rows[placed.of == own]] for rows in (placed.held, placed.other))
        assert len({*of_held} | {*of_other}) == 1
        assert not np.isin(of_held, placed.person[placed.fixed]).any()
        if several:
            known = {tuple(row): whose for row, whose in zip(PERSONS.x, PERSON, strict=True)}
            rows = placed.held[placed.of == own]
            assert len({known[tuple(row)] for row in placed.x[rows]}) == 1
