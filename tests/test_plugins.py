"""A user's own files: the documented examples work, edits to them reach what they should, mistakes get a sentence."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from asked import calibrated, epsilon_report, noise_multiplier
from loading import LEARNED_ON, REPO
from registries import unchanged

from dp_leakage import plugins
from dp_leakage.attacks import ATTACKS
from dp_leakage.common import user_code
from dp_leakage.common.config import merged
from dp_leakage.common.errors import UserError
from dp_leakage.common.yaml_files import read_yaml
from dp_leakage.data import load, resolve
from dp_leakage.figures import FIGURES, Needs, draw
from dp_leakage.models.architectures import build, check_settings
from dp_leakage.models.layers.own import check_own
from dp_leakage.privacy.accounting import tradeoff
from dp_leakage.privacy.accounting.curve import proven_curve
from dp_leakage.privacy.clipping import bound_scales
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.privacy.training import Training
from dp_leakage.provenance.fingerprint import code_fingerprint
from dp_leakage.study.file import load_studies
from dp_leakage.study.plan import figure_settings
from dp_leakage.study.protocol import sees_untrained
from dp_leakage.study.steps import attack_settings, prepare_settings, settings_of, train_settings
from dp_leakage.training.noise import start_noise
from dp_leakage.training.requests import check_private
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.trainer import train

EXAMPLES = REPO / "docs" / "examples" / "plugins"
STUDY = {
    "epsilon": [1],
    "attacks": {"confidence": {"threshold": 0.5}},
    "figures": {"fig_bars": {"kind": "accuracy_bars", "settings": {"color": "#009e73"}}},
    "defenses": [
        {"defense": "none"},
        {"defense": "automatic_clipping", "accountant": "rdp", "sampler": "poisson"},
        {"defense": "gamma_noise", "accountant": "pure", "sampler": "shuffle"},
    ],
}


@pytest.fixture(autouse=True)
def clean():
    with unchanged():
        yield


@pytest.fixture
def examples():
    plugins.load([EXAMPLES])


def quickstart(folder, **changes):
    spec = read_yaml(REPO / "tests" / "studies" / "quickstart.yaml")
    study = folder / "own.yaml"
    study.write_text(yaml.safe_dump({**spec, "scales": {}, **STUDY, "study": "own", **changes}))
    config = merged(read_yaml(REPO / "config.yaml"), {"plugins": [str(EXAMPLES)]})
    return load_studies(config, [study])["own"]


def digits(n=120):
    from sklearn.datasets import load_digits

    data = load_digits()
    return torch.tensor(data.data[:n] / 16, dtype=torch.float32), torch.tensor(data.target[:n])


def trained(mechanism, seeds=(1,), epochs=2):
    x, y = digits()
    layers = build("softmax_regression", (64,), 10)
    settings = TrainingSettings(optimizer="sgd", learning_rate=0.5, epochs=epochs, batch_size=40)
    subsets = torch.arange(len(x)).repeat(len(seeds), 1)
    return train(layers, x, y, subsets, list(seeds), settings, mechanism)[0]


def test_each_documented_example_is_at_most_twenty_lines_of_code():
    for path in EXAMPLES.glob("*.py"):
        lines = [line for line in path.read_text().splitlines() if line.strip() and not line.strip().startswith("#")]
        assert len(lines) <= 20, path.name


def test_a_study_names_them_and_its_cells_steps_and_figures_follow(tmp_path):
    study = quickstart(tmp_path)
    assert {cell.defense for cell in study.cells.values()} == {
        "none",
        "automatic_clipping-rdp-eps=1",
        "gamma_noise-pure-eps=1",
    }
    cell = study.cell("digits", "mlp", "automatic_clipping-rdp-eps=1")
    assert (cell.training["mechanism"]["bound"], cell.training["mechanism"]["noise"]) == (
        "automatic_clipping",
        "gaussian",
    )
    assert attack_settings(study, cell, "confidence")["settings"] == {"threshold": 0.5}
    assert figure_settings(study, "fig_bars")["module"] == "accuracy_bars"


def test_an_edit_to_a_plugin_changes_the_settings_of_the_steps_that_run_it_and_of_no_others(tmp_path, monkeypatch):
    import dp_leakage.study.step_code

    copies = tmp_path / "plugins"
    copies.mkdir()
    for path in EXAMPLES.glob("*.py"):
        (copies / path.name).write_text(path.read_text())
    monkeypatch.setattr(sys.modules[__name__], "EXAMPLES", copies)
    study = quickstart(tmp_path)
    clipped, noised = (
        study.cell("digits", "mlp", name) for name in ("automatic_clipping-rdp-eps=1", "gamma_noise-pure-eps=1")
    )

    def codes():
        from dp_leakage.provenance import fingerprint

        dp_leakage.study.step_code.step_code.cache_clear()
        fingerprint._parsed.cache_clear()
        fingerprint._imports.cache_clear()
        return [
            train_settings(study, clipped)["code"],
            train_settings(study, noised)["code"],
            attack_settings(study, noised, "confidence")["code"],
        ]

    before = codes()
    edited = copies / "automatic_clipping.py"
    edited.write_text(edited.read_text().replace("0.01", "0.02"))
    assert [old == new for old, new in zip(before, codes(), strict=True)] == [False, True, True]
    edited.write_text(edited.read_text().replace("0.02", "0.01").replace("almost one length", "one length or so"))
    assert codes() == before  # a docstring


def test_what_a_plugin_imports_counts_as_its_code(tmp_path):
    (tmp_path / "mine.py").write_text("import helper\nfrom dp_leakage.attacks import signals\n")
    (tmp_path / "helper.py").write_text("VALUE = 1\n")
    before = code_fingerprint(extra_files=[tmp_path / "mine.py"])
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine.py").write_text((tmp_path / "mine.py").read_text())
    (other / "helper.py").write_text("VALUE = 2\n")
    assert code_fingerprint(extra_files=[other / "mine.py"]) != before
    (other / "apart").mkdir()
    (other / "apart" / "mine.py").write_text("import helper\n")
    assert code_fingerprint(extra_files=[other / "apart" / "mine.py"]) != before


def test_an_own_bound_trains_and_spends_what_the_gaussian_accountants_say(examples):
    own = Mechanism(sampler="poisson", bound="automatic_clipping", noise_multiplier=1.0)
    clip = Mechanism(sampler="poisson", noise_multiplier=1.0)
    a, b = trained(own), trained(clip)
    assert not torch.equal(a.parameters["0.weight"], b.parameters["0.weight"])
    terms = {"delta": 1e-5, "epochs": 2, "batch_size": 40, "dataset_size": 120}
    assert epsilon_report(own, **terms) == epsilon_report(clip, **terms)


def test_an_own_bound_that_leaves_a_gradient_too_long_is_refused(examples, monkeypatch):
    import automatic_clipping

    norms = torch.tensor([0.0, 0.5, 3.0])
    np.testing.assert_allclose(
        bound_scales(norms, 2.0, "automatic_clipping"), 2 / (np.array([0, 0.5, 3]) + 0.01), rtol=1e-4
    )
    monkeypatch.setattr(automatic_clipping, "bound", lambda norms, clip_norm: 1.5 * clip_norm / norms)
    with pytest.raises(UserError, match=r"makes a gradient of length 1e-15 one of 3;.*at most clip_norm 2"):
        check_private(Mechanism(bound="automatic_clipping", clip_norm=2.0, noise_multiplier=1.0), TrainingSettings())
    # Of a record that no trial foresaw, nothing enters the sum. An error would tell that it was there.
    bad = {0.5: 5.0, 3.0: float("nan")}
    monkeypatch.setattr(automatic_clipping, "bound", lambda norm, clip_norm: bad.get(float(norm), 0.5) + 0 * norm)
    assert bound_scales(norms, 2.0, "automatic_clipping").tolist() == [0.5, 0.0, 0.0]


def test_own_noise_has_the_length_that_its_density_says(examples):
    import gamma_noise

    d, scale, draws = 40, 0.5, 2000
    generator = torch.Generator().manual_seed(0)
    rows = torch.empty(draws, d)
    for row in rows:
        gamma_noise.noise(row, scale, generator)
    length = torch.linalg.vector_norm(rows, dim=1).double()
    # Gamma(d, scale): mean d·scale, variance d·scale². False alarm below 1e-6 (five standard errors).
    assert abs(length.mean() - d * scale) < 5 * scale * (d / draws) ** 0.5
    assert abs(length.std() / (scale * d**0.5) - 1) < 5 / (2 * draws) ** 0.5 * 1.2
    assert torch.linalg.vector_norm((rows / length[:, None]).mean(0)) < 5 / draws**0.5


def test_own_noise_trains_and_is_solved_for_and_spent_by_its_own_accountant(examples):
    terms = {"delta": 1e-5, "epochs": 2, "batch_size": 40, "dataset_size": 120}
    sigma = noise_multiplier("pure", epsilon=4.0, **terms)
    assert sigma == pytest.approx(0.5, rel=1e-5)
    own = Mechanism(sampler="shuffle", noise="gamma_noise", noise_multiplier=sigma)
    (spent,) = epsilon_report(own, **terms)
    assert (spent.accountant, spent.neighbors, spent.valid) == ("pure", "zero_out", True)
    assert spent.epsilon == pytest.approx(4.0, rel=1e-5)
    alone, pair = trained(own, seeds=(7,)), trained(own, seeds=(3, 7))
    assert torch.equal(alone.parameters["0.weight"][0], pair.parameters["0.weight"][1])
    far, near = (trained(Mechanism(noise="gamma_noise", noise_multiplier=s)) for s in (50.0, 1e-6))
    plain = trained(Mechanism(noise="none"))
    distance = [float((m.parameters["0.weight"] - plain.parameters["0.weight"]).norm()) for m in (far, near)]
    assert distance[0] > 1 > 1e-2 > distance[1]


def test_an_own_attack_scores_as_the_built_in_ones_do(examples):
    import confidence

    from dp_leakage.attacks.queries import ask, ask_probabilities
    from dp_leakage.attacks.signals import score_columns
    from dp_leakage.data.dataset import Dataset

    x, y = digits()
    roles = {"target_members": np.arange(60), "target_nonmembers": np.arange(60, 120)}
    data = Dataset(x.numpy(), y.numpy(), roles, np.empty(0, np.int64))
    model = trained(None)
    said = replace(ask(model, data), probability=ask_probabilities(model, data, list(roles))[1])
    frame = score_columns(said, confidence.score(said, None, {"threshold": 0.9}, 0)._asdict())
    probability = model.logits(x).softmax(2).amax(2)[0].numpy()
    np.testing.assert_allclose(frame["score"], probability, rtol=1e-5)
    assert len(frame["record"]) == 120
    assert (frame["flagged"] == (frame["score"] > 0.9)).all()


def test_an_own_figure_draws(examples):
    sys.path.append(str(Path(__file__).parent / "figures"))
    import synthetic

    picture, drawn = draw("accuracy_bars", synthetic.quick_frame(), {})
    assert picture.axes
    assert {"metric", "measured", "low", "high", "published", "inside"} <= set(drawn.columns)
    assert set(drawn["metric"]) == {"test_accuracy"}


MANY = """
from dp_leakage.attacks.signals import Scores

