"""Classifiers of other libraries as targets: what is kept is what they say, and claims of ε are marked as theirs."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

from dp_leakage.common.errors import UserError
from dp_leakage.common.yaml_files import read_yaml
from dp_leakage.data.dataset import Dataset
from dp_leakage.data.outputs import FLOOR
from dp_leakage.engines import estimator
from dp_leakage.report.tables import claimed_and_spent
from dp_leakage.study.file import load_studies
from dp_leakage.table.numbers import number

X, Y = load_breast_cancer(return_X_y=True)
X = ((X - X.min(0)) / (X.max(0) - X.min(0))).astype(np.float32)
DATA = Dataset(X, Y.astype(np.int64), {}, np.array([], dtype=np.int64))
ROWS = np.random.default_rng(0).permutation(569)[:200]
REPO = Path(__file__).parents[2]


def settings(name, **arguments):
    return {"architecture": {"name": name, **arguments}, "role": "target"}


def test_answers_are_the_estimators_own_probabilities():
    how = settings("sklearn.ensemble:RandomForestClassifier", n_estimators=20)
    said = estimator.answers(how, DATA, [ROWS, ROWS[:100]], [5, 6])
    for k, rows in enumerate((ROWS, ROWS[:100])):
        model = RandomForestClassifier(20, random_state=5 + k).fit(X[rows], Y[rows])
        expected = np.maximum(model.predict_proba(X), FLOOR)
        np.testing.assert_allclose(np.exp(said.log_probability[k]), expected)
        np.testing.assert_array_equal(np.flatnonzero(said.trained_on[k]), np.sort(rows))


@pytest.mark.parametrize(
    "name",
    [
        "sklearn.ensemble:RandomForestClassifier",
        "sklearn.ensemble:GradientBoostingClassifier",
        "sklearn.linear_model:LogisticRegression",
        "sklearn.neighbors:KNeighborsClassifier",
        "lightgbm:LGBMClassifier",
    ],
)
def test_the_same_seed_gives_the_same_answers(name):
    a, b = (estimator.answers(settings(name), DATA, [ROWS], [2**62 + 1]) for _ in range(2))
    np.testing.assert_array_equal(a.margin, b.margin)
    assert a.correct(DATA.y)[:, np.sort(ROWS)].mean() > 0.9


def test_a_class_that_an_estimator_never_saw_has_no_probability():
    y = np.where(np.arange(569) == 7, 2, Y)
    rows = np.setdiff1d(ROWS, [7])
    said = estimator.answers(
        settings("sklearn.linear_model:LogisticRegression"), DATA._replace(y=y.astype(np.int64)), [rows], [0]
    )
    np.testing.assert_allclose(np.exp(said.log_probability[0][:, 2]), FLOOR)
    assert said.margin[0, 0, 7] < -10


def test_a_private_estimator_is_told_the_cells_budget_and_its_bounds():
    how = settings(
        "interpret.privacy:DPExplainableBoostingClassifier",
        claimed={"epsilon": 1.0, "delta": 1e-5},
        privacy_bounds=[0, 1],
        max_rounds=20,
    )
    loose = settings(how["architecture"]["name"], claimed={"epsilon": 1e6, "delta": 1e-5}, privacy_bounds=[0, 1])
    private, open_ = (estimator.answers(each, DATA, [ROWS], [0]).correct(DATA.y).mean() for each in (how, loose))
    assert open_ > 0.85
    assert private < open_


@pytest.mark.parametrize("name", ["LogisticRegression", "RandomForestClassifier"])
def test_diffprivlibs_models_are_trained_where_they_can_be_imported(name):
    try:
        import diffprivlib  # noqa: F401
    except ImportError as error:
        pytest.skip(f"diffprivlib: {error}")
    own = {"data_norm": 5.5} if name == "LogisticRegression" else {"bounds": [0, 1], "classes": [0, 1]}
    how = settings(f"diffprivlib.models:{name}", claimed={"epsilon": 100.0, "delta": 1e-5}, **own)
    said = estimator.answers(how, DATA, [ROWS], [0])
    assert said.correct(DATA.y).mean() > 0.8
    leaks = settings(f"diffprivlib.models:{name}", claimed={"epsilon": 100.0})
    with pytest.raises(UserError, match="does not cover"):
        estimator.answers(leaks, DATA, [ROWS], [0])


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        (settings("no_such_package:Thing"), "cannot be imported"),
        (settings("sklearn.ensemble:RandomForestClasifier"), "did you mean 'RandomForestClassifier'"),
        (settings("sklearn.ensemble:RandomForestClassifier", trees=5), "does not take 'trees'"),
        (settings("sklearn.ensemble:RandomForestClassifier", n_estimators=-5), "cannot be trained on these records"),
        (settings("sklearn.svm:LinearSVC"), "has no predict_proba"),
        (settings("sklearn.ensemble:RandomForestClassifier", claimed={"epsilon": 1.0}), "takes no epsilon"),
        (
            settings("interpret.privacy:DPExplainableBoostingClassifier", claimed={"epsilon": 1.0}, max_rounds=5),
            "reads properties of the records that its ε does not cover",
        ),
    ],
)
def test_an_estimator_that_does_not_fit_gets_one_sentence(how, sentence):
    with pytest.raises(UserError, match=sentence) as caught:
        estimator.answers(how, DATA, [ROWS], [0])
    assert "\n" not in str(caught.value)


def tabular(**changes):
    config = read_yaml(REPO / "config.yaml") | {"overrides": {"tabular": changes}}
    return load_studies(config, [REPO / "workflow" / "studies" / "tabular.yaml"])["tabular"]


def test_a_claimed_cell_trains_the_private_class_and_says_whose_claim_it_is():
    study = tabular()
    cell = study.cell("breast_cancer", "additive_trees", "claimed-eps=10")
    assert cell.training["architecture"]["name"] == "interpret.privacy:DPExplainableBoostingClassifier"
    assert cell.training["architecture"]["claimed"] == {"epsilon": 10.0, "delta": 1e-5}
    assert cell.columns["epsilon"] == 10
    assert cell.columns["accounting_note"] == "ε as claimed by InterpretML"
    none = study.cell("breast_cancer", "additive_trees", "none")
    assert none.training["architecture"]["name"] == "interpret.glassbox:ExplainableBoostingClassifier"


def test_the_report_says_whose_claim_a_budget_is(monkeypatch):
    monkeypatch.syspath_prepend(REPO / "tests" / "figures")
    import synthetic

    frame = synthetic.quick_frame()
    theirs = {"accountant": "claimed", "mechanism": "claimed", "unit": "", "block": "", "bound": ""}
    theirs["accounting_note"] = "ε as claimed by InterpretML"
    cell = frame["defense"] == frame.loc[frame["accountant"] == "rdp", "defense"].iloc[0]
    claimed = frame[cell & ~frame["metric"].str.startswith("epsilon_spent")].assign(**theirs, noise_multiplier=np.nan)
    (table, *_) = claimed_and_spent(pd.concat([frame[~cell], claimed]))
    (row,) = [row for row in table.rows if row[0] == "private, as its library claims"]
    assert row[1] == number(claimed["epsilon"].iloc[0])
    assert row[3:5] == ["–", "as claimed by InterpretML"]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"attacks": {"loss_trace": {}}},
            "reads the losses of every evaluated epoch; engine estimator keeps only the end's",
        ),
        ({"attacks": {"yeom_attribute": {}}}, "takes the models themselves; engine estimator keeps only their outputs"),
        ({"defenses": [{"defense": "none"}, {"defense": "claimed"}]}, "lacks the key 'epsilon'"),
        ({"defenses": [{"defense": "none"}, {"defense": "claimed", "epsilon": [1]}]}, "lacks the key 'private'"),
        (
            {"defenses": [{"defense": "none"}, {"defense": "claimed", "epsilon": [1], "models": ["mlp"]}]},
            "use engine estimator",
        ),
        (
            {"defenses": [{"defense": "none"}, {"defense": "gaussian", "accountant": "rdp", "epsilon": [1]}]},
            "engine estimator knows none and claimed alone",
        ),
        ({"models": {"random_forest": {"architecture": {"name": "forest"}}}}, "expected a path such as"),
    ],
)
def test_what_estimators_cannot_do_is_refused_before_anything_runs(changes, sentence):
    with pytest.raises(UserError, match=sentence):
        tabular(**changes)


LIAR = """from sklearn.tree import DecisionTreeClassifier


