"""From study files to cells: names, settings, identities, and what is refused."""

from copy import deepcopy
from pathlib import Path

import pytest
import yaml

from dp_leakage.config import merged, read_yaml
from dp_leakage.defenses import spell
from dp_leakage.errors import UserError
from dp_leakage.identity import identity
from dp_leakage.study_file import load_studies

REPO = Path(__file__).parents[1]
SCHEMAS = {
    name: yaml.safe_load((REPO / "workflow" / "schemas" / f"{name}.schema.yaml").read_text())
    for name in ("config", "study")
}
QUICKSTART = REPO / "workflow" / "studies" / "quickstart.yaml"
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
    files = sorted((REPO / "workflow" / "studies").glob("*.yaml"))
    for scale in ("paper", "small", "smoke"):
        studies = load_studies(merged(CONFIG, {"scale": scale}), files, SCHEMAS)
        for study in studies.values():
            assert study.cells
            assert study.name == study.target + ("" if scale == "paper" else f"-{scale}")


def test_cells_are_called_as_the_file_contract_says(quickstart):
    assert "digits/mlp/gaussian-rdp-eps=0.1" in quickstart.cells
    assert "digits/softmax_regression/none" in quickstart.cells
    assert "digits/softmax_regression/dropout" not in quickstart.cells  # the study gives it to the mlp only


@pytest.mark.parametrize(
    ("entry", "name"),
    [
        ({"defense": "gaussian", "accountant": "naive", "unit": "batch", "epsilon": [1]}, "gaussian-batch-naive-eps=1"),
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
    ],
)
def test_variants_stand_in_the_name_in_a_fixed_order(entry, name):
    study = load({"defenses": [{"defense": "none"}, entry]})["quickstart"]
    assert f"digits/mlp/{name}" in study.cells


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


def test_a_study_with_times_times_all_defenses_of_a_model_in_one_job():
    changes = {"timing": {"rounds": 2, "records": 50}, "figures": {"table": {"kind": "timing_table"}}}
    study = load(changes)["quickstart"]
    settings = study.timing_settings("digits", "mlp")
    own = [cell.defense for cell in study.cells.values() if cell.model == "mlp"]
    assert [cell["defense"] for cell in settings["cells"]] == own
    assert (settings["rounds"], settings["records"], settings["n_members"]) == (2, 50, 200)
    files = study.figure_inputs("table")
    assert {str(file) for file in files} == {
        f"results/quickstart/digits/{model}/timed.parquet" for model in ("mlp", "softmax_regression")
    }
    assert len(files) == len(study.cells)


AUDITED = {"audit": {"models": 8, "canaries": {"natural": 10, "mislabelled": 10}}}


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


def test_a_scale_has_its_own_folder_and_the_same_targets():
    smoke = load(config={"scale": "smoke"})
    assert list(smoke) == ["quickstart-smoke"]
    assert smoke["quickstart-smoke"].target == "quickstart"


BAD = {
    "unknown key": ({"epsilons": [1]}, r"unknown key 'epsilons'; did you mean 'epsilon'"),
    "unknown nested key": ({"training": {"epoch": 3}}, r"unknown key 'training.epoch'; did you mean 'epochs'"),
    "text for a number": ({"delta": "1e-5"}, r"key 'delta' is '1e-5'; .*write it like 1.0e-3"),
    "wrong type": ({"repeats": "three"}, r"key 'repeats' is 'three'; valid is a value of type integer"),
    "negative epsilon": ({"epsilon": [1, -2]}, r"key 'epsilon.1' is -2; valid is more than 0"),
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
        r"'defenses.1.noise_multiplier' does not apply to defense vmf",
    ),
    "unknown canary": ({"audit": {"models": 8, "canaries": {"natura": 3}}}, r"unknown key 'audit.canaries.natura'"),
    "no epsilon": ({"epsilon": []}, r"key 'epsilon' is empty"),
    "epsilon twice": ({"epsilon": [1, 1.0]}, r"has the budget 1 more than once"),
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
        r"data set digits, defense gaussian-zcdp-eps=8: accountant: 'zcdp' cannot add what a private PCA",
    ),
    "unknown accountant": (_defenses(accountant="rpd"), r"'defenses.1.accountant' is 'rpd'; did you mean 'rdp'"),
    "no accountant": (_defenses(), r"'defenses.1' lacks the key 'accountant'"),
    "sampler against accountant": (_defenses(accountant="rdp", sampler="shuffle"), r"'defenses.1': .*'shuffle'.*'rdp'"),
    "epsilon and sigma": (
        _defenses(accountant="rdp", epsilon=[1], noise_multiplier=[1]),
        r"'defenses.1' has both epsilon and noise_multiplier",
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
        {"figures": {"f": {"kind": "leakage", "select": {"epsilon": [77]}}}},
        r"'figures.f.select' fits no cell",
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
    "checkpoint interval": ({"checkpoint_seconds": 0}, r"'checkpoint_seconds' is 0; valid is 1 or more"),
}


@pytest.mark.parametrize("case", BAD_CONFIG)
def test_a_bad_config_gives_one_sentence(case):
    changes, sentence = BAD_CONFIG[case]
    with pytest.raises(UserError, match=sentence):
        load(config=changes)


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
    assert {tuple(part[::2]) for _, parts in cells for part in parts} == {("yeom", "scores"), ("shokri", "scores")}
    assert all(path.parent.name == "attack" for path in study.figure_inputs("fig_roc"))