ATTACK = {
    "family": "membership",
    "settings": {
        "level": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1, "default": 0.5},
        "of": {"enum": ["loss", "margin"], "default": "loss"},
    },
    "variants": {"many_loose": {}, "many_strict": {"settings": {"level": 0.01}}},
}


def score(target, reference, settings, seed):
    margin = target.asked.margin[0]
    return Scores(margin, margin > settings["level"])
"""


def test_one_file_may_be_several_attacks_whose_settings_say_what_they_hold(tmp_path, monkeypatch):
    (tmp_path / "many.py").write_text(MANY)
    monkeypatch.setattr(sys.modules[__name__], "EXAMPLES", tmp_path)
    parts = {"figures": {}, "defenses": [{"defense": "none"}]}
    study = quickstart(tmp_path, attacks={"many_loose": {"of": "margin"}, "many_strict": {}}, **parts)
    cell = study.cell("digits", "mlp", "none")
    loose, strict = (attack_settings(study, cell, name) for name in ("many_loose", "many_strict"))
    assert (loose["module"], strict["module"]) == ("many", "many")
    assert (loose["settings"], strict["settings"]) == ({"level": 0.5, "of": "margin"}, {"level": 0.01, "of": "loss"})
    with pytest.raises(UserError, match=r"'attacks\.many_loose\.level' is 2; expected a number above 0 and below 1"):
        quickstart(tmp_path, attacks={"many_loose": {"level": 2}}, **parts)
    with pytest.raises(UserError, match="did you mean 'many_strict'"):
        quickstart(tmp_path, attacks={"many_stric": {}}, **parts)


def people(folder, records=40):
    rng = np.random.default_rng(0)
    lines = [
        {"height": float(h), "age": int(a), "ill": ("no", "yes")[i % 2]}
        for i, (h, a) in enumerate(zip(rng.normal(1.7, 0.1, records), rng.integers(18, 90, records), strict=True))
    ]
    (folder / "people.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return {"path": str(folder / "people.jsonl"), "label": "ill"}


def test_an_own_source_of_data_is_found_by_the_suffix_of_its_files(examples, tmp_path):
    spec = resolve(people(tmp_path))
    assert spec["source"] == "json_lines"
    raw = load(spec, tmp_path)
    assert (raw.x.shape, raw.feature_names, raw.class_names) == ((40, 2), ("height", "age"), ("no", "yes"))
    with pytest.raises(UserError, match="label: missing; the source json_lines needs a text there"):
        resolve({"path": spec["path"]})
    with pytest.raises(UserError, match="unknown key for the source json_lines; did you mean 'label'"):
        resolve(spec | {"labl": "ill"})


def test_an_edit_to_an_own_source_or_to_its_file_prepares_the_data_anew(tmp_path, monkeypatch):
    from dp_leakage.provenance import fingerprint
    from dp_leakage.study.step_code import step_code

    copies = tmp_path / "plugins"
    copies.mkdir()
    source = copies / "json_lines.py"
    source.write_text((EXAMPLES / "json_lines.py").read_text())
    monkeypatch.setattr(sys.modules[__name__], "EXAMPLES", copies)
    roles = {"target_members": 220, "target_nonmembers": 220, "shadow_pool": 220, "reference_pool": 220}
    data = {"digits": {"source": people(tmp_path, records=900), "roles": roles}}

    def prepared():
        for cached in (step_code, fingerprint._parsed, fingerprint._imports):
            cached.cache_clear()
        parts = {"attacks": {"yeom": {}}, "figures": {}, "defenses": [{"defense": "none"}]}
        return prepare_settings(quickstart(tmp_path, datasets=data, **parts), "digits")

    before = prepared()
    source.write_text(source.read_text().replace("your records as JSON lines", "records"))
    assert prepared() == before
    source.write_text(source.read_text().replace("splitlines()", "split()"))
    assert prepared()["code"] != before["code"]
    people(tmp_path, records=950)
    assert prepared()["content"] != before["content"]


RECORDS = """
import numpy as np
from dp_leakage.data.raw import Raw

