"""A study file from a user's data: what it says, what it asks for, what is refused."""

import argparse
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

from dp_leakage.common.config import merged
from dp_leakage.common.identity import canonical
from dp_leakage.common.yaml_files import read_yaml
from dp_leakage.data.splits import split
from dp_leakage.new_study import columns_of, main
from dp_leakage.study.file import load_studies
from dp_leakage.study.steps import prepare_settings
from dp_leakage.study.steps.parts import figure_cells

REPO = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


SEED = ("--seed", "1")


def wine() -> pd.DataFrame:
    return load_wine(as_frame=True).frame


def new_study(data: str, *more: str, name: str = "mine", status: int = 0) -> Path:
    assert main([name, "--data", data, *SEED, *more]) == status
    return Path("studies") / f"{name}.yaml"


def loaded(file: Path, scale: str = "paper"):
    config = merged(read_yaml(REPO / "config.yaml"), {"scale": scale})
    (study,) = load_studies(config, [file]).values()
    return study


def test_people_with_sensitive_values_get_a_study_that_passes_every_check_at_both_scales(capsys):
    """Groups are of single records, so they are left out where persons are protected."""
    frame = wine()
    frame.assign(patient=np.arange(len(frame)) // 2).to_csv("wine.csv", index=False)
    file = new_study("wine.csv", "--label", "target", "--sensitive", "hue", "--person", "patient")
    assert "No attack guesses hue: guesses about one person's records are not independent." in capsys.readouterr().out
    for scale in ("paper", "smoke"):
        assert "groups" not in loaded(file, scale).spec


def clinic(ill_people: int) -> pd.DataFrame:
    """100 people with eight records each, of whom the first are ill."""
    rng, patient = np.random.default_rng(0), np.arange(800) // 8
    kind = np.where(patient < ill_people, "ill", "well")
    return pd.DataFrame({"a": rng.normal(size=800), "b": rng.normal(size=800), "patient": patient, "kind": kind})


@pytest.mark.parametrize("seed", ["1", "2", "3"])
def test_a_class_of_one_person_is_refused_since_a_part_of_the_split_lacks_it(capsys, seed):
    clinic(1).to_csv("clinic.csv", index=False)
    arguments = ("--label", "kind", "--person", "patient", "--seed", seed)
    assert not new_study("clinic.csv", *arguments, status=1).exists()
    error = capsys.readouterr().err
    assert re.match(
        r"error: clinic.csv: all \d+ records (in the pool|among the non-members) are of the class well; ", error
    )
    assert error.endswith("of others there are only ill (8 records of 1 person), so add more people\n")


def test_the_pattern_that_is_proposed_for_pictures_of_persons_makes_a_study_of_them(folder, capsys):
    rng = np.random.default_rng(0)
    for label in ("ill", "well"):
        (folder / "scans" / label).mkdir(parents=True)
        for k in range(400):
            pixels = rng.integers(0, 256, (6, 6), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / "scans" / label / f"{label}{k // 5:03}_{k % 5}.png")
    new_study("scans")
    said = re.search(r"160 names in 800 records.*\(--person '(.+?)'\)", capsys.readouterr().out)
    file = new_study("scans", "--person", said[1], name="people")
    assert "of 160 persons" in capsys.readouterr().out
    assert loaded(file).spec["datasets"]["people"]["source"]["person"] == said[1]


def test_people_of_a_class_are_counted(capsys):
    clinic(9).to_csv("clinic.csv", index=False)
    new_study("clinic.csv", "--label", "kind", "--person", "patient")
    found = re.search(
        r"1 class with fewer than 10 people in the pool: ill \((\d+) records of (\d) pe", capsys.readouterr().out
    )
    assert int(found[1]) == 8 * int(found[2])


def test_a_study_has_a_seed_of_its_own_unless_one_is_given(capsys):
    """Two drawn seeds agree with a chance of 1e-9."""
    wine().to_csv("wine.csv", index=False)
    seeds = []
    for name in ("one", "two"):
        assert main([name, "--data", "wine.csv", "--label", "target"]) == 0
        seeds.append(loaded(Path("studies") / f"{name}.yaml").spec["seed"])
    assert seeds[0] != seeds[1]
    file = new_study("wine.csv", "--label", "target", "--seed", str(seeds[0]), name="again")
    assert loaded(file).spec["seed"] == seeds[0]
    for wrong in ("-1", "x", "1234567890"):
        new_study("wine.csv", "--label", "target", "--seed", wrong, name="wrong", status=1)
        assert (
            f"seed: '{wrong}' is not a seed; expected a whole number of at most nine digits" in capsys.readouterr().err
        )


def test_a_table_gets_a_study_that_passes_every_check_at_both_scales(capsys):
    wine().to_csv("wine.csv", index=False)
    file = new_study("wine.csv", "--label", "target", "--sensitive", "alcohol, hue")
    study = loaded(file)
    dataset = study.spec["datasets"]["mine"]
    assert dataset["source"] == {"path": "wine.csv", "label": "target", "sensitive": ["alcohol", "hue"]}
    assert dataset["roles"] == {"pool": 118, "target_nonmembers": 59}
    assert study.spec["design"] == "coins"
    assert "tune" not in study.spec  # too few records to set some apart
    assert study.spec["attacks"]["yeom_attribute"]["features"] == 2
    assert len(study.cells) == 2 * (1 + 1 + 8) + 1
    assert len(loaded(file, "smoke").cells) == 2 * (1 + 1 + 2) + 1
    said = capsys.readouterr().out
    assert "178 records, 13 features, 3 classes" in said
    assert "Learning rates are not tuned: for that, 200 records would have to be set apart." in said
    assert "Now run: dp-leakage run mine" in said
    assert "Only 118 records are in the pool" in said
    assert "Only 118 records are in the pool" in file.read_text()


def test_the_budgets_of_the_study_that_is_written_can_be_changed_as_the_tutorial_says(capsys):
    wine().to_csv("wine.csv", index=False)
    file = new_study("wine.csv", "--label", "target")
    (edit,) = re.findall(r"`(epsilon: \[.*?\])`", (REPO / "docs/tutorials/own-table.md").read_text())
    text = re.sub(r"epsilon:(\n *- [0-9.]+)+|epsilon: \[.*?\]", edit, file.read_text(), count=1)
    assert edit in text
    file.write_text(text)
    study = loaded(file)
    assert study.spec["epsilon"] == [0.5, 1, 2]
    drawn = figure_cells(study, "fig_vulnerability")
    assert {cell.columns["epsilon"] for cell in drawn} == {None, 0.5, 1, 2}
    assert len(loaded(file, "smoke").cells) == 2 * (1 + 1 + 2) + 1


def test_images_get_a_convolutional_network_and_no_attribute_inference():
    bundle = load_digits()
    np.savez("digits.npz", x=(bundle.images * 15).astype(np.uint8), y=bundle.target)
    study = loaded(new_study("digits.npz"))
    assert set(study.spec["models"]) == {"softmax_regression", "cnn_small"}
    assert "yeom_attribute" not in study.spec["attacks"]
    assert sum(study.spec["datasets"]["mine"]["roles"].values()) == 898 + 2 * 449
    assert study.spec["tune"]["learning_rate"] == [0.001, 0.003, 0.01, 0.03]
    assert study.cell("mine", "cnn_small", "gaussian-rdp-eps=1").rates
    assert len(loaded(Path("studies/mine.yaml"), "smoke").spec["tune"]["learning_rate"]) == 2


def test_what_is_said_holds_for_the_split_that_the_workflow_will_draw(capsys):
    frame = load_breast_cancer(as_frame=True).frame.assign(sex=np.arange(569) % 2)
    pd.concat([frame, frame.iloc[:200]]).to_parquet("cancer.parquet")
    study = loaded(new_study("cancer.parquet", "--label", "target", "--sensitive", "sex"))
    settings = json.loads(canonical(prepare_settings(study, "mine")))  # as step `prepare` gets them
    y = np.concatenate([frame["target"], frame["target"].iloc[:200]])
    rows = split(y, settings["roles"], seed=settings["seed"], stratified=settings["stratified"])
    records = np.concatenate([np.arange(len(frame)), np.arange(200)])
    shared = np.isin(records[rows["pool"]], records[rows["target_nonmembers"]]).sum()
    assert shared > 0
    assert f"{shared} records in the pool also occur among the non-members" in capsys.readouterr().out


def test_copies_share_one_coin_in_a_new_study_and_only_where_there_are_any(capsys):
    frame = load_breast_cancer(as_frame=True).frame
    pd.concat([frame, frame.iloc[:20]]).to_parquet("copied.parquet")
    frame.to_parquet("distinct.parquet")
    (dataset,) = loaded(new_study("copied.parquet", "--label", "target")).spec["datasets"].values()
    assert dataset["source"]["copies"] == "together"
    assert sum(dataset["roles"].values()) <= 569
    assert "40 of 589 records are copies of others, or nearly so. Their 20 groups count" in capsys.readouterr().out
    Path("studies/mine.yaml").unlink()
    (dataset,) = loaded(new_study("distinct.parquet", "--label", "target")).spec["datasets"].values()
    assert "copies" not in dataset["source"]
    assert "copies" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"constant": 1.0}, "1 feature with one value in all records in the pool: constant"),
        ({"target": [0] * 170 + [1] * 8}, "class with fewer than 10 records in the pool: 1 \\(5\\)"),
    ],
)
def test_what_makes_data_hard_to_judge_by_is_said_before_anything_is_trained(capsys, change, sentence):
    wine().assign(**change).to_csv("wine.csv", index=False)
    new_study("wine.csv", "--label", "target")
    assert re.search(sentence, capsys.readouterr().out)


