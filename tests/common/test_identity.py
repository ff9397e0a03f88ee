"""Names of settings, and settings without the folders of a machine."""

import pytest

from dp_leakage.common.identity import identity, portable

OUTSIDE = [
    "/home/ann/x.csv",
    "~/x.csv",
    "~ann/x.csv",
    "../x.csv",
    "data/../../x.csv",
    '/home/a"b\\c/x.csv',
    "/home/é/x.csv",
]
INSIDE = ["x.csv", "data/x.csv", "my_nets:Net", "https://a.org/b", "ε ~ 3", "~3 / 4 of them", 'it says "/x"', ""]


@pytest.mark.parametrize("path", OUTSIDE)
def test_a_path_that_leads_elsewhere_is_held_by_its_name_and_a_digest(path):
    settings = {"source": {"path": path, "keys": [path, 1.5, None, True]}, "key of " + path: "x"}
    held = portable(settings)
    name = held["source"]["path"]
    assert name.startswith("x.csv#")
    assert held == {"source": {"path": name, "keys": [name, 1.5, None, True]}, "key of " + path: "x"}
    assert portable(held) == held
    assert identity(held) == identity(settings)
    assert identity({"path": path}) != identity({"path": "/elsewhere/x.csv"})


@pytest.mark.parametrize("text", INSIDE)
def test_other_texts_stay_as_they_are(text):
    assert portable({"text": text}) == {"text": text}
