"""Every file that a step reads, damaged in every way: refused by name, with nothing written. Without Snakemake."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from dp_leakage.common.config import merged
from dp_leakage.common.errors import UserError
from dp_leakage.common.yaml_files import read_yaml
from dp_leakage.steps import (
    attack,
    attack_models,
    audit,
    figure,
    fit_attack,
    measure,
    measure_attack,
    measure_audit,
    measure_training,
    prepare,
    project,
    query,
    report,
    train,
)
from dp_leakage.study import CLASS_SCORES, SIGNALS, Study
from dp_leakage.study.file import load_studies
from dp_leakage.study.steps import STEPS

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

    def prepare(self, to):
        out = to / self.study.prepared("digits")
        prepare.main(self.study.prepare_settings("digits"), out, Path())
        return [out]

    def project(self, to):
        out = to / self.study.data("digits")
        project.main(self.study.project_settings("digits"), self.study.prepared("digits"), out)
        return [out]

    def _train(self, settings, models):
        history, timing = models.with_name("training.parquet"), models.with_name("timing.json")
        train.main(settings, self.study.data("digits"), models, history, timing, "cpu", 60.0)
        return [models, history, timing]

    def train(self, to, names=CELL):
        (to / self.study.trained(*names).parent).mkdir(parents=True, exist_ok=True)
        return self._train(self.study.train_settings(self.study.cell(*names)), to / self.study.trained(*names))

    def train_shadow(self, to):
        models = to / self.study.auxiliary("digits", "mlp", "shadow")
        models.parent.mkdir(parents=True, exist_ok=True)
        return self._train(self.study.auxiliary_settings("digits", "mlp", "shadow"), models)

    def fit_attack(self, to):
        out, inputs = self.study.fitted("digits", "mlp", "shokri"), self.study.fit_inputs("digits", "mlp", "shokri")
        settings = self.study.fit_settings("digits", "mlp", "shokri")
        fit_attack.main(settings, fitted=to / out, **{option: path for option, (path, _) in inputs.items()})
        return [to / out]

    def _query(self, to, *group):
        outs = {what: to / self.study.answers(*group, what) for what in (SIGNALS, CLASS_SCORES)}
        for what, out in outs.items():
            settings, models = self.study.query_settings(*group, what), self.study.models(*group)
            files = dict.fromkeys(outs) | {what: out}
            query.main(settings, self.study.data("digits"), models, device="cpu", **files)
        return list(outs.values())

    def query(self, to, names=CELL):
        dataset, model, defense = names
        return self._query(to, dataset, model, "target", defense)

    def query_shadow(self, to):
        return self._query(to, "digits", "mlp", "shadow", None)

    def _attack(self, to, name, names, step=attack):
        cell = self.study.cell(*names)
        settings, inputs = self.study.settings("attack", cell, attack=name), self.study.attack_inputs(cell, name)
        out, rows = to / self.study.scores(*names, name), to / self.study.rows(cell, name)
        step.main(settings, scores=out, rows=rows, **{option: path for option, (path, _) in inputs.items()})
        return [out, rows]

    def attack_yeom(self, to, names=CELL):
        return self._attack(to, "yeom", names)

    def attack_shokri(self, to, names=CELL):
        return self._attack(to, "shokri", names)

    def attack_attribute(self, to, names=CELL):
        return self._attack(to, "yeom_attribute", names, attack_models)

    def audit(self, to, names=CELL):
        out = to / self.study.audit(*names)
        out.parent.mkdir(parents=True, exist_ok=True)
        audit.main(self.study.settings("audit", self.study.cell(*names)), self.study.data("digits"), out, "cpu", 60.0)
        return [out]

    def measure_audit(self, to, names=CELL):
        out = to / self.study.part_file(self.study.cell(*names), "audit")
        measure_audit.main(self.study.settings("measure_audit", self.study.cell(*names)), self.study.audit(*names), out)
        return [out]

    def measure_training(self, to, names=CELL):
        own, base = (self.study.trained(*which).with_name("training.parquet") for which in (names, NONE))
        out = [
            (to / self.study.measured(*names)).with_name(f"{name}.parquet") for name in ("training", "curve", "proven")
        ]
        measure_training.main(self.study.settings("measure_training", self.study.cell(*names)), own, base, *out)
        return out

    def _measure_attack(self, to, part, names):
        cell = self.study.cell(*names)
        out = to / self.study.part_file(cell, part)
        found = STEPS["measure_together"].reads(self.study, cell.names | {"part": part})["found"]
        measure_attack.main(self.study.settings("measure_together", cell, part=part), found, out)
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
        out = to / self.study.metrics(*names)
        parts = [self.study.part_file(cell, part) for part in cell.parts]
        measure.main(self.study.measure_settings(cell), parts, out)
        return [out]

    def _figure(self, to, name):
        files = {kind: to / path for kind, path in self.study.figure_files(name).items()}
        figure.main(self.study.figure_settings(name), self.study.figure_inputs(name), None, **files)
        return list(files.values())

    def figure_of_metrics(self, to):
        return self._figure(to, "fig_accuracy_loss")

    def figure_of_curves(self, to):
        return self._figure(to, "fig_curve")

    def figure_of_scores(self, to):
        return self._figure(to, "fig_roc")

    def report(self, to):
        study, out = self.study, to / self.study.report
        metrics = [study.metrics(*cell.key.split("/")) for cell in study.cells.values()]
        drawn = [path for name in study.spec["figures"] for path in study.figure_files(name).values()]
        files = [drawn, out, to / study.claims]
        report.main(study.report_settings(), metrics, [study.data("digits")], study.exposed_scores(), [], *files)
        return files[-2:]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """The tiny study, run to its end; the working directory is its folder."""
    schemas = {
        name: yaml.safe_load((REPO / "workflow" / "schemas" / f"{name}.schema.yaml").read_text())
        for name in ("config", "study")
    }
    config = merged(read_yaml(REPO / "config.yaml"), {"overrides": {"quickstart": {}}})
    config["overrides"]["quickstart"] = TINY
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("tiny"))
        run = Run(load_studies(config, [REPO / "tests" / "studies" / "quickstart.yaml"], schemas)["quickstart"])
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


@pytest.mark.parametrize(
    ("step", "module", "file"),
    [("attack_yeom", attack, "yeom.parquet"), ("attack_attribute", attack_models, "yeom_attribute.parquet")],
)
def test_scores_that_are_current_are_kept_and_others_made_again(tiny, step, module, file, monkeypatch):
    attacked = []
    own = module.attack
    monkeypatch.setattr(module, "attack", lambda *args, **kwargs: (attacked.append(step), own(*args, **kwargs)))
    scores = Path("again") / TARGET / "attack" / file
    tiny(step)
    tiny(step)
    assert attacked == [step]
    for number, damage in enumerate(DAMAGES.values()):
        damage(scores)
        tiny(step)
        assert len(attacked) == 2 + number
        assert scores.read_bytes() == scores.relative_to("again").read_bytes()
    shutil.rmtree("again")


def test_a_step_run_again_makes_the_same_bytes(tiny):
    for step in READ:
        for path in tiny(step):
            if path.suffix not in (".json", ".html"):
                assert path.read_bytes() == path.relative_to("again").read_bytes()
    shutil.rmtree("again")
