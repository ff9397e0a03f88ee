"""What a user's code says and does is checked: a lie about privacy is refused, a failure is one sentence."""

import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from asked import epsilon_spent, noise_multiplier
from registries import unchanged

from dp_leakage import plugins
from dp_leakage.attacks.checks import check_said, checked_arrays, checked_scores
from dp_leakage.attacks.signals import Scores
from dp_leakage.common import user_code
from dp_leakage.common.errors import UserError
from dp_leakage.figures import FIGURES
from dp_leakage.models.architectures import build
from dp_leakage.models.user_module import module_factory
from dp_leakage.privacy.clipping import bound_scales, check_bound
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.steps import attack, attack_models
from dp_leakage.training.noise import start_noise
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.trainer import train

TERMS = {"delta": 1e-5, "epochs": 2, "batch_size": 40, "dataset_size": 120}
OWN = "MECHANISM = {'relations': {'shuffle': ['zero_out']}, 'claim': 'bound'}\n"
NOISE = "def noise(row, scale, generator):\n    row.normal_(generator=generator)\n"


@pytest.fixture(autouse=True)
def clean():
    with unchanged("plug"):
        yield


@pytest.fixture
def plug(tmp_path):
    """A function that loads a plugin called plug of this text."""

    def loaded(text: str) -> None:
        (tmp_path / "plug.py").write_text(text)
        plugins.load([tmp_path])

    return loaded


# ---------------------------------------------------------------------- what it says of privacy
@pytest.mark.parametrize(
    ("returned", "sentence"),
    [
        ("float('nan')", "epsilon returns nan"),
        ("float('inf')", "epsilon returns inf"),
        ("0", "epsilon returns 0"),
        ("-1.0", "epsilon returns -1.0"),
        ("None", "epsilon returns None"),
        ("'1'", "epsilon returns '1'"),
        ("True", "epsilon returns True"),
        ("[1, 2]", r"epsilon returns \[1, 2\]"),
        ("1.0", "it must fall as the noise grows"),
        ("noise_multiplier", "it must fall as the noise grows"),
        ("1 / 0", "plugin plug, line 5: ZeroDivisionError: division by zero"),
        ("case.nothing", "plugin plug, line 5: AttributeError"),
        ("exit(0)", "plugin plug, line 5: SystemExit: 0"),
        ("max(1 / noise_multiplier, 0.5)", "it must fall as the noise grows"),
    ],
)
def test_an_epsilon_that_is_no_budget_or_does_not_fall_with_the_noise_is_refused(plug, returned, sentence):
    plug(OWN + NOISE + f"def epsilon(noise_multiplier, case):\n    return {returned}\n")
    with pytest.raises(UserError, match=f"plugin plug.*{sentence}|{sentence}"):
        noise_multiplier("plug", epsilon=0.1, **TERMS)
    if "max" not in returned:
        with pytest.raises(UserError, match=sentence):
            epsilon_spent("plug", noise_multiplier=1.0, **TERMS)


@pytest.mark.parametrize(
    ("declared", "sentence"),
    [
        (
            "{'relations': {'shuffle': ['zero_out']}, 'claim': 'sure'}",
            "claim' is 'sure'; valid: as_printed, bound, exact",
        ),
        ("{'relations': {'shuffle': ['zero_out']}, 'claim': ['bound']}", r"claim' is \['bound'\]"),
        ("{'relations': {'shuffle': ['zero']}, 'claim': 'bound'}", "has 'zero'; did you mean 'zero_out'"),
        ("{'relations': {'shuffel': ['zero_out']}, 'claim': 'bound'}", "sampler 'shuffel'; did you mean 'shuffle'"),
        ("{'relations': {'shuffle': []}, 'claim': 'bound'}", r"relations\['shuffle'\] is \[\]"),
        ("{'relations': {'shuffle': 'zero_out'}, 'claim': 'bound'}", "is 'zero_out'; expected a list"),
        ("{'relations': {}, 'claim': 'bound'}", "relations is {}"),
        ("{'relations': ['shuffle'], 'claim': 'bound'}", "relations is"),
        (
            "{'relations': {'shuffle': ['zero_out']}, 'claim': 'bound', 'accountant': ['a']}",
            "accountant: .* is not a valid name",
        ),
        (
            "{'relations': {'shuffle': ['zero_out']}, 'claim': 'bound', 'accountant': '../x'}",
            "accountant: .* is not a valid name",
        ),
        ("{'relations': {'shuffle': ['zero_out']}, 'claim': 'bound', 'accountant': 'rdp'}", "'rdp' is already an acc"),
    ],
)
def test_the_words_of_a_claim_are_known_ones(plug, declared, sentence):
    with pytest.raises(UserError, match=sentence):
        plug(f"MECHANISM = {declared}\n" + NOISE + "def epsilon(noise_multiplier, case):\n    return 1\n")


