"""What is given away holds no seed, no member list, and no hash that would confirm a guess at them."""

import json
import os
import re

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from PIL import Image
from safetensors import safe_open
from shared_scan import attacked, most_by_chance

from dp_leakage.common.errors import UserError
from dp_leakage.data.augment import COPIES
from dp_leakage.engines import ENGINES
from dp_leakage.figures.files import RECORDS, write_figure
from dp_leakage.figures.origin import beware
from dp_leakage.metrics.people import ASKED, RIGHT
from dp_leakage.provenance.files import write_arrays, write_table, write_tensors
from dp_leakage.share import main, share
from dp_leakage.study.protocol import seed_of

SEED = 8412345976123
SECRET = "5eed5eed5eed5eed"
MADE = {
    "identity": SECRET,
    "settings": {"seed": SEED, "data": "abcdabcdabcdabcd", "model": "mlp", "mechanism": {"noise": "gaussian"}},
    "n_train": 40,
    "parameters": ["0.weight"],
}


METRICS = {
    "metric": ["membership_auc", "exposed"],
    "repeat": ["all", "all"],
    **{key: [0.5, 1.0] for key in ("value", "low", "high")},
    "attack": ["yeom", "own"],
    "record": [1002, 1003],  # no column of ours
}


def write_claims(folder, claims=(), reduced="", epsilon=20):
    """What the report says; it lists every cell there may be in these tests."""
    cells = [f"digits/mlp/{defense}" for defense in ("none", "other", "clustered")]
    share = {"cells": cells, "figures": ["fig", "pictures", "own"], "epsilon": epsilon}
    (folder / "claims.json").write_text(json.dumps({"claims": [*claims], "reduced": reduced, "share": share}))


def write_metrics(cell):
    """Those of a cell that spent an ε."""
    said = {"dataset": cell.parent.parent.name, "model": cell.parent.name, "defense": cell.name, "valid": True}
    numbers = [
        {"metric": "membership_auc", "value": 0.5, "low": 0.4, "high": 0.6, "accounted_by": "", "neighbors": ""},
        {"metric": "epsilon_spent", "value": 1.5, "accounted_by": "rdp", "neighbors": "add_remove"},
    ]
    rows = [{"repeat": "all", "low": np.nan, "high": np.nan} | own | said for own in numbers]
    write_table(cell / "metrics.parquet", {key: [row[key] for row in rows] for key in rows[0]}, MADE)


@pytest.fixture
def results(tmp_path):
    folder = tmp_path / "results"
    cell = folder / "digits" / "mlp" / "none"
    members = np.arange(1000, 1040)[None]
    write_tensors(cell / "target.safetensors", {"0.weight": np.ones((1, 3)), "train_indices": members}, MADE)
    write_metrics(cell)
    # Which of the test records the models have right.
    write_table(cell / "training.parquet", {"repeat": [0], "epoch": [1], RIGHT: [[1, 0]], ASKED: [[1, 1]]}, MADE)
    write_table(cell / "attack" / "yeom.parquet", {"record": members[0], "score": members[0] / 7}, MADE)
    write_arrays(folder / "digits" / "data.npz", {"target_members": members[0]}, MADE)
    (folder / "report.html").write_text(f"<html>{SEED}</html>\n")
    write_claims(folder)
    figure = Figure(figsize=(1, 1))
    figure.add_subplot().plot([0, 1])
    paths = [folder / "figures" / f"fig.{kind}" for kind in ("pdf", "png", "csv")]
    write_figure(figure, pd.DataFrame({"x": [1, 2]}), *paths, SECRET)
    return folder


def test_the_copy_has_weights_metrics_and_figures_and_nothing_of_records_or_seeds(results, tmp_path):
    shared = tmp_path / "shared"
    names = {str(path.relative_to(shared)) for path in share(results, shared).written}
    cell = "digits/mlp/none"
    assert names == {
        "README.md", f"{cell}/target.safetensors", f"{cell}/metrics.parquet",
        "figures/fig.pdf", "figures/fig.png", "figures/fig.csv",
    }  # fmt: skip
    assert names == {str(path.relative_to(shared)) for path in shared.rglob("*") if path.is_file()}
    for name in names:
        content = (shared / name).read_bytes()
        for secret in (str(SEED), SECRET, "abcdabcdabcdabcd", "train_indices", "identity=5"):
            assert secret.encode() not in content, (name, secret)
        if name.endswith(".parquet"):
            assert not {RIGHT, ASKED} & set(pd.read_parquet(shared / name))
    # Nor digests of files that hold a hash of them.
    original = (results / "figures" / "fig.png").read_bytes()
    said = dict(re.findall(rb"(csv|pdf|png)=([0-9a-f]{64})", original))
    assert said.keys() == {b"csv", b"pdf", b"png"}
    assert not [digest for digest in said.values() if digest in (shared / "figures" / "fig.png").read_bytes()]


