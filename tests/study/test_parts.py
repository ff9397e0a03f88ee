"""The table of parts: each lies where a job writes it, and every family of attacks has its measure."""

from pathlib import Path

import pytest

from dp_leakage.attacks import ATTACKS, FAMILIES, STRONGEST, attacks_of
from dp_leakage.common.errors import UserError
from dp_leakage.common.names import RESERVED
from dp_leakage.common.yaml_files import read_yaml
from dp_leakage.figures import FIGURES
from dp_leakage.steps.measure_attack import MEASURES
from dp_leakage.study import paths
from dp_leakage.study.cells import together
from dp_leakage.study.file import load_studies
from dp_leakage.study.plan import everything, figure_inputs
from dp_leakage.study.steps import STEPS, Job, settings_of
from dp_leakage.study.steps.parts import GIVEN, PARTS, figure_parts, part, pictures
from dp_leakage.study.targets import check_names

REPO = Path(__file__).parents[2]
STUDIES = sorted((REPO / "workflow" / "studies").rglob("*.yaml"))


@pytest.fixture(scope="module")
def studies():
    config = read_yaml(REPO / "config.yaml") | {"scale": "smoke"}
    return load_studies(config, STUDIES)


def test_every_family_of_attacks_has_its_measure():
    assert set(FAMILIES) == set(MEASURES)


def test_what_a_figure_is_given_is_known_for_whatever_it_needs():
    assert {kind.needs for kind in FIGURES.values()} <= set(GIVEN)
    assert {name for given in GIVEN.values() for name in given.always} <= set(PARTS)


def test_parts_of_one_cell_lie_apart_and_those_of_two_cells_too(studies):
    study = studies["quickstart-smoke"]
    for name in ("training", "curve", "proven", "coins", "yeom"):
        places = [part(name).path(study, cell) for cell in study.cells.values() if name in (*PARTS, *cell.parts)]
        assert len(set(places)) == len(places)
    cell = next(iter(study.cells.values()))
    names = ["training", "curve", "proven", *cell.parts[1:]]
    assert len({part(name).path(study, cell) for name in names}) == len(names)


def test_no_attack_can_take_the_place_of_another_part():
    assert set(PARTS) <= set(RESERVED)
    with pytest.raises(UserError, match="'coins' is reserved here"):
        attacks_of("file", "coins", {"family": "membership"})


def test_figures_read_metrics_that_were_measured_once(studies):
    for study in studies.values():
        for figure, spec in study.spec["figures"].items():
            if FIGURES[spec["kind"]].needs == "metrics":
                assert {path.parent.name for path in figure_inputs(study, figure)} == {"measured"}
        for cell in study.cells.values():
            inputs = [path for name in cell.parts for path in measured_from(study, cell, name)]
            assert all(path.parent.name == "attack" for path in inputs)


def measured_from(study, cell, name):
    reads = STEPS["measure_attack"].reads
    return reads(study, Job(**cell.names, part=name))["found"] if name in (*ATTACKS, STRONGEST) else ()


def test_the_strongest_attack_is_drawn_where_a_figure_has_all_of_them(studies):
    study = studies["quickstart-smoke"]
    cell = study.cell("digits", "mlp", "none")
    assert figure_parts(study, "fig_pareto", cell)[-1] == STRONGEST
    assert figure_parts(study, "fig_leakage_yeom", cell) == ["yeom"]


def test_a_figure_of_one_attack_has_the_epsilon_that_private_cells_spent_and_what_is_proven_of_them(studies):
    study = studies["quickstart-smoke"]
    cell = study.cell("digits", "mlp", "gaussian-rdp-eps=1")
    assert figure_parts(study, "fig_leakage_yeom", cell) == ["yeom", "training", "proven"]
    assert figure_parts(study, "fig_accuracy_loss", cell).count("training") == 1


def test_the_strongest_of_some_attacks_is_one_of_those_that_the_figure_names(studies):
    study = studies["quickstart-smoke"]
    cell = study.cell("digits", "mlp", "none")
    part_of_two = together(cell, ["yeom", "rmia_online"])
    assert part_of_two == "strongest=yeom+rmia_online"
    read = settings_of(study, "measure_attack", cell, part=part_of_two)["reads"]
    assert [attack for attack, _ in read] == ["yeom", "rmia_online"]
    with pytest.raises(UserError, match="not attacked by 'shokri'"):
        check_names(study, "digits", "mlp", "none", part="strongest=yeom+shokri")


def test_attacks_with_pictures_have_a_file_of_them_and_others_do_not(studies):
    cells = [(study, cell) for study in studies.values() for cell in study.cells.values()]
    pictured = {
        (name, study.path(paths.IMAGES, cell, attack=name) in part(name).files(study, cell))
        for study, cell in cells
        for name in cell.parts
    }
    assert pictured == {(name, pictures(name)) for name, _ in pictured}
    assert {drawn for _, drawn in pictured} == {True, False}


def test_whatever_a_part_is_made_from_is_among_what_the_study_makes(studies):
    for study in studies.values():
        made = set(everything(study))
        for cell in study.cells.values():
            for name in cell.parts:
                assert set(part(name).files(study, cell)) <= made


def test_an_audit_is_told_how_many_bounds_hold_together_and_coins_whom_they_decide_between(studies):
    study = studies["quickstart-smoke"]
    cell = study.cell("digits", "mlp", "none")
    told = settings_of(study, "measure_coins", cell)
    assert told["comparisons"] == study.bounds_together
    assert told["claim"] == {"delta": study.spec["delta"], "neighbors": "add_remove"}
    audits = studies["audits-smoke"]
    audited = next(cell for cell in audits.cells.values() if cell.audits)
    assert settings_of(audits, "measure_audit", audited)["comparisons"] == audits.bounds_together
