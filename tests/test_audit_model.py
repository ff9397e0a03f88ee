"""A model that exists already, audited from outside: the numbers are its own; what does not fit gets one sentence."""

import json
import re
import shlex
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import onnx as onnx_library
import onnxmltools
import pandas as pd
import pytest
import torch
from lightgbm import LGBMClassifier
from loading import load
from onnxmltools.convert.common.data_types import FloatTensorType as LightgbmFloats
from safetensors.torch import save_file
from skl2onnx import to_onnx
from sklearn.datasets import load_digits
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from dp_leakage import audit_model
from dp_leakage.attacks import ATTACKS
from dp_leakage.attacks.membership import yeom
from dp_leakage.attacks.queries import ask, asked_records
from dp_leakage.common.errors import UserError
from dp_leakage.common.yaml_files import read_yaml
from dp_leakage.data import load as load_source
from dp_leakage.data.dataset import Dataset
from dp_leakage.data.members import listed
from dp_leakage.data.outputs import FLOOR, margins_of, read_outputs
from dp_leakage.data.profile import profile
from dp_leakage.engines import module, onnx, outputs
from dp_leakage.engines.answers import Answers, signals_of
from dp_leakage.engines.onnx import log_classes
from dp_leakage.models.architectures import build
from dp_leakage.report import headlines
from dp_leakage.study.steps import train_settings
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.trainer import train

X, Y = load_digits(return_X_y=True)
X, Y = (X[:600] / 16).astype(np.float32), Y[:600].astype(np.int64)
MEMBER = np.random.default_rng(0).random(600) < 0.5
ROLES = {"target_members": np.flatnonzero(MEMBER), "target_nonmembers": np.flatnonzero(~MEMBER)}
DATA = Dataset(X, Y, ROLES, np.array([], dtype=np.int64))
SETTINGS = {"role": "target"}


def signals(answers):
    return signals_of(answers, DATA, *asked_records(DATA), 1)


def auc(said):
    scores = yeom.score(said, None, ATTACKS["yeom"].settings, 0).score
    return [roc_auc_score(member, row) for member, row in zip(said.asked.trained_on, scores, strict=True)]


@pytest.fixture(scope="module")
def ensemble():
    layers = build("mlp", (64,), 10, hidden=[32])
    subsets = torch.from_numpy(np.stack([ROLES["target_members"]] * 2))
    settings = TrainingSettings(epochs=30, batch_size=50, evaluate_every=30)
    return train(layers, torch.from_numpy(X), torch.from_numpy(Y), subsets, [1, 2], settings)[0]


def exported(net, path):
    torch.onnx.export(
        net, (torch.from_numpy(X[:2]),), str(path), dynamo=False, dynamic_axes={"x": {0: "n"}}, input_names=["x"]
    )
    return path


def test_a_member_of_an_ensemble_exported_as_onnx_gives_the_numbers_of_its_own_cell(ensemble, tmp_path):
    own = ask(ensemble, DATA)
    for k in range(2):
        settings = SETTINGS | {"architecture": {"name": str(exported(ensemble.module(k), tmp_path / f"{k}.onnx"))}}
        said = signals(onnx.answers(settings, DATA, ROLES["target_members"][None], [0]))
        np.testing.assert_allclose(said.margin[0, 0], own.margin[0, k], rtol=1e-3, atol=1e-3)
        np.testing.assert_array_equal(said.rank[0], own.rank[k])
        np.testing.assert_array_equal(said.trained_on[0], own.trained_on[k])
        assert auc(said)[0] == pytest.approx(auc(own)[k], abs=1e-4)


