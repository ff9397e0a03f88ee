"""Which jobs run again after an edit, counted on the real Snakefile. The expected sets are written by hand.

The small study has five cells (none; naive and rdp at ε 1 and 100), three attacks and all of the quickstart's figures.
"""

import shutil
import sqlite3
from collections import Counter

from dp_leakage.study.step_code import REPORTING

CELLS = 5
FIGURES = {
    "quickstart_fig_accuracy_loss",
    "quickstart_fig_accuracy_proven",
    "quickstart_fig_leakage_attribute",
    "quickstart_fig_leakage_shokri",
    "quickstart_fig_leakage_yeom",
    "quickstart_fig_pareto",
    "quickstart_fig_spent_epsilon",
    "quickstart_table_members_exposed",
}
EVERY_FIGURE = Counter(FIGURES)
END = Counter({"quickstart_report": 1, "quickstart": 1})
JUDGED = Counter(judge_quickstart=CELLS)
AUXILIARY = Counter({"train_auxiliary": 1, "query": 2, "fit_attack": 1})
TRAINED = Counter({"train_target": CELLS}) + AUXILIARY


def test_a_finished_study_has_nothing_to_do(workflow):
    assert workflow.planned("quickstart") == Counter()


def test_results_that_were_copied_without_snakemakes_notes_are_named(workflow):
    assert "beware" not in workflow.snakemake("quickstart", "-n")
    shutil.rmtree(workflow.folder / ".snakemake" / "metadata")
    words = "beware: results/quickstart-smoke was made elsewhere: Snakemake's notes on it, .snakemake/metadata, are not"
    assert words in workflow.snakemake("quickstart", "-n")
    assert "beware" not in workflow.snakemake("atlas", "-n")
    sqlite3.connect(workflow.folder / ".snakemake" / "metadata.db").close()  # --persistence-backend db
    assert "beware" not in workflow.snakemake("quickstart", "-n")


def test_a_fresh_copy_runs_every_job_once(unrun):
    planned = unrun.planned("quickstart")
    assert planned == Counter(prepare_dataset=1, project_pca=1) + TRAINED + JUDGED + EVERY_FIGURE + END


def test_a_new_epsilon_runs_its_cells_and_the_figures(workflow):
    workflow.configure(epsilon=[1, 10, 100])
    assert workflow.planned("quickstart") == Counter(train_target=2, judge_quickstart=2) + EVERY_FIGURE + END


def test_an_epsilon_less_runs_the_figures_only(workflow):
    workflow.configure(epsilon=[100])
    assert workflow.planned("quickstart") == EVERY_FIGURE + END


def test_a_figure_asks_for_the_cells_that_it_draws_and_no_other_figure(unrun):
    planned = unrun.planned("quickstart_fig_leakage_yeom")
    drawn = Counter(prepare_dataset=1, project_pca=1, quickstart_fig_leakage_yeom=1)
    assert planned == drawn + TRAINED + JUDGED


def test_an_edit_to_a_figure_draws_that_figure_and_writes_the_report(workflow):
    workflow.append("src/dp_leakage/figures/spent_epsilon.py", "\n\nEDITED = True\n")
    assert workflow.planned("quickstart") == Counter(quickstart_fig_spent_epsilon=1) + END


def test_an_edit_to_what_all_figures_share_draws_all_of_them_and_trains_nothing(workflow):
    workflow.append("src/dp_leakage/figures/style.py", "\n\nEDITED = True\n")
    assert workflow.planned("quickstart") == EVERY_FIGURE + END


def test_an_edit_to_the_trainer_trains_and_runs_what_follows(workflow):
    workflow.append("src/dp_leakage/training/trainer.py", "\n\nEDITED = True\n")
    planned = workflow.planned("quickstart")
    assert planned == TRAINED + JUDGED + EVERY_FIGURE + END


def test_an_edit_to_a_command_runs_its_jobs(workflow):
    workflow.edit("workflow/rules/judge.smk", '("judge", "--settings', '("judge", " --settings')
    assert workflow.planned("quickstart") == JUDGED + EVERY_FIGURE + END


def test_an_edit_to_an_attack_runs_that_attack(workflow):
    workflow.append("src/dp_leakage/attacks/membership/yeom.py", "\n\nEDITED = True\n")
    # Jobs of figures keep what they find: of equal parts nothing is drawn again.
    assert workflow.planned("quickstart") == JUDGED + EVERY_FIGURE + END


def test_an_edit_to_the_accountants_retrains_nothing(workflow):
    workflow.append("src/dp_leakage/privacy/accounting/spend.py", "\n\nEDITED = True\n")
    assert workflow.planned("quickstart") == JUDGED + EVERY_FIGURE + END


def test_an_edit_to_the_metrics_measures_and_draws_but_attacks_nothing(workflow):
    cell = workflow.results / "digits" / "mlp" / "none"
    scores, rows = (cell / folder / "yeom.parquet" for folder in ("attack", "measured"))
    before = scores.stat().st_ino, rows.stat().st_ino
    workflow.append("src/dp_leakage/metrics/roc.py", "\n\nEDITED = True\n")
    assert workflow.planned("quickstart") == JUDGED + EVERY_FIGURE + END
    workflow.snakemake(str(rows.relative_to(workflow.folder)), "--cores", "1")
    assert scores.stat().st_ino == before[0]  # whoever writes a file puts a new one in its place
    assert rows.stat().st_ino != before[1]


