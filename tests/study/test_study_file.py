"""Loading study files: the config, overrides, scales, and names that clash."""

import pytest
import yaml
from loading import CONFIG, QUICKSTART, REPO, load

from dp_leakage.common.config import merged
from dp_leakage.common.errors import UserError
from dp_leakage.common.yaml_files import read_yaml
from dp_leakage.study.file import load_studies, study_files, typed
from dp_leakage.study.plan import figure_settings
from dp_leakage.study.steps.parts import figure_cells


def test_every_study_file_loads_at_every_scale_that_it_names():
    files = study_files(REPO / "workflow" / "studies")
    for scale in ("paper", "small", "smoke"):
        studies = load_studies(merged(CONFIG, {"scale": scale}), files, asked=lambda study: False)
        for study in studies.values():
            assert study.cells
            assert study.name == study.target + ("" if scale == "paper" else f"-{scale}")


def test_a_study_that_is_asked_for_at_a_scale_that_it_lacks_says_so():
    with pytest.raises(UserError, match=r"quickstart.yaml has no scale 'small'; .*[Vv]alid: paper, smoke"):
        load(config={"scale": "small"})


def test_overrides_do_not_make_a_scale_larger():
    more = {"epsilon": [0.1, 1, 10, 50, 100], "repeats": 24, "training": {"epochs": 60}, "shadow": {"count": 16}}
    spec = load(more, {"scale": "smoke"})["quickstart-smoke"].spec
    assert (spec["epsilon"], spec["repeats"]) == ([0.1, 100], 2)
    assert (spec["training"]["epochs"], spec["shadow"]["count"]) == (8, 2)
    assert load(more)["quickstart"].spec["epsilon"] == more["epsilon"]
    picked = {"fig_pareto": {"select": {"defense": ["gaussian-rdp-eps=500", "none"]}}}
    assert load({"epsilon": [500], "figures": picked}, {"scale": "smoke"})  # a budget of the study, if not of the scale
    assert load({"epsilon": [1, 10, 500], "figures": picked}, {"scale": "smoke"})


def test_looks_are_planned_for_the_repeats_of_the_whole_study_and_not_for_those_of_a_scale(tmp_path):
    planned = {"looks": [3, 6], "repeats": 6}
    assert load(planned)["quickstart"].spec["looks"] == [3, 6]
    spec = load(planned, {"scale": "smoke"})["quickstart-smoke"].spec
    assert (spec["repeats"], "looks" in spec) == (2, False)
    raw = read_yaml(QUICKSTART) | planned
    raw["scales"]["smoke"]["looks"] = [2, 4]
    file = tmp_path / "quickstart.yaml"
    file.write_text(yaml.safe_dump(raw))
    assert load(config={"scale": "smoke"}, file=file)["quickstart-smoke"].spec["looks"] == [2, 4]


def test_what_overrides_make_smaller_than_a_scale_or_set_beside_it_holds_there_too():
    less = {"epsilon": [10], "training": {"epochs": 2, "learning_rate": 0.5}, "figures": {"fig_pareto": None}}
    spec = load(less, {"scale": "smoke"})["quickstart-smoke"].spec
    assert (spec["epsilon"], spec["repeats"]) == ([10], 2)
    assert (spec["training"]["epochs"], spec["training"]["learning_rate"]) == (2, 0.5)
    assert "fig_pareto" not in spec["figures"]


def test_an_attack_that_overrides_take_away_does_not_return_through_a_scale():
    drawn = {"fig_leakage_shokri": None, "fig_pareto": {"parts": ["training", "yeom"]}}
    without = {"attacks": {"shokri": None}, "figures": drawn}
    assert "shokri" not in load(without, {"scale": "smoke"})["quickstart-smoke"].spec["attacks"]


