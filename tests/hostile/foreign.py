# ruff: noqa: E501, B023 (a table of inputs, each on its line)
"""Hostile models, classifiers, trainings and declarations: each input by its name, as in `listed`.

``MUST`` end in one sentence; ``MAY`` be taken as well, but end no other way.
"""

import importlib
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import given
import numpy as np
from invented import Input, made_graph, modeled, onnx, trained

from dp_leakage.common.config import merged
from dp_leakage.data.dataset import Dataset
from dp_leakage.engines.asking import asked
from dp_leakage.study.file import load_studies

FLOAT, DOUBLE, INT64 = 1, 11, 7
X = np.random.default_rng(0).random((60, 4)).astype(np.float32)
Y = np.arange(60) % 3


def graph(*args: object, **kwargs: object) -> Input:
    """`audit_model` of an ONNX model of these nodes."""
    return lambda f: onnx(f, graph=lambda: made_graph(*args, **kwargs))


# ---------------------------------------------------------------------- ONNX models
def function_bomb(depth: int) -> bytes:
    """Functions each of which calls the next twice, so that 2^depth nodes lie in a few hundred bytes."""
    from onnx import helper

    sets = [helper.make_opsetid("", 13), helper.make_opsetid("own", 1)]
    functions = []
    for level in range(depth):
        call = ("Neg", "") if level == depth - 1 else (f"F{level + 1}", "own")
        nodes = [
            helper.make_node(call[0], ["a"], ["b"], domain=call[1]),
            helper.make_node(call[0], ["b"], ["c"], domain=call[1]),
        ]
        functions.append(helper.make_function("own", f"F{level}", ["a"], ["c"], nodes, sets))
    infos = [[helper.make_tensor_value_info(name, FLOAT, [None, 2])] for name in ("x", "z")]
    whole = helper.make_graph([helper.make_node("F0", ["x"], ["z"], domain="own")], "g", *infos)
    model = helper.make_model(whole, opset_imports=sets, functions=functions)
    model.ir_version = 8
    return model.SerializeToString()


def chain(length: int) -> bytes:
    names = ["x", *(f"n{k}" for k in range(length - 1)), "z"]
    return made_graph(lambda h: [h.make_node("Neg", [a], [b]) for a, b in pairwise(names)])


def products(count: int, size: int) -> bytes:
    """Products of constants, which the library works out while it loads the model."""
    from onnx import helper

    shape = helper.make_tensor("s", INT64, [2], [size, size])
    end = helper.make_tensor("e", INT64, [2], [2, 2])
    start = helper.make_tensor("o", INT64, [2], [0, 0])

    def nodes(h):
        value = h.make_tensor("v", FLOAT, [1], [1e-6])
        made = [h.make_node("ConstantOfShape", ["s"], ["m0"], value=value)]
        made += [h.make_node("MatMul", [f"m{k}", f"m{k}"], [f"m{k + 1}"]) for k in range(count)]
        return [*made, h.make_node("Slice", [f"m{count}", "o", "e"], ["w"]), h.make_node("MatMul", ["x", "w"], ["z"])]

    return made_graph(nodes, initializers=(shape, end, start))


def spread(rows: int, columns: int) -> bytes:
    """A sum over a row that is written out as many times as is said."""
    from onnx import helper

    shape = helper.make_tensor("s", INT64, [2], [rows, columns])

    def nodes(h):
        return [
            h.make_node("ReduceSum", ["x"], ["one"], keepdims=1),
            h.make_node("Expand", ["one", "s"], ["big"]),
            h.make_node("MatMul", ["big", "big"], ["bigger"])
            if rows == columns
            else h.make_node("Exp", ["big"], ["bigger"]),
            h.make_node("ReduceSum", ["bigger"], ["sum"], keepdims=1),
            h.make_node("Mul", ["x", "sum"], ["z"]),
        ]

    return made_graph(nodes, initializers=(shape,))


def random(kind: str, **attributes: object) -> Input:
    """A model that adds a random number to each output."""
    return graph(
        lambda h: [h.make_node(kind, ["x"], ["r"], **attributes), h.make_node("Add", ["x", "r"], ["z"])],
    )


