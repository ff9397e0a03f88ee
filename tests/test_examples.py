"""The examples in docstrings say what is so."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import dp_leakage

ROOT = Path(dp_leakage.__file__).parent
FILES = [path for path in sorted(ROOT.rglob("*.py")) if ">>> " in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.relative_to(ROOT).with_suffix("").as_posix())
def test_examples(file):
    parts = (ROOT.name, *file.relative_to(ROOT).with_suffix("").parts)
    module = import_module(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    failed, attempted = doctest.testmod(module)
    assert attempted
    assert not failed


def test_there_are_examples():
    assert len(FILES) >= 5
