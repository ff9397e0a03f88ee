import ast
import os
import re
import shutil

import pytest

import dp_leakage.provenance.fingerprint as fp
from dp_leakage.common.errors import UserError


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of three modules: step imports helper, helper imports leaf inside a function."""
    (tmp_path / "__init__.py").write_text("")
    (tmp_path / "step.py").write_text("from dp_leakage.helper import f\n\n\ndef main():\n    return f()\n")
    (tmp_path / "helper.py").write_text("def f():\n    from dp_leakage import leaf\n    return leaf.VALUE\n")
    (tmp_path / "leaf.py").write_text("VALUE = 1\n")
    (tmp_path / "stranger.py").write_text("VALUE = 1\n")
    monkeypatch.setattr(fp, "ROOT", tmp_path)
    monkeypatch.setattr(fp, "_kept", fp._Kept())
    yield tmp_path
    _forget()


def _forget():
    for cached in (fp._path, fp._parsed, fp._imports):
        cached.cache_clear()


def _fingerprint(**options):
    _forget()
    return fp.code_fingerprint("dp_leakage.step", **options)


@pytest.mark.parametrize("module", ["step", "helper", "leaf"])
def test_an_edit_to_the_step_or_to_anything_it_imports_changes_the_fingerprint(package, module):
    before = _fingerprint()
    path = package / f"{module}.py"
    path.write_text(path.read_text() + "\n\nADDED = 2\n")
    assert _fingerprint() != before


def test_an_edit_to_a_module_that_is_not_imported_changes_nothing(package):
    before = _fingerprint()
    (package / "stranger.py").write_text("VALUE = 2\n")
    assert _fingerprint() == before


def test_comments_docstrings_and_layout_change_nothing(package):
    before = _fingerprint()
    (package / "helper.py").write_text(
        '"""A module."""\n# why\n\n\ndef f():\n    """Docstring."""\n\n    from dp_leakage import leaf  # here\n\n'
        "    return (leaf\n            .VALUE)\n"
    )
    assert _fingerprint() == before


def test_fields_that_only_later_versions_of_python_have_change_nothing_while_they_are_empty():
    code = "def f(a, *, b=None): return [a, b]\nclass C(list): pass"
    plain, later = ast.parse(code), ast.parse(code)
    for node in ast.walk(later):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            node._fields = tuple(dict.fromkeys((*node._fields, "type_params")))
            node.type_params = []
    assert fp._normalized(later) == fp._normalized(plain)


@pytest.mark.parametrize(
    ("one", "other"),
    [("f()", "f(None)"), ("f(1)", "f('1')"), ("[]", "()"), ("a < b", "a <= b"), ("x = 1", "x: int = 1"),
     ("return_ = [a, b]", "return_ = [[a], b]"), ("f'{a}'", "f'{a!r}'"), ("def f(a): 0", "def f(*a): 0"),
     ("1", "True"), ("1", "1.0"), ("def f(a=None): 0", "def f(a): 0"), ("lambda a, /: 0", "lambda a: 0")],
)  # fmt: skip
def test_code_that_does_something_else_has_another_text(one, other):
    assert fp._normalized(ast.parse(one)) != fp._normalized(ast.parse(other))


def test_an_excluded_module_and_what_only_it_imports_do_not_count(package):
    before = _fingerprint(exclude=["dp_leakage.helper"])
    (package / "leaf.py").write_text("VALUE = 2\n")
    (package / "helper.py").write_text("def f():\n    return 3\n")
    assert _fingerprint(exclude=["dp_leakage.helper"]) == before


def test_a_relative_import_is_followed(package):
    (package / "step.py").write_text("from .helper import f\n")
    before = _fingerprint()
    (package / "leaf.py").write_text("VALUE = 2\n")
    assert _fingerprint() != before


# ------------------------------------------------------------------ what was parsed is kept for the next process
def _next_process(file, **options):
    fp.keep_in(file)
    return _fingerprint(**options)


def _unparsable(*_):
    raise AssertionError("parsed again")


def test_what_was_parsed_before_is_not_parsed_again_and_says_the_same(package, tmp_path_factory, monkeypatch):
    kept = tmp_path_factory.mktemp("kept") / "code.json"
    (package / "step.py").write_text("import os\nfrom .helper import f\nfrom . import stranger\n")
    alone = _fingerprint()
    assert _next_process(kept) == alone
    assert [path.name for path in kept.parent.iterdir()] == ["code.json"]
    monkeypatch.setattr(fp, "_tree", _unparsable)
    assert _next_process(kept) == alone


def test_an_edit_that_keeps_size_and_date_counts_all_the_same(package, tmp_path_factory):
    kept = tmp_path_factory.mktemp("kept") / "code.json"
    before, leaf = _next_process(kept), package / "leaf.py"
    dates = leaf.stat()
    leaf.write_text("VALUE = 2\n")
    os.utime(leaf, ns=(dates.st_atime_ns, dates.st_mtime_ns))
    after = _next_process(kept)
    assert after != before
    leaf.write_text("VALUE = 1\n")
    assert _next_process(kept) == before


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b'{"made_by": 1, "found": {}}', b"\xff", None])
def test_a_file_of_another_version_a_cut_one_and_a_folder_without_rights_cost_time_only(
    package, tmp_path_factory, content
):
    kept = tmp_path_factory.mktemp("kept") / "code.json"
    alone = _fingerprint()
    kept.mkdir() if content is None else kept.write_bytes(content)
    assert _next_process(kept) == alone
    assert _next_process(kept.parent / "missing" / "code.json") == alone


def test_what_another_python_found_is_not_taken(package, tmp_path_factory, monkeypatch):
    kept = tmp_path_factory.mktemp("kept") / "code.json"
    before = _next_process(kept)
    kept.write_text(re.sub(r'"[0-9a-f]{32}", \[\]\]', '"' + "0" * 32 + '", []]', kept.read_text()))
    assert _next_process(kept) != before, "what is kept is used"
    monkeypatch.setattr(fp.sys, "version", "3.99")
    assert _next_process(kept) == before


# ------------------------------------------------------------------ whether the code is what a run planned with
def _still(fingerprint, file, **options):
    _forget()
    return fp.is_unchanged(fingerprint, file, **options)


def test_code_is_current_until_an_edit_of_what_the_step_reaches_and_again_when_that_is_taken_back(
    package, tmp_path_factory
):
    kept = tmp_path_factory.mktemp("kept") / "code.json"
    planned, leaf = _next_process(kept), package / "leaf.py"
    before = leaf.read_text()
    for text, current in ((before, True), ("VALUE = 1  # one\n", True), ("VALUE = 2\n", False), (before, True)):
        leaf.write_text(text)
        assert _still(planned, kept) == current
    (package / "stranger.py").write_text("VALUE = 2\n")
    assert _still(planned, kept)
    leaf.unlink()
    assert not _still(planned, kept)


def test_what_was_excluded_from_a_fingerprint_may_be_edited(package, tmp_path_factory):
    kept = tmp_path_factory.mktemp("kept") / "code.json"
    planned = _next_process(kept, exclude=("dp_leakage.leaf",))
    (package / "leaf.py").write_text("VALUE = 2\n")
    assert _still(planned, kept)


@pytest.mark.parametrize("code_is_known", [False, True])
def test_an_edit_to_a_file_of_the_user_s_is_found_where_the_package_s_code_is_known_too(
    package, tmp_path_factory, code_is_known
):
    mine = tmp_path_factory.mktemp("mine") / "mine.py"
    mine.write_text("A = 1\n")
    kept = tmp_path_factory.mktemp("kept") / "code.json"
    planned = _next_process(kept, extra_files=[mine])
    assert _still(planned, kept, code_is_known=code_is_known)
    mine.write_text("A = 2\n")
    assert not _still(planned, kept, code_is_known=code_is_known)
    mine.unlink()
    assert not _still(planned, kept, code_is_known=code_is_known)


def test_a_fingerprint_is_known_to_another_version_of_python_and_after_a_run_beside(
    package, tmp_path_factory, monkeypatch
):
    kept = tmp_path_factory.mktemp("kept") / "code.json"
    fp.keep_in(kept)
    beside = fp._Kept(kept)  # planned at the same time, and saved later
    planned = _fingerprint()
    beside.recipes, beside.grown = {"0" * 16: [[[], [], []]]}, True
    beside.save()
    monkeypatch.setattr(fp.sys, "version", "3.99")
    assert _still(planned, kept)
    (package / "leaf.py").write_text("VALUE = 2\n")
    assert not _still(planned, kept)


@pytest.fixture
def twins(tmp_path_factory):
    """Two files of the user's with the same name and content."""
    files = [tmp_path_factory.mktemp(study) / "mine.py" for study in ("one", "two")]
    for file in files:
        file.write_text("A = 1\n")
    return files


