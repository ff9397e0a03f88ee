"""Studies of persons: how an attack's scores of a person become one, and what is refused before anything runs."""

import pytest
from loading import REPO, visits

from dp_leakage.common.errors import UserError
from dp_leakage.study.protocol import way_of_person
from dp_leakage.study.steps import attack_settings
from dp_leakage.study.steps.attack import attacked


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch):
    """The study with some changes."""
    monkeypatch.chdir(REPO)
    return visits


def test_the_study_says_how_scores_become_a_persons_and_else_the_attack(read) -> None:
    study = read({"attacks": {"lira_online": {"of_person": "max", "variance": "shrunk"}}})
    cell = study.cell("visits", "softmax_regression", "none")
    made = {attack: attack_settings(study, cell, attack) for attack in study.spec["attacks"]}
    assert {attack: settings["of_person"] for attack, settings in made.items()} == {
        "yeom": "mean",
        "lira_online": "max",
        "rmia_online": "mean",
    }
    assert made["lira_online"]["settings"]["variance"] == "shrunk"
    assert "of_person" not in made["lira_online"]["settings"]


def test_another_way_asks_the_models_nothing_new(read) -> None:
    default, other = read({}), read({"attacks": {"lira_online": {"of_person": "learned"}}})
    cells = [study.cell("visits", "softmax_regression", "none") for study in (default, other)]
    inputs = [
        attack_settings(study, cell, "lira_online")["inputs"]
        for study, cell in zip((default, other), cells, strict=True)
    ]
    assert inputs[0] == inputs[1]
    assert attacked(default, cells[0], "lira_online") != attacked(other, cells[1], "lira_online")
    assert attacked(default, cells[0], "yeom") == attacked(other, cells[1], "yeom")


def test_an_attack_that_needs_no_reference_learns_from_one_other_repeat(read) -> None:
    study = read({"repeats": 2, "attacks": {"yeom": {"of_person": "learned"}}})
    assert way_of_person(study.spec, "yeom") == "learned"


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"accountant": "naive"}, "accountant naive is only for single records; use zcdp, gdp, rdp"),
        ({"accountant": "rdp", "sampler": "wor"}, "sampler wor has an ε for one person in place of another"),
    ],
)
def test_what_has_no_epsilon_for_persons_is_refused_while_planning(read, entry, words) -> None:
    with pytest.raises(UserError, match=words):
        read({"defenses": [{"defense": "none"}, {"defense": "person", **entry}]})
