"""The ONNX file takes rows as they stand in the user's file, and answers as the model does."""

import json

import numpy as np
import onnxruntime
import pandas as pd
import pytest
import torch
from PIL import Image
from releasing import NOT_MEASURED, REPO, released_plan
from safetensors.torch import load_file

from dp_leakage.engines.onnx import outputs_of
from dp_leakage.models.architectures import build
from dp_leakage.models.layers import initial_parameters, module
from dp_leakage.release.folder import MODEL, PRIVACY, WEIGHTS
from dp_leakage.release.make import release
from dp_leakage.release.network import check_onnx, columns_told, onnx_of
from dp_leakage.release.plan import GAPS
from dp_leakage.release.verify import verify


def asked(folder, given):
    """What onnxruntime says."""
    session = onnxruntime.InferenceSession((folder / MODEL).read_bytes(), providers=["CPUExecutionProvider"])
    (output,) = session.get_outputs()
    return session.run([output.name], given)[0]


def by_torch(plan, folder):
    """What a torch module with the released weights says about the features that the study trains on."""
    network = module(plan.layers(plan.grid[0]))
    network.load_state_dict(load_file(folder / WEIGHTS))
    with torch.no_grad():
        return network.eval()(torch.from_numpy(plan.data.x)).softmax(1).numpy()


def pasted(folder, monkeypatch):
    """What the code on the card computes if it is pasted into Python beside the model."""
    monkeypatch.chdir(folder)
    names: dict = {}
    exec((folder / "MODEL_CARD.md").read_text().split("```python\n")[1].split("\n```")[0], names)
    classes = json.loads((folder / PRIVACY).read_text())["model"]["classes"]
    assert names["probability"].shape == (1, len(classes))
    assert names["probability"].sum() == pytest.approx(1, abs=1e-5)
    return names


def tells_no(folder, *words):
    """No file of the release holds one of these words: a path, a file, a seed, a record's name."""
    for path in folder.iterdir():
        for word in map(str, words):
            assert word.encode() not in path.read_bytes(), f"{path.name}: {word}"


def agree(ours, theirs):
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)
    assert ours.std() > 1e-3  # it says something


def test_digits_go_in_as_scikit_learn_has_them(plan, made):
    from sklearn.datasets import load_digits

    images = load_digits().images.astype(np.float32)[:, None]
    assert images.max() == 16
    agree(asked(made, {"record": images}), by_torch(plan, made))
    np.testing.assert_array_equal(by_torch(plan, made).argmax(1).shape, (1797,))


def test_an_audit_of_the_file_gives_it_the_numbers_that_it_takes(plan, made):
    """`make audit-model` has images in [0, 1], the file takes those of the source."""
    agree(outputs_of(made / MODEL, plan.raw.x), by_torch(plan, made))


def table(rows=400):
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 90, rows).astype(float),
            "record": rng.normal(size=rows) * 10,
            "color": rng.choice(["red", "green", "blue"], rows),
            "probability": rng.choice(["no", "yes"], rows),
            "one": "same",
            "label": rng.choice(["a", "b", "c"], rows),
        }
    )
    frame.loc[rng.random(rows) < 0.1, "age"] = np.nan
    frame.loc[rng.random(rows) < 0.1, "color"] = np.nan
    frame.loc[rng.random(rows) < 0.1, "probability"] = np.nan
    return frame