def test_an_attack_that_a_study_file_deletes_does_not_return_through_its_scale(tmp_path):
    spec = read_yaml(QUICKSTART)
    del spec["attacks"]["shokri"], spec["figures"]["fig_leakage_shokri"]
    spec["figures"]["fig_pareto"]["parts"].remove("shokri")
    file = tmp_path / "quickstart.yaml"
    file.write_text(yaml.safe_dump(spec))
    assert "shokri" not in load(config={"scale": "smoke"}, file=file)["quickstart-smoke"].spec["attacks"]
    spec["scales"]["smoke"]["attacks"] = {"shokry": {"epochs": 10}}  # yet a slip of the pen is told
    file.write_text(yaml.safe_dump(spec))
    with pytest.raises(UserError, match=r"unknown key 'attacks.shokry'; did you mean 'shokri'"):
        load(config={"scale": "smoke"}, file=file)


def test_a_scale_has_its_own_folder_and_the_same_targets():
    smoke = load(config={"scale": "smoke"})
    assert list(smoke) == ["quickstart-smoke"]
    assert smoke["quickstart-smoke"].target == "quickstart"


def test_values_from_the_command_line_that_came_as_text_are_read():
    given = {"only_datasets": '["digits"]', "overrides": '{"quickstart": {"repeats": 2, "shadow": {"count": 4}}}'}
    study = load(config=given)["quickstart"]
    assert study.spec["repeats"] == 2
    assert study.spec["shadow"]["count"] == 4


def test_numbers_that_snakemake_reads_as_text_are_numbers_again():
    text = {
        "repeats": "5",
        "delta": "1.0e-6",
        "shadow": "null",
        "stratified": "true",
        "title": "on top",
        "epsilon": ["1"],
    }
    read = {"repeats": 5, "delta": 1e-6, "shadow": None, "stratified": True, "title": "on top", "epsilon": [1]}
    assert typed(text) == read


def test_on_fewer_data_sets_a_study_keeps_their_cells_and_the_figures_that_draw_one():
    files = [REPO / "workflow" / "studies" / "jayaraman2019" / "study.yaml"]
    config = merged(CONFIG, {"only_datasets": ["purchase100"]})
    study = load_studies(config, files)["jayaraman2019"]
    assert {cell.dataset for cell in study.cells.values()} == {"purchase100"}
    assert "fig3" in study.spec["figures"]
    assert "fig1a" not in study.spec["figures"]
    assert all(figure_cells(study, figure) for figure in study.spec["figures"])


def test_made_up_records_stand_in_only_where_the_published_file_is_not_there(tmp_path):
    files = [REPO / "workflow" / "studies" / "jayaraman2019" / "study.yaml"]
    config = merged(CONFIG, {"data_dir": str(tmp_path)})

    def settings(name="fig3"):
        return figure_settings(load_studies(config, files)["jayaraman2019"], name)

    assert settings()["sources"] == {"purchase100": "purchase_like"}
    assert settings()["made_up"] == ["purchase100"]
    assert settings("fig1b")["made_up"] == []
    (tmp_path / "dataset_purchase").touch()
    assert settings()["sources"] == {"purchase100": "purchase100"}
    assert settings()["made_up"] == []


def test_a_stand_in_that_there_is_not_is_refused_even_if_it_is_not_needed():
    with pytest.raises(UserError, match=r"source: 'nothing' is not a data set"):
        load({"datasets": {"digits": {"stand_in": "nothing"}}})


def test_the_names_of_the_workflows_rules_are_known():
    import re

    from dp_leakage.study.file import RULES

    files = [REPO / "workflow" / "Snakefile", *(REPO / "workflow" / "rules").glob("*.smk")]
    text = "\n".join(path.read_text() for path in files)
    assert set(RULES) == set(re.findall(r"^(?:use rule \w+ as|rule) (\w+)(?: with)?:$", text, re.MULTILINE))


def test_every_rule_says_what_it_is():
    import re

    for path in (REPO / "workflow" / "rules").glob("*.smk"):
        for name, after in re.findall(r"^rule (\w+):\n(.*)$", path.read_text(), re.MULTILINE):
            assert after.startswith('    """'), name
