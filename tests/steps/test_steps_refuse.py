"""Every file that a step reads, damaged in every way: refused by name, with nothing written. Without Snakemake."""

import json
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from dp_leakage.common.config import merged
from dp_leakage.common.errors import UserError
from dp_leakage.common.yaml_files import read_yaml
from dp_leakage.steps import (
    attack,
    attack_models,
    audit,
    figure,
    fit_attack,
    judge,
    measure,
    measure_attack,
    measure_audit,
    measure_training,
    prepare,
    project,
    query,
    report,
    run,
    train,
)
from dp_leakage.study import CLASS_SCORES, SIGNALS, Study, paths
from dp_leakage.study.file import load_studies
from dp_leakage.study.paths import figure_files, fitted, training_files
from dp_leakage.study.plan import exposed_scores, figure_inputs, figure_settings, report_settings
from dp_leakage.study.steps import (
    STEPS,
    Job,
    attack_inputs,
    auxiliary_settings,
    measure_settings,
    prepare_settings,
    project_settings,
    settings_of,
    train_settings,
)
from dp_leakage.study.steps.attack import answered, fit_inputs, fit_settings, query_settings
from dp_leakage.study.steps.judge import settings_of_job, written
from dp_leakage.study.steps.parts import part as part_of

REPO = Path(__file__).parents[2]
FIGURES = ("fig_leakage_attribute", "fig_leakage_lira", "fig_leakage_shokri", "fig_pareto", "table_members_exposed")
TINY = {
    "datasets": {
        "digits": {
            "roles": {"target_members": 60, "target_nonmembers": 60, "shadow_pool": 90, "reference_pool": None},
            "projection": {"components": 5},
        }
    },
    "models": {"mlp": {"architecture": {"hidden": [8]}}, "softmax_regression": None},
    "repeats": 1,
    "epsilon": [10],
    "training": {"epochs": 2, "batch_size": 20, "evaluate_every": 1},
    "defenses": [{"defense": "none"}, {"defense": "gaussian", "accountant": "gdp"}],
    "shadow": {"count": 2, "size": 40},
    "reference": None,
    "attacks": {"shokri": {"epochs": 2}, "yeom_attribute": {"features": 2}, "lira_online": None},
    "audit": {"designs": {"losses": {"design": "one_run", "models": 2, "canaries": 5, "beyond_reach": "mark"}}},
    "figures": dict.fromkeys(FIGURES) | {"fig_curve": {"kind": "training_curve"}, "fig_roc": {"kind": "roc"}},
}
CELL = ("digits", "mlp", "gaussian-gdp-eps=10")
NONE = ("digits", "mlp", "none")
STEPS_OF_A_CELL = (
    "train", "query", "attack_yeom", "attack_shokri", "attack_attribute", "audit", "measure_audit", "measure_training",
    "measure_yeom", "measure_shokri", "measure_attribute", "measure_strongest", "measure",
)  # fmt: skip