def test_what_is_given_away_can_be_used(results, tmp_path):
    share(results, tmp_path / "shared")
    cell = tmp_path / "shared" / "digits" / "mlp" / "none"
    with safe_open(cell / "target.safetensors", framework="numpy") as file:
        assert list(file.keys()) == ["0.weight"]
        assert json.loads(file.metadata()["dp_leakage"]) == {"mechanism": {"noise": "gaussian"}, "model": "mlp"}
        np.testing.assert_array_equal(file.get_tensor("0.weight"), np.ones((1, 3)))
    assert pd.read_parquet(cell / "metrics.parquet")["value"].tolist() == [0.5, 1.5]
    with Image.open(tmp_path / "shared" / "figures" / "fig.png") as picture:
        picture.verify()


def test_no_results_and_a_full_folder_are_refused_in_a_sentence(results, tmp_path, capsys):
    assert main([str(tmp_path / "none"), "--to", str(tmp_path / "shared")]) == 1
    assert "error: " in capsys.readouterr().err
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("x")
    assert main([str(results), "--to", str(tmp_path / "full")]) == 1
    assert "is not empty" in capsys.readouterr().err
    assert main([str(results), "--to", str(tmp_path / "shared")]) == 0
    assert "6 files in" in capsys.readouterr().out


# ---------------------------------------------------------------------- what goes of a model
def target(results, tensors, made):
    """Another file of models under attack, in a cell of its own."""
    path = results / "digits" / "mlp" / "other" / "target.safetensors"
    write_tensors(path, tensors, made)
    return path


