"""Study files and commands in the words of version 0.2 mean what they meant."""

import json

import pytest
import yaml
from loading import QUICKSTART, load

from dp_leakage.attacks import ATTACKS
from dp_leakage.audit_training import _parser
from dp_leakage.common.config import merged
from dp_leakage.common.errors import UserError
from dp_leakage.common.identity import derived_seed
from dp_leakage.common.old_words import renamed
from dp_leakage.common.yaml_files import read_yaml
from dp_leakage.study.protocol import seed_of

AUDITS = {
    "one": {"design": "one_run", "canary": "mislabelled", "models": 2, "canaries": 20, "beyond_reach": "mark"},
    "many": {"design": "many_runs", "canary": "optimised", "models": 20, "beyond_reach": "mark"},
}
OLD = {
    "training": {"initialisation": "glorot"},
    "defenses": [
        {"defense": "none"},
        {"defense": "normalise", "audits": ["one"]},
        {"defense": "gaussian", "accountant": "rdp", "bound": "normalise", "sampler": "poisson", "audits": ["many"]},
    ],
    "audit": {"designs": AUDITS},
    "attacks": {"shokri": {"initialisation": "glorot"}},
    "figures": {
        "fig_loss": {"kind": "accuracy_loss", "settings": {"neighbours": "replace_one", "normalised": False}},
        "fig_few": {
            "kind": "accuracy_loss",
            "select": {"defense": ["none", "normalise", "gaussian-normalise-rdp-eps=1"]},
        },
    },
}


@pytest.fixture
def written(tmp_path):
    """A function that writes the quickstart with changes, and plans it."""

    def plan(changes):
        spec = read_yaml(QUICKSTART)
        spec = merged({key: spec[key] for key in spec if key not in ("figures", "scales")}, changes)
        path = tmp_path / "quickstart.yaml"
        path.write_text(yaml.safe_dump(spec))
        return load(file=path)["quickstart"]

    return plan


def test_a_study_in_old_words_is_that_in_todays(written):
    told = json.dumps(OLD)
    for old, new in {
        "initialisation": "initialization",
        "normalise": "normalize",
        "optimised": "optimized",
        "mislabelled": "mislabeled",
        "neighbours": "neighbors",
    }.items():
        told = told.replace(old, new)
    study, today = written(OLD), written(json.loads(told))
    assert study.spec == today.spec
    assert set(study.cells) == set(today.cells) >= {"digits/mlp/normalize", "digits/mlp/gaussian-normalize-rdp-eps=1"}
    assert written(merged(OLD, {"training": {"initialisation": "torch"}})).spec != today.spec


@pytest.mark.parametrize(
    ("old", "changes"),
    [
        ("initialisation", {"training": {"initialization": "torch"}}),
        ("initialisation", {"attacks": {"shokri": {"initialization": "torch"}}}),
        ("normalised", {"figures": {"fig_loss": {"settings": {"normalized": True}}}}),
    ],
)
def test_an_old_word_beside_the_new_one_is_refused(written, old, changes):
    with pytest.raises(UserError, match=rf"{old}'; did you mean"):
        written(merged(OLD, changes))


def test_arguments_of_the_users_own_code_keep_their_names():
    own = {"name": "nets:Net", "initialisation": "orthogonal", "bound": "normalise"}
    given = {"models": {"mlp": {"architecture": own, "private": own}}, "datasets": {"digits": {"source": own}}}
    assert renamed(given) == given
    assert renamed({"attacks": {"mine": {"initialisation": 1}}}) == {"attacks": {"mine": {"initialisation": 1}}}


def test_a_cell_with_a_new_name_has_the_seed_that_it_had(written):
    spec = written(OLD).spec
    for now, then in (("normalize", "normalise"), ("gaussian-normalize-rdp-eps=1", "gaussian-normalise-rdp-eps=1")):
        assert seed_of(spec, "digits", "mlp", now, "target") == derived_seed(
            spec["seed"], "digits", "mlp", then, "target"
        )


def test_a_model_called_like_a_defense_has_the_seed_of_its_own_name(written):
    spec = written(OLD).spec
    assert seed_of(spec, "digits", "normalize", "none") == derived_seed(spec["seed"], "digits", "normalize", "none")


def test_the_command_reads_old_canaries_and_refuses_others(capsys):
    given = ["--train", "m:f", "--epsilon", "1", "--canary"]
    assert _parser().parse_args([*given, "optimised"]).canary == "optimized"
    assert _parser().parse_args([*given, "mislabelled"]).canary == "mislabeled"
    with pytest.raises(SystemExit):
        _parser().parse_args([*given, "gilded"])
    assert "'gilded'" in capsys.readouterr().err


def test_old_names_of_attacks_and_metrics_are_read_wherever_a_study_names_them():
    old = {
        "attacks": {"learnt_attribute": {"features": 3}, "inversion_unpenalised": {}, "yeom": {"of_person": "learnt"}},
        "defenses": [{"defense": "none", "attacks": ["inversion_unpenalised", "yeom"]}],
        "figures": {
            "table": {"parts": ["learnt_attribute"], "settings": {"attack": "learnt_attribute"}},
            "other": {"settings": {"metrics": ["mse_standardised/iga/statistic=mean"]}},
        },
    }
    told = json.dumps(old)
    for was, now in (("unpenalised", "unpenalized"), ("learnt", "learned"), ("standardised", "standardized")):
        told = told.replace(was, now)
    assert renamed(old) == json.loads(told)
    assert {"learned_attribute", "inversion_unpenalized"} <= ATTACKS.keys()


def test_an_attack_with_a_new_name_draws_as_it_did():
    assert ATTACKS["inversion_unpenalized"].draws_as == "inversion_unpenalised"
    assert ATTACKS["learned_attribute"].draws_as == "attributes"  # as under its old name


def test_a_slip_of_the_pen_is_still_refused(written):
    with pytest.raises(UserError, match="initialisations"):
        written(merged(OLD, {"training": {"initialisations": "glorot"}}))