@pytest.mark.parametrize("projection", [{}, {"scale": "standard", "fit_on": ["target_nonmembers"]}])
def test_a_table_with_texts_and_gaps_goes_in_column_by_column(own, projection, monkeypatch):
    frame = table()
    frame.to_csv(own.folder / "my.csv", index=False)
    roles = {"pool": 200, "target_nonmembers": 200}
    source = {"path": "my.csv", "label": "label", "missing": "impute"}
    plan = own.study(source, roles, projection=projection)
    folder = own.folder / "model"
    release(plan, folder, 60.0, NOT_MEASURED)
    verify(folder)
    read = pd.read_csv(own.folder / "my.csv").drop(columns="label")
    given = {
        name: (column.to_numpy(np.float32) if column.dtype.kind == "f" else column.fillna("").to_numpy(object))[:, None]
        for name, column in read.items()
    }
    agree(asked(folder, given), by_torch(plan, folder))
    told = json.loads((folder / PRIVACY).read_text())
    assert [column["kind"] for column in told["model"]["columns"]] == ["number", "number", "text", "text", "text"]
    assert GAPS in told["outside"]
    tells_no(folder, own.folder, "my.csv", 987654321, plan.grid[0]["seed"], plan.grid[0]["subset"]["coins"])
    row = pasted(folder, monkeypatch)["row"]
    assert list(row) == ["age", "record", "color", "probability", "one"]
    assert (row["record"], row["color"], row["one"]) == (0.0, plan.raw.columns[2].fill, "same")


@pytest.mark.parametrize("gaps", [0, 1])
def test_what_lies_outside_is_the_same_whether_one_record_has_a_gap_or_none(own, gaps):
    frame = table().dropna()[["age", "record", "label"]]
    frame.iloc[:gaps, 0] = np.nan
    frame.to_csv(own.folder / "my.csv", index=False)
    source = {"path": "my.csv", "label": "label", "missing": "impute"}
    plan = own.study(source, {"pool": 100, "target_nonmembers": 100})
    assert (columns_told(plan.raw)[0]["missing_as"] is None) == (gaps == 0)
    assert [sentence for sentence in plan.outside if "missing" in sentence] == [GAPS]


def test_a_table_that_is_refused_with_gaps_has_none_to_speak_of(own):
    table().dropna()[["age", "record", "label"]].to_csv(own.folder / "my.csv", index=False)
    plan = own.study({"path": "my.csv", "label": "label"}, {"pool": 100, "target_nonmembers": 100})
    assert GAPS not in plan.outside


def test_persons_that_the_data_name_and_sensitive_columns_are_told_by_the_columns_own_names(own):
    frame = table().assign(patient=[f"p{number // 4:03d}" for number in range(400)])
    frame.to_csv(own.folder / "my.csv", index=False)
    source = {"path": "my.csv", "label": "label", "missing": "impute"}
    columns = {"drop": ["patient"], "sensitive": ["color", "probability", "age"]}
    plan = own.study(source | columns, {"pool": 200, "target_nonmembers": 200})
    assert plan.declared["sensitive_fields"] == ["age", "color", "probability"]
    assert plan.outside[0] == (
        "Column 'patient' seems to name persons, and ε is for one record: it promises less to a person with several."
    )
    person = own.study(source | {"person": "patient"}, {"pool": 50, "target_nonmembers": 50}, defense="person")
    assert not any("seems to name persons" in sentence for sentence in person.outside)


def test_a_table_of_numbers_with_gaps_goes_in_as_one_array(own, monkeypatch):
    odd = 'we"ight\\n ``` \u2028{x}'
    frame = table()[["age", "record", "label"]].rename(columns={"record": odd})
    frame.to_csv(own.folder / "my.csv", index=False)
    source = {"path": "my.csv", "label": "label", "missing": "impute"}
    projection = {"scale": "range", "method": "pca", "components": 2, "whiten": True, "row_norm": True}
    plan = own.study(source, {"pool": 200, "target_nonmembers": 200}, projection=projection)
    folder = own.folder / "model"
    release(plan, folder, 60.0, NOT_MEASURED)
    given = frame[["age", odd]].to_numpy(np.float32)
    assert np.isnan(given).any()
    agree(asked(folder, {"record": given}), by_torch(plan, folder))
    assert pasted(folder, monkeypatch)["row"] == {"age": float(plan.raw.columns[0].fill), odd: 0.0}


