"""From a study to its cells, paths, settings and identities."""

import os
from hashlib import sha256

import pytest
from loading import REPO, load, projected, with_kinds_of

from dp_leakage.attacks import ATTACKS
from dp_leakage.common.config import merged
from dp_leakage.common.errors import UserError
from dp_leakage.common.identity import derived_seed, identity
from dp_leakage.privacy.defenses import spell
from dp_leakage.provenance.fingerprint import code_fingerprint
from dp_leakage.study.cells import auxiliary_defense
from dp_leakage.study.plan import (
    exposed_scores,
    figure_cells,
    figure_inputs,
    figure_parts,
    figure_settings,
    report_settings,
)
from dp_leakage.study.protocol import seed_of
from dp_leakage.study.step_code import ACCOUNTING, REGISTRIES
from dp_leakage.study.steps import (
    STEPS,
    Job,
    attack_settings,
    auxiliary_settings,
    data_identity,
    measure_settings,
    prepare_settings,
    project_settings,
    settings_of,
    train_settings,
)
from dp_leakage.study.steps.parts import part


@pytest.fixture(scope="module")
def quickstart():
    return load()["quickstart"]


@pytest.mark.parametrize("name", ["quickstart", "atlas"])
def test_the_picture_below_the_answer_draws_every_cell_that_the_answer_may_name_by_every_attack(name):
    study = load(file=REPO / "workflow" / "studies" / f"{name}.yaml")[name]
    (figure,) = [key for key, spec in study.spec["figures"].items() if spec["kind"] == "pareto"]
    assert figure_cells(study, figure) == list(study.cells.values())
    membership = [attack for attack in study.spec["attacks"] if ATTACKS[attack].family == "membership"]
    for cell in figure_cells(study, figure):
        assert set(membership) & set(cell.parts) <= set(figure_parts(study, figure, cell))


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
        ({"defense": "normalize"}, "normalize"),
        ({"defense": "normalize", "learning_rate": [0.5]}, "normalize-learning_rate=0.5"),
        (
            {"defense": "gaussian", "accountant": "rdp", "l2": 0.1, "learning_rate": [0.5], "epsilon": [1]},
            "gaussian-l2=0.1-learning_rate=0.5-rdp-eps=1",
        ),
        (
            {"defense": "gaussian", "accountant": "rdp", "clip_norm": 0.5, "sampler": "wor", "epsilon": [1]},
            "gaussian-clip_norm=0.5-sampler=wor-rdp-eps=1",
        ),
        (
            {"defense": "gaussian", "accountant": "rdp", "bound": "normalize", "delta": 1.0e-6, "epsilon": [1]},
            "gaussian-normalize-delta=1e-06-rdp-eps=1",
        ),
        ({"defense": "vmf", "accountant": "vmf_rdp", "bound": "normalize", "epsilon": [1]}, "vmf-whole-vmf_rdp-eps=1"),
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
        assert identity(train_settings(more, more.cells[key])) == identity(train_settings(quickstart, cell))
        assert identity(measure_settings(more, more.cells[key])) == identity(measure_settings(quickstart, cell))


def test_an_attack_setting_reaches_that_attack_and_nothing_before_it(quickstart):
    other = load({"attacks": {"yeom": {"probability_floor": 0.01}}})["quickstart"]
    cell = quickstart.cells["digits/mlp/none"]
    same = other.cells["digits/mlp/none"]
    assert train_settings(quickstart, cell) == train_settings(other, same)
    assert attack_settings(quickstart, cell, "shokri") == attack_settings(other, same, "shokri")
    assert attack_settings(quickstart, cell, "yeom") != attack_settings(other, same, "yeom")
    assert measure_settings(quickstart, cell) != measure_settings(other, same)
    assert settings_of(quickstart, "measure_training", cell) == settings_of(other, "measure_training", same)


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
    seeds = [train_settings(quickstart, cell)["seed"] for cell in quickstart.cells.values()]
    assert len(set(seeds)) == len(seeds)
    assert seeds == [train_settings(again, cell)["seed"] for cell in again.cells.values()]
    shadow = auxiliary_settings(quickstart, "digits", "mlp", "shadow")
    assert shadow["seed"] not in seeds


