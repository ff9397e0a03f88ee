import pytest

import dp_leakage.provenance.fingerprint as fp


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of three modules: step imports helper, helper imports leaf inside a function."""
    (tmp_path / "__init__.py").write_text("")
    (tmp_path / "step.py").write_text("from dp_leakage.helper import f\n\n\ndef main():\n    return f()\n")
    (tmp_path / "helper.py").write_text("def f():\n    from dp_leakage import leaf\n    return leaf.VALUE\n")
    (tmp_path / "leaf.py").write_text("VALUE = 1\n")
    (tmp_path / "stranger.py").write_text("VALUE = 1\n")
    monkeypatch.setattr(fp, "ROOT", tmp_path)
    yield tmp_path
    _forget()


def _forget():
    for cached in (fp._path, fp._tree, fp._imports, fp._normalised):
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
