"""What a study is refused for: one sentence with the key, its value and what is valid."""

from copy import deepcopy

import pytest
from loading import PRIVATE_PCA, gaussian, load, projected, with_kinds_of

from dp_leakage.common.errors import UserError
from dp_leakage.study.plan import everything
from dp_leakage.study.steps import settings_of
from dp_leakage.study.steps.parts import part


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


def test_an_old_word_for_a_users_module_is_read():
    model = {"engine": "opacus", "architecture": {"name": "nets:Net", "hidden": None}}
    (study,) = load({"models": {"mlp": model}, "defenses": [{"defense": "none"}]}).values()
    trained = {(cell.training["engine"], cell.training["architecture"]["name"]) for cell in study.cells.values()}
    assert trained == {("ensemble", "nets:Net"), ("ensemble", "softmax_regression")}


def test_a_note_does_not_let_a_study_do_what_no_trainer_can():
    entry = {"defense": "vmf", "accountant": "vmf_rdp", "sampler": "class_poisson", "accounting_note": "a try"}
    with pytest.raises(UserError, match=r"'defenses\.1': sampler 'class_poisson' draws whole"):
        load({"defenses": [{"defense": "none"}, entry]})


@pytest.mark.parametrize("defense", ["class", "subclass"])
def test_classes_as_units_and_a_private_projection_for_records_are_refused_before_anything_is_trained(defense):
    """A class of the digits moves the second moment by up to 13.5 times what the projection's noise is made for."""
    entry = {"defense": defense, "accountant": "pld", "epsilon": [8]} | ({"k_sub": 2} if defense == "subclass" else {})
    own = {"defenses": [{"defense": "none"}, entry]}
    with pytest.raises(UserError, match=r"'datasets.digits.projection' \(of .*\) has noise for one record, but unit"):
        load({**projected(), **own})
    load({**projected(fit_on=["shadow_pool"]), **own})


def _audited(**design):
    return {"audit": {"designs": {"a": {"design": "one_run", "models": 8, "beyond_reach": "mark"} | design}}}


def _entry(defense, **entry):
    return {"defenses": [{"defense": "none"}, {"defense": defense, **entry}]}


NO_SHADOW = {"shadow": {"pool": ["reference_pool"]}}