def constant(*values: float) -> Input:
    """A model whose outputs, as doubles, are these for every record."""

    def nodes(h):
        value = h.make_tensor("v", DOUBLE, [1, 2], values)
        return [
            h.make_node("Constant", [], ["c"], value=value),
            h.make_node("Cast", ["x"], ["d"], to=DOUBLE),
            h.make_node("Mul", ["d", "n"], ["nought"]),
            h.make_node("Add", ["nought", "c"], ["z"]),
        ]

    def made() -> bytes:
        from onnx import helper

        return made_graph(
            nodes, outputs=(("z", DOUBLE, (None, 2)),), initializers=(helper.make_tensor("n", DOUBLE, [1], [0.0]),)
        )

    return lambda f: onnx(f, graph=made)


def same(shape: tuple, out: tuple | None = None, kind: int = FLOAT) -> Input:
    """A model that gives back what it takes, of this shape."""
    return graph(
        lambda h: [h.make_node("Identity", ["x"], ["z"])],
        inputs=(("x", kind, shape),),
        outputs=(("z", kind, out or shape),),
    )


# ---------------------------------------------------------------------- classes and modules of the user's
def own(folder: Path, text: str, run: Callable[[], str | None]) -> str | None:
    """What is said where a module ``brk4`` of this text can be imported."""
    (folder / "brk4.py").write_text(text)
    path = list(sys.path)
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        return run()
    finally:
        sys.path[:] = path
        sys.modules.pop("brk4", None)


BODY = (
    "import numpy as np\nclass D:\n    def __init__(self, epsilon=1.0, bounds=None, privacy_bounds=None):\n        pass\n"
    "    def fit(self, x, y):\n        self.classes_ = np.unique(y)\n        return self\n"
    "    def predict_proba(self, x):\n        return np.full((len(x), 3), 1 / 3)\n"
)


def estimator(*changes: tuple[str, str], name: str = "brk4:D", **arguments: object) -> Input:
    """Engine ``estimator`` with a class of the user's, changed at these places of `BODY`."""
    text = BODY
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    settings = {"architecture": {"name": name, **arguments}, "role": "target"}
    data = Dataset(X, Y, {}, np.array([], dtype=np.int64))
    run = lambda: given.said(lambda: asked("estimator", settings, data, [np.arange(30)], [1]) and None)  # noqa: E731
    return lambda folder: own(folder, text, run)


def fitting(line: str) -> Input:
    return estimator(
        ("        self.classes_ = np.unique(y)\n", f"        self.classes_ = np.unique(y)\n        {line}\n")
    )


def classes(value: str) -> Input:
    return estimator(("np.unique(y)", value))


def probabilities(value: str) -> Input:
    return estimator(("np.full((len(x), 3), 1 / 3)", value))


def audited_with(option: str, text: str, name: str = "brk4:D") -> Input:
    """`audit_model` of a sound ONNX model with reference or shadow models of a class of the user's."""

    def run(folder: Path) -> str | None:
        (folder / "m.onnx").write_bytes(made_graph(lambda h: [h.make_node("Identity", ["x"], ["z"])]))
        return own(folder, text, lambda: modeled(folder, "--model=m.onnx", f"--{option}-model={name}"))

    return run


def module(forward: str, before: str = "") -> Input:
    """`audit_model` of a torch module whose forward is this."""
    text = f"import os, sys, time, torch\n{before}class Net(torch.nn.Module):\n    def __init__(self, **_):\n        super().__init__()\n        self.out = torch.nn.Linear(2, 2)\n    def forward(self, x):\n        {forward}\n"

    def run(folder: Path) -> str | None:
        import torch
        from safetensors.torch import save_file

        save_file({"out.weight": torch.zeros(2, 2), "out.bias": torch.zeros(2)}, folder / "w.safetensors")
        return own(folder, text, lambda: modeled(folder, "--model=brk4:Net", "--weights=w.safetensors"))

    return run


# ---------------------------------------------------------------------- studies and declarations
def coins(folder: Path, changes: dict) -> str | None:
    """`TINY` with coins and without shadow models."""
    roles = {"target_members": None, "pool": 300, "target_nonmembers": 300, "shadow_pool": None}
    spec = merged(
        given.TINY,
        {"design": "coins", "attacks": {"shokri": None}, "shadow": None, "datasets": {"digits": {"roles": roles}}},
    )
    return given.study(folder, given.yaml.safe_dump(merged(spec, changes)))


