import multiprocessing
import os
import random
import signal
import time
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import save_file
from small import data_of, layers_of, subsets_of

from dp_leakage.common.errors import UserError
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.training import loop
from dp_leakage.training.checkpoint import Checkpoint, checkpoint_beside, forget_beside
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.trainer import train

NOISY = Mechanism("poisson", noise_multiplier=0.5)
ADAM = TrainingSettings("adam", 0.01, epochs=40, batch_size=8, evaluate_every=3)
BANDED = Mechanism("cyclic", noise="banded", noise_multiplier=0.5, settings={"bands": 3})
MOMENTUM = TrainingSettings("sgd", 0.05, momentum=0.9, epochs=40, batch_size=8, evaluate_every=3)


def train_small(settings, mechanism, checkpoint=None, on_epoch=None):
    x, y = data_of("mlp")
    return train(
        layers_of("mlp", dropout=0.2),
        x,
        y,
        subsets_of(40, 2, 30),
        [3, 4],
        settings,
        mechanism,
        evaluate_on=torch.arange(40),
        checkpoint=checkpoint,
        on_epoch=on_epoch,
    )


def train_and_save(settings, mechanism, folder):
    models, history = train_small(settings, mechanism, Checkpoint(folder / "checkpoint", "cell", 0))
    save_file(models.tensors(), folder / "models.part", {"history": repr(history)})
    (folder / "models.part").rename(folder / "models")


def test_what_a_killed_process_left_half_saved_is_removed(tmp_path):
    path = tmp_path / ".target.checkpoint"
    other = tmp_path / "..shadow.checkpoint.17.tmp"
    for left in (tmp_path / "..target.checkpoint.17.tmp", tmp_path / "..target.checkpoint.23.tmp", other):
        left.write_bytes(b"half")
    assert Checkpoint(path, "cell").load() is None
    assert list(tmp_path.iterdir()) == [other]


def test_a_job_goes_on_where_its_own_settings_were_and_forgets_all_when_it_is_done(tmp_path):
    output = tmp_path / "target.safetensors"
    before, after, part = (checkpoint_beside(output, *names) for names in (("1a", 0), ("2b", 0), ("2b", 0, "coins")))
    others = [tmp_path / name for name in (".target2.1a.checkpoint", "target.safetensors", ".history.1a.checkpoint")]
    for path in others:
        path.write_bytes(b"theirs")
    before.save({"w": torch.ones(2)}, {"epoch": 3})
    assert after.load() is None  # and no complaint
    after.save({"w": torch.zeros(2)}, {"epoch": 1})
    part.save({"w": torch.zeros(2)}, {"epoch": 2})
    assert before.load()[1] == {"epoch": 3}
    forget_beside(output)
    assert sorted(tmp_path.iterdir()) == sorted(others)


def kill_at_random_moments(settings, mechanism, folder, kills):
    """Starts the training again and again, each time killed (-9) at some moment, then lets it finish."""
    fork = multiprocessing.get_context("fork")
    begin = time.monotonic()
    train_and_save(settings, mechanism, folder)
    duration = time.monotonic() - begin
    undisturbed = (folder / "models").read_bytes()
    for name in ("models", "checkpoint"):
        (folder / name).unlink()
    moments = random.Random(1)
    killed = 0
    while killed < kills:
        process = fork.Process(target=train_and_save, args=(settings, mechanism, folder))
        process.start()
        process.join(moments.uniform(0, duration / 3))
        if process.is_alive():
            os.kill(process.pid, signal.SIGKILL)
            killed += 1
        process.join()
        if (folder / "models").exists():
            assert (folder / "models").read_bytes() == undisturbed
            for name in ("models", "checkpoint"):
                (folder / name).unlink()
    train_and_save(settings, mechanism, folder)
    assert (folder / "models").read_bytes() == undisturbed


@pytest.mark.parametrize(
    ("settings", "mechanism"),
    [
        (ADAM, NOISY),
        (MOMENTUM, None),
        (ADAM, Mechanism(bound="normalize", noise="vmf", kappa=30.0, block="layer")),
        (ADAM, BANDED),
    ],
    ids=["gaussian", "none", "vmf", "banded"],
)
def test_a_training_killed_at_twenty_random_moments_gives_the_same_bytes(settings, mechanism, tmp_path):
    kill_at_random_moments(settings, mechanism, tmp_path, kills=20)