@dataclass
class Run:
    """The tiny study below the working directory, each step as the workflow calls it."""

    study: Study

    def __call__(self, step: str) -> list[Path]:
        """Runs a step; the files that it wrote. Its outputs go beside the cached ones, under ``again``."""
        return getattr(self, step)(Path("again") if Path("done").exists() else Path())

    def at(self, pattern: str, cell: tuple[str, str, str] = CELL) -> Path:
        """A file of a cell, or of its data set."""
        return self.study.path(pattern, self.study.cell(*cell))

    def prepare(self, to):
        out = to / self.at(paths.PREPARED)
        prepare.main(prepare_settings(self.study, "digits"), out, Path())
        return [out]

    def project(self, to):
        out = to / self.at(paths.DATA)
        project.main(project_settings(self.study, "digits"), self.at(paths.PREPARED), out)
        return [out]

    def _train(self, settings, models):
        history, timing = models.with_name("training.parquet"), models.with_name("timing.json")
        train.main(settings, self.at(paths.DATA), models, history, timing, "cpu", 60.0)
        return [models, history, timing]

    def train(self, to, names=CELL):
        (to / self.at(paths.TRAINED, names).parent).mkdir(parents=True, exist_ok=True)
        return self._train(train_settings(self.study, self.study.cell(*names)), to / self.at(paths.TRAINED, names))

    def train_shadow(self, to):
        models = to / training_files(self.study, "digits", "mlp", "shadow")[0]
        models.parent.mkdir(parents=True, exist_ok=True)
        return self._train(auxiliary_settings(self.study, "digits", "mlp", "shadow"), models)

    def fit_attack(self, to):
        out, inputs = fitted(self.study, "digits", "mlp", "shokri"), fit_inputs(self.study, "digits", "mlp", "shokri")
        settings = fit_settings(self.study, "digits", "mlp", "shokri")
        fit_attack.main(settings, fitted=to / out, **{option: path for option, (path, _) in inputs.items()})
        return [to / out]

    def _query(self, to, *group):
        outs = {what: to / answered(self.study, *group, what)[0] for what in (SIGNALS, CLASS_SCORES)}
        for what, out in outs.items():
            settings, models = query_settings(self.study, *group, what), training_files(self.study, *group)[0]
            files = dict.fromkeys(outs) | {what: out}
            query.main(settings, self.at(paths.DATA), models, device="cpu", **files)
        return list(outs.values())

    def query(self, to, names=CELL):
        dataset, model, defense = names
        return self._query(to, dataset, model, "target", defense)

    def query_shadow(self, to):
        return self._query(to, "digits", "mlp", "shadow", None)

    def _attack(self, to, name, names, step=attack):
        cell = self.study.cell(*names)
        settings, inputs = settings_of(self.study, "attack", cell, attack=name), attack_inputs(self.study, cell, name)
        out = to / self.study.path(paths.SCORES, cell, attack=name)
        step.main(settings, scores=out, **{option: path for option, (path, _) in inputs.items()})
        return [out]

    def attack_yeom(self, to, names=CELL):
        return self._attack(to, "yeom", names)

    def attack_shokri(self, to, names=CELL):
        return self._attack(to, "shokri", names)

    def attack_attribute(self, to, names=CELL):
        return self._attack(to, "yeom_attribute", names, attack_models)

    def audit(self, to, names=CELL):
        out = to / self.at(paths.AUDIT, names)
        out.parent.mkdir(parents=True, exist_ok=True)
        audit.main(settings_of(self.study, "audit", self.study.cell(*names)), self.at(paths.DATA), out, "cpu", 60.0)
        return [out]

    def measure_audit(self, to, names=CELL):
        out = to / part_of("audit").path(self.study, self.study.cell(*names))
        measure_audit.main(
            settings_of(self.study, "measure_audit", self.study.cell(*names)), self.at(paths.AUDIT, names), out
        )
        return [out]

    def measure_training(self, to, names=CELL):
        own, base = (self.at(paths.HISTORY, which) for which in (names, NONE))
        out = [to / self.at(pattern, names) for pattern in (paths.MEASURED, paths.CURVE, paths.PROVEN)]
        measure_training.main(settings_of(self.study, "measure_training", self.study.cell(*names)), own, base, *out)
        return out

    def _measure_attack(self, to, part, names):
        cell = self.study.cell(*names)
        out = to / part_of(part).path(self.study, cell)
        found = STEPS["measure_attack"].reads(self.study, Job(**cell.names, part=part))["found"]
        measure_attack.main(settings_of(self.study, "measure_attack", cell, part=part), found, out)
        return [out]

    def measure_yeom(self, to, names=CELL):
        return self._measure_attack(to, "yeom", names)

    def measure_shokri(self, to, names=CELL):
        return self._measure_attack(to, "shokri", names)

    def measure_attribute(self, to, names=CELL):
        return self._measure_attack(to, "yeom_attribute", names)

    def measure_strongest(self, to, names=CELL):
        return self._measure_attack(to, "strongest", names)

    def measure(self, to, names=CELL):
        cell = self.study.cell(*names)
        out = to / self.at(paths.METRICS, names)
        parts = [part_of(part).path(self.study, cell) for part in cell.parts]
        measure.main(measure_settings(self.study, cell), parts, out)
        return [out]

    def _figure(self, to, name):
        files = {kind: to / path for kind, path in figure_files(self.study, name).items()}
        figure.main(figure_settings(self.study, name), figure_inputs(self.study, name), None, list(files.values()))
        return list(files.values())

    def figure_of_metrics(self, to):
        return self._figure(to, "fig_accuracy_loss")

    def figure_of_curves(self, to):
        return self._figure(to, "fig_curve")

    def figure_of_scores(self, to):
        return self._figure(to, "fig_roc")

    def report(self, to):
        study, out = self.study, to / self.study.path(paths.REPORT)
        metrics = [study.path(paths.METRICS, study.cell(*cell.key.split("/"))) for cell in study.cells.values()]
        drawn = [path for name in study.spec["figures"] for path in figure_files(study, name).values()]
        files = [drawn, out, to / study.path(paths.CLAIMS)]
        report.main(
            report_settings(study),
            metrics,
            [study.path(paths.HISTORY, cell) for cell in study.cells.values()],
            [study.path(paths.DATA, dataset="digits")],
            exposed_scores(study),
            [],
            *files,
        )
        return files[-2:]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """The tiny study, run to its end; the working directory is its folder."""
    config = merged(read_yaml(REPO / "config.yaml"), {"overrides": {"quickstart": {}}})
    config["overrides"]["quickstart"] = TINY
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("tiny"))
        run = Run(load_studies(config, [REPO / "tests" / "studies" / "quickstart.yaml"])["quickstart"])
        for step in ("prepare", "project", "train_shadow", "query_shadow", "fit_attack"):
            run(step)
        for names in (NONE, CELL):
            for step in STEPS_OF_A_CELL:
                if (step, names) != ("measure_training", CELL):
                    getattr(run, step)(Path(), names)
                else:
                    run(step)
        for name in run.study.spec["figures"]:
            run._figure(Path(), name)
        run("report")
        Path("done").touch()
        yield run


