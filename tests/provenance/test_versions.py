"""The versions that a report states: those that trained its models, not only those that wrote it."""

import torch

from dp_leakage.provenance.versions import of_page_and_trainings, versions


def test_versions_are_those_of_the_installed_packages():
    found = versions()
    assert found["torch"] == torch.__version__
    assert next(iter(found)) == "Python"
    assert all(found.values())


def test_only_trainings_with_other_versions_are_told():
    here = {"torch": "2.13", "numpy": "2.4"}
    assert of_page_and_trainings(here, [here] * 3) == here
    assert of_page_and_trainings(here, []) == here
    told = of_page_and_trainings(here, [here, {"torch": "2.12", "numpy": "2.4"}, {"torch": "2.11", "numpy": "2.4"}])
    assert told == {"torch": "2.13 (2.11 in 1, 2.12 in 1 of 3 target trainings)", "numpy": "2.4"}


def test_a_package_that_some_trainings_alone_used_is_told():
    assert of_page_and_trainings({"torch": "2.13"}, [{"opacus": "1.5"}, {}]) == {"torch": "2.13", "opacus": "1.5"}
    assert "opacus" not in versions()
    assert "opacus" in versions("opacus")
