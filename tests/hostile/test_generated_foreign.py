# ruff: noqa: E501 (tables of input)
"""Generated models, trainings, classifiers, targets and declarations: each is taken or ends in one sentence, and soon.

The seeds are fixed. Each surface has a count of inputs of its own.
"""

import random
import sys
import time
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "data")]
import foreign  # noqa: E402
import given  # noqa: E402
from invented import made_graph, onnx  # noqa: E402
from test_generated import VALUES  # noqa: E402

pytestmark = pytest.mark.fuzz
SOON = 15  # seconds
MODELS, TRAININGS, CLASSIFIERS, TUNES, TARGETS, SOURCES, LAYERS = 60, 60, 80, 60, 60, 60, 60
PLAIN = [value for value in VALUES if "\ud800" not in str(value) and "\x00" not in str(value)]
NODES = ["Neg", "Exp", "Log", "Sqrt", "Softmax", "Reciprocal", "Not", "Transpose", "RandomNormalLike", "Shape", "Flatten", "Nothing", "NonZero", "Dropout"]  # fmt: skip
EXPRESSIONS = [
    "None", "5", "'a'", "[]", "{}", "1/0", "exit()", "exit(3)", "np.nan", "np.inf", "-np.inf", "1e308", "-1", "0", "1", "r", "r[:0]", "r.T", "len(r)", "lambda r: r", "object()",
    "np.zeros((len(r), 10))", "np.eye(10)[[0] * len(r)]", "np.full((len(r), 3), 1 / 3)", "np.full((len(r), 10), .1)", "np.array(None)", "np.array(['a'] * len(r))", "np.zeros((len(r), 10, 2))", "1j",
    "__import__('os')._exit(0)", "__import__('os').fork() and np.zeros((len(r), 10))", "__import__('sys').stdout.close()", "np.seterr(all='raise')", "(_ for _ in ())", "next(iter([]))", "np.ma.masked_all((len(r), 3))",
]  # fmt: skip


def judged(run, shown):
    begun = time.monotonic()
    try:
        text = run()
    except Exception as error:
        raise AssertionError(f"{shown!r}: {type(error).__name__}: {error}") from error
    assert text is None or given.is_sentence(text), (shown, text)
    assert time.monotonic() - begun < SOON, shown


def folders(tmp_path, count):
    for case in range(count):
        (folder := tmp_path / str(case)).mkdir()
        yield folder


def test_models_of_any_nodes_shapes_and_bytes(tmp_path):
    rng = random.Random(11)
    sizes = [None, "n", -1, 0, 1, 2, 3, 7, 10**9, 2**62]
    for folder in folders(tmp_path, MODELS):
        names = ["x", *(f"n{k}" for k in range(rng.randrange(4))), "z"]
        kinds = [rng.choice(NODES) for _ in names[1:]]

        def nodes(h, names=names, kinds=kinds):
            return [h.make_node(kind, [a], [b]) for kind, a, b in zip(kinds, names[:-1], names[1:], strict=True)]

        def sides(name, sound):
            shape = [rng.choice(sizes) for _ in range(rng.randrange(4))] if rng.random() < 0.5 else [None, 2]
            return ((name, sound if rng.random() < 0.8 else rng.randrange(1, 14), shape),)

        content = bytearray(made_graph(nodes, inputs=sides("x", 1), outputs=sides("z", 1)))
        for _ in range(rng.choice([0, 0, 1, 20])):
            content[rng.randrange(len(content))] = rng.randrange(256)
        if rng.random() < 0.1:
            del content[rng.randrange(len(content)) :]
        judged(lambda folder=folder, content=content: onnx(folder, bytes(content)), (kinds, bytes(content)))


def test_trainings_that_do_and_say_anything(tmp_path):
    rng = random.Random(12)
    for folder in folders(tmp_path, TRAININGS):
        does, says = rng.choice(EXPRESSIONS), rng.choice(EXPRESSIONS)
        text = f"import numpy as np\ndef train(x, y, seed):\n    r = x\n    {does}\n    return lambda r: {says}\n"
        judged(lambda folder=folder, text=text: foreign.training(text)(folder), text)


def test_classifiers_that_do_and_say_anything(tmp_path):
    rng = random.Random(13)
    for folder in folders(tmp_path, CLASSIFIERS):
        changes = [("        self.classes_ = np.unique(y)\n", f"        r = x\n        self.classes_ = {rng.choice([*EXPRESSIONS, 'np.unique(y)'])}\n")]  # fmt: skip
        if rng.random() < 0.7:
            changes.append(("    def predict_proba(self, x):\n        return np.full((len(x), 3), 1 / 3)\n", f"    def predict_proba(self, r):\n        return {rng.choice(EXPRESSIONS)}\n"))  # fmt: skip
        more = {rng.choice(["bounds", "privacy_bounds", "epsilon"]): rng.choice(PLAIN)} if rng.random() < 0.5 else {}
        judged(lambda f=folder, c=changes, m=more: foreign.estimator(*c, **m)(f), (changes, more))