def scaled(plug, body: str, norms) -> torch.Tensor:
    plug("import torch\nMECHANISM = {}\nSEEN = []\ndef bound(norms, clip_norm):\n" + body)
    with torch.inference_mode():
        return bound_scales(torch.tensor(norms), 2.0, "plug")


@pytest.mark.parametrize(
    "body",
    [
        "    return clip_norm / norms.amax()\n",  # moved the clipped sum by 11.1 C
        "    return clip_norm / norms.sum()\n",
        "    return torch.full_like(norms, clip_norm / norms.max())\n",
        "    return clip_norm / norms if norms > 1 else torch.ones_like(norms)\n",
        "    return clip_norm / float(norms)\n",
    ],
)
def test_a_bound_of_ones_own_sees_one_unit_so_that_none_can_depend_on_another(plug, body):
    """Removing, adding or permuting units leaves every other unit's factor as it was, for whatever the plugin does."""
    rng = np.random.default_rng(0)
    norms = rng.lognormal(1, 1.5, 40).astype(np.float32)
    whole = scaled(plug, body, norms)
    order = rng.permutation(40)
    torch.testing.assert_close(bound_scales(torch.tensor(norms[order]), 2.0, "plug"), whole[order], rtol=0, atol=0)
    kept = order[:17]
    torch.testing.assert_close(bound_scales(torch.tensor(norms[kept]), 2.0, "plug"), whole[kept], rtol=0, atol=0)
    assert ((whole * torch.tensor(norms)).abs() <= 2.0).all()


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("    return None\n", "plugin plug: TypeError|plugin plug: RuntimeError"),
        ("    return 'x'\n", "plugin plug: "),
        ("    return torch.stack([norms, norms])\n", "expected one factor"),
        ("    1 / 0\n", "plugin plug, line 5: ZeroDivisionError"),
    ],
)
def test_a_bound_that_returns_no_factor_is_one_sentence(plug, body, sentence):
    with pytest.raises(UserError, match=sentence):
        scaled(plug, body, [0.5, 3.0])


@pytest.mark.parametrize("factor", ["1.5 * clip_norm / norms", "norms * float('nan')"])
def test_a_bound_that_is_too_long_is_refused_before_training_and_counts_as_0_in_it(plug, factor):
    # In a training an error would reveal the record.
    assert (scaled(plug, f"    return {factor}\n", [0.5, 3.0]) == 0).all()
    with pytest.raises(UserError, match=r"makes a gradient of length .* one of .*; every .* must be at most clip_norm"):
        check_bound("plug", 2.0)


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("    return row.clone().normal_()\n", "does not fill all of row"),  # not in place: there would be no noise
        ("    row[1:].normal_(generator=generator)\n", "does not fill all of row"),
        ("    row.fill_(float('inf'))\n", "does not fill all of row"),
        ("    raise KeyError('boom')\n", "plugin plug, line 3: KeyError: 'boom'"),
        ("    row.normal_(generator)\n", "plugin plug, line 3: TypeError"),
        # The same noise in all steps, which a difference of two of them would take away.
        ("    row.normal_(generator=type(generator)().manual_seed(1))\n", "noise draws nothing from generator"),
        ("    row.fill_(1.0)\n", "noise draws nothing from generator"),
        ("    row.normal_(generator=generator)\n", "noise is the same at any scale"),
    ],
)
def test_noise_that_does_not_fill_the_whole_gradient_is_refused(plug, body, sentence):
    text = OWN + "def noise(row, scale, generator):\n" + body
    plug(text + "def epsilon(noise_multiplier, case):\n    return 1 / noise_multiplier\n")
    x, y = torch.rand(20, 4), torch.arange(20) % 2
    settings = TrainingSettings(optimizer="sgd", learning_rate=0.5, epochs=1, batch_size=10)
    mechanism = Mechanism(noise="plug", noise_multiplier=1.0)
    with pytest.raises(UserError, match=sentence):
        train(build("softmax_regression", (4,), 2), x, y, torch.arange(20)[None], [1], settings, mechanism)