SOURCE = {"summary": "Some records."}


def load(spec, data_dir):
    x, y = np.zeros((4, 2), np.float32), np.array([0, 1, 0, 1])
    return %s
"""
RAW = "Raw(x, y, ('a', 'b'), ('c', 'd'))"


@pytest.mark.parametrize(
    ("returned", "sentence"),
    [
        ("x", "load returns ndarray; expected a dp_leakage.data.raw.Raw"),
        (f"{RAW}._replace(x=x.astype(float))", "x is float64 (4, 2); expected float32 with 2 or 4 axes"),
        (f"{RAW}._replace(y=[0, 1])", "y is list; expected int64 with 1 axes"),
        (f"{RAW}._replace(y=y[:3])", "x has 4 records and y 3"),
        (f"{RAW}._replace(y=y + 1)", "record 1 has the label 2; expected 0 to 1"),
        (f"{RAW}._replace(y=y * 0)", "2 class_names; expected one for each of 1 classes of y"),
        (f"{RAW}._replace(x=x / 0)", "record 0 has nan in column 'c'"),
        (f"{RAW}._replace(feature_names=())", "0 feature_names; expected one for each of 2 columns"),
        (f"{RAW}._replace(sensitive=np.array([2]))", "sensitive must hold different numbers from 0 to 1"),
        (
            f"{RAW}._replace(given={{'train': np.array([0, 0])}})",
            "given['train'] must hold different numbers from 0 to 3",
        ),
        ("1 / 0", "line 10: ZeroDivisionError"),
    ],
)
def test_what_an_own_source_loads_is_checked(tmp_path, returned, sentence):
    (tmp_path / "records.py").write_text(RECORDS % returned)
    plugins.load([tmp_path])
    with pytest.raises(UserError) as error, np.errstate(all="ignore"):
        load({"source": "records"}, tmp_path)
    assert sentence in str(error.value)
    assert str(error.value).startswith("plugin records")


def test_an_own_layer_is_an_activation_and_trains_as_its_torch_module_would(examples):
    layers = build("mlp", (64,), 10, hidden=[8], activation={"name": "softplus", "beta": 2})
    check_own(layers)
    x, y = digits()
    settings = TrainingSettings(optimizer="sgd", learning_rate=0.5, epochs=2, batch_size=40)
    mechanism = Mechanism(sampler="shuffle", noise_multiplier=0.01, clip_norm=10.0)
    model = train(layers, x, y, torch.arange(len(x)).repeat(2, 1), [1, 2], settings, mechanism)[0]
    expected = model.module(1)(x[:7])
    torch.testing.assert_close(model.logits(x[:7])[1], expected, rtol=1e-4, atol=1e-4)
    assert "Softplus" in str(model.module(1))


def test_a_study_names_an_own_layer_and_an_edit_to_it_retrains(tmp_path, monkeypatch):
    from dp_leakage.provenance import fingerprint
    from dp_leakage.study.step_code import step_code

    copies = tmp_path / "plugins"
    copies.mkdir()
    layer = copies / "softplus.py"
    layer.write_text((EXAMPLES / "softplus.py").read_text())
    monkeypatch.setattr(sys.modules[__name__], "EXAMPLES", copies)
    parts = {"attacks": {"yeom": {}}, "figures": {}, "defenses": [{"defense": "none"}]}

    def code(activation):
        for cached in (step_code, fingerprint._parsed, fingerprint._imports):
            cached.cache_clear()
        models = {"mlp": {"architecture": {"name": "mlp", "hidden": [8], "activation": activation}}}
        study = quickstart(tmp_path, models=models, **parts)
        return train_settings(study, study.cell("digits", "mlp", "none"))["code"]

    before, ours = code({"name": "softplus", "beta": 2}), code("relu")
    assert code("softplus") == before != ours
    layer.write_text(layer.read_text().replace("delta * (", "1.0 * delta * ("))
    assert code("softplus") != before
    assert code("relu") == ours
    with pytest.raises(UserError, match="did you mean 'softplus'"):
        code("softplsu")
    with pytest.raises(UserError, match=r"beta. is 0; expected a number above 0"):
        code({"name": "softplus", "beta": 0})


def test_an_edit_to_an_own_layer_times_training_and_learns_features_again(tmp_path, monkeypatch):
    from dp_leakage.provenance import fingerprint
    from dp_leakage.study.step_code import step_code

    copies = tmp_path / "plugins"
    copies.mkdir()
    layer = copies / "softplus.py"
    layer.write_text((EXAMPLES / "softplus.py").read_text())
    monkeypatch.setattr(sys.modules[__name__], "EXAMPLES", copies)
    smooth = {"name": "mlp", "hidden": [8], "activation": "softplus"}
    learned_on = merged(LEARNED_ON, {"architecture": smooth})
    datasets = read_yaml(REPO / "tests" / "studies" / "quickstart.yaml")["datasets"]
    datasets["digits"]["projection"] = {"features": "learned", "learned_on": learned_on}
    parts = {"attacks": {"yeom": {}}, "figures": {}, "defenses": [{"defense": "none"}]}
    parts |= {"models": {"mlp": {"architecture": smooth}}, "timing": {"rounds": 1, "records": 9}}

    def codes():
        for cached in (step_code, fingerprint._parsed, fingerprint._imports):
            cached.cache_clear()
        study = quickstart(tmp_path, datasets=datasets, **parts)
        job = {"dataset": "digits", "model": "mlp"}
        return [settings_of(study, step, **job)["code"] for step in ("time_training", "learn_features")]

    before = codes()
    layer.write_text(layer.read_text().replace("delta * (", "1.0 * delta * ("))
    assert [old == new for old, new in zip(before, codes(), strict=True)] == [False, False]


LAYER = """
from dataclasses import dataclass
import torch
from dp_leakage.models.layers import Layer

