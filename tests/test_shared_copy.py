"""A study of every engine, run and shared: the copy's own bytes tell no member, seed or path.

The scan calls a study leaky at an AUC that chance passes in 1 of 10,000 runs, over all of its readings together.
"""

import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import yaml
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import save_file
from shared_scan import attacked, most_by_chance, unpacked
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from dp_leakage.provenance.files import read_arrays, read_tensors, write_tensors
from dp_leakage.share import main, share

RATE = 1e-4  # of false positives
N = 600
X, Y = load_digits(return_X_y=True)
X, Y = (X[:N] / 16).astype(np.float32), Y[:N]
MEMBER = np.random.default_rng(0).random(N) < 0.5
WORD = "annsecret"  # in the path of everything that the user has
NET = """import torch


class Net(torch.nn.Sequential):
    def __init__(self, n_classes):
        super().__init__(torch.nn.Linear(64, n_classes))
"""
KINDS: dict = {
    "study": "kinds",
    "title": "Every engine that trains",
    "seed": 715517,
    "delta": 1.0e-5,
    "epsilon": [4],
    "repeats": 2,
    "datasets": {"own": {"source": {}, "roles": {"target_members": 250, "target_nonmembers": 250}}},
    "models": {
        "built": {"architecture": {"name": "mlp", "hidden": [N]}},  # as wide as there are records
        "module": {"architecture": {"name": "annnets:Net"}},
        "tree": {"engine": "estimator", "architecture": {"name": "sklearn.tree:DecisionTreeClassifier"}},
    },
    "training": {"optimizer": "adam", "learning_rate": 0.01, "epochs": 2, "batch_size": 50},
    "defenses": [
        {"defense": "none"},
        {
            "defense": "gaussian",
            "accountant": "rdp",
            "sampler": "poisson",
            "epsilon": [4],
            "models": ["built", "module"],
        },
    ],
    "attacks": {"yeom": {}},
    "figures": {"fig_roc": {"kind": "roc", "parts": ["yeom"]}},
}
STUDIES = ("kinds", "told", "graph", "given")
PRIVATE = {f"own/{model}/gaussian-rdp-eps=4/target.safetensors" for model in ("built", "module")}
OPEN = {f"own/{model}/none/target.safetensors" for model in ("built", "module")}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def ran(another, tmp_path_factory):
    """A workflow in which a study of each engine has run, on a user's files outside the repository."""
    workflow, own = another(WORD), tmp_path_factory.mktemp(WORD)
    classifier = LogisticRegression(max_iter=2000, C=100).fit(X[MEMBER], Y[MEMBER])
    weight, bias = classifier.coef_.astype(np.float32), classifier.intercept_.astype(np.float32)
    pd.DataFrame(X).add_prefix("f").assign(digit=Y, member=MEMBER.astype(int)).to_csv(own / "my.csv", index=False)
    said = pd.DataFrame(classifier.predict_proba(X)).add_prefix("probability_")
    said.assign(label=Y, member=MEMBER.astype(int)).to_parquet(own / "said.parquet")
    (own / "model.onnx").write_bytes(linear(weight, bias))
    save_file({"0.weight": np.ascontiguousarray(weight), "0.bias": bias}, own / "net.safetensors")
    (workflow.folder / "annnets.py").write_text(NET)
    data = [f"--data={own / 'my.csv'}", "--label=digit", "--members=member"]
    for arguments in (
        ["told", f"--outputs={own / 'said.parquet'}"],
        ["graph", f"--model={own / 'model.onnx'}", *data],
        ["given", "--model=annnets:Net", f"--weights={own / 'net.safetensors'}", *data],
    ):
        done = subprocess.run(
            [sys.executable, "-m", "dp_leakage", "attack", *arguments],
            cwd=workflow.folder,
            text=True,
            capture_output=True,
        )
        assert done.returncode == 0, done.stderr
    KINDS["datasets"]["own"]["source"] = {"path": str(own / "my.csv"), "label": "digit", "drop": ["member"]}
    (workflow.folder / "studies" / "kinds.yaml").write_text(yaml.safe_dump(KINDS, sort_keys=False))
    workflow.snakemake(*STUDIES, "--cores", "2", timeout=1200)
    return workflow.folder / "results"


