"""Studies of design coins: who trains, what rates are of, and what is refused."""

import numpy as np
import pytest
from loading import REPO
from loading import load as load_file

from dp_leakage.common.errors import UserError
from dp_leakage.data.splits import heads
from dp_leakage.study.steps import attack_inputs, attack_settings, settings_of, train_settings
from dp_leakage.study.steps.attack import answered
from dp_leakage.study.steps.parts import part

QUICKSTART = REPO / "workflow" / "studies" / "quickstart.yaml"


def load(changes):
    return load_file(changes, file=QUICKSTART)


def roles(**changed):
    return {"datasets": {"digits": {"roles": changed}}}


def test_the_heads_of_a_repeat_do_not_depend_on_how_many_there_are():
    few, many = heads(300, 3, seed=5), heads(300, 20, seed=5)
    np.testing.assert_array_equal(few, many[:3])
    assert not np.array_equal(few, heads(300, 3, seed=6))


def test_heads_are_fair_and_independent_over_records_and_repeats():
    """z-scores of shares and of all pairs' agreement below 4.5: false alarm about 1e-2 over all of them."""
    tossed = heads(400, 64, seed=1)
    for axis, n in ((0, 64), (1, 400)):
        z = (tossed.mean(axis=axis) - 0.5) * 2 * np.sqrt(n)
        assert np.abs(z).max() < 4.5
    signs = 2.0 * tossed - 1
    agreement = signs @ signs.T / 20
    assert np.abs(agreement[np.triu_indices(64, 1)]).max() < 4.5


def test_every_cell_of_a_data_set_has_the_same_coins_and_another_seed_others():
    study, other = load({})["quickstart"], load({"seed": 9})["quickstart"]
    cells = {train_settings(study, cell)["subset"]["coins"] for cell in study.cells.values()}
    assert len(cells) == 1
    assert cells != {train_settings(other, cell)["subset"]["coins"] for cell in other.cells.values()}


def test_rates_steps_and_deltas_are_of_the_pool_and_members_are_half_of_it():
    study = load({})["quickstart"]
    cell = study.cell("digits", "mlp", "gaussian-rdp-eps=1")
    assert train_settings(study, cell)["subset"]["size"] == 1200
    assert (cell.columns["n_records"], cell.columns["n_members"], cell.columns["n_nonmembers"]) == (1200, 600, 600)
    rated = {"defense": "gaussian", "accountant": "rdp", "sampler": "poisson", "training": {"sampling_rate": 0.1}}
    study = load({"defenses": [{"defense": "none"}, rated]})["quickstart"]
    cell = study.cell("digits", "mlp", "gaussian-rdp-eps=1")
    assert cell.training["training"]["batch_size"] == 120


def test_losses_are_kept_only_where_an_attack_reads_them_and_need_two_evaluated_epochs():
    plain, asked = load({})["quickstart"], load({"attacks": {"loss_trace": {}}})["quickstart"]
    for cell in plain.cells.values():
        settings = train_settings(plain, cell)
        assert "traced" not in settings
        assert train_settings(asked, asked.cells[cell.key]) == settings | {"traced": True}
    with pytest.raises(
        UserError, match=r"'training\.evaluate_every' \(of .*\) is 60 of 60 epochs; attack loss_trace reads"
    ):
        load({"attacks": {"loss_trace": {}}, "training": {"evaluate_every": 60}})


ATTACKED = {"attacks": {"lira_unaware": {}, "rmia": {}}}


def test_the_references_are_the_cells_own_repeats_or_the_undefended_ones_and_nothing_more_is_trained():
    study = load(ATTACKED)["quickstart"]
    cell = study.cell("digits", "mlp", "gaussian-rdp-eps=1")
    for attack, defense in (("lira_online", cell.defense), ("rmia", cell.defense), ("lira_unaware", "none")):
        inputs = attack_inputs(study, cell, attack)
        assert inputs["reference_signals"][0] == answered(study, "digits", "mlp", "target", defense)[0]
        assert attack_settings(study, cell, attack)["leave_one_out"]
        assert inputs["reference_signals"][0] in part(attack).before(study, cell)
    assert not any("reference/" in str(path) for path in part(attack).before(study, cell))
    changed = load(ATTACKED | {"reference": {"defense": "none"}})["quickstart"]
    cell = changed.cell("digits", "mlp", "gaussian-rdp-eps=1")
    assert attack_inputs(changed, cell, "lira_online")["reference_signals"][0].parent.name == "none"


def test_a_cells_bound_is_for_the_neighbors_that_its_coins_decide_between_and_corrected_for_all_cells():
    study = load({})["quickstart"]
    for defense, neighbors in (
        ("none", "add_remove"),
        ("gaussian-rdp-eps=1", "add_remove"),
        ("gaussian-zcdp-eps=8", "zero_out"),
    ):
        cell = study.cell("digits", "mlp", defense)
        told = settings_of(study, "measure_coins", cell)
        private = [cell for cell in study.cells.values() if cell.columns["accountant"]]
        # Two for each private cell: of (ε, δ)-DP, and of its own mechanism.
        assert told["comparisons"] == len(study.cells) + len(private)
        assert told["claim"] == {"delta": 1e-5, "neighbors": neighbors}
        assert told["private"] == (defense != "none")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (ATTACKED | {"reference": {"count": 4}}, "'reference.count' does not apply to design coins"),
        (roles(pool=None), "lacks the role 'pool'"),
        ({"design": "split"}, "lacks the role 'target_members'"),
        (roles(target_members=10), "has the role 'target_members'"),
        ({"design": "coin"}, "design' is 'coin'"),
        (roles(pool=10), "expected a whole number of at least 20"),
        ({"datasets": {"digits": {"augment": "after_split"}}}, "in and out at once"),
        ({"training": {"batch_size": 1201}}, "at most the 1200 records of the pool"),
        ({"delta": 0.002}, "expected below 1/1200"),
        ({"attacks": {"dlg": {}}}, "'attacks.dlg' needs fixed members"),
        ({"repeats": 1}, "'repeats' is 1, but each record needs repeats that it is in and others that it is out of"),
        (roles(shadow_pool=100, target_nonmembers=497), "has the role 'shadow_pool', which no attack uses"),
    ],
)
def test_what_does_not_go_with_coins_is_refused_with_one_sentence(changes, words):
    with pytest.raises(UserError) as refusal:
        load(changes)
    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value)