BAD = {
    "unknown key": ({"epsilons": [1]}, r"unknown key 'epsilons'; did you mean 'epsilon'"),
    "unknown nested key": ({"training": {"epoch": 3}}, r"unknown key 'training.epoch'; did you mean 'epochs'"),
    "text for a number": ({"delta": "1e-5"}, r"key 'delta' is '1e-5'; .*write it like 1.0e-3"),
    "wrong type": ({"repeats": "three"}, r"key 'repeats' is 'three'; valid is a whole number"),
    "negative epsilon": ({"epsilon": [1, -2]}, r"key 'epsilon.1' is -2; valid is a number of at least 1e-05"),
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
        gaussian(accountant="rdp", dropout=0.5),
        r"'defenses.1.dropout' does not apply to defense gaussian",
    ),
    "block of a clipped gradient": (
        gaussian(accountant="rdp", block="row"),
        r"'defenses.1.block' does not apply to defense gaussian; valid is vmf",
    ),
    "several strengths beside noise": (
        gaussian(accountant="rdp", l2=[0.1, 0.2]),
        r"'defenses.1.l2' is \[0.1, 0.2\]; valid for defense gaussian is one number",
    ),
    "classes by another name": (
        gaussian(accountant="class_moments", unit="class"),
        r"'defenses.1.unit' is 'class'; valid is example or batch, or defense class",
    ),
    "persons, whom another defense protects": (
        gaussian(accountant="rdp", unit="person"),
        r"'defenses.1.unit' is 'person'; valid is example or batch, or defense person",
    ),
    "a whole batch, counted once": (
        gaussian(accountant="zcdp", unit="batch"),
        r"'defenses.1': unit: 'batch' moves by up to twice the clipping norm .*or say in accounting_note",
    ),
    "a table for another training": (
        gaussian(accountant="rdp", epsilon=[1], rdp_sigma="authors_table"),
        r"'rdp_sigma' is 'authors_table' \(digits/.*100 epochs and batches of 200 .*elsewhere calibrated_classic",
    ),
    "source of σ for another accountant": (
        gaussian(accountant="zcdp", rdp_sigma="calibrated_classic"),
        r"'defenses.1.rdp_sigma' says where accountant rdp takes σ from",
    ),
    "source of σ that is given": (
        gaussian(accountant="rdp", noise_multiplier=[1], rdp_sigma="calibrated_classic"),
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
        gaussian(accountant="class_moments"),
        r"'defenses.1': sampler 'class_poisson' draws whole \(sub\)classes",
    ),
    "dropout in a module of the user's": (
        {
            "models": {"mlp": {"engine": "opacus", "architecture": {"name": "nets:Net", "hidden": None}}},
            **_entry("dropout", dropout=0.5),
        },
        r"'defenses.1.dropout' does not apply to model mlp, which is taken as it is",
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
    "delta out of range": ({"delta": 1.5}, r"key 'delta' is 1.5; valid is a number above 0 and below 1"),
    "zero repeats": ({"repeats": 0}, r"key 'repeats' is 0; valid is a whole number from 1"),
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
    "a way to combine what nobody has": (
        {"attacks": {"yeom": {"of_person": "max"}}},
        r"'attacks.yeom.of_person' is about persons with several records; no data set has .* leave it out",
    ),
    "unknown attack": ({"attacks": {"yeoman": {}}}, r"unknown key 'attacks.yeoman'; did you mean 'yeom'"),
    "unknown attack setting": (
        {"attacks": {"shokri": {"epoch": 3}}},
        r"unknown key 'attacks.shokri.epoch'; did you mean",
    ),
    "attack setting of another type": (
        {"attacks": {"shokri": {"epochs": "x"}}},
        r"'attacks.shokri.epochs' is 'x'; valid",
    ),
    "no models for an attack": ({"shadow": None}, r"key 'shadow' is missing; attack shokri needs shadow models"),
    "private projection with an accountant that cannot compose it": (
        {"datasets": {"digits": {"projection": PRIVATE_PCA}}, **gaussian(accountant="zcdp", epsilon=[8])},
        r"key 'datasets.digits.projection' \(of .*gaussian-zcdp-eps=8\): accountant: 'zcdp' cannot add what a private",
    ),
    "unknown accountant": (gaussian(accountant="rpd"), r"'defenses.1.accountant' is 'rpd'; did you mean 'rdp'"),
    "no accountant": (gaussian(), r"'defenses.1' lacks the key 'accountant'"),
    "sampler against accountant": (gaussian(accountant="rdp", sampler="shuffle"), r"'defenses.1': .*'shuffle'.*'rdp'"),
    "epsilon and sigma": (
        gaussian(accountant="rdp", epsilon=[1], noise_multiplier=[1]),
        r"'defenses.1' has both epsilon and noise_multiplier",
    ),
    "epsilon and target": (
        gaussian(accountant="rdp", epsilon=[1], target={"advantage": 0.1}),
        r"'defenses.1' has both epsilon and target",
    ),
    "target of nothing": (
        gaussian(accountant="rdp", target={"advantage": 1.5}),
        r"'defenses.1': target.advantage is 1.5; valid is a number above 0 and below 1",
    ),
    "target of no measure": (
        gaussian(accountant="rdp", target={"mu": 1}),
        r"'defenses.1': target is {'mu': 1}; valid",
    ),
    "target twice": (
        gaussian(accountant="rdp", target=[{"advantage": 0.1}, {"advantage": 0.1}]),
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
        r"unknown key 'figures.f.settings.atack'; did you mean 'attack'",
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
    "three point nought runs": ({"repeats": 3.0}, r"'repeats' is 3.0; valid is a whole number"),
    "unknown key of a model's training": (
        {"models": {"mlp": {"training": {"epoch": 3}}}},
        r"unknown key 'models.mlp.training.epoch'; did you mean 'epochs'",
    ),
    "text in a model's training": (
        {"models": {"mlp": {"training": {"epochs": "many"}}}},
        r"'models.mlp.training.epochs' is 'many'; valid is a whole number",
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
        r"'datasets.digits.models.mlp.architecture': .*'hidden.0' is 'a'; valid is a whole number",
    ),
    "unknown architecture setting": (
        {"models": {"mlp": {"architecture": {"hiden": [64]}}}},
        r"'models.mlp.architecture': .*no setting 'hiden'; did you mean 'hidden'",
    ),
    "module that is no path": (
        {"models": {"mlp": {"engine": "opacus", "architecture": {"name": "nets:", "hidden": None}}}},
        r"'models.mlp.architecture.name' is 'nets:'; valid is a path such as 'my_models:Net'",
    ),
    "widths of an attack": (
        {"attacks": {"shokri": {"hidden": ["a"]}}},
        r"'attacks.shokri.hidden.0' is 'a'; valid is a whole number",
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
    "data set of a defense": (
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


def test_the_structure_of_models_is_checked_where_answers_are_kept():
    with pytest.raises(UserError, match="key 'structure' is set; valid with models of engine outputs"):
        load({"structure": True})


def test_groups_that_cannot_be_compared_are_refused():
    with pytest.raises(UserError, match=r"key 'groups' has 'records', which compares models .*; valid in design coins"):
        load({"groups": ["records"]})
    with pytest.raises(UserError, match="klass"):
        load({"groups": ["klass"]})
    with pytest.raises(UserError, match="key 'groups' has 'sensitive', but no data set has a source with that key"):
        load({"groups": ["sensitive"]})
    spec = load({})["quickstart"].spec
    attacks = dict.fromkeys(name for name in spec["attacks"] if name != "yeom_attribute")
    figures = dict.fromkeys(name for name in spec["figures"] if name != "fig_leakage_attribute")
    with pytest.raises(UserError, match="key 'groups' compares what membership attacks find, and 'attacks' has none"):
        load({"groups": ["class"], "attacks": attacks, "figures": figures})


def test_an_audit_of_random_views_is_refused_before_anything_is_trained():
    with pytest.raises(UserError, match=r"'training.views' does not go with an audit .* the key audits: \[\]"):
        load({**_audited(), "training": {"views": {"count": 2}}, **gaussian(accountant="rdp", epsilon=[1])})