@pytest.mark.parametrize(
    ("change", "arguments", "sentence"),
    [
        (lambda f: f.iloc[:60], ["--label", "target"], "only 60 records of"),
        (lambda f: f[f["target"] == 0], ["--label", "target"], "only one class (0)"),
        (lambda f: f.assign(target=f.index == 0), ["--label", "target"], "are of the class False; expected two"),
        (lambda f: f, ["--label", "tarjet"], "did you mean 'target'"),
        (lambda f: f, [], "label is missing"),
        (lambda f: f.assign(hue=f["hue"].mask(f.index == 3)), ["--label", "target"], "column 'hue' lacks 1 of 178"),
        (lambda f: f, ["--label", "target", "--sensitive", "color"], "sensitive: "),
        (lambda f: f, ["--label", "target", "--missing", "guess"], "it must be refuse or impute"),
    ],
)
def test_data_that_will_not_do_are_refused_in_a_sentence_and_nothing_is_written(capsys, change, arguments, sentence):
    change(wine()).to_csv("wine.csv", index=False)
    file = new_study("wine.csv", *arguments, status=1)
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1
    assert not file.exists()


@pytest.mark.parametrize(
    ("name", "data", "sentence"),
    [
        ("My Study", "wine.csv", "is not a valid name; expected"),
        ("taken", "wine.csv", "exists already"),
        ("reconstruct", "wine.csv", "is reserved here"),
        ("mine", "nowhere.csv", "does not exist"),
        ("mine", "", "data is missing"),
        ("", "wine.csv", "name is missing"),
    ],
)
def test_a_wrong_name_or_path_is_refused(capsys, name, data, sentence):
    wine().to_csv("wine.csv", index=False)
    Path("studies").mkdir()
    Path("studies/taken.yaml").write_text("study: taken\n")
    new_study(data, "--label", "target", name=name, status=1)
    assert sentence in capsys.readouterr().err