@pytest.mark.parametrize("edited", [0, 1])
@pytest.mark.parametrize("together", [True, False], ids=["one run", "a run beside"])
def test_an_edit_to_either_of_two_files_of_one_name_and_content_is_found(
    package, tmp_path_factory, twins, edited, together
):
    kept = tmp_path_factory.mktemp("kept") / "code.json"
    fp.keep_in(kept)
    beside = fp._Kept(kept)  # begins now, before the file knows anything
    planned = _fingerprint(extra_files=[twins[0]])
    if not together:
        fp._kept = beside
    assert _fingerprint(extra_files=[twins[1]]) == planned
    assert _still(planned, kept)
    twins[edited].write_text("A = 2\n")
    assert not _still(planned, kept)


@pytest.mark.parametrize("content", ["A = 2\n", "A =\n", None], ids=["edited", "no Python", "gone"])
def test_a_run_that_plans_with_one_of_two_such_files_does_not_ask_for_the_other_as_it_was(
    package, tmp_path_factory, twins, content
):
    kept = tmp_path_factory.mktemp("kept") / "code.json"
    fp.keep_in(kept)
    planned = {_fingerprint(extra_files=[file]) for file in twins}
    twins[0].unlink() if content is None else twins[0].write_text(content)
    _forget()
    assert {_next_process(kept, extra_files=[twins[1]])} == planned
    assert _still(*planned, kept)
    twins[1].write_text("A = 3\n")
    assert not _still(*planned, kept)


