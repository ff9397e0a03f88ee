"""Learning rates tried on records set apart: what the study asks for, what the step finds, and who trains with it."""

import pandas as pd
import pytest
from loading import REPO
from loading import load as load_file

from dp_leakage.common.config import merged
from dp_leakage.common.errors import UserError
from dp_leakage.common.identity import identity
from dp_leakage.provenance.files import read_table, read_tensors
from dp_leakage.steps import measure_training, prepare, project, train, tune
from dp_leakage.steps._models import tuned_training
from dp_leakage.study.paths import DATA, HISTORY, PREPARED, STUDY, TRAINED, tuned_for
from dp_leakage.study.plan import everything
from dp_leakage.study.steps import (
    data_identity,
    prepare_settings,
    project_settings,
    settings_of,
    train_settings,
    tune_settings,
)

QUICKSTART = REPO / "workflow" / "studies" / "quickstart.yaml"
RATES = [1e-5, 0.1, 3e38]
TUNED = {
    "tune": {"learning_rate": RATES},
    "datasets": {"digits": {"roles": {"pool": 300, "target_nonmembers": 200, "tuning": 200}}},
    "models": {"mlp": None},
    "repeats": 2,
    "epsilon": [10],
    "training": {"epochs": 20, "evaluate_every": 20},
    "defenses": [
        {"defense": "none"},
        {"defense": "l2", "l2": 0.1, "learning_rate": [0.5]},
        {"defense": "gaussian", "accountant": "rdp", "sampler": "poisson"},
    ],
    "figures": {"fig_pareto": None, "fig_vulnerability": None},
}
PRIVATE = ("digits", "softmax_regression", "gaussian-rdp-eps=10")


def load(changes=None):
    return load_file(merged(TUNED, changes or {}), file=QUICKSTART)["quickstart"]


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = load()
    data, prepared = (found.path(pattern, dataset="digits") for pattern in (DATA, PREPARED))
    prepare.main(prepare_settings(found, "digits"), prepared, tmp_path)
    project.main(project_settings(found, "digits"), prepared, data)
    return found


def tuned(study, names=PRIVATE):
    cell = study.cell(*names)
    tune.main(tune_settings(study, cell), study.path(DATA, dataset="digits"), tuned_for(study, cell)[0], "cpu")
    return cell, tuned_for(study, cell)[0]


def trained(study, names=PRIVATE):
    cell, file = tuned(study, names)
    folder = file.parent
    paths = [folder / name for name in ("target.safetensors", "training.parquet", "timing.json")]
    train.main(train_settings(study, cell), study.path(DATA, dataset="digits"), *paths, "cpu", 60.0, file)
    return paths


def test_every_rate_is_tried_on_every_fold_and_one_that_diverges_gets_nothing_right(study):
    _, file = tuned(study)
    found, made = read_table(file, None)
    assert found["learning_rate"].tolist() == [rate for rate in RATES for _ in range(2)]
    right = found.groupby("learning_rate")["accuracy"].mean()
    assert right[0.1] > 0.4 > right[1e-5] > 0
    assert right[3e38] == 0
    assert made["records"] == 200


def test_the_same_study_gives_the_same_bytes(study):
    _, file = tuned(study)
    first = file.read_bytes()
    tuned(study)
    assert file.read_bytes() == first


