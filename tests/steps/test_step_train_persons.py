"""Reference models of a study of persons with fixed members: whole persons, and trained as the targets are."""

import numpy as np
import pandas as pd
import pytest
from loading import load

from dp_leakage.common.errors import UserError
from dp_leakage.metrics.paired import right_answers
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.privacy.training import Training
from dp_leakage.provenance.files import read_tensors
from dp_leakage.steps import prepare, project, train
from dp_leakage.study import paths
from dp_leakage.study.steps import auxiliary_settings, prepare_settings, project_settings, train_settings

POOL = ["target_members", "target_nonmembers"]
PERSONS = {
    "datasets": {
        "digits": {
            "source": {"source": "digits", "person": 120},
            "roles": {"target_members": 40, "target_nonmembers": 40, "shadow_pool": None, "reference_pool": 30},
            "stratified": None,
            "projection": {"components": 5},
        }
    },
    "models": {"mlp": None},
    "repeats": 2,
    "training": {"epochs": 2, "batch_size": 10, "evaluate_every": 2},
    "defenses": [{"defense": "none"}, {"defense": "person", "accountant": "rdp", "epsilon": [5]}],
    "shadow": None,
    "reference": {"count": 6, "size": 40, "pool": POOL, "defense": "same"},
    "attacks": {"shokri": None, "yeom_attribute": None},
    "figures": dict.fromkeys(("fig_leakage_shokri", "fig_leakage_attribute", "fig_pareto")),
}


def persons(**changes):
    return load(PERSONS | changes)["quickstart"]


@pytest.mark.parametrize("defense", ["none", "person-rdp-eps=5"])
def test_references_have_whole_persons_and_the_targets_rate_steps_and_noise(defense, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    study = persons()
    data, prepared = study.path(paths.DATA, dataset="digits"), study.path(paths.PREPARED, dataset="digits")
    prepare.main(prepare_settings(study, "digits"), prepared, tmp_path)
    project.main(project_settings(study, "digits"), prepared, data)
    arrays = np.load(data)
    rows = np.concatenate([arrays[role] for role in POOL])
    cell = study.cell("digits", "softmax_regression", defense)
    made, trained = [], []
    for settings in (
        train_settings(study, cell),
        auxiliary_settings(study, "digits", "softmax_regression", "reference", defense),
    ):
        models = tmp_path / f"{settings['role']}.safetensors"
        train.main(settings, data, models, tmp_path / "history.parquet", tmp_path / "timing.json", "cpu", 60.0)
        history, (tensors, stamp) = pd.read_parquet(tmp_path / "history.parquet"), read_tensors(models, None)
        tested = right_answers(history)
        assert tested.accuracies == pytest.approx(history["test_accuracy"])  # of the only epoch that was evaluated
        persons_tested = arrays["person"][arrays["target_nonmembers"]]
        assert np.array_equal(tested.asked, np.unique(persons_tested, return_counts=True)[1])
        trained.append([own[own >= 0] for own in tensors["train_indices"]])
        made.append(stamp)
    target, reference = trained
    for own in target:
        assert set(own) == set(arrays["target_members"])
    inside = [set(arrays["person"][own]) for own in reference]
    for own, people in zip(reference, inside, strict=True):
        assert len(people) == 40
        assert set(own) == set(rows[np.isin(arrays["person"][rows], [*people])])
    for person in np.unique(arrays["person"][rows]):  # halves, so each is in as many models as out
        assert sum(person in people for people in inside) == 3
    assert [stamp["settings"]["training"]["batch_size"] for stamp in made] == [10, 20]
    of_target, of_reference = (stamp["training"] for stamp in made)
    if defense == "none":
        assert of_target is of_reference is None
        return
    assert of_target["mechanism"] == of_reference["mechanism"]  # with the same noise
    assert [own["dataset_size"] for own in (of_target, of_reference)] == [40, 80]
    assert (of_target["records"], of_target["moves"]) == (1, False)  # persons are the units, whatever they bring


@pytest.mark.parametrize(
    ("reference", "complaint"),
    [
        ({"size": 39}, "'reference.size' is 39; expected half of the 80 persons of target_members and target_nonmemb"),
        ({"engine": "estimator", "architecture": {"name": "sklearn.svm:SVC"}}, "'reference.engine' is set"),
    ],
)
def test_references_that_could_not_train_alike_are_refused(reference, complaint):
    with pytest.raises(UserError, match=complaint):
        persons(reference=PERSONS["reference"] | reference)


@pytest.mark.parametrize("changes", [{"yeom": {"of_person": "learned"}}, {"lira": {"of_person": "learned"}}])
def test_learned_needs_references_that_know_the_people_asked_about(changes):
    outsiders = PERSONS["reference"] | {"pool": ["reference_pool"], "size": 15}
    attacks = PERSONS["attacks"] | {"lira_online": None} | changes
    with pytest.raises(UserError, match="is 'learned'; use an attack with reference"):
        persons(attacks=attacks, reference=outsiders, figures=PERSONS["figures"] | {"fig_leakage_lira": None})


def test_a_non_member_with_many_records_may_take_a_member_s_place_unless_coins_choose():
    person = np.array([0, 0, 1, 1, 2, 2, 2])
    members, others, alike = np.array([0, 1, 2, 3]), np.array([4, 5, 6]), np.array([0, 1, 4, 5])

    def told(unit, trained, others):
        private = Training(Mechanism("poisson", unit, noise_multiplier=1.0), 1, 1, 4)
        found = train.with_players(private, person, trained, others)
        return found.records, found.moves

    assert told("example", members, None) == (2, False)
    assert told("example", members[:3], None) == (2, False)
    assert told("example", members, others) == (3, True)
    assert told("example", members[:2], alike[2:]) == (2, False)
    assert told("person", members, others) == (1, False)
