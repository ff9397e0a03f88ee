"""A study of persons for real: roles, coins, scores and words are those of persons."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from safetensors.numpy import load_file
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from workflow_copies import make

from dp_leakage.release.verify import verify
from dp_leakage.results import read_cell

CELLS = ("none", "gaussian-rdp-eps=5", "person-rdp-eps=5", "person-most=2-chosen=first-rdp-eps=5")

AUDITED = [{"defense": "none"}, {"defense": "gaussian", "accountant": "rdp", "audits": ["losses"]}]


def visits(file: Path) -> pd.DataFrame:
    """Wines, as measured on one to six visits by noisy hands; the maker is the person."""
    x, y = load_wine(return_X_y=True)
    rng = np.random.default_rng(0)
    maker = np.repeat(np.arange(len(y)), rng.integers(1, 7, len(y)))
    values = x[maker] + 0.1 * x.std(axis=0) * rng.normal(size=(len(maker), x.shape[1]))
    frame = pd.DataFrame(values, columns=[f"m{place}" for place in range(x.shape[1])])
    frame = frame.assign(maker=[f"{one:03d}" for one in maker], kind=y[maker]).sample(frac=1, random_state=0)
    frame.to_csv(file, index=False)
    return frame.reset_index(drop=True)


def study(file: Path) -> dict:
    return {
        "study": "visits",
        "title": "Wines on several visits",
        "seed": 1,
        "design": "coins",
        "repeats": 4,
        "delta": 1e-4,
        "epsilon": [5],
        "datasets": {
            "visits": {
                "source": {"path": str(file), "label": "kind", "person": "maker"},
                "roles": {"pool": 80, "target_nonmembers": 50, "tuning": 40},
                "projection": {"scale": "standard", "fit_on": ["target_nonmembers"]},
            }
        },
        "models": {"softmax_regression": {"architecture": {"name": "softmax_regression"}}},
        "training": {
            "optimizer": "adam", "learning_rate": 0.01, "epochs": 4, "batch_size": 20, "evaluate_every": 4,
        },
        "tune": {"learning_rate": [0.01, 0.1]},
        "defenses": [
            {"defense": "none", "audits": ["losses"]},
            {"defense": "gaussian", "accountant": "rdp", "sampler": "poisson", "audits": []},
            {"defense": "person", "accountant": "rdp", "audits": ["steps", "losses"]},
            {"defense": "person", "accountant": "rdp", "most": 2, "chosen": "first", "audits": []},
        ],
        "audit": {
            "designs": {
                "steps": {
                    "design": "many_runs", "claim": "own", "canary": "gradient", "canaries": 1, "score": "white_box",
                    "relation": "presence", "models": 200, "beyond_reach": "mark",
                },
                "losses": {
                    "design": "one_run", "claim": "approximate", "canary": "natural", "canaries": 20, "score": "loss",
                    "relation": "replace_one", "models": 4, "beyond_reach": "mark",
                },
            },
        },
        "attacks": {"yeom": {"of_person": "learned"}, "lira_online": {}},
        "figures": {
            "fig_pareto": {"kind": "pareto", "title": "All", "parts": ["training", "yeom", "lira_online"]},
            "table_persons": {"kind": "persons_table", "title": "People and records", "parts": ["lira_online"]},
        },
    }  # fmt: skip


@pytest.fixture(scope="module")
def ran(another):
    workflow = another("persons")
    frame = visits(workflow.folder / "visits.csv")
    file = workflow.folder / "visits.yaml"
    file.write_text(yaml.safe_dump(study(workflow.folder / "visits.csv"), sort_keys=False))
    workflow.snakemake("visits", "--cores", "2", "--config", f"study_files=[{file}]")
    return workflow.folder / "results" / "visits", frame


def test_nothing_of_a_person_is_on_two_sides(ran):
    folder, frame = ran
    data = np.load(folder / "visits" / "data.npz")
    owners = {role: set(frame["maker"][data[role]]) for role in ("pool", "target_nonmembers", "tuning")}
    assert {role: len(found) for role, found in owners.items()} == {"pool": 80, "target_nonmembers": 50, "tuning": 40}
    assert not owners["pool"] & owners["target_nonmembers"]
    assert not (owners["pool"] | owners["target_nonmembers"]) & owners["tuning"]
    for role, people in owners.items():
        assert set(data[role]) == set(np.flatnonzero(frame["maker"].isin(people)))


def test_a_coin_and_a_score_are_a_persons(ran):
    folder, frame = ran
    data = np.load(folder / "visits" / "data.npz")
    pool = frame["maker"][data["pool"]]
    for cell in CELLS:
        trained = load_file(folder / "visits" / "softmax_regression" / cell / "target.safetensors")["train_indices"]
        scores = pd.read_parquet(folder / "visits" / "softmax_regression" / cell / "attack" / "lira_online.parquet")
        assert len(scores) == 4 * 80
        for repeat, rows in enumerate(trained):
            inside = set(frame["maker"][rows[rows >= 0]])
            assert set(rows[rows >= 0]) == set(data["pool"][pool.isin(inside)])
            own = scores[(scores["repeat"] == repeat) & scores["member"]]["record"]
            assert {f"{person:03d}" for person in own} == inside


def test_single_records_are_told_beside_their_persons_for_both_kinds_of_noise(ran):
    folder, _ = ran
    table = pd.read_csv(folder / "figures" / "table_persons.csv").set_index(["defense", "metric"])
    assert {(defense, metric) for defense, metric in table.index} == {
        (defense, metric)
        for defense in CELLS
        for metric in (
            "reached_advantage", "record_advantage", "reached_tpr", "record_tpr", "membership_auc", "record_auc"
        )
    }  # fmt: skip
    assert table["hides"].fillna("").groupby("defense", sort=False).first().loc[list(CELLS)].tolist() == [
        "", "a record", "a person", "a person",
    ]  # fmt: skip
    scores = pd.read_parquet(folder / "visits" / "softmax_regression" / "none" / "attack" / "lira_online.parquet")
    apart = scores.explode("of_records")
    areas = [roc_auc_score(run["member"], run["of_records"].astype(float)) for _, run in apart.groupby("repeat")]
    assert table.loc[("none", "record_auc"), "measured"] == pytest.approx(np.mean(areas))
    assert np.allclose(scores["score"], scores["of_records"].map(np.sum))
    read = read_cell(folder / "visits" / "softmax_regression" / "none")
    assert len(read.scores["lira_online"]) == len(scores)


def test_scores_of_persons_are_weighed_as_other_repeats_teach(ran):
    folder, _ = ran
    scores = pd.read_parquet(folder / "visits" / "softmax_regression" / "none" / "attack" / "yeom.parquet")
    assert np.array_equal(scores["flagged"], scores["score"] > 0)
    runs = [run for _, run in scores.groupby("repeat")]
    told = [
        np.array([[each.sum(), each.mean(), each.max(), np.log(len(each))] for each in run["of_records"]])
        for run in runs
    ]
    for number, run in enumerate(runs):
        others = [place for place in range(len(runs)) if place != number]
        oracle = make_pipeline(StandardScaler(), LogisticRegression(class_weight="balanced", tol=1e-10, max_iter=1000))
        oracle.fit(np.concatenate([told[k] for k in others]), np.concatenate([runs[k]["member"] for k in others]))
        assert np.allclose(oracle.decision_function(told[number]), run["score"], atol=1e-5)


def test_a_person_is_promised_less_by_noise_for_single_records(ran):
    folder, _ = ran
    found = {}
    for cell in CELLS[1:]:
        rows = pd.read_parquet(folder / "visits" / "softmax_regression" / cell / "metrics.parquet")
        rows = rows[rows["repeat"] == "all"]
        spent = rows[(rows["metric"] == "epsilon_spent") & (rows["neighbors"] == "add_remove")]
        spent = spent[spent["valid"].astype(bool)]
        valid = dict(zip(spent["accounted_by"], spent["value"], strict=True))
        (proven,) = rows[rows["metric"] == "advantage_proven"]["value"]
        found[cell] = min(valid.values()), proven, set(valid)
    assert found[CELLS[2]] == found[CELLS[3]]
    assert found[CELLS[2]][0] <= 5
    assert found[CELLS[1]][2] == {"group_privacy"}
    assert found[CELLS[1]][0] > 4 * 5  # up to six records each
    assert found[CELLS[1]][1] > found[CELLS[2]][1]


def test_an_audits_canaries_are_persons_and_its_bounds_stay_below_the_claim(ran):
    folder, _ = ran
    cells = folder / "visits" / "softmax_regression"
    scores = pd.read_parquet(cells / CELLS[2] / "audit.parquet")
    assert set(scores["design"]) == {"steps", "losses"}
    rows = pd.read_parquet(cells / CELLS[2] / "metrics.parquet")
    bounds = rows[rows["metric"] == "epsilon_lower_bound"]
    assert len(bounds) >= 2
    assert (bounds["value"] <= 5).all()
    assert (pd.read_parquet(cells / "none" / "audit.parquet")["design"] == "losses").all()


def test_the_page_says_that_it_counts_people(ran):
    folder, _ = ran
    claims = json.loads((folder / "claims.json").read_text())["claims"]
    (words,) = [claim["words"] for claim in claims if claim["kind"] == "persons"]
    assert "each of 80 in or out of a training" in words
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "On visits, people are attacked, each with all records" in page
    assert "guesses for each person whether the model was trained on their records" in page


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"attacks": {"yeom_attribute": {}}}, "leave out attack yeom_attribute"),
        ({"attacks": {"label_noise": {}}}, "leave out attack label_noise"),
        ({"attacks": {"yeom": {"of_person": "most"}}}, "attacks.yeom.of_person"),
        (
            {"attacks": {"yeom": {}}, "source": {"person": None}},
            "lacks the key 'person', which says whose each record is; defense person",
        ),
        ({"stratified": True}, "is no stratified"),
        ({"defenses": AUDITED}, "and audits it; an audit"),
        ({"source": {"person": "nobody"}}, "nobody"),
    ],
)
def test_what_does_not_go_with_persons_is_refused_before_anything_runs(another, changes, complaint):
    workflow = another("refused")
    visits(workflow.folder / "visits.csv")
    spec = study(workflow.folder / "visits.csv")
    dataset = spec["datasets"]["visits"]
    for key, value in changes.items():
        where = dataset if key in dataset or key == "stratified" else spec
        where = dataset["source"] if key == "source" else where
        for name, one in (value if key == "source" else {key: value}).items():
            where[name] = one
            if one is None:
                del where[name]
    file = workflow.folder / "visits.yaml"
    file.write_text(yaml.safe_dump(spec, sort_keys=False))
    done = workflow.snakemake("visits", "--cores", "1", "--config", f"study_files=[{file}]", check=False)
    assert complaint in done
    assert not list((workflow.folder / "results").glob("visits/*/data.npz"))


@pytest.mark.study
def test_from_a_table_of_visits_to_a_model_that_hides_people(another):
    """The commands of the docs: a study, its run, and the release of one cell."""
    workflow = another("visits_released")
    visits(workflow.folder / "visits.csv")
    done = make(workflow.folder, "new-study", NAME="wine", DATA="visits.csv", LABEL="kind", PERSON="maker", SEED="1")
    assert "653 records of 178 persons" in done.stdout, done.stderr
    file = workflow.folder / "studies" / "wine.yaml"
    spec = yaml.safe_load(file.read_text())
    spec |= {"epsilon": [5], "repeats": 2, "models": {"softmax_regression": spec["models"]["softmax_regression"]}}
    spec["defenses"] = [own for own in spec["defenses"] if own["defense"] in ("none", "person")]
    spec["figures"] = {name: own for name, own in spec["figures"].items() if name == "fig_pareto"}
    spec["training"]["epochs"] = spec["training"]["evaluate_every"] = 4
    file.write_text(yaml.safe_dump(spec, sort_keys=False))
    workflow.snakemake("wine", "--cores", "2")
    done = make(workflow.folder, "release", STUDY="wine", CELL="softmax_regression/person-rdp-eps=5")
    assert not done.returncode, done.stderr
    folder = workflow.folder / "releases" / "wine-softmax_regression-person-rdp-eps=5"
    assert any("for one person added or removed, with all of their records" in line for line in verify(folder))
    assert "118 people" in (folder / "sheet.html").read_text()
