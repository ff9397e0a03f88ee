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
from dp_leakage.figures.style import name

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


def test_a_plugin_is_called_by_its_label_wherever_an_attack_is_named(monkeypatch):
    given = {"family": "membership", "label": "My guess", "variants": {"mine": {}, "mine_raw": {"label": "Raw"}}}
    for key, attack in attacks_of("mine.py", "mine", given).items():
        monkeypatch.setitem(ATTACKS, key, attack)
    assert (name("mine"), name("mine_raw"), name("unknown_attack")) == ("My guess", "Raw", "unknown attack")


def test_a_name_can_mean_one_thing_in_one_attack_and_another_in_the_next():
    given = {"family": "membership", "settings": {"alpha": {"enum": ["low", "high"], "default": "low"}}}
    ours = attacks_of("mine.py", "mine", given)["mine"]
    assert holds("high", ours.schemas["alpha"])
    assert not holds("high", ATTACKS["lira"].schemas["alpha"])


def test_what_the_workflow_reads_of_an_attack_means_one_thing():
    given = {"family": "membership", "settings": {"queries": "many"}}
    with pytest.raises(UserError, match=r"mine\.py: the setting queries is 'many'; it says how often models are asked"):
        attacks_of("mine.py", "mine", given)


# Module of an attack → the test that compares it with an independent computation on a planted example.
INDEPENDENT = {
    "attribute": "test_attribute.py::test_rows_equal_a_loop_over_records_models_and_candidates",
    "csmia": "test_attributes.py::test_guesses_equal_a_loop_over_records_and_candidates",
    "fredrikson": "test_attributes.py::test_guesses_equal_a_loop_over_records_and_candidates",
    "yeom_values": "test_attributes.py::test_guesses_equal_a_loop_over_records_and_candidates",
    "learned_attribute": "test_attributes.py::"
    "test_imputation_and_the_learned_attack_are_logistic_regressions_of_what_each_knows",
    "attack_p": "membership/test_quantile_attacks.py::test_attack_p_equals_the_quantile_rule_at_every_level",
    "attack_r": "membership/test_quantile_attacks.py::test_attack_r_equals_the_quantile_rule_at_every_level",
    "boundary": "membership/test_label_only.py::"
    "test_the_distance_from_a_plane_is_nearly_that_of_the_perpendicular_and_never_less",
    "combined": "membership/test_combined.py::"
    "test_the_scores_are_those_of_trees_fitted_on_references_taken_for_targets",
    "gap": "membership/test_label_only.py::test_the_gap_attack_is_accuracy_on_members_less_accuracy_on_others",
    "highest_posterior": "membership/test_highest_posterior.py::"
    "test_scores_are_the_largest_softmax_and_flags_a_quantile_of_new_records",
    "label_noise": "membership/test_label_only.py::test_shares_are_the_normal_probability_of_staying_on_ones_side",
    "lira": "membership/test_lira.py::test_online_scores_equal_the_exact_log_likelihood_ratios",
    "loss_trace": "membership/test_loss_trace.py::"
    "test_scores_are_of_the_losses_by_hand_and_flags_by_a_quantile_of_new_records",
    "posterior": "membership/test_posterior.py::test_scores_are_the_ratio_of_the_joint_densities_of_all_answers",
    "quantile_regression": "membership/test_quantile_attacks.py::"
    "test_quantile_regression_finds_the_quantile_of_each_kind_of_record_and_holds_its_level",
    "rmia": "membership/test_rmia.py::test_scores_equal_the_papers_formula_over_all_pairs",
    "shokri": "membership/test_shokri.py::test_scores_equal_the_networks_applied_record_by_record",
    "shokri_trees": "membership/test_shokri_trees.py::"
    "test_scores_are_the_log_odds_of_trees_grown_on_what_each_shadow_says_of_a_class",
    "yeom": "membership/test_yeom.py::test_scores_and_flags_equal_a_loop_over_records_and_models",
    "ranks": "test_ranks.py::test_top_ten_accuracy_is_scikit_learns",
    "controls": "inversion/test_controls.py::test_controls_are_as_far_as_numpy_says",
    "decoder": "inversion/test_decoder.py::test_what_is_seen_is_the_layers_own_output",
    "model_inversion": "inversion/test_model_inversion.py::"
    "test_an_inversion_finds_the_picture_that_is_planted_in_the_weights",
    "analytic": "reconstruction/test_analytic.py::"
    "test_without_noise_records_are_recovered_whatever_bounds_the_gradient",
    "dlg": "reconstruction/test_dlg.py::"
    "test_images_and_labels_are_recovered_from_the_gradient_of_a_smooth_network",
    "iga": "reconstruction/test_iga.py::"
    "test_a_known_image_is_recovered_exactly_from_the_gradient_of_a_softmax_regression",
}  # fmt: skip


@pytest.mark.parametrize("module", sorted({attack.module.rpartition(".")[2] for attack in ATTACKS.values()}))
def test_every_attack_is_compared_with_an_independent_computation(module):
    """A newcomer has no entry: it needs such a test, and its name here."""
    file, _, test = INDEPENDENT[module].partition("::")
    assert f"\ndef {test}(" in (Path(__file__).parent / file).read_text()