LAYER = {"class": "Mine"}


class Mine(Layer):
    def forward(self, name, parameters, x, dropout):
        return %s, None

    def pull_back(self, name, parameters, kept, delta):
        return %s

    def module(self):
        return torch.nn.Tanh()
"""
BACK = "delta * (1 - kept.output**2)"


@pytest.mark.parametrize(
    ("forward", "back", "sentence"),
    [
        ("x.tanh()", BACK, None),
        ("x.tanh() * 1.01", BACK, "Mine.forward is not what its torch module does"),
        ("x.tanh()", "delta * (1 - kept.output)", "Mine.pull_back is not the way back of its torch module"),
        ("x.tanh_()", BACK, "Mine.forward changes its input"),
        ("x.tanh()", "delta.mul_(1 - kept.output**2)", "Mine.pull_back changes delta"),
        ("x.tanh()[:, :1]", BACK, "Mine.forward is not what its torch module does"),
        ("1 / 0", BACK, "line 11: ZeroDivisionError"),
    ],
)
def test_an_own_layer_is_held_against_its_torch_module(tmp_path, forward, back, sentence):
    (tmp_path / "mine.py").write_text(LAYER % (forward, back))
    plugins.load([tmp_path])
    layers = build("mlp", (4,), 3, hidden=[5], activation="mine")
    if sentence is None:
        check_own(layers)
        return
    with pytest.raises(UserError) as error:
        check_own(layers)
    assert sentence in str(error.value)


MIXING = """

class Twin(torch.nn.Module):
    def forward(self, x):
        return centered(x.unflatten(0, (2, 3))).flatten(0, 1)


def centered(x):
    return x - x.mean(1, keepdim=True)
