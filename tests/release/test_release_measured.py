"""What a release tells of its study's attacks."""

import json
import re
import sys
from html import unescape
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from dp_leakage.common.errors import UserError
from dp_leakage.provenance.files import write_table
from dp_leakage.release import measured
from dp_leakage.release.card import pages

sys.path.append(str(Path(__file__).parents[1] / "report"))
from planted import Cell, World, draw


def test_metrics_of_other_settings_are_refused_with_the_command_that_makes_them_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the file the release would say nothing of attacks, so to delete it is not the first advice."""
    path = tmp_path / "metrics.parquet"
    write_table(path, pd.DataFrame({"metric": ["accuracy"]}), {"identity": "of-others", "settings": {}})
    monkeypatch.setattr(measured, "measure_settings", lambda study, cell: {"seed": 1})
    study = SimpleNamespace(path=lambda name, cell: path, target="mine")
    with pytest.raises(
        UserError, match=r"other settings or other code .*: run `dp-leakage run mine` first, or delete it"
    ):
        measured.measured_of(study, SimpleNamespace(), 8)


RATE = {"fpr": 0.01, "value": 0.2, "low": 0.1, "high": 0.3}
OF_ATTACKS = {"attacks_run": ["yeom"], "attacks_not_run": [], "models": 8, "audits": [], "strongest_attack": "yeom"}
OF_ATTACKS |= {"advantage": {"value": 0.2, "low": 0.1, "high": 0.3}, "tpr": [RATE], "tpr_not_measured": []}


@pytest.mark.parametrize("half", [True, False])
def test_card_and_sheet_say_where_the_studys_models_trained_on_half_of_the_records(made, half):
    """The release trains on all of them, and is the more accurate."""
    statement = json.loads((made / "privacy.json").read_text())
    written = pages(statement | {"measured": OF_ATTACKS | {"trained_on_half": half}})
    card, sheet = (unescape(page.decode()) for page in written.values())
    assert ("The accuracy in the study's report is that of models which trained on about half" in card) == half
    assert ("which saw other subsets of the records, each about half of them, under the same ε" in sheet) == half


@pytest.mark.parametrize(("design", "half"), [("coins", True), ("split", False)])
def test_whether_they_did_is_read_off_the_studys_design(tmp_path, monkeypatch, design, half):
    frame = draw(World((Cell((0.5,)),), n=60, n_test=60), np.random.default_rng(0)).metrics
    monkeypatch.setattr(measured, "read_metrics", lambda paths, identities: frame)
    monkeypatch.setattr(measured, "measure_settings", lambda study, cell: {})
    monkeypatch.setattr(measured, "delta_of", lambda study, cell: 1e-5)
    spec = {"repeats": 6, "design": design}
    study = SimpleNamespace(path=lambda name, cell: tmp_path, target="mine", spec=spec, cells={})
    cell = SimpleNamespace(dataset="d", model="mlp", defense="none", membership=["attack_0"])
    assert measured.measured_of(study, cell, 8)["trained_on_half"] == half


def test_the_same_model_without_privacy_is_measured_too_if_the_study_attacked_it(tmp_path, monkeypatch):
    world = World((Cell((0.9,)), Cell((0.2,), mu=1.0)), n=60, n_test=60)
    frame = draw(world, np.random.default_rng(0)).metrics
    bare, private = (
        SimpleNamespace(dataset="d", model="mlp", defense=one.defense, membership=["attack_0"]) for one in world.cells
    )
    monkeypatch.setattr(measured, "read_metrics", lambda paths, identities: frame[frame["defense"] == paths[0].name])
    monkeypatch.setattr(measured, "measure_settings", lambda study, cell: {})
    monkeypatch.setattr(measured, "delta_of", lambda study, cell: 1e-5)
    for one in (bare, private):
        (tmp_path / one.defense).touch()
    study = SimpleNamespace(
        path=lambda name, cell: tmp_path / cell.defense,
        target="mine",
        spec={"repeats": 6, "design": "coins"},
        cells={"d/mlp/none": bare},
    )
    found = measured.measured_of(study, private, 8)
    assert found["undefended_advantage"] == measured.measured_of(study, bare, 8)["advantage"]
    assert found["undefended_advantage"]["value"] > found["advantage"]["value"]
    study.cells = {}
    assert "undefended_advantage" not in measured.measured_of(study, private, 8)


def test_the_sheet_marks_right_guesses_without_privacy(made):
    statement = json.loads((made / "privacy.json").read_text())
    attacks = OF_ATTACKS | {"trained_on_half": True}
    bare = {"undefended_advantage": {"value": 0.5, "low": 0.4, "high": 0.6}}
    with_mark, without = (
        unescape([page.decode() for page in pages(statement | {"measured": one}).values()][1])
        for one in (attacks | bare, attacks)
    )
    assert ">75 without privacy</text>" in with_mark
    assert '<line class="bare"' in with_mark
    assert re.search(r"\.bare \{[^}]*stroke:", with_mark)  # else the line is there and nobody sees it
    assert "was right 60 times, and 75 times on the same kind of model without privacy; a coin" in with_mark
    assert "without privacy" not in without


WORDS = "On digits, use ε = 10."
ANSWER = {"kind": "answer", "dataset": "digits", "verdict": "both", "cells": [["mlp", "dp"]], "words": WORDS}
BROKEN = {"kind": "refuted", "dataset": "digits", "verdict": "", "cells": [["mlp", "dp"]], "words": "ε ≥ 3."}


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        ([ANSWER], [f"The report recommends this setting: {WORDS}"]),
        ([ANSWER | {"verdict": "open"}], [f"The report does not recommend this setting: {WORDS}"]),
        ([ANSWER | {"cells": [["mlp", "other"]]}], [f"The report does not recommend this setting: {WORDS}"]),
        ([ANSWER | {"dataset": "wine"}, BROKEN | {"cells": [["cnn", "dp"]]}], []),
        ([BROKEN], ["The report refutes what this setting claims: ε ≥ 3."]),
        (None, ["The study has no report: "]),
    ],
)
def test_the_report_is_asked_about_a_setting_before_it_is_trained(tmp_path, claims, said):
    path = tmp_path / "claims.json"
    if claims is not None:
        path.write_text(json.dumps({"claims": claims}))
    study = SimpleNamespace(path=lambda name: path, target="mine")
    found = measured.advice_of(study, SimpleNamespace(dataset="digits", model="mlp", defense="dp"))
    assert len(found) == len(said)
    assert all(sentence.startswith(begin) for sentence, begin in zip(found, said, strict=True))


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"claims": [7]}', '{"claims": {"a": 1}}'])
def test_a_damaged_report_is_refused_with_the_command_that_writes_it_anew(tmp_path, content):
    path = tmp_path / "claims.json"
    path.write_text(content)
    study = SimpleNamespace(path=lambda name: path, target="mine")
    with pytest.raises(UserError, match="cannot be read; run `dp-leakage run mine` again, which writes it"):
        measured.advice_of(study, SimpleNamespace(dataset="digits", model="mlp", defense="dp"))
