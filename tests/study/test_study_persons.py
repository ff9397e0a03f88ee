"""Studies of persons: how an attack's scores of a person become one, and what is refused before anything runs."""

from copy import deepcopy
from pathlib import Path

import pytest
import yaml
from loading import load

from dp_leakage.common.errors import UserError
from dp_leakage.study import Study
from dp_leakage.study.protocol import way_of_person
from dp_leakage.study.steps import attack_settings
from dp_leakage.study.steps.attack import attacked

SPEC = {
    "study": "visits",
    "title": "Several visits each",
    "seed": 1,
    "design": "coins",
    "repeats": 3,
    "delta": 1e-4,
    "epsilon": [5],
    "datasets": {
        "visits": {
            "source": {"path": "visits.csv", "label": "kind", "person": "patient"},
            "roles": {"pool": 80, "target_nonmembers": 50},
        }
    },
    "models": {"softmax_regression": {"architecture": {"name": "softmax_regression"}}},
    "training": {"optimizer": "adam", "learning_rate": 0.01, "epochs": 4, "batch_size": 20},
    "defenses": [{"defense": "none"}, {"defense": "person", "accountant": "rdp"}],
    "attacks": {"yeom": {}, "lira_online": {}, "rmia_online": {}},
    "figures": {"fig_pareto": {"kind": "pareto", "title": "All", "parts": ["training", "yeom"]}},
}


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The study with some changes, of which each is a path of keys and a value (None removes)."""
    monkeypatch.chdir(tmp_path)
    Path("visits.csv").write_text("kind,patient,pulse\na,1,60\nb,2,70\n")

    def of(changes: dict[str, object]) -> Study:
        spec = deepcopy(SPEC)
        for path, value in changes.items():
            *above, last = path.split(".")
            place = spec
            for key in above:
                place = place[key]
            place[last] = value
            if value is None:
                del place[last]
        Path("visits.yaml").write_text(yaml.safe_dump(spec, sort_keys=False))
        return load(file=Path("visits.yaml"))["visits"]

    return of


def test_the_study_says_how_scores_become_a_persons_and_else_the_attack(read) -> None:
    study = read({"attacks.lira_online": {"of_person": "max", "variance": "shrunk"}})
    cell = study.cell("visits", "softmax_regression", "none")
    made = {attack: attack_settings(study, cell, attack) for attack in SPEC["attacks"]}
    assert {attack: settings["of_person"] for attack, settings in made.items()} == {
        "yeom": "mean",
        "lira_online": "max",
        "rmia_online": "mean",
    }
    assert made["lira_online"]["settings"]["variance"] == "shrunk"
    assert "of_person" not in made["lira_online"]["settings"]


def test_another_way_asks_the_models_nothing_new(read) -> None:
    default, other = read({}), read({"attacks.lira_online.of_person": "learnt"})
    cells = [study.cell("visits", "softmax_regression", "none") for study in (default, other)]
    inputs = [
        attack_settings(study, cell, "lira_online")["inputs"]
        for study, cell in zip((default, other), cells, strict=True)
    ]
    assert inputs[0] == inputs[1]
    assert attacked(default, cells[0], "lira_online") != attacked(other, cells[1], "lira_online")
    assert attacked(default, cells[0], "yeom") == attacked(other, cells[1], "yeom")


REFUSED = {
    "no known way": (
        {"attacks.yeom.of_person": "median"},
        "'attacks.yeom.of_person' is 'median'; did you mean",
    ),
    "no persons": (
        {"datasets.visits.source.person": None, "defenses": [{"defense": "none"}], "attacks.yeom.of_person": "max"},
        r"'attacks.yeom.of_person' is about persons .*; no data set has a source with the key 'person', leave it out",
    ),
    "too few repeats to learn from": (
        {"repeats": 2, "attacks.lira_online.of_person": "learnt"},
        r"'attacks.lira_online.of_person' is learnt, which takes other repeats than the target's; valid are 3 or more",
    ),
    "too few repeats in one cell": (
        {
            "defenses": [{"defense": "none"}, {"defense": "person", "accountant": "rdp", "repeats": 2}],
            "attacks.rmia_online.of_person": "learnt",
        },
        r"'attacks.rmia_online.of_person' is learnt, .* 3 or more, got 2",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_combined_is_refused(what, read) -> None:
    changes, complaint = REFUSED[what]
    with pytest.raises(UserError, match=complaint):
        read(changes)


def test_an_attack_that_needs_no_reference_learns_from_one_other_repeat(read) -> None:
    study = read({"repeats": 2, "attacks.yeom.of_person": "learnt"})
    assert way_of_person(study.spec, "yeom") == "learnt"