def test_a_table_without_the_column_of_classes_is_refused_by_the_option_to_give(capsys):
    wine().to_csv("wine.csv", index=False)
    new_study("wine.csv", status=1)
    assert "label is missing; name the column of wine.csv that holds the class" in capsys.readouterr().err


def test_missing_values_can_be_filled_and_categories_are_told_from_numbers():
    frame = wine()
    frame["color"] = np.where(frame["hue"] > 1, "red", "white")
    frame.loc[3, "hue"] = np.nan
    frame.to_csv("wine.tsv", index=False, sep="\t")
    study = loaded(new_study("wine.tsv", "--label", "target", "--missing", "impute", "--sensitive", "color"))
    assert study.spec["datasets"]["mine"]["source"]["missing"] == "impute"
    assert study.spec["attacks"]["yeom_attribute"]["features"] == 1


def test_binary_columns_stay_as_they_are_and_others_are_standardized(capsys):
    binary = (wine().drop(columns="target") > wine().median()[:-1]).astype(int).assign(target=wine()["target"])
    binary.to_csv("binary.csv", index=False)
    wine().to_csv("wine.csv", index=False)
    plain = loaded(new_study("binary.csv", "--label", "target", name="binary"))
    said = capsys.readouterr().out
    assert "dp-leakage run binary --scale smoke" in said
    assert "scaling" not in said
    scaled = loaded(new_study("wine.csv", "--label", "target", name="wine"))
    assert "accuracy is measured on them, and scaling is fitted on them" in capsys.readouterr().out
    assert plain.spec["datasets"]["binary"].get("projection") is None
    assert scaled.spec["datasets"]["wine"]["projection"]["scale"] == "standard"
    assert plain.spec["models"]["mlp"]["architecture"]["hidden"] == [256]


