"""More repeats train the new models alone, with the bytes of a run that had them all from the start."""

import json
import logging
from types import SimpleNamespace

import pytest
from loading import QUICKSTART, REPO, load

from dp_leakage.provenance.files import read_tensors, write_json, write_tensors
from dp_leakage.steps import _kept, prepare, project, train
from dp_leakage.study import paths
from dp_leakage.study.steps import (
    auxiliary_settings,
    prepare_settings,
    project_settings,
    settings_of,
    train_settings,
)

STUDIES = {"split": QUICKSTART, "coins": REPO / "workflow" / "studies" / "quickstart.yaml"}
ROLES = {
    "split": {"target_members": 60, "target_nonmembers": 60, "shadow_pool": None, "reference_pool": None},
    "coins": {"pool": 90, "target_nonmembers": 60},
}
OTHERS = {
    "split": {
        "shadow": None,
        "reference": {"size": 30},
        "attacks": {"shokri": None, "yeom_attribute": None},
        "figures": dict.fromkeys(("fig_leakage_shokri", "fig_leakage_attribute", "fig_pareto")),
    },
    "coins": {"figures": {"fig_vulnerability": None}},
}
TINY = {"models": {"mlp": None}, "training": {"epochs": 2, "batch_size": 20, "evaluate_every": 1}}
PRIVATE = {"defense": "gaussian", "accountant": "rdp", "sampler": "poisson", "epsilon": [5]}
SUBCLASS = {"defense": "subclass", "accountant": "class_moments", "k_sub": 3, "partition": "kmeans", "epsilon": [5]}
PERSON = {"defense": "person", "accountant": "rdp", "epsilon": [5]}
FILES = ("target.safetensors", "training.parquet", "timing.json")


def study_of(repeats=2, design="split", defense=PRIVATE, source="digits", **changes):
    digits = {"source": source, "roles": ROLES[design], "stratified": None, "projection": None}
    given = {"datasets": {"digits": digits}, "repeats": repeats, "defenses": [{"defense": "none"}, defense]}
    return load(TINY | OTHERS[design] | given | changes, file=STUDIES[design])["quickstart"]


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A function that returns the data file of a study."""
    monkeypatch.chdir(tmp_path)

    def of(study):
        data, prepared = study.path(paths.DATA, dataset="digits"), study.path(paths.PREPARED, dataset="digits")
        if not data.exists():
            prepare.main(prepare_settings(study, "digits"), prepared, tmp_path)
            project.main(project_settings(study, "digits"), prepared, data)
        return data

    return of


def trained(settings, data, folder):
    """The files of a training in a folder, where an earlier one may have left its own."""
    written = [folder / name for name in FILES]
    train.main(settings, data, *written, device="cpu", checkpoint_seconds=60.0)
    return written


def bytes_of(written):
    return [path.read_bytes() for path in written if path.suffix != ".json"]


@pytest.fixture
def counted(monkeypatch):
    """How many models each training trained."""
    counts, loaded, answered = [], train.import_module, train.asked

    def module(name):
        def counting(layers, x, y, subsets, seeds, *rest, **named):
            counts.append(len(seeds))
            return loaded(name).train(layers, x, y, subsets, seeds, *rest, **named)

        return SimpleNamespace(train=counting)

    def asked(engine, settings, data, subsets, seeds):
        counts.append(len(seeds))
        return answered(engine, settings, data, subsets, seeds)

    monkeypatch.setattr(train, "import_module", module)
    monkeypatch.setattr(train, "asked", asked)
    return counts


def last_cell(study, **changes):
    """The settings of a study's last cell."""
    return train_settings(study, [*study.cells.values()][-1]) | changes


FOREST = {"name": "sklearn.ensemble:RandomForestClassifier", "n_estimators": 3}
KINDS = {
    "softmax_regression": {"architecture": {"name": "softmax_regression"}},
    "mlp": {"architecture": {"name": "mlp", "hidden": [64, 64]}},
    "dropout": {"architecture": {"name": "mlp", "hidden": [16]}, "dropout": 0.3},
    "cnn_small": {"architecture": {"name": "cnn_small"}},
    "opacus": {"engine": "opacus"},
    "estimator": {"engine": "estimator", "architecture": FOREST, "mechanism": None},
    "structure": {"engine": "estimator", "architecture": FOREST, "mechanism": None, "structure": True},
    "traced": {"traced": True},
}


