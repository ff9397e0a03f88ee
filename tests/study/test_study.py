"""From study files to cells: names, settings, identities, and what is refused."""

import os
from copy import deepcopy
from hashlib import sha256
from pathlib import Path

import pytest
import yaml

from dp_leakage.attacks import ATTACKS
from dp_leakage.common.config import merged
from dp_leakage.common.errors import UserError
from dp_leakage.common.identity import identity
from dp_leakage.common.yaml_files import read_yaml
from dp_leakage.privacy.defenses import spell
from dp_leakage.provenance.fingerprint import code_fingerprint
from dp_leakage.study.file import load_studies, study_files, typed
from dp_leakage.study.step_code import ACCOUNTING, REGISTRIES

REPO = Path(__file__).parents[2]
SCHEMAS = {
    name: yaml.safe_load((REPO / "workflow" / "schemas" / f"{name}.schema.yaml").read_text())
    for name in ("config", "study")
}
QUICKSTART = Path(__file__).parents[1] / "studies" / "quickstart.yaml"  # fixed members, shadow models
CONFIG = read_yaml(REPO / "config.yaml")


def load(changes=None, config=None, file=QUICKSTART):
    settings = merged(CONFIG, config or {})
    if changes:
        settings = merged(settings, {"overrides": {"quickstart": changes}})
    return load_studies(settings, [file], SCHEMAS)


@pytest.fixture(scope="module")
def quickstart():
    return load()["quickstart"]


def test_every_study_file_loads_at_every_scale_that_it_names():
    files = study_files(REPO / "workflow" / "studies")
    for scale in ("paper", "small", "smoke"):
        studies = load_studies(merged(CONFIG, {"scale": scale}), files, SCHEMAS)
        for study in studies.values():
            assert study.cells
            assert study.name == study.target + ("" if scale == "paper" else f"-{scale}")


@pytest.mark.parametrize("name", ["quickstart", "atlas"])
def test_the_picture_below_the_answer_draws_every_cell_that_the_answer_may_name_by_every_attack(name):
    study = load(file=REPO / "workflow" / "studies" / f"{name}.yaml")[name]
    (figure,) = [key for key, spec in study.spec["figures"].items() if spec["kind"] == "pareto"]
    assert study.figure_cells(figure) == list(study.cells.values())
    membership = [attack for attack in study.spec["attacks"] if ATTACKS[attack].family == "membership"]
    for cell in study.figure_cells(figure):
        assert set(membership) & set(cell.parts) <= set(study.figure_parts(figure, cell))


def test_cells_are_called_as_the_file_contract_says(quickstart):
    assert "digits/mlp/gaussian-rdp-eps=0.1" in quickstart.cells
    assert "digits/softmax_regression/none" in quickstart.cells
    assert "digits/softmax_regression/dropout" not in quickstart.cells  # the study gives it to the mlp only


@pytest.mark.parametrize(
    ("entry", "name"),
    [
        (
            {
                "defense": "gaussian",
                "accountant": "naive",
                "unit": "batch",
                "epsilon": [1],
                "accounting_note": "as printed",
            },
            "gaussian-batch-naive-eps=1",
        ),
        ({"defense": "gaussian", "accountant": "rdp", "noise_multiplier": [1.6]}, "gaussian-rdp-sigma=1.6"),
        ({"defense": "vmf", "accountant": "per_step", "block": "row", "epsilon": [50]}, "vmf-row-per_step-eps=50"),
        (
            {"defense": "subclass", "k_sub": 50, "accountant": "class_moments", "noise_multiplier": [1.6]},
            "subclass-k_sub=50-class_moments-sigma=1.6",
        ),
        (
            {"defense": "subclass", "k_sub": 5, "partition": "random", "accountant": "class_moments", "epsilon": [1]},
            "subclass-k_sub=5-partition=random-class_moments-eps=1",
        ),
        ({"defense": "class", "accountant": "theorem1", "epsilon": [1]}, "class-theorem1-eps=1"),
        ({"defense": "normalise"}, "normalise"),
        ({"defense": "normalise", "learning_rate": [0.5]}, "normalise-learning_rate=0.5"),
        (
            {"defense": "gaussian", "accountant": "rdp", "l2": 0.1, "learning_rate": [0.5], "epsilon": [1]},
            "gaussian-l2=0.1-learning_rate=0.5-rdp-eps=1",
        ),
        (
            {"defense": "gaussian", "accountant": "rdp", "clip_norm": 0.5, "sampler": "wor", "epsilon": [1]},
            "gaussian-clip_norm=0.5-sampler=wor-rdp-eps=1",
        ),
        (
            {"defense": "gaussian", "accountant": "rdp", "bound": "normalise", "delta": 1.0e-6, "epsilon": [1]},
            "gaussian-normalise-delta=1e-06-rdp-eps=1",
        ),
        ({"defense": "vmf", "accountant": "vmf_rdp", "bound": "normalise", "epsilon": [1]}, "vmf-whole-vmf_rdp-eps=1"),
        ({"defense": "class", "accountant": "pld", "epsilon": [1]}, "class-pld-eps=1"),
    ],
)
def test_variants_stand_in_the_name_in_a_fixed_order(entry, name):
    study = load({"defenses": [{"defense": "none"}, entry]})["quickstart"]
    assert f"digits/mlp/{name}" in study.cells


def test_a_defense_may_train_in_its_own_way_at_a_rate_of_its_own():
    own = {"optimizer": "sgd", "learning_rate": 0.2, "sampling_rate": 0.33, "epochs": 7}
    entry = {"defense": "class", "accountant": "class_moments", "noise_multiplier": [2], "training": own}
    cells = load({"defenses": [{"defense": "none"}, entry]})["quickstart"].cells
    cell, base = cells["digits/mlp/class-class_moments-sigma=2"], cells["digits/mlp/none"]
    expected = {"optimizer": "sgd", "learning_rate": 0.2, "batch_size": 66, "epochs": 7}  # 0.33 of 200 members
    assert expected.items() <= cell.training["training"].items()
    assert "sampling_rate" not in cell.training["training"]
    assert (cell.columns["epochs"], base.columns["epochs"]) == (7, 60)
    assert base.training["training"]["optimizer"] == "adam"


@pytest.mark.parametrize(
    "wrong",
    [
        {"batch_size": 201},
        {"batch_size": 10, "sampling_rate": 0.1},
        {"sampling_rate": 1.5},
        {"l2": 0.1},
    ],
)
def test_a_defense_that_cannot_train_so_is_refused(wrong):
    entry = {"defense": "class", "accountant": "class_moments", "noise_multiplier": [2], "training": wrong}
    with pytest.raises(UserError, match="training"):
        load({"defenses": [{"defense": "none"}, entry]})


