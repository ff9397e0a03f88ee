"""Every attack declares itself at the top of its own file."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from dp_leakage import attacks, plugins
from dp_leakage.attacks import ATTACKS, attacks_of
from dp_leakage.common.errors import UserError
from dp_leakage.common.schemas import holds

FILES = [path for path in Path(attacks.__file__).parent.rglob("*.py") if "\nATTACK = " in path.read_text()]


def test_reading_what_attacks_declare_imports_no_library():
    code = "import sys, dp_leakage.attacks; print({'torch', 'numpy', 'pandas', 'sklearn'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set()"


@pytest.mark.parametrize("name", ATTACKS)
def test_every_attack_scores_and_those_that_learn_fit(name):
    module = importlib.import_module(ATTACKS[name].module)
    assert callable(module.score)
    assert hasattr(module, "fit") == ATTACKS[name].learns
    assert ATTACKS[name].needs or not ATTACKS[name].learns


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_of_the_package_is_a_plugin_as_it_stands(path, tmp_path, monkeypatch):
    """One reader for both: its names are taken, and nothing else is wrong with it."""
    name = f"own_{path.stem}"
    (tmp_path / f"{name}.py").write_text(path.read_text())
    for table in ("ATTACKS", "FILES", "DEFINED"):
        monkeypatch.setattr(plugins, table, {})
    monkeypatch.setattr(plugins, "add_folder", monkeypatch.syspath_prepend)
    plugins.load([tmp_path])
    own = [attack for attack in ATTACKS.values() if attack.module.endswith(f".{path.stem}")]
    assert [vars(attack) | {"module": ""} for attack in plugins.ATTACKS.values()] == [
        vars(attack) | {"module": ""} for attack in own
    ]


def test_a_name_can_mean_one_thing_in_one_attack_and_another_in_the_next():
    given = {"family": "membership", "settings": {"alpha": {"enum": ["low", "high"], "default": "low"}}}
    ours = attacks_of("mine.py", "mine", given)["mine"]
    assert holds("high", ours.schemas["alpha"])
    assert not holds("high", ATTACKS["lira"].schemas["alpha"])


def test_what_the_workflow_reads_of_an_attack_means_one_thing():
    given = {"family": "membership", "settings": {"queries": "many"}}
    with pytest.raises(UserError, match=r"mine\.py: the setting queries is 'many'; it says how often models are asked"):
        attacks_of("mine.py", "mine", given)