def linear(weight, bias):
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", k]) for name, k in (("x", 64), ("y", 10)))
    tensors = [numpy_helper.from_array(value, name) for name, value in (("w", weight), ("b", bias))]
    graph = helper.make_graph([helper.make_node("Gemm", ["x", "w", "b"], ["y"], transB=1)], "g", [x], [y], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def readings(results, folder):
    """What an attacker reads in a folder, in the order of the rows and in that of the records asked about."""
    (data,) = results.glob("*/data.npz")
    arrays = read_arrays(data)[0]
    asked = [arrays[role] for role in ("target_members", "target_nonmembers")]
    rows = np.isin(np.arange(len(arrays["y"])), asked[0])
    found = []
    for member in (rows, np.repeat([True, False], [len(part) for part in asked])):
        read = attacked(folder, member)
        found += [(value - most_by_chance(member, 2 * len(read), RATE), value, name) for value, name in read]
    return sorted(found, reverse=True)


@pytest.mark.parametrize("study", STUDIES)
def test_nobody_can_tell_a_member_by_the_bytes_of_the_copy(ran, study, tmp_path):
    share(ran / study, tmp_path / "copy", undefended=True)
    beyond = readings(ran / study, tmp_path / "copy")
    assert not [(value, name) for above, value, name in beyond if above > 0]
    # The same scan finds them in the results themselves, and in one file too many.
    best = readings(ran / study, ran / study)[0]
    assert (best[0] > 0.2, best[1]) > (True, 0.99)
    for path in (ran / study).rglob("target.safetensors"):
        if "tree" in path.parts or study != "kinds":
            planted = tmp_path / "copy" / "planted.safetensors"
            tensors, _ = read_tensors(path)
            write_tensors(planted, {"x": tensors["trained_on"].astype(np.int64)}, {})
            assert readings(ran / study, tmp_path / "copy")[0][1] == 1


@pytest.mark.parametrize("study", STUDIES)
def test_the_copy_holds_no_seed_path_or_digest(ran, study, tmp_path):
    share(ran / study, tmp_path / "copy", undefended=True)
    secrets = {WORD, "annsecret", str(ran), "train_indices", "trained_on", "log_probability"}
    for path in (ran / study).rglob("*"):
        if path.is_file():
            words = unpacked(path).decode("latin-1")
            secrets |= set(re.findall(r'"(?:identity|seed|data|content|code|coins)": *"?(\w{6,})', words))
            secrets |= set(re.findall(r"(?:identity|csv|pdf|png)=(\w{16,})", words))
    assert len(secrets) > 20
    files = [path for path in (tmp_path / "copy").rglob("*") if path.is_file()]
    kinds = {path.name for path in files}
    assert kinds >= {"metrics.parquet", "fig_roc.pdf", "fig_roc.png", "fig_roc.csv"}
    for path in files:
        words = unpacked(path).decode("latin-1")
        assert not [secret for secret in secrets if secret in words], path


def test_parameters_of_private_models_alone_go_unless_all_are_asked_for(ran, tmp_path):
    assert main([str(ran / "kinds"), "--to", str(tmp_path / "copy")]) == 0
    assert weights(tmp_path / "copy") == PRIVATE
    assert main([str(ran / "kinds"), "--to", str(tmp_path / "all"), "--undefended"]) == 0
    assert weights(tmp_path / "all") == PRIVATE | OPEN
    for study in STUDIES[1:]:
        share(ran / study, tmp_path / study, undefended=True)
        assert weights(tmp_path / study) == set()


def weights(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*.safetensors")}


def test_no_result_holds_the_folders_of_the_machine(ran):
    files = [path for path in ran.rglob("*") if path.is_file() and not path.name.startswith(".")]
    assert len(files) > 50
    assert not [path for path in files if WORD.encode() in unpacked(path) or str(ran).encode() in unpacked(path)]
