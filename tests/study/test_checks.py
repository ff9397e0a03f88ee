"""What a study is refused for: one sentence with the key, its value and what is valid."""

import pytest
from loading import LEARNED_ON, load, projected, with_kinds_of

from dp_leakage.common.config import merged
from dp_leakage.common.errors import UserError
from dp_leakage.study.plan import everything
from dp_leakage.study.steps import settings_of
from dp_leakage.study.steps.parts import part


@pytest.mark.parametrize(
    "entry",
    [
        {"defense": "gaussian", "accountant": "rdp", "sampler": "shuffle"},
        {"defense": "class", "accountant": "rdp", "sampler": "poisson"},
    ],
)
def test_a_note_lets_a_study_do_what_its_accountant_does_not_assume(entry):
    with pytest.raises(UserError, match=r"'defenses\.1': .* \(or explain in accounting_note\)"):
        load({"defenses": [{"defense": "none"}, entry]})
    noted = entry | {"accounting_note": "as the authors' code does"}
    assert len(load({"defenses": [{"defense": "none"}, noted]})["quickstart"].cells) == 2 * (1 + 6)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"defenses": [{"defense": "none"}, {"defense": "class", "accountant": "class_moments"}]},
            "sampler 'poisson' or 'shuffle'; got 'class_poisson'",
        ),
        (
            {
                "defenses": [
                    {"defense": "none"},
                    {"defense": "gaussian", "accountant": "rdp", "sampler": "poisson", "bound": "normalize"},
                ]
            },
            "bound 'clip'; got 'normalize'",
        ),
    ],
)
def test_what_opacus_does_not_train_is_refused_while_planning(changes, words):
    opacus = {"engine": "opacus", "architecture": {"name": "mlp"}}
    with pytest.raises(UserError, match=rf"'models\.mlp\.engine' is 'opacus'.*{words}"):
        load({"models": {"mlp": opacus}} | changes)


@pytest.mark.parametrize("defense", ["class", "subclass"])
def test_classes_as_units_take_a_private_projection_that_is_fitted_on_others(defense):
    """A class of the digits moves the second moment by up to 13.5 times what the projection's noise is made for."""
    entry = {"defense": defense, "accountant": "pld", "epsilon": [8]} | ({"k_sub": 2} if defense == "subclass" else {})
    load({**projected(fit_on=["shadow_pool"]), "defenses": [{"defense": "none"}, entry]})


def test_a_projection_is_fitted_on_each_role_once():
    with pytest.raises(UserError, match=r"projection\.fit_on"):
        load(projected(fit_on=["target_members", "target_members"]))


def test_times_without_their_settings_are_refused():
    with_kinds_of("lomurno2022")
    with pytest.raises(UserError, match="key 'timing' is missing; figure table shows how long training takes"):
        load({"figures": {"table": {"kind": "timing_table"}}})


def test_groups_are_measured_from_all_membership_attacks_of_a_cell_and_drawn_where_a_figure_names_them():
    study = load({"groups": ["class", "duplicates"]})["quickstart"]
    cell = next(iter(study.cells.values()))
    assert cell.parts[-2:] == ["strongest", "groups"]
    told = settings_of(study, "measure_groups", cell)
    assert told["by"] == ["class", "duplicates"]
    assert [attack for attack, _ in told["reads"]] == cell.membership
    assert part("groups").path(study, cell) in everything(study)
    assert "groups" not in next(iter(load({})["quickstart"].cells.values())).parts


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"source": "digits"}, "learned_on.source' is the study's own data set; use another, whose records are"),
        ({"source": "mnits"}, "learned_on.source': source: 'mnits' is not a data set; did you mean 'mnist'"),
        ({"architecture": {"name": "nets:Net"}}, "architecture.name' is 'nets:Net'; expected a built-in architecture"),
        ({"architecture": {"name": "mpl"}}, "learned_on.architecture.name' is 'mpl'; did you mean 'mlp'"),
        ({"architecture": {"depth": 3}}, "learned_on.architecture': architecture 'mlp' has no setting 'depth'"),
        ({"training": {"momentum": 0.9, "optimizer": "adam"}}, "learned_on.training': momentum 0.9 is for optimizer"),
        (
            {"architecture": {"name": "softmax_regression"}},
            "of which the architecture softmax_regression has none",
        ),
        ({"layers": "convolutions"}, "layers' is 'convolutions', of which the architecture mlp has none"),
        ({"layers": "all"}, "projection.learned_on.layers' is 'all'; valid: convolutions, hidden"),
    ],
)
def test_features_that_nothing_can_learn_are_refused(changes, sentence):
    with pytest.raises(UserError) as error:
        load(projected(features="learned", learned_on=merged(LEARNED_ON, changes)))
    assert sentence in str(error.value)


def test_learned_features_and_what_they_are_learned_on_come_together():
    with pytest.raises(UserError, match="projection' lacks the key 'learned_on'; features learned needs it"):
        load(projected(features="learned"))
    with pytest.raises(UserError, match="learned_on' is given, but 'features' is not 'learned'; use both or neither"):
        load(projected(learned_on=LEARNED_ON))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, "key 'groups' is missing; figure who draws what it asks for"),
        (
            {"groups": ["class"], "parts": ["yeom"]},
            "'figures.who.parts' lists yeom; kind groups draws groups, so list that too",
        ),
    ],
)
def test_a_figure_of_groups_needs_what_it_draws(changes, sentence):
    figure = {"kind": "groups", **{key: value for key, value in changes.items() if key == "parts"}}
    key = {"groups": changes["groups"]} if "groups" in changes else {}
    with pytest.raises(UserError) as error:
        load({"figures": {"who": figure}, **key})
    assert sentence in str(error.value)


def test_a_figure_of_groups_alone_names_any_membership_attack():
    figure = {"kind": "groups", "parts": ["groups"], "settings": {"attack": "yeom"}}
    assert "who" in load({"figures": {"who": figure}, "groups": ["class"]})["quickstart"].spec["figures"]