def test_entries_that_train_differently_never_share_a_name():
    differences = [{}, {"clip_norm": 2}, {"delta": 1.0e-6}, {"sampler": "wor"}, {"rdp_sigma": "calibrated_classic"}]
    entries = [{"defense": "gaussian", "accountant": "rdp", "epsilon": [1]} | change for change in differences]
    study = load({"defenses": [{"defense": "none"}, *entries]})["quickstart"]
    assert sorted(cell.defense for cell in study.cells.values() if cell.model == "mlp") == [
        "gaussian-clip_norm=2-rdp-eps=1",
        "gaussian-delta=1e-06-rdp-eps=1",
        "gaussian-rdp-eps=1",
        "gaussian-rdp_sigma=calibrated_classic-rdp-eps=1",
        "gaussian-sampler=wor-rdp-eps=1",
        "none",
    ]


def test_what_the_study_takes_its_noise_from_is_the_usual_and_stands_in_no_name():
    entries = [
        {"defense": "gaussian", "accountant": "rdp", "epsilon": [1], **source}
        for source in ({}, {"rdp_sigma": "calibrated_tight"})
    ]
    study = load({"rdp_sigma": "calibrated_classic", "defenses": [{"defense": "none"}, *entries]})["quickstart"]
    assert "digits/mlp/gaussian-rdp-eps=1" in study.cells
    assert "digits/mlp/gaussian-rdp_sigma=calibrated_tight-rdp-eps=1" in study.cells


@pytest.mark.parametrize(
    "entry",
    [
        {"defense": "gaussian", "accountant": "rdp", "sampler": "shuffle"},
        {"defense": "class", "accountant": "rdp", "sampler": "poisson"},
    ],
)
def test_a_note_lets_a_study_do_what_its_accountant_does_not_assume(entry):
    with pytest.raises(UserError, match=r"'defenses\.1': .* \(or say in accounting_note why it is done\)"):
        load({"defenses": [{"defense": "none"}, entry]})
    noted = entry | {"accounting_note": "as the authors' code does"}
    assert len(load({"defenses": [{"defense": "none"}, noted]})["quickstart"].cells) == 2 * (1 + 6)


def test_a_note_does_not_let_a_study_do_what_no_trainer_can():
    entry = {"defense": "vmf", "accountant": "vmf_rdp", "sampler": "class_poisson", "accounting_note": "a try"}
    with pytest.raises(UserError, match=r"'defenses\.1': sampler 'class_poisson' draws whole"):
        load({"defenses": [{"defense": "none"}, entry]})


@pytest.mark.parametrize(("value", "text"), [(0.05, "0.05"), (1000, "1000"), (1e-5, "1e-05"), (300000, "300000")])
def test_numbers_in_paths_have_one_spelling_that_reads_back(value, text):
    assert spell(float(value)) == text


def test_a_number_that_does_not_fit_a_path_is_refused():
    with pytest.raises(UserError, match="too many digits"):
        spell(0.123456789)


def test_a_new_epsilon_adds_its_cells_and_changes_no_other(quickstart):
    more = load({"epsilon": [0.1, 1, 10, 50, 100, 500, 1000]})["quickstart"]
    added = set(more.cells) - set(quickstart.cells)
    assert {key.split("=")[-1] for key in added} == {"500"}
    for key, cell in quickstart.cells.items():
        assert identity(more.train_settings(more.cells[key])) == identity(quickstart.train_settings(cell))
        assert identity(more.measure_settings(more.cells[key])) == identity(quickstart.measure_settings(cell))


def test_an_attack_setting_reaches_that_attack_and_nothing_before_it(quickstart):
    other = load({"attacks": {"yeom": {"probability_floor": 0.01}}})["quickstart"]
    cell = quickstart.cells["digits/mlp/none"]
    same = other.cells["digits/mlp/none"]
    assert quickstart.train_settings(cell) == other.train_settings(same)
    assert quickstart.attack_settings(cell, "shokri") == other.attack_settings(same, "shokri")
    assert quickstart.attack_settings(cell, "yeom") != other.attack_settings(same, "yeom")
    assert quickstart.measure_settings(cell) != other.measure_settings(same)
    assert quickstart.measure_training_settings(cell) == other.measure_training_settings(same)


def test_the_accountants_are_no_part_of_what_trains():
    excluded = (*REGISTRIES, *ACCOUNTING)
    accountants = sorted((REPO / "src" / "dp_leakage" / "privacy" / "accounting").glob("*.py"))
    modules = [f"dp_leakage.privacy.accounting.{path.stem}".removesuffix(".__init__") for path in accountants]
    assert modules
    for step in ("train", "audit"):
        whole = code_fingerprint(f"dp_leakage.steps.{step}", exclude=excluded)
        assert whole == code_fingerprint(f"dp_leakage.steps.{step}", exclude=(*excluded, *modules))


def test_seeds_differ_between_cells_and_roles_but_not_between_loads(quickstart):
    again = load()["quickstart"]
    seeds = [quickstart.train_settings(cell)["seed"] for cell in quickstart.cells.values()]
    assert len(set(seeds)) == len(seeds)
    assert seeds == [again.train_settings(cell)["seed"] for cell in again.cells.values()]
    shadow = quickstart.auxiliary_settings("digits", "mlp", "shadow")
    assert shadow["seed"] not in seeds


def test_shadow_models_are_shared_unless_the_study_says_same(quickstart):
    private = "digits/mlp/gaussian-rdp-eps=1"
    assert quickstart.auxiliary_defense(quickstart.cells[private], "shadow") is None
    own = load({"shadow": {"defense": "same"}})["quickstart"]
    assert own.auxiliary_defense(own.cells[private], "shadow") == "gaussian-rdp-eps=1"
    shared = own.auxiliary_settings("digits", "mlp", "shadow")
    assert shared["mechanism"] is None
    assert own.auxiliary_settings("digits", "mlp", "shadow", "gaussian-rdp-eps=1")["mechanism"]["epsilon"] == 1.0


def _defenses(**entry):
    return {"defenses": [{"defense": "none"}, {"defense": "gaussian", **entry}]}


PRIVATE_PCA = {"method": "private_pca", "components": 20, "noise": 4}


def _projected(**changes):
    return {"datasets": {"digits": {"projection": PRIVATE_PCA | changes}}, **_defenses(accountant="rdp", epsilon=[8])}