@pytest.mark.faults
def test_a_training_killed_a_thousand_times_gives_the_same_bytes(tmp_path):
    kill_at_random_moments(ADAM, NOISY, tmp_path, kills=1000)


class Stop(Exception):
    pass


def stop_after(epochs):
    def on_epoch(epoch):
        if epoch == epochs:
            raise Stop

    return on_epoch


def test_a_training_goes_on_from_where_it_was_and_not_from_the_start(tmp_path):
    done = []
    with pytest.raises(Stop):
        train_small(ADAM, NOISY, Checkpoint(tmp_path / "c", "cell", 0), stop_after(25))
    models, history = train_small(ADAM, NOISY, Checkpoint(tmp_path / "c", "cell", 0), done.append)
    assert done == list(range(26, 41))
    undisturbed, its_history = train_small(ADAM, NOISY)
    assert history == its_history
    assert all(torch.equal(models.parameters[name], value) for name, value in undisturbed.parameters.items())


def test_nothing_is_saved_before_the_interval_has_passed(tmp_path):
    train_small(ADAM, NOISY, Checkpoint(tmp_path / "c", "cell", 3600))
    assert not list(tmp_path.iterdir())


def test_a_checkpoint_of_another_cell_or_code_is_refused_by_name(tmp_path):
    with pytest.raises(Stop):
        train_small(ADAM, NOISY, Checkpoint(tmp_path / "c", "cell", 0), stop_after(2))
    with pytest.raises(UserError, match=r"/c belongs to another cell or another version of the code"):
        train_small(ADAM, NOISY, Checkpoint(tmp_path / "c", "other cell", 0))


def test_a_checkpoint_of_another_device_is_refused_by_name(tmp_path):
    checkpoint = Checkpoint(tmp_path / "c", "cell", 0)
    with pytest.raises(Stop):
        train_small(ADAM, NOISY, checkpoint, stop_after(2))
    tensors, facts = checkpoint.load()
    checkpoint.save(tensors, facts | {"device": "cuda"})
    with pytest.raises(UserError, match=r"/c is of a training on cuda, this one runs on cpu"):
        train_small(ADAM, NOISY, checkpoint)


@pytest.mark.parametrize("damage", ["cut short", "not a checkpoint", "empty", "flipped", "another epoch"])
def test_a_damaged_checkpoint_is_refused_by_name(damage, tmp_path):
    path = tmp_path / "c"
    with pytest.raises(Stop):
        train_small(ADAM, NOISY, Checkpoint(path, "cell", 0), stop_after(2))
    whole = path.read_bytes()
    flipped = whole[:-100] + bytes([whole[-100] ^ 1]) + whole[-99:]
    another_epoch = whole.replace(rb"\"epoch\": 2", rb"\"epoch\": 1")
    assert another_epoch != whole
    damaged = {
        "cut short": whole[:-9],
        "not a checkpoint": b"hello" * 99,
        "empty": b"",
        "flipped": flipped,
        "another epoch": another_epoch,
    }
    path.write_bytes(damaged[damage])
    with pytest.raises(UserError, match=r"checkpoint .*/c .*delete it"):
        train_small(ADAM, NOISY, Checkpoint(path, "cell", 0))


def test_divergence_names_the_epoch_and_the_cause_and_leaves_the_last_good_state(tmp_path):
    x, y = data_of("softmax_regression")
    settings = TrainingSettings("sgd", 3e5, epochs=60, batch_size=8, l2=1e-3)
    checkpoint = Checkpoint(tmp_path / "c", "cell", 3600)
    with pytest.raises(
        UserError, match=r"diverged in epoch \d+ of 60: learning_rate 300000 is likely too high"
    ) as error:
        train(layers_of("softmax_regression"), x, y, subsets_of(40, 2), [1, 2], settings, checkpoint=checkpoint)
    epoch = int(str(error.value).split("epoch ")[1].split()[0])
    tensors, facts = Checkpoint(tmp_path / "c", "cell", 3600).load()
    assert facts["epoch"] == epoch - 1 >= 1
    assert bool(tensors["parameters"].isfinite().all())


def test_the_state_of_an_epoch_stays_on_its_device_until_it_is_saved():
    training = SimpleNamespace(tensors=lambda: {"weight": torch.zeros(3, device="meta")}, epoch=2, history=[])
    tensors, facts = loop._snapshot(training, "meta")
    assert tensors["weight"].device.type == "meta"
    assert facts == {"epoch": 2, "history": [], "device": "meta"}