ANSWERS = {
    "trained_on": np.arange(40)[None] < 20,
    "margin": np.zeros((1, 1, 40)),
    "log_probability": np.zeros((1, 40, 3)),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("undefended", [True, False])
def test_of_a_model_that_is_known_by_its_answers_nothing_goes(results, tmp_path, engine, undefended):
    settings = {"engine": engine, "architecture": {"name": "/home/ann/said.csv"}, "mechanism": None, "seed": SEED}
    path = target(results, ANSWERS, {"identity": SECRET, "settings": settings})
    share(results, tmp_path / "shared", undefended)
    assert not (tmp_path / "shared" / path.relative_to(results)).exists()


def test_parameters_without_noise_go_only_if_asked_for(results, tmp_path):
    settings = {"engine": "ensemble", "mechanism": None}
    path = target(results, {"0.weight": np.ones((1, 3))}, {"settings": settings, "parameters": ["0.weight"]})
    share(results, tmp_path / "a")
    share(results, tmp_path / "b", undefended=True)
    place = path.relative_to(results)
    assert ((tmp_path / "a" / place).exists(), (tmp_path / "b" / place).exists()) == (False, True)


@pytest.mark.parametrize("finite", [True, False])
def test_parameters_whose_epsilon_is_infinite_go_only_if_asked_for(results, tmp_path, finite):
    """Noise for single records, of people with many: models went that promise them nothing."""
    path = target(results, {"0.weight": np.ones((1, 3))}, MADE)
    spent = {key: [100.0, 8.0 if finite else np.inf] for key in ("value", "low", "high")}
    said = {"accounted_by": ["rdp", "group_privacy"], "neighbors": ["add_remove"] * 2, "valid": [False, True]}
    metrics = {"metric": ["epsilon_spent"] * 2, "repeat": ["all"] * 2, **spent, **said}
    write_table(path.with_name("metrics.parquet"), metrics, MADE)
    share(results, tmp_path / "a")
    share(results, tmp_path / "b", undefended=True)
    place = path.relative_to(results)
    assert ((tmp_path / "a" / place).exists(), (tmp_path / "b" / place).exists()) == (finite, True)


def test_models_whose_claim_is_refuted_stay_and_the_command_says_which_go(results, tmp_path, capsys):
    none = {"settings": {"engine": "ensemble", "mechanism": None}, "parameters": ["0.weight"]}
    target(results, {"0.weight": np.ones((1, 3))}, none)
    claim = {"kind": "refuted", "dataset": "digits", "cells": [["mlp", "none"]]}
    assert main([str(results), "--to", str(tmp_path / "a")]) == 0
    said = capsys.readouterr().out
    assert "Parameters of models: digits/mlp/none\n" in said
    assert "Kept back: digits/mlp/other (no differential privacy)\n" in said
    write_claims(results, [claim])
    assert main([str(results), "--to", str(tmp_path / "b")]) == 0
    said = capsys.readouterr().out
    assert "Parameters of models: none\n" in said
    assert "digits/mlp/none (an attack refutes its ε)" in said
    assert not (tmp_path / "b" / "digits" / "mlp" / "none" / "target.safetensors").exists()
    (results / "claims.json").write_text("[]")
    assert main([str(results), "--to", str(tmp_path / "c")]) == 1
    assert "claims.json cannot be read; run `dp-leakage run STUDY` again" in capsys.readouterr().err


def test_the_readme_says_which_models_are_there_what_they_spent_and_which_are_not(results, tmp_path):
    none = {"settings": {"engine": "ensemble", "mechanism": None}, "parameters": ["0.weight"]}
    target(results, {"0.weight": np.ones((1, 3))}, none)
    metrics = results / "digits" / "mlp" / "none" / "metrics.parquet"
    spent = {"metric": "epsilon_spent", "repeat": "all", "low": np.nan, "high": np.nan, "dataset": "digits"}
    rows = [
        {**spent, "model": "mlp", "defense": "none", "accounted_by": by, "neighbors": neighbors, "value": value}
        for by, neighbors, value in [
            ("rdp", "add_remove", 1.5),
            ("pld", "add_remove", 1.2301),
            ("pld", "replace_one", 3),
        ]
    ]
    write_table(metrics, {key: [row[key] for row in rows] for key in rows[0]}, MADE)
    share(results, tmp_path / "shared")
    said = (tmp_path / "shared" / "README.md").read_text()
    assert "| digits/mlp/none | 1.231 (add_remove); 3.000 (replace_one) |" in said
    assert "- digits/mlp/other (no differential privacy)" in said
    assert str(SEED) not in said
    assert "No ε covers" not in said
    metrics.unlink()
    assert "digits/mlp/none (no known ε)" in share(results, tmp_path / "unmeasured").kept_back
    share(results, tmp_path / "asked_for", undefended=True)
    assert "| digits/mlp/none | not known |" in (tmp_path / "asked_for" / "README.md").read_text()


def test_the_readme_of_a_reduced_run_says_that_it_is_one_and_what_it_saw(results, tmp_path):
    words = beware("smoke", {"cifar100": "digits"})
    assert "digits" in words
    for folder, said in (("smoke", words), ("whole", "")):
        write_claims(results, reduced=said)
        share(results, tmp_path / folder)
        assert (words in (tmp_path / folder / "README.md").read_text()) == bool(said)


def test_models_of_which_no_epsilon_is_valid_stay(results, tmp_path):
    """Under batches that no accountant of the noise covers, only a number that does not hold is there."""
    path = results / "digits" / "mlp" / "none" / "metrics.parquet"
    frame = pd.read_parquet(path).assign(valid=False)
    write_table(path, frame.to_dict("list"), MADE)
    assert share(results, tmp_path / "shared").kept_back == ["digits/mlp/none (no known ε)"]


def test_the_copy_says_what_no_epsilon_covers(results, tmp_path):
    """The report does so, and does not go along."""
    cell = results / "digits" / "mlp" / "clustered"
    mechanism = {"noise": "gaussian", "unit": "subclass", "settings": {"k_sub": 5, "partition": "kmeans"}}
    made = MADE | {"settings": MADE["settings"] | {"mechanism": mechanism}}
    write_tensors(cell / "target.safetensors", {"0.weight": np.ones((1, 3))}, made)
    write_metrics(cell)
    notes = [
        "age: 3 missing values were replaced by 41, the median of all records, which lies outside the privacy budget."
    ]
    data = results / "digits" / "data.npz"
    roles = {"target_members": np.arange(20), "target_nonmembers": np.arange(10)}
    write_arrays(data, roles, MADE | {"settings": {"projection": {"method": "pca"}}, "notes": [*notes, f"… {COPIES}."]})
    share(results, tmp_path / "shared")
    said = (tmp_path / "shared" / "README.md").read_text()
    end = said[said.index("No ε covers") :].splitlines()
    assert end[2:6] == [
        "- digits: the PCA, fitted on 30 records",
        "- digits: the values that fill gaps, computed from all records",
        f"- digits: {COPIES}",
        "- digits/mlp/clustered: the k-means subclasses, fitted on each model's training records",
    ]
    assert "41" not in said
    data.unlink()
    with pytest.raises(UserError, match=r"data\.npz is missing; run `dp-leakage run STUDY` again"):
        share(results, tmp_path / "unknown")
    assert not (tmp_path / "unknown").exists()


def test_of_the_settings_go_neither_seeds_nor_paths(results, tmp_path):
    architecture = {
        "name": "my_nets:Net", "hidden": [3, 4], "random_state": 7, "nested": {"model_seed": 8, "width": 5},
        "weights": "/home/ann/w.pt", "words": "written by ann", "relative": "ann/w.pt", "list": [1, "~/x"],
    }  # fmt: skip
    settings = {"engine": "ensemble", "mechanism": {"noise": "gaussian"}, "architecture": architecture}
    path = target(results, {"w": np.ones((1, 3))}, {"settings": settings, "parameters": ["w", "train_indices"]})
    write_metrics(path.parent)
    share(results, tmp_path / "shared")
    with safe_open(tmp_path / "shared" / path.relative_to(results), framework="numpy") as file:
        told = json.loads(file.metadata()["dp_leakage"])["architecture"]
    assert told == {"name": "my_nets:Net", "hidden": [3, 4], "nested": {"width": 5}, "list": [1, None]}


def test_the_attackers_own_models_stay(results, tmp_path):
    made = {"settings": {"engine": "ensemble", "mechanism": {"noise": "gaussian"}}, "parameters": ["0.weight"]}
    path = results / "digits" / "mlp" / "shadow" / "models.safetensors"
    write_tensors(path, {"0.weight": np.ones((1, 3))}, made)
    share(results, tmp_path / "shared", undefended=True)
    assert not (tmp_path / "shared" / path.relative_to(results)).exists()


@pytest.mark.parametrize("source", ["digits", {"path": "mine.csv"}])
@pytest.mark.parametrize(("seed", "guessed"), [(2023, True), (SEED, False)])
def test_a_seed_that_is_found_by_trying_is_warned_of(results, tmp_path, capsys, monkeypatch, source, seed, guessed):
    """Without it in the copy the noise could still be recomputed: study files have small seeds, and many are public."""
    monkeypatch.setattr("dp_leakage.share.GUESSES", 3000)
    names = {"dataset": "digits", "model": "mlp", "defense": "gaussian-rdp-eps=1", "role": "target"}
    own = seed_of({"seed": seed, "datasets": {"digits": {"source": source}}}, *names.values())
    settings = {**MADE["settings"], **names, "seed": own}
    model = results / "digits" / "mlp" / "none" / "target.safetensors"
    write_tensors(model, {"0.weight": np.ones((1, 3))}, {**MADE, "settings": settings})
    assert main([str(results), "--to", str(tmp_path / "shared")]) == 0
    said = capsys.readouterr().err
    found = "key 'seed' of this study is 2023, which anybody can guess"
    searched = "the noise of these models is drawn from seeds of 32 bits"
    assert said.startswith(f"warning: {found if guessed else searched}")


def test_what_is_no_longer_in_the_study_stays(results, tmp_path):
    """Cells and figures that were taken out of it leave their files in its folder."""
    removed = results / "digits" / "mlp" / "removed"
    write_tensors(removed / "target.safetensors", {"0.weight": np.ones((1, 3))}, MADE)
    write_metrics(removed)
    paths = [results / "figures" / f"removed.{kind}" for kind in ("pdf", "png", "csv")]
    write_figure(Figure(figsize=(1, 1)), pd.DataFrame({"x": [1, 2]}), *paths, SECRET)
    written = share(results, tmp_path / "shared", undefended=True).written
    assert len(written) == 6
    assert not [path for path in written if "removed" in str(path)]


def test_an_epsilon_above_the_ceiling_needs_a_yes(results, tmp_path):
    """It counts for the neighbors between which the study's attacks choose, as the proven limits say."""
    cell = "digits/mlp/none"
    said = {"repeat": "all", "low": np.nan, "high": np.nan, "dataset": "digits", "model": "mlp", "defense": "none"}
    numbers = [("epsilon_spent", 19.0, "zero_out"), ("epsilon_spent", 20.5, "add_remove")]
    rows = [
        said | {"metric": metric, "value": value, "neighbors": neighbors, "accounted_by": "rdp"}
        for metric, value, neighbors in [*numbers, ("advantage_proven", 0.99, "add_remove")]
    ]
    write_table(results / cell / "metrics.parquet", {key: [row[key] for row in rows] for key in rows[0]}, MADE)
    (kept,) = share(results, tmp_path / "shared").kept_back
    assert kept == f"{cell} (ε = 20.500 is above 20, the study's share.epsilon)"
    assert share(results, tmp_path / "asked_for", undefended=True).kept_back == []
    write_claims(results, epsilon=21)
    assert share(results, tmp_path / "higher").kept_back == []


def test_figures_of_records_stay(results, tmp_path):
    figure = Figure(figsize=(1, 1))
    for name, drawn, shows in (("pictures", {"ssim": [1.0]}, RECORDS), ("own", {"record": [5], "score": [1.0]}, None)):
        paths = [results / "figures" / f"{name}.{kind}" for kind in ("pdf", "png", "csv")]
        write_figure(figure, pd.DataFrame(drawn), *paths, SECRET, *([shows] if shows else []))
    (results / "figures" / "loose.csv").write_text("record,member\n1,1\n")
    share(results, tmp_path / "shared")
    assert {path.stem for path in (tmp_path / "shared" / "figures").iterdir()} == {"fig"}


def test_a_metric_of_one_record_stays(results, tmp_path):
    share(results, tmp_path / "shared")
    kept = pd.read_parquet(tmp_path / "shared" / "digits" / "mlp" / "none" / "metrics.parquet")
    assert kept["metric"].tolist() == ["membership_auc", "epsilon_spent"]


# ---------------------------------------------------------------------- what is refused
def png(content):
    return lambda results: (results / "figures" / "fig.png").write_bytes(content)


def metadata(made):
    return lambda results: target(results, {"0.weight": np.ones((1, 3))}, made)


NONE = "digits/mlp/none"
REFUSED = {
    "a link to a file": lambda results: (results / "figures" / "p.csv").symlink_to("/etc/passwd"),
    "a link to a folder": lambda results: (results / "digits" / "more").symlink_to("/etc"),
    "a link to nothing": lambda results: (results / "digits" / "more").symlink_to("/nothing"),
    "a pipe": lambda results: os.mkfifo(results / "digits" / "metrics.parquet"),
    "a picture of nothing": png(b""),
    "garbage": png(b"\x89PNG\r\n\x1a\n" + b"\xff" * 40),
    "a short picture": png(b"\x89PNG\r\n\x1a\n" + b"\x00" * 26),
    "a figure without its numbers": lambda results: (results / "figures" / "fig.csv").unlink(),
    "a figure with other numbers": lambda results: (results / "figures" / "fig.csv").write_text("x\n9\n"),
    "made by a list": metadata([1]),
    "made by a text": metadata("x"),
    "settings that are a list": metadata({"settings": [1]}),
    "a mechanism that is a list": metadata({"settings": {"mechanism": [1]}, "parameters": ["0.weight"]}),
    "parameters that are a text": metadata({"settings": {"mechanism": None}, "parameters": "0.weight"}),
    "metrics of nothing": lambda results: write_table(results / NONE / "metrics.parquet", {"x": [1]}, MADE),
    "metrics of bytes": lambda results: (results / NONE / "metrics.parquet").write_bytes(b"PAR1" * 9),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_shared_ends_in_one_sentence_and_writes_nothing(results, tmp_path, what):
    REFUSED[what](results)
    with pytest.raises(UserError) as caught:
        share(results, tmp_path / "shared")
    assert len(str(caught.value)) > 40
    assert not (tmp_path / "shared").exists()


# ---------------------------------------------------------------------- the scan that tests/test_shared_copy.py runs
def test_the_scan_finds_a_planted_list_of_members_and_nothing_by_chance(tmp_path):
    rng = np.random.default_rng(5)
    member = rng.random(300) < 0.5
    (tmp_path / "numbers.csv").write_text(pd.DataFrame({"x": rng.normal(size=300)}).to_csv())
    write_tensors(tmp_path / "w.safetensors", {"0.weight": rng.normal(size=(2, 300, 20))}, {})
    found = attacked(tmp_path, member)
    assert len(found) > 40
    assert found[0][0] < most_by_chance(member, len(found), 1e-4)
    planted = {
        "rows": {"rows": np.flatnonzero(member)[None]},
        "flags": {"flags": np.stack([member, member]).astype(np.int64)},
        "answers": {"answers": (rng.normal(size=(2, 300)) + member)[..., None]},
    }
    for name, tensors in planted.items():
        folder = tmp_path / name
        write_tensors(folder / "x.safetensors", tensors, {})
        assert attacked(folder, member)[0][0] > most_by_chance(member, 1000, 1e-4)
    write_tensors(tmp_path / "told" / "x.safetensors", {"y": np.ones(3)}, {"list": member.astype(int).tolist()})
    assert attacked(tmp_path / "told", member)[0][0] == 1