def test_a_private_projection_of_the_members_is_part_of_a_cells_mechanism():
    cell = load(_projected())["quickstart"].cells["digits/mlp/gaussian-rdp-eps=8"]
    assert cell.training["mechanism"]["projection_noise"] == 4.0
    assert (cell.columns["projection"], cell.columns["projection_noise"]) == ("private_pca", 4)
    outside = load(_projected(fit_on=["shadow_pool"]))["quickstart"].cells["digits/mlp/gaussian-rdp-eps=8"]
    assert "projection_noise" not in outside.training["mechanism"]
    plain = load()["quickstart"].cells["digits/mlp/gaussian-rdp-eps=1"]
    assert "projection_noise" not in plain.training["mechanism"]


@pytest.mark.parametrize("defense", ["class", "subclass"])
def test_classes_as_units_and_a_private_projection_for_records_are_refused_before_anything_is_trained(defense):
    """A class of the digits moves the second moment by up to 13.5 times what the projection's noise is made for."""
    entry = {"defense": defense, "accountant": "pld", "epsilon": [8]} | ({"k_sub": 2} if defense == "subclass" else {})
    own = {"defenses": [{"defense": "none"}, entry]}
    with pytest.raises(UserError, match=r"'datasets.digits.projection' \(of .*\) has noise for one record, but unit"):
        load({**_projected(), **own})
    load({**_projected(fit_on=["shadow_pool"]), **own})


def test_a_study_with_times_times_all_defenses_of_a_model_in_one_job():
    changes = {"timing": {"rounds": 2, "records": 50}, "figures": {"table": {"kind": "timing_table"}}}
    study = load(changes)["quickstart"]
    settings = study.timing_settings("digits", "mlp")
    own = [cell.defense for cell in study.cells.values() if cell.model == "mlp"]
    assert [cell["defense"] for cell in settings["cells"]] == own
    assert (settings["rounds"], settings["records"], settings["n_records"]) == (2, 50, 200)
    files = study.figure_inputs("table")
    assert {str(file) for file in files} == {
        f"results/quickstart/digits/{model}/timed.parquet" for model in ("mlp", "softmax_regression")
    }
    assert len(files) == len(study.cells)


def test_a_learning_rate_of_a_defense_trains_its_cells_and_no_other():
    entries = [{"defense": "none"}, {"defense": "none", "learning_rate": [0.5, 0.1]}]
    study = load({"defenses": entries})["quickstart"]
    rates = {cell.defense: cell.training["training"]["learning_rate"] for cell in study.cells.values()}
    assert rates == {"none": 0.01, "none-learning_rate=0.5": 0.5, "none-learning_rate=0.1": 0.1}
    assert all(cell.columns["learning_rate"] == rates[cell.defense] for cell in study.cells.values())


def test_a_data_set_may_name_its_attacks_and_change_its_auxiliary_models():
    other = {"source": "digits", "roles": {"target_members": 200, "target_nonmembers": 200, "reference_pool": 300}}
    changes = {
        "datasets": {
            "digits": {"attacks": ["yeom", "shokri"], "shadow": {"size": 100}},
            "other": other | {"attacks": ["attack_r", "yeom"]},
        },
        "attacks": {"attack_r": {}},
        "reference": {"count": 3, "size": 200, "pool": ["reference_pool"], "defense": "none"},
        "figures": {"fig_leakage_attribute": None, "fig_leakage_lira": None, "table_members_exposed": None},
    }
    study = load(changes)["quickstart"]
    assert study.cells["digits/mlp/none"].parts == ["training", "yeom", "shokri"]
    assert study.cells["other/mlp/none"].parts == ["training", "yeom", "attack_r"]
    assert study.auxiliary_settings("digits", "mlp", "shadow")["subset"]["size"] == 100
    assert study.auxiliary_settings("other", "mlp", "reference")["subset"]["size"] == 200
    with pytest.raises(UserError, match=r"'datasets\.other\.roles' lacks the role 'shadow_pool'; attack shokri"):
        load(merged(changes, {"datasets": {"other": {"attacks": ["shokri"]}}}))
    with pytest.raises(UserError, match=r"key 'datasets\.digits\.attacks' is 'jeom'"):
        load(merged(changes, {"datasets": {"digits": {"attacks": ["jeom"]}}}))


AUDITED = {"audit": {"designs": {"losses": {"design": "one_run", "models": 8, "canaries": 10, "beyond_reach": "mark"}}}}


def test_an_audit_is_a_part_of_every_cell_and_a_new_cell_trains_no_other_anew():
    study = load(AUDITED)["quickstart"]
    more = load(AUDITED | {"epsilon": [0.1, 1, 10, 50, 100, 500, 1000]})["quickstart"]
    key = "digits/mlp/gaussian-rdp-eps=1"
    cell, same = study.cells[key], more.cells[key]
    assert cell.parts[-1] == "audit"
    assert str(study.part_file(cell, "audit")) == "results/quickstart/digits/mlp/gaussian-rdp-eps=1/audit.parquet"
    assert study.audit_settings(cell) == more.audit_settings(same)
    assert study.measure_settings(cell) != more.measure_settings(same)  # more bounds are stated, each must be surer
    assert study.audit_settings(study.cells["digits/mlp/none"])["delta"] == 1e-5


def test_overrides_do_not_make_a_scale_larger():
    more = {"epsilon": [0.1, 1, 10, 50, 100], "repeats": 24, "training": {"epochs": 60}, "shadow": {"count": 16}}
    spec = load(more, {"scale": "smoke"})["quickstart-smoke"].spec
    assert (spec["epsilon"], spec["repeats"]) == ([1, 100], 2)
    assert (spec["training"]["epochs"], spec["shadow"]["count"]) == (8, 2)
    assert load(more)["quickstart"].spec["epsilon"] == more["epsilon"]
    picked = {"fig_pareto": {"select": {"defense": ["gaussian-rdp-eps=500", "none"]}}}
    assert load({"epsilon": [500], "figures": picked}, {"scale": "smoke"})  # a budget of the study, if not of the scale
    assert load({"epsilon": [1, 10, 500], "figures": picked}, {"scale": "smoke"})


def test_what_overrides_make_smaller_than_a_scale_or_set_beside_it_holds_there_too():
    less = {"epsilon": [10], "training": {"epochs": 2, "learning_rate": 0.5}, "figures": {"fig_pareto": None}}
    spec = load(less, {"scale": "smoke"})["quickstart-smoke"].spec
    assert (spec["epsilon"], spec["repeats"]) == ([10], 2)
    assert (spec["training"]["epochs"], spec["training"]["learning_rate"]) == (2, 0.5)
    assert "fig_pareto" not in spec["figures"]