@pytest.mark.parametrize("design", ["split", "coins"])
@pytest.mark.parametrize("kind", KINDS)
def test_more_repeats_train_the_new_models_with_the_bytes_of_a_run_that_has_them_all(
    kind, design, data, tmp_path, counted
):
    few, many = (last_cell(study_of(repeats, design), **KINDS[kind]) for repeats in (3, 5))
    source = data(study_of(3, design))
    fresh = trained(many, source, tmp_path / "fresh")
    first = bytes_of(trained(few, source, tmp_path / "grown"))
    grown = trained(many, source, tmp_path / "grown")
    assert counted == [5, 3, 2]
    assert bytes_of(grown) == bytes_of(fresh)
    cut = trained(few, source, tmp_path / "grown")
    assert counted == [5, 3, 2]  # none
    assert bytes_of(cut) == first


@pytest.mark.parametrize("design", ["split", "coins"])
def test_persons_too(design, data, tmp_path, counted):
    source = {"source": "digits", "person": 240}
    reference = {"reference": {"size": 60}} if design == "split" else {}  # half of the persons
    few, many = (study_of(repeats, design, PERSON, source, **reference) for repeats in (2, 5))
    file = data(few)
    fresh = trained(last_cell(many), file, tmp_path / "fresh")
    trained(last_cell(few), file, tmp_path / "grown")
    assert bytes_of(trained(last_cell(many), file, tmp_path / "grown")) == bytes_of(fresh)
    assert counted == [5, 2, 3]


@pytest.mark.parametrize("defense", [{"defense": "none"}, PRIVATE])
def test_more_references_keep_the_first_ones(defense, data, tmp_path, counted):
    pool = {"size": 30, "pool": ["target_members", "target_nonmembers"], "defense": "same"}
    studies = [study_of(reference={"count": count} | pool) for count in (2, 5)]
    few, many = (
        auxiliary_settings(study, "digits", "softmax_regression", "reference", [*study.cells.values()][-1].defense)
        for study in studies
    )
    source = data(studies[0])
    fresh = trained(many, source, tmp_path / "fresh")
    trained(few, source, tmp_path / "grown")
    assert bytes_of(trained(many, source, tmp_path / "grown")) == bytes_of(fresh)
    assert counted == [5, 2, 3]


def test_subclasses_do_not_move_with_the_records_that_more_models_draw(data, tmp_path):
    few, many = (last_cell(study_of(repeats, defense=SUBCLASS)) for repeats in (2, 4))
    subset = {"subset": {"pool": ["target_members", "target_nonmembers"], "size": 30}}
    source = data(study_of())
    fresh = trained(many | subset, source, tmp_path / "fresh")
    trained(few | subset, source, tmp_path / "grown")
    assert bytes_of(trained(many | subset, source, tmp_path / "grown")) == bytes_of(fresh)


def test_the_time_is_that_of_all_models(data, tmp_path):
    few, many = (last_cell(study_of(repeats)) for repeats in (2, 4))
    source = data(study_of())
    timing = trained(few, source, tmp_path / "grown")[2]
    write_json(timing, {"train_seconds": 1000.0, "models": 2, "device": "cpu"})
    trained(many, source, tmp_path / "grown")
    now = json.loads(timing.read_text())
    assert now["models"] == 4
    assert 1000 < now["train_seconds"] < 1100
    trained(few, source, tmp_path / "grown")
    assert 500 < json.loads(timing.read_text())["train_seconds"] < 600


def other_version(folder):
    tensors, stamp = read_tensors(folder / FILES[0])
    write_tensors(folder / FILES[0], tensors, stamp | {"versions": stamp["versions"] | {"torch": "0.1"}})


def other_device(folder):
    tensors, stamp = read_tensors(folder / FILES[0])
    write_tensors(folder / FILES[0], tensors, stamp | {"device": "cuda"})


def cut_short(folder):
    path = folder / FILES[0]
    path.write_bytes(path.read_bytes()[:-1])


SPOILT = {
    "other version": (other_version, "the 2 that are there: they were made with other versions"),
    "other device": (other_device, "the 2 that are there: they were made with other device"),
    "cut": (cut_short, None),
    "foreign": (lambda folder: (folder / FILES[0]).write_bytes(b"no models"), None),
    "no stamp": (lambda folder: write_tensors(folder / FILES[0], {}, {}), None),
    "a stamp of nothing": (lambda folder: write_tensors(folder / FILES[0], {}, {"settings": {}}), None),
    "no history": (lambda folder: (folder / FILES[1]).unlink(), None),
    "a foreign history": (lambda folder: (folder / FILES[1]).write_bytes(b"no table"), None),
    "no time": (lambda folder: (folder / FILES[2]).write_text("{}"), None),
}


