"""A cell's protection is read back from its settings as it was."""

import json

import pytest

from dp_leakage.privacy.defenses import expanded
from dp_leakage.privacy.protection import Protection

SPEC = {"delta": 1e-5, "epsilon": [1], "design": "coins"}
ENTRIES = {
    "an ε": {"defense": "gaussian", "accountant": "rdp"},
    "a noise": {"defense": "gaussian", "accountant": "pld", "noise_multiplier": 2.0},
    "a risk": {"defense": "gaussian", "accountant": "rdp", "target": {"tpr": 0.05, "fpr": 0.01}},
    "directions": {"defense": "vmf", "accountant": "vmf_rdp", "block": "layer"},
    "subclasses": {"defense": "subclass", "accountant": "class_moments", "k_sub": 5},
}


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
def test_a_protection_is_read_back_from_its_settings(entry):
    ((_, protection, _),) = expanded(entry, SPEC)
    told = json.loads(json.dumps(protection.settings))
    assert Protection.read(told) == protection
    assert Protection.read(told).settings == protection.settings


def test_no_protection_has_no_settings_to_be_read_from():
    assert Protection.read(None) is None
