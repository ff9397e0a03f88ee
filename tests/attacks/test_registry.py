"""The registry of attacks."""

import importlib
import subprocess
import sys

import pytest

from dp_leakage.attacks import ATTACKS


def test_importing_the_registry_imports_no_library():
    code = "import sys, dp_leakage.attacks; print({'torch', 'numpy', 'pandas', 'sklearn'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set()"


@pytest.mark.parametrize("name", ATTACKS)
def test_every_attack_scores_and_those_that_learn_fit(name):
    module = importlib.import_module(ATTACKS[name].module)
    assert callable(module.score)
    assert hasattr(module, "fit") == ATTACKS[name].learns
    assert ATTACKS[name].needs or not ATTACKS[name].learns
