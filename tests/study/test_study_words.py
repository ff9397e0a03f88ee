"""What a plugin says of itself is part of what figures and the page are made from."""

import pytest
import yaml
from loading import CONFIG
from registries import unchanged

from dp_leakage.common.config import merged
from dp_leakage.study.file import load_studies
from dp_leakage.study.plan import figure_settings, report_settings

ATTACK = {"family": "membership", "label": "mine", "access": "sees it", "adapts": "waits"}
NOISE = {"label": "own noise", "guarantee": "It hides.", "relations": {"shuffle": ["zero_out"]}, "claim": "bound"}
CODE = "def score(target, reference, settings, seed): ...\n"
NOISY = "def noise(row, scale, generator): ...\ndef epsilon(noise_multiplier, case): return 1 / noise_multiplier\n"
STUDY = {
    "study": "own", "title": "Own", "seed": 1, "repeats": 2, "delta": 1e-5,
    "datasets": {"digits": {"source": "digits", "roles": {"target_members": 200, "target_nonmembers": 200}}},
    "models": {"mlp": {"architecture": {"name": "softmax_regression"}}},
    "training": {"optimizer": "adam", "learning_rate": 0.01, "epochs": 2, "batch_size": 20},
    "defenses": [{"defense": "none"}, {"defense": "own_noise", "accountant": "own_noise", "noise_multiplier": [1]}],
    "attacks": {"mine": {}}, "figures": {"fig_pareto": {"kind": "pareto"}},
}  # fmt: skip


def settings(folder, attack, noise):
    """Of a figure and of the report, where the plugins declare this."""
    plugs = folder / "plugs"
    plugs.mkdir(exist_ok=True)
    (plugs / "mine.py").write_text(f"ATTACK = {attack!r}\n{CODE}")
    (plugs / "own_noise.py").write_text(f"MECHANISM = {noise!r}\n{NOISY}")
    (folder / "own.yaml").write_text(yaml.safe_dump(STUDY))
    with unchanged("mine", "own_noise"):
        study = load_studies(merged(CONFIG, {"plugins": [str(plugs)]}), [folder / "own.yaml"])["own"]
        return figure_settings(study, "fig_pareto"), report_settings(study)


@pytest.mark.parametrize(
    ("attack", "noise", "redrawn"),
    [
        ({"label": "other"}, {}, True),
        ({"access": "sees more"}, {}, False),
        ({"adapts": "hurries"}, {}, False),
        ({}, {"label": "other"}, True),
        ({}, {"guarantee": "It hides nothing."}, False),
    ],
)
def test_an_edit_of_what_a_plugin_says_reaches_what_shows_it(tmp_path, attack, noise, redrawn):
    before = settings(tmp_path, ATTACK, NOISE)
    figure, report = settings(tmp_path, ATTACK | attack, NOISE | noise)
    assert (figure["labels"] != before[0]["labels"]) == redrawn
    assert {**report, "figures": 0} != {**before[1], "figures": 0}