def test_an_attack_that_overrides_take_away_does_not_return_through_a_scale():
    drawn = {"fig_leakage_shokri": None, "fig_pareto": {"parts": ["training", "yeom"]}}
    without = {"attacks": {"shokri": None}, "figures": drawn}
    assert "shokri" not in load(without, {"scale": "smoke"})["quickstart-smoke"].spec["attacks"]


def test_an_attack_that_a_study_file_deletes_does_not_return_through_its_scale(tmp_path):
    spec = read_yaml(QUICKSTART)
    del spec["attacks"]["shokri"], spec["figures"]["fig_leakage_shokri"]
    spec["figures"]["fig_pareto"]["parts"].remove("shokri")
    file = tmp_path / "quickstart.yaml"
    file.write_text(yaml.safe_dump(spec))
    assert "shokri" not in load(config={"scale": "smoke"}, file=file)["quickstart-smoke"].spec["attacks"]
    spec["scales"]["smoke"]["attacks"] = {"shokry": {"epochs": 10}}  # yet a slip of the pen is told
    file.write_text(yaml.safe_dump(spec))
    with pytest.raises(UserError, match=r"key 'attacks.shokry' is 'shokry'; did you mean 'shokri'"):
        load(config={"scale": "smoke"}, file=file)


def test_a_scale_has_its_own_folder_and_the_same_targets():
    smoke = load(config={"scale": "smoke"})
    assert list(smoke) == ["quickstart-smoke"]
    assert smoke["quickstart-smoke"].target == "quickstart"


def _audited(**design):
    return {"audit": {"designs": {"a": {"design": "one_run", "models": 8, "beyond_reach": "mark"} | design}}}


def _entry(defense, **entry):
    return {"defenses": [{"defense": "none"}, {"defense": defense, **entry}]}