@pytest.mark.parametrize(
    ("returned", "sentence"),
    [
        ("None", None),  # none is known: it is searched for
        ("2 / epsilon", None),
        ("1 / epsilon", None),
        ("0.5 / epsilon", "amount_for returns 5 for epsilon 0.1, at which epsilon returns 0.2"),
        ("float('nan')", "amount_for returns nan"),
        ("-1", "amount_for returns -1"),
        ("'2'", "amount_for returns '2'"),
        ("1 / 0", "plugin plug, line 7: ZeroDivisionError"),
    ],
)
def test_noise_for_a_budget_by_a_formula_of_ones_own_spends_no_more_than_the_budget(plug, returned, sentence):
    epsilon = "def epsilon(noise_multiplier, case):\n    return 1 / noise_multiplier\n"
    plug(OWN + NOISE + epsilon + f"def amount_for(epsilon, case):\n    return {returned}\n")
    if sentence is None:
        found = noise_multiplier("plug", epsilon=0.1, **TERMS)
        assert found == pytest.approx(20 if returned.startswith("2") else 10, rel=1e-5)
        return
    with pytest.raises(UserError, match=sentence):
        noise_multiplier("plug", epsilon=0.1, **TERMS)


FILLS = "    def add(self, step):\n        self.gradient.fill_(1.0)\n"
DIRECTS = "    directs = True\n    def add_examples(self, passed, total, model):\n        "


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (FILLS, None),
        ("    def add(self, step):\n        1 / 0\n", "plugin plug, line 6: ZeroDivisionError"),
        ("    def add(self, step):\n        pass\n", "add does not fill all of self.gradient"),
        ("    def add(self, step):\n        self.gradient = self.gradient * 0\n", "add does not fill all"),
        ("    def add(self, step):\n        self.gradient.fill_(float('inf'))\n", "add does not fill all"),
        ("    def __init__(self, *given):\n        raise KeyError('x')\n", "plugin plug, line 6: KeyError: 'x'"),
        (FILLS + "    def tensors(self):\n        return 3\n", "tensors returns int; expected a dict"),
        (FILLS + "    def tensors(self):\n        return {'a': 1}\n", "tensors returns dict; expected a dict"),
        (FILLS + "    def tensors(self):\n        return {}\n", "tensors lacks 'generators'"),
        (
            FILLS + "    def tensors(self):\n        return super().tensors() | {'p': torch.ones(1) / 0}\n",
            "tensors has numbers in 'p' that are not finite",
        ),
        (FILLS + "    def restore(self, tensors):\n        pass\n", "restore does not bring back what tensors gave"),
        (FILLS + "    def restore(self, tensors):\n        tensors['x']\n", "plugin plug, line 8: KeyError: 'x'"),
        ("    directs = 3\n" + FILLS, "Noise.directs is 3"),
        (DIRECTS + "raise KeyError('x')\n", "plugin plug, line 7: KeyError: 'x'"),
        (DIRECTS + "total.clear()\n", "add_examples does not add to the tensors of total in place"),
        (DIRECTS + "total.update({k: v + 1 for k, v in total.items()})\n", "add_examples does not add"),
        (
            DIRECTS + "[v.fill_(float('nan')) for v in total.values()]\n",
            "add_examples adds numbers that are not finite",
        ),
        (DIRECTS + "[v.add_(1) for v in total.values()]\n", None),
    ],
)
def test_a_class_of_noise_of_ones_own_is_answered_for_by_name_and_line(plug, body, sentence):
    """Where it raises, where its noise is none, and where a killed training would go on with other noise."""
    base = "from dp_leakage.privacy.mechanisms import base\n"
    text = f"import torch\n{base}{OWN}class Noise(base.Noise):\n"
    plug(text + body + "def epsilon(noise_multiplier, case):\n    return 1 / noise_multiplier\n")
    x, y = torch.rand(20, 4), torch.arange(20) % 2
    settings = TrainingSettings(optimizer="sgd", learning_rate=0.5, epochs=1, batch_size=10)
    mechanism = Mechanism(noise="plug", noise_multiplier=1.0)

    def run():
        train(build("softmax_regression", (4,), 2), x, y, torch.arange(20)[None], [1], settings, mechanism)
        for_a_checkpoint = start_noise(mechanism, torch.zeros(1, 10), 1.0, [torch.Generator().manual_seed(1)], 2)
        again = start_noise(mechanism, torch.zeros(1, 10), 1.0, [torch.Generator().manual_seed(2)], 2)
        again.restore(for_a_checkpoint.tensors())

    if sentence is None:
        run()
        return
    with pytest.raises(UserError, match=sentence):
        run()