"""


def test_a_wrong_setting_of_an_own_layer_is_named_and_not_the_layer(tmp_path):
    text = LAYER % ("x", "delta")
    (tmp_path / "mine.py").write_text(
        text.replace('{"class": "Mine"}', '{"class": "Mine", "settings": {"slope": 0.1}}')
    )
    plugins.load([tmp_path])
    with pytest.raises(UserError, match=r"activation\.slop"):
        check_settings("mlp", {"activation": {"name": "mine", "slop": 0.2}})


def test_an_own_layer_that_mixes_examples_is_refused(tmp_path):
    text = LAYER % ("centered(x)", "centered(delta)")
    (tmp_path / "mine.py").write_text(text.replace("torch.nn.Tanh()", "Twin()") + MIXING)
    plugins.load([tmp_path])
    with pytest.raises(UserError, match=r"Mine\.forward of one example depends on the others"):
        check_own(build("mlp", (4,), 3, hidden=[5], activation="mine"))


SCORE = "def score(target, reference, settings, seed):\n    return None\n"
LEARNS = "ATTACK = {'family': 'membership', %s}\n" + SCORE


BOUNDED = "MECHANISM = {}\ndef bound(norms, clip_norm): ...\n"


@pytest.mark.parametrize(
    ("file", "text", "sentence"),
    [
        ("mine.py", "ATTACK = {\n", "line 1 is not valid Python"),
        ("mine.py", "ATTACK = dict(family='membership')\n" + SCORE, "must be written out"),
        ("mine.py", "ATTACK = ['membership']\n" + SCORE, "must be a mapping"),
        ("mine.py", "ATTACK = {}\n" + SCORE, "lacks the key 'family'"),
        ("mine.py", "ATTACK = {'family': 'memberships'}\n" + SCORE, "did you mean 'membership'"),
        ("mine.py", "ATTACK = {'famly': 'membership'}\n" + SCORE, "did you mean 'family'"),
        ("mine.py", "ATTACK = {'family': 'membership'}\n", "defines no function 'score'"),
        ("mine.py", LEARNS % "'needs': 'shadow', 'learns': True", "no function 'fit'"),
        ("mine.py", LEARNS % "'learns': True", "`learns` is set but `needs` is not"),
        ("mine.py", LEARNS % "'reads': 'signal'", "did you mean 'signals'"),
        (
            "mine.py",
            LEARNS % "'reads': 'models', 'needs': 'shadow'",
            "it reads models, so it cannot need auxiliary models",
        ),
        ("mine.py", LEARNS % "'on_device': True, 'needs': 'shadow'", "it reads no models, so it runs on the CPU"),
        (
            "mine.py",
            "ATTACK = {'family': 'attribute', 'reads': 'signals'}\n" + SCORE,
            "family attribute takes the models",
        ),
        (
            "mine.py",
            "ATTACK = {'family': 'membership', 'needs': 'shadows'}\n" + SCORE,
            "did you mean 'shadow'? Valid: null, r",
        ),
        (
            "mine.py",
            "ATTACK = {'family': 'membership', 'settings': {'a': {'type': 'integer', 'minimum': 1, 'default': 0}}}\n"
            + SCORE,
            "key 'settings.a.default' is 0; expected a whole number of at least 1",
        ),
        (
            "mine.py",
            "ATTACK = {'family': 'membership', 'variants': {'My own': {}}}\n" + SCORE,
            "'My own' is not a valid name",
        ),
        (
            "mine.py",
            "ATTACK = {'family': 'membership', 'variants': {'mine': {}, 'yeom': {}}}\n" + SCORE,
            "'yeom' is already an attack",
        ),
        ("mine.py", "FIGURE = {}\ndef draw(a, b, c): ...\n", "lacks the key 'caption'"),
        ("mine.py", "FIGURE = {'caption': 'x', 'needs': 'all'}\ndef draw(a, b, c): ...\n", "needs' is 'all'"),
        ("mine.py", "LAYER = {}\nclass Mine: ...\n", "lacks the key 'class'"),
        ("mine.py", "LAYER = {'class': 'Mine'}\nclass Other: ...\n", "defines no class 'Mine'"),
        ("relu.py", "LAYER = {'class': 'Mine'}\nclass Mine: ...\n", "'relu' is already a layer"),
        ("mine.py", "SOURCE = {}\ndef load(spec, data_dir): ...\n", "lacks the key 'summary'"),
        ("mine.py", "SOURCE = {'summary': 'Mine.'}\n", "defines no function 'load'"),
        (
            "mine.py",
            "SOURCE = {'summary': 'Mine.', 'keys': {'path': 'txt'}}\ndef load(spec, data_dir): ...\n",
            "key 'keys.path' is 'txt'; expected a JSON Schema",
        ),
        (
            "mine.py",
            "SOURCE = {'summary': 'Mine.', 'required': ['path']}\ndef load(spec, data_dir): ...\n",
            "required has 'path', which is no key",
        ),
        (
            "mine.py",
            "SOURCE = {'summary': 'Mine.', 'suffixes': ['.abc']}\ndef load(spec, data_dir): ...\n",
            "of a source with the key path",
        ),
        (
            "mine.py",
            "SOURCE = {'summary': 'x', 'keys': {'path': {'type': 'string'}}, 'suffixes': ['.csv']}\n"
            "def load(spec, place): ...\n",
            "suffixes has '.csv', which is of the source csv already",
        ),
        ("npz.py", "SOURCE = {'summary': 'x'}\ndef load(spec, data_dir): ...\n", "'npz' is already a source of data"),
        ("mine.py", "MECHANISM = {}\n", "defines one or more of bound, noise or Noise, sample, groups"),
        # Each trained with the package's own noise, bound or batches, and spent what the plugin says of its own.
        ("mine.py", f"from elsewhere import Noise\n{BOUNDED}", "line 1: Noise is imported, assigned or defined under"),
        ("mine.py", f"from elsewhere import *\n{BOUNDED}", "line 1: import * may bring bound, noise, Noise"),
        ("mine.py", f"{BOUNDED}noise = print\n", "noise is imported, assigned or defined under a condition"),
        ("mine.py", f"{BOUNDED}if True:\n    def sample(): ...\n", "sample is imported, assigned or defined under"),
        (
            "mine.py",
            f"{BOUNDED}def noise(row, scale, generator): ...\nclass Noise: ...\n",
            "defines both noise and Noise",
        ),
        ("mine.py", "MECHANISM = {}\ndef noise(row, scale, generator): ...\n", "lacks the key 'relations'"),
        (
            "mine.py",
            "MECHANISM = {'claim': 'bound'}\ndef bound(norms, clip_norm): ...\n",
            "need a function `epsilon`",
        ),
        (
            "mine.py",
            "MECHANISM = {'settings': {'stability': 0.1}}\ndef bound(norms, clip_norm): ...\n",
            "settings reach a class Noise alone, as self.mechanism.settings, and this file has none",
        ),
        ("yeom.py", "ATTACK = {'family': 'membership'}\n" + SCORE, "'yeom' is already an attack"),
        ("dropout.py", "MECHANISM = {}\ndef bound(norms, clip_norm): ...\n", "'dropout' is already a defense"),
        # Its batches were those of every cell with Poisson batches, whose ε stayed.
        (
            "poisson.py",
            "MECHANISM = {}\ndef sample(count, batch_size, steps, generator): ...\n",
            "'poisson' is a word of the package",
        ),
        # So was its function the noise of DP-SGD.
        (
            "gaussian.py",
            "ATTACK = {'family': 'membership'}\ndef noise(row, scale, generator): ...\n" + SCORE,
            "'gaussian' is a word",
        ),
        ("example.py", "MECHANISM = {}\ndef groups(x, y, seed): ...\n", "'example' is a word"),
        ("clip.py", "MECHANISM = {}\ndef bound(norms, clip_norm): ...\n", "'clip' is a word"),
        ("random.py", "ATTACK = {'family': 'membership'}\n" + SCORE, "another Python module is called 'random'"),
        ("My Attack.py", "ATTACK = {'family': 'membership'}\n" + SCORE, "is not a valid name; expected"),
    ],
)
def test_a_mistaken_plugin_gets_one_sentence_with_its_file(tmp_path, file, text, sentence):
    (tmp_path / file).write_text(text)
    with pytest.raises(UserError) as error:
        plugins.load([tmp_path])
    assert sentence in str(error.value)
    assert file in str(error.value)
    assert "\n" not in str(error.value)


def test_a_torch_module_beside_the_plugins_is_found_and_its_edits_count(examples):
    from dp_leakage.models.user_module import module_factory

    module = module_factory("small_net:SmallNet", (64,), 10, width=8)()
    assert module(torch.zeros(2, 64)).shape == (2, 10)
    assert user_code.module_file("small_net") == EXAMPLES / "small_net.py"


def test_a_missing_folder_is_refused_and_a_file_without_a_declaration_is_left_alone(tmp_path):
    (tmp_path / "notes_of_mine.py").write_text("raise RuntimeError\n")
    plugins.load([tmp_path])
    with pytest.raises(UserError, match="is not a folder"):
        plugins.load([tmp_path / "nowhere"])


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ({"defense": "automatic_cliping", "accountant": "rdp"}, "did you mean 'automatic_clipping'"),
        ({"defense": "automatic_clipping", "accountant": "rdp", "bound": "clip"}, "'defenses.1.bound' does not apply"),
        ({"defense": "automatic_clipping", "accountant": "pure"}, "accounts for gamma_noise noise"),
        ({"defense": "gamma_noise", "accountant": "rdp"}, "accounts for gaussian noise"),
        (
            {"defense": "gamma_noise", "accountant": "pure", "sampler": "poisson"},
            "what accountant 'pure' assumes; use 'shuffle'",
        ),
        ({"defense": "gamma_noise", "accountant": "pure", "unit": "batch"}, "'defenses.1.unit' does not apply"),
    ],
)
def test_a_study_that_asks_wrongly_for_an_own_mechanism_gets_one_sentence(tmp_path, entry, sentence):
    with pytest.raises(UserError) as error:
        quickstart(tmp_path, defenses=[{"defense": "none"}, entry])
    assert sentence in str(error.value)


def test_the_code_in_the_documentation_is_the_code_that_is_tested():
    import ast
    import re

    def plain(node: ast.AST) -> str:
        for part in ast.walk(node):
            if isinstance(part, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(part):
                part.body = part.body[1:]
        return ast.dump(node)

    pages = [(EXAMPLES.parents[1] / page).read_text() for page in ("extend.md", "estimators.md")]
    shown = "\n".join(re.findall(r"```python\n(.*?)```", "\n".join(pages), re.DOTALL))
    shown = {plain(node) for node in ast.parse(shown).body}
    for path in EXAMPLES.glob("*.py"):
        nodes = [node for node in ast.parse(path.read_text()).body if not isinstance(node, ast.Expr | ast.Import)]
        assert {plain(node) for node in nodes} <= shown, path.name


def test_a_figure_may_read_anything_that_the_package_itself_can(tmp_path):
    for needs in get_args(Needs):
        declared = f'FIGURE = {{"caption": "Shown.", "needs": "{needs}"}}'
        (tmp_path / f"of_{needs}.py").write_text(f"{declared}\n\ndef draw(metrics, settings, published):\n    pass\n")
    plugins.load([tmp_path])
    assert {FIGURES[f"of_{needs}"].needs for needs in get_args(Needs)} == set(get_args(Needs))


def test_a_figure_that_selects_nothing_is_refused_with_the_metrics_that_there_are(tmp_path):
    body = "from matplotlib.figure import Figure\n\n\ndef draw(metrics, settings, published):\n"
    body += "    return Figure(), metrics[metrics['metric'] == 'advantage']\n"
    (tmp_path / "selects_nothing.py").write_text(f'FIGURE = {{"caption": "Shown."}}\n{body}')
    plugins.load([tmp_path])
    metrics = pd.DataFrame({"metric": ["membership_advantage", "test_accuracy"]})
    with pytest.raises(
        UserError, match=r"draw returns a table without rows.*here: membership_advantage, test_accuracy"
    ):
        draw("selects_nothing", metrics, {})


CORRELATED = """
from dp_leakage.privacy.mechanisms import banded