def test_shadow_models_train_as_the_targets_but_for_what_their_own_training_changes(quickstart):
    target = auxiliary_settings(quickstart, "digits", "mlp", "shadow")["training"]
    own = load({"shadow": {"defense": "same", "training": {"epochs": 7, "l2": 1e-4}}})["quickstart"]
    for defense in (None, "gaussian-rdp-eps=1"):
        shadow = auxiliary_settings(own, "digits", "mlp", "shadow", defense)["training"]
        assert shadow == target | {"epochs": 7, "l2": 1e-4}
    assert train_settings(own, own.cells["digits/mlp/none"]) == train_settings(
        quickstart, quickstart.cells["digits/mlp/none"]
    )


def test_what_shadow_training_names_holds_for_defenses_and_tuned_rates_too():
    own = {"shadow": {"defense": "same", "training": {"l2": 0.0, "learning_rate": 0.01}}}
    roles = {"shadow_pool": 500, "tuning": 200}
    study = load({"tune": {"learning_rate": [0.1, 1.0]}, "datasets": {"digits": {"roles": roles}}} | own)["quickstart"]
    assert study.cell("digits", "mlp", "l2").training["training"]["l2"] == 0.01
    shadows, references = (Job("digits", "mlp", "l2", role) for role in ("shadow", "reference"))
    shadow = STEPS["train_auxiliary"].settings(study, shadows)
    assert (shadow["training"]["l2"], shadow["training"]["learning_rate"]) == (0.0, 0.01)
    assert "tuned" not in shadow
    assert STEPS["train_auxiliary"].reads(study, shadows)["tuned"] == []
    assert "tuned" in STEPS["train_auxiliary"].settings(study, references)
    assert STEPS["train_auxiliary"].reads(study, references)["tuned"] != []


def test_a_penalty_of_shadow_models_alone_is_applied_where_the_study_leaves_its_own_out():
    own = load({"training": {"l2_applied": False}, "shadow": {"training": {"l2": 1e-4}}})["quickstart"]
    assert auxiliary_settings(own, "digits", "mlp", "shadow")["training"]["l2"] == 1e-4
    assert train_settings(own, own.cells["digits/mlp/none"])["training"]["l2"] == 0


def test_jayaramans_shadow_models_train_with_the_penalty_that_the_targets_lack():
    study = load(file=REPO / "workflow" / "studies" / "jayaraman2019" / "study.yaml")["jayaraman2019"]
    for model, penalty in (("softmax_regression", 1e-5), ("mlp", 1e-4)):
        assert auxiliary_settings(study, "cifar100", model, "shadow")["training"]["l2"] == penalty
        assert train_settings(study, study.cells[f"cifar100/{model}/none"])["training"]["l2"] == 0


def test_shadow_models_are_shared_unless_the_study_says_same(quickstart):
    private = "digits/mlp/gaussian-rdp-eps=1"
    assert auxiliary_defense(quickstart.spec, quickstart.cells[private], "shadow") is None
    own = load({"shadow": {"defense": "same"}})["quickstart"]
    assert auxiliary_defense(own.spec, own.cells[private], "shadow") == "gaussian-rdp-eps=1"
    shared = auxiliary_settings(own, "digits", "mlp", "shadow")
    assert shared["mechanism"] is None
    assert auxiliary_settings(own, "digits", "mlp", "shadow", "gaussian-rdp-eps=1")["mechanism"]["epsilon"] == 1.0