def test_accuracy_is_not_known_if_no_record_is_left_for_it(own):
    table().dropna()[["age", "record", "label"]].to_csv(own.folder / "my.csv", index=False)
    roles = {"pool": 100, "target_nonmembers": 100}
    plan = own.study({"path": "my.csv", "label": "label"}, roles, wanted={"roles": list(roles)})
    folder = own.folder / "model"
    release(plan, folder, 60.0, NOT_MEASURED)
    assert json.loads((folder / PRIVACY).read_text())["model"]["accuracy"] is None
    assert "Not known: all records were trained on." in (folder / "MODEL_CARD.md").read_text()


@pytest.mark.parametrize("model", [{"name": "cnn_small"}, {"name": "resnet", "channels": [8], "groups": 2}])
def test_images_go_in_as_pixels(own, model):
    rng = np.random.default_rng(6)
    pixels = rng.integers(0, 256, (100, 12, 12, 3), dtype=np.uint8)
    for number, image in enumerate(pixels):
        to = own.folder / "images" / f"class{number % 2}" / f"{number:03d}.png"
        to.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(to)
    plan = own.study({"path": "images"}, {"pool": 60, "target_nonmembers": 40}, model=model)
    folder = own.folder / "model"
    release(plan, folder, 60.0, NOT_MEASURED)
    order = [int(name[-7:-4]) for name in plan.raw.names]
    given = pixels[order].transpose(0, 3, 1, 2).astype(np.float32)
    agree(asked(folder, {"record": given}), by_torch(plan, folder))
    tells_no(folder, own.folder, "images/", ".png", 987654321, *plan.raw.names)


ARCHITECTURES = [
    ("softmax_regression", (7,), {}),
    ("mlp", (7,), {"levels": [3, 4], "activation": "silu"}),
    ("lenet", (1, 28, 28), {"activation": "tanh"}),
    ("lenet_strided", (3, 12, 12), {"activation": {"scale": 1.5, "temperature": 3.0, "offset": 0.5}}),
    ("cnn", (1, 8, 8), {"activation": "sigmoid"}),
    ("cnn_strided", (1, 12, 12), {}),
    ("resnet", (3, 8, 8), {"channels": [8, 16]}),
    ("wide_resnet", (1, 8, 8), {"depth": 10, "width": 1}),
]


@pytest.mark.parametrize(("name", "shape", "keys"), ARCHITECTURES)
def test_every_architecture_can_be_handed_over(plan, name, shape, keys):
    layers = build(name, shape, 3, dropout=0.1, **keys)
    parameters = initial_parameters(layers, torch.Generator().manual_seed(1), "torch")
    x = np.random.default_rng(2).normal(size=(5, *shape)).astype(np.float32)
    raw = plan.raw._replace(x=x, class_names=("a", "b", "c"), divisor=1.0)
    content = onnx_of(raw, plan.fitted._replace(projection=None, row_norm=False), layers, parameters)
    check_onnx(content, raw, x, layers, parameters)


def test_a_file_that_answers_otherwise_is_refused(plan):
    from dp_leakage.common.errors import UserError

    layers = build("mlp", (4,), 3)
    one, other = (initial_parameters(layers, torch.Generator().manual_seed(seed), "torch") for seed in (1, 2))
    raw = plan.raw._replace(x=np.ones((2, 4), np.float32), class_names=("a", "b", "c"), divisor=1.0)
    content = onnx_of(raw, plan.fitted._replace(projection=None, row_norm=False), layers, one)
    with pytest.raises(UserError, match="must answer as the model to 1e-05"):
        check_onnx(content, raw, raw.x, layers, other)


def test_the_cards_example_runs_for_images(made, monkeypatch):
    assert pasted(made, monkeypatch)["given"]["record"].shape == (1, 1, 8, 8)


def test_the_small_studies_of_the_readme_have_a_plan():
    assert len(released_plan("quickstart", "softmax_regression/gaussian-rdp-eps=1", {}, REPO).rows) == 1200
