"""The table of parts: each lies where a job writes it, and every reader that it names exists."""

from pathlib import Path

import pytest
import yaml

from dp_leakage.attacks import ATTACKS, FAMILIES
from dp_leakage.common.yaml_files import read_yaml
from dp_leakage.figures import FIGURES
from dp_leakage.steps._metrics import MEMBERSHIP, READERS
from dp_leakage.study import COINS
from dp_leakage.study.file import load_studies
from dp_leakage.study.parts import GIVEN, PARTS, part, pictures

REPO = Path(__file__).parents[2]
STUDIES = sorted((REPO / "workflow" / "studies").rglob("*.yaml"))


@pytest.fixture(scope="module")
def studies():
    schemas = {
        name: yaml.safe_load((REPO / "workflow" / "schemas" / f"{name}.schema.yaml").read_text())
        for name in ("config", "study")
    }
    config = read_yaml(REPO / "config.yaml") | {"scale": "smoke"}
    return load_studies(config, STUDIES, schemas)


def test_every_part_has_a_reader():
    named = {found.reader for found in PARTS.values()} | {part(name).reader for name in ATTACKS}
    assert named <= {*READERS, MEMBERSHIP}
    assert set(FAMILIES) <= {*READERS, MEMBERSHIP}


def test_what_a_figure_is_given_is_known_for_whatever_it_needs_and_can_be_read():
    assert {kind.needs for kind in FIGURES.values()} <= set(GIVEN)
    assert {given.reader for given in GIVEN.values()} - {None, "images"} <= set(READERS)
    assert {name for given in GIVEN.values() for name in given.always} <= set(PARTS)


def test_parts_of_one_cell_lie_apart_and_those_of_two_cells_too(studies):
    study = studies["quickstart-smoke"]
    for name in ("training", "curve", "proven", "coins", "yeom"):
        places = [part(name).path(study, cell) for cell in study.cells.values() if name in (*PARTS, *cell.parts)]
        assert len(set(places)) == len(places)
    cell = next(iter(study.cells.values()))
    names = ["training", "curve", "proven", *cell.parts[1:]]
    assert len({part(name).path(study, cell) for name in names}) == len(names)


def test_attacks_with_pictures_have_a_file_of_them_and_others_do_not(studies):
    cells = [(study, cell) for study in studies.values() for cell in study.cells.values()]
    pictured = {(name, part(name).images is not None) for _, cell in cells for name in cell.parts}
    assert pictured == {(name, pictures(name)) for name, _ in pictured}
    assert {drawn for _, drawn in pictured} == {True, False}


def test_whatever_a_part_is_made_from_is_among_what_the_study_makes(studies):
    for study in studies.values():
        made = set(study.everything())
        for cell in study.cells.values():
            for name in cell.parts:
                assert set(part(name).files(study, cell)) <= made


def test_an_audit_is_told_how_many_bounds_hold_together_and_coins_whom_they_decide_between(studies):
    study = studies["quickstart-smoke"]
    cell = study.cell("digits", "mlp", "none")
    name, _, reader, together, claim = study.part_settings(cell, COINS)
    assert (name, reader, together) == (COINS, COINS, study.bounds_together)
    assert claim == {"delta": study.spec["delta"], "neighbours": "add_remove"}
    audits = studies["audits-smoke"]
    audited = next(cell for cell in audits.cells.values() if cell.audits)
    assert audits.measure_audit_settings(audited)["comparisons"] == audits.bounds_together
