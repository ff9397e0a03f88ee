"""Each path is written once: the rules have their patterns from where the plan has its files."""

import re
from pathlib import Path

import pytest

from dp_leakage.study import Study, paths
from dp_leakage.study.paths import figure_files, fitted, group_of, of_one_defense, training_files

REPO = Path(__file__).parents[2]
CELL = {"dataset": "digits", "model": "mlp", "defense": "none"}
PLACES = Study("mine", {"figures": {"roc": {"kind": "roc"}, "table": {"kind": "paired_table"}}})


def answers(role, defense):
    return PLACES.path(paths.ANSWERS, dataset="digits", model="mlp", group=group_of(role, defense), answers="signals")


def matches(pattern: str, file: Path) -> bool:
    """Does a file fit a pattern of a rule, each wildcard being one folder or more?"""
    return re.fullmatch(re.sub(r"\\{(\w+)\\}", r".+", re.escape(pattern)), str(file)) is not None


@pytest.mark.parametrize("rules", sorted((REPO / "workflow" / "rules").glob("*.smk")), ids=lambda path: path.stem)
def test_rules_write_no_path_of_results_or_logs(rules):
    assert not re.findall(r"""["'](?:results|logs|benchmarks)\b[^"']*["']""", rules.read_text(encoding="utf-8"))


def test_every_file_fits_the_pattern_of_its_rule():
    shared, own = ("digits", "mlp", "shadow"), ("digits", "mlp", "shadow", "gaussian-eps=1")
    assert matches(paths.PREPARED, PLACES.path(paths.PREPARED, dataset="digits"))
    assert matches(paths.AUXILIARY, training_files(PLACES, *shared)[0])
    assert matches(of_one_defense(paths.AUXILIARY), training_files(PLACES, *own)[0])
    assert matches(paths.FITTED, fitted(PLACES, "digits", "mlp", "shokri"))
    assert matches(of_one_defense(paths.FITTED), fitted(PLACES, "digits", "mlp", "shokri", "gaussian-eps=1"))
    for role, defense in (("target", "none"), ("shadow", None), ("shadow", "none")):
        assert matches(paths.ANSWERS, answers(role, defense))


def test_files_lie_where_the_documentation_says():
    folder = Path("results/mine/digits/mlp")
    assert training_files(PLACES, "digits", "mlp", "target")[0] == folder / "none/target.safetensors"
    assert training_files(PLACES, "digits", "mlp", "shadow")[0] == folder / "shadow/models.safetensors"
    assert answers("target", "none") == folder / "none/signals.npz"
    assert PLACES.path(paths.SCORES, **CELL, attack="lira") == folder / "none/attack/lira.parquet"
    assert PLACES.path(paths.REPORT) == Path("results/mine/report.html")
    assert {str(path) for path in figure_files(PLACES, "roc").values()} == {
        f"results/mine/figures/roc.{form}" for form in ("pdf", "png", "csv")
    }
    assert {str(path) for path in figure_files(PLACES, "table").values()} == {
        f"results/mine/figures/table.{form}" for form in ("html", "tex", "csv")
    }


def test_a_group_of_models_is_called_by_its_defense_or_by_its_role():
    assert group_of("target", "none") == group_of("target", None) == "none"
    assert group_of("shadow", None) == "shadow"
    assert group_of("shadow", "gaussian-eps=1") == "gaussian-eps=1/shadow"


def test_a_trainings_files_lie_together():
    for role, defense in (("target", "none"), ("reference", None), ("reference", "gaussian-eps=1")):
        files = training_files(PLACES, "digits", "mlp", role, defense)
        assert len({path.parent for path in files}) == 1
        assert [path.name for path in files][1:] == ["training.parquet", "timing.json"]
