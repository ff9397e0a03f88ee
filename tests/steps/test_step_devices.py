"""What steps promise on any device; a GPU's own tests are in tests/training/test_cuda.py."""

import sys

import pytest
import torch

from dp_leakage.common.kernels import exact
from dp_leakage.steps import query, run


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


@pytest.mark.parametrize("error", [MemoryError(), torch.OutOfMemoryError("CUDA out of memory")])
def test_a_device_without_memory_is_one_sentence(error, monkeypatch, caplog):
    def step(settings):
        raise error

    monkeypatch.setattr(sys, "argv", ["step", "--settings", "{}"])
    with pytest.raises(SystemExit):
        run(step)
    assert "not enough memory" in caplog.text


def test_any_other_error_of_pytorch_is_not_taken_for_it(monkeypatch):
    def step(settings):
        raise RuntimeError("shapes")

    monkeypatch.setattr(sys, "argv", ["step", "--settings", "{}"])
    with pytest.raises(RuntimeError, match="shapes"):
        run(step)