NO_SHADOW = {"shadow": {"pool": ["reference_pool"]}}
BAD = {
    "unknown key": ({"epsilons": [1]}, r"unknown key 'epsilons'; did you mean 'epsilon'"),
    "unknown nested key": ({"training": {"epoch": 3}}, r"unknown key 'training.epoch'; did you mean 'epochs'"),
    "text for a number": ({"delta": "1e-5"}, r"key 'delta' is '1e-5'; .*write it like 1.0e-3"),
    "wrong type": ({"repeats": "three"}, r"key 'repeats' is 'three'; valid is a value of type integer"),
    "negative epsilon": ({"epsilon": [1, -2]}, r"key 'epsilon.1' is -2; valid is 1e-05 or more"),
    "subclass without number": (
        {"defenses": [{"defense": "none"}, {"defense": "subclass", "accountant": "class_moments"}]},
        r"key 'defenses.1' lacks the key 'k_sub'",
    ),
    "partition of classes": (
        {"defenses": [{"defense": "none"}, {"defense": "class", "k_sub": 3, "accountant": "class_moments"}]},
        r"'defenses.1.k_sub' does not apply to defense class; valid is subclass",
    ),
    "noise of directions": (
        {"defenses": [{"defense": "none"}, {"defense": "vmf", "accountant": "vmf_rdp", "noise_multiplier": [1]}]},
        r"'defenses.1.noise_multiplier' does not apply to defense vmf; valid is gaussian, class, subclass",
    ),
    "strength of nothing": (
        {"defenses": [{"defense": "none", "l2": 0.1}]},
        r"'defenses.0.l2' does not apply to defense none; valid is l2, l2_dropout, gaussian",
    ),
    "dropout of nothing": (
        {"defenses": [{"defense": "none", "dropout": 0.5}]},
        r"'defenses.0.dropout' does not apply to defense none; valid is dropout, l2_dropout",
    ),
    "dropout beside l2": (_entry("l2", l2=0.1, dropout=0.5), r"'defenses.1.dropout' does not apply to defense l2;"),
    "dropout beside noise": (
        _defenses(accountant="rdp", dropout=0.5),
        r"'defenses.1.dropout' does not apply to defense gaussian",
    ),
    "block of a clipped gradient": (
        _defenses(accountant="rdp", block="row"),
        r"'defenses.1.block' does not apply to defense gaussian; valid is vmf",
    ),
    "several strengths beside noise": (
        _defenses(accountant="rdp", l2=[0.1, 0.2]),
        r"'defenses.1.l2' is \[0.1, 0.2\]; valid for defense gaussian is one number",
    ),
    "classes by another name": (
        _defenses(accountant="class_moments", unit="class"),
        r"'defenses.1.unit' is 'class'; valid is example or batch, or defense class",
    ),
    "a whole batch, counted once": (
        _defenses(accountant="zcdp", unit="batch"),
        r"'defenses.1': unit: 'batch' moves by up to twice the clipping norm .*or say in accounting_note",
    ),
    "a table for another training": (
        _defenses(accountant="rdp", epsilon=[1], rdp_sigma="authors_table"),
        r"'rdp_sigma' is 'authors_table' \(digits/.*100 epochs and batches of 200 .*elsewhere calibrated_classic",
    ),
    "source of σ for another accountant": (
        _defenses(accountant="zcdp", rdp_sigma="calibrated_classic"),
        r"'defenses.1.rdp_sigma' says where accountant rdp takes σ from",
    ),
    "source of σ that is given": (
        _defenses(accountant="rdp", noise_multiplier=[1], rdp_sigma="calibrated_classic"),
        r"'defenses.1.rdp_sigma' says where accountant rdp takes σ from",
    ),
    "accountant of other noise": (
        _entry("vmf", accountant="rdp"),
        r"'defenses.1': accountant: 'rdp' accounts for gaussian noise, not for 'vmf'",
    ),
    "accountant of other noise, owned up to": (
        _entry("gaussian", accountant="vmf_rdp", accounting_note="as the paper does"),
        r"'defenses.1': accountant: 'vmf_rdp' accounts for vmf noise",
    ),
    "directions that are clipped": (
        _entry("vmf", accountant="vmf_rdp", bound="clip"),
        r"'defenses.1': bound 'clip' leaves no unit vectors for noise 'vmf'",
    ),
    "classes under an accountant of records": (
        _entry("class", accountant="rdp"),
        r"'defenses.1': unit: 'class' cannot be accounted for under the sampler 'poisson'",
    ),
    "whole classes drawn for single records": (
        _defenses(accountant="class_moments"),
        r"'defenses.1': sampler 'class_poisson' draws whole \(sub\)classes",
    ),
    "whole batches with Opacus": (
        {
            "models": {"mlp": {"engine": "opacus", "architecture": {"name": "nets:Net"}}},
            **_defenses(accountant="naive", unit="batch"),
        },
        r"'defenses.1': engine 'opacus' cannot do unit 'batch'",
    ),
    "dropout in a module of the user's": (
        {
            "models": {"mlp": {"engine": "opacus", "architecture": {"name": "nets:Net", "hidden": None}}},
            **_entry("dropout", dropout=0.5),
        },
        r"'defenses.1.dropout' does not apply to model mlp: engine opacus",
    ),
    "unknown canary": (_audited(canary="natura"), r"key .audit.designs.a.canary. is .natura.; did you mean .natural."),
    "no epsilon": ({"epsilon": []}, r"key 'epsilon' is empty"),
    "epsilon twice": ({"epsilon": [1, 1.0]}, r"has the budget 1 more than once"),
    "images for a model of vectors": (
        {"models": {"mlp": {"architecture": {"name": "lenet", "hidden": None}}}},
        r"key 'models.mlp.architecture' \(data set digits, projected to 30 components\): a convolution needs images",
    ),
    "more features than components": (
        {"attacks": {"yeom_attribute": {"features": 500}}},
        r"key 'attacks.yeom_attribute.features' is 500; valid is up to the 30 components of data set digits",
    ),
    "delta of a published record": ({"delta": 0.01}, r"key 'delta' is 0.01 \(of .*\); valid is below 1/\d+, the δ of"),
    "delta out of range": ({"delta": 1.5}, r"key 'delta' is 1.5; valid is less than 1"),
    "zero repeats": ({"repeats": 0}, r"key 'repeats' is 0; valid is 1 or more"),
    "unknown optimizer": ({"training": {"optimizer": "adm"}}, r"'training.optimizer' is 'adm'; did you mean 'adam'"),
    "unknown source": (
        {"datasets": {"digits": {"source": "digit"}}},
        r"'digit' is not a data set; did you mean 'digits'",
    ),
    "unknown role": (
        {"datasets": {"digits": {"roles": {"members": 3}}}},
        r"unknown key 'datasets.digits.roles.members'",
    ),
    "unknown architecture": (
        {"models": {"mlp": {"architecture": {"name": "mlpp"}}}},
        r"'models.mlp.architecture.name' is 'mlpp'; did you mean 'mlp'",
    ),
    "unknown attack": ({"attacks": {"yeoman": {}}}, r"'attacks.yeoman' is 'yeoman'; did you mean 'yeom'"),
    "unknown attack setting": (
        {"attacks": {"shokri": {"epoch": 3}}},
        r"'attacks.shokri.epoch' is 'epoch'; did you mean",
    ),
    "attack setting of another type": (
        {"attacks": {"shokri": {"epochs": "x"}}},
        r"'attacks.shokri.epochs' is 'x'; valid",
    ),
    "no models for an attack": ({"shadow": None}, r"key 'shadow' is missing; attack shokri needs shadow models"),
    "times without their settings": (
        {"figures": {"table": {"kind": "timing_table"}}},
        r"key 'timing' is missing; figure table shows how long training takes",
    ),
    "private projection with an accountant that cannot compose it": (
        {"datasets": {"digits": {"projection": PRIVATE_PCA}}, **_defenses(accountant="zcdp", epsilon=[8])},
        r"key 'datasets.digits.projection' \(of .*gaussian-zcdp-eps=8\): accountant: 'zcdp' cannot add what a private",
    ),
    "unknown accountant": (_defenses(accountant="rpd"), r"'defenses.1.accountant' is 'rpd'; did you mean 'rdp'"),
    "no accountant": (_defenses(), r"'defenses.1' lacks the key 'accountant'"),
    "sampler against accountant": (_defenses(accountant="rdp", sampler="shuffle"), r"'defenses.1': .*'shuffle'.*'rdp'"),
    "epsilon and sigma": (
        _defenses(accountant="rdp", epsilon=[1], noise_multiplier=[1]),
        r"'defenses.1' has both epsilon and noise_multiplier",
    ),
    "epsilon and target": (
        _defenses(accountant="rdp", epsilon=[1], target={"advantage": 0.1}),
        r"'defenses.1' has both epsilon and target",
    ),
    "target of nothing": (
        _defenses(accountant="rdp", target={"advantage": 1.5}),
        r"'defenses.1': target.advantage is 1.5; valid is a number above 0 and below 1",
    ),
    "target of no measure": (
        _defenses(accountant="rdp", target={"mu": 1}),
        r"'defenses.1': target is {'mu': 1}; valid",
    ),
    "target twice": (
        _defenses(accountant="rdp", target=[{"advantage": 0.1}, {"advantage": 0.1}]),
        r"'defenses.1' has the budget advantage=0.1 more than once",
    ),
    "target that the noise does not limit": (
        {
            "defenses": [
                {"defense": "none"},
                {
                    "defense": "class",
                    "accountant": "rdp",
                    "sampler": "poisson",
                    "accounting_note": "as it is",
                    "target": {"advantage": 0.1},
                },
            ]
        },
        r"'defenses.1.target' asks for a limit, but the mechanism proves none for replace_one neighbours",
    ),
    "no baseline": ({"defenses": [{"defense": "l2", "l2": 0.1}]}, r"'defenses' lacks the entry '- defense: none'"),
    "l2 without strength": ({"defenses": [{"defense": "none"}, {"defense": "l2"}]}, r"'defenses.1' lacks the key 'l2'"),
    "noise for no defense": (
        {"defenses": [{"defense": "none"}, {"defense": "dropout", "dropout": 0.5, "clip_norm": 1}]},
        r"'defenses.1.clip_norm' does not apply to defense dropout",
    ),
    "same cell twice": (
        {"defenses": [{"defense": "none"}, {"defense": "none"}]},
        r"two defenses are both called 'none'",
    ),
    "batch larger than the data": (
        {"training": {"batch_size": 201}},
        r"'training.batch_size' is 201; valid is at most the 200",
    ),
    "shadow size": ({"shadow": {"size": 9999}}, r"'shadow.size' is 9999; valid is at most the 700"),
    "unknown figure kind": ({"figures": {"f": {"kind": "leak"}}}, r"'figures.f.kind' is 'leak'; "),
    "unknown figure part": ({"figures": {"f": {"kind": "leakage", "parts": ["yoem"]}}}, r"'figures.f.parts' is 'yoem'"),
    "unknown figure setting": (
        {"figures": {"f": {"kind": "leakage", "settings": {"atack": "yeom"}}}},
        r"'figures.f.settings' is 'atack'; did you mean 'attack'",
    ),
    "figure of nothing": (
        {"figures": {"f": {"kind": "leakage", "select": {"epsilon": [1], "mechanism": ["none"]}}}},
        r"'figures.f.select' fits no cell",
    ),
    "figure of a value that no cell has": (
        {"figures": {"f": {"kind": "leakage", "select": {"epsilon": [1, 77]}}}},
        r"'figures.f.select.epsilon' is 77; Valid: 0.1, 1.0, 10.0",
    ),
    "figure of a misspelt data set": (
        {"figures": {"f": {"kind": "leakage", "select": {"dataset": ["digits", "digit"]}}}},
        r"'figures.f.select.dataset' is 'digit'; did you mean 'digits'",
    ),
    "figure of a column that no cell has": (
        {"figures": {"f": {"kind": "leakage", "select": {"data": ["digits"]}}}},
        r"'figures.f.select' is 'data'; did you mean 'dataset'",
    ),
    "figure setting of another type": (
        {"figures": {"f": {"kind": "leakage", "settings": {"y_max": "big"}}}},
        r"'figures.f.settings.y_max' is 'big'; valid is null, or a number above 0",
    ),
    "figure of an attack that the study lacks": (
        {"figures": {"f": {"kind": "leakage", "settings": {"attack": "yoem"}}}},
        r"'figures.f.settings.attack' is 'yoem'; did you mean 'yeom'",
    ),
    "figure of an attack that is not among its parts": (
        {"figures": {"f": {"kind": "leakage", "parts": ["training"], "settings": {"attack": "yeom"}}}},
        r"'figures.f.settings.attack' is 'yeom'; Valid: none",
    ),
    "figure definition": (
        {"figures": {"f": {"kind": "leakage", "settings": {"definition": "relased"}}}},
        r"'figures.f.settings.definition' is 'relased'; did you mean 'released'",
    ),
    "figure of nothing that is measured": (
        {"figures": {"f": {"kind": "roc", "parts": ["training"]}}},
        r"'figures.f.parts' leaves nothing to draw",
    ),
    "missing print": (
        {"published": "nope.csv"},
        r"'published' is 'nope.csv'; valid is the name of a file in ",
    ),
    "no number": ({"epsilon": [1, float("nan")]}, r"'overrides.quickstart.epsilon.1' is nan; valid is a finite number"),
    "infinite": (
        {"training": {"learning_rate": float("inf")}},
        r"'overrides.quickstart.training.learning_rate' is inf; valid is a finite",
    ),
    "three point nought runs": ({"repeats": 3.0}, r"'repeats' is 3.0; valid is a value of type integer"),
    "unknown key of a model's training": (
        {"models": {"mlp": {"training": {"epoch": 3}}}},
        r"unknown key 'models.mlp.training.epoch'; did you mean 'epochs'",
    ),
    "text in a model's training": (
        {"models": {"mlp": {"training": {"epochs": "many"}}}},
        r"'models.mlp.training.epochs' is 'many'; valid is a value of type integer",
    ),
    "momentum of Adam": (
        {"models": {"mlp": {"training": {"momentum": 0.5}}}},
        r"'training' \(of digits/mlp/none\): momentum 0.5 is for optimizer 'sgd'",
    ),
    "batch of a model larger than the data": (
        {"models": {"mlp": {"training": {"batch_size": 500}}}},
        r"'models.mlp.training.batch_size' is 500; valid is at most the 200 members",
    ),
    "batch on a data set larger than it": (
        {"datasets": {"digits": {"models": {"mlp": {"training": {"batch_size": 500}}}}}},
        r"'datasets.digits.models.mlp.training.batch_size' is 500; valid is at most the 200 members",
    ),
    "unknown model of a data set": (
        {"datasets": {"digits": {"models": {"mpl": {"training": {"epochs": 5}}}}}},
        r"'datasets.digits.models' is 'mpl'; did you mean 'mlp'",
    ),
    "unknown key of a data set's model": (
        {"datasets": {"digits": {"models": {"mlp": {"trainig": {"epochs": 5}}}}}},
        r"unknown key 'datasets.digits.models.mlp.trainig'; did you mean 'training'",
    ),
    "width in place of widths": (
        {"models": {"mlp": {"architecture": {"hidden": 64}}}},
        r"'models.mlp.architecture': .*'hidden' is 64; valid is a list",
    ),
    "widths that are names": (
        {"datasets": {"digits": {"models": {"mlp": {"architecture": {"hidden": ["a"]}}}}}},
        r"'datasets.digits.models.mlp.architecture': .*'hidden' is \['a'\]; valid is a list",
    ),
    "unknown architecture setting": (
        {"models": {"mlp": {"architecture": {"hiden": [64]}}}},
        r"'models.mlp.architecture': .*no setting 'hiden'; did you mean 'hidden'",
    ),
    "module that is no path": (
        {"models": {"mlp": {"engine": "opacus", "architecture": {"name": "Net", "hidden": None}}}},
        r"'models.mlp.architecture.name' is 'Net'; valid is a path such as 'my_models:Net'",
    ),
    "widths of an attack": (
        {"attacks": {"shokri": {"hidden": ["a"]}}},
        r"'attacks.shokri.hidden' is \['a'\]; valid is a list",
    ),
    "half a feature": (
        {"attacks": {"yeom_attribute": {"features": 2.5}}},
        r"'attacks.yeom_attribute.features' is 2.5; valid is a whole number from 1 on",
    ),
    "no feature": ({"attacks": {"yeom_attribute": {"features": 0}}}, r"'attacks.yeom_attribute.features' is 0; valid"),
    "unknown candidates": (
        {"attacks": {"yeom_attribute": {"candidates": "quartile"}}},
        r"'attacks.yeom_attribute.candidates' is 'quartile'; did you mean 'quartiles'",
    ),
    "probability above one": (
        {"attacks": {"yeom": {"probability_floor": 1.5}}},
        r"'attacks.yeom.probability_floor' is 1.5; valid is a number of at least 0 and below 1",
    ),
    "too many queries": (
        {"attacks": {"attack_r": {"queries": 19}}, "reference": {"count": 2, "size": 100}},
        r"'attacks.attack_r.queries' is 19; valid is a whole number from 1 to 18",
    ),
    "no records for a decoder": (
        {
            "attacks": {"shokri": None, "decoder": {}},
            "datasets": {"digits": {"roles": {"shadow_pool": None}}},
            **NO_SHADOW,
        },
        r"'datasets.digits.roles' lacks the role 'shadow_pool'; attack decoder needs its records",
    ),
    "no records for an attack": (
        {"attacks": {"attack_p": {}}, "datasets": {"digits": {"roles": {"reference_pool": None}}}},
        r"'datasets.digits.roles' lacks the role 'reference_pool'; attack attack_p needs its records",
    ),
    "shadow pool of a role that is not there": (
        {"shadow": {"pool": ["shadow_pol"]}},
        r"'shadow.pool' draws from role 'shadow_pol', which .*did you mean 'shadow_pool'",
    ),
    "shadow models without records": (
        {"datasets": {"digits": {"roles": {"shadow_pool": None}}}, "shadow": {"pool": ["reference_pool"]}},
        r"'datasets.digits.roles' lacks the role 'shadow_pool'; attack shokri needs its records",
    ),
    "reference models without records": (
        {
            "reference": {"pool": None},
            "datasets": {"digits": {"roles": {"reference_pool": None}}},
        },
        r"'reference' draws from role 'reference_pool', which data set digits does not have",
    ),
    "shadow models that see everything": (
        {"shadow": {"size": 700}},
        r"'shadow.size' is 700, so that every model trains on all of the 700 records of shadow_pool",
    ),
    "online attack without its models": (
        {"reference": {"count": 2, "size": 100, "pool": ["reference_pool"]}},
        r"'reference.pool' is \['reference_pool'\], but attack lira_online needs models trained with the target's",
    ),
    "pool named twice": (
        {"shadow": {"pool": ["shadow_pool", "shadow_pool"]}},
        r"'shadow.pool' is .*names something twice",
    ),
    "baseline of one model alone": (
        {"defenses": [{"defense": "none", "models": ["mlp"]}, {"defense": "l2", "l2": 0.1}]},
        r"'none' does not cover digits/softmax_regression, so that the loss of digits/softmax_regression/l2",
    ),
    "data set of a defence": (
        {"defenses": [{"defense": "none"}, {"defense": "l2", "l2": 0.1, "datasets": ["digit"]}]},
        r"'defenses.1.datasets' is 'digit'; did you mean 'digits'",
    ),
    "a design that cannot show the claim": (
        _audited(canaries=10, beyond_reach="refuse"),
        r"'audit.designs.a' reaches at most ε = 0.841 of the claimed 1 with 80 coins; 103 coins or 23 of the 53 bounds",
    ),
    "many canaries in many runs": (_audited(design="many_runs", canaries=2), r"canaries' must be 1 but for one_run"),
    "too few coins": (_audited(models=3), r"'audit.designs.a' has 3 coins; valid is 4 or more"),
    "a gradient that nobody sees": (_audited(canary="gradient"), r"which only a score of white_box sees"),
    "own curve without a mechanism": (
        _audited(claim="own"),
        r"claim' is own, but for none no mechanism claims a curve",
    ),
    "unknown audit": ({"defenses": [{"defense": "none", "audits": ["b"]}], **_audited()}, r"'defenses.audits' is 'b'"),
    "canaries without records": (
        _audited(canaries=250),
        r"'audit.designs.a.canaries' is 250; valid is up to the 200 records",
    ),
    "override of the name": ({"study": "mine"}, r"'overrides.quickstart.study' cannot be changed there"),
    "override of a scale": ({"scales": {"smoke": {"repeats": 1}}}, r"'overrides.quickstart.scales' cannot be changed"),
    "no space after a colon": ({"repeats:3": None}, r"'overrides.quickstart' has 'repeats:3'; write a space after"),
    "null for what is not there": (
        {"attacks": {"shokry": None}},
        r"'overrides.quickstart.attacks.shokry' is null, but there is none; did you mean 'shokri'",
    ),
    "pca without components": (
        {"datasets": {"digits": {"projection": {"components": None}}}},
        r"'datasets.digits.projection' lacks the key 'components'",
    ),
    "a number with too many digits": ({"epsilon": [0.1234567891]}, r"0.1234567891 has too many digits"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_study_gives_one_sentence_with_key_value_and_what_is_valid(case):
    changes, sentence = BAD[case]
    with pytest.raises(UserError, match=sentence) as caught:
        load(deepcopy(changes))
    assert "\n" not in str(caught.value)
    assert "quickstart" in str(caught.value) or case == "a number with too many digits"


BAD_CONFIG = {
    "unknown key": ({"scal": "paper"}, r"config.yaml: unknown key 'scal'; did you mean 'scale'"),
    "unknown scale": ({"scale": "smal"}, r"config.yaml: key 'scale' is 'smal'; did you mean 'small'"),
    "unknown device": ({"device": "gpu"}, r"key 'device' is 'gpu'; .*cuda"),
    "override of no study": (
        {"overrides": {"quickstrat": {}}},
        r"'overrides.quickstrat' names no study; did you mean 'quickstart'",
    ),
    "missing study file": ({"study_files": ["nowhere.yaml"]}, r"nowhere.yaml does not exist"),
    "data set of no study": (
        {"only_datasets": ["digit"]},
        r"'only_datasets' has 'digit', a data set of no study; did you mean 'digits'",
    ),
    "overrides that are a text": (
        {"overrides": "quickstart=3"},
        r"'overrides' is 'quickstart=3'; on the command line write it in quotes, .*'overrides={quickstart: {rep",
    ),
    "data sets that are a text": (
        {"only_datasets": "digits"},
        r"'only_datasets' is 'digits'; .*--config 'only_datasets=\[digits\]'",
    ),
    "checkpoint interval": ({"checkpoint_seconds": 0}, r"'checkpoint_seconds' is 0; valid is 1 or more"),
}


@pytest.mark.parametrize("case", BAD_CONFIG)
def test_a_bad_config_gives_one_sentence(case):
    changes, sentence = BAD_CONFIG[case]
    with pytest.raises(UserError, match=sentence):
        load(config=changes)


def _own(path, label=None):
    source = {"path": str(path)} | ({"label": label} if label else {})
    return {"datasets": {"digits": {"source": source}}}


def test_an_edit_of_the_users_own_file_reaches_what_is_made_of_it_and_a_touch_does_not(tmp_path):
    table = tmp_path / "mine.csv"
    table.write_text("a,label\n1,x\n2,y\n")
    before = load(_own(table, "label"))["quickstart"]
    assert before.prepare_settings("digits")["content"] == sha256(table.read_bytes()).hexdigest()
    os.utime(table, (1e9, 1e9))
    assert load(_own(table, "label"))["quickstart"].data_identity("digits") == before.data_identity("digits")
    table.write_text("a,label\n1,x\n3,y\n")  # as long as before
    after = load(_own(table, "label"))["quickstart"]
    assert after.data_identity("digits") != before.data_identity("digits")
    cell = "digits/mlp/none"
    assert after.train_settings(after.cells[cell])["data"] != before.train_settings(before.cells[cell])["data"]


def test_an_edit_of_one_of_the_users_own_images_counts_and_hidden_files_do_not(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.png").write_bytes(b"one")
    before = load(_own(tmp_path))["quickstart"].data_identity("digits")
    (tmp_path / ".DS_Store").write_bytes(b"")
    assert load(_own(tmp_path))["quickstart"].data_identity("digits") == before
    (tmp_path / "b" / "1.png").write_bytes(b"two")
    assert load(_own(tmp_path))["quickstart"].data_identity("digits") != before
    (tmp_path / "b" / "1.png").rename(tmp_path / "b" / "2.png")
    assert load(_own(tmp_path))["quickstart"].data_identity("digits") != before


def test_a_missing_file_of_the_users_own_is_named_once_it_is_asked_for(tmp_path):
    study = load(_own(tmp_path / "nope.csv", "label"))["quickstart"]
    with pytest.raises(UserError, match=r"key 'datasets.digits.source.path': .*nope.csv: no such file or folder"):
        study.train_settings(study.cells["digits/mlp/none"])


def test_the_report_names_the_identity_of_everything_that_it_reads(quickstart):
    settings = quickstart.report_settings()
    assert settings["data"] == [["digits", quickstart.data_identity("digits")]]
    asked = [cell for cell in quickstart.cells.values() if cell.defense == "none" or cell.columns["accountant"]]
    scored = [
        [*cell.key.split("/"), attack, identity(quickstart.attack_settings(cell, attack))]
        for cell in asked
        for attack in ("yeom", "shokri", "lira_online")
    ]
    assert settings["scores"] == scored
    assert len(quickstart.exposed_scores()) == len(scored)


def test_values_from_the_command_line_that_came_as_text_are_read():
    given = {"only_datasets": '["digits"]', "overrides": '{"quickstart": {"repeats": 2, "shadow": {"count": 4}}}'}
    study = load(config=given)["quickstart"]
    assert study.spec["repeats"] == 2
    assert study.spec["shadow"]["count"] == 4


def test_numbers_that_snakemake_reads_as_text_are_numbers_again():
    text = {
        "repeats": "5",
        "delta": "1.0e-6",
        "shadow": "null",
        "stratified": "true",
        "title": "on top",
        "epsilon": ["1"],
    }
    read = {"repeats": 5, "delta": 1e-6, "shadow": None, "stratified": True, "title": "on top", "epsilon": [1]}
    assert typed(text) == read


def test_on_fewer_data_sets_a_study_keeps_their_cells_and_the_figures_that_draw_one():
    files = [REPO / "workflow" / "studies" / "jayaraman2019" / "study.yaml"]
    config = merged(CONFIG, {"only_datasets": ["purchase100"]})
    study = load_studies(config, files, SCHEMAS)["jayaraman2019"]
    assert {cell.dataset for cell in study.cells.values()} == {"purchase100"}
    assert "fig3" in study.spec["figures"]
    assert "fig1a" not in study.spec["figures"]
    assert all(study.figure_cells(figure) for figure in study.spec["figures"])


def test_a_figure_may_select_what_only_the_whole_study_has():
    figure = {"figures": {"f": {"kind": "accuracy_loss", "select": {"epsilon": [100, 1000]}}}}
    study = load(figure, config={"scale": "smoke"})["quickstart-smoke"]  # which has 1 and 100
    assert {cell.columns["epsilon"] for cell in study.figure_cells("f")} == {100}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("study: a\nstudy: b\n", "key 'study' stands twice"),
        ("study: [a\n", "is not valid YAML"),
        ("- a\n- b\n", "holds list, not keys and values"),
        ("", "holds NoneType"),
    ],
)
def test_a_file_that_is_no_mapping_is_refused(tmp_path, text, sentence):
    path = tmp_path / "study.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match=sentence):
        read_yaml(path)


def test_two_studies_of_one_name_are_refused(tmp_path):
    copy = tmp_path / "copy.yaml"
    copy.write_text(QUICKSTART.read_text())
    with pytest.raises(UserError, match="are both called 'quickstart'"):
        load(config={"study_files": [str(copy)]})


def test_a_figure_of_scores_asks_for_the_membership_scores_of_its_cells_and_nothing_else():
    figure = {"figures": {"fig_roc": {"kind": "roc", "select": {"defense": ["none"]}}}}
    study = load(figure)["quickstart"]
    cells = study.figure_settings("fig_roc")["cells"]
    assert {tuple(part[::2]) for _, parts in cells for part in parts} == {
        (attack, "scores") for attack in ("yeom", "shokri", "lira_online")
    }
    assert all(path.parent.name == "attack" for path in study.figure_inputs("fig_roc"))


@pytest.mark.parametrize(
    ("studies", "sentence"),
    [
        ({"attack": {}}, "'attack' has a meaning of its own here"),
        ({"a": {"figures": {"b": {"kind": "pareto"}}}, "a_b": {}}, "target 'a_b' is also a target of study a"),
        ({"a": {"figures": {"report": {"kind": "pareto"}}}}, "'report' has a meaning of its own here"),
    ],
)
def test_two_targets_of_one_name_are_refused(tmp_path, studies, sentence):
    files = []
    for name, changes in studies.items():
        files.append(tmp_path / f"{name}.yaml")
        files[-1].write_text(yaml.safe_dump(merged(read_yaml(QUICKSTART), {"study": name, "figures": {}} | changes)))
    with pytest.raises(UserError, match=sentence):
        load_studies(CONFIG, files, SCHEMAS)


def test_the_names_of_the_workflows_rules_are_known():
    import re

    from dp_leakage.study.file import RULES

    files = [REPO / "Snakefile", *(REPO / "workflow" / "rules").glob("*.smk")]
    text = "\n".join(path.read_text() for path in files)
    assert set(RULES) == set(re.findall(r"^(?:use rule \w+ as|rule) (\w+)(?: with)?:$", text, re.MULTILINE))


def test_every_rule_says_what_it_is():
    import re

    for path in (REPO / "workflow" / "rules").glob("*.smk"):
        for name, after in re.findall(r"^rule (\w+):\n(.*)$", path.read_text(), re.MULTILINE):
            assert after.startswith('    """'), name