def test_where_nothing_is_known_of_a_fingerprint_the_code_counts_as_current(package, tmp_path_factory):
    kept = tmp_path_factory.mktemp("kept") / "code.json"
    planned = _next_process(kept)
    (package / "leaf.py").write_text("VALUE = 2\n")
    assert _still(planned, kept.parent / "missing.json")
    assert _still("0" * 16, kept)


# ------------------------------------------------------------------ what a user's file imports of the user's own
@pytest.fixture
def own(tmp_path, monkeypatch):
    """A user's working folder with the package `nets`."""
    for file in ("nets/__init__.py", "nets/blocks.py", "nets/sub/__init__.py", "nets/sub/deep.py", "helper.py"):
        (tmp_path / file).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / file).write_text("B = 1\n")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    _forget()


def _of_file(path):
    _forget()
    return fp.code_fingerprint(extra_files=[path])


@pytest.mark.parametrize(
    ("file", "statement", "counted"),
    [
        ("mine.py", "import nets.blocks", {"nets/__init__.py", "nets/blocks.py"}),
        ("mine.py", "from nets.blocks import B", {"nets/__init__.py", "nets/blocks.py"}),
        ("mine.py", "from nets import blocks", {"nets/__init__.py", "nets/blocks.py"}),
        ("mine.py", "from nets import B", {"nets/__init__.py"}),
        ("mine.py", "import nets", {"nets/__init__.py"}),
        ("mine.py", "from nets.sub import deep", {"nets/__init__.py", "nets/sub/__init__.py", "nets/sub/deep.py"}),
        ("nets/mine.py", "from . import blocks", {"nets/__init__.py", "nets/blocks.py"}),
        ("nets/mine.py", "from .blocks import B", {"nets/blocks.py"}),
        ("nets/mine.py", "from .sub.deep import B", {"nets/sub/__init__.py", "nets/sub/deep.py"}),
        ("nets/mine.py", "from nets.blocks import B", {"nets/__init__.py", "nets/blocks.py"}),
        ("nets/sub/mine.py", "from ..blocks import B", {"nets/blocks.py"}),
        ("nets/sub/mine.py", f"from {'.' * 99} import B", set()),
        ("plugins/mine.py", "import helper", {"helper.py"}),
        ("mine.py", "import os, dp_leakage.attacks", set()),
    ],
)
def test_an_edit_to_what_a_user_s_file_imports_changes_the_fingerprint(own, file, statement, counted):
    mine = own / file
    mine.parent.mkdir(exist_ok=True)
    mine.write_text(f"{statement}\n")
    before, changing = _of_file(mine), set()
    for path in own.rglob("*.py"):
        if path != mine:
            path.write_text("B = 2\n")
            changing |= {str(path.relative_to(own))} if _of_file(mine) != before else set()
            path.write_text("B = 1\n")
    assert changing == counted