def test_tune_with_any_value(tmp_path):
    rng = random.Random(14)
    for folder in folders(tmp_path, TUNES):
        rates = rng.choice([rng.choice(VALUES), [rng.choice(VALUES)], [0.1, rng.choice(VALUES)], [0.1, 0.01]])
        tune = rng.choice([rates, {"learning_rate": rates}, {"learning_rate": rates, "more": 1}])
        roles = given.TINY["datasets"]["digits"]["roles"] | {"tuning": rng.choice([0, 1, 19, 40, 200, *VALUES])}
        dataset = given.TINY["datasets"]["digits"] | ({"roles": roles} if rng.random() < 0.9 else {})
        spec = {**given.TINY, "datasets": {"digits": dataset}, "tune": tune}
        judged(lambda f=folder, s=spec: given.study(f, given.yaml.safe_dump(s)), (tune, roles["tuning"]))


def test_targets_of_any_value(tmp_path):
    rng = random.Random(15)
    numbers = [1e-300, 1e-9, 1e-6, 0.001, 0.01, 0.1, 0.5, 0.9, 0.999999, 1 - 1e-16, *VALUES]
    for folder in folders(tmp_path, TARGETS):
        keys = rng.sample(["advantage", "tpr", "fpr", "precision", "prior", "other"], rng.randint(1, 3))
        target = {key: rng.choice(numbers) for key in keys}
        noise = {"accountant": "pld", "sampler": rng.choice(["poisson", "shuffle"]), "target": target}
        defenses = [{"defense": "none"}, {"defense": "gaussian", **noise}]
        spec = given.TINY | {"defenses": defenses}
        judged(lambda f=folder, s=spec: given.study(f, given.yaml.safe_dump(s)), target)


def schema(rng, depth=0):
    """Something that may be a schema."""
    if depth > 3 or rng.random() < 0.2:
        return rng.choice([{}, {"type": "string"}, {"type": ["null", "integer"]}, *PLAIN])
    inner = [schema(rng, depth + 1) for _ in range(rng.randrange(3))]
    rules = {
        "type": rng.choice(["number", "integer", "array", "object", "null", "boolean", *PLAIN]),
        rng.choice(["minimum", "maximum", "exclusiveMinimum", "minItems", "maxItems"]): rng.choice([0, 1, -1, *PLAIN]),
        rng.choice(["enum", "anyOf", "prefixItems", "required"]): inner,
        rng.choice(["items", "additionalProperties", "const", "$ref"]): rng.choice([*inner, *PLAIN]),
        "properties": {"a": schema(rng, depth + 1)},
        "default": rng.choice(PLAIN),
        "other": 1,
    }
    return {key: rules[key] for key in rng.sample(list(rules), rng.randint(0, 3))}


def test_sources_that_declare_anything(tmp_path):
    rng = random.Random(16)
    for folder in folders(tmp_path, SOURCES):
        keys = {rng.choice(["path", "a", "members", *PLAIN[-5:]]): schema(rng) for _ in range(rng.randint(1, 2))}
        own = rng.choice(["required", "suffixes", "summary", "variants", "other"])
        more = {own: rng.choice([schema(rng), ["path"], [".own"]])} if rng.random() < 0.5 else {}
        text = foreign.declared("SOURCE", repr(keys), **more)
        judged(lambda f=folder, t=text: given.plugin(f, t), text)


def test_layers_that_declare_and_are_anything(tmp_path):
    rng = random.Random(17)
    bodies = ["class Own: ...\n", "class Own:\n    def __init__(self, a=1):\n        exit(0)\n", "def Own(a=1): return None\n", "Own = 5\n",
              "from dp_leakage.models.layers.base import Layer\nclass Own(Layer):\n    def __init__(self, a=1):\n        pass\n"]  # fmt: skip
    for folder in folders(tmp_path, LAYERS):
        more = {"settings": {"a": schema(rng) if rng.random() < 0.7 else rng.choice(PLAIN)}}
        text = foreign.declared("LAYER", "", **more).rpartition("class Own")[0] + rng.choice(bodies)
        judged(lambda f=folder, t=text: given.plugin(f, t, use=made), text)


def made(name):
    from dp_leakage.models.layers.own import own_layer

    own_layer(name, {})


def test_four_hundred_and_forty_are_generated():
    assert MODELS + TRAININGS + CLASSIFIERS + TUNES + TARGETS + SOURCES + LAYERS == 440