def test_a_setting_of_one_attack_runs_that_attack(workflow):
    workflow.configure(attacks={"yeom_attribute": {"features": 3}})
    assert workflow.planned("quickstart") == JUDGED + EVERY_FIGURE + END


def test_a_new_attack_asks_no_model_again(workflow):
    cell = workflow.results / "digits" / "mlp" / "none"
    kept = [cell / "signals.npz", cell / "attack" / "yeom.parquet"]
    before = [path.stat().st_ino for path in kept]
    workflow.configure(attacks={"attack_p": {}})
    planned = workflow.planned("quickstart")
    assert planned["query"] == planned["train_target"] == 0
    assert planned["judge_quickstart"] == CELLS
    workflow.snakemake(str((cell / "attack" / "attack_p.parquet").relative_to(workflow.folder)), "--cores", "1")
    assert [path.stat().st_ino for path in kept] == before


def test_an_attack_that_fails_leaves_what_the_others_find(workflow):
    cell = workflow.results / "digits" / "mlp" / "none"
    before = workflow.hashes()
    for path in [cell / "signals.npz", cell / "metrics.parquet", *cell.glob("attack/*"), *cell.glob("measured/*")]:
        path.unlink()
    yeom = "src/dp_leakage/attacks/membership/yeom.py"
    text = (workflow.folder / yeom).read_text()
    workflow.append(yeom, "\n\ndef score(*_):\n    raise ZeroDivisionError\n")
    target = str((cell / "metrics.parquet").relative_to(workflow.folder))
    said = workflow.snakemake(target, "--cores", "1", check=False)
    assert "Error in rule judge_quickstart" in said
    assert "Cannot restore" not in said
    assert (cell / "attack" / "shokri.parquet").exists()
    assert (cell / "measured" / "training.parquet").exists()
    assert not (cell / "attack" / "yeom.parquet").exists()
    assert not (cell / "metrics.parquet").exists()
    kept = (cell / "attack" / "shokri.parquet").stat().st_ino
    (workflow.folder / yeom).write_text(text)
    workflow.run()
    assert workflow.hashes() == before
    assert (cell / "attack" / "shokri.parquet").stat().st_ino == kept


def test_files_that_are_made_again_and_come_out_equal_draw_nothing(workflow):
    cell = workflow.results / "digits" / "mlp" / "none"
    kept = [*cell.glob("attack/*"), *(workflow.results / "figures").glob("*.csv")]
    before, inodes = workflow.hashes(), [path.stat().st_ino for path in kept]
    (cell / "signals.npz").unlink()
    assert workflow.planned("quickstart")["judge_quickstart"] == 1
    workflow.run()
    assert workflow.hashes() == before
    assert [path.stat().st_ino for path in kept] == inodes


def test_comments_docstrings_and_layout_run_nothing(workflow):
    workflow.append("src/dp_leakage/training/trainer.py", "\n# a remark\n")
    workflow.edit("src/dp_leakage/figures/over_budget.py", '"""', '"""Edited. ')
    workflow.append("workflow/studies/quickstart.yaml", "\n# a remark\n")
    assert workflow.planned("quickstart") == Counter()


def test_touching_every_source_runs_nothing(workflow):
    for path in (workflow.folder / "src").rglob("*.py"):
        path.touch()
    assert workflow.planned("quickstart") == Counter()


def test_a_new_attack_and_a_new_kind_of_figure_run_nothing(workflow):
    yeom = (workflow.folder / "src/dp_leakage/attacks/membership/yeom.py").read_text()
    (workflow.folder / "src/dp_leakage/attacks/membership/mine.py").write_text(yeom)
    pareto = (workflow.folder / "src/dp_leakage/figures/pareto.py").read_text()
    (workflow.folder / "src/dp_leakage/figures/mine.py").write_text(pareto)
    assert workflow.planned("quickstart") == Counter()


def test_swapping_two_values_runs_what_they_reach(workflow):
    workflow.configure(shadow={"count": 3, "size": 200})
    drawn = Counter(quickstart_fig_leakage_shokri=1)
    assert workflow.planned("quickstart_fig_leakage_shokri") == AUXILIARY + JUDGED + drawn


def test_an_attack_on_untrained_models_trains_none(unrun):
    settings = {"metrics": ["ssim/iga/statistic=mean"]}
    table = {"kind": "compared_table", "title": "Rebuilt", "parts": ["iga"], "settings": settings}
    unrun.configure(datasets={"digits": {"projection": None}}, attacks={"iga": {}}, figures={"table_rebuilt": table})
    planned = unrun.planned("quickstart_table_rebuilt")
    assert planned == Counter(prepare_dataset=1, project_pca=1, reconstruct=CELLS, quickstart_table_rebuilt=1)


def test_words_the_command_line_and_the_reading_of_files_rerun_nothing_and_a_new_format_everything(workflow):
    """They cannot change a number; an edit of an error's words planned every job anew."""
    for name in REPORTING:
        path = f"src/{name.replace('.', '/')}"
        path = f"{path}/__init__.py" if (workflow.folder / path).is_dir() else f"{path}.py"
        workflow.append(path, "\nEDITED = 1\n")
    assert workflow.planned("quickstart") == {}
    workflow.edit("src/dp_leakage/provenance/format.py", "FORMAT = 1", "FORMAT = 2")
    assert {"prepare_dataset", "train_target", "quickstart_report"} <= workflow.planned("quickstart").keys()
