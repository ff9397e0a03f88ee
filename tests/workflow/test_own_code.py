"""The documented plugins and the documented model in the real workflow."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from sklearn.datasets import load_digits

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
OWN = {
    "epsilon": [10],
    "datasets": {"digits": {"source": {"path": "digits.jsonl", "label": "digit"}}},
    "models": {
        "mlp": None,
        "softmax_regression": None,
        "soft": {"architecture": {"name": "mlp", "hidden": [8], "activation": {"name": "softplus", "beta": 2}}},
        "small_net": {"architecture": {"name": "small_net:SmallNet", "width": 16}},
    },
    "attacks": {"lira_online": None, "rmia_online": None, "confidence": {"threshold": 0.8}},
    "defenses": [
        {"defense": "none"},
        {"defense": "gaussian", "accountant": "rdp", "sampler": "poisson", "models": ["small_net"]},
        {"defense": "automatic_clipping", "accountant": "rdp", "sampler": "poisson", "models": ["soft"]},
        {"defense": "gamma_noise", "accountant": "pure", "sampler": "shuffle", "models": ["soft"]},
    ],
}


def json_lines():
    """The bundled digits as the documented source of data reads them."""
    bundle = load_digits()
    records = zip(bundle.data / 16, bundle.target.tolist(), strict=True)
    return "".join(json.dumps({**dict(enumerate(x.tolist())), "digit": y}) + "\n" for x, y in records)


@pytest.mark.study
def test_a_folder_of_plugins_is_one_line_of_config_and_runs_to_the_report(whole):
    shutil.copytree(EXAMPLES / "plugins", whole.folder / "plugins")
    whole.edit("config.yaml", "plugins: []", "plugins: [plugins]")
    (whole.folder / "digits.jsonl").write_text(json_lines())
    spec = yaml.safe_load((whole.folder / "workflow" / "studies" / "quickstart.yaml").read_text())
    figures = dict.fromkeys(spec["figures"]) | {"fig_bars": {"kind": "accuracy_bars"}}
    whole.edit(
        "config.yaml", "overrides: {}", yaml.safe_dump({"overrides": {"quickstart": OWN | {"figures": figures}}})
    )
    run = ("quickstart", "--cores", "1", "--config", "scale=smoke")
    whole.snakemake(*run)
    results = whole.folder / "results" / "quickstart-smoke"
    bars = pd.read_csv(results / "figures" / "fig_bars.csv")
    assert set(bars["defense"]) == {
        "none",
        "gaussian-rdp-eps=10",
        "automatic_clipping-rdp-eps=10",
        "gamma_noise-pure-eps=10",
    }
    spent = pd.read_parquet(results / "digits" / "soft" / "gamma_noise-pure-eps=10" / "metrics.parquet")
    spent = spent[spent["metric"] == "epsilon_spent"]
    assert spent[["accounted_by", "neighbors", "valid"]].to_numpy().tolist() == [["pure", "zero_out", True]]
    assert spent["value"].item() == pytest.approx(10, rel=1e-5)
    page = (results / "report.html").read_text()
    assert "Accuracy on new records; the line on each bar" in page
    with np.load(results / "digits" / "data.npz") as data:
        assert data["x"].shape == (1797, 30)  # principal components
    assert "Nothing to be done" in whole.snakemake("-n", *run)
    whole.edit("plugins/confidence.py", "max(axis=2)", "max(axis=2).copy()")
    planned = whole.planned(*run[:1], *run[3:])
    assert sum(count for rule, count in planned.items() if rule.startswith("judge_")) == 5
    assert planned["train_target"] == 0


READING = """'''Attack with a table.'''
from pathlib import Path
import numpy as np
from dp_leakage.attacks.signals import Scores

ATTACK = {"family": "membership", "access": "has a table"}


def score(target, reference, settings, seed):
    Path(__file__).with_name("table.txt").read_text()
    return Scores(target.asked.margin[0], target.asked.margin[0] > 0)
"""
TINY = {
    "study": "quickstart", "title": "Tiny", "seed": 1, "repeats": 2, "delta": 1e-5,
    "datasets": {"digits": {"source": "digits", "roles": {"target_members": 200, "target_nonmembers": 200}}},
    "models": {"mlp": {"architecture": {"name": "softmax_regression"}}},
    "training": {"optimizer": "adam", "learning_rate": 0.01, "epochs": 2, "batch_size": 20},
    "defenses": [{"defense": "none"}], "attacks": {"reading": {}}, "figures": {"fig_loss": {"kind": "accuracy_loss"}},
}  # fmt: skip


def test_a_file_that_a_plugin_reads_is_told_of_until_it_is_named_and_what_it_says_reaches_the_page(whole):
    plugin, table = (whole.folder / "plugins" / name for name in ("reading.py", "table.txt"))
    plugin.parent.mkdir()
    plugin.write_text(READING)
    table.write_text("1")
    whole.edit("config.yaml", "plugins: []", "plugins: [plugins]")
    (whole.folder / "workflow" / "studies" / "quickstart.yaml").write_text(yaml.safe_dump(TINY))
    run, told = (
        ("quickstart", "--cores", "1"),
        f"beware: plugin reading reads {table}, and an edit of it reruns nothing",
    )
    assert whole.snakemake(*run).count(told) == 1
    table.write_text("2")
    assert not whole.planned("quickstart")
    plugin.write_text(READING.replace("has a table", "has two tables"))
    assert whole.planned("quickstart") == {"quickstart_report": 1, "quickstart": 1}
    plugin.write_text(READING.replace("ATTACK =", 'FILES = ["table.txt"]\nATTACK ='))
    assert "beware" not in whole.snakemake(*run)
    table.write_text("3")
    assert whole.planned("quickstart")["judge_quickstart"] == 1


@pytest.mark.parametrize("preload", ["true", "false"])
@pytest.mark.parametrize(
    ("edited", "step"), [("plugins/json_lines.py", "prepare"), ("src/dp_leakage/data/projection.py", "project")]
)
def test_code_that_is_edited_during_a_run_leaves_nothing_under_the_identity_of_the_code_before(
    unrun, edited, step, preload
):
    """Otherwise an edit that is taken back leaves what no code has made."""
    shutil.copytree(EXAMPLES / "plugins", unrun.folder / "plugins")
    unrun.edit("config.yaml", "plugins: []", "plugins: [plugins]")
    (unrun.folder / "digits.jsonl").write_text(json_lines())
    unrun.configure(datasets=OWN["datasets"])
    data = unrun.results / "digits" / "data.npz"
    run = (str(data.relative_to(unrun.folder)), "--cores", "1", "--config", f"preload={preload}")
    file, edit = unrun.folder / edited, f"    open({edited!r}, 'a').write('\\n\\nEDITED = 1\\n')\n"
    before = file.read_text()
    unrun.edit("workflow/Snakefile", "onstart:\n", f"onstart:\n{edit}")
    text = unrun.snakemake(*run, check=False)
    assert f"error: the code of the step {step} was edited while this run was on; run the same command again" in text
    assert not data.exists()
    file.write_text(before)
    unrun.edit("workflow/Snakefile", edit, "")
    unrun.snakemake(*run)
    assert data.exists()
