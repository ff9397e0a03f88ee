"""What a training reports of itself, from the study's settings to the file: also where its accountant does not fit."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from dp_leakage.common.config import merged
from dp_leakage.common.yaml_files import read_yaml
from dp_leakage.metrics.rows import completed
from dp_leakage.models.architectures import build
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.steps import measure_training, prepare, project, train
from dp_leakage.study import paths
from dp_leakage.study.file import load_studies
from dp_leakage.study.steps import prepare_settings, project_settings, settings_of, train_settings
from dp_leakage.table.notes import remarks
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.trainer import start

REPO = Path(__file__).parents[2]
# Figures of attacks that the tiny study leaves out.
NEEDING_MORE = ("fig_leakage_shokri", "fig_leakage_lira", "fig_pareto", "table_members_exposed")
TINY = {
    "datasets": {
        "digits": {
            "roles": {"target_members": 60, "target_nonmembers": 60, "shadow_pool": None, "reference_pool": None},
            "projection": {"components": 5},
        }
    },
    "models": {"mlp": None},
    "repeats": 1,
    "training": {"epochs": 2, "batch_size": 20, "evaluate_every": 1},
    "shadow": None,
    "reference": None,
    "attacks": {"shokri": None, "lira_online": None},
    "figures": dict.fromkeys(NEEDING_MORE),
}


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """A function: one defense entry of the tiny study, trained and measured → (its rows, its curve)."""
    monkeypatch.chdir(tmp_path)

    def of(entry, **changes):
        overrides = TINY | {"defenses": [{"defense": "none"}, entry]} | changes
        config = merged(read_yaml(REPO / "config.yaml"), {"overrides": {"quickstart": {}}})
        config["overrides"]["quickstart"] = overrides
        study = load_studies(config, [REPO / "tests" / "studies" / "quickstart.yaml"])["quickstart"]
        data, prepared = study.path(paths.DATA, dataset="digits"), study.path(paths.PREPARED, dataset="digits")
        prepare.main(prepare_settings(study, "digits"), prepared, tmp_path)
        project.main(project_settings(study, "digits"), prepared, data)
        histories = []
        for cell in study.cells.values():
            folder = study.path(paths.TRAINED, cell).parent
            histories.append(folder / "training.parquet")
            models, timing = folder / "target.safetensors", folder / "timing.json"
            train.main(train_settings(study, cell), data, models, histories[-1], timing, "cpu", 60.0)
        rows, curve, proven = (folder / f"{name}.parquet" for name in ("training-rows", "curve", "proven"))
        measure_training.main(
            settings_of(study, "measure_training", cell), histories[-1], histories[0], rows, curve, proven
        )
        return pd.read_parquet(rows), pd.read_parquet(curve)

    return of


def test_a_delta_that_is_no_protection_for_classes_is_said_with_the_numbers(measured):
    entry = {"defense": "class", "accountant": "class_moments", "epsilon": [10], "delta": 0.2}  # of ten classes
    rows, _ = measured(entry)
    spent = completed(rows[rows["metric"] == "epsilon_spent"]).assign(accountant="class_moments")
    assert spent["note"].str.contains("delta").all()
    assert [note.split(":")[1] for note in remarks(spent)] == [
        " its neighbors are those of (sub)classes, of which a record more or fewer exchanges one, and delta is not "
        "below one over the number of (sub)classes."
    ]


def test_what_guessing_reaches_is_measured_from_the_labels(measured):
    rows, curve = measured({"defense": "gaussian", "accountant": "rdp", "epsilon": [10]})
    known = rows.set_index("metric")["value"]
    data = np.load("results/quickstart/digits/data.npz")
    most = np.bincount(data["y"][data["target_members"]]).argmax()
    assert known["guessing_accuracy"] == max((data["y"][data["target_nonmembers"]] == most).mean(), 0.1)
    assert set(curve["guessing"]) == {known["guessing_accuracy"]}
    assert known["guessing_loss"] < 1 - known["guessing_accuracy"]  # of an undefended model that is not always right


@pytest.mark.parametrize(
    ("entry", "sampling", "proved_by"),
    [
        ({"defense": "gaussian", "accountant": "rdp", "sampler": "shuffle"}, "hypothetical_poisson", {"gdp", "zcdp"}),
        ({"defense": "gaussian", "accountant": "naive", "sampler": "poisson"}, "hypothetical_shuffle", {"rdp", "pld"}),
        ({"defense": "class", "accountant": "rdp", "sampler": "poisson"}, "", set()),
    ],
)
def test_a_cell_whose_batches_its_accountant_does_not_assume_runs_and_says_so(measured, entry, sampling, proved_by):
    rows, curve = measured(entry | {"epsilon": [10], "accounting_note": "the batches of the authors' code"})
    spent = completed(rows[rows["metric"] == "epsilon_spent"])
    nominal = spent[spent["accounted_by"] == entry["accountant"]]
    assert nominal["value"].iloc[0] == pytest.approx(10, rel=1e-3)
    assert not nominal["valid"].any()
    assert set(nominal["sampling"]) == {sampling}
    assert set(spent.loc[spent["valid"], "accounted_by"]) == proved_by
    assert curve["epsilon_spent"].iloc[-1] == pytest.approx(10, rel=1e-3)


PERSONS = {
    "datasets": {
        "digits": {
            "source": {"source": "digits", "person": 120},
            "roles": {"target_members": 40, "target_nonmembers": 40, "shadow_pool": None, "reference_pool": None},
            "stratified": None,
            "projection": {"components": 5},
        }
    },
    "training": {"epochs": 2, "batch_size": 10, "evaluate_every": 1},
    "attacks": {"shokri": None, "lira_online": None, "yeom_attribute": None},
    "figures": dict.fromkeys((*NEEDING_MORE, "fig_leakage_attribute")),
}


@pytest.mark.parametrize(("unit", "proven"), [("gaussian", False), ("person", True)])
def test_nothing_is_proven_of_fixed_people_whose_number_of_records_decides_batches_and_noise(measured, unit, proven):
    """One who has five records in place of one makes batches longer, and the noise of their mean smaller."""
    rows, _ = measured({"defense": unit, "accountant": "rdp", "sampler": "poisson", "epsilon": [5]}, **PERSONS)
    spent = completed(rows[rows["metric"] == "epsilon_spent"])
    assert spent["valid"].any() == proven
    assert (rows["metric"] == "advantage_proven").any() == proven
    told = spent["note"].str.contains("nothing is proven of a person")
    assert told.all() != proven


def test_the_noise_of_a_mean_does_not_tell_which_random_subclasses_occur():
    """The only record of the last class may be in any of its ten subclasses."""
    mechanism = Mechanism(unit="subclass", settings={"k_sub": 10, "partition": "random"})
    y = torch.tensor([0] * 40 + [1] * 19 + [2])
    x, found = torch.zeros(60, 2), set()
    for seed in range(20):
        groups = train.groups_of(mechanism, x, y, torch.arange(60)[None], seed)
        found.add((int(groups.max()), train.group_count(mechanism, y, groups)))
    assert len({highest for highest, _ in found}) > 5
    assert {count for _, count in found} == {30}
    softmax, settings = build("softmax_regression", (2,), 3), TrainingSettings("sgd", 0.1, batch_size=6)
    subclasses = Mechanism("class_poisson", "subclass", noise_multiplier=1.0)
    given = (softmax, x, y, torch.arange(60)[None], [1], settings, subclasses, groups)
    assert start(*given, group_count=30).program.divisor == 30 * 6 / 60
