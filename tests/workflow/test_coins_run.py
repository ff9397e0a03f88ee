"""A small study of design coins for real: whose coins are where, and what more repeats leave as it is."""

import numpy as np
import pandas as pd
import pytest
import yaml
from safetensors.numpy import load_file

SMALL = {
    "models": {"softmax_regression": None},
    "epsilon": [10],
    "repeats": 4,
    "training": {"epochs": 4, "evaluate_every": 2},
    "defenses": [
        {"defense": "none"},
        {"defense": "gaussian", "accountant": "naive", "sampler": "shuffle"},
        {"defense": "gaussian", "accountant": "rdp", "sampler": "poisson"},
    ],
    "attacks": {"lira_unaware": {}, "loss_trace": {}},
}
CELLS = ("none", "gaussian-naive-eps=10", "gaussian-rdp-eps=10")


def test_raising_repeats_from_8_to_16_trains_8_with_the_bytes_of_a_run_with_16(another):
    grown, fresh = (another(name) for name in ("grown", "fresh"))
    cells = ("softmax_regression/none", "mlp/gaussian-rdp-eps=4")
    files = [f"results/quickstart/digits/{cell}/target.safetensors" for cell in cells]

    def train(workflow, repeats):
        workflow.study = "quickstart"
        changes = f"overrides={{quickstart: {{repeats: {repeats}}}}}"
        said = workflow.snakemake(*files, "--cores", "2", "--config", changes)
        logs = [workflow.folder / f"logs/quickstart/digits/{cell}/train_target.log" for cell in cells]
        return said, [log.read_text() for log in logs]

    for workflow in (grown, fresh):
        workflow.configure(training={"epochs": 4, "evaluate_every": 2})
    train(fresh, 16)
    train(grown, 8)
    _, logs = train(grown, 16)
    assert all("kept 8 of 8 models; training 8 of 16" in log for log in logs)
    assert grown.hashes() == fresh.hashes()
    assert "digits/mlp/gaussian-rdp-eps=4/training.parquet" in grown.hashes()
    assert "Nothing to be done" in train(grown, 16)[0]
    grown.append("src/dp_leakage/training/trainer.py", "\n\nEDITED = True\n")
    _, logs = train(grown, 17)
    assert not any("kept" in log for log in logs)


@pytest.fixture(scope="module")
def coins(another):
    """The quickstart, smaller, run with 4 and then with 5 repeats; the files of the first run, by cell."""
    workflow = another("coins")
    workflow.configure(**SMALL)
    target = [f"results/quickstart/digits/mlp/{cell}/metrics.parquet" for cell in CELLS]
    workflow.snakemake(*target, "--cores", "2")
    folder = workflow.folder / "results" / "quickstart" / "digits" / "mlp"
    before = {cell: load_file(folder / cell / "target.safetensors") for cell in CELLS}
    config = workflow.folder / "config.yaml"
    changed = yaml.safe_load(config.read_text())
    changed["overrides"]["quickstart"]["repeats"] = 5
    config.write_text(yaml.safe_dump(changed))
    workflow.snakemake(*target, "quickstart_fig_pareto", "quickstart_fig_vulnerability", "--cores", "2")
    return folder, before


def test_more_repeats_leave_the_earlier_ones_bytes_as_they_are(coins):
    folder, before = coins
    for cell, tensors in before.items():
        after = load_file(folder / cell / "target.safetensors")
        for name, value in tensors.items():
            assert len(after[name]) == 5
            assert after[name][:4].tobytes() == value.tobytes(), (cell, name)


def test_every_cell_and_every_score_has_the_same_coins_and_only_the_pool_is_asked_about(coins):
    folder, _ = coins
    pool = np.load(folder.parent / "data.npz")["pool"]
    held = [load_file(folder / cell / "target.safetensors")["train_indices"] for cell in CELLS]
    assert all(np.array_equal(held[0], other) for other in held)
    inside = np.stack([np.isin(pool, rows) for rows in held[0]])
    assert 0.4 < inside.mean() < 0.6
    for cell in CELLS:
        for attack in ("yeom", "lira_online", "rmia_online", "lira_unaware"):
            frame = pd.read_parquet(folder / cell / "attack" / f"{attack}.parquet")
            assert set(frame["record"]) == set(pool)
            for repeat, rows in frame.groupby("repeat"):
                assert set(rows.loc[rows["member"], "record"]) == set(pool[inside[repeat]])


def test_an_attacker_who_does_not_know_the_defense_has_other_scores_but_for_undefended_models(coins):
    folder, _ = coins
    for cell in CELLS:
        aware, unaware = (
            pd.read_parquet(folder / cell / "attack" / f"{name}.parquet")["score"]
            for name in ("lira_online", "lira_unaware")
        )
        assert np.allclose(aware, unaware) == (cell == "none")


def test_an_attack_on_losses_scores_what_the_training_kept_of_each_evaluated_epoch(coins):
    folder, _ = coins
    pool = np.load(folder.parent / "data.npz")["pool"]
    for cell in CELLS:
        scores = pd.read_parquet(folder / cell / "attack" / "loss_trace.parquet")
        history = pd.read_parquet(folder / cell / "training.parquet")
        assert sorted(set(history["epoch"])) == [2, 4]
        for repeat, rows in history.groupby("repeat"):
            own = scores[scores["repeat"] == repeat]
            np.testing.assert_array_equal(own["record"], pool)
            early, late = -np.log(np.expm1(np.maximum(np.stack(rows["losses"])[:, : len(pool)].astype(float), 1e-8)))
            np.testing.assert_allclose(own["score"], late - early, rtol=1e-4, atol=1e-4)
            signals = np.load(folder / cell / "signals.npz")
            last = np.stack(rows[rows["epoch"] == 4]["losses"])[0, : len(pool)]
            np.testing.assert_allclose(last, np.log1p(np.exp(-signals["margin"][0, repeat, : len(pool)])), atol=1e-5)


def test_every_cell_states_a_lower_bound_corrected_for_all_that_are_stated(coins):
    folder, _ = coins
    for cell in CELLS:
        rows = pd.read_parquet(folder / cell / "metrics.parquet")
        bounds = rows[rows["metric"] == "epsilon_lower_bound"]
        together, *own = bounds[bounds["repeat"] == "all"].to_dict("records")
        # One of (ε, δ)-DP for each cell, and one for the curve of each of the two mechanisms.
        assert together["confidence"] == pytest.approx(1 - 0.05 / (len(CELLS) + 2))
        assert together["neighbors"] == ("zero_out" if "naive" in cell else "add_remove")
        assert [row["claim"] for row in own] == (["own"] if "gaussian" in cell else [])
        assert len(bounds) == 6 + len(own)