MECHANISM = {"relations": {"cyclic": ["zero_out", "replace_one"]}, "claim": "exact", "settings": {"bands": 1},
             "label": "ours", "guarantee": "Hides each record."}


class Noise(banded.Noise):
    pass


def epsilon(noise_multiplier, case):
    return banded.epsilon(noise_multiplier, case)
"""


def study_with(tmp_path, monkeypatch, name, text, entry):
    folder = tmp_path / "plugins"
    folder.mkdir()
    (folder / f"{name}.py").write_text(text)
    monkeypatch.setattr(sys.modules[__name__], "EXAMPLES", folder)
    changes = {"attacks": {"yeom": {}}, "figures": {}, "defenses": [{"defense": "none"}, entry]}
    return quickstart(tmp_path, **changes)


def private_cell(study):
    return next(cell for cell in study.cells.values() if cell.defense != "none" and cell.model == "mlp")


def test_a_plugin_with_noise_correlated_over_steps_trains_what_the_built_in_one_trains(tmp_path, monkeypatch):
    entry = {"defense": "correlated", "accountant": "correlated", "bands": 3, "epsilon": [2]}
    cell = private_cell(study_with(tmp_path, monkeypatch, "correlated", CORRELATED, entry))
    assert cell.defense == "correlated-bands=3-correlated-eps=2"
    schedule = {"epochs": 2, "batch_size": 40, "dataset_size": 120}
    ours = calibrated(cell.training["mechanism"], **schedule)
    theirs = calibrated(cell.training["mechanism"] | {"noise": "banded", "accountant": "banded_gdp"}, **schedule)
    assert ours.noise_multiplier == pytest.approx(theirs.noise_multiplier, rel=1e-5)
    same = replace(ours, noise="banded")
    # An audit of every step undoes the correlation; without these numbers it would find far less.
    both = [start_noise(one, torch.zeros(1, 4), 1.0, [torch.Generator()], 3) for one in (ours, same)]
    assert len(both[0].independent) == 3
    assert list(both[0].independent) == list(both[1].independent)
    for name, value in trained(ours, (1, 2)).parameters.items():
        assert torch.equal(value, trained(same, (1, 2)).parameters[name])


PRINTED = """
import torch

MECHANISM = {"relations": {"halves": ["replace_one"]}, "claim": "as_printed"}


def sample(count, batch_size, steps, generator):
    return list(torch.randperm(count, generator=generator).tensor_split(steps))


def epsilon(noise_multiplier, case):
    return case.epochs / noise_multiplier
"""


def test_the_epsilon_of_own_batches_as_printed_is_reported_and_proves_nothing(tmp_path, monkeypatch):
    """It ended in a traceback, after all its models had been trained."""
    entry = {"defense": "halves", "accountant": "halves", "noise_multiplier": [2]}
    cell = private_cell(study_with(tmp_path, monkeypatch, "halves", PRINTED, entry))
    mechanism = calibrated(cell.training["mechanism"], epochs=2, batch_size=40, dataset_size=120)
    schedule = {"epochs": 2, "batch_size": 40, "dataset_size": 120}
    (row,) = epsilon_report(mechanism, delta=1e-5, accountant="halves", **schedule)
    assert (row.accountant, row.epsilon, row.valid) == ("halves", 1.0, False)
    assert proven_curve(Training(mechanism, **schedule), "replace_one", 1e-5) is None


def test_own_batches_of_records_prove_nothing_of_classes(tmp_path, monkeypatch):
    """A class changes whenever one of its records is drawn, by up to twice the bound, not at a record's rate."""
    text = PRINTED.replace("as_printed", "bound").replace('["replace_one"]', '["add_remove"]')
    entry = {"defense": "halves", "accountant": "halves", "noise_multiplier": [2]}
    study_with(tmp_path, monkeypatch, "halves", text, entry)
    mechanism = Mechanism(sampler="halves", noise_multiplier=2.0)
    training = Training(mechanism, epochs=2, batch_size=40, dataset_size=120)
    assert proven_curve(training, "add_remove", 1e-5) is not None
    for unit in ("class", "subclass"):
        of_groups = replace(training, mechanism=replace(mechanism, unit=unit))
        assert proven_curve(of_groups, "add_remove") is proven_curve(of_groups, "replace_one") is None
        assert not any(
            row.valid
            for row in epsilon_report(of_groups.mechanism, delta=1e-5, epochs=2, batch_size=40, dataset_size=120)
        )


