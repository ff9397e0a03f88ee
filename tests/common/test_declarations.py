"""What a file says of itself is read without running it, in the package and of a plugin alike."""

import ast
from pathlib import Path

import pytest

import dp_leakage
from dp_leakage.common import declarations, kinds
from dp_leakage.common.declarations import each_of, settings_of
from dp_leakage.common.errors import UserError
from dp_leakage.provenance.fingerprint import DECLARED, _code

PACKAGE = Path(dp_leakage.__file__).parent


def test_cutting_a_declaration_out_reads_what_parsing_the_file_reads():
    found = 0
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text()
        parsed = {
            target.id: ast.literal_eval(node.value)
            for node in ast.parse(text).body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict)
            for target in node.targets
            if isinstance(target, ast.Name) and target.id in DECLARED
        }
        cut = {word: declarations.declared(text, word) for word in DECLARED}
        assert {word: given for word, given in cut.items() if given is not None} == parsed, path
        found += len(parsed)
    assert found > 10


def test_another_declaration_is_no_other_code(tmp_path):
    text = (PACKAGE / "attacks" / "membership" / "yeom.py").read_text()
    (tmp_path / "a.py").write_text(text)
    (tmp_path / "b.py").write_text(text.replace('"probability_floor": 0.0', '"probability_floor": 0.5'))
    (tmp_path / "c.py").write_text(text.replace("import numpy", "import numpy.linalg"))
    a, b, c = (_code(tmp_path / f"{name}.py") for name in "abc")
    assert "probability_floor" in text
    assert (a == b, a == c) == (True, False)


def test_what_is_only_called_like_a_declaration_is_code(tmp_path):
    for name, value in (("a", "fig"), ("b", "figures")):
        (tmp_path / f"{name}.py").write_text(f'FIGURE = "{value}"\n')
    a, b = (_code(tmp_path / f"{name}.py") for name in "ab")
    assert a != b
    assert declarations.declared('FIGURE = "fig"\n', "FIGURE") is None


def test_variants_change_what_the_file_says_setting_by_setting():
    given = {
        "family": "membership",
        "settings": {"a": 1, "b": 2},
        "variants": {
            "plain": {},
            "strong": {"settings": {"a": 5}, "aware": False},
            "both": {"like": "strong", "settings": {"b": 6}},
        },
    }
    assert each_of("x.py", "ATTACK", "x", given) == {
        "plain": {"family": "membership", "settings": {"a": 1, "b": 2}},
        "strong": {"family": "membership", "settings": {"a": 5, "b": 2}, "aware": False},
        "both": {"family": "membership", "settings": {"a": 5, "b": 6}, "aware": False},
    }
    assert list(each_of("x.py", "ATTACK", "x", {"family": "membership"})) == ["x"]


@pytest.mark.parametrize(
    "variants", [[], {}, {"a": 1}, {"a": {"like": "b"}}, {"a": {"like": "a"}}, {"a": {"like": ["b"]}}]
)
def test_variants_that_are_none_are_refused(variants):
    with pytest.raises(UserError, match=r"^x\.py: (ATTACK has variants|'a' is like)"):
        each_of("x.py", "ATTACK", "x", {"variants": variants})


def nested(depth):
    return ["list", nested(depth - 1)] if depth else "text"


@pytest.mark.parametrize("word", kinds.MADE)
def test_the_example_of_every_kind_is_one(word):
    assert kinds.EXAMPLES[word][0] == word
    assert kinds.read(kinds.EXAMPLES[word]).words