@pytest.mark.parametrize("cell", ["mlp/l2", "mlp/dropout", "stopped/none"])
def test_an_attacker_who_knows_a_defense_of_the_training_trains_references_by_it(cell):
    """Early stopping is a model of its own, with fewer epochs. Attacks called unaware learn from undefended ones."""
    stopped = {"architecture": {"name": "mlp", "hidden": [8]}, "training": {"epochs": 3}}
    defenses = [{"defense": "none"}, {"defense": "l2", "l2": 0.02}, {"defense": "dropout", "dropout": 0.4}]
    changes = {
        "models": {"stopped": stopped},
        "defenses": defenses,
        "attacks": {"lira_online": {}, "lira_unaware": {}},
        "reference": {"count": 2, "size": 50, "pool": ["target_members", "target_nonmembers"], "defense": "same"},
    }
    study = load(changes)["quickstart"]
    attacked = study.cells[f"digits/{cell}"]
    aware, unaware = (
        auxiliary_settings(
            study, "digits", attacked.model, "reference", auxiliary_defense(study.spec, attacked, "reference", attack)
        )
        for attack in ("lira_online", "lira_unaware")
    )
    own = train_settings(study, attacked)
    alike = ("training", "architecture")
    assert [aware[key] for key in alike] == [own[key] for key in alike]
    assert aware["training"]["epochs"] == (3 if attacked.model == "stopped" else study.spec["training"]["epochs"])
    assert (unaware == aware) == (attacked.defense == "none")


def test_a_private_projection_of_the_members_is_part_of_a_cells_mechanism():
    cell = load(projected())["quickstart"].cells["digits/mlp/gaussian-rdp-eps=8"]
    assert cell.training["mechanism"]["projection_noise"] == 4.0
    assert (cell.columns["projection"], cell.columns["projection_noise"]) == ("private_pca", 4)
    outside = load(projected(fit_on=["shadow_pool"]))["quickstart"].cells["digits/mlp/gaussian-rdp-eps=8"]
    assert "projection_noise" not in outside.training["mechanism"]
    plain = load()["quickstart"].cells["digits/mlp/gaussian-rdp-eps=1"]
    assert "projection_noise" not in plain.training["mechanism"]


def test_a_study_with_times_times_all_defenses_of_a_model_in_one_job():
    with_kinds_of("lomurno2022")
    changes = {"timing": {"rounds": 2, "records": 50}, "figures": {"table": {"kind": "timing_table"}}}
    study = load(changes)["quickstart"]
    settings = settings_of(study, "time_training", dataset="digits", model="mlp")
    own = [cell.defense for cell in study.cells.values() if cell.model == "mlp"]
    assert [cell["defense"] for cell in settings["cells"]] == own
    assert (settings["rounds"], settings["records"], settings["n_records"]) == (2, 50, 200)
    files = figure_inputs(study, "table")
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
    assert study.cells["digits/mlp/none"].parts == ["training", "yeom", "shokri", "strongest"]
    assert study.cells["other/mlp/none"].parts == ["training", "yeom", "attack_r", "strongest"]
    assert auxiliary_settings(study, "digits", "mlp", "shadow")["subset"]["size"] == 100
    assert auxiliary_settings(study, "other", "mlp", "reference")["subset"]["size"] == 200
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
    assert cell.parts[-2:] == ["audit", "strongest"]
    assert part("audit").path(study, cell).parts[-3:] == ("gaussian-rdp-eps=1", "measured", "audit.parquet")
    assert settings_of(study, "audit", cell) == settings_of(more, "audit", same)
    assert measure_settings(study, cell) != measure_settings(more, same)  # more bounds are stated, each must be surer
    assert settings_of(study, "audit", study.cells["digits/mlp/none"])["delta"] == 1e-5


def _own(path, label=None):
    source = {"path": str(path)} | ({"label": label} if label else {})
    return {"datasets": {"digits": {"source": source}}}


def test_an_edit_of_the_users_own_file_reaches_what_is_made_of_it_and_a_touch_does_not(tmp_path):
    table = tmp_path / "mine.csv"
    table.write_text("a,label\n1,x\n2,y\n")
    before = load(_own(table, "label"))["quickstart"]
    assert prepare_settings(before, "digits")["content"] == sha256(table.read_bytes()).hexdigest()
    os.utime(table, (1e9, 1e9))
    assert data_identity(load(_own(table, "label"))["quickstart"], "digits") == data_identity(before, "digits")
    table.write_text("a,label\n1,x\n3,y\n")  # as long as before
    after = load(_own(table, "label"))["quickstart"]
    assert data_identity(after, "digits") != data_identity(before, "digits")
    cell = "digits/mlp/none"
    assert train_settings(after, after.cells[cell])["data"] != train_settings(before, before.cells[cell])["data"]