def test_a_noise_that_is_no_class_of_noise_is_refused(plug):
    plug(OWN + "class Noise:\n    pass\ndef epsilon(noise_multiplier, case):\n    return 1 / noise_multiplier\n")
    with pytest.raises(UserError, match="Noise does not derive from"):
        start_noise(Mechanism(noise="plug", noise_multiplier=1.0), torch.zeros(1, 3), 1.0, [torch.Generator()], 2)


# ---------------------------------------------------------------------- what it declares and returns
SCORE = "def score(target, reference, settings, seed):\n    return None\n"
DRAW = "def draw(metrics, settings, published):\n    return None\n"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "ATTACK = {'family': 'membership', 'settings': {1}}\n" + SCORE,
            "'ATTACK.settings' is set ({1}); expected numbers",
        ),
        ("ATTACK = {'family': 'membership', 'settings': [1]}\n" + SCORE, "settings is [1]"),
        ("ATTACK = {'family': 'membership', 'settings': 3}\n" + SCORE, "settings is 3"),
        (
            "ATTACK = {'family': 'membership', 'settings': {'a': b'x'}}\n" + SCORE,
            "is bytes (b'x'); expected numbers",
        ),
        ("ATTACK = {'family': 'membership', 'settings': {1: 2}}\n" + SCORE, "has the key 1"),
        ("ATTACK = {'family': 'membership', 'settings': {'a': 1e999}}\n" + SCORE, "'ATTACK.settings.a' is inf"),
        ("ATTACK = {'family': ['membership']}\n" + SCORE, "family' is ['membership']"),
        ("ATTACK = {'family': 'membership', 'roles': 3}\n" + SCORE, "roles' is 3"),
        ("ATTACK = {'family': 'membership', 'roles': ['members']}\n" + SCORE, "roles.0' is 'members'"),
        ("ATTACK = {'family': 'membership', 'needs': ['shadow']}\n" + SCORE, "needs' is ['shadow']"),
        ("ATTACK = {['a']: 1}\n" + SCORE, "must be written out"),
        (
            "ATTACK = {'family': 'membership'}\ndef score(target):\n    ...\n",
            "line 2: score does not take (target, reference, settings, seed)",
        ),
        (
            "ATTACK = {'family': 'membership'}\ndef score(a, b, c, d, e, *, f): ...\n",
            "line 2: score does not take",
        ),
        ("FIGURE = {'caption': 3}\n" + DRAW, "caption' is 3"),
        ("FIGURE = {'caption': 'x', 'needs': 'all'}\n" + DRAW, "needs' is 'all'"),
        ("FIGURE = {'caption': 'x'}\ndef draw():\n    ...\n", "draw does not take (metrics, settings, published)"),
        ("X = " + "+".join("1" * 30_000) + "\nATTACK = {}\n", "is not valid Python"),
        ("ATTACK = '\0'\n", "is not valid Python"),
        ("# -*- coding: nonsense -*-\nATTACK = {\n", "is not valid Python"),
    ],
)
def test_what_a_plugin_declares_is_of_the_kinds_that_it_must_be(plug, text, sentence):
    with pytest.raises(UserError, match=re.escape(sentence)) as error:
        plug(text)
    assert "plug.py" in str(error.value)