def deep(depth: int) -> object:
    said: object = {"type": "string"}
    for _ in range(depth):
        said = {"type": "array", "items": said}
    return said


FUNCTIONS = {
    "ATTACK": "def score(target, reference, settings, seed): ...\n",
    "FIGURE": "def draw(metrics, settings, published): ...\n",
    "LAYER": "class Own: ...\n",
    "MECHANISM": "def bound(norms, clip_norm): ...\n",
    "SOURCE": "def load(spec, data_dir): ...\n",
}
NEEDED = {
    "ATTACK": {"family": "membership"}, "FIGURE": {"caption": "c"}, "LAYER": {"class": "Own"}, "MECHANISM": {}, "SOURCE": {"summary": "s"}
}  # fmt: skip


def declared(word: str, literal: str, **more: object) -> str:
    """A plugin that declares this; ``literal`` is that of a source's keys."""
    said = NEEDED[word] | more
    inner = ", ".join(f"{key!r}: {value!r}" for key, value in said.items())
    own = f", 'keys': {literal}" if word == "SOURCE" and "keys" not in more else ""
    return f"{word} = {{{inner}{own}}}\n{FUNCTIONS[word]}".replace("inf", "1e999").replace(": Ellipsis", ": ...")


def declaring(folder: Path, word: str, schema: object) -> str | None:
    """A plugin one of whose settings, or of whose source's keys, has this schema."""
    more = {} if word == "SOURCE" else {"settings": {"a": schema}}
    return given.plugin(folder, declared(word, repr({"a": schema}), **more))


def training(text: str) -> Input:
    return lambda f: trained(f, "--beyond-reach", text=text)


def predicting(value: str, before: str = "") -> Input:
    return training(f"import numpy as np, os, sys\n{before}def train(x, y, seed):\n    return lambda r: {value}\n")


def doing(line: str) -> Input:
    return training(
        f"import numpy as np, os, sys\ndef train(x, y, seed):\n    {line}\n    return lambda r: np.tile([.5] * 10, (len(r), 1))\n"
    )


