"""The Python of the documentation runs as printed, on a small study for real: pages and notebook."""

import json
import re
from pathlib import Path
from pkgutil import resolve_name

import numpy as np
import pytest

import dp_leakage
from dp_leakage.attacks import ATTACKS, lira
from dp_leakage.attacks.membership import lira as module
from dp_leakage.common.errors import UserError

DOCS = Path(__file__).parents[1] / "docs"
SMALL = {
    "models": {"softmax_regression": None},
    "epsilon": [1, 10],
    "repeats": 4,
    "training": {"epochs": 4, "evaluate_every": 2},
    "defenses": [{"defense": "none"}, {"defense": "gaussian", "accountant": "rdp", "sampler": "poisson"}],
}


@pytest.fixture(scope="module")
def ran(another):
    """A folder in which a small quickstart has run, and where it stands for that of every scale."""
    workflow = another("notebook")
    workflow.configure(**SMALL)
    cells = ("none", "gaussian-rdp-eps=1", "gaussian-rdp-eps=10")
    workflow.snakemake(*(f"results/quickstart/digits/mlp/{cell}/metrics.parquet" for cell in cells), "--cores", "2")
    (workflow.folder / "results" / "quickstart-smoke").symlink_to("quickstart")
    return workflow.folder


@pytest.fixture
def there(ran, monkeypatch):
    monkeypatch.chdir(ran)
    monkeypatch.setenv("MPLBACKEND", "agg")


def code_of(page: Path) -> list[str]:
    """The Python of a page or a notebook, in its order."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".ipynb":
        return ["".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


@pytest.mark.parametrize(("page", "numbers"), [("signals.md", 0), ("api.md", 3), ("tutorials/results.ipynb", 0)])
def test_the_code_of_the_page_runs_as_printed(there, page, numbers):
    """``expression  # 1.23…`` has the value that it says."""
    blocks, printed, names = code_of(DOCS / page), 0, {}
    assert len(blocks) >= 2
    for block in blocks:
        exec(compile(block, page, "exec"), names)
        for expression, number in re.findall(r"^(.+\S)  # ([0-9.]+)…$", block, re.MULTILINE):
            assert repr(eval(expression, names)).startswith(number), expression
            printed += 1
    assert printed == numbers


def test_a_training_is_watched_as_its_pages_print(capsys):
    names: dict = {}
    exec(next(block for block in code_of(DOCS / "api.md") if "def train" in block), names)
    (block,) = code_of(DOCS / "watch.md")
    exec(block, names)
    names["test_the_training_is_private"]()
    assert names["seen"].verdict == "holds"
    assert capsys.readouterr().out.startswith("holds 1.93")


def test_a_study_is_read_as_cells_metrics_and_curves(there):
    results = dp_leakage.open("results/quickstart")
    assert set(results.cells) == {
        f"digits/mlp/{name}" for name in ("none", "gaussian-rdp-eps=1", "gaussian-rdp-eps=10")
    }
    rows = results.metrics
    for key, cell in results.cells.items():
        dataset, model, defense = key.split("/")
        own = rows[(rows["dataset"] == dataset) & (rows["model"] == model) & (rows["defense"] == defense)]
        np.testing.assert_array_equal(own["value"], cell.metrics["value"])
        assert set(cell.curves) == {"repeat", "epoch", "loss", "train_accuracy", "test_accuracy"}
    assert sorted(rows["epsilon"].dropna().unique()) == [1, 10]
    assert len(results.curves) == sum(len(cell.curves) for cell in results.cells.values())


def test_a_roc_curve_has_the_area_that_was_measured(there):
    cell = dp_leakage.open("results/quickstart")["digits/mlp/none"]
    curve = cell.roc("yeom")
    areas = [np.trapezoid(one["tpr"], one["fpr"]) for _, one in curve.groupby("repeat")]
    measured = cell.metrics.query("metric == 'membership_auc' and attack == 'yeom' and repeat != 'all'")
    np.testing.assert_allclose(areas, measured.sort_values("repeat")["value"], atol=1e-9)


def test_what_is_not_there_is_named_with_what_may_be_meant(there, tmp_path):
    with pytest.raises(UserError, match="must be a study's folder of results"):
        dp_leakage.open(tmp_path)
    results = dp_leakage.open("results/quickstart")
    with pytest.raises(UserError, match="did you mean 'digits/mlp/none'"):
        results["digits/mlp/non"]
    with pytest.raises(UserError, match="did you mean 'yeom'"):
        results["digits/mlp/none"].roc("yoem")
    with pytest.raises(UserError, match=r"claims\.json cannot be read"):
        _ = results.claims


def test_an_attack_is_found_by_its_name_alone():
    assert lira is module
    assert ATTACKS["lira"].module == lira.__name__
    with pytest.raises(ImportError):
        from dp_leakage.attacks import lirra  # noqa: F401


def documented() -> list[str]:
    """Every name that a page's Python imports from the package, and every name of ours that the site describes."""
    names = re.findall(r"^::: (\S+)$", (DOCS / "api.md").read_text(encoding="utf-8"), re.MULTILINE)
    blocks = re.findall(
        r"^::: (\S+)\n    options:\n      members: \[(.*)\]",
        (DOCS / "api.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    names += [f"{module}.{member}" for module, members in blocks for member in members.split(", ")]
    for page in sorted([*DOCS.rglob("*.md"), *DOCS.rglob("*.ipynb")]):
        text = "\n".join(code_of(page))
        for origin, imported in re.findall(r"^from (dp_leakage[\w.]*) import ([\w, ]+)", text, re.MULTILINE):
            names += [f"{origin}.{name.split(' as ')[0].strip()}" for name in imported.split(",")]
    return sorted(set(names))


@pytest.mark.parametrize("name", documented())
def test_a_documented_name_can_be_imported(name):
    found = resolve_name(name)
    assert found.__doc__