@pytest.mark.parametrize(
    "name", ["training", "models", "target", "curve", "scores", "images", "audit", "timing", "none"]
)
def test_a_plugin_is_not_called_as_a_part_of_a_cell_is(tmp_path, name):
    (tmp_path / f"{name}.py").write_text("ATTACK = {'family': 'membership'}\n" + SCORE)
    with pytest.raises(UserError, match=f"'{name}' is reserved here"):
        plugins.load([tmp_path])


def test_a_folder_that_is_called_as_a_python_file_is_left_alone(tmp_path):
    (tmp_path / "sub.py").mkdir()
    plugins.load([tmp_path])


def test_a_figure_of_ones_own_can_ask_for_timings(plug):
    plug("FIGURE = {'caption': 'x', 'needs': 'timing'}\n" + DRAW)
    assert FIGURES["plug"].needs == "timing"


GOOD = {"repeat": [0, 0], "record": [3, 4], "member": [True, False], "score": [0.5, 0.1], "flagged": [True, False]}


SAID = Scores(np.ones((2, 3)), np.ones((2, 3), bool))


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (None, "score returns NoneType; expected a named tuple of score and flagged"),
        ((SAID.score, SAID.flagged), "score returns tuple"),
        (SAID._replace(score=SAID.score[:1]), r"score of shape \(1, 3\); expected \(2, 3\)"),
        (SAID._replace(score=SAID.score * np.nan), "numbers in score that are not finite"),
        (SAID._replace(flagged=SAID.score), "float64 as flagged; expected an array of truth values"),
        (SAID._replace(score=[[1, 2, 3]] * 2), "list as score; expected an array of numbers"),
    ],
)
def test_what_a_plugin_says_of_signals_is_checked_before_it_is_written(said, sentence):
    check_said(SAID, "plugin plug", "membership", (2, 3))
    with pytest.raises(UserError, match=sentence):
        check_said(said, "plugin plug", "membership", (2, 3))


@pytest.mark.parametrize(
    ("scored", "sentence"),
    [
        (None, "score returns NoneType; expected a pandas.DataFrame"),
        (pd.DataFrame(GOOD)[:0], "score returns no rows"),
        (pd.DataFrame(GOOD).drop(columns="flagged"), "no column 'flagged'"),
        (pd.DataFrame(GOOD | {"score": [np.nan, 1.0]}), "not finite"),
        (pd.DataFrame(GOOD | {"member": [1, 0]}), "column 'member' of int64; expected truth values"),
        (pd.DataFrame(GOOD | {"score": ["a", "b"]}), "column 'score' of"),
        (pd.DataFrame(GOOD | {"repeat": [0, 2]}), "a repeat beyond the models, whose numbers are 0 to 1"),
    ],
)
def test_scores_of_a_plugin_are_checked_before_they_are_written(scored, sentence):
    checked_scores(pd.DataFrame(GOOD), "plugin plug", "membership", 2)
    with pytest.raises(UserError, match=sentence):
        checked_scores(scored, "plugin plug", "membership", 2)


SEVERAL = """
ATTACK = {"family": "membership", "variants": {"plug_mean": {}, "plug_worst": {}}}


def score(*inputs):
    return 1 / inputs[-2]["divisor"]
"""