@pytest.mark.parametrize(
    ("said", "holds", "not_holds"),
    [
        ("count", [1, 7], [0, 1.0, True, None]),
        ("number", [-1.5, 3], [True, "3", float("inf")]),
        (["number", "above", 0, "below", 1], [0.5], [0, 1]),
        (["number", "from", 0, "to", 1], [0, 1], [-0.1, 1.1]),
        (["whole", "from", 1, "to", 18], [1, 18], [0, 19, 1.0]),
        (["choice", "low", 3], ["low", 3], ["lo", 3.0]),
        (["list", "count"], [[], [1, 2]], [[0], 1]),
        (["list", "count", 2], [[1, 2]], [[1], [1, 2, 3]]),
        (["some", "text"], [["a"]], [[], [""]]),
        (["distinct", "text"], [["a", "b"], []], [["a", "a"], [1]]),
        (["row", "text", "number"], [["l1", 0.5]], [["l1"], [0.5, "l1"], "l1"]),
        (["mapping", {"label": "text"}], [{"label": "a"}], [{}, {"label": 1}, {"label": "a", "b": 1}]),
        (["either", "null", ["list", "count"]], [None, [1]], [0]),
        (["worded", "a list of folder names", "texts"], [["a"]], [[1]]),
    ],
)
def test_a_kind_holds_what_it_says(said, holds, not_holds):
    kind = kinds.read(said)
    assert all(map(kind.holds, holds))
    assert not any(map(kind.holds, not_holds))


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ("coutn", "did you mean 'count'"),
        (["numbr", "above", 0], "did you mean 'number'"),
        (["number", "over", 0], "for example ['number', 'from', 0, 'below', 1]"),
        (["number", "above"], "for example"),
        (["whole", "above", 1], "for example"),
        (["list"], "for example ['list', 'count']"),
        (["list", "coutn"], "did you mean 'count'"),
        ([], "is not a kind"),
        (7, "is not a kind"),
        (None, "is not a kind"),
        (["mapping", ["label"]], "for example"),
        (["count", 3], "is not a kind"),
        (["number", "from", 2, "to", 1], "is not a kind"),
        (["number", "above", 1, "to", 1], "is not a kind"),
        (["number", "from", "a"], "is not a kind"),
        (["number", "from", 1e999], "is not a kind"),
        (["number", "from", 0, "from", 1], "is not a kind"),
        (["whole", "from", 0.5], "is not a kind"),
        (["whole", "from", 2**63], "is not a kind"),
        (["choice"], "is not a kind"),
        (["choice", {"a": 1}], "is not a kind"),
        (["list", "count", 0], "is not a kind"),
        (["list", "count", "a"], "is not a kind"),
        (["row"], "is not a kind"),
        (["mapping", {}], "is not a kind"),
        (["mapping", {"": "text"}], "is not a kind"),
        (["either"], "is not a kind"),
        (["either", None], "None is not a kind"),
        (["worded", 5, "text"], "is not a kind"),
        (nested(30), "nested deeper than 10 levels"),
    ],
)
def test_what_is_no_kind_is_refused_in_a_sentence(said, sentence):
    with pytest.raises(UserError) as error:
        settings_of("x.py", {"settings": {"a": 1}, "kinds": {"a": said}})
    assert sentence in str(error.value)
    assert str(error.value).startswith("x.py: kinds, 'a': ")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"settings": {"a": 0}, "kinds": {"a": "count"}}, "the default of 'a' is 0; valid is a whole number from 1 on"),
        ({"settings": {"alpha": 0.1}, "kinds": {"alhpa": "number"}}, "no setting; did you mean 'alpha'"),
        ({"settings": [1]}, "settings is [1]"),
        ({"settings": {"a": 1}, "kinds": ["count"]}, "kinds is ['count']; valid is a mapping"),
    ],
)
def test_settings_that_do_not_fit_are_refused(given, sentence):
    with pytest.raises(UserError) as error:
        settings_of("x.py", given)
    assert sentence in str(error.value)


def test_of_a_setting_without_a_kind_the_default_says_what_it_may_hold():
    _, found = settings_of("x.py", {"settings": {"threshold": 0.9, "names": [], "any": None}})
    assert (found["threshold"].holds(1), found["threshold"].holds("1")) == (True, False)
    assert (found["names"].holds(["a"]), found["names"].holds("a")) == (True, False)
    assert found["any"].holds(object())