class Liar(DecisionTreeClassifier):
    def __init__(self, epsilon=1.0, random_state=None):
        super().__init__(random_state=random_state)
        self.epsilon = epsilon
"""
LYING: dict = {
    "study": "lying",
    "title": "A class that takes ε and adds no noise",
    "question": "Is it found out?",
    "seed": 1,
    "design": "coins",
    "delta": 1.0e-5,
    "repeats": 16,
    "datasets": {"tumours": {"source": "breast_cancer", "roles": {"pool": 400, "target_nonmembers": 169}}},
    "models": {
        "tree": {
            "engine": "estimator",
            "architecture": {"name": "sklearn.tree:DecisionTreeClassifier"},
            "private": {"by": "liars", "name": "liars:Liar"},
        }
    },
    "training": {"optimizer": "adam", "learning_rate": 0.01, "epochs": 1, "batch_size": 40},
    "defenses": [{"defense": "none"}, {"defense": "claimed", "epsilon": [0.1]}],
    "attacks": {"yeom": {}, "lira_online": {}},
    "figures": {"fig_roc": {"kind": "roc", "parts": ["yeom", "lira_online"]}},
}


def test_a_library_that_claims_more_than_it_does_is_found_out(whole):
    (whole.folder / "liars.py").write_text(LIAR)
    (whole.folder / "studies").mkdir(exist_ok=True)
    (whole.folder / "studies" / "lying.yaml").write_text(yaml.safe_dump(LYING, sort_keys=False))
    whole.snakemake("lying", "--cores", "1")
    report = (whole.folder / "results" / "lying" / "report.html").read_text()
    assert 'class="alarm"' in report
    assert re.search(r"claimed-eps=0\.1: an attack shows ε ≥ [0-9.]+.*than the 0\.[12] that liars claims", report)