@pytest.mark.parametrize(("divisor", "words"), [(1, ": score returns float"), (0, ", line 6: ZeroDivisionError")])
def test_of_several_attacks_in_one_file_the_one_that_fails_is_named(plug, divisor, words, monkeypatch, tmp_path):
    plug(SEVERAL)
    settings = {"inputs": {"data": {}, "target": {}}, "module": "plug", "attack": "plug_worst", "seed": 0}
    settings |= {"settings": {"divisor": divisor}, "leave_one_out": False}
    target = SimpleNamespace(asked=SimpleNamespace(trained_on=np.ones((2, 3), bool)), size=2)
    monkeypatch.setattr(attack, "read_signals", lambda *_, **__: target)
    monkeypatch.setattr(attack_models, "read_dataset", lambda *_: None)
    monkeypatch.setattr(attack_models, "read_models", lambda *_: target)
    file = tmp_path / "x"
    for run in (
        lambda: attack.main(settings, file, scores=file),
        lambda: attack_models.main(settings, file, file, file, None, "cpu"),
    ):
        with pytest.raises(UserError, match=rf"^plugin plug \(plug_worst\){words}"):
            run()


def test_pictures_and_fitted_arrays_of_a_plugin_are_arrays_by_name():
    assert checked_arrays({"a": np.ones(2)}, "x") == {"a": pytest.approx(np.ones(2))}
    for wrong in (None, [np.ones(2)], {"a": [1, 2]}, {1: np.ones(2)}, {"a": np.array(["x"])}):
        with pytest.raises(UserError, match="plugin plug: fit returns"):
            checked_arrays(wrong, "plugin plug: fit returns")


def test_whatever_a_plugin_raises_is_one_sentence_with_file_and_line_and_the_way_there_is_in_the_log(plug, caplog):
    plug("ATTACK = {'family': 'membership'}\n" + SCORE.replace("return None", "raise KeyError('boom')"))
    with pytest.raises(UserError, match=r"^plugin plug, line 3: KeyError: 'boom'$"):
        user_code.call("plug", "score", *range(4))
    assert "plug.py" in caplog.text
    assert "in score" in caplog.text


def test_a_plugin_that_imports_what_is_not_there_is_one_sentence(plug):
    plug("import no_such_package\nATTACK = {'family': 'membership'}\n" + SCORE)
    with pytest.raises(UserError, match="plugin plug, line 1: ModuleNotFoundError: No module named 'no_such_package'"):
        user_code.call("plug", "score", *range(4))


# ---------------------------------------------------------------------- modules
NETS = """
import torch
class Net(torch.nn.Module):
    def __init__(self, n_classes=2):
        super().__init__()
        self.out = torch.nn.Linear(4, n_classes)
    def forward(self, x):
        return self.out(x)
def says(n_classes) -> torch.nn.Module:
    return Net(n_classes)
def silent(n_classes):
    open("ran", "w")
def lies(n_classes) -> torch.nn.Module:
    return 5
def fails(n_classes) -> torch.nn.Module:
    raise KeyError("boom")
class Wide(Net):
    def forward(self, x):
        return self.out(x[:, :3])
class One(Net):
    def forward(self, x):
        return self.out(x).sum(1)
made = Net()
"""


@pytest.fixture
def nets(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_nets.py").write_text(NETS)
    yield tmp_path
    sys.modules.pop("own_nets", None)


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("subprocess:check_output", "to Python's standard library"),
        ("os:system", "to Python's standard library"),
        ("importlib.metadata:version", "to Python's standard library"),
        ("numpy:load", "is not a torch.nn.Module"),
        ("torch:load", "is not a torch.nn.Module"),
        ("torch.nn.functional:linear", "is not a torch.nn.Module"),
        ("own_nets:silent", "functions that say so: def silent"),
        ("own_nets:made", "is not a torch.nn.Module"),
        ("own_nets:torch", "is not a torch.nn.Module"),
        ("own_nets:lies", "gives int; expected a torch.nn.Module"),
        ("own_nets:fails", "line 16: KeyError: 'boom'"),
        ("own_nets:Wide", "RuntimeError: mat1 and mat2"),
        ("own_nets:One", r"gives \(2,\) torch.float32 for 2 records"),
        ("own_nets:Nett", "did you mean 'Net'"),
        ("nowhere_at_all:Net", "cannot be imported"),
    ],
)
def test_a_study_can_name_modules_and_functions_that_return_one_and_nothing_else_is_called(nets, path, sentence):
    with pytest.raises(UserError, match=sentence):
        module_factory(path, (4,), 2)
    assert not (nets / "ran").exists()


