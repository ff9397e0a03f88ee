"""What steps promise on any device; a GPU's own tests are in tests/training/test_cuda.py."""

import os
import sys

import pytest
import torch

from dp_leakage.common.errors import UserError
from dp_leakage.common.kernels import exact
from dp_leakage.steps import _models, attack_models, query, run


def full_precision():
    flags = torch.backends.cudnn
    return flags.deterministic and not flags.allow_tf32


def test_convolutions_are_exact_inside_and_as_before_outside():
    before = full_precision()
    with exact():
        assert full_precision()
    assert full_precision() == before


@pytest.mark.parametrize("asked", ["signals", "class_scores"])
def test_models_are_queried_in_full_precision(asked, monkeypatch):
    seen = []

    class Models:
        def to(self, device):
            return self

    class Said:
        def arrays(self):
            return {}

    def ask(*_):
        seen.append(full_precision())
        return Said() if asked == "signals" else (None, None)

    monkeypatch.setattr(query, "read_dataset", lambda *_: None)
    monkeypatch.setattr(query, "read_tensors", lambda *_: ({}, {}))
    monkeypatch.setattr(query, "settings_of", lambda *_: {"engine": "ours"})
    monkeypatch.setattr(query, "models_of", lambda *_: Models())
    monkeypatch.setattr(query, "write_arrays", lambda *_: None)
    monkeypatch.setattr(query, "provenance", lambda *_: {})
    monkeypatch.setattr(query, "ask", ask)
    monkeypatch.setattr(query, "ask_probabilities", ask)
    settings = {"data": None, "models": None, "queries": None, "roles": None}
    files = {"signals": None, "class_scores": None} | {asked: "file"}
    query.main(settings, "data", "models", **files, device="cpu")
    assert seen == [True]


@pytest.mark.parametrize(("attack", "moved"), [("decoder", ["cuda"]), ("yeom_attribute", [])])
def test_an_attack_that_trains_networks_works_on_the_device_in_full_precision_and_says_so(attack, moved, monkeypatch):
    seen, written = [], []

    class Models:
        def to(self, device):
            seen.append(device)
            return self

    def score(*_, thing):
        seen.append(full_precision())
        return "scores", {}

    monkeypatch.setattr(attack_models, "device_of", lambda device: "cuda")
    monkeypatch.setattr(attack_models, "read_dataset", lambda *_: None)
    monkeypatch.setattr(attack_models, "read_models", lambda *_: Models())
    monkeypatch.setattr(attack_models, "call", score)
    monkeypatch.setattr(attack_models, "write_table", lambda path, frame, made: written.append(made))
    settings = {"attack": attack, "module": "m", "inputs": {"data": "", "target": ""}, "settings": {}, "seed": 1}
    attack_models.main(settings, "data", "scores", "models", None, "auto")
    assert seen == [*moved, True]
    assert written[0].get("device") == (moved[0] if moved else None)


@pytest.mark.parametrize(
    ("error", "remedy"),
    [(MemoryError(), r"mem_mb"), (torch.OutOfMemoryError("CUDA out of memory"), "--resources gpu=1")],
)
def test_too_little_memory_is_one_sentence(error, remedy, monkeypatch, caplog):
    def step(settings):
        raise error

    monkeypatch.setattr(sys, "argv", ["step", "--settings", "{}"])
    with pytest.raises(SystemExit):
        run(step)
    assert "not enough memory" in caplog.text
    assert remedy in caplog.text


def test_any_other_error_of_pytorch_is_not_taken_for_it(monkeypatch):
    def step(settings):
        raise RuntimeError("shapes")

    monkeypatch.setattr(sys, "argv", ["step", "--settings", "{}"])
    with pytest.raises(RuntimeError, match="shapes"):
        run(step)


def test_jobs_beside_each_other_have_a_device_each_and_leave_it_when_they_end(tmp_path):
    taken = _models.free_device.__wrapped__  # each call stands for a job of its own
    if (job := os.fork()) == 0:
        os._exit(taken(2, tmp_path))
    assert os.waitstatus_to_exitcode(os.waitpid(job, 0)[1]) == 0
    assert [taken(2, tmp_path), taken(2, tmp_path)] == [0, 1]
    assert taken(2, tmp_path) in {0, 1}


@pytest.mark.parametrize(("count", "chosen"), [(1, []), (4, [0])])
def test_cuda_is_the_free_device_where_there_are_several(count, chosen, monkeypatch, tmp_path):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    monkeypatch.setattr(_models, "shared_folder", lambda: tmp_path)
    told = []
    monkeypatch.setattr(torch.cuda, "set_device", told.append)
    assert [_models.device_of(device) for device in ("cpu", "auto")] == ["cpu", "cuda"]
    assert told == chosen


def test_a_training_demands_the_device_that_the_settings_name_and_a_question_to_models_does_not(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(UserError, match="no CUDA device is visible here"):
        _models.device_of("cuda")
    assert _models.device_of("cuda", needed=False) == "cpu"
    assert _models.device_of("auto") == "cpu"
