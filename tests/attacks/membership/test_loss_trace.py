"""The attack on the losses of every evaluated epoch."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors import safe_open
from scipy.stats import iqr

from dp_leakage.attacks.membership import loss_trace
from dp_leakage.attacks.queries import asked_records
from dp_leakage.common.errors import UserError
from dp_leakage.data.roles import traced_roles
from dp_leakage.models.architectures import build
from dp_leakage.provenance.files import write_arrays, write_table
from dp_leakage.steps._signals import read_signals
from dp_leakage.training.checkpoint import Checkpoint
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.trainer import train

SETTINGS = {"statistic": "rise", "alpha": 0.25}


def rise(losses):
    """Log odds by probabilities; the first of six epochs is their first quarter."""
    assert len(losses) == 6
    p = np.exp(-np.maximum(losses.astype(float), 1e-8))
    return np.log(p[-1] / (1 - p[-1])) - np.log(p[0] / (1 - p[0]))


BY_HAND = {"rise": rise, "mean": lambda losses: -np.mean(losses, axis=0), "iqr": lambda losses: iqr(losses, axis=0)}


@pytest.mark.parametrize("statistic", BY_HAND)
def test_scores_are_of_the_losses_by_hand_and_flags_by_a_quantile_of_new_records(statistic, trained, signals):
    target = signals(trained.target, trained.data)
    found = loss_trace.score(target, None, SETTINGS | {"statistic": statistic}, 0)
    np.testing.assert_allclose(found.score, BY_HAND[statistic](target.asked.losses), rtol=1e-5)
    outside = BY_HAND[statistic](target.of("reference_pool").losses)
    for score, flagged, others in zip(found.score, found.flagged, outside, strict=True):
        np.testing.assert_array_equal(flagged, [(others < one).sum() >= 0.75 * len(others) for one in score])


@pytest.mark.parametrize(
    ("statistic", "member", "other"), [("mean", -1.0, -1.5), ("iqr", 1.0, 0.0), ("rise", 2.0, 0.0)]
)
def test_a_planted_fall_of_the_members_losses_is_found_exactly(statistic, member, other, trained, signals):
    """Members fall from 2 to 0 in even steps over five epochs, others stay at 1.5: quartiles 0.5 and 1.5. Where margins
    are asked for, members' rise from 0 to 2.
    """
    target = signals(trained.target, trained.data)
    falls = np.linspace(2, 0, 5, dtype=np.float32)
    falls = np.logaddexp(0, falls - 2) if statistic == "rise" else falls
    losses = np.where(target.trained_on, falls[:, None, None], np.float32(1.5))
    found = loss_trace.score(replace(target, losses=losses), None, SETTINGS | {"statistic": statistic}, 0)
    np.testing.assert_allclose(found.score, np.where(target.asked.trained_on, member, other), atol=1e-5)


def test_losses_of_one_epoch_do_not_move(trained, signals):
    target = signals(trained.target, trained.data)
    with pytest.raises(UserError, match="losses of 1 epoch are stored; expected 2 or more"):
        loss_trace.score(replace(target, losses=target.losses[:1]), None, SETTINGS, 0)


def test_the_history_holds_the_losses_that_the_models_give_at_each_evaluated_epoch(trained):
    """The last are those of the finished models; earlier ones of a training that ends there."""
    data, rows = trained.data, torch.from_numpy(trained.data.traced)
    x, y = torch.from_numpy(data.x), torch.from_numpy(data.y)
    subsets, layers = torch.from_numpy(np.stack([data.roles["target_members"]] * 2)), build("mlp", (8,), 4, hidden=[8])

    def after(epochs, **kept):
        how = TrainingSettings(epochs=epochs, batch_size=50, evaluate_every=2)
        return train(layers, x, y, subsets, [0, 1], how, **kept)

    models, history = after(4, trace=rows)
    plain, without = after(4)
    assert [row["loss"] for row in history] == [row["loss"] for row in without]
    assert "losses" not in without[0]
    assert all(torch.equal(models.parameters[name], plain.parameters[name]) for name in plain.parameters)
    for epoch in (2, 4):
        z = after(epoch)[0].logits(x[rows])
        for row in (row for row in history if row["epoch"] == epoch):
            expected = torch.nn.functional.cross_entropy(z[row["model"]], y[rows], reduction="none")
            np.testing.assert_allclose(row["losses"], expected.numpy(), rtol=1e-6)


def test_a_training_that_was_killed_keeps_the_losses_of_its_earlier_epochs(trained, tmp_path):
    data, how = trained.data, TrainingSettings(epochs=4, batch_size=50)
    x, y, rows = torch.from_numpy(data.x), torch.from_numpy(data.y), torch.from_numpy(data.traced)
    case = build("mlp", (8,), 4, hidden=[8]), x, y, torch.from_numpy(data.roles["target_members"])[None], [0], how

    def killed(epoch):
        if epoch == 2:
            raise KeyboardInterrupt

    whole = train(*case, trace=rows)[1]
    checkpoint = Checkpoint(tmp_path / "kept", "this", interval=0)
    with pytest.raises(KeyboardInterrupt):
        train(*case, trace=rows, checkpoint=checkpoint, on_epoch=killed)
    with safe_open(checkpoint.path, "pt") as file:
        saved = [file.get_tensor(name) for name in sorted(file.keys()) if name.endswith(".losses")]
        assert "losses" not in file.metadata()["facts"]
    assert [one.dtype for one in saved] == [torch.float32] * 2  # four bytes each; as JSON text it was about twenty
    resumed = train(*case, trace=rows, checkpoint=checkpoint)[1]
    assert torch.equal(saved[0], whole[0]["losses"])
    assert torch.equal(torch.stack([row["losses"] for row in resumed]), torch.stack([row["losses"] for row in whole]))


def test_files_give_each_record_its_own_losses(trained, signals, tmp_path):
    """From the history, in which rows of models and epochs may come in any order."""
    target = replace(signals(trained.target, trained.data), x=None, probability=None)
    chosen = target.of(*traced_roles(target.roles))
    np.testing.assert_array_equal(chosen.record, trained.data.traced)
    rows = [
        {"repeat": repeat, "epoch": 10 * (place + 1), "losses": chosen.losses[place, repeat]}
        for place in range(len(chosen.losses))
        for repeat in range(chosen.size)
    ]
    write_arrays(tmp_path / "signals.npz", replace(target, losses=None).arrays(), {"identity": "a", "settings": {}})
    frame = pd.DataFrame(rows).sample(frac=1, random_state=0)
    write_table(tmp_path / "training.parquet", frame, {"identity": "b", "settings": {}})
    files = tmp_path / "signals.npz", tmp_path / "training.parquet"
    found = read_signals({"signals": None, "history": None}, files[0], history=files[1])
    np.testing.assert_array_equal(found.losses, chosen.losses)
    np.testing.assert_array_equal(found.record, asked_records(trained.data, traced_roles(target.roles))[0])