@pytest.mark.parametrize("fault", SPOILT)
def test_what_cannot_be_kept_is_trained_again(fault, data, tmp_path, counted, caplog):
    few, many = (last_cell(study_of(repeats)) for repeats in (2, 4))
    source = data(study_of())
    fresh = trained(many, source, tmp_path / "fresh")
    trained(few, source, tmp_path / "grown")
    spoil, words = SPOILT[fault]
    spoil(tmp_path / "grown")
    with caplog.at_level(logging.INFO, "dp_leakage"):
        assert bytes_of(trained(many, source, tmp_path / "grown")) == bytes_of(fresh)
    assert counted == [4, 2, 4]
    assert words is None or words in caplog.text


def test_other_settings_and_other_code_train_all_models_again(data, tmp_path, counted):
    few, many = (last_cell(study_of(repeats)) for repeats in (2, 4))
    source = data(study_of())
    for change in ({"seed": 5}, {"code": "other"}, {"dropout": 0.5}):
        trained(few, source, tmp_path / "grown")
        counted.clear()
        trained(many | change, source, tmp_path / "grown")
        assert counted == [4]


@pytest.mark.parametrize("engine", [{}, {"engine": "estimator", "architecture": FOREST, "mechanism": None}])
def test_another_measure_of_use_keeps_all_models(engine, data, tmp_path, counted):
    plain, other = (last_cell(study_of(2, **change), **engine) for change in ({}, {"utility": "f1"}))
    source = data(study_of(2))
    fresh = trained(other, source, tmp_path / "fresh")
    trained(plain, source, tmp_path / "grown")
    assert bytes_of(trained(other, source, tmp_path / "grown")) == bytes_of(fresh)
    assert counted == [2, 2]
    more = trained(other | {"repeats": 3}, source, tmp_path / "grown")
    assert counted == [2, 2, 1]
    trained(plain | {"repeats": 3}, source, tmp_path / "grown")
    assert counted == [2, 2, 1]
    assert bytes_of(more) != bytes_of(fresh)


def test_on_a_gpu_all_models_are_trained_again_and_the_log_says_why(data, tmp_path, caplog):
    few, many = (last_cell(study_of(repeats)) for repeats in (2, 4))
    written = trained(few, data(study_of()), tmp_path / "grown")
    other_device(tmp_path / "grown")
    _, stamp = read_tensors(written[0])
    made = {key: stamp[key] for key in ("device", "versions")}
    with caplog.at_level(logging.INFO, "dp_leakage"):
        assert _kept.kept_models(many, *written, made).count == 0
    assert "training all 4 models again, also the 2 that are there: a GPU rounds by the models beside" in caplog.text


def test_a_training_that_was_killed_behind_kept_models_continues_only_behind_these(data, tmp_path, monkeypatch):
    few, many = (last_cell(study_of(repeats)) for repeats in (2, 4))
    source = data(study_of())
    fresh = trained(many, source, tmp_path / "fresh")
    trained(few, source, tmp_path / "grown")

    def killed(*_):
        raise KeyboardInterrupt

    files = [tmp_path / "grown" / name for name in FILES]
    with monkeypatch.context() as patch:
        patch.setattr(train, "_tested", killed)
        with pytest.raises(KeyboardInterrupt):
            train.main(many, source, *files, device="cpu", checkpoint_seconds=0.0)
    assert len(list((tmp_path / "grown").glob(".target.*.checkpoint"))) == 1
    files[0].unlink()
    assert bytes_of(trained(many, source, tmp_path / "grown")) == bytes_of(fresh)


def test_neither_audits_nor_tuning_nor_timing_depend_on_the_number_of_repeats():
    audit = {"designs": {"a": {"design": "one_run", "models": 1, "canaries": 8, "beyond_reach": "mark"}}}
    few, many = (study_of(repeats, audit=audit, timing={"rounds": 2, "records": 20}) for repeats in (2, 4))
    for step in ("audit", "time_training"):
        of = [settings_of(study, step, [*study.cells.values()][-1]) for study in (few, many)]
        assert of[0] == of[1]