EVIL = "class Evil(np.ndarray):\n    def __array_finalize__(self, other):\n        raise SystemExit(0)\n    @property\n    def shape(self):\n        os._exit(0)\n"
MUST: dict[str, Input] = {
    # ------------------------------------------------------------------ ONNX
    "onnx/scalar input": same((), (2,)),
    "onnx/a row alone": same((2,)),
    "onnx/no input": graph(lambda h: [h.make_node("Constant", [], ["z"], value=h.make_tensor("v", FLOAT, [1, 2], [1.0, 2.0]))], inputs=()),
    **{f"onnx/batch of {batch}": same((batch, 2)) for batch in (10**9, 10**12, 65_537, 2**62)},
    "onnx/output of 1e308": constant(1e308, -1e308),
    "onnx/output of 1e300": constant(1e300, 1e300),
    "onnx/output not a number": constant(float("nan"), 0.0),
    "onnx/random normal": random("RandomNormalLike"),
    "onnx/random uniform, seeded": random("RandomUniformLike", seed=5.0),
    "onnx/random, small": random("RandomNormalLike", scale=0.01),
    "onnx/random choice": graph(lambda h: [
        h.make_node("Abs", ["x"], ["a"]), h.make_node("RandomUniformLike", ["x"], ["u"]), h.make_node("Less", ["u", "a"], ["less"]),
        h.make_node("Where", ["less", "x", "u"], ["z"])]),
    "onnx/dropout that trains": lambda f: onnx(f, graph=lambda: made_graph(
        lambda h: [h.make_node("Dropout", ["x", "rate", "on"], ["z"])], initializers=_dropout())),
    "onnx/one slow product": lambda f: onnx(f, graph=lambda: spread(18_000, 18_000)),
    "onnx/sixteen terabytes": lambda f: onnx(f, graph=lambda: spread(2_000_000, 2_000_000)),
    "onnx/sixteen gigabytes": lambda f: onnx(f, graph=lambda: spread(4_000_000_000, 1)),
    "onnx/functions, 2^18": lambda f: onnx(f, graph=lambda: function_bomb(18)),
    "onnx/functions, 2^30": lambda f: onnx(f, graph=lambda: function_bomb(30)),
    "onnx/chain of 50,000": lambda f: onnx(f, graph=lambda: chain(50_000)),
    "onnx/40 products of constants": lambda f: onnx(f, graph=lambda: products(40, 4000)),
    "onnx/no classes": graph(lambda h: [h.make_node("Slice", ["x", "o", "o", "a"], ["z"])], outputs=(("z", FLOAT, (None, 0)),), initializers=()),
    # ------------------------------------------------------------------ classes for reference and shadow models
    **{f"{option}/{what}": audited_with(option, text, name) for option in ("reference", "shadow") for what, text, name in [
        ("no probabilities", "", "sklearn.svm:SVC"), ("no classifier", "", "sklearn.linear_model:LinearRegression"), ("a dict", "", "builtins:dict"),
        ("ends its process", "import os\nos._exit(0)\n", "brk4:D"), ("exits", "exit(0)\n", "brk4:D"), ("interrupts", "raise KeyboardInterrupt\n", "brk4:D"),
        ("exits when made", BODY.replace("        pass\n", "        exit(0)\n"), "brk4:D"), ("system", "", "os:system"),
        ("ends when made", BODY.replace("        pass\n", "        import os; os._exit(0)\n"), "brk4:D"), ("no fit", "class D:\n    fit = 5\n", "brk4:D")]},
    # ------------------------------------------------------------------ modules with weights
    "module/exits": module("sys.exit(0)"),
    "module/ends its process": module("os._exit(0)"),
    "module/ends when imported": module("return self.out(x)", "os._exit(0)\n"),
    "module/interrupts": module("raise KeyboardInterrupt"),
    "module/random": module("return self.out(x) + torch.rand(len(x), 2)"),
    "module/dropout": module("return torch.dropout(self.out(x) + 1, 0.5, True)"),
    "module/gives 1e300": module("return self.out(x).double() + 1e300"),
    # ------------------------------------------------------------------ classifiers
    **{f"estimator/fit: {line}": fitting(line) for line in (
        "exit(0)", "import sys; sys.exit(0)", "import os; os._exit(0)", "raise KeyboardInterrupt", "raise GeneratorExit", "1/0",
        "import os; os.kill(os.getpid(), 9)", "del self.classes_", "self.predict_proba = None", "self.fit(x, y)", "raise type('E', (Exception,), {'__str__': None})")},
    **{f"estimator/classes_: {value}": classes(value) for value in (
        "[0, 1, 10**6]", "[0, 1, -1]", "[0, 1, 1]", "['a', 'b', 'c']", "[0.5, 1, 2]", "[[0, 1, 2]]", "None", "5", "[]", "[0, 1]", "[0, 1, 2, 3]", "{0, 1, 2}", "[0, 1, float('nan')]",
        "[0, 1, 10**30]", "np.zeros((3, 0))", "[0, 1, None]", "np.array(['2020'] * 3, 'M8[Y]')")},
    **{f"estimator/says: {value}": probabilities(value) for value in (
        "np.tile([-1, 1, 1], (len(x), 1))", "np.full((len(x), 3), -1)", "np.full((len(x), 3), 5.0)", "np.zeros((len(x), 3))", "np.full((len(x), 3), np.nan)", "None", "x", "np.full((3, len(x)), 1 / 3)",
        "[['a'] * 3] * len(x)", "[[1j, 0, 0]] * len(x)", "np.full((len(x), 3), 1 / 3)[:-1]", "{}", "exit(0)", "[[1, 0, 0], [1, 0]]", "np.tile([1e300, 1, 1], (len(x), 1))",
        "type('E', (), {'__array__': lambda *a, **k: exit(0)})()", "np.tile([1.5, -.25, -.25], (len(x), 1))")},
    "estimator/a dict": estimator(name="builtins:dict"),
    "estimator/system": estimator(name="os:system"),
    "estimator/a number": estimator(name="math:pi"),
    "estimator/no signature": estimator(name="numpy:ufunc"),
    "estimator/an array": estimator(name="numpy:array"),
    "estimator/its signature": estimator(("class D:\n", "class D:\n    __signature__ = 5\n")),
    "estimator/made exits": estimator(("        pass\n", "        exit(0)\n")),
    **{f"estimator/{key}={value}": estimator(**{key: value}) for key in ("bounds", "privacy_bounds") for value in ([["a", []]], [], [[]], ["a", "b"], [0, None], [0, 1, 2], [[0, 1], [2]])},
    "estimator/an argument that it does not have": estimator(surprise=1),
    # ------------------------------------------------------------------ training functions
    **{f"training/{line}": doing(line) for line in (
        "os._exit(0)", "os._exit(3)", "sys.exit(0)", "sys.exit(3)", "raise KeyboardInterrupt", "raise GeneratorExit", "os.kill(os.getpid(), 9)", "os.closerange(3, 256)",
        "os.kill(os.getpid(), 15)", "exec('def f(): f()', globals()); globals()['f']()", "raise type('E', (BaseException,), {'__str__': lambda s: os._exit(0)})")},
    **{f"training/says: {value}": predicting(value, EVIL) for value in (
        "os._exit(0)", "np.zeros((len(r), 10)).view(Evil)", "type('E', (), {'__array__': lambda *a, **k: exit(0)})()", "type('E', (), {'__array__': lambda *a, **k: np.full((len(r), 10), np.inf)})()",
        "type('E', (), {'__array__': 5, '__len__': lambda s: 1 / 0})()", "iter([])", "np.zeros((len(r), 10), 'M8[s]')", "np.ma.masked_all((len(r), 10), dtype=object)", "np.full((len(r), 10), 1e400)", "np.full((len(r), 10), 1e308)", "np.full((len(r), 10), -1e308)")},
    "training/ends when imported": training("import os\nos._exit(0)\n"),
    "training/interrupts when imported": training("raise KeyboardInterrupt\n"),
    "training/a class that exits": training("class train:\n    def __new__(cls, *a):\n        exit(0)\n"),
    "training/what it returns cannot be called": training("import os\nclass P:\n    def __call__(self, r):\n        os._exit(0)\ndef train(x, y, seed):\n    return P()\n"),
    # ------------------------------------------------------------------ studies
    "study/tuning without tune": lambda f: given.study(f, {"datasets": {"digits": {"roles": {"tuning": 100}}}}),
    "study/coins, one repeat": lambda f: coins(f, {"repeats": 1}),
    "study/coins, a shadow pool for nothing": lambda f: coins(f, {"datasets": {"digits": {"roles": {"shadow_pool": 100}}}}),
    "study/that is the environment": lambda f: given.said(lambda: load_studies(given.CONFIG, [Path("/proc/self/environ")]) and None),
    **{f"study/target={target}": (lambda target: lambda f: given.study(f, {"defenses": [
        {"defense": "none"}, {"defense": "gaussian", "accountant": "pld", "sampler": "poisson", "target": target}]}))(target) for target in (
        {"advantage": 1e-300}, {"advantage": 5e-324}, {"advantage": 0}, {"advantage": 1}, {"advantage": -0.1}, {"advantage": 2}, {"advantage": True}, {"advantage": "0.1"}, {"advantage": None}, {"advantage": [0.1]}, {},
        {"tpr": 0.05}, {"tpr": 0.05, "fpr": 0.05}, {"tpr": 0.1, "fpr": 0.09999999999}, {"tpr": 1e-300, "fpr": 1e-301}, {"precision": 0.5}, {"precision": 0.5, "prior": 0.5}, {"precision": 0.5, "prior": 1e-300},
        {"precision": 1 - 1e-16, "prior": 0.999}, {"advantage": 0.1, "tpr": 0.2, "fpr": 0.1}, {"epsilon": 1}, {"advantage": 0.1, "fpr": 0.1})},
    # ------------------------------------------------------------------ declarations that nothing satisfies
    **{f"plugin/{word} {said!r}": (lambda word, said: lambda f: declaring(f, word, said))(word, said) for word in ("ATTACK", "FIGURE", "LAYER", "MECHANISM", "SOURCE") for said in (
        {"enum": []}, {"enum": 5}, {"anyOf": []}, {"anyOf": [None]}, {"prefixItems": []}, {"properties": []}, {"properties": {"a": 1}}, {"minItems": -1}, {"minimum": "a"}, {"minimum": 1e999}, {"required": "a"}, {"items": []},
        deep(60), {"a": 1}, {"default": b"a"}, {"default": 1j}, {"default": ...}, {"default": {1, 2}}, {"default": 2**70, "type": "integer"}, {"type": "count"}, {"type": []}, {"$ref": "#/$defs/nope"}, {"$ref": "nope"}, {"$ref": 5},
        {"type": "number", "minimum": 2, "maximum": 1, "default": 1}, {"pattern": "(a+)+$"}, {"description": ""}, b"a", 1j, ..., {1, 2})},
    **{f"plugin/variants of {word}: {variants!r}": (lambda word, variants: lambda f: given.plugin(f, declared(word, "{}", variants=variants)))(word, variants)
       for word in ("ATTACK", "FIGURE", "LAYER", "SOURCE") for variants in (
        {"a": {"like": []}}, {"a": {"like": {}}}, {"a": {"like": 5}}, {5: {}}, {None: {}}, {"a\0": {}}, {"a": {5: 1}}, {"a": {"like": "a"}}, {"A b": {}}, {}, [], {"a": None})},
    **{f"plugin/SOURCE with a key {key!r}": (lambda key: lambda f: given.plugin(f, declared("SOURCE", repr({key: {"type": "integer"}}))))(key) for key in ("source", "a\0b", "", 5, None, "a\ud800", ("a",))},
    **{f"plugin/SOURCE, {key}={value!r}": (lambda key, value: lambda f: given.plugin(f, declared("SOURCE", "{'path': {'type': 'string'}}", **{key: value})))(key, value) for key, value in [
        ("required", ["nope"]), ("required", [5]), ("required", "path"), ("suffixes", [".CSV"]), ("suffixes", [".csv"]), ("suffixes", ["csv"]), ("suffixes", [5]), ("summary", ""), ("summary", 5), ("surprise", 1), ("keys", [])]},
}  # fmt: skip
MAY: dict[str, Input] = {
    "onnx/batch of 0": same((0, 2)),
    "onnx/batch of 64": same((64, 2)),
    "onnx/output of 1e29": constant(1e29, 0.0),
    "onnx/chain of 500": lambda f: onnx(f, graph=lambda: chain(500)),
    "onnx/functions, 2^6": lambda f: onnx(f, graph=lambda: function_bomb(6)),
    "estimator/sound": estimator(),
    "estimator/bounds": estimator(bounds=[0, 1], privacy_bounds=[0, 1.5]),
    **{f"estimator/fit: {line}": fitting(line) for line in (
        "import os; os.fork()", "np.seterr(all='raise')", "import sys, os; sys.stdout.close(); os.close(1)", "import sys; sys.stderr = None", "x[:] = np.nan",
        "import os; os.chdir('/')", "import warnings; warnings.warn('x' * 10000)", "np.random.seed(0)", "import os; os.environ.clear()")},
    "estimator/classes_ of floats": classes("[0.0, 1.0, 2.0]"),
    "estimator/changes what it is asked": probabilities("x.fill(np.nan) or np.full((len(x), 3), 1 / 3)"),
    **{f"training/{line}": doing(line) for line in (
        "os.fork()", "np.seterr(all='raise')", "sys.stdout.close()", "sys.stderr.close(); os.close(2)", "os.close(1)", "sys.stdout = sys.stderr = None", "os.chdir('/')", "x.fill(np.nan)", "os.environ.clear()",
        "sys.modules.clear()", "import gc; gc.disable()", "import signal; signal.alarm(60)", "import atexit; atexit.register(os._exit, 0)", "import threading; threading.Thread(target=lambda: exec('while 1: pass'), daemon=True).start()",
        "os.setsid() if os.getpid() != os.getpgrp() else None", "np.random.seed = None", "import warnings; warnings.simplefilter('error')")},
    **{f"training/says: {value}": predicting(value) for value in (
        "r.fill(np.nan) or np.zeros((len(r), 10))", "np.zeros((len(r), 10), bool)", "np.full((len(r), 10), -1e30)", "np.full((len(r), 10), 5e-324)", "np.eye(10)[[0] * len(r)] * 1e29",
        "np.ma.masked_all((len(r), 10))", "np.zeros((len(r), 10), '>f2')", "np.zeros((len(r), 20))[:, ::2]", "[[1] * 10] * len(r)")},
}  # fmt: skip


def _dropout() -> tuple:
    from onnx import helper

    return helper.make_tensor("rate", FLOAT, [], [0.5]), helper.make_tensor("on", 9, [], [True])