def test_an_edit_of_one_of_the_users_own_images_counts_and_hidden_files_do_not(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.png").write_bytes(b"one")
    before = data_identity(load(_own(tmp_path))["quickstart"], "digits")
    (tmp_path / ".DS_Store").write_bytes(b"")
    assert data_identity(load(_own(tmp_path))["quickstart"], "digits") == before
    (tmp_path / "b" / "1.png").write_bytes(b"two")
    assert data_identity(load(_own(tmp_path))["quickstart"], "digits") != before
    (tmp_path / "b" / "1.png").rename(tmp_path / "b" / "2.png")
    assert data_identity(load(_own(tmp_path))["quickstart"], "digits") != before


def test_a_missing_file_of_the_users_own_is_named_once_it_is_asked_for(tmp_path):
    study = load(_own(tmp_path / "nope.csv", "label"))["quickstart"]
    with pytest.raises(UserError, match=r"key 'datasets.digits.source.path': .*nope.csv: no such file or folder"):
        train_settings(study, study.cells["digits/mlp/none"])


def test_the_report_names_the_identity_of_everything_that_it_reads(quickstart):
    settings = report_settings(quickstart)
    assert settings["data"] == [["digits", data_identity(quickstart, "digits")]]
    asked = [cell for cell in quickstart.cells.values() if cell.defense == "none" or cell.columns["accountant"]]
    scored = [
        [*cell.key.split("/"), attack, identity(attack_settings(quickstart, cell, attack))]
        for cell in asked
        for attack in ("yeom", "shokri", "lira_online")
    ]
    assert settings["scores"] == scored
    assert settings["histories"] == [
        [*cell.key.split("/"), identity(train_settings(quickstart, cell))] for cell in quickstart.cells.values()
    ]
    assert len(exposed_scores(quickstart)) == len(scored)


def test_a_figure_may_select_what_only_the_whole_study_has():
    figure = {"figures": {"f": {"kind": "accuracy_loss", "select": {"epsilon": [100, 1000]}}}}
    study = load(figure, config={"scale": "smoke"})["quickstart-smoke"]  # which has 1 and 100
    assert {cell.columns["epsilon"] for cell in figure_cells(study, "f")} == {100}


def test_a_figure_of_scores_asks_for_the_membership_scores_of_its_cells_and_nothing_else():
    figure = {"figures": {"fig_roc": {"kind": "roc", "select": {"defense": ["none"]}}}}
    study = load(figure)["quickstart"]
    cells = figure_settings(study, "fig_roc")["cells"]
    assert {name for _, parts in cells for name, _ in parts} == {"yeom", "shokri", "lira_online"}
    assert all(path.parent.name == "attack" for path in figure_inputs(study, "fig_roc"))


def test_seeds_on_the_users_own_data_do_not_depend_on_the_names_that_a_study_gives(quickstart):
    def seeds(name, source):
        digits = quickstart.spec["datasets"]["digits"] | {"source": source}
        study = type(quickstart)(name, quickstart.spec | {"study": name, "datasets": {name: digits}})
        cell = study.cell(name, "mlp", "none")
        settings = [prepare_settings(study, name), project_settings(study, name), train_settings(study, cell)]
        settings += [attack_settings(study, cell, attack) for attack in study.spec["attacks"]]
        return [made["seed"] for made in settings] + [settings[2]["subset"].get("coins")]

    own = {"path": str(REPO / "README.md"), "source": "outputs"}
    assert seeds("mine", own) == seeds("another", own)
    assert seeds("mine", "digits") != seeds("another", "digits")


@pytest.mark.parametrize(
    ("now", "drawn"), [("normalize", "normalise"), ("gaussian-normalize-rdp-eps=1", "gaussian-normalise-rdp-eps=1")]
)
def test_seeds_are_drawn_from_a_defenses_word_and_from_a_models_own_name(quickstart, now, drawn):
    spec = quickstart.spec
    assert seed_of(spec, "digits", "mlp", now, "target") == derived_seed(spec["seed"], "digits", "mlp", drawn, "target")
    assert seed_of(spec, "digits", now, "none") == derived_seed(spec["seed"], "digits", now, "none")
    assert ATTACKS["inversion_unpenalized"].draws_as == "inversion_unpenalised"