@pytest.mark.parametrize("suffix", [".safetensors", ".pt"])
def test_a_module_with_its_weights_gives_the_numbers_of_its_own_cell(ensemble, tmp_path, monkeypatch, suffix):
    weights = tmp_path / f"weights{suffix}"
    state = ensemble.module(1).state_dict()
    save_file(state, weights) if suffix == ".safetensors" else torch.save(state, weights)
    (tmp_path / "own_nets.py").write_text(
        "import torch\n\n\nclass Net(torch.nn.Sequential):\n    def __init__(self, n_classes, width=32):\n"
        "        super().__init__(torch.nn.Linear(64, width), torch.nn.ReLU(), torch.nn.Linear(width, n_classes))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    settings = SETTINGS | {"architecture": {"name": "own_nets:Net", "weights": str(weights), "width": 32}}
    said = signals(module.answers(settings, DATA, ROLES["target_members"][None], [0]))
    np.testing.assert_allclose(said.margin[0, 0], ask(ensemble, DATA).margin[0, 1], rtol=1e-4, atol=1e-4)


def test_an_attacker_who_averages_sees_through_dropout_that_is_left_on(ensemble, tmp_path, monkeypatch):
    """A defense that only hides: behind it, as much is found as without it, less .02 of AUC."""
    save_file(ensemble.module(1).state_dict(), tmp_path / "net.safetensors")
    (tmp_path / "own_dropping.py").write_text(
        "import torch\n\n\nclass Net(torch.nn.Sequential):\n    def __init__(self, n_classes, p):\n"
        "        super().__init__(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, n_classes))\n"
        "        self.p = p\n\n    def forward(self, x):\n"
        "        return self[2](torch.nn.functional.dropout(self[1](self[0](x)), self.p, training=True))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)

    def answers(p, **draws):
        architecture = {"name": "own_dropping:Net", "weights": str(tmp_path / "net.safetensors"), "p": p} | draws
        return module.answers(SETTINGS | {"architecture": architecture}, DATA, ROLES["target_members"][None], [7])

    with pytest.raises(UserError, match="expected a model without random numbers, or with draws"):
        answers(0.5)
    with pytest.raises(
        UserError, match="'draws' of own_dropping:Net is 0; expected the number of answers to average, at least 1"
    ):
        answers(0.5, draws=0)
    averaged = answers(0.5, draws=64)
    net = import_module("own_dropping").Net(10, 0.5)
    net.load_state_dict(ensemble.module(1).state_dict())
    torch.manual_seed(7)
    drawn = torch.stack([net(torch.from_numpy(X)).double().softmax(1) for _ in range(64)]).detach()
    np.testing.assert_allclose(np.exp(averaged.log_probability[0]), drawn.mean(0).numpy(), rtol=1e-4, atol=1e-7)
    plain = auc(signals(answers(0.0)))[0]
    assert auc(signals(averaged))[0] > plain - 0.02
    assert plain > 0.52


ESTIMATORS = {
    "forest": RandomForestClassifier(30, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=5, random_state=0),
    "logistic": LogisticRegression(C=10, max_iter=300),
    "neighbors": KNeighborsClassifier(5),
    "lightgbm": LGBMClassifier(n_estimators=10, verbose=-1, n_jobs=1, random_state=0),
}


@pytest.mark.parametrize("zipmap", [True, False])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_exported_as_onnx_has_the_auc_of_its_own_predict_proba(name, zipmap, tmp_path):
    model = ESTIMATORS[name].fit(X[MEMBER], Y[MEMBER])
    if name == "lightgbm":
        kind = [("input", LightgbmFloats([None, 64]))]
        exported = onnxmltools.convert_lightgbm(model, initial_types=kind, target_opset=15, zipmap=zipmap)
    else:
        exported = to_onnx(model, X[:1], options={"zipmap": zipmap}, target_opset=15)
    path = tmp_path / "model.onnx"
    path.write_bytes(exported.SerializeToString())
    settings = SETTINGS | {"architecture": {"name": str(path)}}
    said = signals(onnx.answers(settings, DATA, ROLES["target_members"][None], [0]))
    probability = np.maximum(model.predict_proba(X)[np.arange(600), Y], FLOOR)
    oracle = roc_auc_score(MEMBER, np.round(np.log(probability), 5))  # float32 of the exported model breaks ties
    scores = np.round(-np.logaddexp(0, -said.margin[0, 0]), 5)
    assert roc_auc_score(said.trained_on[0], scores) == pytest.approx(oracle, abs=2e-3)


# ---------------------------------------------------------------------- tables
def table(**columns):
    """Outputs of a model that is surer of its members, as a table of probabilities of three classes."""
    rng = np.random.default_rng(1)
    n = 120
    label, member = rng.integers(3, size=n), np.arange(n) % 2
    score = 2 * np.eye(3)[label] * (1 + member[:, None]) + rng.normal(size=(n, 3))
    p = np.exp(score) / np.exp(score).sum(axis=1, keepdims=True)
    frame = pd.DataFrame({f"probability_{c}": p[:, c] for c in range(3)})
    return frame.assign(record=[f"r{i}" for i in range(n)], label=label, member=member, **columns)


def with_losses(frame):
    p = frame[[f"probability_{c}" for c in range(3)]].to_numpy()
    loss = -np.log(p[np.arange(len(frame)), frame["label"]])
    return frame[["record", "label", "member"]].assign(loss=loss)


def test_probabilities_logits_losses_and_margins_are_the_same_outputs(tmp_path):
    frame = table()
    names = [f"probability_{c}" for c in range(3)]
    logits = frame.rename(columns={name: name.replace("probability", "score") for name in names})
    logits[[name.replace("probability", "score") for name in names]] = np.log(frame[names]) + 3.0
    losses = with_losses(frame)
    margins = losses.drop(columns="loss").assign(margin=-losses["loss"] - np.log(-np.expm1(-losses["loss"])))
    files = {"p.csv": frame, "z.parquet": logits, "loss.tsv": losses, "margin.csv": margins}
    found = []
    for name, one in files.items():
        path = tmp_path / name
        one.to_parquet(path) if name.endswith("parquet") else one.to_csv(
            path, index=False, sep="\t" if name.endswith("tsv") else ","
        )
        found.append(read_outputs(path))
    arrays = {"label": frame["label"], "member": frame["member"], "probability": frame[names].to_numpy()}
    np.savez(tmp_path / "p.npz", record=frame["record"].to_numpy(str), **arrays)
    found.append(read_outputs(tmp_path / "p.npz"))
    for other in found[1:]:
        np.testing.assert_allclose(other.margin, found[0].margin, rtol=1e-6, atol=1e-6)
        np.testing.assert_array_equal(other.member, found[0].member)
        np.testing.assert_array_equal(other.record, found[0].record)


def test_several_models_and_queries_are_told_apart_in_any_order_of_lines(tmp_path):
    parts = [table(model=f"m{m}", query=q) for m in range(2) for q in range(3)]
    for k, part in enumerate(parts):
        part["probability_0"] += 0.001 * k
        part[["probability_0", "probability_1", "probability_2"]] /= 1 + 0.001 * k
    whole = pd.concat(parts)
    whole.to_csv(tmp_path / "a.csv", index=False)
    found = read_outputs(tmp_path / "a.csv")
    assert found.margin.shape == (3, 2, 120)
    for m in range(2):
        for q in range(3):
            part = parts[3 * m + q]
            p = part[[f"probability_{c}" for c in range(3)]].to_numpy()
            np.testing.assert_allclose(found.margin[q, m], margins_of(np.log(p), part["label"].to_numpy()))
    whole.sample(frac=1, random_state=0).to_csv(tmp_path / "b.csv", index=False)
    other = read_outputs(tmp_path / "b.csv")
    order = [other.record.tolist().index(name) for name in found.record]
    np.testing.assert_allclose(other.margin[:, :, order], found.margin)


def test_certain_probabilities_keep_margins_finite():
    p = np.array([[[1.0, 0.0], [0.0, 1.0]]])
    margin = margins_of(np.log(np.maximum(p, FLOOR)), np.array([0, 0]))
    np.testing.assert_allclose(margin, [[-np.log(FLOOR), np.log(FLOOR)]])


def test_classes_are_matched_by_name_not_by_place(tmp_path):
    frame = table()
    frame["label"] = frame["label"].map({0: "no", 1: "yes", 2: "maybe"})
    names = {
        "probability_0": "probability_no",
        "probability_1": "probability_yes",
        "probability_2": "probability_maybe",
    }
    path = tmp_path / "o.csv"
    frame.rename(columns=names)[["label", *names.values(), "member", "record"]].to_csv(path, index=False)
    y = frame["label"].map({"maybe": 0, "no": 1, "yes": 2}).to_numpy()
    data = Dataset(np.zeros((120, 1), np.float32), y, {}, np.array([], dtype=np.int64))
    said = outputs.answers({"architecture": {"name": str(path)}, "role": "target"}, data, np.zeros((1, 1)), [0])
    own = np.exp(said.log_probability[0][np.arange(120), y])
    p = table()[[f"probability_{c}" for c in range(3)]].to_numpy()
    np.testing.assert_allclose(own, p[np.arange(120), table()["label"]])


def test_a_file_of_answers_reads_as_it_was_written():
    answers = Answers.of(np.array([[True, False]]), np.log(np.array([[[0.2, 0.8], [0.5, 0.5]]])), np.array([1, 0]))
    again = Answers.from_tensors(answers.tensors())
    np.testing.assert_array_equal(again.margin, answers.margin)
    np.testing.assert_array_equal(again.ranks(np.array([1, 0])), [[1, 2]])


# ---------------------------------------------------------------------- the workflow
NET = """import torch


class Net(torch.nn.Module):
    def __init__(self, n_classes, width=32):
        super().__init__()
        first, last = torch.nn.Linear(64, width), torch.nn.Linear(width, n_classes)
        self.layers = torch.nn.Sequential(first, torch.nn.ReLU(), last)

    def forward(self, x):
        return self.layers(x)
"""


def documented(word):
    """Of the page's commands for a trained model the first with this word: its options, and its arguments."""
    lines = (Path(__file__).parents[1] / "docs" / "audit-model.md").read_text().splitlines()
    line = next(line for line in lines if line.startswith("dp-leakage attack") and word in line)
    arguments = shlex.split(line, comments=True)[2:]
    return dict(zip(arguments[1::2], arguments[2::2], strict=True)), arguments


def audited(folder, arguments):
    done = subprocess.run(
        [sys.executable, "-m", "dp_leakage", "attack", *arguments], cwd=folder, text=True, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def aucs(results, name):
    metrics = pd.read_parquet(results / name / "audited" / "none" / "metrics.parquet")
    found = metrics[(metrics["metric"] == "membership_auc") & (metrics["repeat"] == "all")]
    return dict(zip(found["attack"], found["value"], strict=True))


def references(frame, trained_on):
    rng = np.random.default_rng(2)
    parts = []
    for k in range(6):
        member = rng.integers(2, size=len(frame)) if trained_on else None
        shift = 0 if member is None else member[:, None]
        score = 2 * np.eye(3)[frame["label"]] * (1 + shift) + rng.normal(size=(len(frame), 3))
        p = np.exp(score) / np.exp(score).sum(axis=1, keepdims=True)
        part = frame[["record", "label"]].assign(model=k, **{f"probability_{c}": p[:, c] for c in range(3)})
        parts.append(part if member is None else part.assign(member=member))
    return pd.concat(parts)


def test_the_documented_line_for_outputs_ends_in_a_report(whole):
    frame = pd.concat([table(), table().assign(record=[f"s{i}" for i in range(120)])])
    frame.to_parquet(whole.folder / "outputs.parquet")
    references(frame, trained_on=True).to_csv(whole.folder / "references.csv", index=False)
    _, arguments = documented("--outputs")
    assert "No lower bound on ε" in audited(whole.folder, arguments)
    whole.snakemake("mine", "--cores", "1")
    results = whole.folder / "results" / "mine"
    found = aucs(results, "mine")
    assert found.keys() >= {"yeom", "lira_online", "rmia_online", "attack_p"}
    assert max(found.values()) > 0.6
    page = (results / "report.html").read_text()
    assert "No lower bound on ε" in page
    assert "Epochs" not in page  # nobody knows how that model was trained
    (headline,) = headlines(json.loads((results / "claims.json").read_text()))
    assert "The strongest of" in headline
    assert "Beware" not in headline


def test_the_documented_line_for_a_model_ends_in_a_report(whole, ensemble):
    words, arguments = documented("--model")
    path = exported(ensemble.module(0), whole.folder / words["--model"])
    onnx_library.save_model(
        onnx_library.load(path), path, save_as_external_data=True, location="e.bin", size_threshold=0
    )
    frame = pd.DataFrame(X).add_prefix("f").assign(**{words["--label"]: Y, words["--members"]: MEMBER.astype(int)})
    frame.to_csv(whole.folder / words["--data"], index=False)
    said = audited(whole.folder, arguments)
    assert "rmia_online" in said
    assert "The report warns if the reference models, once trained, are unlike your model" in said
    whole.snakemake("mine", "--cores", "1")
    results = whole.folder / "results" / "mine"
    assert "Epochs (reference and shadow models)" in (results / "report.html").read_text()
    found = aucs(results, "mine")
    assert found.keys() >= {"yeom", "attack_p", "attack_r", "lira_online", "rmia_online", "quantile_regression"}
    assert max(found.values()) > 0.54
    with np.load(results / "mine" / "audited" / "none" / "signals.npz") as said:
        own = ask(ensemble, DATA)
        mine = own.margin[0, 0][np.argsort(own.record)][said["record"]]
        np.testing.assert_allclose(said["margin"][0, 0], mine, rtol=1e-3, atol=1e-3)
        np.testing.assert_array_equal(said["trained_on"][0], MEMBER[said["record"]])
    assert (results / "report.html").exists()
    # The weights lie in a file of their own, which the model names.
    assert whole.planned("mine") == {}
    weights = whole.folder / "e.bin"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x01")
    assert whole.planned("mine")["train_target"] == 1


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_study_of_outputs_states_no_settings_of_a_training_that_nobody_knows(here):
    table().to_csv("outputs.csv", index=False)
    assert audit_model.main(["mine", "--outputs=outputs.csv"]) == 0
    assert "training" not in read_yaml(here / "studies" / "mine.yaml")
    study = load(file=here / "studies" / "mine.yaml")["mine"]
    (cell,) = study.cells.values()
    assert train_settings(study, cell)["training"] == {}
    assert [cell.columns[key] for key in ("epochs", "batch_size", "learning_rate")] == [None] * 3


def test_references_unlike_the_model_are_warned_of_at_once(here, capsys):
    table().to_csv("outputs.csv", index=False)
    alike, unlike = references(table(), trained_on=True), references(table(), trained_on=True)
    unlike[P] = 0.9 * np.eye(3)[(unlike["label"] + 1) % 3] + 0.1 / 3
    for name, frame in {"alike": alike, "unlike": unlike}.items():
        frame.to_csv(f"{name}.csv", index=False)
        assert audit_model.main([name, "--outputs=outputs.csv", f"--references={name}.csv"]) == 0
        assert ("Beware: the reference models are unlike this model" in capsys.readouterr().out) == (name == "unlike")


@pytest.mark.slow
def test_references_and_shadows_of_the_users_own_module_are_trained_and_compared_with(whole, ensemble):
    (whole.folder / "my_nets.py").write_text(NET)
    state = {f"layers.{name}": value for name, value in ensemble.module(0).state_dict().items()}
    save_file(state, whole.folder / "net.safetensors")
    names = [f"image{i}" for i in range(600)]
    pd.DataFrame(X).add_prefix("f").assign(digit=Y, name=names).to_csv(whole.folder / "my.csv", index=False)
    members = "\n".join(names[row] for row in np.flatnonzero(MEMBER))
    (whole.folder / "members.txt").write_text(members)
    given = ["--model=my_nets:Net", "--weights=net.safetensors", "--data=my.csv", "--label=digit", "--key=name"]
    own = ["--reference-model=my_nets:Net", "--shadow-model=my_nets:Net"]
    said = audited(whole.folder, ["own", *given, "--members=members.txt", *own])
    assert "shokri_trees" in said
    assert "they take the model itself" in said
    whole.snakemake("own", "--cores", "1")
    found = aucs(whole.folder / "results" / "own", "own")
    assert found.keys() >= {"shokri", "shokri_trees", "lira_online"}
    assert found["lira_online"] > 0.55
    with np.load(whole.folder / "results" / "own" / "own" / "audited" / "none" / "signals.npz") as file:
        np.testing.assert_array_equal(np.sort(file["record"][file["trained_on"][0]]), np.flatnonzero(MEMBER))


# ---------------------------------------------------------------------- who was trained on, from a list
def members_file(here, name, content):
    path = here / name
    np.save(path, content) if name.endswith("npy") else path.write_text(content)
    return path


NAMES = ("a", "b", "c", "d", "e")


@pytest.mark.parametrize(
    ("name", "content", "names"),
    [
        ("m.txt", "1\n3\n", ()),
        ("m.csv", "record\n3\n1\n\n", ()),
        ("m.csv", '"b"\nd', NAMES),
        ("m.tsv", "person\nb\nd", NAMES),
        ("m.npy", np.array([1, 3]), ()),
        ("m.npy", np.array([False, True, False, True, False]), NAMES[:0]),
        ("m.npy", np.array(["d", "b"]), NAMES),
    ],
)
def test_a_list_of_members_is_read_by_number_or_name(tmp_path, name, content, names):
    given = listed(members_file(tmp_path, name, content), 5, names, header="person")
    assert given["train"].tolist() == [1, 3]
    assert given["test"].tolist() == [0, 2, 4]


LISTS = {
    "a number too large": ("m.txt", "1\n5", (), "entry 2 is '5'; expected row numbers, 0 to 4"),
    "a negative number": ("m.npy", np.array([-1]), (), "entry 1 is '-1'"),
    "a fraction": ("m.txt", "1.5", (), "expected row numbers"),
    "an unknown name": ("m.txt", "b\nz", NAMES, "entry 2 is 'z'; expected names of the data, such as 'a'"),
    "a record twice": ("m.txt", "1\n1", (), "record 1 occurs twice"),
    "flags for numbers": ("m.txt", "0\n1\n0\n1\n1", (), "occurs twice; list each member once"),
    "nobody": ("m.txt", "\n", (), "lists no members"),
    "a header alone": ("m.csv", "member\n", (), "lists no members"),
    "everybody": ("m.txt", "0\n1\n2\n3\n4", (), "has no non-members"),
    "two columns": ("m.csv", "1,2", (), "entry 1 is '1,2'"),
    "a table of numbers": ("m.npy", np.zeros((2, 2), int), (), "expected one line of row numbers"),
    "floating-point numbers": ("m.npy", np.array([1.0]), (), "expected one line of row numbers"),
    "too few truth values": ("m.npy", np.array([True, False]), (), "expected one for each of the 5 records"),
    "Python objects": ("m.npy", np.array([{}], dtype=object), (), "without Python objects"),
    "names that come twice": ("m.txt", "b", ("a", "b", "b", "c", "d"), "two records are called 'b'"),
}


@pytest.mark.parametrize("what", LISTS)
def test_a_malformed_list_of_members_gets_one_sentence(tmp_path, what):
    name, content, names, sentence = LISTS[what]
    with pytest.raises(UserError, match=re.escape(sentence)) as caught:
        listed(members_file(tmp_path, name, content), 5, names)
    assert "\n" not in str(caught.value)


# ---------------------------------------------------------------------- what does not fit
def changed(**columns):
    frame = table()
    for name, values in columns.items():
        frame[name] = values
    return frame


def at(frame, row, column, value):
    frame = frame.astype({column: object})
    frame.loc[row, column] = value
    return frame


P = ["probability_0", "probability_1", "probability_2"]
MALFORMED = {
    "no member column": (lambda: table().drop(columns="member"), "row order does not identify members"),
    "no label column": (lambda: table().drop(columns="label"), "no column 'label'"),
    "no outputs": (lambda: table().drop(columns=P), "expected one of probability_CLASS"),
    "two kinds of outputs": (lambda: table(loss=1.0), "has probability and loss"),
    "one class alone": (lambda: table().drop(columns=P[1:]), "alone; expected a column"),
    "a class without a column": (lambda: table().drop(columns=P[2]), "has no column probability_2"),
    "probabilities that are called scores": (
        lambda: table().rename(columns=lambda name: name.replace("probability", "score")),
        "its scores are probabilities",
    ),
    "probabilities that are called scores, one rounded below 0": (
        lambda: (
            table()
            .rename(columns=lambda name: name.replace("probability", "score"))
            .assign(score_0=lambda frame: frame["score_0"].where(frame.index > 0, -4e-7))
            .assign(score_1=lambda frame: 1 - frame["score_0"] - frame["score_2"])
        ),
        "its scores are probabilities",
    ),
    "a label without a column": (lambda: at(table(), 3, "label", 7), "has no column probability_7"),
    "sums of a half": (lambda: table().assign(**{p: table()[p] / 2 for p in P}), "add up to 0.5"),
    "sums of 100": (lambda: table().assign(**{p: table()[p] * 100 for p in P}), "outside 0 to 1"),
    "a negative probability": (lambda: at(table(), 5, P[0], -0.1), "outside 0 to 1"),
    "a missing probability": (lambda: at(table(), 5, P[0], np.nan).astype({P[0]: float}), "expected finite numbers"),
    "an infinite score": (lambda: with_losses(table()).assign(loss=np.inf), "expected finite numbers"),
    "a text among the outputs": (lambda: at(table(), 5, P[0], "much"), "expected numbers"),
    "a negative loss": (lambda: at(with_losses(table()), 5, "loss", -1.0).astype({"loss": float}), "a loss below 0"),
    "a member called perhaps": (lambda: at(table(), 5, "member", "perhaps"), "true and false"),
    "a member of 2": (lambda: at(table(), 5, "member", 2), "true and false"),
    "a missing member": (lambda: at(table(), 5, "member", None), "true and false"),
    "all members": (lambda: changed(member=1), "no non-members"),
    "no members": (lambda: changed(member=0), "no members"),
    "few members": (lambda: changed(member=(np.arange(120) < 5).astype(int)), "at least 25"),
    "few non-members": (lambda: changed(member=(np.arange(120) >= 5).astype(int)), "at least 25"),
    "a member and none by its queries": (
        lambda: pd.concat([table(query=0), changed(member=1).assign(query=1)]),
        "both a member and none",
    ),
    "the same record twice": (lambda: pd.concat([table(), table().iloc[:1]]), "occurs twice"),
    "members that are among the non-members": (
        lambda: pd.concat([table(), table().query("member == 1").assign(member=0)]),
        "occurs twice",
    ),
    "a record without a name": (lambda: at(table(), 5, "record", None), "has no record"),
    "models without names of records": (
        lambda: pd.concat([table(model=0), table(model=1)]).drop(columns="record"),
        "no column 'record'",
    ),
    "a record that one model was not asked about": (
        lambda: pd.concat([table(model=0), table(model=1).iloc[1:]]),
        "is missing for model",
    ),
    "models trained on different records": (
        lambda: pd.concat([table(model=0), table(model=1).assign(member=1 - table()["member"])]),
        "must share one training set",
    ),
    "labels that differ between models": (
        lambda: pd.concat([table(model=0), table(model=1).assign(label=0)]),
        "several values of label",
    ),
    "one class only": (lambda: changed(label=1), "only one class"),
    "a missing label": (lambda: at(table(), 5, "label", None), "has no label"),
    "fractional labels": (lambda: changed(label=table()["label"] + 0.5), "has the label"),
    "a table without lines": (lambda: table().iloc[:0], "no records"),
}


def error_of(capsys, *arguments):
    assert audit_model.main(["mine", *map(str, arguments)]) == 1
    text = capsys.readouterr().err
    assert text.startswith("error: ")
    assert text.count("\n") == 1
    assert "Traceback" not in text
    return text


@pytest.mark.parametrize("what", MALFORMED)
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_malformed_table_of_outputs_gets_one_sentence(here, capsys, what, suffix):
    make, sentence = MALFORMED[what]
    frame, path = make(), here / f"outputs.{suffix}"
    if suffix == "csv":
        frame.to_csv(path, index=False)
    else:
        mixed = [name for name in frame if frame[name].dtype == object and frame[name].map(type).nunique() > 1]
        frame.astype(dict.fromkeys(mixed, str)).to_parquet(path, index=False)
    text = error_of(capsys, "--outputs", path)
    if suffix == "csv":
        assert sentence in text
    assert not (here / "studies").exists()


def npz(here, **arrays):
    np.savez(here / "o.npz", **arrays)
    return "--outputs", here / "o.npz"


P3 = np.full((120, 3), 1 / 3)
LABELS = np.arange(120) % 3
GOOD = {"label": LABELS, "member": LABELS > 0, "probability": P3}
ARRAYS = {
    "no label": ({"label": None}, "expected label and one of"),
    "no outputs": ({"probability": None}, "expected label and one of"),
    "other lengths": ({"label": LABELS[:5]}, "the number of records must agree"),
    "member of another shape": ({"member": np.ones((3, 120))}, "member has the shape"),
    "record of another shape": ({"record": np.arange(3)}, "record has the shape"),
    "classes of another shape": ({"classes": np.arange(5)}, "classes has the shape"),
    "five axes": ({"probability": np.zeros((1, 1, 1, 120, 3))}, "must agree"),
}


@pytest.mark.parametrize("what", ARRAYS)
def test_a_malformed_archive_of_outputs_gets_one_sentence(here, capsys, what):
    changes, sentence = ARRAYS[what]
    arrays = {name: values for name, values in (GOOD | changes).items() if values is not None}
    assert sentence in error_of(capsys, *npz(here, **arrays))


def test_files_that_are_none_get_one_sentence(here, capsys):
    assert "no such file" in error_of(capsys, "--outputs", here / "missing.csv")
    (here / "o.txt").write_text("a")
    assert "ends in '.txt'; expected ." in error_of(capsys, "--outputs", here / "o.txt")
    (here / "o.parquet").write_text("a")
    assert "cannot be read as a parquet table" in error_of(capsys, "--outputs", here / "o.parquet")
    np.savez(here / "o.npz", label=np.array([object()], dtype=object))
    assert "never loaded" in error_of(capsys, "--outputs", here / "o.npz")
    assert "nothing to attack" in error_of(capsys)


def with_members(frame, share_of_members, share_of_others):
    """References, each trained on these shares of the target's members and of the others."""
    rng = np.random.default_rng(3)
    others = references(frame, trained_on=True)
    chance = np.tile(np.where(frame["member"] == 1, share_of_members, share_of_others), 6)
    return others.assign(member=(rng.random(len(others)) < chance).astype(int))


@pytest.mark.parametrize(
    ("shares", "words"), [((1.0, 0.0), "100% were"), ((0.0, 0.5), "others 53%"), ((0.9, 0.2), "92% were")]
)
def test_references_that_give_the_members_away_are_refused(here, capsys, shares, words):
    frame = table()
    frame.to_csv("o.csv", index=False)
    with_members(frame, *shares).to_csv("r.csv", index=False)
    text = error_of(capsys, "--outputs", "o.csv", "--references", "r.csv")
    assert words in text
    assert "expected models trained on random halves of all records, or on none of them" in text


@pytest.mark.parametrize(("shares", "warned"), [((0.65, 0.35), True), ((0.5, 0.5), False)])
def test_references_that_lean_to_the_members_are_warned_of(here, capsys, shares, warned):
    frame = table()
    frame.to_csv("o.csv", index=False)
    with_members(frame, *shares).to_csv("r.csv", index=False)
    assert audit_model.main(["mine", "--outputs=o.csv", "--references=r.csv"]) == 0
    assert ("train each on a random half of all records" in capsys.readouterr().out) == warned


def test_references_of_a_design_in_which_each_record_is_in_half_of_the_models_are_taken(here, capsys):
    """As in Carlini et al. 2022: of 16 models, each record is in 8. One is attacked, so 7 or 8 others saw a record."""
    frame = table()
    inside = np.random.default_rng(4).permuted(np.tile(np.arange(16) % 2, (len(frame), 1)), axis=1).T
    frame.assign(member=inside[0]).to_csv("o.csv", index=False)
    one = references(frame, trained_on=False).query("model == 0")
    pd.concat([one.assign(model=k, member=inside[k]) for k in range(1, 16)]).to_csv("r.csv", index=False)
    assert audit_model.main(["mine", "--outputs=o.csv", "--references=r.csv"]) == 0
    assert "random half" not in capsys.readouterr().out


@pytest.mark.parametrize("single", [False, True])
def test_probabilities_that_a_converter_rounded_beyond_0_and_1_are_no_logits(single):
    """skl2onnx writes forests of which 0 comes as -3.6e-7 and 1 as 1.0000004."""
    second = np.array([1.0000004, 0.25, -3.6e-7], dtype=np.float32)
    outputs = second if single else np.column_stack([1 - second, second])
    found = np.exp(log_classes(outputs, 2, "forest.onnx"))
    np.testing.assert_allclose(found[:, 1], [1, 0.25, 0], atol=1e-6)
    with pytest.raises(UserError, match="one number for a record" if single else "2 outputs for a record"):
        log_classes(outputs, 3, "forest.onnx")


def test_a_study_of_outputs_can_be_run_at_scale_smoke_and_says_nothing_of_record_as_a_feature(here):
    table().to_csv("outputs.csv", index=False)
    assert audit_model.main(["mine", "--outputs=outputs.csv"]) == 0
    (study,) = load(config={"scale": "smoke"}, file=here / "studies" / "mine.yaml").values()
    assert study.target == "mine"
    raw = load_source({"source": "outputs", "path": "outputs.csv"}, Path("data"))
    roles = {"target_members": raw.given["train"], "target_nonmembers": raw.given["test"]}
    assert not any("DROP" in remark for remark in profile(raw, roles))


def test_references_that_do_not_fit_get_one_sentence(here, capsys):
    frame = table()
    frame.to_csv(here / "o.csv", index=False)

    def said(others):
        others.to_csv(here / "r.csv", index=False)
        return error_of(capsys, "--outputs", here / "o.csv", "--references", here / "r.csv")

    good = references(frame, trained_on=True)
    assert "is missing (1 of 120)" in said(good[good["record"] != "r7"])
    assert "has the label" in said(good.assign(label=good["label"].where(good["record"] != "r7", 2 - good["label"])))
    assert "no column 'record'" in said(good.drop(columns="record"))
    assert "needs --model" in error_of(capsys, "--outputs", here / "o.csv", "--members", "member")
    assert "expected --shadows" in error_of(capsys, "--outputs", here / "o.csv", "--shadow-model", "mlp")
    words = error_of(capsys, "--outputs", here / "o.csv", "--reference-model", "mlp")
    assert "such models are trained on features" in words


def large_table():
    """Outputs of 480 records, of which 240 are no members."""
    return pd.concat([table().assign(record=[f"{part}{i}" for i in range(120)]) for part in "abcd"])


def test_shadow_models_can_be_given_as_a_table_of_what_they_said(here, capsys):
    frame = large_table()
    frame.to_csv(here / "o.csv", index=False)

    def study(others):
        others.to_csv(here / "s.csv", index=False)
        return "--outputs", here / "o.csv", "--shadows", here / "s.csv"

    good = references(frame, trained_on=True)
    assert audit_model.main(["mine", *map(str, study(good))]) == 0
    assert "60 more for shadow models" in capsys.readouterr().out
    spec = read_yaml(here / "studies" / "mine.yaml")
    assert spec["shadow"] == {
        "size": 30, "count": 6, "engine": "outputs", "architecture": {"name": "s.csv", "of": "o.csv"},
    }  # fmt: skip
    assert {"shokri", "shokri_trees"} <= spec["attacks"].keys()
    (here / "studies" / "mine.yaml").unlink()
    assert "has no column 'member'" in error_of(capsys, *study(good.drop(columns="member")))
    assert "was trained on 0 of the 240 records" in error_of(capsys, *study(good.assign(member=0)))
    losses = good[["record", "label", "model", "member"]].assign(loss=1.0)
    assert "has only losses or margins" in error_of(capsys, *study(losses))
    frame.iloc[:240].to_csv(here / "o.csv", index=False)
    few = good[good["record"].str.startswith(("a", "b"))]
    assert "at least 200 non-members" in error_of(capsys, *study(few))


def test_one_sentence_says_where_the_structure_cannot_be_read(here, capsys, ensemble):
    pd.DataFrame(X).add_prefix("f").assign(label=Y, member=MEMBER.astype(int)).to_csv("d.csv", index=False)
    table().to_csv("o.csv", index=False)
    exported(ensemble.module(0), here / "net.onnx")
    tree = to_onnx(DecisionTreeClassifier(max_depth=3).fit(X, Y), X[:1], options={"zipmap": False})
    (here / "tree.onnx").write_bytes(tree.SerializeToString())
    given = ("--data", "d.csv", "--label", "label", "--members", "member")
    for name, what, words in (
        ("a", ("--model", "tree.onnx", *given), ""),
        ("b", ("--model", "net.onnx", *given), "net.onnx is neither one ensemble of trees nor one linear model"),
        ("c", ("--outputs", "o.csv"), "a table of outputs does not say what the model consists of"),
    ):
        assert audit_model.main([name, *what]) == 0
        assert ("Structure: leaves" in capsys.readouterr().out) == bool(words)
        choices = [
            choice for choice in read_yaml(here / "studies" / f"{name}.yaml")["choices"] if "Structure" in choice
        ]
        assert len(choices) == bool(words)
        assert all(words in choice for choice in choices)


def test_columns_that_the_model_does_not_take_are_left_out_and_copies_are_told(here, capsys, ensemble):
    records = pd.DataFrame(X).add_prefix("f").assign(label=Y, member=MEMBER.astype(int))
    records.iloc[300] = records.iloc[0].where(records.columns != "member", 1 - records.iloc[0]["member"])
    records.assign(note="x" + records["f0"].index.astype(str)).to_csv("d.csv", index=False)
    exported(ensemble.module(0), here / "m.onnx")
    given = ("--model", "m.onnx", "--data", "d.csv", "--label", "label", "--members", "member")
    assert "list it in drop" in error_of(capsys, *given)
    table().to_csv("o.csv", index=False)
    assert "--drop: needs --model" in error_of(capsys, "--outputs", "o.csv", "--drop", "note")
    assert audit_model.main(["mine", *given, "--drop", "note"]) == 0
    assert "1 record among the members also occurs among the non-members" in capsys.readouterr().out
    source = read_yaml(here / "studies" / "mine.yaml")["datasets"]["mine"]["source"]
    assert source["drop"] == ["note"]
    assert load_source(source, here).x.shape == X.shape


def test_several_records_of_a_person_are_told_without_an_option_that_is_not_there(here, capsys, ensemble):
    records = pd.DataFrame(X).add_prefix("f").assign(label=Y, member=MEMBER.astype(int), patient=np.arange(len(X)) // 4)
    records.to_csv("d.csv", index=False)
    exported(ensemble.module(0), here / "m.onnx")
    given = ["--model=m.onnx", "--data=d.csv", "--label=label", "--members=member", "--drop=patient"]
    assert audit_model.main(["mine", *given]) == 0
    said = capsys.readouterr().out
    assert "Column 'patient' seems to name persons: 150 values in 600 records. Intervals take records as indep" in said
    assert "PERSON" not in said


def test_a_folder_of_images_has_no_column_of_members(here, capsys):
    (here / "scans").mkdir()
    said = error_of(capsys, "--model=m.onnx", "--data=scans", "--members=member")
    assert "members: member is not a file; images need a file" in said


def test_models_that_do_not_fit_their_data_get_one_sentence(here, capsys, ensemble):
    pd.DataFrame(X).add_prefix("f").assign(label=Y, member=MEMBER.astype(int)).to_csv("d.csv", index=False)
    exported(ensemble.module(0), here / "m.onnx")
    given = ("--data", "d.csv", "--label", "label")
    assert "members is missing" in error_of(capsys, "--model", "m.onnx", *given)
    assert "data is missing" in error_of(capsys, "--model", "m.onnx", "--members", "member")
    given = (*given, "--members", "member")
    assert "no column 'membr'" in error_of(capsys, "--model", "m.onnx", *given[:-1], "membr")
    assert "no such file" in error_of(capsys, "--model", "none.onnx", *given)
    (here / "text.onnx").write_text("no model")
    assert "is not a readable ONNX model" in error_of(capsys, "--model", "text.onnx", *given)
    assert "--model my_module:Class with --weights" in error_of(capsys, "--model", "net.pt", *given)
    pd.read_csv("d.csv").drop(columns="f3").to_csv("narrow.csv", index=False)
    assert "takes records of 64 numbers; the data have 63" in error_of(
        capsys, "--model", "m.onnx", "--data", "narrow.csv", *given[2:]
    )
    few = pd.read_csv("d.csv").query("label < 5")
    few.to_csv("few.csv", index=False)
    assert "gives 10 outputs for a record, the labels have 5" in error_of(
        capsys, "--model", "m.onnx", "--data", "few.csv", *given[2:]
    )
    assert "it needs --weights" in error_of(capsys, "--model", "nets:Net", *given)
    assert "use --reference-model with --model" in error_of(
        capsys, "--model", "m.onnx", "--references", "d.csv", *given
    )
    assert "reference_model 'mpl' is unknown" in error_of(
        capsys, "--model", "m.onnx", "--reference-model", "mpl", *given
    )
    assert "use --shadow-model with --model" in error_of(capsys, "--model", "m.onnx", "--shadows", "d.csv", *given)
    own = ("--model", "m.onnx", *given, "--shadow-model")
    assert "shadow_model 'mpl' is unknown" in error_of(capsys, *own, "mpl")
    assert "cannot be imported" in error_of(capsys, *own, "no_such_nets:Net")
    assert "is not a torch.nn.Module" in error_of(capsys, *own, "numpy:zeros")
    words = error_of(capsys, *own, "sklearn.ensemble:RandomForest")
    assert "has no 'RandomForest'; did you mean 'RandomForestClassifier'?" in words
    assert "_" not in words.partition("Valid: ")[2]
    away = (*given[:-1], "lists/members.txt")
    assert "members: lists/members.txt does not exist" in error_of(capsys, "--model", "m.onnx", *away)
    (here / "members.txt").write_text("0\n600")
    listed_there = (*given[:-1], "members.txt")
    assert "expected row numbers, 0 to 599" in error_of(capsys, "--model", "m.onnx", *listed_there)
    assert "key: d.csv has no column 'name'" in error_of(capsys, "--model", "m.onnx", *listed_there, "--key", "name")
    (here / "w.pt").write_bytes(b"\x80\x04no weights")
    named = ("--model", "no_such_nets:Net", "--weights", "w.pt")
    assert "draws: few; expected the number of answers to average, at least 1" in error_of(
        capsys, *named, "--draws", "few", *given
    )
    words = error_of(capsys, *named, *given)
    assert "cannot be imported" in words