LATE = """
import torch
from dp_leakage.privacy.mechanisms import gaussian

MECHANISM = {"relations": {"shuffle": ["zero_out"]}, "claim": "exact"}


class Noise(gaussian.Noise):
    def add(self, step):
        self.gradient.zero_()

    def finish(self):
        for row, generator in zip(self.gradient, self.generators, strict=True):
            row.add_(torch.empty_like(row).normal_(0.0, self.deviation, generator=generator), alpha=LEVEL)


def epsilon(noise_multiplier, case):
    return case.epochs / noise_multiplier
"""


def late_noise(tmp_path, monkeypatch, level="1.0"):
    text = LATE.replace("LEVEL", level)
    cell = private_cell(study_with(tmp_path, monkeypatch, "late", text, {"defense": "late", "accountant": "late"}))
    return calibrated(cell.training["mechanism"], epochs=2, batch_size=40, dataset_size=120)


def test_noise_that_a_plugin_adds_when_the_sum_is_complete_is_added(tmp_path, monkeypatch):
    """`finish` is called for a plugin's class too: without it these models would have no noise at all."""
    mechanism = late_noise(tmp_path, monkeypatch)
    loud, bare = (trained(own).parameters for own in (mechanism, replace(mechanism, noise="none", noise_multiplier=0)))
    assert all(not torch.equal(loud[name], bare[name]) for name in bare)
    weights = torch.cat([(loud[name] - bare[name]).flatten() for name in bare])
    gaussian = trained(replace(mechanism, noise="gaussian")).parameters
    theirs = torch.cat([(gaussian[name] - bare[name]).flatten() for name in bare])
    assert float(weights.std() / theirs.std()) == pytest.approx(1.0, abs=0.15)


TURNED = """
from dp_leakage.privacy.mechanisms import base

MECHANISM = {"relations": {"shuffle": ["zero_out"]}, "claim": "exact"}


class Noise(base.Noise):
    directs = True

    def add_examples(self, passed, total, model):
        for view in total.values():
            view.normal_(generator=self.generators[model])


def epsilon(noise_multiplier, case):
    return case.epochs / noise_multiplier
"""


def test_views_and_a_plugins_noise_on_each_gradient_are_refused(tmp_path, monkeypatch):
    """Such noise is not added to a mean over views: these models would have none at all."""
    entry = {"defense": "turned", "accountant": "turned", "noise_multiplier": [1]}
    study_with(tmp_path, monkeypatch, "turned", TURNED, entry)
    x, y = digits()
    how = TrainingSettings(epochs=1, batch_size=40, views={"count": 2, "shift": 1})
    given = build("softmax_regression", (1, 8, 8), 10), x.view(-1, 1, 8, 8), y, torch.arange(len(x))[None], [1], how
    with pytest.raises(UserError, match="views do not work with noise 'turned'"):
        train(*given, Mechanism(noise="turned", noise_multiplier=1.0))


def test_a_sum_that_is_not_finite_when_a_plugin_has_seen_it_is_refused(tmp_path, monkeypatch):
    mechanism = late_noise(tmp_path, monkeypatch, level="float('nan')")
    with pytest.raises(UserError, match=r"late: finish leaves numbers in self\.gradient that are not finite"):
        trained(mechanism)


def test_a_plugins_noise_with_bounds_of_its_own_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(
        sys.modules[__name__], "LATE", LATE.replace("    def add(", "    bounds = True\n\n    def add(")
    )
    mechanism = late_noise(tmp_path, monkeypatch)
    with pytest.raises(UserError, match=r"late: Noise\.bounds is True; expected False"):
        trained(mechanism)


HALVED = """
MECHANISM = {"relations": {"poisson": ["add_remove"]}, "claim": "bound"}


def bound(norms, clip_norm):
    return clip_norm / 2 / norms.clamp(min=clip_norm)


def epsilon(noise_multiplier, case):
    return 0.5 / noise_multiplier
"""


def test_a_plugins_accountant_says_nothing_about_a_training_without_the_plugin(tmp_path, monkeypatch):
    """Its ε rests on the plugin's own bound. It was the smallest of all, and so the one that DP-SGD itself spent."""
    entry = {"defense": "halved", "accountant": "halved", "noise_multiplier": [1]}
    cell = private_cell(study_with(tmp_path, monkeypatch, "halved", HALVED, entry))
    terms = {"delta": 1e-5, "epochs": 2, "batch_size": 40, "dataset_size": 120}
    own = calibrated(cell.training["mechanism"], epochs=2, batch_size=40, dataset_size=120)
    assert {spent.accountant for spent in epsilon_report(own, **terms)} == {"halved", "pld", "rdp"}
    bare = replace(own, bound="clip")
    assert {spent.accountant for spent in epsilon_report(bare, **terms)} == {"pld", "rdp"}
    claimed, *_ = epsilon_report(bare, **terms, accountant="halved")
    assert (claimed.accountant, claimed.valid) == ("halved", False)
    changes = {
        "attacks": {"yeom": {}},
        "figures": {},
        "defenses": [{"defense": "none"}, entry | {"defense": "gaussian"}],
    }
    with pytest.raises(UserError, match="'halved' is for the mechanism of plugin halved"):
        quickstart(tmp_path, **changes)


SPEAKS = """
MECHANISM = {"relations": {"class_poisson": ["add_remove", "replace_one"], "cyclic_poisson": ["add_remove"]},
             "claim": "bound"}


def noise(row, scale, generator):
    row.normal_(0.0, scale, generator=generator)

GROUPS

def epsilon(noise_multiplier, case):
    return case.rate * (2 if case.neighbors == "replace_one" else 1) / noise_multiplier
"""