def test_a_cell_trains_with_the_rate_that_was_best_and_its_metrics_say_so(study):
    cell = study.cell(*PRIVATE)
    _, made = read_tensors(trained(study)[0], identity(train_settings(study, cell)))
    assert made["learning_rate"] == 0.1
    settings = train_settings(study, cell)
    given = {key: value for key, value in settings.items() if key != "tuned"}
    alone = [study.path(STUDY) / name for name in ("a.safetensors", "a.parquet", "a.json")]
    by_hand = merged(given, {"training": {"learning_rate": 0.1}})
    train.main(by_hand, study.path(DATA, dataset="digits"), *alone, "cpu", 60.0)
    expected, _ = read_tensors(alone[0], identity(by_hand))
    found, _ = read_tensors(study.path(TRAINED, study.cell(*PRIVATE)), None)
    assert all((found[name] == expected[name]).all() for name in expected)
    trained(study, ("digits", "softmax_regression", "none"))
    histories = [study.path(HISTORY, study.cell(*PRIVATE[:2], name)) for name in (PRIVATE[2], "none")]
    out = [study.path(STUDY) / f"{name}.parquet" for name in ("rows", "curve", "proven")]
    measure_training.main(settings_of(study, "measure_training", cell), *histories, *out)
    rows = pd.read_parquet(out[0])
    assert rows.loc[rows["metric"] == "learning_rate", "value"].tolist() == [0.1]
    tried = rows[rows["metric"] == "tuning_accuracy"]
    assert tried["tried"].tolist() == RATES
    assert (tried["low"] <= tried["value"]).all()


def test_settings_that_name_a_rate_found_elsewhere_need_its_file(study):
    settings = train_settings(study, study.cell(*PRIVATE))
    with pytest.raises(UserError, match="tuned: missing"):
        tuned_training(settings, None)


def test_of_equal_rates_the_first_is_taken(study, tmp_path):
    cell, file = tuned(load({"tune": {"learning_rate": [3e38, 2e38]}}))
    settings = train_settings(load({"tune": {"learning_rate": [3e38, 2e38]}}), cell)
    assert tuned_training(settings, file)[0].learning_rate == 3e38


def test_only_cells_without_a_rate_of_their_own_are_tuned_and_only_their_training_waits_for_it():
    study, plain = load(), load({"tune": None, "datasets": {"digits": {"roles": {"tuning": None}}}})
    own = study.cell("digits", "softmax_regression", "l2-learning_rate=0.5")
    assert own.rates == ()
    assert tuned_for(study, own) == []
    there = train_settings(plain, plain.cell(*own.key.split("/")))
    assert train_settings(study, own) == there | {"data": data_identity(study, "digits")}
    private = study.cell(*PRIVATE)
    assert train_settings(study, private)["tuned"] == identity(tune_settings(study, private))
    assert "tuned" not in train_settings(plain, plain.cell(*PRIVATE))
    files = everything(study)
    assert tuned_for(study, private)[0] in files
    assert not any(path.name == "tuned.parquet" and own.defense in path.parts for path in files)


def test_what_changes_no_rate_tries_none_again():
    study = load()
    cell = study.cell(*PRIVATE)
    for change in ({"repeats": 9}, {"training": {"evaluate_every": 1}}, {"epsilon": [10, 100]}):
        other = load(change)
        assert identity(tune_settings(other, other.cell(*PRIVATE))) == identity(tune_settings(study, cell))
    for change in ({"tune": {"learning_rate": [0.1]}}, {"training": {"epochs": 5}}, {"seed": 3}):
        other = load(change)
        assert identity(tune_settings(other, other.cell(*PRIVATE))) != identity(tune_settings(study, cell))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"datasets": {"digits": {"roles": {"tuning": None}}}}, r"'datasets.digits.roles' lacks the role 'tuning'"),
        (
            {"datasets": {"digits": {"roles": {"tuning": 40}}}},
            r"'datasets.digits.roles.tuning' is 40; expected 50 or",
        ),
        ({"tune": None}, r"'datasets.digits.roles' has the role 'tuning', which the missing key 'tune' would use"),
        ({"tune": {"learning_rate": [0]}}, r"tune.learning_rate.0' is 0; expected a number above 0"),
        ({"tune": {"learning_rate": [0.1, 0.1]}}, r"tune.learning_rate' is \[0.1, 0.1\], which names something twice"),
        ({"tune": {"batch_size": [5]}}, r"unknown key 'overrides.quickstart.tune.batch_size'"),
    ],
)
def test_what_cannot_be_tuned_is_refused_in_a_sentence(change, sentence):
    with pytest.raises(UserError, match=sentence):
        load(change)