def test_only_what_misleads_is_to_beware_of(capsys):
    wine().assign(constant=1.0).to_csv("wine.csv", index=False)
    new_study("wine.csv", "--label", "target")
    said = capsys.readouterr().out.splitlines()
    assert any(line.startswith("1 feature with one value in all records in the pool") for line in said)
    assert any(line.startswith("Beware: ") and "Only " in line for line in said)


def test_a_column_whose_name_has_a_comma_stands_in_quotes():
    given = argparse.Namespace(drop='"icd,code", note')
    assert columns_of(given, "drop", Path("d.csv")) == {"drop": ["icd,code", "note"]}
    odd = ["'\"; x", 'a\nb "c" d', '"open', 'a"b', '"a"b']
    assert columns_of(argparse.Namespace(drop=",".join(odd)), "drop", Path("d.csv")) == {"drop": odd}


def test_a_key_and_what_to_skip_go_into_the_study():
    wine().assign(nr=[f"w{i}" for i in range(178)]).to_csv("wine.csv", index=False)
    study = loaded(new_study("wine.csv", "--label", "target", "--key", "nr"))
    assert study.spec["datasets"]["mine"]["source"]["key"] == "nr"
    from PIL import Image

    for label in ("a", "b", "thumbs"):
        Path("images", label).mkdir(parents=True)
        for i in range(90):
            pixels = np.random.default_rng(i).integers(0, 256, (8, 8), dtype=np.uint8)
            Image.fromarray(pixels).save(Path("images", label, f"{i}.png"))
    Path("images/a/0.png").write_bytes(b"")
    file = new_study("images", "--leave-out", "thumbs", "--skip-damaged", name="pictures")
    source = loaded(file).spec["datasets"]["pictures"]["source"]
    assert (source["leave_out"], source["skip_damaged"]) == (["thumbs"], True)


def table(file: str, n: int, rare: float = 0.5) -> None:
    rng = np.random.default_rng(0)
    values = pd.DataFrame(rng.normal(size=(n, 4)).round(3), columns=list("abcd"))
    values.assign(y=np.where(np.arange(n) < rare * n, "yes", "no")).to_csv(file, index=False)


@pytest.mark.parametrize(
    ("n", "rare", "said"),
    [
        (
            160,
            0.5,
            r"a probability of (less than 5|about \d) %\. More repeats do not make it 80 %; about [\d,]+ records do\.",
        ),
        (800, 0.5, r"a probability of about \d\d %\. More repeats do not make it 80 %; about [\d,]+ records do\."),
        (4000, 0.5, r"a probability of (about 9\d|more than 99) %\.$"),
        (4000, 0.02, r"More repeats do not make it 80 %; about [\d,]+ records do\."),
    ],
)
def test_a_new_study_says_before_it_runs_how_likely_it_decides_and_keeps_that_as_a_comment(capsys, n, rare, said):
    table("t.csv", n, rare)
    file = new_study("t.csv", "--label", "y")
    begins = "With 16 repeats, a setting that loses 5 % and has an advantage of 0.05 is recommended with"
    (sentence,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith(begins)]
    assert re.search(said, sentence)
    comment = " ".join(line.removeprefix("#").strip() for line in file.read_text().splitlines() if line[:1] == "#")
    assert sentence in comment


def test_a_new_study_plans_one_look_and_says_what_a_second_would_bring_and_cost(capsys):
    table("t.csv", 900)
    file = new_study("t.csv", "--label", "y")
    assert "looks" not in loaded(file).spec
    assert "to look again with 32, add the key looks: [16, 32] before the first run" in file.read_text()
    said = capsys.readouterr().out
    alone = int(re.search(r"With 16 repeats, .* probability of about (\d+) %", said)[1])
    found = re.search(
        r"With looks: \[16, 32\], it is about (\d+) % at the first look and about (\d+) % by the second", said
    )
    assert int(found[1]) < alone < int(found[2])


def test_as_many_records_as_it_asks_for_suffice(capsys):
    table("t.csv", 800)
    new_study("t.csv", "--label", "y")
    asked = int(re.search(r"about ([\d,]+) records do", capsys.readouterr().out)[1].replace(",", ""))
    table("more.csv", asked)
    new_study("more.csv", "--label", "y", name="more")
    assert "do not make it" not in capsys.readouterr().out


def test_a_study_of_a_rare_class_judges_by_auroc_and_says_so(capsys):
    table("t.csv", 2000, 0.04)
    assert loaded(new_study("t.csv", "--label", "y")).spec["utility"] == "auroc"
    assert "Use is judged by AUROC, since one class dominates." in capsys.readouterr().out
