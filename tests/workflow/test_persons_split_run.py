"""A study of persons with fixed members, for real: references have whole persons, and nobody is on two sides."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from safetensors.numpy import load_file
from sklearn.datasets import load_wine

pytestmark = pytest.mark.slow

ROLES = {"target_members": 60, "target_nonmembers": 60, "reference_pool": 40}
COUNT = 6
CELLS = ("none", "gaussian-rdp-eps=5", "person-rdp-eps=5")


def visits(file: Path) -> pd.DataFrame:
    """Wines, as measured on one to six visits by noisy hands; the maker is the person."""
    x, y = load_wine(return_X_y=True)
    rng = np.random.default_rng(0)
    maker = np.repeat(np.arange(len(y)), rng.integers(1, 7, len(y)))
    values = x[maker] + 0.1 * x.std(axis=0) * rng.normal(size=(len(maker), x.shape[1]))
    frame = pd.DataFrame(values, columns=[f"m{place}" for place in range(x.shape[1])])
    frame = frame.assign(maker=[f"{one:03d}" for one in maker], kind=y[maker])
    frame.to_csv(file, index=False)
    return frame


def study(file: Path) -> dict:
    return {
        "study": "visits",
        "title": "Wines on several visits",
        "seed": 1,
        "repeats": 2,
        "delta": 1e-4,
        "epsilon": [5],
        "datasets": {
            "visits": {
                "source": {"path": str(file), "label": "kind", "person": "maker"},
                "roles": ROLES,
                "projection": {"scale": "standard", "fit_on": ["reference_pool"]},
            }
        },
        "models": {"softmax_regression": {"architecture": {"name": "softmax_regression"}}},
        "training": {"optimizer": "adam", "learning_rate": 0.05, "epochs": 4, "batch_size": 20},
        "defenses": [
            {"defense": "none"},
            {"defense": "gaussian", "accountant": "rdp", "sampler": "poisson"},
            {"defense": "person", "accountant": "rdp"},
        ],
        "reference": {
            "count": COUNT, "size": 60, "pool": ["target_members", "target_nonmembers"], "defense": "same",
        },
        "attacks": {"yeom": {}, "lira_online": {"of_person": "learned"}, "rmia_online": {}},
        "figures": {
            "fig_pareto": {"kind": "pareto", "title": "All", "parts": ["training", "yeom", "lira_online"]},
            "table_persons": {"kind": "persons_table", "title": "People and records", "parts": ["lira_online"]},
        },
    }  # fmt: skip


@pytest.fixture(scope="module")
def ran(another):
    workflow = another("split")
    frame = visits(workflow.folder / "visits.csv")
    file = workflow.folder / "visits.yaml"
    file.write_text(yaml.safe_dump(study(workflow.folder / "visits.csv"), sort_keys=False))
    workflow.snakemake("visits", "--cores", "2", "--config", f"study_files=[{file}]")
    return workflow.folder / "results" / "visits", frame["maker"].to_numpy()


def test_roles_are_whole_persons(ran):
    folder, maker = ran
    data = np.load(folder / "visits" / "data.npz")
    sides = {role: set(maker[data[role]]) for role in ROLES}
    assert {role: len(side) for role, side in sides.items()} == ROLES
    assert len(set.union(*sides.values())) == sum(ROLES.values())
    for role, side in sides.items():
        assert set(data[role]) == set(np.flatnonzero(np.isin(maker, [*side])))


def test_references_have_whole_persons_of_whom_each_is_in_half_of_them(ran):
    folder, maker = ran
    data = np.load(folder / "visits" / "data.npz")
    asked = np.concatenate([data["target_members"], data["target_nonmembers"]])
    found = sorted(folder.glob("visits/softmax_regression/**/reference/models.safetensors"))
    assert len(found) == len(CELLS)
    for file in found:
        trained = load_file(file)["train_indices"]
        assert len(trained) == COUNT
        inside = [set(maker[rows[rows >= 0]]) for rows in trained]
        for rows, people in zip(trained, inside, strict=True):
            assert len(people) == 60
            assert set(rows[rows >= 0]) == set(asked[np.isin(maker[asked], [*people])])
        counts = pd.Series([person for people in inside for person in people]).value_counts()
        assert (counts == COUNT // 2).all()
        assert len(counts) == 120


def test_scores_are_persons_and_members_are_fixed(ran):
    folder, maker = ran
    members = set(maker[np.load(folder / "visits" / "data.npz")["target_members"]])
    for cell in CELLS:
        for attack in ("yeom", "lira_online", "rmia_online"):
            scores = pd.read_parquet(folder / "visits" / "softmax_regression" / cell / "attack" / f"{attack}.parquet")
            assert len(scores) == 2 * 120
            for _, run in scores.groupby("repeat"):
                assert {f"{person:03d}" for person in run["record"][run["member"]]} == members


def test_the_table_and_the_page_speak_of_persons(ran):
    folder, _ = ran
    table = pd.read_csv(folder / "figures" / "table_persons.csv")
    assert set(table["defense"]) == set(CELLS)
    told = table[~table["metric"].isin(["reached_tpr", "record_tpr"])]  # 60 others are too few for 1 % of them
    assert told[["measured", "low", "high"]].notna().all(axis=None)
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "people are attacked, each with all records: the same 60 are in each training" in page
    assert "a coin puts" not in page
