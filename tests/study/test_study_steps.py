"""What the rules ask about a job, from its wildcards, of the entry of its step."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from loading import LEARNED_ON, load, projected

from dp_leakage.common.errors import UserError
from dp_leakage.common.yaml_files import read_yaml
from dp_leakage.study import paths, steps
from dp_leakage.study.file import load_studies
from dp_leakage.study.paths import fitted, group_of
from dp_leakage.study.plan import everything, figure_settings, published_file, target_descriptions
from dp_leakage.study.steps import ENTRIES, STEPS, Job
from dp_leakage.study.steps.attack import answered
from dp_leakage.study.steps.judge import joins, written

REPO = Path(__file__).parents[2]
CELL = Job("digits", "mlp", "none")
# Steps that run in the jobs of others, and jobs of several steps.
OF_JUDGE = {
    "attack", "attack_models", "measure_attack", "measure_audit", "measure_coins", "measure_groups",
    "measure_structure", "measure_training",
}  # fmt: skip
ALSO = {"reconstruct": ["attack_models", "measure_attack"], "audit": ["audit", "measure_audit"]}
OF_ATTACK = {paths.ROWS: paths.ATTACKED}


def loaded(file):
    return load_studies(read_yaml(REPO / "config.yaml"), [file])["quickstart"]


@pytest.fixture(scope="module")
def study():
    """The design of papers: fixed members, shadow models."""
    return loaded(REPO / "tests" / "studies" / "quickstart.yaml")


@pytest.mark.parametrize(("role", "defense"), [("target", "none"), ("shadow", None), ("shadow", "gaussian-eps=1")])
def test_the_folder_of_a_group_says_which_models_it_is(role, defense):
    job = Job("digits", "mlp", group=group_of(role, defense))
    assert steps.group_of(job) == ("digits", "mlp", role, defense)


def test_a_job_holds_the_models_of_its_cell_or_of_its_role(study):
    repeats, shadows = study.spec["repeats"], study.spec["shadow"]["count"]
    assert steps.models_of(study, CELL) == repeats
    assert steps.models_of(study, replace(CELL, role="shadow")) == shadows
    assert steps.models_of(study, Job("digits", "mlp", group="none")) == repeats
    assert steps.models_of(study, Job("digits", "mlp", group="shadow")) == shadows


def test_every_step_asks_for_memory_and_time(study):
    job = replace(CELL, attack="shokri", part="shokri", group="none", answers="signals")
    (of_learned,) = load(projected(features="learned", learned_on=LEARNED_ON)).values()
    for name, step in ENTRIES.items():
        asked = replace(job, role="shadow") if name == "train_auxiliary" else job
        study = of_learned if name == "learn_features" else study
        assert step.memory(study, asked) >= 1000
        assert step.minutes(study, asked) >= 1 or name == "tune"  # no rate is tried for this cell


def test_every_rule_makes_what_its_entry_says_and_asks_the_entry_for_the_rest():
    files = ("data", "train", "auxiliary", "judge")
    text = "".join((REPO / "workflow" / "rules" / f"{name}.smk").read_text() for name in files)
    rules = dict(re.findall(r"(?ms)^rule (\w+):\n(.*?)(?=^\S|\Z)", text))
    assert set(rules) == ({*STEPS} - OF_JUDGE) | {"reconstruct"}
    for rule, body in rules.items():
        written = re.search(r"    output:\n(.*?)    log:", body, re.DOTALL)[1]
        made = {getattr(paths, name) for name in re.findall(r"paths\.(\w+)", written)}
        steps = ALSO.get(rule, [rule])
        said = {pattern for step in steps for pattern in STEPS[step].writes.values()}
        assert made == ({paths.ANSWERS} if rule == "query" else {OF_ATTACK.get(path, path) for path in said})
        assert all(f'{asked}("{rule}")' in body for asked in ("settings_of", "memory_of", "minutes_of"))


def test_the_jobs_of_a_cell_make_each_of_its_files_once(study):
    for cell in study.cells.values():
        rules = ["judge"] if joins(cell) else ["judge", "measure"]
        made = [path for rule in rules for path in written(study, rule, Job(**cell.names))]
        assert len(set(made)) == len(made)
        assert {study.path(paths.METRICS, cell), study.path(paths.CURVE, cell)} <= set(made) <= set(everything(study))


def test_a_step_that_attacks_has_a_file_for_each_option(study):
    files = STEPS["attack"].reads(study, replace(CELL, attack="yeom"))
    assert files == {"signals": answered(study, "digits", "mlp", "target", "none")[0]}
    learning = STEPS["attack"].reads(study, replace(CELL, attack="shokri"))
    assert learning["fitted"] == fitted(study, "digits", "mlp", "shokri")


def test_the_prints_of_a_study_lie_beside_it_and_what_explains_them_is_code_of_its_figures(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "studies" / "mine"
    folder.mkdir(parents=True)
    own = (REPO / "tests" / "studies" / "quickstart.yaml").read_text()
    (folder / "study.yaml").write_text(own + "\npublished: other2021.csv\n")
    (folder / "other2021.csv").write_text(
        "paper,artefact,dataset,model,mechanism,epsilon,delta,setting,metric,value,stderr\n"
    )
    study = loaded(folder / "study.yaml")
    assert published_file(study) == [Path("studies/mine/other2021.csv")]
    without = figure_settings(study, "fig_pareto")["code"]
    (folder / "other2021.py").write_text("def placed(row, printed):\n    return []\n")
    assert figure_settings(loaded(folder / "study.yaml"), "fig_pareto")["code"] != without


def test_cells_wait_for_the_undefended_one_in_a_submission_of_its_own():
    assert steps.training_group(CELL) == "baseline"
    assert steps.training_group(replace(CELL, defense="gaussian-eps=1")) == "cell"


def test_a_cell_that_the_study_does_not_have_is_refused(study):
    with pytest.raises(UserError, match="has no cell"):
        steps.cell_of(study, replace(CELL, defense="nothing"))
    with pytest.raises(UserError, match="has no cell"):
        STEPS["attack"].reads(study, replace(CELL, attack="yeom", defense="nothing"))


def test_every_target_is_described_in_one_line(study):
    told = target_descriptions(study)
    assert set(told) == set(study.targets)
    assert all(words and "\n" not in words for words in told.values())


def test_a_second_run_requests_a_training_by_what_the_first_took(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first, second = (loaded(REPO / "tests" / "studies" / "quickstart.yaml") for _ in range(2))
    estimated = STEPS["train_target"].minutes(first, CELL)
    timing = first.path(paths.TIMES, dataset="digits", model="mlp", defense="none")
    timing.parent.mkdir(parents=True)
    settings = STEPS["train_target"].settings(first, CELL)
    passes = settings["training"]["epochs"] * settings["subset"]["size"] * settings["repeats"]
    timing.write_text(json.dumps({"train_seconds": 60 * 100, "models": 2, "passes": passes, "device": "cpu"}))
    monkeypatch.delenv("DP_LEAKAGE_DEVICE", raising=False)
    assert STEPS["train_target"].minutes(second, CELL) == 5 + 3 * 100 != estimated