def test_a_module_and_a_function_that_says_that_it_returns_one_are_found(nets):
    state = torch.get_rng_state()
    for name in ("Net", "says"):
        assert module_factory(f"own_nets:{name}", (4,), 2)()(torch.zeros(3, 4)).shape == (3, 2)
    torch.set_rng_state(state)
    factory = module_factory("own_nets:Net", (4,), 2)
    assert torch.equal(torch.get_rng_state(), state)  # the trial left the streams as they were
    assert factory().out.weight.shape == (2, 4)


def test_a_module_that_cannot_be_read_is_one_sentence(nets):
    (nets / "own_nets.py").write_text("def (:\n")
    with pytest.raises(UserError, match="SyntaxError"):
        module_factory("own_nets:Net", (4,), 2)
    (nets / "own_nets.py").write_text("1/0\n")
    with pytest.raises(UserError, match="line 1: ZeroDivisionError"):
        module_factory("own_nets:Net", (4,), 2)


def test_a_study_that_names_a_program_as_its_model_runs_nothing(unrun):
    """On the real command line, where `subprocess:check_output` ran what stood beside it."""
    architecture = {"name": "subprocess:check_output", "args": ["touch", "ran"], "hidden": None}
    unrun.configure(models={"mlp": {"engine": "opacus", "architecture": architecture}})
    target = "results/quickstart-smoke/digits/mlp/none/target.safetensors"
    text = unrun.snakemake(target, "--cores", "1", check=False)
    assert "to Python's standard library" in text
    assert not list(unrun.folder.rglob("ran"))


# ---------------------------------------------------------------------- samplers
@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("return None", "sample returns NoneType; expected a list of 2 tensors"),
        ("return [torch.arange(3)]", "sample returns list; expected a list of 2 tensors"),
        ("return [torch.arange(3.0)] * 2", "expected a list of 2 tensors, int64"),
        ("return [torch.tensor([0, 9])] * 2", "positions beyond 0 to 5"),
        ("return [torch.tensor([1, 1])] * 2", "a position twice in one batch"),
        ("raise KeyError('boom')", "plugin plug, line 5: KeyError: 'boom'"),
    ],
)
def test_batches_of_ones_own_are_positions_of_records_each_once(plug, body, sentence):
    from dp_leakage.training.samplers import _own_batches

    declared = "MECHANISM = {'relations': {'plug': ['zero_out']}, 'claim': 'bound'}\n"
    text = f"import torch\n\n{declared}def sample(count, batch_size, steps, generator):\n    {body}\n"
    plug(text + "def epsilon(noise_multiplier, case):\n    return 1 / noise_multiplier\n")
    with pytest.raises(UserError, match=sentence):
        _own_batches("plug", 6, 3, 2, torch.Generator())


def test_the_working_folder_is_as_before_whatever_the_users_code_does(tmp_path, monkeypatch):
    """Results lie in paths that begin from it."""
    monkeypatch.chdir(tmp_path)
    with user_code.blamed("plugin mine", None):
        os.chdir("/")
    assert Path.cwd() == tmp_path

    def fails() -> None:
        with user_code.blamed("plugin mine", None):
            os.chdir("/")
            raise ValueError("no")

    with pytest.raises(UserError, match="plugin mine: ValueError: no"):
        fails()
    assert Path.cwd() == tmp_path