ROOT = "results/quickstart"
TARGET, SHADOW = f"{ROOT}/{'/'.join(CELL)}", f"{ROOT}/digits/mlp/shadow"
# Each cached file that each step reads.
READ = {
    "project": [f"{ROOT}/digits/prepared.npz"],
    "train": [f"{ROOT}/digits/data.npz"],
    "train_shadow": [f"{ROOT}/digits/data.npz"],
    "query": [f"{ROOT}/digits/data.npz", f"{TARGET}/target.safetensors"],
    "query_shadow": [f"{ROOT}/digits/data.npz", f"{SHADOW}/models.safetensors"],
    "fit_attack": [f"{SHADOW}/signals.npz", f"{SHADOW}/class_scores.npz"],
    "attack_yeom": [f"{TARGET}/signals.npz"],
    "attack_shokri": [f"{TARGET}/signals.npz", f"{TARGET}/class_scores.npz", f"{SHADOW}/shokri.safetensors"],
    "attack_attribute": [f"{ROOT}/digits/data.npz", f"{TARGET}/target.safetensors"],
    "audit": [f"{ROOT}/digits/data.npz"],
    "measure_audit": [f"{TARGET}/audit.parquet"],
    "measure_training": [f"{TARGET}/training.parquet", f"{ROOT}/digits/mlp/none/training.parquet"],
    "measure_yeom": [f"{TARGET}/attack/yeom.parquet"],
    "measure_shokri": [f"{TARGET}/attack/shokri.parquet"],
    "measure_attribute": [f"{TARGET}/attack/yeom_attribute.parquet"],
    "measure_strongest": [f"{TARGET}/attack/yeom.parquet", f"{TARGET}/attack/shokri.parquet"],
    "measure": [
        f"{TARGET}/measured/{part}.parquet"
        for part in ("training", "yeom", "shokri", "yeom_attribute", "strongest", "audit")
    ],
    "figure_of_metrics": [f"{TARGET}/measured/training.parquet"],
    "figure_of_curves": [f"{TARGET}/measured/curve.parquet"],
    "figure_of_scores": [f"{TARGET}/attack/yeom.parquet", f"{TARGET}/measured/proven.parquet"],
    "report": [
        f"{TARGET}/metrics.parquet",
        f"{TARGET}/training.parquet",
        f"{ROOT}/digits/data.npz",
    ],
}


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _flip(path: Path) -> None:
    """One bit of the settings that the file carries, which no format has a checksum of; in an .npz, of its middle."""
    content = bytearray(path.read_bytes())
    settings = content.find(b"code")
    content[settings + 12 if settings > 0 else len(content) // 2] ^= 1
    path.write_bytes(content)


def _swap(path: Path) -> None:
    """A whole file of the same kind that belongs elsewhere."""
    others = [other for other in sorted(Path(ROOT).rglob(f"*{path.suffix}")) if other != path]
    shutil.copyfile(others[0], path)


DAMAGES = {"empty": lambda path: path.write_bytes(b""), "cut": _cut, "flipped": _flip, "foreign": _swap}
DAMAGES |= {"missing": Path.unlink, "text": lambda path: path.write_text("hello")}


@pytest.mark.parametrize(("step", "file"), [(step, file) for step, files in READ.items() for file in files])
def test_a_damaged_file_is_refused_by_name_and_nothing_is_written(tiny, step, file):
    path = Path(file)
    whole = path.read_bytes()
    before = {other: other.read_bytes() for other in Path(ROOT).rglob("*") if other.is_file() and other != path}
    try:
        for damage in DAMAGES.values():
            damage(path)
            with pytest.raises(UserError) as caught:
                tiny(step)
            assert file in str(caught.value)
            assert "\n" not in str(caught.value)
            path.write_bytes(whole)
    finally:
        path.write_bytes(whole)
    assert {other: other.read_bytes() for other in before} == before
    assert not [left for left in Path("again").rglob("*") if left.is_file()]  # of this step or those before


def test_every_stage_is_among_those_that_are_damaged(tiny):
    read = {file for files in READ.values() for file in files}
    made = {path.as_posix() for suffix in ("npz", "safetensors", "parquet") for path in Path(ROOT).rglob(f"*.{suffix}")}
    kinds = {Path(path).name for path in made}
    assert {Path(path).name for path in read} == kinds


@pytest.fixture
def judged(tiny):
    """The settings of the job that judges the private cell, and the files that it makes."""
    job = Job(*CELL)
    return settings_of_job(tiny.study, "judge", job), written(tiny.study, "judge", job)


@pytest.fixture
def attempt(tiny, monkeypatch):
    """A function: trains the private cell as its job does; whether it trained."""
    settings, called = train_settings(tiny.study, tiny.study.cell(*CELL)), []
    written = {"models": "target.safetensors", "history": "training.parquet", "timing": "timing.json"}

    def attempted(**changes):
        files = [word for option, name in written.items() for word in (f"--{option}", f"{TARGET}/{name}")]
        arguments = ["--settings", json.dumps(settings | changes), "--data", str(tiny.at(paths.DATA)), *files]
        monkeypatch.setattr(sys, "argv", ["train.py", *arguments])
        called.clear()
        run(lambda settings, **files: called.append(files), "data", *written, kept=tuple(written))
        return bool(called)

    return attempted


@pytest.mark.parametrize("damaged", ["target.safetensors", "training.parquet", "timing.json"])
def test_a_second_attempt_trains_only_where_a_file_is_missing_or_damaged(attempt, damaged):
    assert not attempt()
    assert attempt(seed=1)
    for damage in DAMAGES.values():
        whole = (Path(TARGET) / damaged).read_bytes()
        damage(Path(TARGET) / damaged)
        # What another cell made is told by its identity, which a file of seconds lacks.
        assert attempt() or (damaged == "timing.json" and damage is _swap)
        (Path(TARGET) / damaged).write_bytes(whole)


@pytest.mark.parametrize("damaged", ["signals.npz", "attack/shokri.parquet", "measured/strongest.parquet"])
def test_what_is_current_is_kept_and_what_is_not_is_made_again(judged, damaged):
    settings, files = judged
    path = Path(TARGET) / damaged
    before = {file: (file.stat().st_ino, file.read_bytes()) for file in files}
    for damage in DAMAGES.values():
        damage(path)
        judge.main(settings, files, device="cpu")
        assert path.read_bytes() == before[path][1]
        assert {file: file.stat().st_ino for file in files if file != path} == {
            file: inode for file, (inode, _) in before.items() if file != path
        }
    judge.main(settings, files, device="cpu")


@pytest.mark.parametrize("damaged", [f"{TARGET}/target.safetensors", f"{ROOT}/digits/mlp/none/training.parquet"])
def test_a_job_that_keeps_all_of_its_files_refuses_a_damaged_or_foreign_input(judged, damaged):
    settings, files = judged
    path = Path(damaged)
    whole = path.read_bytes()
    for damage in DAMAGES.values():
        damage(path)
        with pytest.raises(UserError, match=re.escape(damaged)):
            judge.main(settings, files, device="cpu")
        path.write_bytes(whole)


def test_in_a_storage_a_job_reads_and_writes_the_local_copies_alone(judged, tmp_path):
    settings, files = judged
    shutil.copytree("results", tmp_path / "copy" / "results")
    before = {file: (file.stat().st_ino, file.read_bytes()) for file in files}
    for file in files:
        (tmp_path / "copy" / file).unlink()
    judge.main(settings, [tmp_path / "copy" / file for file in files], device="cpu")
    assert {file: (tmp_path / "copy" / file).read_bytes() for file in files} == {
        file: content for file, (_, content) in before.items()
    }
    assert {file: file.stat().st_ino for file in files} == {file: inode for file, (inode, _) in before.items()}


def test_a_step_that_fails_leaves_what_the_others_make_and_is_named(judged, monkeypatch):
    settings, files = judged
    before = {file: file.read_bytes() for file in files}
    own = attack.main

    def failing(settings, **files):
        if settings["attack"] == "yeom":
            raise UserError("yeom cannot be computed")
        own(settings, **files)

    monkeypatch.setattr(attack, "main", failing)
    for file in files:
        file.unlink()
    with pytest.raises(UserError, match=r"^yeom cannot be computed$"):
        judge.main(settings, files, device="cpu")
    # What reads its scores is not made either.
    missing = {Path(TARGET) / folder / "yeom.parquet" for folder in ("attack", "measured")}
    missing.add(Path(TARGET) / "measured" / "strongest.parquet")
    assert {file for file in files if not file.exists()} == missing
    monkeypatch.undo()
    judge.main(settings, files, device="cpu")
    assert {file: file.read_bytes() for file in files} == before


def test_where_several_steps_fail_all_of_their_sentences_are_printed(judged, monkeypatch):
    settings, files = judged

    def failing(settings, **files):
        raise UserError(f"{settings['attack']} cannot be computed")

    monkeypatch.setattr(attack, "main", failing)
    for file in files:
        file.unlink()
    with pytest.raises(UserError, match=r"^\w+ cannot be computed(; \w+ cannot be computed)+$"):
        judge.main(settings, files, device="cpu")
    monkeypatch.undo()
    judge.main(settings, files, device="cpu")


def test_a_step_run_again_makes_the_same_bytes(tiny):
    for step in READ:
        for path in tiny(step):
            if path.suffix not in (".json", ".html"):
                assert path.read_bytes() == path.relative_to("again").read_bytes()
    shutil.rmtree("again")