def test_what_a_user_s_package_imports_of_its_own_counts_and_may_go_in_circles(own):
    (own / "mine.py").write_text("from nets import B\n")
    (own / "nets" / "__init__.py").write_text("from .sub import deep\nimport helper\n")
    (own / "nets" / "sub" / "deep.py").write_text("from .. import blocks\n")
    (own / "nets" / "blocks.py").write_text("import nets\n")
    before = _of_file(own / "mine.py")
    for file in ("nets/blocks.py", "helper.py"):
        text = (own / file).read_text()
        (own / file).write_text(f"{text}B = 2\n")
        assert _of_file(own / "mine.py") != before
        (own / file).write_text(text)
    assert _of_file(own / "mine.py") == before


def test_the_fingerprint_of_a_user_s_package_is_the_same_in_another_folder(own, tmp_path_factory, monkeypatch):
    (own / "mine.py").write_text("from nets import blocks\nfrom nets.sub import deep\n")
    before = _of_file(own / "mine.py")
    other = tmp_path_factory.mktemp("other") / "a folder"
    shutil.copytree(own, other)
    monkeypatch.chdir(other)
    assert _of_file(other / "mine.py") == before


def test_two_files_of_a_user_s_package_that_change_places_change_the_fingerprint(own):
    (own / "mine.py").write_text("import nets.sub\n")
    (own / "nets" / "__init__.py").write_text("B = 2\n")
    before = _of_file(own / "mine.py")
    (own / "nets" / "__init__.py").write_text("B = 1\n")
    (own / "nets" / "sub" / "__init__.py").write_text("B = 2\n")
    assert _of_file(own / "mine.py") != before


def test_modules_of_an_environment_do_not_count(own, monkeypatch):
    installed = own / "lib" / "site-packages"
    installed.mkdir(parents=True)
    (installed / "theirs.py").write_text("B = 1\n")
    monkeypatch.setenv("PYTHONPATH", str(installed))
    (own / "mine.py").write_text("import theirs\n")
    before = _of_file(own / "mine.py")
    (installed / "theirs.py").write_text("B = 2\n")
    assert _of_file(own / "mine.py") == before


def test_the_fingerprint_of_a_file_with_its_neighbors_is_that_of_earlier_versions(own):
    (own / "mine.py").write_text("import os\nimport helper\nfrom torch import nn\n")
    assert _of_file(own / "mine.py") == "5d15c4577b0d4372"


@pytest.mark.parametrize(
    "text",
    [
        "import importlib\nimportlib.import_module('helper')\n",
        "from importlib import import_module\nimport_module('helper')\n",
        "def score():\n    __import__('helper')\n",
        "FILES = ['helper.py']\nimport importlib\nimportlib.import_module('hel' + 'per')\n",
    ],
)
def test_a_module_that_is_imported_by_name_counts(own, text):
    (own / "mine.py").write_text(text)
    before = _of_file(own / "mine.py")
    (own / "helper.py").write_text("B = 2\n")
    assert _of_file(own / "mine.py") != before


def test_files_that_code_says_it_reads_count_byte_by_byte(own):
    (own / "table.csv").write_text("a,b\n")
    (own / "mine.py").write_text("import helper\n")
    (own / "helper.py").write_text("FILES = ['table.csv']\n")
    before = _of_file(own / "mine.py")
    (own / "table.csv").write_text("a,c\n")
    assert _of_file(own / "mine.py") != before
    (own / "table.csv").write_text("a,b\n")
    assert _of_file(own / "mine.py") == before


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("FILES = ['nowhere.csv']\n", "FILES has 'nowhere.csv', which is not a file"),
        ("FILES = 5\n", "FILES must be a list of names"),
        ("FILES = ['a' + 'b']\n", "FILES must be a list of names"),
        ("FILES = [5]\n", "FILES must be a list of names"),
        ("FILES = ['']\n", "FILES must be a list of names"),
    ],
)
def test_a_list_of_files_that_is_none_is_refused(own, text, words):
    (own / "mine.py").write_text(text)
    with pytest.raises(UserError, match=words):
        _of_file(own / "mine.py")
