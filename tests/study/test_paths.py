"""Each path is written once: the rules have their patterns from where the plan has its files."""

import re
from pathlib import Path

import pytest

from dp_leakage.study import paths
from dp_leakage.study.paths import Paths, group_of, of_one_defense

REPO = Path(__file__).parents[2]
PLACES = Paths("mine", {})


def matches(pattern: str, file: Path) -> bool:
    """Does a file fit a pattern of a rule, each wildcard being one folder or more?"""
    return re.fullmatch(re.sub(r"\\{(\w+)\\}", r".+", re.escape(pattern)), str(file)) is not None


@pytest.mark.parametrize("rules", sorted((REPO / "workflow" / "rules").glob("*.smk")), ids=lambda path: path.stem)
def test_rules_write_no_path_of_results_or_logs(rules):
    assert not re.findall(r"""["'](?:results|logs|benchmarks)\b[^"']*["']""", rules.read_text(encoding="utf-8"))


def test_every_file_fits_the_pattern_of_its_rule():
    shared, own = ("digits", "mlp", "shadow"), ("digits", "mlp", "shadow", "gaussian-eps=1")
    assert matches(paths.PREPARED, PLACES.prepared("digits"))
    assert matches(paths.AUXILIARY, PLACES.auxiliary(*shared))
    assert matches(of_one_defense(paths.AUXILIARY), PLACES.auxiliary(*own))
    assert matches(paths.FITTED, PLACES.fitted("digits", "mlp", "shokri"))
    assert matches(of_one_defense(paths.FITTED), PLACES.fitted("digits", "mlp", "shokri", "gaussian-eps=1"))
    for role, defense in (("target", "none"), ("shadow", None), ("shadow", "none")):
        assert matches(paths.ANSWERS, PLACES.answers("digits", "mlp", role, defense))


def test_files_lie_where_the_documentation_says():
    assert str(PLACES.trained("digits", "mlp", "none")) == "results/mine/digits/mlp/none/target.safetensors"
    assert str(PLACES.auxiliary("digits", "mlp", "shadow")) == "results/mine/digits/mlp/shadow/models.safetensors"
    assert str(PLACES.answers("digits", "mlp", "target", "none")) == "results/mine/digits/mlp/none/signals.npz"
    assert str(PLACES.scores("digits", "mlp", "none", "lira")) == "results/mine/digits/mlp/none/attack/lira.parquet"
    assert str(PLACES.report) == "results/mine/report.html"
    assert {str(path) for path in PLACES.figure_files("roc").values()} == {
        f"results/mine/figures/roc.{form}" for form in ("pdf", "png", "csv")
    }


def test_a_group_of_models_is_called_by_its_defense_or_by_its_role():
    assert group_of("target", "none") == group_of("target", None) == "none"
    assert group_of("shadow", None) == "shadow"
    assert group_of("shadow", "gaussian-eps=1") == "gaussian-eps=1/shadow"


def test_a_trainings_files_lie_together():
    for role, defense in (("target", "none"), ("reference", None), ("reference", "gaussian-eps=1")):
        files = PLACES.training_files("digits", "mlp", role, defense)
        assert len({path.parent for path in files}) == 1
        assert [path.name for path in files][1:] == ["training.parquet", "timing.json"]