@pytest.mark.parametrize(
    ("step", "neighbors", "epsilon"),
    [
        # A record that comes or goes changes its group, and one in place of another changes two of them.
        ({"sampler": "class_poisson", "unit": "speaks"}, "add_remove", 2.0),
        ({"sampler": "class_poisson", "unit": "speaks"}, "replace_one", 4.0),
        # In its turn a record is drawn at as many times the rate as there are parts.
        ({"sampler": "cyclic_poisson", "settings": {"bands": 3}}, "add_remove", 3.0),
        ({"sampler": "cyclic_poisson"}, "add_remove", 1.0),
    ],
)
def test_what_a_plugins_epsilon_proves_is_about_records_as_they_are_drawn(tmp_path, step, neighbors, epsilon):
    groups = "def groups(x, y, seed):\n    return y\n" if "unit" in step else ""
    (tmp_path / "speaks.py").write_text(SPEAKS.replace("GROUPS", groups))
    plugins.load([tmp_path])
    mechanism = Mechanism(noise="speaks", noise_multiplier=0.1, **step)
    curve = proven_curve(Training(mechanism, epochs=1, batch_size=1, dataset_size=10), neighbors, 1e-9)
    at = np.array([1e-6, 1e-3])
    np.testing.assert_allclose(curve.tpr(at), tradeoff.epsilon_delta(epsilon, 0.0).tpr(at), rtol=0.05)


OWN_STEPS = """
import torch

MECHANISM = {"relations": {"halves": ["zero_out"]}, "claim": "bound"}


def sample(count, batch_size, steps, generator):
    order = torch.randperm(count, generator=generator)
    return [order[: count // 2], order[count // 2 :]] + [order[:0]] * (steps - 2)


def epsilon(noise_multiplier, case):
    return case.epochs / noise_multiplier
"""


def test_a_plugin_may_draw_batches_of_its_own(tmp_path, monkeypatch):
    entry = {"defense": "halves", "accountant": "halves", "epsilon": [2]}
    cell = private_cell(study_with(tmp_path, monkeypatch, "halves", OWN_STEPS, entry))
    mechanism = calibrated(cell.training["mechanism"], epochs=2, batch_size=40, dataset_size=120)
    assert (mechanism.sampler, mechanism.noise) == ("halves", "gaussian")
    assert mechanism.noise_multiplier == pytest.approx(1.0, rel=1e-5)
    assert bool(trained(mechanism).parameters["0.weight"].isfinite().all())
    terms = {"delta": 1e-5, "epochs": 2, "batch_size": 40, "dataset_size": 120}
    assert [spent.accountant for spent in epsilon_report(mechanism, **terms)] == ["halves"]


PEOPLE = """
import numpy as np

MECHANISM = {"relations": {"class_poisson": ["replace_one"]}, "claim": "bound"}


def groups(x, y, seed):
    return np.arange(len(x)) // 5


def epsilon(noise_multiplier, case):
    return case.steps / noise_multiplier
"""


def test_a_plugin_may_say_which_records_are_one_unit(tmp_path, monkeypatch):
    from dp_leakage.steps.train import groups_of

    entry = {"defense": "people", "accountant": "people", "epsilon": [2]}
    cell = private_cell(study_with(tmp_path, monkeypatch, "people", PEOPLE, entry))
    step = cell.step
    assert (step.unit, step.sampler) == ("people", "class_poisson")
    x, y = digits(50)
    groups = groups_of(step, x, y, torch.arange(50), 0)
    assert groups.tolist() == [row // 5 for row in range(50)]


def test_an_attack_on_gradients_gets_models_that_have_not_trained_with_the_noise_of_the_cell(tmp_path):
    from dp_leakage.attacks.checks import checked_scores
    from dp_leakage.data.dataset import Dataset
    from dp_leakage.steps._untrained import untrained

    plugins.load([EXAMPLES])
    images = np.random.default_rng(0).uniform(size=(30, 1, 4, 4)).astype(np.float32)
    roles = {"target_members": np.arange(20), "target_nonmembers": np.arange(20, 30)}
    data = Dataset(images, np.arange(30) % 3, roles, np.array([], dtype=np.int64))
    mechanism = {
        **{"sampler": "poisson", "unit": "example", "bound": "clip", "clip_norm": 1.0, "noise": "gaussian"},
        **{"block": "whole", "settings": {}, "accountant": "rdp", "noise_multiplier": 3.0},
    }
    own = {"architecture": {"name": "mlp", "hidden": [5]}, "dropout": 0.0, "mechanism": mechanism, "repeats": 2}
    target = untrained(own | {"epochs": 2, "batch_size": 5, "n_records": 20}, data, 1)
    assert target.mechanism.noise_multiplier == 3.0
    settings = ATTACKS["first_layer"].settings | {"images": 4}
    scored = user_code.call("first_layer", "score", target, data, None, settings, 1)
    frame, pictures = checked_scores(scored, "plugin first_layer", "gradient_reconstruction", 2)
    assert pictures["weights=initial"].shape == (2, 4, 1, 4, 4)
    assert set(frame["repeat"]) == {0, 1}
    for wrong, words in (
        (frame.drop(columns=["ssim", "mse", "mse_standardized"]), "no measure of its pictures"),
        (frame.assign(mse=np.nan), "numbers in column 'mse' that are not finite"),
    ):
        with pytest.raises(UserError, match=words):
            checked_scores((wrong, pictures), "plugin first_layer", "gradient_reconstruction", 2)


def test_the_weights_of_an_attack_on_gradients_are_those_that_all_such_attacks_have(tmp_path):
    declared = 'ATTACK = {"family": "gradient_reconstruction", "settings": {"weights": 0.5}}'
    (tmp_path / "mine.py").write_text(f"{declared}\n\ndef score(target, data, fitted, settings, seed):\n    pass\n")
    with pytest.raises(UserError, match=r"setting weights of this family is shared"):
        plugins.load([tmp_path])
    (tmp_path / "mine.py").write_text(
        'ATTACK = {"family": "membership", "settings": {"weights": ["initial"], "images": None, "steps": [1]}}\n\n'
        "def score(target, reference, settings, seed):\n    pass\n"
    )
    plugins.load([tmp_path])
    spec = {"attacks": {"mine": {}}}
    assert not sees_untrained(spec, "mine")
